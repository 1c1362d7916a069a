package ablation

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// ablation is the paper's performance breakdown (§5.3, Fig. 15): what each idea is
// worth, on networks of which the paper gives more than an average.
type ablation struct {
	hardware string
	networks []ablationNetwork
	variants []scheduler.Recipe
	ten      []literature.Configuration // that the table's recipes run at the paper's batches
	searched []scheduler.Recipe         // with the paper's chunks only: they take trials
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
	a := ablation{hardware: "stcp920", variants: recipes.Table(), ten: literature.Configurations(),
		searched: recipes.Searched()}
	for _, v := range recipes.Exact() {
		if slices.Contains(exactSteps, v.Name) {
			a.variants = append(a.variants, v)
		}
	}
	for _, n := range []struct{ label, model string }{{"A", "resnet50"}, {"B", "bert-128"}} {
		p := literature.ConfigurationOf(n.label)
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
		Description: "what each idea of GraphTurbo is worth: ResNet-50 and BERT-128 closely, and all ten configurations",
		Paper:       "GraphTurbo (OSDI 2023), §5.3 and Fig. 15, with Table 1, Table 3 and Figs. 14, 16",
		Plan:        a.plan,
		Quick:       a.heuristics().plan,
		Heuristic:   a.heuristics().plan,
	}
}

// heuristics is the same without the exact methods.
func (a ablation) heuristics() ablation {
	a.variants = slices.DeleteFunc(slices.Clone(a.variants),
		func(v scheduler.Recipe) bool { return harness.IsExactVariant(v.Name) })
	a.searched = nil
	return a
}

// insteadOf is the step that a variant, which is no step itself, is an alternative to.
func insteadOf(variant string) (step string, ok bool) {
	for _, r := range recipes.Searched() {
		if r.Name == variant {
			return r.Fallback[0], true
		}
	}
	return "cross-layer", harness.IsExactVariant(variant)
}

func (a ablation) plan() (*harness.Plan, error) {
	spec, specHash := harness.Machine(a.hardware)
	p := &harness.Plan{}
	for _, policy := range []harness.ChunkPolicy{harness.Tuned, harness.PaperChunks} {
		for _, n := range a.networks {
			variants := a.variants
			if policy == harness.PaperChunks {
				variants = slices.Concat(variants, a.searched)
			}
			for _, v := range variants {
				chunk := int64(0)
				if policy == harness.PaperChunks {
					chunk = n.chunk
					if v.Pick("group") == "layers" {
						chunk = n.layerChunk
					}
				}
				p.Cells = append(p.Cells, literature.Cell(spec, n.model, n.batch, v.Name, chunk, policy, n.unit))
			}
		}
	}
	closely := len(p.Cells)
	ten := a.tenCells(spec)
	of := map[string]int{} // index of a cell by its key
	for i, c := range p.Cells {
		of[c.Key] = i
	}
	var index []int
	for _, c := range ten {
		i, ok := of[c.Key]
		if !ok {
			i = len(p.Cells)
			p.Cells = append(p.Cells, c)
		}
		index = append(index, i)
	}
	p.Report = harness.Of(func(rows []harness.Row) (*harness.Report, error) {
		all := harness.Each(index, func(i int) harness.Row { return rows[i] })
		return a.report(rows[:closely], all, spec, specHash)
	})
	return p, nil
}

// ratedRow is a row with its speedups, which other rows are needed for.
type ratedRow struct {
	harness.Row
	OverFirst float64 `json:"speedup_over_tvm"`
	// OverPrevious is over the step before, of what is no step over the one that it is an alternative to; 0: the first.
	OverPrevious float64 `json:"speedup_over_previous,omitempty"`
}

func rate(rows []harness.Row) []ratedRow {
	var list []ratedRow
	for _, g := range harness.GroupRows(rows) {
		for i, r := range g {
			x := ratedRow{Row: r, OverFirst: harness.Round(r.ThroughputPerSecond / g[0].ThroughputPerSecond)}
			if i > 0 {
				before := i - 1
				if step, ok := insteadOf(r.Variant); ok {
					before = max(0, slices.IndexFunc(g, func(r harness.Row) bool { return r.Variant == step }))
				}
				x.OverPrevious = harness.Round(r.ThroughputPerSecond / g[before].ThroughputPerSecond)
			}
			list = append(list, x)
		}
	}
	return list
}

// ablationNotes tell how to read the tables.
var ablationNotes = []string{
	"Tensor writes are the stores of output tensors in the program of one cluster: a loop over the batch counts once, instances one by one, as in the paper's Table 3. Executed are those of all clusters and all rounds of the loop.",
	"Utilisation is useful arithmetic over what the units could do in that time (the chip's peak).",
	"The variant tvm has the kernels of TVM's pass FuseOps on the framework's operators, on the same simulated chip; it is not the code of TVM.",
}

// report makes the tables, what becomes of the mechanism and the figures.
func (a ablation) report(rows, ten []harness.Row, spec *hardware.Spec, hardwareHash string) (*harness.Report, error) {
	rated := rate(rows)
	steps := slices.DeleteFunc(slices.Clone(rows), func(r harness.Row) bool { _, ok := insteadOf(r.Variant); return ok })
	mechanism := CheckMechanism(steps)

	d := harness.NewDocument(a.experiment(), fmt.Sprintf("%s (SHA-256 of its description: %s)", a.hardware, hardwareHash))
	d.Table(a.tenTable(ten, spec)...)
	d.Table(variantTables(rated)...)
	d.Table(timeTable(rows))
	sentences := harness.Each(mechanism, func(m Mechanism) string { return m.Sentence })
	d.List("Does the mechanism come out?", sentences)
	d.Notes = slices.Clone(ablationNotes)
	if len(steps) < len(rows) {
		d.Note("Variants exact-* are alternatives to cross-layer: their speedup over the previous one is over cross-layer.")
		d.Note(
			"Variants ansor and graphturbo+ansor are tvm and cross-layer, which their speedup is over, with loops and bindings inside kernels searched in a few trials; 'dsasched tune' searches longer.")
	}
	for _, r := range rows {
		for _, n := range r.Notes {
			if n = fmt.Sprintf("%s, batch %d: %s", r.Model, r.Batch, n); !slices.Contains(d.Notes, n) {
				d.Notes = append(d.Notes, n)
			}
		}
	}
	d.File("ablation.csv", ablationCSV(rated))
	d.File("tuning.csv", tuningCSV(rows))
	if len(ten) > 0 {
		a.tenFigure(d, ten, spec)
	}
	a.figures(d, steps)
	type machine struct {
		Name string `json:"name"`
		Hash string `json:"sha256"`
	}
	return d.Report(struct {
		Hardware  machine     `json:"hardware"`
		Mechanism []Mechanism `json:"mechanism"`
		Rows      []ratedRow  `json:"rows"`
	}{machine{a.hardware, hardwareHash}, mechanism, rated})
}

func ablationCSV(rows []ratedRow) []byte {
	return harness.CSV(rows, harness.Fields[ratedRow](
		"model hardware batch variant throughput_per_s latency_s kernels ddr_tensor_writes llb_tensor_writes l1_tensor_writes mme_utilization vme_utilization "+
			"chunk_policy batches_per_cluster throughput_unit speedup_over_tvm speedup_over_previous "+
			"kernels_dynamic ddr_tensor_writes_dynamic llb_tensor_writes_dynamic l1_tensor_writes_dynamic "+
			"ddr_moved_bytes llb_moved_bytes l1_moved_bytes llb_peak_bytes l1_peak_bytes_per_core "+
			"mme_busy_share vme_busy_share compute_s move_s launch_s idle_s lower_bound_s notes"))
}

// tuningCSV has what each row was chosen from.
func tuningCSV(rows []harness.Row) []byte {
	type tried struct {
		harness.Row
		trial harness.Trial
	}
	var list []tried
	for _, r := range rows {
		for _, t := range r.Tried {
			list = append(list, tried{r, t})
		}
	}
	return harness.CSV(list, harness.Fields(
		"model hardware batch variant batches_per_cluster throughput_per_s throughput_unit best error",
		harness.Field[tried]{Name: "batches_per_cluster", Of: func(t tried) any { return t.trial.BatchesPerCluster }},
		harness.Field[tried]{Name: "throughput_per_s", Of: func(t tried) any {
			if t.trial.Error != "" {
				return nil
			}
			return t.trial.ThroughputPerSecond
		}},
		harness.Field[tried]{Name: "best", Of: func(t tried) any {
			if t.trial.BatchesPerCluster == t.BatchesPerCluster {
				return "yes"
			}
			return "no"
		}},
		harness.Field[tried]{Name: "error", Of: func(t tried) any { return t.trial.Error }}))
}

// variantTables are a table for each network and policy.
func variantTables(rows []ratedRow) []harness.Table {
	plain := harness.Each(rows, func(r ratedRow) harness.Row { return r.Row })
	var tables []harness.Table
	i := 0
	for _, g := range harness.GroupRows(plain) {
		f := g[0]
		t := harness.Table{
			Name:  fmt.Sprintf("%s-%s", f.Model, f.ChunkPolicy),
			Title: fmt.Sprintf("%s, batch %d, on %s: %s", f.Model, f.Batch, f.Hardware, harness.PolicyWords(f.ChunkPolicy)),
			Columns: harness.Columns("<Variant", "Batches\nper\ncluster", "Throughput\n("+f.Unit+")", "Latency\n(ms)",
				"Energy\n(mJ)", "Speedup (×)\nover|TVM|previous", "Kernels",
				"Tensor writes\nDDR/LLB/L1|in program|executed", "Utilisation\n(%)|MME|VME"),
		}
		for range g {
			r := rows[i]
			i++
			previous := "–"
			if r.OverPrevious != 0 {
				previous = harness.Fixed(r.OverPrevious, 2)
			}
			t.Add(r.Variant, r.BatchesPerCluster, r.ThroughputPerSecond, harness.Fixed(1e3*r.LatencySeconds, 2),
				r.EnergyText(1), harness.Fixed(r.OverFirst, 2), previous, r.Kernels, r.Writes.String(),
				r.WritesDynamic.String(), harness.Percent(r.MMEUtilization), harness.Percent(r.VMEUtilization))
		}
		tables = append(tables, t)
	}
	return tables
}

// timeTable lists where the time goes.
func timeTable(rows []harness.Row) harness.Table {
	t := harness.Table{
		Name: "time", Title: "Where the time goes",
		Columns: harness.Columns("<Network", "<Batches per cluster", "<Variant",
			"Time (ms)|computing|waiting for moves|launching|idle|total|lower bound"),
		Notes: []string{
			"Each moment counts once, for the first of these that applies; means of the clusters. The lower bound is what no execution of the same program can beat."},
	}
	ms := func(s float64) string { return harness.Fixed(1e3*s, 2) }
	for _, r := range rows {
		policy := "best"
		if r.ChunkPolicy == harness.PaperChunks {
			policy = "paper's"
		}
		t.Add(r.Model, fmt.Sprintf("%d (%s)", r.BatchesPerCluster, policy), r.Variant, ms(r.Time.ComputeSeconds),
			ms(r.Time.MoveSeconds), ms(r.Time.LaunchSeconds), ms(r.Time.IdleSeconds), ms(r.LatencySeconds),
			ms(r.LowerBoundSeconds))
	}
	return t
}

// Experiment_ablation is the performance breakdown on two networks.
func Experiment() harness.Experiment { return fullAblation().experiment() }
