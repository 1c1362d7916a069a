package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// number writes a value with three digits that count, and all before the point.
func number(x float64) string {
	digits := 0
	switch {
	case x >= 100 || x == 0:
	case x >= 10:
		digits = 1
	default:
		digits = 2
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// niceTicks are multiples of 1, 2 or 5 times a power of ten from 0 to top, about five of them.
func niceTicks(top float64) []plot.Tick {
	if !(top > 0) {
		return []plot.Tick{{Value: 0, Label: "0"}}
	}
	step := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, f := range []float64{2, 2.5, 2, 1} { // to 2, 5, 10 and 10 times
		if top/step <= 6 {
			break
		}
		step *= f
	}
	digits := max(0, -int(math.Floor(math.Log10(step))))
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= top; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', digits, 64)})
	}
	return ticks
}
