package plots

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Timeline is a Gantt chart: rows of bars over a common time axis.
type Timeline struct {
	Title string
	Rows  []TimelineRow // from top to bottom
	Start float64       // of the axis, at most that of the first bar
	End   float64       // of the axis; 0: that of the last bar
	// Lines are drawn across all rows, such as where a block begins; texts stand before them.
	Lines []TimelineMark
}

// TimelineRow is a row of bars.
type TimelineRow struct {
	Name string
	Bars []TimelineBar
}

// TimelineBar is a half-open stretch of the axis.
type TimelineBar struct {
	Start, End float64
	Colour     int     // of the palette
	Pale       bool    // lighter than the colour in the legend
	Height     float64 // share of the row's; 0: all of it
	Text       string  // inside, where it fits
}

// TimelineMark is a line across.
type TimelineMark struct {
	At   float64
	Text string // above
}

// Timelines draws timelines one below the other; colours name the palette's colours, in its order.
func Timelines(list []Timeline, xLabel string, rowHeight float64, colours []string) (*Figure, error) {
	start, end, err := span(list)
	if err != nil {
		return nil, err
	}
	rows := 0
	for _, t := range list {
		rows = max(rows, len(t.Rows))
	}
	keys := paletteKeys(colours)
	var panels []panel
	for i, t := range list {
		p := t.panel(start, end, slices.DeleteFunc(niceTicks(end), func(k plot.Tick) bool { return k.Value < start }))
		if i == len(list)-1 {
			nameX(p, xLabel)
		}
		if slices.ContainsFunc(t.Lines, func(m TimelineMark) bool { return m.Text != "" }) {
			p.Title.Padding = 4 + spanRow
		}
		panels = append(panels, p)
	}
	height := vg.Length(rowHeight)*vg.Length(rows) + 34
	perRow := max(1, keysPerRow(keys, columnWidth-2*margin))
	return stack(panels, height, keys, perRow), nil
}

// span is the time that timelines are over, from the first start to the last end.
func span(list []Timeline) (start, end float64, err error) {
	var f faults
	f.unless(len(list) > 0, "there is no timeline to draw")
	start = math.Inf(1)
	for _, t := range list {
		if err := t.check(); err != nil {
			return 0, 0, err
		}
		start, end = min(start, t.Start), max(end, t.last())
	}
	for _, t := range list {
		f.unless(end > start, "timeline %q has no bar of any length", t.Title)
	}
	return start, end, f.err
}

// panel is the timeline alone.
func (t Timeline) panel(start, end float64, ticks []plot.Tick) panel {
	p := newPanel(t.Title, "", nil, start, end, 1)
	p.Y.Max = float64(len(t.Rows))
	p.Y.Tick.Marker = plot.ConstantTicks(t.names())
	longTicks(p, ticks)
	p.Add(timelineBars(t))
	return p
}

// names are those of the rows, as ticks.
func (t *Timeline) names() (ticks []plot.Tick) {
	for k, r := range t.Rows {
		ticks = append(ticks, plot.Tick{Value: float64(len(t.Rows)-k) - 0.5, Label: r.Name})
	}
	return ticks
}

type timelineBars Timeline

func (t timelineBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	n := float64(len(t.Rows))
	for k := range t.Rows {
		if k > 0 {
			c.StrokeLine2(draw.LineStyle{Color: gridGray, Width: 0.4}, c.Min.X, y(float64(k)), c.Max.X, y(float64(k)))
		}
	}
	for k, r := range t.Rows {
		bottom, full := n-float64(k)-1+0.08, 0.84
		for _, b := range r.Bars {
			fill, h := b.look()
			left, right := x(b.Start), x(b.End)
			// However short, something is to be seen.
			if right-left < 0.25 {
				right = left + 0.25
			}
			fillBox(&c, fill, left, y(bottom), right, y(bottom+full*h))
		}
		for _, b := range r.Bars {
			sty := textStyle(valueSize, text.XCenter, text.YCenter)
			if b.Text == "" || sty.Width(b.Text)+1 > x(b.End)-x(b.Start) {
				continue
			}
			fill, h := b.look()
			sty.Color = onto(fill)
			c.FillText(sty, vg.Point{X: (x(b.Start) + x(b.End)) / 2, Y: (y(bottom) + y(bottom+full*h)) / 2}, b.Text)
		}
	}
	for _, m := range t.Lines {
		sty := draw.LineStyle{Color: black, Width: 0.6, Dashes: []vg.Length{2, 1.5}}
		c.StrokeLine2(sty, x(m.At), c.Min.Y, x(m.At), c.Max.Y+1)
		// The text is of what ends there; at the right end nothing has room behind the line.
		c.FillText(textStyle(valueSize, text.XRight, text.YBottom), vg.Point{X: x(m.At) - 1, Y: c.Max.Y + 1}, m.Text)
	}
}

// look is a bar's colour and share of the row's height.
func (b TimelineBar) look() (color.NRGBA, float64) {
	fill := paletteColour(b.Colour)
	if b.Pale {
		fill = pale(fill)
	}
	return fill, cmp.Or(b.Height, 1)
}

func (t *Timeline) last() float64 {
	end := t.End
	for _, r := range t.Rows {
		for _, b := range r.Bars {
			end = max(end, b.End)
		}
	}
	return end
}

func (t *Timeline) check() error {
	var f faults
	f.unless(finite(t.Start), "timeline %q starts at %g, expected zero or more", t.Title, t.Start)
	f.unless(len(t.Rows) > 0, "timeline %q has no row", t.Title)
	for _, r := range t.Rows {
		for i, b := range r.Bars {
			f.unless(b.Start >= t.Start && b.End >= b.Start && finite(b.End),
				"timeline %q, row %q, bar %d goes from %g to %g, expected a stretch behind %g", t.Title, r.Name, i, b.Start,
				b.End, t.Start)
			f.unless(b.Height >= 0 && b.Height <= 1, "timeline %q, row %q, bar %d is %g rows high, expected at most 1",
				t.Title, r.Name, i, b.Height)
		}
	}
	for _, m := range t.Lines {
		f.unless(finite(m.At), "timeline %q has a line at %g, expected zero or more", t.Title, m.At)
	}
	return f.err
}

// spanRow is the height of a row of names.
const spanRow = valueSize + 1
