package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// boundJSON is the answer of bound.
type boundJSON struct {
	Model    string `json:"model"`
	DType    string `json:"dtype"`
	Hardware string `json:"hardware"`
	*bound.Bound
	// AnyFormSeconds is of schedules with layers of any form or with attention as one operator, too.
	AnyFormSeconds float64 `json:"any_form_lower_bound_s"`
	// Fused is of the network with each attention as one operator; null: it has none.
	Fused *bound.Bound `json:"attention_fused"`
	// AnyDivisionSeconds is of whatever division of the batch or of the network between clusters; null: there is
	// none, as the whole batch takes other work per element than a share.
	AnyDivisionSeconds  *float64     `json:"any_division_lower_bound_s"`
	ThroughputPerSecond float64      `json:"throughput_bound_per_s"`
	Steady              *bound.Bound `json:"steady"`
}

func newBound() *cobra.Command {
	cmd := command("bound")
	takesModel(cmd)
	accelerator, read := addHardware(cmd), addNetwork(cmd)
	batch := addWholeBatch(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec := oneChip(*accelerator)
		machine := try(scheduler.LevelAuto.Machine(spec))
		from := read.options()
		net := try(network.Open(args[0], from))
		a := &boundJSON{Model: args[0], DType: from.DType.String(), Hardware: spec.Name}
		a.Bound, a.Fused = try2(certificate.Bounds(cmd.Context(), net, machine, batch.value))
		a.Steady = try(bound.Steady(cmd.Context(), net, machine, batch.value))
		a.AnyFormSeconds = try(bound.AnyForm(cmd.Context(), net, machine, batch.value)).Seconds
		if any, err := bound.AnyDivision(cmd.Context(), net, machine, batch.value); err == nil {
			a.AnyDivisionSeconds = &any
		} else if cmd.Context().Err() != nil {
			return err
		}
		a.ThroughputPerSecond = float64(a.Batch) / a.Seconds
		return emit(cmd, a, func(b *bytes.Buffer) { writeBound(b, a) })
	}
	return cmd
}

func writeBound(b *bytes.Buffer, a *boundJSON) {
	row(b, "bound", "%s (%s) on %s, single batch of %d", a.Model, a.DType, a.Hardware, a.Batch)
	if least := a.AnyDivisionSeconds; least != nil {
		row(b, "any division", "at least %s, at most %s", duration(*least), perSecond(float64(a.Batch)/(*least)))
	}
	row(b, "even split", "at least %s, at most %s", duration(a.Seconds), perSecond(a.ThroughputPerSecond))
	row(b, "limited by", "%s (%s)", a.Resource, a.Term)
	rowOf(b, "made of", partsText(a.Bound))
	rowWrapped(b, "valid for", a.Scope)
	writeEstimates(b, a.Estimates)
	row(b, "any fusion", "at least %s", duration(a.AnyFormSeconds))
	if a.Fused != nil {
		rowWrapped(b, "fused", fmt.Sprintf("at least %s with each attention as one operator: %s (%s)",
			duration(a.Fused.Seconds), a.Fused.Resource, a.Fused.Term))
	}
	rowWrapped(b, "steady", fmt.Sprintf("at least %s for each of many batches, at most %s (steady state): %s (%s)",
		duration(a.Steady.Seconds), perSecond(float64(a.Batch)/a.Steady.Seconds), a.Steady.Resource, a.Steady.Term))
	steady := map[string]string{}
	for _, t := range a.Steady.Terms {
		steady[t.Name+t.Resource] = duration(t.Seconds)
	}
	writeTerms(b, "<term|<resource|at least|steady", a.Terms, steady)
}

// writeTerms prints columns of terms that limit something.
func writeTerms(b *bytes.Buffer, columns string, terms []bound.Term, steady map[string]string) {
	list(b, "", columns, terms, func(_ int, t bound.Term) []any {
		if t.Seconds == 0 {
			return nil
		}
		return []any{t.Name, t.Resource, duration(t.Seconds), steady[t.Name+t.Resource]}[:strings.Count(columns, "|")+1]
	})
}

// figures matches the figures behind the name of a part of a machine.
var figures = regexp.MustCompile(`( \(| [0-9]| unlimited|:).*`)

// writeEstimates names the parts of a machine whose figures a bound has at their fast ends, if there are any.
func writeEstimates(b *bytes.Buffer, list []string) {
	if len(list) > 0 {
		parts := figures.ReplaceAllString(strings.Join(list, "\n"), "") // "DDR 16GiB, ..", "unit mme (matrix): .."
		rowWrapped(b, "estimates", "at the fast ends of their ranges: "+strings.ReplaceAll(parts, "\n", ", ")+" (figures: --json)")
	}
}

// partsText lists the parts of a bound, as shares of it.
func partsText(b *bound.Bound) []string {
	return harness.Each(b.Parts, func(p bound.Part) string { return p.Name + " " + percent(p.Seconds/b.Seconds) })
}

func newCertify() *cobra.Command {
	cmd := command("certify")
	cmd.Args = oneArg("CERTIFICATE.json", "give a file that 'dsasched best MODEL --certificate FILE' has written")
	cmd.ValidArgsFunction = completeFile("json")
	accelerator := addScheduleHardware(cmd)
	cmd.Flags().Lookup("hardware").Usage =
		"built-in accelerator or YAML `file` (default: the one that the certificate names)"
	name := cmd.Flags().String("model", "",
		"built-in network or ONNX `file` (default: the one that the certificate names)")
	completeFlag(cmd, "model", completeModel)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f := try(certificate.Load(args[0]))
		v, err := f.Check(cmd.Context(), args[0], *accelerator, *name)
		if *name == "" && errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: --model says where the network is now", err)
		}
		if err != nil {
			return err
		}
		return emit(cmd, v, func(b *bytes.Buffer) { writeVerdict(b, v) })
	}
	return cmd
}

func writeVerdict(b *bytes.Buffer, v *certificate.Verdict) {
	row(b, "certificate", "%s on %s, batch %d: holds", v.Model, v.Hardware, v.Batch)
	form := ""
	if text := v.Form.Text(); text != "" {
		form = ", " + text
	}
	row(b, "network", "%s, operators %s%s, fingerprint %s", v.DType, v.Grain, form, v.NetworkFingerprint)
	if len(v.Dims) > 0 {
		rowOf(b, "dimensions", harness.Each(v.Dims, func(d certificate.Dimension) string {
			return fmt.Sprintf("%s = %d", d.Name, d.Size)
		}))
	}
	accelerator := "built in"
	if v.HardwareFile != "" {
		accelerator = "of " + v.HardwareFile
	}
	level := map[string]string{"lb": "L1", "gb": "LLB"}[v.Level]
	row(b, "accelerator", "%s, %s, fingerprint %s, instances in the %s", v.Hardware, accelerator,
		v.HardwareFingerprint, level)
	row(b, "chunks", "%s", strings.Trim(fmt.Sprint(v.Chunks), "[]"))
	row(b, "achieved", "%s, %s", duration(v.LatencySeconds), perSecond(v.ThroughputPerSecond))
	row(b, "bound", "%s: %s (%s)", duration(v.CertifiedBoundSeconds), v.Resource, v.Term)
	rowWrapped(b, "valid for", v.Scope)
	writeEstimates(b, v.Estimates)
	rowOf(b, "made of", partsText(&bound.Bound{Seconds: v.CertifiedBoundSeconds, Parts: v.Parts}))
	row(b, "gap", "%s of the bound: schedules of that kind gain at most %s of the time", percent(v.Gap),
		percent(v.Gap/(1+v.Gap)))
	rowWrapped(b, "limited by", v.LimitedBy)
	if t := v.GreedyThroughputPerSecond; t != nil {
		row(b, "cross-layer", "%s; %.3f times as fast here", perSecond(*t), v.ThroughputPerSecond / *t)
	}
	writeTerms(b, "<term|<resource|at least", v.Terms, nil)
}
