package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/plots"
)

// inspectJSON is the structure of a network, and the pictures written.
type inspectJSON struct {
	*structure.Report
	Capacities []capacityJSON        `json:"capacities"` // of --hardware
	Files      []experiments.Written `json:"files"`      // written; the figure
}

type capacityJSON struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

func newInspect() *cobra.Command {
	cmd := command("inspect")
	takesModel(cmd)
	batch, read := addOwnBatch(cmd), addNetwork(cmd)
	f := cmd.Flags()
	blocks := f.Bool("blocks", false, "print the blocks of the stages too")
	plot := addFigure(cmd, "plot", "draw the memory in use into this `file`")
	accelerator := f.String("hardware", "", "with --plot: built-in accelerator or YAML `file` whose capacities are drawn")
	completeFlag(cmd, "hardware", completeHardware)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.Changed("hardware") && *accelerator == "":
			return usagef("--hardware is empty, expected a name")
		case *accelerator != "" && plot.name == "":
			return usagef("--hardware needs --plot: it adds to the figure")
		}
		opt := read.options()
		raw := try(network.Raw(args[0], batch.value, opt))
		r, n := try2(structure.Inspect(args[0], raw, schedule.ExecutionOrder))
		r.DType = opt.DType.String()
		a := &inspectJSON{r, []capacityJSON{}, []experiments.Written{}}
		if plot.name != "" {
			fig := a.figure(n, batch.value, *accelerator)
			bytes := try(writeFile(plot.name, func(w io.Writer) error { return writeFigure(w, "--plot", plot.name, fig, nil) }))
			a.Files = append(a.Files, experiments.Written{Path: plot.name, Bytes: bytes})
		}
		return emit(cmd, a, func(b *bytes.Buffer) { a.write(b, *blocks) })
	}
	return cmd
}

// figure is the memory in use, with the capacities of an accelerator unless that is "".
func (a *inspectJSON) figure(n *structure.Network, batch int64, accelerator string) *plots.Figure {
	m := plots.Memory{Title: a.Model, LiveBytes: n.LiveBytes}
	if network.IsFile(a.Model) {
		m.Title = strings.TrimSuffix(filepath.Base(a.Model), filepath.Ext(a.Model))
	} else {
		batch = max(1, batch)
	}
	m.Title = shorten(m.Title, 32)
	if batch > 0 { // of a file it may be anything, or nothing
		m.Title += fmt.Sprintf(", batch %d", batch)
	}
	m.Title += ", " + a.DType
	for _, s := range n.Stages {
		m.Spans = append(m.Spans, plots.Span{Name: s.Name, First: n.Blocks[s.First].First, End: n.Blocks[s.End-1].End})
	}
	if accelerator != "" {
		spec := try(hardware.Load(accelerator))
		share := min(int64(spec.Clusters), max(1, batch)) // the clusters that the batch is divided over
		lbs, llb := "LBs of a cluster", "LLB"
		if share > 1 {
			lbs, llb = fmt.Sprintf("LBs of %d clusters", share), "their LLBs"
		}
		if spec.L1 != nil {
			a.Capacities = append(a.Capacities, capacityJSON{lbs, share * int64(spec.L1TotalBytes())})
		}
		if spec.LLB != nil {
			a.Capacities = append(a.Capacities, capacityJSON{llb, share * int64(spec.LLB.SizeBytes)})
		}
		for i, c := range a.Capacities {
			if i > 0 && a.Capacities[i-1].Bytes == c.Bytes {
				m.Capacities[0].Name = fmt.Sprintf("%s, %s: %s each", strings.Replace(a.Capacities[i-1].Name, "LBs", "L1s", 1),
					c.Name, size(c.Bytes))
				continue // one line would cover the other
			}
			m.Capacities = append(m.Capacities,
				plots.Capacity{Name: strings.Replace(c.Name, "LBs", "L1s", 1) + ": " + size(c.Bytes), Bytes: c.Bytes})
		}
	}
	return try(plots.MemoryInUse(m))
}

func (a *inspectJSON) write(b *bytes.Buffer, blocks bool) {
	row(b, "model", "%s, %s", a.Model, a.DType)
	row(b, "parameters", "%s (%s)", count(a.Params), size(a.ParamBytes))
	row(b, "work", "%s, %s vector operations", unit(float64(a.MACs), "MAC"), count(a.VectorOps))
	row(b, "operators", "%d, %d after simplification", a.OperatorsBefore, a.OperatorsAfter)
	row(b, "layers", "%d: %d with a matrix operator, %d with a reduction, %d light", a.Layers.Count, a.Layers.Matrix,
		a.Layers.Reduction, a.Layers.Light)

	for _, f := range a.Files {
		row(b, "written", "%s (%s)", printable(f.Path), size(f.Bytes))
	}

	if len(a.Stages) > 0 {
		list(b, "Stages", "<stage|blocks|<types"+useHeader, a.Stages, func(_ int, s structure.StageReport) []any {
			return append([]any{s.Name, s.BlockCount, s.Types}, useCells(s.UseReport)...)
		})
	}
	if blocks && len(a.Blocks) > 0 {
		list(b, "Blocks", "<stage|block|<type"+useHeader, a.Blocks, func(_ int, k structure.BlockReport) []any {
			return append([]any{k.Stage, k.Index, k.Type}, useCells(k.UseReport)...)
		})
		words := []string{}
		for _, t := range a.BlockTypes {
			if t.Count > 1 {
				words = append(words, fmt.Sprintf("%s x%d", t.Name, t.Count))
			}
		}
		if len(words) > 0 {
			fmt.Fprintf(b, "  repeated: %s\n", strings.Join(words, ", "))
		}
	}

	fmt.Fprintf(b, "\nSimplification\n")
	var rows [][]string
	var idle []string
	for _, p := range a.Passes {
		if p.Changes == 0 && p.OperatorsRemoved == 0 {
			idle = append(idle, p.Pass)
			continue
		}
		rows = append(rows, []string{p.Pass, fmt.Sprint(p.Changes), fmt.Sprint(p.OperatorsRemoved)})
	}
	if len(rows) > 0 {
		writeTable(b, "lrr", []string{"pass", "changes", "operators removed"}, rows)
	}
	if len(idle) > 0 {
		fmt.Fprintf(b, "  nothing to do for %s\n", strings.Join(idle, ", "))
	}

	list(b, "Operators", "<kind|<class|before|after", a.Kinds,
		func(_ int, k structure.KindReport) []any { return []any{k.Kind, k.Class, k.Before, k.After} })

	for _, s := range []struct {
		title   string
		tensors []structure.TensorReport
	}{
		{"Inputs", a.Inputs}, {"Outputs", a.Outputs},
		{"Largest activations", a.LargestActivations}, {"Largest constants", a.LargestConstants},
	} {
		if len(s.tensors) > 0 {
			list(b, s.title, "<name|<shape|<type|size", s.tensors, func(_ int, t structure.TensorReport) []any {
				return []any{shorten(t.Name, 48), t.Shape, t.DType, size(t.Bytes)}
			})
		}
	}
}

// useHeader names the columns of cells.
const useHeader = "|layers|ops|<output|peak live|share|params|MACs"

func useCells(u structure.UseReport) []any {
	output := "-"
	if u.Output != nil {
		output = u.Output.Shape.String()
	}
	return []any{u.LayerCount, u.Operators, output, size(u.PeakBytes), percent(u.PeakShare), count(u.Params),
		count(u.MACs)}
}
