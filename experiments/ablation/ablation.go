package ablation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/scheduler"
)

// ablation is the paper's performance breakdown (§5.3, Fig. 15): what each idea is
// worth, on networks of which the paper gives more than an average.
type ablation struct {
	hardware string
	networks []ablationNetwork
	variants []scheduler.Recipe
}

type ablationNetwork struct {
	label string // of the published configuration; "" if there is none
	model string // of the zoo
	batch int64
	unit  string
	// The paper's batches per cluster, for a kernel per layer and for GraphTurbo.
	layerChunk, chunk int64
}

// exactSteps are the exact variants beside the paper's.
var exactSteps = []string{"exact-order", "exact-all"}

func fullAblation() ablation {
	a := ablation{hardware: "stcp920", variants: scheduler.Table()}
	for _, v := range scheduler.Exact() {
		if slices.Contains(exactSteps, v.Name) {
			a.variants = append(a.variants, v)
		}
	}
	for _, n := range []struct{ label, model string }{{"A", "resnet50"}, {"B", "bert-128"}} {
		p := literature.ModelOf(n.label)
		a.networks = append(a.networks, ablationNetwork{
			label: n.label, model: n.model, batch: p.BatchSize, unit: p.Unit,
			layerChunk: p.TVMBatchesPerCluster, chunk: p.GraphTurboBatchesPerCluster,
		})
	}
	return a
}

func (a ablation) experiment() harness.Experiment {
	return harness.Experiment{
		Name:        "ablation",
		Description: "what each idea of GraphTurbo is worth on ResNet-50 and BERT-128",
		Paper:       "GraphTurbo (OSDI 2023), §5.3 and Fig. 15, with Table 1, Table 3 and Figs. 14, 16",
		Plan:        a.plan,
		Heuristic:   a.heuristics().plan,
	}
}

// heuristics is the same without the methods that look for optima.
func (a ablation) heuristics() ablation {
	a.variants = slices.DeleteFunc(slices.Clone(a.variants), func(v scheduler.Recipe) bool { return harness.IsExactVariant(v.Name) })
	return a
}

func (a ablation) plan() (*harness.Plan, error) {
	spec, err := hardware.Load(a.hardware)
	if err != nil {
		return nil, err
	}
	specHash, err := harness.Hash(spec)
	if err != nil {
		return nil, err
	}
	p := &harness.Plan{}
	for _, policy := range []harness.ChunkPolicy{harness.Tuned, harness.PaperChunks} {
		for _, n := range a.networks {
			src, err := harness.OpenNetwork(n.model)
			if err != nil {
				return nil, err
			}
			for _, v := range a.variants {
				chunk := int64(0)
				if policy == harness.PaperChunks {
					chunk = n.chunk
					if v.Groups == scheduler.LayerKernels {
						chunk = n.layerChunk
					}
				}
				c, err := harness.RowCell(src, spec, n.batch, chunk, v, policy, n.unit)
				if err != nil {
					return nil, err
				}
				p.Cells = append(p.Cells, c)
			}
		}
	}
	p.Report = func(results []json.RawMessage) (*harness.Report, error) {
		rows, err := harness.DecodeRows(results)
		if err != nil {
			return nil, err
		}
		return a.report(rows, metadata{hardwareHash: specHash, version: harness.ProgramVersion()})
	}
	return p, nil
}

// ratedRow is a row with its speedups, which other rows are needed for.
type ratedRow struct {
	harness.Row
	OverFirst float64 `json:"speedup_over_tvm"`
	// OverPrevious is over the step before, of an exact variant over the last step; 0:
	// the first.
	OverPrevious float64 `json:"speedup_over_previous,omitempty"`
}

func rate(rows []harness.Row) []ratedRow {
	var list []ratedRow
	for _, g := range harness.GroupRows(rows) {
		for i, r := range g {
			x := ratedRow{Row: r, OverFirst: harness.Round(r.ThroughputPerSecond / g[0].ThroughputPerSecond)}
			if i > 0 {
				before := i - 1
				for before > 0 && harness.IsExactVariant(g[before].Variant) {
					before-- // exact variants are alternatives to the last step, not steps
				}
				x.OverPrevious = harness.Round(r.ThroughputPerSecond / g[before].ThroughputPerSecond)
			}
			list = append(list, x)
		}
	}
	return list
}

// ablationNotes are what a reader of the tables must know.
var ablationNotes = []string{
	"Tensor writes are the stores of output tensors in the program of one cluster: a loop over the batch counts once, instances one by one, as in the paper's Table 3. Executed are those of all clusters and all rounds of the loop.",
	"Utilisation is useful arithmetic over what the units could do in that time (the chip's peak).",
	"The variant tvm is a kernel per layer on the same simulated chip, not the code of TVM.",
}

// metadata is what a report says about how it was made.
type metadata struct {
	hardwareHash string
	version      string // of the program
}

func (a ablation) report(rows []harness.Row, meta metadata) (*harness.Report, error) {
	rated := rate(rows)
	compared := a.compare(rows)
	steps := slices.DeleteFunc(slices.Clone(rows), func(r harness.Row) bool { return harness.IsExactVariant(r.Variant) })
	mechanism := CheckMechanism(steps)
	notes := slices.Clone(ablationNotes)
	if len(steps) < len(rows) {
		notes = append(notes, "Variants exact-* are alternatives to cross-layer: their speedup over the previous one is over cross-layer.")
	}
	for _, r := range rows {
		for _, n := range r.Notes {
			if n = fmt.Sprintf("%s, batch %d: %s", r.Model, r.Batch, n); !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}

	tables := variantTables(rated)
	published := comparisonTable(compared)
	lost := timeTable(rows)

	var text bytes.Buffer
	for _, t := range append(slices.Clone(tables), published) {
		if err := t.WriteText(&text); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(&text, "Does the mechanism come out?")
	for _, m := range mechanism {
		fmt.Fprintf(&text, "- %s\n", m)
	}
	fmt.Fprintln(&text, "\nNotes")
	for _, n := range notes {
		fmt.Fprintf(&text, "- %s\n", n)
	}

	e := a.experiment()
	var md, tex strings.Builder
	fmt.Fprintf(&md, "# %s: %s\n\nReproduces: %s. Accelerator: %s (SHA-256 of its description: %s). Program: dsasched %s.\n\n",
		e.Name, e.Description, e.Paper, a.hardware, meta.hardwareHash, meta.version)
	tex.WriteString("% Needs \\usepackage{booktabs}.\n")
	for _, n := range notes {
		fmt.Fprintf(&tex, "%% %s\n", n)
	}
	for _, t := range tables {
		md.WriteString(t.Markdown())
		tex.WriteString("\n" + t.Latex())
	}
	tex.WriteString("\n" + lost.Latex() + "\n" + published.Latex())
	md.WriteString(lost.Markdown())
	md.WriteString(published.Markdown())
	md.WriteString("## Does the mechanism come out?\n\n")
	for _, m := range mechanism {
		fmt.Fprintf(&md, "- %s\n", harness.EscapeMarkdown(m.String()))
	}
	md.WriteString("\n## Notes\n\n")
	for _, n := range notes {
		fmt.Fprintf(&md, "- %s\n", harness.EscapeMarkdown(n))
	}
	md.WriteString("\n## Figures\n\n![Throughput by variant](throughput.png)\n\n![Utilisation of MME and VME by variant](utilization.png)\n")

	data, err := a.json(rated, compared, mechanism, notes, meta)
	if err != nil {
		return nil, err
	}
	rep := &harness.Report{Text: text.String(), Files: []harness.File{
		{Name: "ablation.csv", Data: ablationCSV(rated)},
		{Name: "ablation.json", Data: data},
		{Name: "ablation.md", Data: []byte(md.String())},
		{Name: "ablation.tex", Data: []byte(tex.String())},
		{Name: "published.csv", Data: comparisonCSV(compared)},
		{Name: "published.md", Data: []byte(published.Markdown())},
		{Name: "tuning.csv", Data: tuningCSV(rows)},
	}}
	figures, err := a.figures(steps)
	if err != nil {
		return nil, err
	}
	rep.Files = append(rep.Files, figures...)
	return rep, nil
}

// json returns everything in one file.
func (a ablation) json(rows []ratedRow, compared []comparison, mechanism []Mechanism, notes []string, meta metadata) ([]byte, error) {
	e := a.experiment()
	type hardwareInfo struct {
		Name string `json:"name"`
		Hash string `json:"sha256"`
	}
	type mechanismInfo struct {
		Model    string              `json:"model"`
		Policy   harness.ChunkPolicy `json:"chunk_policy"`
		Fall     bool                `json:"ddr_writes_fall"`
		Steps    bool                `json:"every_step_helps"`
		Sentence string              `json:"sentence"`
	}
	var infos []mechanismInfo
	for _, m := range mechanism {
		all := !slices.ContainsFunc(m.Steps, func(s Step) bool { return !s.Helps() })
		infos = append(infos, mechanismInfo{m.Model, m.ChunkPolicy, m.WritesFall, all, m.String()})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Experiment  string          `json:"experiment"`
		Description string          `json:"description"`
		Paper       string          `json:"paper"`
		Program     string          `json:"program_version"`
		Hardware    hardwareInfo    `json:"hardware"`
		Notes       []string        `json:"notes"`
		Mechanism   []mechanismInfo `json:"mechanism"`
		Rows        []ratedRow      `json:"rows"`
		Published   []comparison    `json:"published"`
	}{e.Name, e.Description, e.Paper, meta.version, hardwareInfo{a.hardware, meta.hardwareHash}, notes, infos, rows, compared})
	return b.Bytes(), err
}

func ablationCSV(rows []ratedRow) []byte {
	out := [][]string{{
		"model", "hardware", "batch", "variant", "throughput_per_s", "latency_s", "kernels",
		"ddr_tensor_writes", "llb_tensor_writes", "l1_tensor_writes", "mme_utilization", "vme_utilization",
		"chunk_policy", "batches_per_cluster", "throughput_unit", "speedup_over_tvm", "speedup_over_previous",
		"kernels_dynamic", "ddr_tensor_writes_dynamic", "llb_tensor_writes_dynamic", "l1_tensor_writes_dynamic",
		"ddr_moved_bytes", "llb_moved_bytes", "l1_moved_bytes", "llb_peak_bytes", "l1_peak_bytes_per_core",
		"mme_busy_share", "vme_busy_share", "compute_s", "move_s", "launch_s", "idle_s", "lower_bound_s", "notes",
	}}
	for _, r := range rows {
		previous := ""
		if r.OverPrevious != 0 {
			previous = harness.Exact(r.OverPrevious)
		}
		out = append(out, []string{
			r.Model, r.Hardware, harness.Count(r.Batch), r.Variant, harness.Exact(r.ThroughputPerSecond), harness.Exact(r.LatencySeconds), harness.Count(r.Kernels),
			harness.Count(r.Writes.DDR), harness.Count(r.Writes.LLB), harness.Count(r.Writes.L1), harness.Exact(r.MMEUtilization), harness.Exact(r.VMEUtilization),
			string(r.ChunkPolicy), harness.Count(r.BatchesPerCluster), r.Unit, harness.Exact(r.OverFirst), previous,
			harness.Count(r.KernelsDynamic), harness.Count(r.WritesDynamic.DDR), harness.Count(r.WritesDynamic.LLB), harness.Count(r.WritesDynamic.L1),
			harness.Count(r.MovedBytes.DDR), harness.Count(r.MovedBytes.LLB), harness.Count(r.MovedBytes.L1), harness.Count(r.PeakLLBBytes), harness.Count(r.PeakL1CoreBytes),
			harness.Exact(r.MMEBusyShare), harness.Exact(r.VMEBusyShare), harness.Exact(r.Time.ComputeSeconds), harness.Exact(r.Time.MoveSeconds),
			harness.Exact(r.Time.LaunchSeconds), harness.Exact(r.Time.IdleSeconds), harness.Exact(r.LowerBoundSeconds), strings.Join(r.Notes, "; "),
		})
	}
	return harness.CSVBytes(out)
}

func tuningCSV(rows []harness.Row) []byte {
	out := [][]string{{"model", "hardware", "batch", "variant", "batches_per_cluster", "throughput_per_s", "throughput_unit", "best", "error"}}
	for _, r := range rows {
		for _, t := range r.Tried {
			throughput, best := "", "no"
			if t.Error == "" {
				throughput = harness.Exact(t.ThroughputPerSecond)
			}
			if t.BatchesPerCluster == r.BatchesPerCluster {
				best = "yes"
			}
			out = append(out, []string{r.Model, r.Hardware, harness.Count(r.Batch), r.Variant, harness.Count(t.BatchesPerCluster), throughput, r.Unit, best, t.Error})
		}
	}
	return harness.CSVBytes(out)
}

// variantTables are a table for each network and policy.
func variantTables(rows []ratedRow) []harness.Table {
	var plain []harness.Row
	for _, r := range rows {
		plain = append(plain, r.Row)
	}
	var tables []harness.Table
	i := 0
	for _, g := range harness.GroupRows(plain) {
		f := g[0]
		t := harness.Table{
			Title: fmt.Sprintf("%s, batch %d, on %s: %s", f.Model, f.Batch, f.Hardware, harness.PolicyWords(f.ChunkPolicy)),
			Label: fmt.Sprintf("tab:ablation-%s-%s", f.Model, f.ChunkPolicy),
			Columns: []harness.Column{
				{Name: "Variant", Text: true},
				{Name: "Batches\nper\ncluster"},
				{Name: "Throughput\n(" + f.Unit + ")"},
				{Name: "Latency\n(ms)"},
				{Group: "Speedup (×)\nover", Name: "TVM"},
				{Group: "Speedup (×)\nover", Name: "previous"},
				{Name: "Kernels"},
				{Group: "Tensor writes\nDDR/LLB/L1", Name: "in program"},
				{Group: "Tensor writes\nDDR/LLB/L1", Name: "executed"},
				{Group: "Utilisation\n(%)", Name: "MME"},
				{Group: "Utilisation\n(%)", Name: "VME"},
			},
		}
		for range g {
			r := rows[i]
			i++
			previous := "–"
			if r.OverPrevious != 0 {
				previous = harness.Fixed(r.OverPrevious, 2)
			}
			t.Rows = append(t.Rows, []string{
				r.Variant, harness.Count(r.BatchesPerCluster), harness.Significant(r.ThroughputPerSecond), harness.Fixed(1e3*r.LatencySeconds, 2),
				harness.Fixed(r.OverFirst, 2), previous, harness.Count(r.Kernels),
				r.Writes.String(), r.WritesDynamic.String(), harness.Percent(r.MMEUtilization), harness.Percent(r.VMEUtilization),
			})
		}
		tables = append(tables, t)
	}
	return tables
}

// timeTable tells where the time goes.
func timeTable(rows []harness.Row) harness.Table {
	t := harness.Table{
		Title: "Where the time goes",
		Label: "tab:ablation-time",
		Columns: []harness.Column{
			{Name: "Network", Text: true}, {Name: "Batches per cluster", Text: true}, {Name: "Variant", Text: true},
			{Group: "Time (ms)", Name: "computing"}, {Group: "Time (ms)", Name: "waiting for moves"}, {Group: "Time (ms)", Name: "launching"},
			{Group: "Time (ms)", Name: "idle"}, {Group: "Time (ms)", Name: "total"}, {Group: "Time (ms)", Name: "lower bound"},
		},
		Notes: []string{"Each moment counts once, for the first of these that applies; means of the clusters. The lower bound is what no execution of the same program can beat."},
	}
	ms := func(s float64) string { return harness.Fixed(1e3*s, 2) }
	for _, r := range rows {
		policy := "best"
		if r.ChunkPolicy == harness.PaperChunks {
			policy = "paper's"
		}
		t.Rows = append(t.Rows, []string{r.Model, fmt.Sprintf("%d (%s)", r.BatchesPerCluster, policy), r.Variant,
			ms(r.Time.ComputeSeconds), ms(r.Time.MoveSeconds), ms(r.Time.LaunchSeconds), ms(r.Time.IdleSeconds),
			ms(r.LatencySeconds), ms(r.LowerBoundSeconds)})
	}
	return t
}

// Experiment_ablation is the performance breakdown on two networks.
func Experiment() harness.Experiment { return fullAblation().experiment() }
