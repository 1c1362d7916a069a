package explore

import (
	"errors"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
)

// Pivot is a table of the throughputs: networks and all else that changes as rows, variants as columns, under a
// heading for each machine where there are several. A point without a schedule is a dash.
func (p *Plan) Pivot(list []Explored) (harness.Table, error) {
	t := harness.Table{Title: "Throughput in elements of the batch per second", Name: "pivot"}
	machines := slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Key == "hardware" })
	variants := slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Key == "variant" })
	labels := make([][]string, len(p.Axes))
	var down []int
	for i, a := range p.Axes {
		labels[i] = p.Labels(i)
		switch {
		case len(a.Values) == 1 && a.Key != "model":
			if a.Key == "hardware" || a.Key == "batch" {
				t.Title += ", " + strings.TrimPrefix(a.Key+" ", "hardware ") + labels[i][0]
			}
		case i != machines && i != variants:
			down = append(down, i)
			t.AddColumns("<" + a.Key)
		}
	}
	for _, m := range labels[machines] {
		for _, v := range labels[variants] {
			c := harness.Column{Name: v}
			if len(labels[machines]) > 1 {
				c.Group = m
			}
			t.Columns = append(t.Columns, c)
		}
	}
	if len(t.Columns) > maxPivotColumns {
		return t, errors.New("the pivot would have too many columns: give fewer variants or accelerators")
	}
	known := map[string]int{}
	for _, e := range list {
		row := harness.Each(down, func(i int) string { return labels[i][e.at[i]] })
		key := strings.Join(row, "\n")
		k, ok := known[key]
		if !ok {
			k, known[key] = len(t.Rows), len(t.Rows)
			for range len(t.Columns) - len(down) {
				row = append(row, "–")
			}
			t.Add(row)
		}
		if e.Row != nil {
			t.Rows[k][len(down)+e.at[machines]*len(labels[variants])+e.at[variants]] = harness.Significant(
				e.Row.ThroughputPerSecond)
		}
	}
	return t, nil
}

// maxPivotColumns is more than a page or a screen has room for.
const maxPivotColumns = 64
