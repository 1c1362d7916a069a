package plots

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours of Okabe and Ito.
var (
	blue       = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	orange     = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	vermillion = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	black      = color.NRGBA{0x00, 0x00, 0x00, 0xff}
	gridGray   = color.NRGBA{0xdd, 0xdd, 0xdd, 0xff}
)

const (
	columnWidth = 3.35 * vg.Inch
	pngDPI      = 300

	titleSize = vg.Length(8)
	labelSize = vg.Length(7.5)
	tickSize  = vg.Length(7)
	valueSize = vg.Length(6.5)
)

// Figure is a picture that can be written in several formats.
type Figure struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// PNG returns the figure with 300 dots per inch.
func (f *Figure) PNG() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.White))
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

// SVG returns the figure as a vector graphic. Its text stays text.
func (f *Figure) SVG() ([]byte, error) {
	c := vgsvg.NewWith(vgsvg.UseWH(f.width, f.height))
	f.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// The font is not everywhere. These have letters of the same widths, except for the last.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}

// faults has the first mistake in what is to be drawn.
type faults struct{ err error }

// unless notes a mistake where something does not hold.
func (f *faults) unless(holds bool, format string, args ...any) {
	if !holds && f.err == nil {
		f.err = fmt.Errorf("plots: "+format, args...)
	}
}

// finite reports whether a value is at least zero and no more than numbers are.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

func textStyle(size vg.Length, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   black,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		XAlign:  x,
		YAlign:  y,
		Handler: plot.DefaultTextHandler,
	}
}

// panel is a plot with the label of its y axis. The label is not left to the plot,
// so that those of all panels stand below each other, however long the numbers.
type panel struct {
	*plot.Plot
	yLabel string
}

// newPanel returns an empty plot in the common style. Names are the tick labels at
// x = 0, 1, ...; the y axis goes from 0 to top.
func newPanel(title, yLabel string, names []string, xMin, xMax, top float64) panel {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle = textStyle(titleSize, text.XCenter, text.YTop)
	p.Title.Padding = 4
	p.BackgroundColor = nil

	p.X.Min, p.X.Max = xMin, xMax
	p.Y.Min, p.Y.Max = 0, top
	var ticks []plot.Tick
	for i, n := range names {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: n})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Length, p.X.Tick.LineStyle.Color = valueSize/2, color.Transparent // labels stay clear of the axis
	p.X.Padding, p.Y.Padding = 0, 0
	p.Y.Tick.Marker = plot.ConstantTicks(niceTicks(top))
	p.X.LineStyle.Width = 0.5
	p.Y.LineStyle.Width = 0 // the grid says enough
	p.Y.Tick.Length = 0
	p.X.Tick.Label = textStyle(valueSize, text.XCenter, text.YTop)
	p.Y.Tick.Label = textStyle(tickSize, text.XRight, text.YCenter)
	return panel{p, yLabel}
}

// numberX writes numbers below the x axis, longTicks with a line at each.
func numberX(p panel, ticks []plot.Tick) {
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Label = textStyle(tickSize, text.XCenter, text.YTop)
}

func longTicks(p panel, ticks []plot.Tick) {
	numberX(p, ticks)
	p.X.Tick.Length = 2
	p.X.Tick.LineStyle.Width = 0.5
}

// nameX writes a label below the x axis.
func nameX(p panel, label string) {
	p.X.Label.Text = label
	p.X.Label.TextStyle = textStyle(labelSize, text.XCenter, text.YBottom)
	p.X.Label.Padding = 2
}

// drawAcross draws a dashed line over the whole width.
func drawAcross(c *draw.Canvas, y vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: black, Width: 0.6, Dashes: []vg.Length{3, 2}}, c.Min.X, y, c.Max.X, y)
}

// grid draws a line behind the data at each tick of the y axis but the first.
type grid struct{}

func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	sty := draw.LineStyle{Color: gridGray, Width: 0.4}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value > p.Y.Min {
			c.StrokeLine2(sty, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

func fillBox(c *draw.Canvas, fill color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: left, Y: top}, {X: right, Y: top}, {X: right, Y: bottom}})
}

// numberAbove writes a value above a point, on white.
func numberAbove(c *draw.Canvas, pt vg.Point, value float64) {
	sty := textStyle(valueSize, text.XCenter, text.YBottom)
	label := number(value)
	half := sty.Width(label)/2 + 0.5
	fillBox(c, color.White, pt.X-half, pt.Y, pt.X+half, pt.Y+valueSize)
	c.FillText(sty, pt, label)
}

// key is an entry of the legend: a picture of about 10 by 6 points around pt, and what it means.
type key struct {
	draw func(c *draw.Canvas, pt vg.Point)
	text string
}

func barKey(fill color.Color, text string) key {
	return key{func(c *draw.Canvas, pt vg.Point) {
		fillBox(c, fill, pt.X-4.5, pt.Y-3, pt.X+4.5, pt.Y+3)
	}, text}
}

func markKey(style draw.GlyphStyle, text string) key {
	return key{func(c *draw.Canvas, pt vg.Point) { c.DrawGlyphNoClip(style, pt) }, text}
}

const (
	margin     = vg.Length(3)
	keyHeight  = vg.Length(10)
	keyGap     = vg.Length(6)
	panelSpace = vg.Length(8)
)

// stack puts panels one above the other, with the legend below them all in rows of
// perRow entries: titles stay on top, and it can't cover any data.
func stack(panels []panel, panelHeight vg.Length, keys []key, perRow int) *Figure {
	rows := (len(keys) + perRow - 1) / perRow
	legend := vg.Length(rows)*keyHeight + keyGap
	n := vg.Length(len(panels))
	f := &Figure{width: columnWidth, height: 2*margin + legend + n*panelHeight + (n-1)*panelSpace}
	f.draw = func(c draw.Canvas) {
		c = draw.Crop(c, margin, -margin, margin, -margin)
		drawLegend(c, keys, perRow)
		area := draw.Crop(c, labelSize+6, 0, legend, 0)
		column := make([][]*plot.Plot, len(panels))
		for i, p := range panels {
			column[i] = []*plot.Plot{p.Plot}
		}
		cells := plot.Align(column, draw.Tiles{Rows: len(panels), Cols: 1, PadY: panelSpace}, area)
		sty := textStyle(labelSize, text.XCenter, text.YTop)
		sty.Rotation = math.Pi / 2
		for i, p := range panels {
			p.Draw(cells[i][0])
			data := p.DataCanvas(cells[i][0])
			c.FillText(sty, vg.Point{X: c.Min.X, Y: data.Center().Y}, p.yLabel)
		}
	}
	return f
}

// drawLegend draws at the lower edge.
func drawLegend(c draw.Canvas, keys []key, perRow int) {
	top := c.Min.Y + keyHeight*vg.Length((len(keys)+perRow-1)/perRow)
	sty := textStyle(valueSize, text.XLeft, text.YCenter)
	// Entries of a column are below each other; the columns are as wide as their
	// texts and stand in the middle of the figure.
	const picture, space = vg.Length(14), vg.Length(10)
	widths := make([]vg.Length, min(perRow, len(keys)))
	for i, k := range keys {
		widths[i%perRow] = max(widths[i%perRow], picture+sty.Width(k.text))
	}
	total := space * vg.Length(len(widths)-1)
	for _, w := range widths {
		total += w
	}
	start := c.Center().X - total/2
	for i, k := range keys {
		x := start
		for _, w := range widths[:i%perRow] {
			x += w + space
		}
		y := top - keyHeight*(vg.Length(i/perRow)+0.5)
		k.draw(&c, vg.Point{X: x + 5, Y: y})
		c.FillText(sty, vg.Point{X: x + picture, Y: y}, k.text)
	}
}
