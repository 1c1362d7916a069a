package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Groups are bars side by side for each of several categories.
type Groups struct {
	Title, YLabel string
	XLabel        string // what the categories are; may be empty
	Categories    []string
	Series        []Series
	// Marks are values from elsewhere.
	Marks []GroupMark
	// Numbers writes its value above each bar; marks then stand at its side.
	Numbers bool
	// Log draws a logarithmic axis, which ratios over orders of magnitude need, and dots: heights of bars would mean
	// nothing there.
	Log bool
	// Line is a value drawn across; 0: none.
	Line float64
	// Spread has, by series and category, all values of which a series has one in the middle: dots, and that a bar across.
	// It needs Log.
	Spread [][][]float64
}

// Series has a value per category. Values that are not positive are left out; NaN is drawn as a cross.
type Series struct {
	Name   string
	Values []float64
}

// GroupMark is a published or measured value beside a bar.
type GroupMark struct {
	Category, Series int
	Value            float64
	Kind             MarkKind
}

// MarkKind says where a mark is from.
type MarkKind int

// The kinds of marks.
const (
	Published MarkKind = iota // by the paper
	Measured                  // by others on the real chip
	Bound                     // proven of all schedules of equal shares
)

var markKeys = [...]string{Published: "published", Measured: "measured on the chip by others",
	Bound: "bound: no schedule of equal shares is faster"}

var markStyles = [...]draw.GlyphStyle{
	Published: {Color: vermillion, Radius: 3, Shape: diamond{}},
	Measured:  {Color: black, Radius: 3, Shape: draw.PyramidGlyph{}},
	Bound:     {Color: black, Radius: 3, Shape: tick{}},
}

// markSides are the places of marks at bars with numbers, in widths of a bar.
var markSides = [...]float64{Published: -0.43, Measured: 0.43, Bound: 0}

// tick is a line across.
type tick struct{}

func (tick) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	r := sty.Radius * 1.15
	c.FillPolygon(sty.Color, []vg.Point{{X: pt.X - r, Y: pt.Y - r/4}, {X: pt.X - r, Y: pt.Y + r/4},
		{X: pt.X + r, Y: pt.Y + r/4}, {X: pt.X + r, Y: pt.Y - r/4}})
}

// diamond is a filled square on its corner.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	r := sty.Radius * 1.15
	c.FillPolygon(sty.Color, []vg.Point{{X: pt.X - r, Y: pt.Y}, {X: pt.X, Y: pt.Y + r}, {X: pt.X + r, Y: pt.Y},
		{X: pt.X, Y: pt.Y - r}})
}

const pageWidth = 7.0 * vg.Inch

// GroupedBars draws panels of groups, as wide as a page, one above the other. All have the same series.
func GroupedBars(panels ...Groups) (*Figure, error) {
	if len(panels) == 0 {
		return nil, fmt.Errorf("plots: there are no groups to draw")
	}
	var list []panel
	var marked [len(markStyles)]bool
	crossed := false
	for _, g := range panels {
		low, high, err := g.check()
		if err != nil {
			return nil, err
		}
		for _, s := range g.Series {
			crossed = crossed || !g.Log && slices.ContainsFunc(s.Values, math.IsNaN)
		}
		for _, m := range g.Marks {
			marked[m.Kind] = true
		}
		p := newPanel(g.Title, g.YLabel, g.Categories, -0.55, float64(len(g.Categories))-0.45, high*1.08)
		if g.Log {
			bottom := math.Pow(10, math.Floor(math.Log10(low)))
			if g.Line > 0 { // the axis begins a little below the line, against which values are read
				lowest := 0.8 * min(low, g.Line)
				ticks := decades(lowest/10, lowest)
				bottom = ticks[len(ticks)-1].Value
			}
			p.Y.Min, p.Y.Max = bottom, high*1.25
			p.Y.Scale = plot.LogScale{}
			p.Y.Tick.Marker = plot.ConstantTicks(decades(bottom, high*1.25))
		}
		if g.Numbers {
			p.Y.Max = high * 1.18
		}
		if g.XLabel != "" {
			nameX(p, g.XLabel)
		}
		p.Add(grid{}, groups(g))
		list = append(list, p)
	}
	var keys []key
	fill := colours(seriesNames(panels[0].Series))
	dots := !slices.ContainsFunc(panels, func(g Groups) bool { return !g.Log })
	for i, s := range panels[0].Series {
		k := barKey(fill[i], s.Name)
		if dots {
			k = markKey(dot(fill[i]), s.Name)
		}
		keys = append(keys, k)
	}
	for kind, there := range marked {
		if there {
			keys = append(keys, markKey(markStyles[kind], markKeys[kind]))
		}
	}
	if crossed {
		keys = append(keys, markKey(noValue, "no value"))
	}
	f := stack(list, 118, keys, keysPerRow(keys, pageWidth-2*margin))
	f.width = pageWidth
	return f, nil
}

// check finds what can't be drawn, and the least and the largest of what can.
func (g Groups) check() (low, high float64, err error) {
	var f faults
	low = math.Inf(1)
	see := func(v float64) {
		if drawable(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	f.unless(len(g.Series) > 0 && len(g.Series) <= len(seriesColours) && len(g.Categories) > 0,
		"%s has %d series and %d categories", g.Title, len(g.Series), len(g.Categories))
	for _, s := range g.Series {
		f.unless(len(s.Values) == len(g.Categories), "%s, %s has %d values, expected %d", g.Title, s.Name, len(s.Values),
			len(g.Categories))
		for _, v := range s.Values {
			see(v)
		}
	}
	f.unless(g.Spread == nil || g.Log && len(g.Spread) == len(g.Series),
		"%s has spreads of %d series, expected %d on a logarithmic axis", g.Title, len(g.Spread), len(g.Series))
	for k, s := range g.Spread {
		f.unless(len(s) == len(g.Categories), "%s, series %d has %d spreads, expected %d", g.Title, k, len(s),
			len(g.Categories))
		for _, v := range slices.Concat(s...) {
			see(v)
		}
	}
	for _, m := range g.Marks {
		f.unless(m.Category >= 0 && m.Category < len(g.Categories) && m.Series >= 0 && m.Series < len(g.Series),
			"%s has a mark at category %d and series %d", g.Title, m.Category, m.Series)
		f.unless(m.Kind >= 0 && int(m.Kind) < len(markStyles), "%s has a mark of unknown kind %d", g.Title, m.Kind)
		see(m.Value)
	}
	f.unless(high > 0, "%s has nothing above zero", g.Title)
	return low, high, f.err
}

// decades are the powers of ten between two values, and twice and five times them
// where there are few; multiples of a round step where these are fewer than three.
func decades(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	few := high/low < 1000
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, f := range []float64{1, 2, 5} {
			v := f * math.Pow(10, e)
			if (f == 1 || few) && v >= low*0.999 && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: tickNumber(v)})
			}
		}
	}
	if len(ticks) >= 3 || !few || high <= low {
		return ticks
	}
	step := niceTicks(high - low)[1].Value
	digits := math.Pow(10, max(0, -math.Floor(math.Log10(step))))
	ticks = nil
	for i := math.Ceil(low / step * 0.999); i*step <= high; i++ {
		v := math.Round(i*step*digits) / digits
		ticks = append(ticks, plot.Tick{Value: v, Label: tickNumber(v)})
	}
	return ticks
}

// tickNumber writes a number in full, with thousands apart.
func tickNumber(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && len(whole) > 4; i -= 3 {
		whole = whole[:i] + "\u2009" + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// seriesNames lists them.
func seriesNames(list []Series) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out
}

func dot(fill color.NRGBA) draw.GlyphStyle {
	return draw.GlyphStyle{Color: fill, Radius: 2.2, Shape: draw.CircleGlyph{}}
}

// noValue stands where a bar would, which a bar of no height could be taken for.
var noValue = draw.GlyphStyle{Color: black, Radius: 1.6, Shape: draw.CrossGlyph{}}

type groups Groups

func (g groups) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	base := y(p.Y.Min)
	width := 0.84 / float64(len(g.Series))
	at := func(category, series int) float64 {
		return float64(category) + width*(float64(series)-float64(len(g.Series)-1)/2)
	}
	fill := colours(seriesNames(g.Series))
	for k, s := range g.Series {
		for i, v := range s.Values {
			if math.IsNaN(v) && !g.Log {
				c.DrawGlyphNoClip(noValue, vg.Point{X: x(at(i, k)), Y: base + 3})
			} else if g.Spread != nil && drawable(v) {
				for _, one := range g.Spread[k][i] {
					if drawable(one) {
						sty := dot(fill[k])
						sty.Radius = 1.3
						c.DrawGlyphNoClip(sty, vg.Point{X: x(at(i, k)), Y: y(one)})
					}
				}
				c.StrokeLine2(draw.LineStyle{Color: fill[k], Width: 1.6}, x(at(i, k)-0.42*width), y(v),
					x(at(i, k)+0.42*width), y(v))
			} else if g.Log && v > 0 && !math.IsInf(v, 0) {
				c.DrawGlyphNoClip(dot(fill[k]), vg.Point{X: x(at(i, k)), Y: y(v)})
			} else if v > 0 && !math.IsInf(v, 0) {
				fillBox(&c, fill[k], x(at(i, k)-0.46*width), base, x(at(i, k)+0.46*width), y(max(v, p.Y.Min)))
			}
		}
	}
	if g.Line > 0 {
		drawAcross(&c, y(g.Line))
	}
	for k, s := range g.Series {
		for i, v := range s.Values {
			if g.Numbers && drawable(v) {
				numberAbove(&c, vg.Point{X: x(at(i, k)), Y: y(v) + 1.5}, v)
			}
		}
	}
	for _, m := range g.Marks {
		sty := markStyles[m.Kind]
		sty.Radius = 2.2
		pt := vg.Point{X: x(at(m.Category, m.Series)), Y: y(m.Value)}
		if g.Numbers { // its number is above the bar
			pt.X = x(at(m.Category, m.Series) + markSides[m.Kind]*width)
		}
		c.DrawGlyphNoClip(sty, pt)
	}
}
