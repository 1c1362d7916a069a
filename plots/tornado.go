package plots

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Tornado shows how far one figure moves when each of several quantities is halved and
// doubled: a bar to either side of the figure's own value.
type Tornado struct {
	Title string
	Unit  string // behind the numbers of the axis, such as "×"
	// Base is the figure with all quantities as they are.
	Base float64
	// Published is the paper's figure; 0: there is none.
	Published float64
	Names     []string  // of the quantities, from top to bottom
	Half      []float64 // the figure with each quantity halved
	Double    []float64 // and doubled
}

// Tornados draws a panel for each figure, as wide as a column, one above the other.
func Tornados(list []Tornado) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("plots: there is no figure whose sensitivity could be drawn")
	}
	var panels []panel
	published := false
	most := 0
	for _, t := range list {
		if err := t.check(); err != nil {
			return nil, err
		}
		most = max(most, len(t.Names))
		low, high := t.Base, t.Base
		for _, v := range slices.Concat(t.Half, t.Double) {
			low, high = min(low, v), max(high, v)
		}
		if t.Published > 0 {
			low, high = min(low, t.Published), max(high, t.Published)
			published = true
		}
		space := max((high-low)*0.06, math.Abs(t.Base)*0.02)
		n := len(t.Names)
		p := newPanel(t.Title, "", nil, low-space, high+space, 1)
		p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
		var names []plot.Tick
		for i, name := range t.Names {
			names = append(names, plot.Tick{Value: float64(n - 1 - i), Label: name})
		}
		p.Y.Tick.Marker = plot.ConstantTicks(names)
		p.X.Tick.Marker = plot.ConstantTicks(between(low-space, high+space, t.Unit))
		p.X.Tick.Label = textStyle(tickSize, text.XCenter, text.YTop-0.25)
		p.Add(tornado(t))
		panels = append(panels, p)
	}
	keys := []key{barKey(blue, "half"), barKey(orange, "double"), {func(c *draw.Canvas, pt vg.Point) {
		c.StrokeLine2(draw.LineStyle{Color: black, Width: 1}, pt.X, pt.Y-3.5, pt.X, pt.Y+3.5)
	}, "as fitted"}}
	if published {
		keys = append(keys, markKey(markStyles[Published], "published"))
	}
	return stack(panels, 30+11*vg.Length(most), keys, len(keys)), nil
}

// between are round numbers in an interval, two to seven of them.
func between(low, high float64, unit string) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/2)))
	for _, f := range []float64{5, 2} {
		if (high-low)/(f*step) >= 2.5 {
			step *= f
			break
		}
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for k := math.Ceil(low/step) + 0; k*step <= high; k++ { // + 0: no negative zero
		ticks = append(ticks, plot.Tick{Value: k * step, Label: fmt.Sprintf("%.*f%s", digits, k*step, unit)})
	}
	return ticks
}

func (t Tornado) check() error {
	var f faults
	f.unless(len(t.Names) > 0 && len(t.Half) == len(t.Names) && len(t.Double) == len(t.Names),
		"%s has %d names, %d values at half and %d at double", t.Title, len(t.Names), len(t.Half), len(t.Double))
	for _, v := range slices.Concat([]float64{t.Base, t.Published}, t.Half, t.Double) {
		f.unless(finite(math.Abs(v)), "%s has a value of %g", t.Title, v)
	}
	return f.err
}

type tornado Tornado

// Plot implements plot.Plotter.
func (t tornado) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, k := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		c.StrokeLine2(draw.LineStyle{Color: gridGray, Width: 0.4}, x(k.Value), c.Min.Y, x(k.Value), c.Max.Y)
	}
	for i := range t.Names {
		row := float64(len(t.Names) - 1 - i)
		// Where both lie on one side, each has a half of the row, so that none hides.
		for _, b := range []struct {
			value    float64
			from, to float64
			fill     int
		}{{t.Half[i], 0, 0.36, 0}, {t.Double[i], -0.36, 0, 1}} {
			fill := blue
			if b.fill == 1 {
				fill = orange
			}
			left, right := min(t.Base, b.value), max(t.Base, b.value)
			fillBox(&c, fill, x(left), y(row+b.from), x(right), y(row+b.to))
		}
	}
	c.StrokeLine2(draw.LineStyle{Color: black, Width: 1}, x(t.Base), c.Min.Y, x(t.Base), c.Max.Y)
	if t.Published > 0 {
		c.DrawGlyphNoClip(markStyles[Published], vg.Point{X: x(t.Published), Y: y(float64(len(t.Names)-1) / 2)})
	}
}
