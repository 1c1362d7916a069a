package roofline

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
)

// features is the number of features of a token in all heads of an attention.
const features = 1024

// attentions are those of so many sequences, alone.
func attentions() (list []zoo.Attention) {
	for _, width := range []int64{64, 128} {
		for _, causal := range []bool{false, true} {
			for tokens := int64(512); tokens <= 8192; tokens *= 2 {
				list = append(list, zoo.Attention{Heads: features / width, Tokens: tokens, Width: width, Causal: causal})
			}
		}
	}
	return list
}

// attended is an attention on a machine.
type attended struct {
	zoo.Attention
	Batch     int64   `json:"batch"`
	Simulated float64 `json:"simulated_s,omitempty"` // 0: it can't run
	Error     string  `json:"error,omitempty"`
	Bound     float64 `json:"certified_lower_bound_s"`
	Term      string  `json:"term"`
	Limited   string  `json:"limited_by,omitempty"`
	// Bytes of results other than the attention's that the schedule has in the LLB and in the DDR, and bytes that cross
	// the DDR over those of queries, keys, values and results.
	LLB    int64   `json:"scores_llb_bytes"`
	DDR    int64   `json:"scores_ddr_bytes"`
	Passes float64 `json:"ddr_passes,omitempty"`
}

// measureAttentions is the cell of a machine: a sequence for each cluster.
func measureAttentions(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe,
	all []zoo.Attention) ([]attended, error) {
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		return nil, err
	}
	dt := harness.Precision(spec)
	var list []attended
	for _, a := range all {
		x := attended{Attention: a, Batch: int64(machine.Clusters)}
		net := network.FuseAttention(network.Network{Name: "attention", Graph: func(batch int64) (*model.Graph, error) {
			return a.Build(zoo.Options{Batch: batch, DType: dt})
		}})
		b, err := bound.Cold(ctx, net, machine, x.Batch)
		if err != nil {
			return nil, err
		}
		x.Bound, x.Term = harness.Round(b.Seconds), b.Term
		made, err := scheduler.Run(ctx, net, spec, x.Batch, recipe, scheduler.Options{Chunk: 1})
		switch {
		case harness.DoesNotFit(err):
			x.Error = err.Error()
		case err != nil:
			return nil, fmt.Errorf("%+v on %s: %w", a, spec.Name, err)
		default:
			x.Simulated, x.Limited = harness.Round(made.LatencySeconds()), made.LimitText()
			s, needed := made.Schedule, int64(0)
			for i := range s.Values {
				v := &s.Values[i]
				role := s.Graph.Tensor(v.Tensor).Role
				switch {
				case role == model.Input || s.Graph.IsOutput(v.Tensor):
					needed += v.Bytes
				case v.Level == schedule.LLB:
					x.LLB += v.Bytes
				case v.Level == schedule.DDR:
					x.DDR += v.Bytes
				}
			}
			x.Passes = harness.Round(float64(made.Sim.Dynamic.AccessBytes[isa.DDR]) / float64(needed*x.Batch))
		}
		list = append(list, x)
	}
	return list, nil
}

// attentionTables are the attentions of all machines, and their means.
func attentionTables(machines []string, cells [][]attended) (summary, all harness.Table) {
	summary = harness.Table{Name: "attention", Title: "Attention alone over its bound: geometric mean and worst",
		Columns: harness.Columns("<Accelerator", "n", "all tokens|mean|worst", "causal|mean|worst",
			"bytes of scores|LLB|DDR")}
	all = harness.Table{Name: "attentions", Title: "All attentions", Columns: harness.Columns("<Accelerator",
		"Tokens", "Wide", "<Causal", "Batch", "us|"+variant, "us|bound", "ratio", "DDR passes", "<bound by",
		"<limited by")}
	for m, name := range machines {
		var full, causal ratios
		var llb, ddr int64
		for _, x := range cells[m] {
			over, mask := &full, "no"
			if x.Causal {
				over, mask = &causal, "yes"
			}
			over.add(x.Simulated, x.Bound)
			llb, ddr = llb+x.LLB, ddr+x.DDR
			row := []string{name, fmt.Sprint(x.Tokens), fmt.Sprint(x.Width), mask, fmt.Sprint(x.Batch), "–",
				harness.Significant(x.Bound * 1e6), "–", "–", x.Term, x.Limited}
			if x.Simulated > 0 {
				row[5], row[7] = harness.Significant(x.Simulated*1e6), harness.Fixed(x.Simulated/x.Bound, 2)
				row[8] = harness.Fixed(x.Passes, 2)
			}
			all.Add(row)
		}
		row := []string{name, fmt.Sprint(len(cells[m]))}
		row = append(append(row, full.text()...), causal.text()...)
		summary.Add(row, llb, ddr)
	}
	summary.Notes = []string{
		fmt.Sprintf("One sequence for each cluster, 512 to 8192 tokens of %d features in heads that are 64 and 128 "+
			"wide, with and without a causal mask. Bytes of scores: of results between the products that the schedule has in the LLB or "+
			"the DDR. DDR passes: bytes that cross the DDR over those of queries, keys, values and results.", features)}
	return summary, all
}
