package plots

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Roofline is a set of points below a roofline: arithmetic intensity relative to the ridge point, and the attained rate
// relative to the units' peak.
type Roofline struct {
	Title, XLabel, YLabel string
	// Diagonal: x and y are the same quantity, and a line says where they agree, in place of the roof.
	Diagonal bool
	Clouds   []Cloud
}

// cloudColours are the colours of series and three more. Clouds beyond them take the colours anew, in other shapes.
var cloudColours = append(slices.Clone(seriesColours), vermillion, black, color.NRGBA{0x66, 0x3d, 0x99, 0xff})

// Cloud is a set of points of one colour; points that are not positive are left out.
type Cloud struct {
	Name string
	X, Y []float64
}

// Rooflines draws panels one above the other, over common axes; all have the same clouds.
func Rooflines(panels ...Roofline) (*Figure, error) {
	var f faults
	f.unless(len(panels) > 0, "there are no rooflines to draw")
	xs, ys := [2]float64{math.Inf(1), 0}, [2]float64{math.Inf(1), 1}
	for _, r := range panels {
		f.unless(len(r.Clouds) > 0 && len(r.Clouds) <= 2*len(cloudColours) && len(r.Clouds) == len(panels[0].Clouds),
			"%s has %d clouds, expected 1 to %d and as many as the first panel", r.Title, len(r.Clouds), 2*len(cloudColours))
		for _, c := range r.Clouds {
			f.unless(len(c.X) == len(c.Y), "%s, %s has %d values along x and %d along y", r.Title, c.Name, len(c.X), len(c.Y))
			for i, x := range c.X[:min(len(c.X), len(c.Y))] {
				if y := c.Y[i]; drawable(x) && drawable(y) {
					xs, ys = [2]float64{min(xs[0], x), max(xs[1], x)}, [2]float64{min(ys[0], y), max(ys[1], y)}
				}
			}
		}
	}
	for _, r := range panels {
		f.unless(xs[1] > 0, "%s has no point above zero", r.Title)
	}
	if f.err != nil {
		return nil, f.err
	}
	var list []panel
	for _, r := range panels {
		// The x axis is of logarithms: plot takes the label of a logarithmic one to stand far to the right.
		low, high := min(xs[0], 0.5)/1.4, max(xs[1], 2)*1.4
		p := newPanel(r.Title, r.YLabel, nil, math.Log10(low), math.Log10(high), 1)
		ticks := decades(low, high)
		for i := range ticks {
			ticks[i].Value = math.Log10(ticks[i].Value)
		}
		p.Y.Min, p.Y.Max, p.Y.Scale = ys[0]/1.4, ys[1]*1.3, plot.LogScale{}
		p.Y.Tick.Marker = plot.ConstantTicks(decades(p.Y.Min, p.Y.Max))
		numberX(p, ticks)
		nameX(p, r.XLabel)
		p.Add(grid{}, clouds(r))
		list = append(list, p)
	}
	var keys []key
	for i, c := range panels[0].Clouds {
		keys = append(keys, markKey(cloudGlyph(i), c.Name))
	}
	fig := stack(list, 150, keys, 4)
	fig.width = pageWidth * 0.72
	return fig, nil
}

func drawable(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

func cloudGlyph(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: cloudColours[i%len(cloudColours)], Radius: 1.6, Shape: curveShapes[i%len(curveShapes)]}
}

type clouds Roofline

func (r clouds) Plot(c draw.Canvas, p *plot.Plot) {
	logs, y := p.Transforms(&c)
	x := func(v float64) vg.Length { return logs(math.Log10(v)) }
	roof := draw.LineStyle{Color: black, Width: 0.9}
	from := max(math.Pow(10, p.X.Min), p.Y.Min)
	if low, high := from, min(math.Pow(10, p.X.Max), p.Y.Max); r.Diagonal {
		c.StrokeLines(roof, []vg.Point{{X: x(low), Y: y(low)}, {X: x(high), Y: y(high)}})
	} else {
		c.StrokeLines(roof, []vg.Point{{X: x(from), Y: y(from)}, {X: x(1), Y: y(1)}, {X: logs(p.X.Max), Y: y(1)}})
	}
	// In turn, so that no cloud covers all of another.
	for k, more := 0, true; more; k++ {
		more = false
		for i, cloud := range r.Clouds {
			if k < len(cloud.X) {
				more = true
				if drawable(cloud.X[k]) && drawable(cloud.Y[k]) {
					c.DrawGlyph(cloudGlyph(i), vg.Point{X: x(cloud.X[k]), Y: y(cloud.Y[k])})
				}
			}
		}
	}
}
