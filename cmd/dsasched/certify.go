package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/internal/certificate"
)

func newCertify() *cobra.Command {
	cmd := command("certify")
	cmd.Args = oneArg("CERTIFICATE.json",
		"give a file that 'dsasched best MODEL --certificate FILE' has written")
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
		rowOf(b, "dimensions", each(v.Dims, func(d certificate.Dimension) string {
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
	rowWrapped(b, "of all", v.Scope)
	rowOf(b, "made of", partsText(&bound.Bound{Seconds: v.CertifiedBoundSeconds, Parts: v.Parts}))
	row(b, "gap", "%s of the bound, so that at most %s of the time can be gained", percent(v.Gap),
		percent(v.Gap/(1+v.Gap)))
	rowWrapped(b, "limited by", v.LimitedBy)
	if t := v.GreedyThroughputPerSecond; t != nil {
		row(b, "greedy", "%s; %.3f times as fast here", perSecond(*t), v.ThroughputPerSecond / *t)
	}
	list(b, "", "<term|<resource|at least", v.Terms,
		func(_ int, t bound.Term) []any { return []any{t.Name, t.Resource, duration(t.Seconds)} })
}
