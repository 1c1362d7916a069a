package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

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
		p := publishedModel(n.label)
		a.networks = append(a.networks, ablationNetwork{
			label: n.label, model: n.model, batch: p.BatchSize, unit: p.Unit,
			layerChunk: p.TVMBatchesPerCluster, chunk: p.GraphTurboBatchesPerCluster,
		})
	}
	return a
}

func (a ablation) experiment() Experiment {
	return Experiment{
		Name:        "ablation",
		Description: "what each idea of GraphTurbo is worth on ResNet-50 and BERT-128",
		Paper:       "GraphTurbo (OSDI 2023), §5.3 and Fig. 15, with Table 1, Table 3 and Figs. 14, 16",
		plan:        a.plan,
		heuristic:   a.heuristics().plan,
	}
}

// heuristics is the same without the methods that look for optima.
func (a ablation) heuristics() ablation {
	a.variants = slices.DeleteFunc(slices.Clone(a.variants), func(v scheduler.Recipe) bool { return isExactVariant(v.Name) })
	return a
}

func (a ablation) plan() (*plan, error) {
	spec, err := hardware.Load(a.hardware)
	if err != nil {
		return nil, err
	}
	specHash, err := hashOf(spec)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, policy := range []ChunkPolicy{Tuned, PaperChunks} {
		for _, n := range a.networks {
			src, err := openNetwork(n.model)
			if err != nil {
				return nil, err
			}
			for _, v := range a.variants {
				chunk := int64(0)
				if policy == PaperChunks {
					chunk = n.chunk
					if v.Groups == scheduler.LayerKernels {
						chunk = n.layerChunk
					}
				}
				c, err := rowCell(src, spec, n.batch, chunk, v, policy, n.unit)
				if err != nil {
					return nil, err
				}
				p.cells = append(p.cells, c)
			}
		}
	}
	p.report = func(results []json.RawMessage) (*report, error) {
		rows, err := decodeRows(results)
		if err != nil {
			return nil, err
		}
		return a.report(rows, metadata{hardwareHash: specHash, version: programVersion()})
	}
	return p, nil
}

// ratedRow is a row with its speedups, which other rows are needed for.
type ratedRow struct {
	Row
	OverFirst float64 `json:"speedup_over_tvm"`
	// OverPrevious is over the step before, of an exact variant over the last step; 0:
	// the first.
	OverPrevious float64 `json:"speedup_over_previous,omitempty"`
}

func rate(rows []Row) []ratedRow {
	var list []ratedRow
	for _, g := range groupRows(rows) {
		for i, r := range g {
			x := ratedRow{Row: r, OverFirst: round(r.ThroughputPerSecond / g[0].ThroughputPerSecond)}
			if i > 0 {
				before := i - 1
				for before > 0 && isExactVariant(g[before].Variant) {
					before-- // exact variants are alternatives to the last step, not steps
				}
				x.OverPrevious = round(r.ThroughputPerSecond / g[before].ThroughputPerSecond)
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

func (a ablation) report(rows []Row, meta metadata) (*report, error) {
	rated := rate(rows)
	compared := a.compare(rows)
	steps := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return isExactVariant(r.Variant) })
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
		if err := t.writeText(&text); err != nil {
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
		md.WriteString(t.markdown())
		tex.WriteString("\n" + t.latex())
	}
	tex.WriteString("\n" + lost.latex() + "\n" + published.latex())
	md.WriteString(lost.markdown())
	md.WriteString(published.markdown())
	md.WriteString("## Does the mechanism come out?\n\n")
	for _, m := range mechanism {
		fmt.Fprintf(&md, "- %s\n", escapeMarkdown(m.String()))
	}
	md.WriteString("\n## Notes\n\n")
	for _, n := range notes {
		fmt.Fprintf(&md, "- %s\n", escapeMarkdown(n))
	}
	md.WriteString("\n## Figures\n\n![Throughput by variant](throughput.png)\n\n![Utilisation of MME and VME by variant](utilization.png)\n")

	data, err := a.json(rated, compared, mechanism, notes, meta)
	if err != nil {
		return nil, err
	}
	rep := &report{text: text.String(), files: []file{
		{"ablation.csv", ablationCSV(rated)},
		{"ablation.json", data},
		{"ablation.md", []byte(md.String())},
		{"ablation.tex", []byte(tex.String())},
		{"published.csv", comparisonCSV(compared)},
		{"published.md", []byte(published.markdown())},
		{"tuning.csv", tuningCSV(rows)},
	}}
	figures, err := a.figures(steps)
	if err != nil {
		return nil, err
	}
	rep.files = append(rep.files, figures...)
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
		Model    string      `json:"model"`
		Policy   ChunkPolicy `json:"chunk_policy"`
		Fall     bool        `json:"ddr_writes_fall"`
		Steps    bool        `json:"every_step_helps"`
		Sentence string      `json:"sentence"`
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

// programVersion is the version of this module in the running program.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	if version == "(devel)" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += " " + s.Value
			}
		}
	}
	return version
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
			previous = exact(r.OverPrevious)
		}
		out = append(out, []string{
			r.Model, r.Hardware, count(r.Batch), r.Variant, exact(r.ThroughputPerSecond), exact(r.LatencySeconds), count(r.Kernels),
			count(r.Writes.DDR), count(r.Writes.LLB), count(r.Writes.L1), exact(r.MMEUtilization), exact(r.VMEUtilization),
			string(r.ChunkPolicy), count(r.BatchesPerCluster), r.Unit, exact(r.OverFirst), previous,
			count(r.KernelsDynamic), count(r.WritesDynamic.DDR), count(r.WritesDynamic.LLB), count(r.WritesDynamic.L1),
			count(r.MovedBytes.DDR), count(r.MovedBytes.LLB), count(r.MovedBytes.L1), count(r.PeakLLBBytes), count(r.PeakL1CoreBytes),
			exact(r.MMEBusyShare), exact(r.VMEBusyShare), exact(r.Time.ComputeSeconds), exact(r.Time.MoveSeconds),
			exact(r.Time.LaunchSeconds), exact(r.Time.IdleSeconds), exact(r.LowerBoundSeconds), strings.Join(r.Notes, "; "),
		})
	}
	return csvBytes(out)
}

func tuningCSV(rows []Row) []byte {
	out := [][]string{{"model", "hardware", "batch", "variant", "batches_per_cluster", "throughput_per_s", "throughput_unit", "best", "error"}}
	for _, r := range rows {
		for _, t := range r.Tried {
			throughput, best := "", "no"
			if t.Error == "" {
				throughput = exact(t.ThroughputPerSecond)
			}
			if t.BatchesPerCluster == r.BatchesPerCluster {
				best = "yes"
			}
			out = append(out, []string{r.Model, r.Hardware, count(r.Batch), r.Variant, count(t.BatchesPerCluster), throughput, r.Unit, best, t.Error})
		}
	}
	return csvBytes(out)
}

// variantTables are a table for each network and policy.
func variantTables(rows []ratedRow) []table {
	var plain []Row
	for _, r := range rows {
		plain = append(plain, r.Row)
	}
	var tables []table
	i := 0
	for _, g := range groupRows(plain) {
		f := g[0]
		t := table{
			title: fmt.Sprintf("%s, batch %d, on %s: %s", f.Model, f.Batch, f.Hardware, policyWords(f.ChunkPolicy)),
			label: fmt.Sprintf("tab:ablation-%s-%s", f.Model, f.ChunkPolicy),
			columns: []column{
				{name: "Variant", text: true},
				{name: "Batches\nper\ncluster"},
				{name: "Throughput\n(" + f.Unit + ")"},
				{name: "Latency\n(ms)"},
				{group: "Speedup (×)\nover", name: "TVM"},
				{group: "Speedup (×)\nover", name: "previous"},
				{name: "Kernels"},
				{group: "Tensor writes\nDDR/LLB/L1", name: "in program"},
				{group: "Tensor writes\nDDR/LLB/L1", name: "executed"},
				{group: "Utilisation\n(%)", name: "MME"},
				{group: "Utilisation\n(%)", name: "VME"},
			},
		}
		for range g {
			r := rows[i]
			i++
			previous := "–"
			if r.OverPrevious != 0 {
				previous = fixed(r.OverPrevious, 2)
			}
			t.rows = append(t.rows, []string{
				r.Variant, count(r.BatchesPerCluster), significant(r.ThroughputPerSecond), fixed(1e3*r.LatencySeconds, 2),
				fixed(r.OverFirst, 2), previous, count(r.Kernels),
				r.Writes.String(), r.WritesDynamic.String(), percent(r.MMEUtilization), percent(r.VMEUtilization),
			})
		}
		tables = append(tables, t)
	}
	return tables
}

// timeTable tells where the time goes.
func timeTable(rows []Row) table {
	t := table{
		title: "Where the time goes",
		label: "tab:ablation-time",
		columns: []column{
			{name: "Network", text: true}, {name: "Batches per cluster", text: true}, {name: "Variant", text: true},
			{group: "Time (ms)", name: "computing"}, {group: "Time (ms)", name: "waiting for moves"}, {group: "Time (ms)", name: "launching"},
			{group: "Time (ms)", name: "idle"}, {group: "Time (ms)", name: "total"}, {group: "Time (ms)", name: "lower bound"},
		},
		notes: []string{"Each moment counts once, for the first of these that applies; means of the clusters. The lower bound is what no execution of the same program can beat."},
	}
	ms := func(s float64) string { return fixed(1e3*s, 2) }
	for _, r := range rows {
		policy := "best"
		if r.ChunkPolicy == PaperChunks {
			policy = "paper's"
		}
		t.rows = append(t.rows, []string{r.Model, fmt.Sprintf("%d (%s)", r.BatchesPerCluster, policy), r.Variant,
			ms(r.Time.ComputeSeconds), ms(r.Time.MoveSeconds), ms(r.Time.LaunchSeconds), ms(r.Time.IdleSeconds),
			ms(r.LatencySeconds), ms(r.LowerBoundSeconds)})
	}
	return t
}
