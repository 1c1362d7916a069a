package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curves are lines over a common axis.
type Curves struct {
	Title, XLabel, YLabel string
	X                     []float64 // ascending
	Ticks                 []string  // what stands at the values of X; nil: round numbers
	Series                []Series  // a value per X; what is not a positive number is left out
	LogX, LogY            bool
	Line                  float64 // drawn across; 0: none
}

var curveShapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, diamond{},
	draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}

var curveDashes = [][]vg.Length{nil, {4, 1.5}, {1.5, 1.5}, {5, 1.5, 1.5, 1.5}, nil, {4, 1.5}, {1.5, 1.5}}

// Lines draws panels of curves one above the other; all have the same series.
func Lines(panels ...Curves) (*Figure, error) {
	if len(panels) == 0 {
		return nil, fmt.Errorf("plots: there are no curves to draw")
	}
	var list []panel
	for _, g := range panels {
		low, high, err := g.check()
		if err != nil {
			return nil, err
		}
		p := newPanel(g.Title, g.YLabel, nil, g.X[0], g.X[len(g.X)-1], high*1.08)
		if g.LogX {
			p.X.Scale = plot.LogScale{}
			p.X.Tick.Marker = plot.ConstantTicks(decades(g.X[0], g.X[len(g.X)-1]*1.001))
		} else {
			p.X.Tick.Marker = plot.ConstantTicks(niceTicks(g.X[len(g.X)-1]))
		}
		if g.Ticks != nil {
			p.X.Tick.Marker = plot.ConstantTicks(g.ticks())
			// Words are wider than numbers: the first would run into the y axis.
			const space = 0.05
			if first, last := p.X.Min, p.X.Max; g.LogX {
				p.X.Min, p.X.Max = first*math.Pow(first/last, space), last*math.Pow(last/first, space)
			} else {
				p.X.Min, p.X.Max = first-space*(last-first), last+space*(last-first)
			}
		}
		if g.LogY {
			if g.Line > 0 {
				low, high = min(low, g.Line), max(high, g.Line)
			}
			space := max(1.01, math.Pow(high/low, 0.08))
			p.Y.Min, p.Y.Max = low/space, high*space
			p.Y.Scale = plot.LogScale{}
			p.Y.Tick.Marker = plot.ConstantTicks(decades(p.Y.Min, p.Y.Max))
		}
		p.X.Tick.Label = textStyle(tickSize, text.XCenter, text.YTop)
		nameX(p, g.XLabel)
		p.Add(grid{}, curves(g))
		list = append(list, p)
	}
	var keys []key
	fill := colours(seriesNames(panels[0].Series))
	for i, s := range panels[0].Series {
		keys = append(keys, key{func(c *draw.Canvas, pt vg.Point) {
			c.StrokeLine2(curveStyle(fill[i], i), pt.X-7, pt.Y, pt.X+7, pt.Y)
			c.DrawGlyphNoClip(curveGlyph(fill[i], i), pt)
		}, s.Name})
	}
	f := stack(list, 128, keys, 4)
	f.width = pageWidth * 0.72
	return f, nil
}

// check finds what can't be drawn, and the least and the largest value.
func (g Curves) check() (low, high float64, err error) {
	var f faults
	low = math.Inf(1)
	f.unless(len(g.X) >= 2 && len(g.Series) > 0 && len(g.Series) <= len(seriesColours), "%s has %d series over %d values",
		g.Title, len(g.Series), len(g.X))
	for _, s := range g.Series {
		f.unless(len(s.Values) == len(g.X), "%s, %s has %d values, expected %d", g.Title, s.Name, len(s.Values), len(g.X))
		for _, v := range s.Values {
			if drawable(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	for i, x := range g.X {
		f.unless((i == 0 || x > g.X[i-1]) && (!g.LogX || x > 0), "%s has x values %v, expected ascending ones", g.Title, g.X)
	}
	f.unless(g.Ticks == nil || len(g.Ticks) == len(g.X), "%s has %d ticks, expected %d", g.Title, len(g.Ticks), len(g.X))
	f.unless(high > 0, "%s has nothing above zero", g.Title)
	return low, high, f.err
}

// maxTicks is the number of words that fit below a panel.
const maxTicks = 9

// ticks are g.Ticks, or every few of them where they would not fit.
func (g Curves) ticks() []plot.Tick {
	step := (len(g.X) + maxTicks - 1) / maxTicks
	var ticks []plot.Tick
	for k, x := range g.X {
		if k%step == 0 {
			ticks = append(ticks, plot.Tick{Value: x, Label: g.Ticks[k]})
		}
	}
	return ticks
}

func curveStyle(c color.NRGBA, i int) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1.1, Dashes: curveDashes[i]}
}

func curveGlyph(c color.NRGBA, i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: c, Radius: 2.2, Shape: curveShapes[i]}
}

type curves Curves

func (g curves) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if g.Line > 0 {
		drawAcross(&c, y(g.Line))
	}
	fill := colours(seriesNames(g.Series))
	for i, s := range g.Series {
		var last *vg.Point
		for k, v := range s.Values {
			if !drawable(v) {
				continue
			}
			pt := vg.Point{X: x(g.X[k]), Y: y(v)}
			if last != nil {
				c.StrokeLine2(curveStyle(fill[i], i), last.X, last.Y, pt.X, pt.Y)
			}
			c.DrawGlyphNoClip(curveGlyph(fill[i], i), pt)
			last = &pt
		}
	}
}
