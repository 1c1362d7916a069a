package ansor

import (
	"fmt"
	"math"

	"github.com/dsasched/dsasched/model/schedule"
)

// The buffers of a layer's loops.
const (
	inBuffer = iota
	weightBuffer
	outBuffer
	buffers
)

// A loop of a layer runs through some of its buffers, and meets the others again in each iteration.
type loop struct {
	extent float64
	moves  [buffers]bool
}

// loops of a nest on a core from the outermost inward, those of one iteration left out.
func loops(n *schedule.Nest, products bool) (list []loop) {
	tile := loop{float64(n.Tiles), [buffers]bool{inBuffer: true, outBuffer: true}}
	columns := loop{float64(len(n.Columns)), [buffers]bool{inBuffer: products, weightBuffer: true, outBuffer: true}}
	reduction := loop{float64(len(n.Reduction)), [buffers]bool{inBuffer: true, weightBuffer: true}}
	piece := loop{float64(n.Pieces), tile.moves}
	all := []loop{tile, columns, reduction, piece}
	if n.ColumnsFirst {
		all[0], all[1] = columns, tile
	}
	for _, l := range all {
		if l.extent > 1 {
			list = append(list, l)
		}
	}
	return list
}

const (
	curvePoints  = 10 // of the intensity curve
	reuseColumns = 4  // of each buffer
)

// reuseNames are of what reuse returns.
func reuseNames() (names []string) {
	for i := range curvePoints {
		names = append(names, fmt.Sprintf("intensity at %d/%d of the operations", i+1, curvePoints))
	}
	for _, b := range []string{"in", "weights", "out"} {
		names = append(names, b+" reuse iterations", b+" reuse bytes", b+" reuse count", b+" bytes over reuse")
	}
	return append(names, "iterations", "loops", "iterations outside the stage", "iterations inside the stage")
}

// reuse is what Ansor's appendix lists of loops: the arithmetic intensity against the operations of the innermost
// loops, sampled at equal distances of their logarithm; of each buffer how many iterations and bytes lie between two
// uses of an element, and how often they follow each other; iterations, also outside of the stage in the L1 and
// inside. Cache lines and strides have no counterpart in managed memories. ops are a core's operations, bytes what it
// touches of each buffer.
func reuse(list []loop, ops, outside float64, bytes [buffers]float64) (out []float64) {
	part, touched, iterations := bytes, make([]float64, len(list)+1), 1.0 // what the loops inside touch
	for i := 0; i <= len(list); i++ {
		for b := range part {
			touched[i] += part[b]
		}
		if i < len(list) {
			iterations *= list[i].extent
			for b := range part {
				if list[i].moves[b] {
					part[b] /= list[i].extent
				}
			}
		}
	}
	// The curve, from one command outward.
	var x, y []float64
	for i, done := len(list), ops/iterations; i >= 0; i-- {
		x, y = append(x, signedLog(done)), append(y, done/math.Max(1, touched[i]))
		if i > 0 {
			done *= list[i-1].extent
		}
	}
	for i, p := 0, 0; i < curvePoints; i++ {
		at := x[len(x)-1] * float64(i+1) / curvePoints
		for p < len(x)-1 && x[p] < at-1e-9 {
			p++
		}
		v := y[p]
		if p > 0 && x[p] > x[p-1] {
			v = y[p-1] + (y[p]-y[p-1])*(at-x[p-1])/(x[p]-x[p-1])
		}
		out = append(out, v)
	}
	for b := range bytes {
		distance, far, count := 1.0, touched[len(list)], 0.0
		for i := len(list) - 1; i >= 0 && bytes[b] > 0; i-- {
			if !list[i].moves[b] {
				count = list[i].extent
				break
			}
			distance, far = distance*list[i].extent, touched[i]
		}
		if count == 0 {
			distance, far = 0, 0 // used once
		}
		out = append(out, distance, far, count, bytes[b]/math.Max(1, count))
	}
	return append(out, iterations, float64(len(list)), outside, iterations/outside)
}
