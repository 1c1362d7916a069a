package plots

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Memory is the live memory of a network over time.
type Memory struct {
	Title string
	// LiveBytes are the bytes of live activations while each layer runs, in execution order.
	LiveBytes []int64
	// Spans are stages in execution order; they need not cover all layers.
	Spans []Span
	// Capacities are drawn as lines across.
	Capacities []Capacity
}

// Span is a run of layers.
type Span struct {
	Name       string
	First, End int // half-open
}

// Capacity is the size of a memory.
type Capacity struct {
	Name  string
	Bytes int64
}

// Shades behind neighbouring stages, light enough for the grid and a print without colours.
var bandShades = [...]color.NRGBA{{0xf6, 0xf1, 0xe4, 0xff}, {0xff, 0xff, 0xff, 0xff}}

var (
	liveFill        = color.NRGBA{0x8c, 0xbe, 0xdc, 0xff} // blue, lighter
	capacityColours = []color.NRGBA{vermillion, black}
	capacityDashes  = [][]vg.Length{{4, 2}, {1.2, 1.6}}
)

// MemoryInUse draws live activations over the layers as steps, with the stages behind them.
func MemoryInUse(m Memory) (*Figure, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	top := 0.0
	for _, v := range m.LiveBytes {
		top = max(top, float64(v))
	}
	for _, c := range m.Capacities {
		top = max(top, float64(c.Bytes))
	}
	unit, per := byteUnit(top)
	n := float64(len(m.LiveBytes))
	width := columnWidth - 2*margin - labelSize - 6 - 20 // about, of the data
	labels, rows := placeNames(m.Spans, n, width)
	const height = vg.Length(125)
	head := vg.Length(rows)*spanRow + 2
	p := newPanel(m.Title, "Live activations ("+unit+")", nil, 0, n, top/per*1.06)
	p.Y.Tick.Marker = plot.ConstantTicks(niceTicks(top / per * 1.06))
	numberX(p, wholeTicks(n))
	nameX(p, "Layers in execution order")
	p.Title.Padding = 4 + head
	p.Add(bands(m.Spans), grid{}, steps{m.LiveBytes, per}, capacityLines{m.Capacities, per}, names{labels})

	keys := []key{barKey(liveFill, "live activations")}
	for i, c := range m.Capacities {
		keys = append(keys, lineKey(capacityStyle(i), c.Name))
	}
	return stack([]panel{p}, height+head, keys, 3), nil
}

// byteUnit is the largest unit in which a number of bytes is at least one, and its bytes.
func byteUnit(bytes float64) (unit string, per float64) {
	unit, per = "B", 1
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if bytes/per < 1024 {
			break
		}
		unit, per = u, per*1024
	}
	return unit, per
}

// wholeTicks are the whole numbers among niceTicks.
func wholeTicks(top float64) []plot.Tick {
	var ticks []plot.Tick
	for _, t := range niceTicks(top) {
		if t.Value == math.Trunc(t.Value) {
			ticks = append(ticks, plot.Tick{Value: t.Value, Label: strconv.FormatFloat(t.Value, 'f', 0, 64)})
		}
	}
	return ticks
}

// bands shades what is behind the stages.
type bands []Span

func (b bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for i, s := range b {
		fillBox(&c, bandShades[i%len(bandShades)], x(float64(s.First)), c.Min.Y, x(float64(s.End)), c.Max.Y)
	}
	for _, s := range b {
		if s.First > 0 {
			c.StrokeLine2(draw.LineStyle{Color: gridGray, Width: 0.4}, x(float64(s.First)), c.Min.Y,
				x(float64(s.First)), c.Max.Y)
		}
	}
}

// steps is a filled area with an outline that changes from layer to layer.
type steps struct {
	bytes []int64
	per   float64
}

func (s steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for i, v := range s.bytes {
		h := y(float64(v) / s.per)
		line = append(line, vg.Point{X: x(float64(i)), Y: h}, vg.Point{X: x(float64(i + 1)), Y: h})
	}
	area := append([]vg.Point{{X: line[0].X, Y: y(0)}}, line...)
	area = append(area, vg.Point{X: line[len(line)-1].X, Y: y(0)})
	c.FillPolygon(liveFill, area)
	c.StrokeLines(draw.LineStyle{Color: blue, Width: 0.8}, line)
}

// capacityLines are lines across the figure.
type capacityLines struct {
	list []Capacity
	per  float64
}

func (l capacityLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for i, k := range l.list {
		h := y(float64(k.Bytes) / l.per)
		c.StrokeLine2(capacityStyle(i), c.Min.X, h, c.Max.X, h)
	}
}

func capacityStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: capacityColours[i%len(capacityColours)], Width: 1,
		Dashes: capacityDashes[i%len(capacityDashes)]}
}

func lineKey(sty draw.LineStyle, text string) key {
	return key{func(c *draw.Canvas, pt vg.Point) { c.StrokeLine2(sty, pt.X-5, pt.Y, pt.X+6, pt.Y) }, text}
}

// spanRow is the height of a row of names.
const spanRow = valueSize + 1

// spanName is where the name of a stage stands above the data.
type spanName struct {
	text string
	band float64 // middle of the stage, as a share of the width
	at   float64 // middle of the name
	row  int     // 0 is the lowest
}

// placeNames puts names above the middles of their stages, those that would cover others in rows above.
func placeNames(spans []Span, n float64, width vg.Length) (list []spanName, rows int) {
	sty := textStyle(valueSize, text.XCenter, text.YBottom)
	var right []float64 // of each row
	for _, s := range spans {
		w := float64(sty.Width(s.Name) / width)
		band := float64(s.First+s.End) / 2 / n
		at := min(max(band, w/2), 1-w/2)
		row := 0
		for row < len(right) && right[row] > at-w/2 {
			row++
		}
		if row == len(right) {
			right = append(right, 0)
		}
		right[row] = at + w/2 + float64(3/width)
		list = append(list, spanName{s.Name, band, at, row})
	}
	return list, len(right)
}

// names writes the names of stages, with a line down to those that are narrower.
type names struct{ list []spanName }

func (n names) Plot(c draw.Canvas, _ *plot.Plot) {
	width := c.Max.X - c.Min.X
	sty := textStyle(valueSize, text.XCenter, text.YBottom)
	bottom := func(s spanName) vg.Length { return c.Max.Y + 2 + vg.Length(s.row)*spanRow }
	for _, s := range n.list {
		if s.row > 0 {
			x := c.Min.X + vg.Length(s.band)*width
			c.StrokeLine2(draw.LineStyle{Color: gridGray, Width: 0.4}, x, c.Max.Y, x, bottom(s))
		}
	}
	for _, s := range n.list {
		pt := vg.Point{X: c.Min.X + vg.Length(s.at)*width, Y: bottom(s)}
		half := sty.Width(s.text)/2 + 0.5
		fillBox(&c, color.White, pt.X-half, pt.Y, pt.X+half, pt.Y+valueSize)
		c.FillText(sty, pt, s.text)
	}
}

func (m Memory) check() error {
	var f faults
	f.unless(len(m.LiveBytes) > 0, "there is no layer to draw")
	highest := int64(0)
	for i, v := range m.LiveBytes {
		f.unless(v >= 0, "%s, layer %d has %d live bytes, expected zero or more", m.Title, i, v)
		highest = max(highest, v)
	}
	f.unless(highest > 0, "%s has no live bytes above zero", m.Title)
	end := 0
	for _, s := range m.Spans {
		f.unless(s.First >= end && s.End > s.First && s.End <= len(m.LiveBytes),
			"%s, %q is layers %d to %d, expected a range behind %d and up to %d", m.Title, s.Name, s.First, s.End, end,
			len(m.LiveBytes))
		end = s.End
	}
	for _, c := range m.Capacities {
		f.unless(c.Bytes > 0, "%s, capacity %q is %d bytes, expected more than zero", m.Title, c.Name, c.Bytes)
	}
	return f.err
}
