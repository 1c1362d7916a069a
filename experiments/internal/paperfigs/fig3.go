package paperfigs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/picture"
)

// fourStages is the paper's running example (§2.1, Figs. 3, 6 and 7): the same
// network and accelerator under three orders, and what the best of them gains.
type fourStages struct {
	hardware   string
	model      string
	perCluster int64
	networks   []string // of the speedup
}

func fig3() fourStages {
	return fourStages{"stcp920", "toy-fig3", 8, []string{"toy-fig3", "resnet50"}}
}

func (f fourStages) experiment() harness.Experiment {
	return harness.Experiment{
		Name: "fig3", Also: []string{"fig6", "fig7"},
		Description: "the four-stage example: instances, their orders, the L1 over time, and the speedup over TVM",
		Paper:       "GraphTurbo (OSDI 2023), §2.1, §3.3 and Figs. 3, 6, 7",
		Plan:        f.plan,
	}
}

// orderedRun is a schedule instance by instance.
type orderedRun struct {
	Order         string        `json:"order"`
	Groups        []orderedPart `json:"groups"`
	Instances     []orderedInst `json:"instances"` // as they run
	CapacityBytes int64         `json:"lb_capacity_bytes"`
	// MovedBytes counts the stores and loads of the ordering problem.
	MovedBytes     int64   `json:"moved_bytes"`
	Utilization    float64 `json:"lb_utilization"` // of what the running instance touches, over time
	MeanHeld       float64 `json:"lb_mean_held"`   // of all buffers in the simulation, over time
	SpilledBytes   int64   `json:"spilled_bytes"`
	LatencySeconds float64 `json:"latency_s"`
	Throughput     float64 `json:"throughput_per_s"`
	Edges          int     `json:"edges"`
	RedundantEdges int     `json:"redundant_edges"`
}

type orderedPart struct {
	Name   string `json:"name"`
	First  string `json:"first_operator"`
	Last   string `json:"last_operator"`
	Ops    int    `json:"operators"`
	Factor int64  `json:"factor"`
}

type orderedInst struct {
	ID           int     `json:"id"`
	Name         string  `json:"name"` // a letter per sub-graph, a number per instance
	Group        int     `json:"group"`
	Index        int64   `json:"index"`
	Reads        []int   `json:"reads"`     // IDs of producers
	Redundant    []int   `json:"redundant"` // IDs that only the sub-graphs' edges name
	TouchedBytes int64   `json:"touched_bytes"`
	StartSeconds float64 `json:"start_s"`
	EndSeconds   float64 `json:"end_s"`
}

// explainOrder describes how the first chunk of cluster 0 ran.
func explainOrder(_ context.Context, r *scheduler.Result) (any, error) {
	s := r.Schedule
	run := orderedRun{
		Order: s.OrderName, CapacityBytes: hardwareL1(r.Spec, s.L1Capacity),
		LatencySeconds: harness.Round(r.LatencySeconds()), Throughput: harness.Round(r.ThroughputPerSecond()),
		RedundantEdges: s.Instances.RedundantEdges,
	}
	run.MeanHeld = harness.Round(r.Sim.Clusters[0].Memory[isa.L1].MeanBytes / float64(r.Program.Capacity[isa.L1]))
	for _, sp := range s.Spills {
		run.SpilledBytes += sp.Bytes
	}
	for _, sg := range s.Grouping.Groups {
		run.Groups = append(run.Groups, orderedPart{sg.Name, s.Graph.Op(sg.Ops[0]).Name,
			s.Graph.Op(sg.Ops[len(sg.Ops)-1]).Name, len(sg.Ops), sg.Factor()})
	}
	_, kernels := picture.Owners(r, 0)
	if len(kernels) < len(s.Order) {
		return nil, fmt.Errorf("cluster 0 has %d launches, expected %d, one for each instance", len(kernels), len(s.Order))
	}
	// Rates do not matter to what is read here.
	items := schedule.OrderItems(s, schedule.SplitOptions{MACsPerSecond: 1, VectorOpsPerSecond: 1})
	weight, total := 0.0, 0.0
	for k, id := range s.Order {
		inst, it := &s.Instances.Instances[id], items[id]
		x := orderedInst{ID: id, Name: instanceName(inst.Group, inst.Index), Group: inst.Group, Index: inst.Index,
			Reads: it.Reads, Redundant: []int{}, TouchedBytes: it.OutputBytes + it.WorkspaceBytes,
			StartSeconds: seconds(kernels[k].FromPs), EndSeconds: seconds(kernels[k].ToPs)}
		if x.Reads == nil {
			x.Reads = []int{}
		}
		for _, p := range it.Reads {
			x.TouchedBytes += items[p].OutputBytes
		}
		for _, t := range s.Grouping.Groups[inst.Group].Inputs {
			p := s.Graph.Tensor(t).Producer
			if p == model.NoOp {
				continue
			}
			for _, from := range s.Grouping.Groups {
				if !slices.Contains(from.Ops, p) {
					continue
				}
				for q := range int(from.Factor()) {
					j := s.Instances.First[from.ID] + q
					if !slices.Contains(it.Reads, j) && !slices.Contains(x.Redundant, j) {
						x.Redundant = append(x.Redundant, j)
					}
				}
			}
		}
		run.Edges += len(x.Reads)
		d := x.EndSeconds - x.StartSeconds
		weight += d * min(1, float64(x.TouchedBytes)/float64(run.CapacityBytes))
		total += d
		run.Instances = append(run.Instances, x)
	}
	run.Utilization = harness.Round(weight / total)
	run.MovedBytes = schedule.EvaluateOrder(items, s.Order, run.CapacityBytes).MovedBytes
	return run, nil
}

// hardwareL1 is the L1 of a cluster, of which each core has bytes.
func hardwareL1(spec *hardware.Spec, bytes int64) int64 { return bytes * schedule.CoresWithL1(spec) }

// instanceName is the paper's way: a to d are sub-graphs, numbers instances.
func instanceName(group int, index int64) string {
	if group < 26 {
		return fmt.Sprintf("%c%d", 'a'+group, index+1)
	}
	return fmt.Sprintf("g%d.%d", group, index+1)
}

// orders are the schedules that Fig. 3 and Fig. 7 compare. All have the same kernel
// generator, so that they differ in the order and the factors alone.
func (f fourStages) orders() []scheduler.Recipe {
	var list []scheduler.Recipe
	for _, x := range []struct{ name, split, order string }{{"Stage by stage", "one-factor", "bfs"},
		{"BFS", "alg1", "bfs"}, {"DFS", "alg1", "dfs"}} {
		r, _ := literature.ByText("cross-layer", scheduler.Pick{Stage: "split", Strategy: x.split},
			scheduler.Pick{Stage: "order", Strategy: x.order})
		r.Name = x.name
		list = append(list, r)
	}
	return list
}

func (f fourStages) plan() (*harness.Plan, error) {
	spec := harness.Accelerator(f.hardware)
	p := &harness.Plan{}
	orders := f.orders()
	for _, v := range orders {
		p.Cells = append(p.Cells, harness.Scheduled{Hardware: f.hardware, Model: f.model, PerCluster: f.perCluster,
			Variant: v, Options: literature.Options(0)}.
			Cell("order-"+strings.ReplaceAll(strings.ToLower(v.Name), " ", "-"), explainOrder))
	}
	for _, name := range f.networks {
		batch := f.perCluster * int64(spec.Clusters)
		byLLB, err := literature.TVM(spec, name, batch, harness.PaperChunks, "images/s")
		if err != nil {
			return nil, err
		}
		of := func(variant string, policy harness.ChunkPolicy, chunk int64) harness.Cell {
			return literature.Cell(spec, name, batch, variant, chunk, policy, "images/s")
		}
		p.Cells = append(p.Cells, of("tvm", harness.Tuned, 0), byLLB, of("ordering", harness.PaperChunks, f.perCluster),
			of("cross-layer", harness.PaperChunks, f.perCluster))
	}
	p.Report = func(results []json.RawMessage) (*harness.Report, error) {
		runs, err := harness.Decode[orderedRun](results[:len(orders)])
		if err != nil {
			return nil, err
		}
		rows, err := harness.Decode[harness.Row](results[len(orders):])
		if err != nil {
			return nil, err
		}
		return f.report(orders, runs, rows)
	}
	return p, nil
}

func (f fourStages) report(orders []scheduler.Recipe, runs []orderedRun, rows []harness.Row) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	dfs := runs[len(runs)-1]
	byID := slices.Clone(dfs.Instances)
	slices.SortFunc(byID, func(a, b orderedInst) int { return a.ID - b.ID })
	d.Table(f.groupTable(dfs), orderTable(orders, runs), edgeTable(byID), f.speedups(d, rows))
	f.claims(d, orders, runs)
	f.figures(d, orders, runs, byID)
	return d.Report(harness.Data{Data: struct {
		Runs []orderedRun  `json:"runs"`
		Rows []harness.Row `json:"rows"`
	}{runs, rows}})
}

// touched is the bytes that an instance of a sub-graph touches.
func (r orderedRun) touched(group int) int64 {
	return r.Instances[slices.IndexFunc(r.Instances, func(x orderedInst) bool { return x.Group == group })].TouchedBytes
}

// shares are the shares of the L1 that an instance of each sub-graph touches, in percent.
func (r orderedRun) shares() (list []string) {
	for k := range r.Groups {
		list = append(list, harness.Percent(float64(r.touched(k))/float64(r.CapacityBytes)))
	}
	return list
}

func (f fourStages) groupTable(dfs orderedRun) harness.Table {
	t := harness.Table{Name: "groups", Title: fmt.Sprintf("Sub-graphs of %s with %d images per cluster", f.model,
		f.perCluster), Columns: harness.Columns("<Name", "<Operators", "Number", "Factor",
		"Touched by an\ninstance (MiB)", "Share of\nthe L1 (%)")}
	for k, g := range dfs.Groups {
		t.Add(fmt.Sprintf("%c", 'a'+k), g.First+" .. "+g.Last, g.Ops, g.Factor, mebibytes(dfs.touched(k)), dfs.shares()[k])
	}
	return t
}

func orderTable(orders []scheduler.Recipe, runs []orderedRun) harness.Table {
	t := harness.Table{Name: "orders", Title: "Orders", Columns: harness.Columns("<Schedule", "Instances",
		"Moved by the\nordering rules (MiB)", "Spilled by the\nmemory plan (MiB)", "L1 use over time (%)|touched|held",
		"Throughput\n(images/s)", "<Order"),
		Notes: []string{
			"Touched: inputs, outputs and workspace of the running instance, as in Fig. 3. Held: all buffers of the simulated program, weights' buffer included."}}
	for i, r := range runs {
		t.Add(orders[i].Name, len(r.Instances), mebibytes(r.MovedBytes), mebibytes(r.SpilledBytes),
			harness.Percent(r.Utilization), harness.Percent(r.MeanHeld), r.Throughput, orderNames(r))
	}
	return t
}

// edgeTable lists what each instance reads; byID are the instances in the order of their IDs.
func edgeTable(byID []orderedInst) harness.Table {
	t := harness.Table{Name: "edges", Title: "Edges between instances",
		Columns: harness.Columns("<Consumer", "<Reads", "<Redundant")}
	list := func(ids []int) string {
		names := harness.Each(ids, func(id int) string { return byID[id].Name })
		return strings.Join(names, " ")
	}
	for _, x := range byID {
		t.Add(x.Name, list(x.Reads), list(x.Redundant))
	}
	return t
}

// speedups has the networks' throughputs beside TVM's, and compares with Fig. 3b.
func (f fourStages) speedups(d *harness.Document, rows []harness.Row) harness.Table {
	t := harness.Table{Name: "speedup", Title: fmt.Sprintf("Speedup over TVM with %d images per cluster", f.perCluster),
		Columns: harness.Columns("<Network", "<Variant", "Images\nat a time", "Throughput\n(images/s)",
			"Speedup (×) over TVM with|its best\nbatches",
			"Speedup (×) over TVM with|batches by\nthe LLB")}
	for _, name := range f.networks {
		var tuned, paper float64
		for _, r := range rows {
			if r.Model == name && r.Variant == "tvm" && r.ChunkPolicy == harness.Tuned {
				tuned = r.ThroughputPerSecond
			} else if r.Model == name && r.Variant == "tvm" {
				paper = r.ThroughputPerSecond
			}
		}
		for _, r := range rows {
			if r.Model != name {
				continue
			}
			x := r.ThroughputPerSecond
			t.Add(r.Model, r.Variant, r.BatchesPerCluster, x, harness.Fixed(x/tuned, 2), harness.Fixed(x/paper, 2))
			if r.Variant != "cross-layer" {
				continue
			}
			for _, base := range []struct {
				name  string
				value float64
			}{{"with its best batches", tuned}, {"with batches by the LLB", paper}} {
				d.Number(fmt.Sprintf("Fig. 3b over TVM %s, %s", base.name, r.Model), "x",
					literature.StageSpeedup.Value, x/base.value)
				d.Why("the paper does not say how many images TVM had at a time; §5.1 gives it what the LLB holds")
				d.Cause(causeStage)
				if name != "toy-fig3" || base.value != paper {
					d.Given()
					d.Why("the number counts once: for the four-stage example, over TVM with batches by the LLB")
				} else {
					d.Lines[len(d.Lines)-1].Headline = 7
				}
			}
		}
	}
	return t
}

// claims compares with what the paper says of the example.
func (f fourStages) claims(d *harness.Document, orders []scheduler.Recipe, runs []orderedRun) {
	dfs := runs[len(runs)-1]
	best, chosen := runs[1], orders[1].Name
	var factors, moved []string
	for i, r := range runs {
		moved = append(moved, fmt.Sprintf("%s %s", orders[i].Name, mebibytes(r.MovedBytes)))
		if i > 1 && r.MovedBytes < best.MovedBytes {
			best, chosen = r, orders[i].Name
		}
	}
	for _, g := range dfs.Groups {
		factors = append(factors, harness.Count(g.Factor))
	}
	d.Claim("Factors of the stages", "8, 4, 2, 1", strings.Join(factors, ", "),
		harness.Agreement(strings.Join(factors, " ") == "8 4 2 1"))
	d.Given()
	d.Why("the example has the extents that make it so")
	d.Claim("Order chosen", "DFS, which begins with two instances of stage 1 and one of stage 2",
		chosen+": "+orderNames(best),
		harness.Agreement(chosen == "DFS" && strings.HasPrefix(stagePattern(best), "aab")))
	d.Given()
	d.Why("it follows from the factors")
	d.Claim("Edges kept and redundant (Fig. 6)", "14 and 28 (two producers each, by the factors)",
		fmt.Sprintf("%d and %d", dfs.Edges, dfs.RedundantEdges),
		harness.Agreement(dfs.Edges == 14 && dfs.RedundantEdges == 28))
	d.Given()
	shares := runs[0].shares()
	d.Claim("L1 use, stage by stage (%)", "100, 50, 25, 12.5", strings.Join(shares, ", "),
		harness.Agreement(strings.Join(shares, " ") == "100.0 50.0 25.0 12.5"))
	d.Given()
	d.Note("The paper does not say on which network 7.97× was measured. Best: the fastest of all divisors of %d.",
		f.perCluster)
	d.Note("MiB moved by the order: %s. Share of the L1 that an instance of each stage touches: %s %%.",
		strings.Join(moved, ", "), strings.Join(dfs.shares(), ", "))
	d.Note(
		"Stage by stage runs one image at a time, all images of a stage before the next stage; the paper has an image on each core.")
}

func orderNames(r orderedRun) string {
	names := harness.Each(r.Instances, func(x orderedInst) string { return x.Name })
	return strings.Join(names, " ")
}

// stagePattern is the order without the instances' numbers, which are of no account:
// all instances of a sub-graph are alike.
func stagePattern(r orderedRun) string {
	var b strings.Builder
	for _, x := range r.Instances {
		b.WriteByte(x.Name[0])
	}
	return b.String()
}

// figures draws the instances with their edges, the orders, and the L1 over time.
func (f fourStages) figures(d *harness.Document, orders []scheduler.Recipe, runs []orderedRun, byID []orderedInst) {
	dfs := runs[len(runs)-1]
	most := int64(1)
	for _, g := range dfs.Groups {
		most = max(most, g.Factor)
	}
	instances := plots.Diagram{Title: "(a) Instances and what they read", RowHeight: 30}
	var keys []plots.DiagramKey
	var stages []string
	for k := range dfs.Groups {
		stages = append(stages, fmt.Sprintf("stage %d", k+1))
		keys = append(keys, plots.DiagramKey{Text: stages[k], Colour: k})
	}
	keys = append(keys, plots.DiagramKey{Text: "needed", Edge: true},
		plots.DiagramKey{Text: "redundant", Edge: true, Grey: true})
	for i, x := range byID {
		// An instance stands above the middle of those that it is made of.
		width := float64(most) / float64(dfs.Groups[x.Group].Factor)
		instances.Nodes = append(instances.Nodes,
			plots.DiagramNode{Text: x.Name, X: (float64(x.Index)+0.5)*width - 0.5, Y: float64(x.Group), Colour: x.Group})
		for _, p := range x.Reads {
			instances.Edges = append(instances.Edges, plots.DiagramEdge{From: p, To: i})
		}
		for _, p := range x.Redundant {
			instances.Edges = append(instances.Edges, plots.DiagramEdge{From: p, To: i, Grey: true})
		}
	}
	list := []plots.Diagram{instances}
	for i, r := range runs {
		if orders[i].Pick("split") == "one-factor" {
			continue
		}
		order := plots.Diagram{Title: fmt.Sprintf("(%c) %s order", 'b'+len(list)-1, orders[i].Name)}
		if r.Order == "dfs" {
			order.Title += ": Algorithm 3 takes the last instance that is ready"
		}
		for k, x := range r.Instances {
			order.Nodes = append(order.Nodes, plots.DiagramNode{Text: x.Name, X: float64(k), Colour: x.Group})
		}
		list = append(list, order)
	}
	fig, err := plots.Diagrams(list, keys...)
	d.Figure("instances", "Instances of the four stages, and two orders of them", fig, err)
	var profiles []plots.Profile
	for i, r := range runs {
		p := plots.Profile{Title: fmt.Sprintf("%s: %s %% of the L1 on average", orders[i].Name,
			harness.Percent(r.Utilization))}
		for _, x := range r.Instances {
			p.Blocks = append(p.Blocks, plots.ProfileBlock{Start: 1e6 * x.StartSeconds, End: 1e6 * x.EndSeconds,
				Share: float64(x.TouchedBytes) / float64(r.CapacityBytes), Colour: x.Group, Text: x.Name})
		}
		profiles = append(profiles, p)
	}
	fig, err = plots.Profiles(profiles, "Time (µs)", "L1 in use (%)", stages)
	d.Figure("utilization", "What the running instance takes of the L1, over time", fig, err)
}

// mebibytes writes a size for people.
func mebibytes(n int64) string { return harness.Fixed(float64(n)/(1<<20), 2) }

// Fig3 orders the instances of four stages.
func Fig3() harness.Experiment { return fig3().experiment() }
