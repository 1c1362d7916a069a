package plots

import (
	"errors"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Diagram is a drawing of nodes and arrows whose places the caller gives: columns from the left and rows from the top.
type Diagram struct {
	Title string
	Nodes []DiagramNode
	Edges []DiagramEdge
	Areas []DiagramArea
	// RowHeight is the distance of rows in points; 0: 18.
	RowHeight float64
}

// DiagramNode is a node at a place.
type DiagramNode struct {
	Text   string // lines end in newlines
	X, Y   float64
	Colour int // of the palette; NoColour: white
	Shape  nodeShape
}

// nodeShape is the outline of a node.
type nodeShape int

// The shapes.
const (
	circle nodeShape = iota
	Box              // as large as its text
	Ellipse
	Bare // text alone
)

// NoColour leaves a node or an area white.
const NoColour = -1

// DiagramEdge is an arrow between nodes.
type DiagramEdge struct {
	From, To int
	Grey     bool
	// Bend is the distance of the arrow's middle from the straight line, in rows downward.
	Bend float64
}

// DiagramArea shades the places of nodes that belong together: those in neighbouring columns or rows as one.
type DiagramArea struct {
	Nodes  []int
	Colour int
	Text   string // above the first of the nodes, or on its left if it is not in the top row
}

// DiagramKey explains a colour, with Symbol a text of nodes or areas, with Edge an arrow.
type DiagramKey struct {
	Text   string
	Symbol string
	Colour int
	Edge   bool
	Grey   bool // of the arrow
}

// palette has the colours of Okabe and Ito in an order in which neighbours differ in brightness.
var palette = []color.NRGBA{
	blue, orange, {0x00, 0x9e, 0x73, 0xff}, {0xf0, 0xe4, 0x42, 0xff}, vermillion, {0x56, 0xb4, 0xe9, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0x99, 0x99, 0x99, 0xff},
}

var (
	edgeBlack = color.NRGBA{0x30, 0x30, 0x30, 0xff}
	edgeGrey  = color.NRGBA{0x8a, 0x8a, 0x8a, 0xff}
)

func paletteColour(i int) color.NRGBA {
	if i < 0 {
		return color.NRGBA{0xff, 0xff, 0xff, 0xff}
	}
	return palette[i%len(palette)]
}

// onto is a colour for text that reads well on a fill.
func onto(fill color.NRGBA) color.Color {
	if 299*int(fill.R)+587*int(fill.G)+114*int(fill.B) < 118_000 {
		return color.White
	}
	return black
}

// pale mixes a colour with white.
func pale(c color.NRGBA) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8((int(v)*2 + 255*3) / 5) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

const (
	circleRadius   = vg.Length(6.6)
	diagramTitle   = vg.Length(13)
	diagramSpace   = vg.Length(9)
	defaultSpacing = 18
)

// Diagrams draws one below the other, each over the whole width, with an explanation of
// colours and arrows below them all.
func Diagrams(list []Diagram, keys ...DiagramKey) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("plots: there is no diagram to draw")
	}
	height := 2 * margin
	for _, d := range list {
		if err := d.check(); err != nil {
			return nil, err
		}
		height += d.height() + diagramSpace
	}
	height -= diagramSpace
	var ks []key
	for _, k := range keys {
		switch {
		case k.Symbol != "":
			ks = append(ks, key{func(c *draw.Canvas, pt vg.Point) {
				c.FillText(textStyle(valueSize, text.XCenter, text.YCenter), pt, k.Symbol)
			}, k.Text})
		case k.Edge:
			sty := draw.LineStyle{Color: edgeBlack, Width: 0.7}
			if k.Grey {
				sty = greyEdge
			}
			ks = append(ks, key{func(c *draw.Canvas, pt vg.Point) { c.StrokeLine2(sty, pt.X-5, pt.Y, pt.X+6, pt.Y) }, k.Text})
		default:
			ks = append(ks, barKey(paletteColour(k.Colour), k.Text))
		}
	}
	perRow := 1
	if len(ks) > 0 {
		perRow = keysPerRow(ks, columnWidth-2*margin)
		height += vg.Length((len(ks)+perRow-1)/perRow)*keyHeight + keyGap
	}
	return &Figure{width: columnWidth, height: height, draw: func(c draw.Canvas) {
		c = draw.Crop(c, margin, -margin, margin, -margin)
		top := c.Max.Y
		if len(ks) > 0 {
			drawLegend(c, ks, perRow)
		}
		for _, d := range list {
			d.draw(&c, top)
			top -= d.height() + diagramSpace
		}
	}}, nil
}

// keysPerRow is the number of entries of a legend that fit into a row.
func keysPerRow(keys []key, width vg.Length) int {
	sty := textStyle(valueSize, text.XLeft, text.YCenter)
	for n := len(keys); n > 1; n-- {
		widths := make([]vg.Length, n)
		for i, k := range keys {
			widths[i%n] = max(widths[i%n], 14+sty.Width(k.text))
		}
		total := vg.Length(10 * (n - 1))
		for _, w := range widths {
			total += w
		}
		if total <= width {
			rows := (len(keys) + n - 1) / n
			return (len(keys) + rows - 1) / rows // all rows about as long
		}
	}
	return 1
}

var greyEdge = draw.LineStyle{Color: edgeGrey, Width: 0.7, Dashes: []vg.Length{2, 1.5}}

func (d *Diagram) rowHeight() vg.Length {
	if d.RowHeight > 0 {
		return vg.Length(d.RowHeight)
	}
	return defaultSpacing
}

// head is the height of the title and the texts above the top row.
func (d *Diagram) head() vg.Length {
	h := vg.Length(0)
	if d.Title != "" {
		h = diagramTitle
	}
	if slices.ContainsFunc(d.Areas, func(a DiagramArea) bool { return a.Text != "" && d.Nodes[a.Nodes[0]].Y < 1 }) {
		h += valueSize
	}
	return h
}

// extent is the largest column and row, bent arrows included.
func (d *Diagram) extent() (x, y float64) {
	for _, n := range d.Nodes {
		x, y = max(x, n.X), max(y, n.Y)
	}
	for _, e := range d.Edges {
		y = max(y, (d.Nodes[e.From].Y+d.Nodes[e.To].Y)/2+e.Bend-0.4)
	}
	return x, y
}

func (d *Diagram) height() vg.Length {
	_, rows := d.extent()
	return d.head() + vg.Length(rows+1)*d.rowHeight()
}

func (d *Diagram) draw(c *draw.Canvas, top vg.Length) {
	if d.Title != "" {
		c.FillText(textStyle(titleSize, text.XLeft, text.YTop), vg.Point{X: c.Min.X, Y: top}, d.Title)
	}
	top -= d.head()
	columns, _ := d.extent()
	w := (c.Max.X - c.Min.X) / vg.Length(columns+1)
	h := d.rowHeight()
	at := func(n DiagramNode) vg.Point {
		return vg.Point{X: c.Min.X + vg.Length(n.X+0.5)*w, Y: top - vg.Length(n.Y+0.5)*h}
	}
	for _, a := range d.Areas {
		d.drawArea(c, a, at, w, h)
	}
	for _, pass := range []bool{true, false} { // what matters lies above
		for _, e := range d.Edges {
			if e.Grey == pass {
				d.drawEdge(c, e, at, h)
			}
		}
	}
	for _, n := range d.Nodes {
		n.draw(c, at(n))
	}
	for _, a := range d.Areas {
		if a.Text != "" {
			first := d.Nodes[a.Nodes[0]]
			p := at(first)
			if first.Y < 1 {
				c.FillText(textStyle(valueSize, text.XLeft, text.YBottom), vg.Point{X: p.X - w/2 + 1.5, Y: p.Y + h/2 + 0.5}, a.Text)
			} else {
				c.FillText(textStyle(valueSize, text.XRight, text.YCenter), vg.Point{X: p.X - w/2 - 0.5, Y: p.Y}, a.Text)
			}
		}
	}
}

func (d *Diagram) drawArea(c *draw.Canvas, a DiagramArea, at func(DiagramNode) vg.Point, w, h vg.Length) {
	fill := pale(paletteColour(a.Colour))
	gapX, gapY := min(1.2, w/8), min(1.2, h/8)
	for i, ni := range a.Nodes {
		n := d.Nodes[ni]
		p := at(n)
		fillBox(c, fill, p.X-w/2+gapX, p.Y-h/2+gapY, p.X+w/2-gapX, p.Y+h/2-gapY)
		// The gap between neighbours of one area is closed.
		for _, mi := range a.Nodes[:i] {
			m := d.Nodes[mi]
			dx, dy := math.Abs(n.X-m.X), math.Abs(n.Y-m.Y)
			q := at(m)
			switch {
			case dx == 1 && dy == 0:
				mid := (p.X + q.X) / 2
				fillBox(c, fill, mid-gapX-0.1, p.Y-h/2+gapY, mid+gapX+0.1, p.Y+h/2-gapY)
			case dy == 1 && dx == 0:
				mid := (p.Y + q.Y) / 2
				fillBox(c, fill, p.X-w/2+gapX, mid-gapY-0.1, p.X+w/2-gapX, mid+gapY+0.1)
			case dx == 1 && dy == 1 && d.inArea(a, n.X, m.Y) && d.inArea(a, m.X, n.Y):
				x, y := (p.X+q.X)/2, (p.Y+q.Y)/2
				fillBox(c, fill, x-gapX-0.1, y-gapY-0.1, x+gapX+0.1, y+gapY+0.1)
			}
		}
	}
}

// inArea reports whether an area has a node at a place.
func (d *Diagram) inArea(a DiagramArea, x, y float64) bool {
	return slices.ContainsFunc(a.Nodes, func(i int) bool { return d.Nodes[i].X == x && d.Nodes[i].Y == y })
}

// half is half the width and height of a node.
func (n *DiagramNode) half() (vg.Length, vg.Length) {
	sty := textStyle(valueSize, text.XCenter, text.YCenter)
	lines := strings.Split(n.Text, "\n")
	w := vg.Length(0)
	for _, l := range lines {
		w = max(w, sty.Width(l))
	}
	h := vg.Length(len(lines)) * (valueSize + 0.8)
	switch n.Shape {
	case circle:
		return circleRadius, circleRadius
	case Ellipse:
		return w*0.6 + 5, h*0.62 + 2
	}
	return w/2 + 3, h/2 + 1.5
}

func (n *DiagramNode) draw(c *draw.Canvas, p vg.Point) {
	fill := paletteColour(n.Colour)
	w, h := n.half()
	line := draw.LineStyle{Color: edgeBlack, Width: 0.5}
	switch n.Shape {
	case Bare:
	case Box:
		fillBox(c, fill, p.X-w, p.Y-h, p.X+w, p.Y+h)
		c.StrokeLines(line, []vg.Point{{X: p.X - w, Y: p.Y - h}, {X: p.X + w, Y: p.Y - h}, {X: p.X + w, Y: p.Y + h},
			{X: p.X - w, Y: p.Y + h}, {X: p.X - w, Y: p.Y - h}})
	default:
		const corners = 48
		var round []vg.Point
		for i := 0; i <= corners; i++ {
			s, k := math.Sincos(2 * math.Pi * float64(i) / corners)
			round = append(round, vg.Point{X: p.X + w*vg.Length(k), Y: p.Y + h*vg.Length(s)})
		}
		c.FillPolygon(fill, round)
		c.StrokeLines(line, round)
	}
	sty := textStyle(valueSize, text.XCenter, text.YCenter)
	sty.Color = onto(fill)
	lines := strings.Split(n.Text, "\n")
	const leading = valueSize + 0.8
	y := p.Y + leading*vg.Length(len(lines)-1)/2 + 0.6 // small letters have their middle lower
	for _, l := range lines {
		c.FillText(sty, vg.Point{X: p.X, Y: y}, l)
		y -= leading
	}
}

func (d *Diagram) drawEdge(c *draw.Canvas, e DiagramEdge, at func(DiagramNode) vg.Point, rowHeight vg.Length) {
	from, to := d.Nodes[e.From], d.Nodes[e.To]
	p, q := at(from), at(to)
	mid := vg.Point{X: (p.X + q.X) / 2, Y: (p.Y+q.Y)/2 - vg.Length(e.Bend)*rowHeight}
	a, b := from.border(p, mid), to.border(q, mid)
	sty := draw.LineStyle{Color: edgeBlack, Width: 0.7}
	if e.Grey {
		sty = greyEdge
	}
	// A parabola through mid, which is a straight line without a bend.
	var line []vg.Point
	const pieces = 16
	control := vg.Point{X: 2*mid.X - (a.X+b.X)/2, Y: 2*mid.Y - (a.Y+b.Y)/2}
	n := pieces
	if e.Bend == 0 {
		n = 1
		control = vg.Point{X: (a.X + b.X) / 2, Y: (a.Y + b.Y) / 2}
	}
	for i := 0; i <= n; i++ {
		t := vg.Length(i) / vg.Length(n)
		line = append(line, vg.Point{
			X: (1-t)*(1-t)*a.X + 2*t*(1-t)*control.X + t*t*b.X,
			Y: (1-t)*(1-t)*a.Y + 2*t*(1-t)*control.Y + t*t*b.Y,
		})
	}
	c.StrokeLines(sty, line)
	drawHead(c, sty.Color, control, b)
}

// drawHead draws the head of an arrow at tip that comes from a point.
func drawHead(c *draw.Canvas, fill color.Color, from, tip vg.Point) {
	dx, dy := float64(tip.X-from.X), float64(tip.Y-from.Y)
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	ux, uy := vg.Length(dx/length), vg.Length(dy/length)
	const long, half = 3.6, 1.5
	base := vg.Point{X: tip.X - long*ux, Y: tip.Y - long*uy}
	c.FillPolygon(fill, []vg.Point{tip, {X: base.X - half*uy, Y: base.Y + half*ux},
		{X: base.X + half*uy, Y: base.Y - half*ux}})
}

// border is where the line from the node's middle p to q leaves the node.
func (n *DiagramNode) border(p, q vg.Point) vg.Point {
	w, h := n.half()
	dx, dy := float64(q.X-p.X), float64(q.Y-p.Y)
	if dx == 0 && dy == 0 {
		return p
	}
	var t float64
	switch n.Shape {
	case Box, Bare:
		t = min(float64(w)/max(math.Abs(dx), 1e-9), float64(h)/max(math.Abs(dy), 1e-9))
	default:
		t = 1 / math.Hypot(dx/float64(w), dy/float64(h))
	}
	return vg.Point{X: p.X + vg.Length(t*dx), Y: p.Y + vg.Length(t*dy)}
}

func (d *Diagram) check() error {
	var f faults
	f.unless(len(d.Nodes) > 0, "diagram %q has no node", d.Title)
	for i, n := range d.Nodes {
		f.unless(finite(n.X) && finite(n.Y), "diagram %q, node %d (%q) stands at column %g and row %g, expected zero or more",
			d.Title, i, n.Text, n.X, n.Y)
		f.unless(n.Shape >= circle && n.Shape <= Bare, "diagram %q, node %d (%q) has unknown shape %d", d.Title, i, n.Text,
			n.Shape)
	}
	known := func(node int) bool { return node >= 0 && node < len(d.Nodes) }
	for i, e := range d.Edges {
		f.unless(known(e.From) && known(e.To) && e.From != e.To,
			"diagram %q, arrow %d goes from node %d to node %d, expected two of %d", d.Title, i, e.From, e.To, len(d.Nodes))
	}
	for i, a := range d.Areas {
		f.unless(len(a.Nodes) > 0, "diagram %q, area %d has no node", d.Title, i)
		for _, n := range a.Nodes {
			f.unless(known(n), "diagram %q, area %d has node %d of %d", d.Title, i, n, len(d.Nodes))
		}
	}
	return f.err
}
