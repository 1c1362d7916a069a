package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Speedups is a panel of speedups over one baseline: a group of bars for each
// machine, on a logarithmic axis.
type Speedups struct {
	Title    string
	Baseline string   // what all are compared with
	Series   []string // the bars of a group, at most four
	Groups   []SpeedupGroup
}

// SpeedupGroup is one machine's.
type SpeedupGroup struct {
	Name   string
	Values []float64 // of each series
	// Published is the last series' speedup in the paper; 0: there is none.
	Published float64
}

// Lightness distinguishes these as well as the colour.
var seriesColors = []color.Color{
	color.NRGBA{0xcc, 0xe3, 0xf2, 0xff}, color.NRGBA{0x56, 0xb4, 0xe9, 0xff}, blue, color.NRGBA{0x00, 0x30, 0x50, 0xff},
}

// nameSize is the font size of machines' names, of which there may be many.
const nameSize = vg.Length(5.5)

// SpeedupBars draws a panel for each network. A bar stands on the line of 1 and goes
// down where the variant is slower than the baseline.
func SpeedupBars(list []Speedups) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("plots: there is no network to draw")
	}
	for _, s := range list {
		if err := s.check(list[0]); err != nil {
			return nil, err
		}
	}
	low, high := 0.5, 2.0
	published := false
	for _, s := range list {
		for _, g := range s.Groups {
			for _, v := range append([]float64{g.Published}, g.Values...) {
				if v > 0 {
					low, high = min(low, v), max(high, v)
				}
			}
			published = published || g.Published > 0
		}
	}
	bottom, top := math.Floor(math.Log2(low)), math.Ceil(math.Log2(high))
	var panels []panel
	for _, s := range list {
		var names []string
		for _, g := range s.Groups {
			names = append(names, wrap(g.Name))
		}
		p := newPanel(s.Title, "Speedup over "+s.Baseline, names, -0.5, float64(len(s.Groups))-0.5, top-bottom)
		var ticks []plot.Tick
		for e := bottom; e <= top; e++ {
			label := fmt.Sprintf("%.0f×", math.Exp2(e))
			if e < 0 {
				label = fmt.Sprintf("1/%.0f×", math.Exp2(-e))
			}
			ticks = append(ticks, plot.Tick{Value: e - bottom, Label: label})
		}
		p.Y.Tick.Marker = plot.ConstantTicks(ticks)
		p.X.Tick.Label = textStyle(nameSize, text.XCenter, text.YTop)
		p.X.Padding = 2
		p.Add(grid{}, speedupBars{s, bottom})
		panels = append(panels, p)
	}
	var keys []key
	for i, name := range list[0].Series {
		keys = append(keys, barKey(seriesColors[i], name))
	}
	if published {
		keys = append(keys, markKey(markStyles[Published], "published in the paper"))
	}
	return stack(panels, 125, keys, 3), nil
}

// nameLines is the number of lines a machine's name takes, so that all have their first
// line at one height.
const nameLines = 3

// wrap breaks a name in front of hyphens, and in front of the digits of a long word.
func wrap(name string) string {
	const long = 8 // letters
	var lines []string
	for i, word := range strings.SplitAfter(strings.ReplaceAll(name, "-", "\n-"), "\n") {
		word = strings.TrimSuffix(word, "\n")
		if at := strings.IndexAny(word, "0123456789"); i == 0 && at > 0 && len(word) > long {
			lines = append(lines, word[:at])
			word = word[at:]
		}
		lines = append(lines, word)
	}
	for len(lines) < nameLines {
		lines = append(lines, " ")
	}
	return strings.Join(lines, "\n")
}

func (s Speedups) check(first Speedups) error {
	if len(s.Series) == 0 || len(s.Series) > len(seriesColors) {
		return fmt.Errorf("plots: %s has %d series, expected 1 to %d", s.Title, len(s.Series), len(seriesColors))
	}
	if fmt.Sprint(s.Series) != fmt.Sprint(first.Series) {
		return fmt.Errorf("plots: %s has the series %q, expected %q as in %s", s.Title, s.Series, first.Series, first.Title)
	}
	if len(s.Groups) == 0 {
		return fmt.Errorf("plots: %s has no groups", s.Title)
	}
	for _, g := range s.Groups {
		if len(g.Values) != len(s.Series) {
			return fmt.Errorf("plots: %s, %s: %d values for %d series", s.Title, g.Name, len(g.Values), len(s.Series))
		}
		for i, v := range append([]float64{g.Published}, g.Values...) {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || i > 0 && v == 0 {
				return fmt.Errorf("plots: %s, %s: a speedup is %g, expected a number above zero", s.Title, g.Name, v)
			}
		}
	}
	return nil
}

// speedupBars draws the bars of a panel; bottom is the logarithm at the axis.
type speedupBars struct {
	Speedups
	bottom float64
}

// Plot implements plot.Plotter.
func (b speedupBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	base := y(-b.bottom)
	const width = 0.8
	for i, g := range b.Groups {
		step := width / float64(len(g.Values))
		for k, v := range g.Values {
			left := float64(i) - width/2 + step*float64(k)
			at := y(math.Log2(v) - b.bottom)
			fillBox(&c, seriesColors[k], x(left), min(base, at), x(left+0.9*step), max(base, at))
		}
		if g.Published > 0 {
			at := vg.Point{X: x(float64(i) + width/2 - step*0.55), Y: y(math.Log2(g.Published) - b.bottom)}
			c.DrawGlyph(markStyles[Published], at)
		}
	}
	line := draw.LineStyle{Color: black, Width: 0.5}
	c.StrokeLine2(line, c.Min.X, base, c.Max.X, base)
}
