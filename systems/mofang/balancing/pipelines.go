package balancing

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/devicepipe"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
)

// simulated is a pipeline of equal stages.
type simulated struct {
	Stages       int                `json:"stages"`
	MicroBatches int                `json:"micro_batches"`
	Result       *devicepipe.Result `json:"result"`
	Rows         [][]stretch        `json:"rows"`
}

type stretch struct {
	Start    float64 `json:"start"`
	End      float64 `json:"end"`
	Backward bool    `json:"backward"`
	Name     string  `json:"name"`
}

// bubbles is Fig. 20 or 21: a pipeline of equal stages, with backward passes of twice the time.
func bubbles(name string, figure, stages, micro int, published float64) harness.Experiment {
	return harness.Single(name, fmt.Sprintf("a pipeline of %d stages and %d micro-batches", stages, micro),
		fmt.Sprintf("%s§3.4 and Fig. %d", paper, figure), [2]int{stages, micro},
		func(context.Context) simulated {
			s := &devicepipe.Schedule{Tasks: devicepipe.GPipe(stages, micro, true)}
			for i := range stages {
				s.Stages = append(s.Stages, devicepipe.Stage{Name: fmt.Sprint("stage ", i+1), ForwardSeconds: 1,
					BackwardSeconds: 2})
			}
			r := bail.Of(devicepipe.Simulate(s, devicepipe.Power{}))
			out := simulated{stages, micro, r, make([][]stretch, stages)}
			for _, run := range r.Runs {
				out.Rows[run.Stage] = append(out.Rows[run.Stage],
					stretch{run.Start, run.End, run.Backward, fmt.Sprint(run.MicroBatch)})
			}
			return out
		},
		func(d *harness.Document, v simulated) {
			formula := float64(v.Stages-1) / float64(v.MicroBatches+v.Stages-1)
			t := harness.Table{Title: "The pipeline, in units of a forward pass", Name: "pipeline",
				Columns: harness.Columns("Stages", "Micro-batches", "Time", "Fill", "Drain", "Idle %", "(p-1)/(b+p-1) %")}
			t.Add(v.Stages, v.MicroBatches, harness.Fixed(v.Result.Seconds, 0), harness.Fixed(v.Result.FillSeconds, 0),
				harness.Fixed(v.Result.DrainSeconds, 0), harness.Fixed(100*v.Result.IdleShare, 1),
				harness.Fixed(100*formula, 1))
			d.Table(t)
			d.Number("idle share", "%", 100*published, 100*v.Result.IdleShare)
			d.Given()
			line := plots.Timeline{}
			for i, row := range v.Rows {
				r := plots.TimelineRow{Name: fmt.Sprint("stage ", i+1)}
				for _, s := range row {
					b := plots.TimelineBar{Start: s.Start, End: s.End, Text: s.Name}
					if s.Backward {
						b.Colour = 1
					}
					r.Bars = append(r.Bars, b)
				}
				line.Rows = append(line.Rows, r)
			}
			f, err := plots.Timelines([]plots.Timeline{line}, "Time (forward passes)", 14, []string{"forward", "backward"})
			d.Figure("gantt", "Micro-batches over time", f, err)
		})
}

// microRow is the number of micro-batches for a number of stages, found in three ways.
type microRow struct {
	Stages    int     `json:"stages"`
	Bisection int     `json:"bisection"`
	Scan      int     `json:"scan"`
	Formula   int     `json:"formula"`
	Idle      float64 `json:"idle_share"`
}

func microBatches() harness.Experiment {
	const batch, device, most = 256, 64, 64
	return harness.Single("mofang-micro",
		"micro-batches for 2 to 64 stages by bisection, by trying all and by formula, and stages of Fig. 11",
		paper+"§2.4, Table 4 and Fig. 11", [3]int{batch, device, most},
		func(context.Context) (rows []microRow) {
			for p := 2; p <= most; p++ {
				r := microRow{Stages: p}
				r.Bisection, _ = mofang.MicroBatches(p, batch, mofang.Loss(batch, device))
				r.Scan = bail.Of(pipelining.MicroBatches(p, batch, device))
				r.Formula = bail.Of(pipelining.ClosedForm(p, batch, device))
				r.Idle = float64(p-1) / float64(r.Scan+p-1)
				rows = append(rows, r)
			}
			return rows
		},
		func(d *harness.Document, rows []microRow) {
			t := harness.Table{Title: fmt.Sprintf("Micro-batches of a batch of %d on devices that take %d at a time", batch,
				device), Name: "micro-batches",
				Columns: harness.Columns("Stages", "Bisection", "Scan", "Formula", "Idle %")}
			same := true
			for _, r := range rows {
				same = same && r.Bisection == r.Scan && r.Scan == r.Formula
				if r.Stages <= 8 || r.Stages&(r.Stages-1) == 0 {
					t.Add(r.Stages, r.Bisection, r.Scan, r.Formula, harness.Fixed(100*r.Idle, 1))
				}
			}
			d.Table(t)
			d.Claim(fmt.Sprintf("bisection, scan and formula for 2 to %d stages", most), "alike",
				map[bool]string{true: "alike", false: "not alike"}[same], harness.Agreement(same))
			d.Given()
			d.Claim("micro-batches for 3 stages (Fig. 21)", "6", fmt.Sprint(rows[1].Scan), harness.Agreement(rows[1].Scan == 6))
			d.Given()
			var layers []mofang.Layer
			var exact []pipelining.Layer
			for _, u := range []float64{.5, .4, .3, .4, .5, .4} {
				layers = append(layers, mofang.Layer{Seconds: 1, Utilization: u})
				exact = append(exact, pipelining.Layer{Seconds: 1, Utilization: u})
			}
			best, err := pipelining.Stages(exact, 1)
			if err != nil {
				d.Fail(err)
				return
			}
			greedy := mofang.Stages(layers)
			d.Note("Six layers with the utilisations of Fig. 11 make %d stages at most: %s exactly, %s by merging.",
				len(best.Stages), ranges(best.Stages), ranges(greedy))
		})
}

func ranges(stages [][2]int) string {
	parts := harness.Each(stages, func(s [2]int) string { return fmt.Sprintf("%d to %d", s[0]+1, s[1]) })
	return strings.Join(parts, " and ")
}
