package optimality

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// objectives puts the fewest bytes, COSMA's objective, beside the least time, for which SoMa moves loads and stores.
// docs/formulations.md has both problems.
type objectives struct {
	machines, networks []string
	percent            []int64 // of the least memory in which a network runs
	evaluations        int     // of each search for times
}

func fullObjectives() objectives {
	return objectives{machines: []string{"stcp920", "tpu-v4i"},
		networks: []string{"squeezenet", "resnet18", "densenet121", "nasnet-mobile", "swin-t", "asr-encoder"},
		percent:  []int64{100, 125}, evaluations: 400}
}

// Objectives is the experiment.
func Objectives() harness.Experiment { return fullObjectives().experiment() }

func (x objectives) experiment() harness.Experiment {
	return harness.Experiment{Name: "objectives", Exact: true,
		Description: "the fewest bytes against the least time: COSMA's orders, SoMa's loads and stores, greedy ones, and bounds on both",
		Paper:       "none; the objectives of COSMA (arXiv 2311.18246) and SoMa (HPCA 2025)", Plan: x.plan}
}

// objectiveCell is a network in a memory of one size on a machine. Bytes are all that cross the memory's edge.
type objectiveCell struct {
	Capacity int64   `json:"capacity_bytes"`
	Bound    twofold `json:"bound"`
	Proven   bool    `json:"bytes_proven"` // Fewest has the fewest bytes of all orders
	Greedy   twofold `json:"greedy"`       // breadth or depth first, that with fewer bytes; loads one step ahead
	Fewest   twofold `json:"fewest_bytes"` // the same loads
	Climbed  twofold `json:"fewest_bytes_climbed"`
	Fastest  twofold `json:"least_time"`
	By       string  `json:"least_time_order"`
}

// twofold is a schedule by both objectives.
type twofold struct {
	Bytes   int64   `json:"ddr_bytes"`
	Seconds float64 `json:"latency_s"`
	Placed  bool    `json:"placed"` // its tensors have addresses
}

func (x objectives) plan() (*harness.Plan, error) {
	pl := &harness.Plan{Report: harness.Of(x.report)}
	for _, name := range x.networks {
		for _, percent := range x.percent {
			for _, machine := range x.machines {
				spec := harness.Accelerator(machine)
				hash := harness.SpecHash(spec)
				net := harness.OpenNetwork(name)
				pl.Cells = append(pl.Cells, harness.Cell{Key: fmt.Sprintf("%s-%s-%d", name, machine, percent),
					Label: fmt.Sprintf("%s on %s, %d %%", name, machine, percent),
					Inputs: map[string]any{"network": name, "hardware_sha256": hash, "percent": percent,
						"evaluations": x.evaluations},
					Run: func(ctx context.Context) (any, error) { return x.measure(ctx, net, spec, percent) }})
			}
		}
	}
	return pl, nil
}

// wholeTensors is a network in COSMA's world: one operator at a time, with all of its tensors in the memory on the
// chip.
type wholeTensors struct {
	*ordering.Problem
	seconds []float64 // of each operator, at the peak rates of a cluster
	fixed   []int64   // bytes of each operator that are only its own: weights and inputs of the network
	results []int64   // bytes of its outputs that are the network's
	again   int64     // of weights and inputs that several operators read, for which they come anew
}

// wholeTensorsOf poses the problem. A view is where its operand is. What several operators read of weights and inputs
// comes for each.
func wholeTensorsOf(g *model.Graph, spec *hardware.Spec) (*wholeTensors, error) {
	m, err := cost.NewWith(spec, nil)
	if err != nil {
		return nil, err
	}
	dt := lower.ComputeType(g)
	clusters := float64(spec.Clusters)
	w := &wholeTensors{Problem: &ordering.Problem{Name: g.Name, StoreCostPerByte: 1, LoadCostPerByte: 1}}
	maker, readers := map[model.TensorID]int{}, map[model.TensorID]int{}
	for _, op := range g.Ops {
		if op.Class() == model.ViewClass {
			if k, made := maker[op.Inputs[0]]; made {
				maker[op.Outputs[0]] = k
				for _, o := range op.Outputs {
					if g.IsOutput(o) {
						w.results[k] += g.Tensor(o).Bytes()
					}
				}
			}
			continue
		}
		k := len(w.Subgraphs)
		sg := ordering.Subgraph{Name: op.Name, Instances: 1}
		from := map[int]bool{}
		own := int64(0)
		for i, id := range op.Inputs {
			if slices.Contains(op.Inputs[:i], id) {
				continue
			}
			if f, made := maker[id]; made {
				if !from[f] {
					from[f] = true
					w.Arcs = append(w.Arcs, ordering.Arc{From: f, To: k, Reads: [][2]int{{0, 1}}})
				}
				continue
			}
			t := g.Tensor(id)
			if readers[id]++; readers[id] > 1 {
				w.again += t.Bytes()
			}
			own += t.Bytes()
		}
		result := int64(0)
		for _, o := range op.Outputs {
			maker[o] = k
			sg.OutputBytes += g.Tensor(o).Bytes()
			if g.IsOutput(o) {
				result += g.Tensor(o).Bytes()
			}
		}
		sg.WorkspaceBytes = own
		work := g.Work(op, model.Whole(g.Tensor(op.Outputs[0]).Shape))
		w.seconds = append(w.seconds,
			clusters*(float64(work.MACs)/m.PeakMACsPerSecond(dt)+float64(work.Vector.Total())/m.PeakVectorOpsPerSecond(dt)))
		w.fixed, w.results, w.Subgraphs = append(w.fixed, own), append(w.results, result), append(w.Subgraphs, sg)
	}
	w.CapacityBytes = 1 << 40
	if err := w.Validate(); err != nil {
		return nil, err
	}
	w.CapacityBytes = ordering.NewGraph(w.Problem).LargestNeed()
	return w, nil
}

// compulsory are the bytes that any order of the problem moves: weights and inputs for each reader, and results.
func (w *wholeTensors) compulsory() (n int64) {
	for k := range w.fixed {
		n += w.fixed[k] + w.results[k]
	}
	return n
}

// orderStates bounds the search for an order.
const orderStates = 20_000

func (x objectives) measure(ctx context.Context, net network.Network, spec *hardware.Spec, percent int64) (
	*objectiveCell, error) {
	g, err := net.Graph(1)
	if err != nil {
		return nil, err
	}
	w, err := wholeTensorsOf(g, spec)
	if err != nil {
		return nil, err
	}
	w.CapacityBytes = w.CapacityBytes * percent / 100
	var orders []*ordering.Result // those of the rules, then that of fewest bytes
	var greedy, fewest *ordering.Result
	for _, m := range ordering.Methods() {
		if m.NeedsSolver {
			continue
		}
		r, err := ordering.Solve(ctx, w.Problem, ordering.Traffic, m.Name, ordering.Options{WorkLimit: orderStates})
		if err != nil {
			return nil, err
		}
		if !r.HasOrder() {
			return nil, fmt.Errorf("%s: %s finds no order in %d bytes", g.Name, m.Name, w.CapacityBytes)
		}
		orders = append(orders, r)
		switch {
		case m.Exact:
			fewest, r.Method = r, "fewest bytes"
		case m.Name != string(ordering.Heavy) && (greedy == nil || r.Cost < greedy.Cost):
			greedy = r
		}
	}
	cell := &objectiveCell{Capacity: w.CapacityBytes, Proven: fewest.Cost <= fewest.Bound && w.again == 0}
	least := w.compulsory() - w.again + int64(fewest.Bound)
	bandwidth := spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters)
	cell.Bound = twofold{Bytes: least, Seconds: max(sum(w.seconds), float64(least)/bandwidth)}
	machine := edge{bandwidth: int64(bandwidth), latency: int64(1e12 * spec.DDR.LatencySeconds)}
	for k, r := range orders {
		again := func(x *ordering.Result) bool { return reflect.DeepEqual(x.Steps, r.Steps) }
		if slices.ContainsFunc(orders[:k], again) && r != fewest && r != greedy {
			continue
		}
		t, err := newTransfers(w, r.Steps, machine)
		if err != nil {
			return nil, err
		}
		first, err := t.measure(ctx, t.ahead())
		if err != nil {
			return nil, err
		}
		if first.Bytes != w.compulsory()+int64(r.Cost) {
			return nil, fmt.Errorf("internal error, %s moves %d bytes, by its cost %d", r.Method, first.Bytes,
				w.compulsory()+int64(r.Cost))
		}
		if r == greedy {
			cell.Greedy = first
		}
		windows, err := t.search(ctx, x.evaluations)
		if err != nil {
			return nil, err
		}
		found, err := t.measure(ctx, windows)
		if err != nil {
			return nil, err
		}
		if cell.By == "" || found.Seconds < cell.Fastest.Seconds {
			cell.Fastest, cell.By = found, r.Method
		}
		if r == fewest {
			cell.Fewest, cell.Climbed = first, found
		}
	}
	if cell.Fastest.Seconds < cell.Bound.Seconds*(1-1e-6) {
		return nil, fmt.Errorf("a schedule takes %g s, the bound is %g s", cell.Fastest.Seconds, cell.Bound.Seconds)
	}
	return cell, nil
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

// placed reports whether a schedule's tensors have addresses, each stay in the memory its own.
func (t *transfers) placed(ctx context.Context, w []int) (bool, error) {
	p := &allocate.Problem{Name: t.w.Name}
	for i, s := range t.stays(w) {
		p.Buffers = append(p.Buffers, allocate.Buffer{ID: fmt.Sprint(i), Size: s.bytes,
			Lifetime: allocate.Interval{Lower: int64(s.from), Upper: int64(s.to)}})
	}
	r, err := allocate.Fit(ctx, p, t.w.CapacityBytes, allocate.Options{WorkLimit: placeNodes})
	return err == nil && r.Status.HasValues(), err
}

const placeNodes = 50_000

func (x objectives) report(cells []objectiveCell) (*harness.Report, error) {
	d := harness.NewDocument(x.experiment(), x.machines...)
	group := func(g string) []harness.Column {
		return harness.Columns(g+"|MB", g+"|µs")
	}
	t := harness.Table{Name: "objectives",
		Title: "Fewest bytes against least time: bytes over the edge of the chip, and time",
		Columns: slices.Concat(harness.Columns("<Network", "<Machine", "Memory\n(MB)"),
			group("Bound"), group("Greedy"), group("Fewest bytes"), group("Least time"),
			harness.Columns("<In the order")),
		Notes: []string{
			"One cluster, one element, whole tensors, an operator at a time at the peak rates. Memory: the least in which the network runs, and a quarter more. Greedy: breadth or depth first, that with the fewer bytes; loads come one operator ahead where they fit. Fewest bytes: COSMA's objective by state-space search, the same loads; * proven. Least time: loads and stores moved by climbing, as SoMa's are by annealing, from the orders of all rules and that of fewest bytes.",
			"° no addresses were found for a schedule's tensors: then it needs some more memory than they fill."}}
	s := harness.Table{Name: "transfers",
		Title:   "When loads begin and stores end, in the order of fewest bytes: time over the bound",
		Columns: harness.Columns("<Network", "<Machine", "Memory\n(MB)", "One ahead", "Climbing")}
	mb := func(n int64) string { return harness.Significant(float64(n) / 1e6) }
	var both, same, slower, proven int
	worst := 1.0
	for i, c := range cells {
		net, machine := x.networks[i/(len(x.percent)*len(x.machines))], x.machines[i%len(x.machines)]
		two := func(v twofold, marks string) []string {
			if !v.Placed {
				marks += "°"
			}
			return []string{mb(v.Bytes) + marks, harness.Significant(1e6 * v.Seconds)}
		}
		star := ""
		if c.Proven {
			star = "*"
			proven++
		}
		t.Add(net, machine, mb(c.Capacity), mb(c.Bound.Bytes), 1e6*c.Bound.Seconds, two(c.Greedy, ""),
			two(c.Fewest, star), two(c.Fastest, ""), c.By)
		over := func(v twofold) string { return harness.Fixed(v.Seconds/c.Bound.Seconds, 3) }
		s.Add(net, machine, mb(c.Capacity), over(c.Fewest), over(c.Climbed))
		if !c.Fewest.Placed || !c.Fastest.Placed {
			continue // without addresses it is no schedule yet
		}
		both++
		if c.Fastest.Bytes == c.Fewest.Bytes {
			same++
		}
		if ratio := c.Fewest.Seconds / c.Fastest.Seconds; ratio > 1+much {
			slower++
			worst = max(worst, ratio)
		}
	}
	d.Table(t, s)
	d.Note(
		"Of %d instances, the fewest bytes are proven in %d. In %d both schedules have addresses: of these the fastest moves the fewest bytes in %d; that of fewest bytes, with loads one operator ahead, is more than 5 %% slower in %d, by up to %.0f %%.",
		len(cells), proven, both, same, slower, 100*(worst-1))
	d.Note("COSMA: arXiv 2311.18246. SoMa: HPCA 2025.")
	return d.Report(harness.Data{Data: cells})
}
