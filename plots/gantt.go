package plots

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// PaletteSize is the number of colours that can be distinguished; further ones repeat.
const PaletteSize = 8

// Gantt draws one timeline over both columns of a page. colours name the palette's colours, in its order.
func Gantt(t Timeline, xLabel string, colours []string) (*Figure, error) {
	start, end, err := span([]Timeline{t})
	if err != nil {
		return nil, err
	}
	p := t.panel(start, end, ticksBetween(start, end))
	nameX(p, xLabel)
	return stackWide([]panel{p}, 15*vg.Length(len(t.Rows))+34, paletteKeys(colours)), nil
}

// stackWide is stack over both columns.
func stackWide(panels []panel, height vg.Length, keys []key) *Figure {
	f := stack(panels, height, keys, max(1, keysPerRow(keys, pageWidth-2*margin)))
	f.width = pageWidth
	return f
}

func paletteKeys(colours []string) []key {
	var keys []key
	for i, c := range colours {
		keys = append(keys, barKey(paletteColour(i), c))
	}
	return keys
}

// ticksBetween are round numbers from start to end, about eight of them.
func ticksBetween(start, end float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((end-start)/8)))
	for _, f := range []float64{2, 2.5, 2} { // to 2, 5 and 10 times
		if (end-start)/step <= 10 {
			break
		}
		step *= f
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(start / step); i*step <= end; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return ticks
}

// MemoryMap shows which addresses of some memories are taken when.
type MemoryMap struct {
	Title  string
	Levels []MemoryLevel
	// Spans divide the axis, such as into kernels.
	Spans []Span
	End   float64 // of the axis
}

// MemoryLevel is one memory.
type MemoryLevel struct {
	Name          string
	CapacityBytes int64
	Boxes         []MemoryBox
	// Full lists where something had to leave because there was no room.
	Full []float64
}

// MemoryBox is something that is in a memory for a while.
type MemoryBox struct {
	Start, End    float64
	Address, Size int64 // bytes
	Colour        int   // of the palette; NoColour: white
	Marked        bool  // outlined, as what was to be elsewhere
	Text          string
}

// MemoryKeys says what the parts of a memory map mean. Empty ones are left out.
type MemoryKeys struct {
	Colours                 []string
	White, Marked, Capacity string
	Full                    string
}

// MemoryMaps draws the memories one below the other.
func MemoryMaps(m MemoryMap, xLabel string, keys MemoryKeys) (*Figure, error) {
	if len(m.Levels) == 0 || !(m.End > 0) {
		return nil, fmt.Errorf("plots: memory map %q has no memory, or ends at %g", m.Title, m.End)
	}
	list := paletteKeys(keys.Colours)
	if keys.White != "" {
		list = append(list, key{func(c *draw.Canvas, pt vg.Point) {
			outline(c, draw.LineStyle{Color: edgeGrey, Width: 0.4}, pt.X-4.5, pt.Y-3, pt.X+4.5, pt.Y+3)
		}, keys.White})
	}
	if keys.Marked != "" {
		list = append(list,
			key{func(c *draw.Canvas, pt vg.Point) { outline(c, markedLine, pt.X-4.5, pt.Y-3, pt.X+4.5, pt.Y+3) }, keys.Marked})
	}
	if keys.Full != "" {
		list = append(list, key{drawFull, keys.Full})
	}
	if keys.Capacity != "" {
		list = append(list, lineKey(capacityStyle(0), keys.Capacity))
	}
	var panels []panel
	for i, l := range m.Levels {
		for k, b := range l.Boxes {
			if b.Start < 0 || b.End < b.Start || b.Address < 0 || b.Size < 0 {
				return nil, fmt.Errorf("plots: memory map %q, %s, box %d goes from %g to %g at %d with %d bytes", m.Title, l.Name,
					k, b.Start, b.End, b.Address, b.Size)
			}
		}
		top := float64(l.CapacityBytes)
		unit, per := byteUnit(top)
		p := newPanel("", fmt.Sprintf("%s address (%s)", l.Name, unit), nil, 0, m.End, top/per*1.06)
		if i == 0 {
			p.Title.Text = m.Title
			p.Title.Padding = 4 + spanRow
		}
		if ticks := ticksBetween(0, m.End); i == len(m.Levels)-1 {
			longTicks(p, ticks)
			nameX(p, xLabel)
		} else {
			numberX(p, ticks)
		}
		p.Add(memoryBoxes{l, per, m.Spans, i == 0})
		panels = append(panels, p)
	}
	return stackWide(panels, 170, list), nil
}

var markedLine = draw.LineStyle{Color: black, Width: 1.2}

// drawFull is a small cross.
func drawFull(c *draw.Canvas, pt vg.Point) {
	sty := draw.LineStyle{Color: black, Width: 1}
	c.StrokeLine2(sty, pt.X-2, pt.Y-2, pt.X+2, pt.Y+2)
	c.StrokeLine2(sty, pt.X-2, pt.Y+2, pt.X+2, pt.Y-2)
}

func outline(c *draw.Canvas, sty draw.LineStyle, left, bottom, right, top vg.Length) {
	c.StrokeLines(sty, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top},
		{X: left, Y: bottom}})
}

type memoryBoxes struct {
	level MemoryLevel
	per   float64
	spans []Span
	named bool
}

func (m memoryBoxes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, s := range m.spans {
		if i > 0 {
			c.StrokeLine2(draw.LineStyle{Color: gridGray, Width: 0.4}, x(float64(s.First)), c.Min.Y,
				x(float64(s.First)), c.Max.Y)
		}
		sty := textStyle(valueSize, text.XCenter, text.YBottom)
		if from, to := x(float64(s.First)), x(float64(s.End)); m.named && sty.Width(s.Name)+2 < to-from {
			c.FillText(sty, vg.Point{X: (from + to) / 2, Y: c.Max.Y + 1}, s.Name)
		}
	}
	height := func(bytes int64) vg.Length { return y(float64(bytes) / m.per) }
	thin := draw.LineStyle{Color: edgeGrey, Width: 0.3}
	box := func(b MemoryBox, draw func(left, bottom, right, top vg.Length)) {
		draw(x(b.Start), height(b.Address), x(b.End), height(b.Address+b.Size))
	}
	for _, b := range m.level.Boxes {
		box(b, func(left, bottom, right, top vg.Length) {
			fillBox(&c, paletteColour(b.Colour), left, bottom, right, top)
			// Where boxes are as thin as their outlines, these would be all that is seen.
			if right-left > 1.5 && top-bottom > 1.5 {
				outline(&c, thin, left, bottom, right, top)
			}
		})
	}
	for _, b := range m.level.Boxes {
		box(b, func(left, bottom, right, top vg.Length) {
			if b.Marked {
				outline(&c, markedLine, left, bottom, right, top)
			}
			sty := textStyle(valueSize, text.XCenter, text.YCenter)
			if b.Text != "" && sty.Width(b.Text)+2 < right-left && valueSize+1 < top-bottom {
				sty.Color = onto(paletteColour(b.Colour))
				c.FillText(sty, vg.Point{X: (left + right) / 2, Y: (bottom + top) / 2}, b.Text)
			}
		})
	}
	h := height(m.level.CapacityBytes)
	c.StrokeLine2(capacityStyle(0), c.Min.X, h, c.Max.X, h)
	for _, at := range m.level.Full {
		drawFull(&c, vg.Point{X: x(at), Y: h})
	}
}
