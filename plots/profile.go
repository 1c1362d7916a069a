package plots

import (
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Profile is a share over time, in blocks.
type Profile struct {
	Title  string
	Blocks []ProfileBlock // by time
}

// ProfileBlock is a stretch of time with one share.
type ProfileBlock struct {
	Start, End float64
	Share      float64 // at least 0; a line marks 1
	Colour     int     // of the palette
	Text       string  // inside, where it fits
}

// Profiles draws profiles one below the other on a common time axis; colours name the palette's colours, in its order.
func Profiles(list []Profile, xLabel, yLabel string, colours []string) (*Figure, error) {
	var f faults
	f.unless(len(list) > 0, "there is no profile to draw")
	end, top := 0.0, 1.0
	for _, p := range list {
		for i, b := range p.Blocks {
			f.unless(b.Start >= 0 && b.End >= b.Start && finite(b.End) && finite(b.Share),
				"profile %q, block %d is %g from %g to %g, expected a share of zero or more over a stretch of time", p.Title, i,
				b.Share, b.Start, b.End)
			end, top = max(end, b.End), max(top, b.Share)
		}
	}
	for _, p := range list {
		f.unless(end > 0, "profile %q has no block of any length", p.Title)
	}
	if f.err != nil {
		return nil, f.err
	}
	keys := paletteKeys(colours)
	var panels []panel
	for i, pr := range list {
		p := newPanel(pr.Title, yLabel, nil, 0, end, top*1.06)
		var ticks []plot.Tick
		for _, percent := range []int{0, 25, 50, 75, 100} {
			ticks = append(ticks, plot.Tick{Value: float64(percent) / 100, Label: strconv.Itoa(percent)})
		}
		p.Y.Tick.Marker = plot.ConstantTicks(ticks)
		longTicks(p, niceTicks(end))
		if i == len(list)-1 {
			nameX(p, xLabel)
		}
		p.Add(grid{}, profileBlocks(pr.Blocks))
		panels = append(panels, p)
	}
	return stack(panels, 82, keys, max(1, keysPerRow(keys, columnWidth-2*margin))), nil
}

type profileBlocks []ProfileBlock

func (list profileBlocks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, b := range list {
		fill := paletteColour(b.Colour)
		fillBox(&c, fill, x(b.Start), y(0), x(b.End), y(b.Share))
		// Neighbours of one colour are separated by a line between them.
		c.StrokeLine2(draw.LineStyle{Color: paletteColour(NoColour), Width: 0.5}, x(b.End), y(0), x(b.End), y(b.Share))
		sty := textStyle(valueSize, text.XCenter, text.YBottom)
		sty.Color = onto(fill)
		if sty.Width(b.Text) < x(b.End)-x(b.Start) && y(b.Share)-y(0) > valueSize+1 {
			c.FillText(sty, vg.Point{X: (x(b.Start) + x(b.End)) / 2, Y: y(0) + 1}, b.Text)
		}
	}
	drawAcross(&c, y(1))
}
