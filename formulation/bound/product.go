package bound

import (
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A oneProduct is a network of one product, of a network's input and constant weights, on a cluster.
type oneProduct struct {
	rows, columns, depth               int64
	rowBytes, columnBytes, resultBytes float64 // of an element
	// Cycles of a row in a block of the matrix unit, at least of a block, between blocks and of a command.
	row, load, gap, fill float64
	unitRows, unitCols   int64
	cores, units         int64
	clock                float64
	launch               float64
	far, near            float64 // latencies of a load into the LLB and from there into a core; without an LLB all is near
	adding               float64 // what cores wait for before they add each other's sums
	ddr, stores, llb, in float64 // bytes per second: of the DDR and its link, of results there, of the LLB, into a core
	through, broadcast   bool    // there is an LLB, which each byte leaves once
}

// product finds the product of a network that is nothing else; nil: it is another network.
func (w *work) product(m *cost.Model, spec *hardware.Spec) *oneProduct {
	if len(w.g.Ops) != 1 || !m.HasMatrix() || spec.Mixed() {
		return nil
	}
	op := w.g.Ops[0]
	if op.Kind != "MatMul" && op.Kind != "Gemm" || w.ops[0][matrix] == 0 {
		return nil
	}
	data, weights, out := w.g.Tensor(op.Inputs[0]), w.g.Tensor(op.Inputs[1]), w.g.Tensor(op.Outputs[0])
	d, ok := w.g.MatrixDims(op, model.Whole(out.Shape))
	if !ok || d.Reps != 1 || data.Role != model.Input || weights.Role != model.Constant {
		return nil
	}
	p := &oneProduct{rows: d.M, columns: d.N, depth: d.K, rowBytes: data.DType.Size(),
		columnBytes: weights.DType.Size(), resultBytes: out.DType.Size(),
		unitRows: m.MatrixRows(), unitCols: m.MatrixCols(), cores: max(1, schedule.CoresWithL1(spec)), clock: spec.ClockHz,
		launch: spec.LaunchSeconds, adding: spec.SyncSeconds + spec.CoreLink.LatencySeconds,
		ddr: spec.DDR.BandwidthBytesPerSecond, in: math.Inf(1)}
	p.row, p.load, p.gap = m.MatrixRate(data.DType)
	p.fill, _, _ = m.Fills()
	p.units = m.Units(hardware.Matrix, p.cores)
	p.far, p.near = ways(spec)
	if p.stores = p.ddr; spec.DDRActivationEfficiency > 0 {
		p.stores *= spec.DDRActivationEfficiency
	}
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		p.ddr, p.stores = min(p.ddr, port), min(p.stores, port)
	}
	if link := spec.CoreLink.BandwidthBytesPerSecond; link > 0 {
		p.in = link
	}
	if spec.LLB != nil {
		p.through, p.broadcast, p.llb = true, spec.CoreLink.Broadcast, spec.LLB.BandwidthBytesPerSecond
		p.adding += 2 * spec.LLB.LatencySeconds
	}
	return p
}

// seconds bounds the time of all schedules, of which chain is a bound, too: in one kernel, over all divisions among the
// cores, or in two and more.
func (p *oneProduct) seconds(chain float64) float64 {
	one, each := math.Inf(1), math.Inf(1)
	for slices := int64(1); slices <= min(p.cores, p.depth); slices++ {
		if p.depth%slices != 0 {
			continue
		}
		each = min(each, p.unit(1, 1, p.depth/slices, slices)+p.gather(slices))
		for rows := int64(1); rows*slices <= p.cores && rows <= p.rows; rows++ {
			for columns := int64(1); columns*rows*slices <= p.cores && columns <= p.columns; columns++ {
				one = min(one, p.divided(rows, columns, slices))
			}
		}
	}
	store := p.store()
	stores := math.Max(p.launch, p.far) + p.near + p.command(1) + p.behind() + 2*store + p.results()/p.stores
	return min(one, max(chain+p.launch+p.near, 2*(p.launch+p.near+each)+p.behind()+store, stores))
}

// command is the shortest command of a product on so many cores at a time.
func (p *oneProduct) command(cores int64) float64 {
	return float64(ceilDiv(cores, p.units)) * (math.Max(p.row, p.load) + p.fill) / p.clock
}

// unit is the time of the matrix unit for so many rows, columns and elements of the reduction, on each of some cores.
func (p *oneProduct) unit(rows, columns, depth, cores int64) float64 {
	blocks := float64(ceilDiv(columns, p.unitCols) * ceilDiv(depth, p.unitRows))
	return float64(ceilDiv(cores, p.units)) * (blocks*(math.Max(float64(rows)*p.row, p.load)+p.gap) + p.fill - p.gap) /
		p.clock
}

// gather is the latency of exchanging sums between cores that have slices of the reduction.
func (p *oneProduct) gather(slices int64) float64 {
	if slices > 1 {
		return p.adding
	}
	return 0
}

// behind is from the last product to the store of its results, and store the latency of that.
func (p *oneProduct) behind() float64 {
	if p.through {
		return p.near
	}
	return 0
}

func (p *oneProduct) store() float64 {
	if p.through {
		return p.far
	}
	return p.near
}

func (p *oneProduct) results() float64 { return float64(p.rows*p.columns) * p.resultBytes }

// divided is the time of one kernel with rows, columns and the reduction each in so many parts.
func (p *oneProduct) divided(rows, columns, slices int64) float64 {
	m, n, k := ceilDiv(p.rows, rows), ceilDiv(p.columns, columns), p.depth/slices
	rows, columns = ceilDiv(p.rows, m), ceilDiv(p.columns, n) // without those that have nothing
	cores := rows * columns * slices
	unit, command, store, results := p.unit(m, n, k, cores), p.command(cores), p.store(), p.results()

	first := math.Max(p.launch, p.far) + p.near // the first load into a core flows
	behind := p.gather(slices) + p.behind()
	moved := float64(m*k) * p.rowBytes // into a core, behind the launch
	if p.through {
		moved += float64(k*n) * p.columnBytes
	}
	least := first + math.Max(unit, moved/p.in+command) + behind + store
	if p.through {
		in := float64(p.rows*p.depth)*p.rowBytes + float64(p.depth*p.columns)*p.columnBytes
		out := in
		if !p.broadcast {
			out = float64(p.rows*p.depth*columns)*p.rowBytes + float64(cores*n*k)*p.columnBytes
		}
		share := math.Min(1, p.ddr/p.llb)
		sums := 2 * float64((slices-1)*p.rows*p.columns) * math.Min(p.resultBytes, schedule.AccumulatorBytes)
		all := first*(1-share) + (in+out+2*results)/p.llb
		least = max(least, all+sums/p.llb, all+math.Max(0, 1-2*share)*(command+p.near+p.far))
	}
	// Of any number of stores to the DDR, one after the other, the first waits for a command and the last, with its
	// part of the results, for all.
	early, late, part := first+command+behind+results/p.stores, first+unit+behind+store-1/p.stores, results/p.stores
	if early+store >= late+part {
		return max(least, early+store)
	}
	return max(least, (early+late+math.Sqrt((late-early)*(late-early)+4*store*part))/2)
}
