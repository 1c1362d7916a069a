package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// PaletteSize is the number of colours that can be distinguished; further ones repeat.
const PaletteSize = 8

// Gantt draws one timeline over both columns of a page. colours name the palette's colours, in its order.
func Gantt(t Timeline, xLabel string, colours []string) (*Figure, error) {
	start, end, err := span([]Timeline{t})
	if err != nil {
		return nil, err
	}
	p := t.panel(start, end, ticksBetween(start, end))
	nameX(p, xLabel)
	keys := paletteKeys(colours) // over both columns
	f := stack([]panel{p}, 15*vg.Length(len(t.Rows))+34, keys, max(1, keysPerRow(keys, pageWidth-2*margin)))
	f.width = pageWidth
	return f, nil
}

func paletteKeys(colours []string) []key {
	var keys []key
	for i, c := range colours {
		keys = append(keys, barKey(paletteColour(i), c))
	}
	return keys
}

// ticksBetween are round numbers from start to end, about eight of them.
func ticksBetween(start, end float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((end-start)/8)))
	for _, f := range []float64{2, 2.5, 2} { // to 2, 5 and 10 times
		if (end-start)/step <= 10 {
			break
		}
		step *= f
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(start / step); i*step <= end; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return ticks
}
