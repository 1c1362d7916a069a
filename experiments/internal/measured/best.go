package measured

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/scheduler/search"
)

// evaluations is the number of schedules the search for the best whole one simulates.
const evaluations = 60

// searched are the networks that the search is affordable for.
var searched = []string{"resnet18", "resnet50", "squeezenet"}

// affordable is the first row of one image of each small network and machine.
func (s study) affordable() (list []row) {
	for _, r := range s.rows {
		if r.Kind == networks && r.Batch == 1 && slices.Contains(searched, r.Case) &&
			!slices.ContainsFunc(list, func(x row) bool { return x.Machine == r.Machine && x.Case == r.Case }) {
			list = append(list, r)
		}
	}
	return list
}

// planBest adds a cell for each of these rows.
func (s study) planBest(pl *harness.Plan, evaluations int) (rows []row, err error) {
	rows = s.affordable()
	for _, r := range rows {
		_, hash := harness.Machine(r.Machine)
		pl.Cells = append(pl.Cells, harness.Cell{Key: "best-" + r.Case + "-" + r.Machine,
			Label: "the best of " + r.Case + " on " + r.Machine,
			Inputs: struct {
				Row          row    `json:"row"`
				HardwareHash string `json:"hardware_sha256"`
				Evaluations  int    `json:"evaluations"`
			}{r, hash, evaluations},
			Run: func(ctx context.Context) (any, error) { return r.best(ctx, evaluations) }})
	}
	return rows, nil
}

// best is a row's time by the best whole schedule that a search finds, in seconds.
func (r *row) best(ctx context.Context, evaluations int) (*prediction, error) {
	spec, err := r.machine()
	if err != nil {
		return nil, err
	}
	net, batch, _, err := r.network()
	if err != nil {
		return nil, err
	}
	var out prediction
	if out.HostSeconds, err = r.host(spec); err != nil {
		return nil, err
	}
	batch *= r.Cores
	found, err := search.Best(ctx, net, spec, batch, search.BestOptions{Evaluations: evaluations})
	if err != nil {
		return nil, err
	}
	perSecond, err := found.Steady(ctx)
	if err != nil && !tooLarge(err) {
		return nil, err
	}
	out.Seconds, out.Limit = found.LatencySeconds(), found.LimitText()
	if err == nil {
		out.Seconds = math.Min(out.Seconds, float64(batch)/perSecond)
	}
	return &out, nil
}

// bestTable puts what was found beside the own recipe and the measurement.
func bestTable(rows []row, results []json.RawMessage, list []compared) (t harness.Table, err error) {
	t = harness.Table{Name: "best", Title: "What could be had: the best whole schedules", Columns: []harness.Column{
		{Name: "Accelerator", Text: true}, {Name: "Case", Text: true},
		{Group: "ms", Name: "measured"}, {Group: "ms", Name: recipe}, {Group: "ms", Name: "best"},
		{Group: "ms", Name: "bound"},
		{Name: recipe + " over measured"}, {Name: "Best over measured"}}}
	for i, r := range rows {
		var p prediction
		if err := json.Unmarshal(results[i], &p); err != nil {
			return t, fmt.Errorf("a result can't be read: %w", err)
		}
		k := slices.IndexFunc(list, func(c compared) bool { return c.row == r })
		if k < 0 || list[k].Error != "" {
			continue
		}
		own := &list[k]
		ms := func(x float64) string { return harness.Significant(1e3 * x) }
		t.Rows = append(t.Rows, []string{r.Machine, r.Case, ms(own.Measured), ms(own.total()), ms(p.total()),
			ms(own.Bound), number(own.ratio()), number(p.total() / own.Measured)})
	}
	t.Notes = []string{fmt.Sprintf("One image; a search of %d schedules beside those of the variants. "+
		"The bound has no host time.", evaluations)}
	return t, nil
}
