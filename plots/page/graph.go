package page

import (
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
)

// Graph is drawn in columns, each node behind all that it follows, which run from left to
// right and back again, row below row.
type Graph struct {
	Title string
	Nodes []Node
	Edges [][2]int // from and to
}

// Node is a box in the colour of a group. Operator is what the viewer pins when it is chosen, "": nothing.
type Node struct {
	Name, Words, Operator string
	Group                 int
	GroupName             string
}

// Lengths of a drawing.
const (
	nodeWidth, nodeHeight = 92, 20
	columnStep, laneStep  = 108, 32
	rowGap                = 22
	columnsOfRow          = 11
)

type spot struct{ column, lane int }

// place gives each node its column, the longest path to it, and a lane near those before it.
func (g *Graph) place() ([]spot, error) {
	after, before := make([][]int, len(g.Nodes)), make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		after[e[0]], before[e[1]] = append(after[e[0]], e[1]), append(before[e[1]], e[0])
	}
	spots, missing := make([]spot, len(g.Nodes)), make([]int, len(g.Nodes))
	var ready []int
	for i := range g.Nodes {
		if missing[i] = len(before[i]); missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	var columns [][]int
	for k := 0; k < len(ready); k++ {
		i := ready[k]
		for len(columns) <= spots[i].column {
			columns = append(columns, nil)
		}
		columns[spots[i].column] = append(columns[spots[i].column], i)
		for _, j := range after[i] {
			spots[j].column = max(spots[j].column, spots[i].column+1)
			if missing[j]--; missing[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	if len(ready) < len(g.Nodes) {
		return nil, errors.New("page: the graph has a cycle")
	}
	for _, column := range columns {
		wanted := make([]int, len(column))
		for k, i := range column {
			for _, j := range before[i] {
				wanted[k] += spots[j].lane
			}
			wanted[k] /= max(1, len(before[i])) // rounded up the page, so that lanes do not drift down
		}
		order := make([]int, len(column))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return wanted[a] - wanted[b] })
		free := 0
		for _, k := range order {
			lane := max(free, wanted[k])
			if spare := len(column) - 1; lane > spare && lane > wanted[k] {
				lane = max(free, spare)
			}
			spots[column[k]].lane, free = lane, lane+1
		}
	}
	return spots, nil
}

// svg draws the graph; id is unique on the page.
func (g *Graph) svg(id string) (string, error) {
	spots, err := g.place()
	if err != nil {
		return "", err
	}
	columns := 0
	for _, s := range spots {
		columns = max(columns, s.column+1)
	}
	rows := (columns + columnsOfRow - 1) / columnsOfRow
	lanes := make([]int, rows)
	for _, s := range spots {
		lanes[s.column/columnsOfRow] = max(lanes[s.column/columnsOfRow], s.lane+1)
	}
	top := make([]int, rows+1)
	for r, n := range lanes {
		top[r+1] = top[r] + n*laneStep + rowGap
	}
	at := func(i int) (x, y, row int) {
		s := spots[i]
		row = s.column / columnsOfRow
		c := s.column % columnsOfRow
		if row%2 == 1 {
			c = columnsOfRow - 1 - c
		}
		return 8 + c*columnStep, top[row] + rowGap + s.lane*laneStep, row
	}
	w, h := 16+(min(columns, columnsOfRow)-1)*columnStep+nodeWidth, top[rows]+8
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="graph" viewBox="0 0 %d %d" style="--w:%dpx" role="img" aria-label="%s">`, w, h, w,
		html.EscapeString(g.Title))
	fmt.Fprintf(&b,
		`<defs><marker id="%s-end" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0,0L6,3L0,6Z"/></marker></defs>`, id)
	for _, e := range g.Edges {
		fmt.Fprintf(&b, `<path class="edge" marker-end="url(#%s-end)" d="%s"/>`, id, edge(e, spots, at))
	}
	named := -1
	for i, n := range g.Nodes {
		x, y, _ := at(i)
		colour, pin := "var(--soft)", ""
		if n.Group >= 0 {
			colour = fmt.Sprintf("var(--g%d)", n.Group%groupColours)
		}
		if n.Operator != "" {
			pin = fmt.Sprintf(` data-operator="%s"`, html.EscapeString(n.Operator))
		}
		fmt.Fprintf(&b, `<g class="node" style="--c:%s"%s><title>%s</title>`, colour, pin, html.EscapeString(n.Words))
		if n.Group != named && n.GroupName != "" {
			fmt.Fprintf(&b, `<text class="of" x="%d" y="%d">%s</text>`, x+1, y-3, html.EscapeString(fitted(n.GroupName)))
			named = n.Group
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4"/><text x="%d" y="%d">%s</text></g>`,
			x, y, nodeWidth, nodeHeight, x+nodeWidth/2, y+14, html.EscapeString(fitted(n.Name)))
	}
	b.WriteString("</svg>")
	return b.String(), nil
}

// edge is the way of an edge: straight to the next column, down where a row ends, and in a
// bow over what stands between.
func edge(e [2]int, spots []spot, at func(int) (x, y, row int)) string {
	x0, y0, r0 := at(e[0])
	x1, y1, r1 := at(e[1])
	const half, middle = nodeHeight / 2, nodeWidth / 2
	if r0 != r1 {
		return fmt.Sprintf("M%d,%dC%d,%d %d,%d %d,%d", x0+middle, y0+nodeHeight, x0+middle, y0+nodeHeight+24, x1+middle,
			y1-24, x1+middle, y1)
	}
	right := x1 > x0
	start, end, way := x0, x1+nodeWidth, -1
	if right {
		start, end, way = x0+nodeWidth, x1, 1
	}
	if spots[e[1]].column == spots[e[0]].column+1 {
		return fmt.Sprintf("M%d,%dC%d,%d %d,%d %d,%d", start, y0+half, start+8*way, y0+half, end-8*way, y1+half, end, y1+half)
	}
	if y0 == y1 {
		return fmt.Sprintf("M%d,%dC%d,%d %d,%d %d,%d", x0+middle+20*way, y0, x0+middle+30*way, y0-15, x1+middle-30*way,
			y1-15, x1+middle-20*way, y1)
	}
	if y0 > y1 { // along the lower lane, where fewer boxes stand
		turn := end - 16*way
		return fmt.Sprintf("M%d,%dH%dC%d,%d %d,%d %d,%d", start, y0+half, turn, turn+10*way, y0+half, end-10*way, y1+half,
			end, y1+half)
	}
	turn := start + 16*way
	return fmt.Sprintf("M%d,%dC%d,%d %d,%d %d,%dH%d", start, y0+half, start+10*way, y0+half, turn-10*way, y1+half, turn,
		y1+half, end)
}

// fitted is the end of a name, as long as a box has room.
func fitted(name string) string {
	const most = 15
	for len([]rune(name)) > most && strings.Contains(name, ".") {
		_, name, _ = strings.Cut(name, ".")
	}
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}
