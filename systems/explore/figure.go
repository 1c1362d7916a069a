package explore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
)

// What a figure can hold.
const (
	maxFigurePanels = 12
	maxFigureSeries = 7
)

// Figure draws the throughput. The first axis of numbers with several values goes along x; without one, the first axis
// with several values does, as groups of bars. Variants are the series, or else the last other axis; each combination
// of the rest is a panel.
func (p *Plan) Figure(list []Explored) (*plots.Figure, error) {
	var several []int
	for i, a := range p.Axes {
		if len(a.Values) > 1 {
			several = append(several, i)
		}
	}
	x, order := p.xAxis(several)
	numeric := x >= 0
	if !numeric {
		x = slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Key == "hardware" })
		if len(several) > 0 {
			x = several[0]
			if p.Axes[x].Key == "variant" && len(several) > 1 {
				x = several[1]
			}
		}
		order = make([]int, len(p.Axes[x].Values))
		for k := range order {
			order[k] = k
		}
	}
	rest := slices.DeleteFunc(slices.Clone(several), func(i int) bool { return i == x })
	series := -1
	for _, i := range rest {
		if len(p.Axes[i].Values) <= maxFigureSeries && (series < 0 || p.Axes[series].Key != "variant") {
			series = i
		}
	}
	rest = slices.DeleteFunc(rest, func(i int) bool { return i == series })

	panels, titles := p.panels(list, rest)
	if len(panels) > maxFigurePanels {
		return nil,
			fmt.Errorf("the figure would have %d panels, expected at most %d: give fewer values, or leave out the figure",
				len(panels), maxFigurePanels)
	}
	names := []string{"throughput"}
	if series >= 0 {
		names = p.Labels(series)
		if key := p.Axes[series].Key; key != "variant" && key != "model" && key != "hardware" {
			for k := range names {
				names[k] = key + " " + names[k]
			}
		}
	}
	labels := make([]string, len(order))
	at := make([]int, len(order))
	along := p.Labels(x)
	for k, v := range order {
		labels[k], at[v] = along[v], k
	}
	var curves []plots.Curves
	var bars []plots.Groups
	for k, points := range panels {
		all := make([]plots.Series, len(names))
		for s := range all {
			all[s] = plots.Series{Name: names[s], Values: make([]float64, len(labels))}
		}
		low, high := 0.0, 0.0
		for _, e := range points {
			if e.Row == nil {
				continue
			}
			s := 0
			if series >= 0 {
				s = e.at[series]
			}
			v := e.Row.ThroughputPerSecond
			all[s].Values[at[e.at[x]]] = v
			if high = max(high, v); low == 0 || v < low {
				low = v
			}
		}
		if high == 0 {
			continue // nothing fits here
		}
		const decade = 10
		if numeric {
			c := plots.Curves{Title: titles[k], XLabel: p.Axes[x].Key, YLabel: "Throughput (1/s)", Series: all, Ticks: labels,
				LogY: high > decade*low}
			for _, v := range order {
				n, _ := hardware.Number(p.Axes[x].Values[v])
				c.X = append(c.X, n)
			}
			c.LogX = c.X[0] > 0 && c.X[len(c.X)-1] >= 4*c.X[0]
			curves = append(curves, c)
		} else {
			bars = append(bars, plots.Groups{Title: titles[k], XLabel: p.Axes[x].Key, YLabel: "Throughput (1/s)",
				Categories: labels, Series: all, Log: high > decade*low})
		}
	}
	switch {
	case len(curves) > 0:
		return plots.Lines(curves...)
	case len(bars) > 0:
		return plots.GroupedBars(bars...)
	}
	return nil, errors.New("the figure would be empty: no point has a schedule")
}

// Labels are the values of an axis as people know them: the names that accelerators and networks of files have in
// place of paths, unless two have the same.
func (p *Plan) Labels(axis int) []string {
	a := p.Axes[axis]
	labels := slices.Clone(a.Values)
	for _, pt := range p.points {
		switch v := pt.at[axis]; a.Key {
		case "hardware":
			labels[v] = pt.spec.Name
		case "model":
			labels[v] = strings.TrimSuffix(filepath.Base(a.Values[v]), ".onnx")
		}
	}
	for i, l := range labels {
		if slices.Index(labels, l) != i {
			return a.Values
		}
	}
	return labels
}

// xAxis is the first axis of different numbers with several values, and the order
// that makes them ascend; -1: there is none.
func (p *Plan) xAxis(several []int) (axis int, order []int) {
axes:
	for _, i := range several {
		a := p.Axes[i]
		if a.Key != "batch" && a.Key != "chunk" && !strings.HasPrefix(a.Key, hardwareField) {
			continue
		}
		numbers := make([]float64, len(a.Values))
		order := make([]int, len(a.Values))
		for k, v := range a.Values {
			n, ok := hardware.Number(v)
			if !ok || slices.Contains(numbers[:k], n) {
				continue axes
			}
			numbers[k], order[k] = n, k
		}
		slices.SortFunc(order, func(a, b int) int {
			if numbers[a] < numbers[b] {
				return -1
			}
			return 1
		})
		return i, order
	}
	return -1, nil
}

// panels divides the points by their values on some axes, in the order of the
// points, and says of each what all of its points have.
func (p *Plan) panels(list []Explored, axes []int) (panels [][]Explored, titles []string) {
	known := map[string]int{}
	labels := make([][]string, len(p.Axes))
	for i := range labels {
		labels[i] = p.Labels(i)
	}
	for _, e := range list {
		var parts []string
		for i, a := range p.Axes {
			switch {
			case a.Key == "model" && len(a.Values) == 1:
				parts = append(parts, labels[i][0])
			case slices.Contains(axes, i) && a.Key == "model":
				parts = append(parts, labels[i][e.at[i]])
			case slices.Contains(axes, i):
				parts = append(parts, a.Key+" "+labels[i][e.at[i]])
			case a.Key == "batch" && len(a.Values) == 1:
				parts = append(parts, "batch "+a.Values[0])
			}
		}
		title := strings.Join(parts, ", ")
		k, ok := known[title]
		if !ok {
			k = len(panels)
			known[title] = k
			panels, titles = append(panels, nil), append(titles, title)
		}
		panels[k] = append(panels[k], e)
	}
	return panels, titles
}
