package plots

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Network holds the results of variants on one network: a panel.
type Network struct {
	Title    string // such as "ResNet-50, batch 64"
	Unit     string // of all throughputs, such as "images/s"
	Variants []Variant
	Marks    []Mark
}

// Variant is one variant's result with the paper's batches per cluster, which published throughputs have too.
type Variant struct {
	Name                string
	Title               string // stands below the name; "": nothing
	ThroughputPerSecond float64
	// BestPerSecond is the throughput with the best batches per cluster; 0: not known.
	BestPerSecond float64
	// Utilisations are between 0 and 1.
	MMEUtilization, VMEUtilization float64
}

// Mark is a throughput from elsewhere that belongs beside a variant.
type Mark struct {
	Variant             string
	ThroughputPerSecond float64
	Kind                MarkKind
}

// MarkKind says where a mark is from.
type MarkKind int

// The kinds of marks.
const (
	Published MarkKind = iota // by the paper
	Measured                  // by others on the real chip
)

var markStyles = map[MarkKind]draw.GlyphStyle{
	Published: {Color: vermillion, Radius: 3, Shape: diamond{}},
	Measured:  {Color: black, Radius: 3, Shape: draw.PyramidGlyph{}},
}

// diamond is a filled square on its corner.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, pt vg.Point) {
	r := sty.Radius * 1.15
	c.FillPolygon(sty.Color, []vg.Point{{X: pt.X - r, Y: pt.Y}, {X: pt.X, Y: pt.Y + r}, {X: pt.X + r, Y: pt.Y},
		{X: pt.X, Y: pt.Y - r}})
}

// Throughput draws the throughput by variant, with the gain over the first one, and
// what others published beside it.
func Throughput(networks []Network) (*Figure, error) {
	if err := check(networks); err != nil {
		return nil, err
	}
	const (
		half     = 0.27 // of a bar, in distances between bars
		markGap  = 0.57 // from the middle of a bar to the first mark
		markStep = 0.5
	)
	// All panels have the same x axis, so that variants stand below each other.
	left, right := half, half
	kinds := map[MarkKind]bool{}
	best := false
	for _, n := range networks {
		for i, v := range n.Variants {
			room := half
			if k := len(n.marksOf(v.Name)); k > 0 {
				room = markGap + markStep*float64(k-1) + 0.25
			}
			if i == 0 {
				left = max(left, room)
			} else {
				right = max(right, float64(i)+room)
			}
		}
	}
	var panels []panel
	for _, n := range networks {
		highest := 0.0
		for _, v := range n.Variants {
			highest = max(highest, v.ThroughputPerSecond, v.BestPerSecond)
		}
		var bs bars
		var ms marks
		fills := n.colours()
		for i, v := range n.Variants {
			b := bar{center: float64(i), half: half, value: v.ThroughputPerSecond, fill: fills[i], tick: v.BestPerSecond,
				lines: []string{number(v.ThroughputPerSecond)}}
			if i > 0 && n.Variants[0].ThroughputPerSecond > 0 {
				b.lines = append(b.lines, number(v.ThroughputPerSecond/n.Variants[0].ThroughputPerSecond)+"×")
			}
			best = best || v.BestPerSecond > 0
			bs = append(bs, b)
			for k, m := range n.marksOf(v.Name) {
				kinds[m.Kind] = true
				highest = max(highest, m.ThroughputPerSecond)
				// Those of the first variant stand on its left, where there is no other.
				x := markGap + markStep*float64(k)
				if i == 0 {
					x = -x
				}
				ms = append(ms, mark{x: float64(i) + x, y: m.ThroughputPerSecond,
					style: markStyles[m.Kind], label: number(m.ThroughputPerSecond)})
			}
		}
		title := n.Title
		if len(n.Variants) > 1 {
			title += " (×: over " + n.Variants[0].Name + ")"
		}
		// Two lines of text fit above the highest bar.
		p := newPanel(title, "Throughput ("+n.Unit+")", n.labels(), -left-0.1, right+0.1, highest*1.22)
		p.Add(grid{}, ms, bs) // what whitens the grid behind a mark must not cover a bar
		panels = append(panels, p)
	}
	keys := []key{barKey(blue, "with the paper's batches per cluster")}
	if best {
		keys = append(keys, tickKey("with the best ones"))
	}
	if kinds[Published] {
		keys = append(keys, markKey(markStyles[Published], "published in the paper"))
	}
	if kinds[Measured] {
		keys = append(keys, markKey(markStyles[Measured], "measured on the chip by others"))
	}
	return stack(panels, 120, keys, 2), nil
}

// Utilization draws the utilisation of the matrix and vector units by variant.
func Utilization(networks []Network) (*Figure, error) {
	if err := check(networks); err != nil {
		return nil, err
	}
	highest := 0.0
	for _, n := range networks {
		for _, v := range n.Variants {
			highest = max(highest, 100*v.MMEUtilization, 100*v.VMEUtilization)
		}
	}
	var panels []panel
	for _, n := range networks {
		var bs bars
		for i, v := range n.Variants {
			fill := n.colours()[i]
			for k, u := range []float64{v.MMEUtilization, v.VMEUtilization} {
				const half = 0.2
				bs = append(bs, bar{center: float64(i) + half*float64(2*k-1), half: half * 0.92, value: 100 * u,
					fill: paler(fill, k), lines: []string{percent(u)}})
			}
		}
		// One scale for all: shares of peak compare between networks.
		p := newPanel(n.Title, "Utilisation (% of peak)", n.labels(), -0.55, float64(len(n.Variants))-0.45, highest*1.14)
		p.Add(grid{}, bs)
		panels = append(panels, p)
	}
	keys := []key{barKey(blue, "matrix unit (MME)"), barKey(paler(blue, 1), "vector unit (VME), paler")}
	return stack(panels, 110, keys, 2), nil
}

// labels are the names of the variants with their titles.
func (n Network) labels() (list []string) {
	for _, v := range n.Variants {
		list = append(list, strings.TrimSuffix(v.Name+"\n"+v.Title, "\n"))
	}
	return list
}

// colours are those that the variants have in all figures.
func (n Network) colours() []color.NRGBA {
	var names []string
	for _, v := range n.Variants {
		names = append(names, v.Name)
	}
	return colours(names)
}

func (n Network) marksOf(variant string) []Mark {
	var list []Mark
	for _, m := range n.Marks {
		if m.Variant == variant {
			list = append(list, m)
		}
	}
	return list
}

// check finds what can't be drawn.
func check(networks []Network) error {
	var f faults
	f.unless(len(networks) > 0, "there is no network to draw")
	for _, n := range networks {
		f.unless(len(n.Variants) > 0, "%s has no variant to draw", n.Title)
		highest := 0.0
		known := map[string]bool{}
		for _, v := range n.Variants {
			known[v.Name] = true
			for _, x := range []float64{v.ThroughputPerSecond, v.BestPerSecond, v.MMEUtilization, v.VMEUtilization} {
				f.unless(finite(x), "%s, %s has a value of %g, expected zero or more", n.Title, v.Name, x)
			}
			highest = max(highest, v.ThroughputPerSecond)
		}
		for _, m := range n.Marks {
			f.unless(known[m.Variant], "%s has a mark for %q, which is not one of its variants", n.Title, m.Variant)
			_, ok := markStyles[m.Kind]
			f.unless(ok, "%s has a mark of unknown kind %d", n.Title, m.Kind)
			f.unless(finite(m.ThroughputPerSecond), "%s has a mark at %g, expected zero or more", n.Title,
				m.ThroughputPerSecond)
		}
		f.unless(highest > 0, "%s has no throughput above zero", n.Title)
	}
	return f.err
}

// number writes a value with three digits that count, and all before the point.
func number(x float64) string {
	digits := 0
	switch {
	case x >= 100 || x == 0:
	case x >= 10:
		digits = 1
	default:
		digits = 2
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// percent writes a share with one digit behind the point, where there is room.
func percent(u float64) string {
	if u >= 0.9995 {
		return "100"
	}
	return strconv.FormatFloat(100*u, 'f', 1, 64)
}

// niceTicks are multiples of 1, 2 or 5 times a power of ten from 0 to top, about
// five of them.
func niceTicks(top float64) []plot.Tick {
	if !(top > 0) {
		return []plot.Tick{{Value: 0, Label: "0"}}
	}
	step := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, f := range []float64{2, 2.5, 2, 1} { // to 2, 5, 10 and 10 times
		if top/step <= 6 {
			break
		}
		step *= f
	}
	digits := max(0, -int(math.Floor(math.Log10(step))))
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= top; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', digits, 64)})
	}
	return ticks
}
