package ansor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Program is an implementation of a kernel: a nest for each of its layers.
type Program []*schedule.Nest

// A Task is a kernel that one or several networks run a number of times.
type Task struct {
	Name string
	// Key is equal for kernels that do the same and have the same programs: operators with
	// their attributes, boxes, bindings, places of operands, room in the L1 and the LLB.
	Key string
	// Weights counts the runs in each network.
	Weights []int64
	// Rule is the program of the kernel generator's rules.
	Rule Program
	// Operations is the useful work: multiply-accumulates and vector operations.
	Operations int64
	// Floor is a time in seconds that no program is below: the launch and then the bytes that must pass the DDR, or the
	// products on matrix units that are never idle, or what Tree.Bound says before anything is decided.
	Floor float64

	kernel *schedule.Schedule // alone
	model  *cost.Model
	opt    lower.Options
	passes int
	// machine is the whole one, of which this many clusters are busy.
	machine  *hardware.Spec
	clusters int
	space    []*space // of each layer
	kinds    string   // of its operators
}

// Layer is the name of a layer of the kernel.
func (t *Task) Layer(i int) string {
	st := &t.kernel.Steps[i]
	return t.kernel.Layers[t.kernel.Instances.Instances[st.Instance].Group][st.Layer].Name
}

// Output is the tensor that a layer leaves behind, whose dimensions its nest binds.
func (t *Task) Output(i int) *model.Tensor { return t.kernel.Graph.Tensor(t.kernel.Steps[i].Output) }

// Sketches are the forms that derivation finds for a layer, and why.
func (t *Task) Sketches(i int) ([]Sketch, []Derivation) {
	return t.space[i].sketches, t.space[i].derivations
}

// MaxLayers is the number of layers that a kernel has at most that is a task: a trial changes a layer or two
// and simulates them all.
const MaxLayers = 2048

// Kernels lists the kernels of a planned schedule, one for each instance in its order, by
// Key: equal kernels share a task. A trial shares the DDR with the machine's other busy
// clusters, which do the same. There is none (nil) for a kernel of more than [MaxLayers].
func Kernels(ctx context.Context, s *schedule.Schedule, clusters int, opt lower.Options) ([]*Task, error) {
	if s.Spec.Mixed() {
		return nil, fmt.Errorf("ansor: %s has cores of several kinds, expected one", s.Spec.Name)
	}
	alone := share(s.Spec, clusters)
	m, err := cost.NewWith(alone, opt.Cost)
	if err != nil {
		return nil, err
	}
	known := map[string]*Task{}
	tasks := make([]*Task, len(s.Order))
	k := -1
	lower.EachAlone(s, func(_, first, last int, kernelAlone func() *schedule.Schedule) {
		if k++; last-first >= MaxLayers || ctx.Err() != nil {
			return
		}
		kernel := kernelAlone()
		if slices.ContainsFunc(kernel.Steps, func(st schedule.Step) bool { return st.Attending != nil }) {
			return // loops over queries and keys are by rule
		}
		kernel.Spec = alone
		key := keyOf(kernel)
		if tasks[k] = known[key]; tasks[k] == nil {
			tasks[k] = newTask(kernel, m, opt, key)
			tasks[k].machine, tasks[k].clusters = s.Spec, clusters
			known[key] = tasks[k]
		}
	})
	return tasks, ctx.Err()
}

// share is one cluster of a machine with its share of the DDR where this many are busy.
func share(spec *hardware.Spec, clusters int) *hardware.Spec {
	alone := spec.Clone()
	alone.Clusters = 1
	if alone.DDRLink.BandwidthBytesPerSecond == 0 {
		alone.DDRLink.BandwidthBytesPerSecond = alone.DDR.BandwidthBytesPerSecond
	}
	alone.DDR.BandwidthBytesPerSecond /= float64(clusters)
	return alone
}

func newTask(kernel *schedule.Schedule, m *cost.Model, opt lower.Options, key string) *Task {
	t := &Task{Key: key, kernel: kernel, model: m, opt: opt, passes: 1}
	if opt.KeepWeights || opt.Prefetch {
		t.passes = 2 // what stays from launch to launch shows in the second
	}
	copied := newScratch(kernel)
	for i := range kernel.Steps {
		sp := newSpace(kernel, copied, i, m)
		sp.kept = opt.KeepWeights
		sp.least = sp.leastLoad()
		t.space = append(t.space, sp)
		t.Rule = append(t.Rule, sp.rule)
		step := &kernel.Steps[i]
		for _, id := range kernel.Layers[kernel.Instances.Instances[step.Instance].Group][step.Layer].Ops {
			t.kinds += string(kernel.Graph.Op(id).Kind) + " "
		}
		t.Operations += sp.loops.MACs + sp.loops.Vector.Total()*kernel.Steps[i].Cores
	}
	loads := make([]load, len(t.space))
	for i, sp := range t.space {
		loads[i] = sp.least
	}
	t.Floor = max(floor(kernel, t.space, opt, m), t.bound(loads))
	t.Name = t.Layer(0)
	if n := len(kernel.Steps); n > 1 {
		t.Name += fmt.Sprintf(" and %d more", n-1)
	}
	return t
}

// floor is Task.Floor.
func floor(s *schedule.Schedule, layers []*space, opt lower.Options, m *cost.Model) float64 {
	ddr, macs := 0.0, 0.0
	dtype := lower.ComputeType(s.Graph)
	read := map[int]bool{}
	for i := range s.Steps {
		st := &s.Steps[i]
		macs += float64(layers[i].loops.MACs) / m.PeakMACsPerSecond(dtype)
		ddr += float64(layers[i].fetched(read, !opt.KeepWeights)) // else weights may stay
		for _, r := range st.Reads {
			read[r.Value] = true
		}
		for _, w := range st.Writes {
			if v := &s.Values[w]; v.Level == schedule.DDR {
				ddr += float64(v.Bytes)
			}
		}
	}
	launch := s.Spec.LaunchSeconds
	return launch + max(macs, ddr/s.Spec.DDR.BandwidthBytesPerSecond)
}

// fetched is the least number of bytes that the layer takes from the DDR, under any of its bindings: what lies between
// the parts of two cores need not come. Values that are in read, and constants if they stay, are not counted.
func (sp *space) fetched(read map[int]bool, constants bool) int64 {
	least := int64(math.MaxInt64)
	for _, b := range sp.bindings {
		x := sp.under(b.cores)
		if x.why != nil {
			continue
		}
		k, sum := sp.at(x), int64(0)
		for _, r := range k.Steps[sp.step].Reads {
			if k.Values[r.Value].Level == schedule.DDR && !read[r.Value] {
				sum += r.UnionBytes
			}
		}
		for _, p := range k.Steps[sp.step].Params {
			if constants && !p.Rows {
				sum += p.UnionBytes
			}
		}
		least = min(least, sum)
	}
	return least
}

// Check reports why a program can't run.
func (t *Task) Check(p Program) error {
	if len(p) != len(t.space) {
		return fmt.Errorf("the program has %d nests, expected %d", len(p), len(t.space))
	}
	for i, n := range p {
		if err := t.space[i].check(n); err != nil {
			return fmt.Errorf("layer %q: %w", t.Layer(i), err)
		}
	}
	return nil
}

// keyOf describes all that a kernel's time and the nests that it may have hang on.
func keyOf(s *schedule.Schedule) string {
	var b strings.Builder
	g := s.Graph
	box := func(t model.TensorID, r model.Region) {
		fmt.Fprintf(&b, " %v", g.Tensor(t).DType)
		for _, iv := range r {
			fmt.Fprintf(&b, ",%d", iv.Len())
		}
	}
	place := map[int]int{}
	value := func(id int) {
		v := &s.Values[id]
		if _, ok := place[id]; !ok {
			place[id] = len(place)
		}
		fmt.Fprintf(&b, " #%d %v%v", place[id], v.Level, v.Instance < 0)
		box(v.Tensor, v.Region)
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		inst := &s.Instances.Instances[st.Instance]
		for _, id := range s.Layers[inst.Group][st.Layer].Ops {
			op := g.Op(id)
			fmt.Fprintf(&b, "%s%v", op.Kind, *op.Attr)
			for _, t := range slices.Concat(op.Inputs, op.Outputs) {
				box(t, inst.Regions[t])
				fmt.Fprint(&b, g.Tensor(t).Role == model.Constant)
			}
		}
		fmt.Fprintf(&b, " on%v in %d of %d, room %d %d", st.Binding, st.Tiles, st.StageBytes, s.Room(i),
			lower.Room(s, i, slices.Max(stageCounts)))
		for _, r := range st.Reads {
			value(r.Value)
			fmt.Fprintf(&b, " %d %d %d %d", r.NeedBytes, r.RemoteBytes, r.CoreNeedBytes, r.UnionBytes)
		}
		for _, p := range st.Params {
			fmt.Fprintf(&b, " p%d %d", p.CoreBytes, p.UnionBytes)
		}
		for _, w := range st.Writes {
			value(w)
		}
		b.WriteString(";")
	}
	return b.String()
}

// with is the kernel with a program; Follow's error if it does not fit.
func (t *Task) with(p Program) (*schedule.Schedule, error) {
	if len(p) != len(t.kernel.Steps) {
		return nil, fmt.Errorf("the program has %d nests, expected %d, one for each layer of %s", len(p),
			len(t.kernel.Steps), t.Name)
	}
	k := *t.kernel
	k.Steps, k.Values = slices.Clone(k.Steps), slices.Clone(k.Values)
	for i, n := range p {
		if err := k.Follow(i, n); err != nil {
			return nil, fmt.Errorf("layer %q: %w", t.Layer(i), err)
		}
	}
	return &k, nil
}

// Seconds lowers and simulates the kernel by a program: the time of one run. What can't run is an error.
func (t *Task) Seconds(ctx context.Context, p Program) (float64, error) {
	ps, err := t.measure(ctx, p)
	return float64(ps) * 1e-12 / float64(t.passes), err
}

// memories are reused by trials: else allocation would take most of their time.
var memories = sync.Pool{New: func() any { return &lower.Memory{} }}

func (t *Task) measure(ctx context.Context, p Program) (int64, error) {
	k, err := t.with(p)
	if err != nil {
		return 0, err
	}
	plan := []lower.Segment{{Schedule: k, Iterations: t.passes}}
	opt := t.opt
	opt.Memory = memories.Get().(*lower.Memory)
	defer memories.Put(opt.Memory)
	program, alike, err := lower.Outline(t.Name, t.machine, slices.Repeat([][]lower.Segment{plan}, t.clusters), opt)
	if err != nil {
		return 0, err
	}
	ps, _, err := sim.Latency(ctx, program, alike, 0)
	return ps, err
}
