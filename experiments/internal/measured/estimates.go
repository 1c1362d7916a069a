package measured

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/scheduler"
)

// An estimate is a figure that nobody publishes, at the ends of its range; of a cause, Ends has one value.
type estimate struct {
	Field string   `json:"field"`
	Given string   `json:"given"`
	Ends  []string `json:"ends"`
	Why   string   `json:"why,omitempty"`
}

// causes are readings of published figures that slow a machine down where the file has them in full.
var causes = map[string][]estimate{
	"ascend310p": {
		{Field: "core_types[0].units[1].rate.f16", Ends: []string{"0.25"},
			Why: "two operands of each vector operation come from the L1 at 128 bytes per cycle"},
		{Field: "ddr.bandwidth", Ends: []string{"*0.7"}, Why: "seven tenths of the DRAM's rate are reached"},
		{Field: "gb.bandwidth", Ends: []string{"*0.5"}, Why: "L2 reads and writes share their ports"},
	},
}

// short matches the beginning of field names, which says little.
var short = regexp.MustCompile(`^core_types\[\d+\]\.`)

var rangeOf = regexp.MustCompile(`ESTIMATE.* range ([0-9.]+) to ([0-9]+(?:\.[0-9]+)?)`)

// estimates lists a machine's figures with a range in their comment, and its causes.
func estimates(d *hardware.Description, machine string) (list []estimate, err error) {
	for _, field := range d.Fields() {
		comment, err := d.Comment(field)
		if err != nil {
			return nil, err
		}
		given, err := d.Value(field)
		if err != nil {
			return nil, err
		}
		if m := rangeOf.FindStringSubmatch(comment); m != nil {
			unit := strings.TrimLeft(given, "0123456789.")
			list = append(list, estimate{Field: field, Given: given, Ends: []string{m[1] + unit, m[2] + unit}})
		}
	}
	for _, c := range causes[machine] {
		if c.Given, err = d.Value(c.Field); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// tried are the ratios of predicted and measured time, a row each, with an estimate at one end.
type tried struct {
	Estimate estimate  `json:"estimate"`
	End      string    `json:"end"` // "": the file's values; together: each estimate where its error is least
	Ratios   []float64 `json:"ratios"`
}

// together names the run with every estimate where it alone has the least error. It is a fit: no choice of ends is
// believed for it.
const together = "all, fitted"

// few is the largest batch that is tried, since each network is simulated a dozen times.
const few = 4

// planEstimates adds a cell for each machine that has estimates and networks, and says which rows it predicts: of each
// network the largest batch up to few, or the smallest.
func (s study) planEstimates(pl *harness.Plan, pick scheduler.Recipe) (machines []string, rows [][]row, err error) {
	at := map[string]int{}
	for _, r := range s.rows {
		if r.Kind != networks {
			continue
		}
		d, err := r.description()
		if err != nil {
			return nil, nil, err
		}
		list, err := estimates(d, r.Machine)
		if err != nil {
			return nil, nil, err
		}
		if len(list) == 0 {
			continue
		}
		i, ok := at[r.Machine]
		if !ok {
			i = len(rows)
			at[r.Machine] = i
			machines, rows = append(machines, r.Machine), append(rows, nil)
		}
		k := slices.IndexFunc(rows[i], func(x row) bool { return x.Case == r.Case })
		switch {
		case k < 0:
			rows[i] = append(rows[i], r)
		case r.Batch < rows[i][k].Batch && rows[i][k].Batch > few, r.Batch > rows[i][k].Batch && r.Batch <= few:
			rows[i][k] = r
		}
	}
	for i, name := range machines {
		_, hash := harness.Machine(name)
		pl.Cells = append(pl.Cells, harness.Cell{Key: "estimates-" + name, Label: "estimates of " + name,
			Inputs: struct {
				HardwareHash string           `json:"hardware_sha256"`
				Rows         []row            `json:"rows"`
				Causes       []estimate       `json:"causes"`
				Variant      scheduler.Recipe `json:"variant"`
			}{hash, rows[i], causes[name], pick},
			Run: func(ctx context.Context) (any, error) { return tryEstimates(ctx, name, rows[i], pick) }})
	}
	return machines, rows, nil
}

// tryEstimates predicts rows with the file's values, with each estimate at each end, and with all where each errs
// least.
func tryEstimates(ctx context.Context, machine string, rows []row, pick scheduler.Recipe) (out []tried, err error) {
	try := func(e estimate, end string, values map[string]string) (s sample, err error) {
		t := tried{Estimate: e, End: end}
		for i := range rows {
			d, err := rows[i].description()
			if err != nil {
				return s, err
			}
			for _, field := range d.Fields() {
				if v := values[field]; v != "" {
					if d, err = d.With(field, v); err != nil {
						return s, err
					}
				}
			}
			spec, err := d.Spec()
			if err != nil {
				return s, fmt.Errorf("%s of %s at %s: %w", e.Field, machine, end, err)
			}
			p, err := rows[i].simulate(ctx, spec, pick)
			if err != nil {
				return s, err
			}
			t.Ratios = append(t.Ratios, 0)
			if p.Error == "" {
				t.Ratios[i] = p.total() / rows[i].seconds()
				s.add(t.Ratios[i])
			}
		}
		out = append(out, t)
		return s, nil
	}
	given, err := try(estimate{}, "", nil)
	if err != nil {
		return nil, err
	}
	d, err := rows[0].description()
	if err != nil {
		return nil, err
	}
	list, err := estimates(d, machine)
	if err != nil {
		return nil, err
	}
	fitted := map[string]string{}
	for _, e := range list {
		least := given.spread()
		for _, end := range e.Ends {
			s, err := try(e, end, map[string]string{e.Field: end})
			if err != nil {
				return nil, err
			}
			if x := s.spread(); x < least {
				least, fitted[e.Field] = x, end
			}
		}
	}
	_, err = try(estimate{}, together, fitted)
	return out, err
}

// estimatesTable says how far each figure that is not published could move the predictions.
func estimatesTable(machines []string, rows [][]row, results []json.RawMessage) (t harness.Table, err error) {
	t = harness.Table{Name: "estimates", Title: "What figures that nobody publishes could explain",
		Columns: []harness.Column{
			{Name: "Accelerator", Text: true}, {Name: "Figure", Text: true}, {Name: "File"}, {Name: "Tried"},
			{Name: "Networks"}, {Name: "Error"}, {Group: "Predicted over measured", Name: "mean"},
			{Group: "Predicted over measured", Name: "least"},
			{Group: "Predicted over measured", Name: "of", Text: true, Screen: true}, {Name: "Why", Text: true, Screen: true}}}
	for i, name := range machines {
		var list []tried
		if err := json.Unmarshal(results[i], &list); err != nil {
			return t, fmt.Errorf("a result can't be read: %w", err)
		}
		for _, x := range list {
			var s sample
			least := -1
			for k, ratio := range x.Ratios {
				if ratio == 0 {
					continue
				}
				s.add(ratio)
				if least < 0 || ratio < x.Ratios[least] {
					least = k
				}
			}
			if least < 0 {
				continue
			}
			figure := short.ReplaceAllString(x.Estimate.Field, "")
			if figure == "" {
				figure, x.End = x.End, ""
			}
			t.Rows = append(t.Rows, []string{name, figure, x.Estimate.Given, x.End, fmt.Sprint(len(s.logs)),
				number(s.spread()), number(s.bias()), number(x.Ratios[least]), rows[i][least].Case, x.Estimate.Why})
		}
	}
	t.Notes = []string{fmt.Sprintf("Of each network the largest measured batch up to %d, or the smallest. First the file's "+
		"values, then one figure at an end of the range that the file gives, or slower by the cause named; last, each where "+
		"it alone errs least, which is a fit.", few)}
	return t, nil
}
