package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

// Report is a simulated schedule in numbers: the groups, the order, what moved and
// where the time went. Its JSON is the answer of `dsasched schedule`. Times are in
// seconds; levels of memory are called l1 (a core's buffer), llb (a cluster's) and ddr.
type Report struct {
	Model    string          `json:"model"`
	Hardware string          `json:"hardware"`
	Level    scheduler.Level `json:"level"` // that is filled with instances
	Variant  string          `json:"variant"`
	DType    string          `json:"dtype"`
	InPlace  bool            `json:"in_place"`
	Spill    string          `json:"spill"`
	Batch    int64           `json:"batch"`
	Shares   []int64         `json:"shares"`   // of the batch, of each cluster; none if they divide something else
	Chunk    int64           `json:"chunk"`    // of a share, at a time
	Clusters string          `json:"clusters"` // what they divide, see [Divisions]

	ThroughputPerSecond float64 `json:"throughput_per_s"`
	LatencySeconds      float64 `json:"latency_s"` // of the batch
	// SteadyThroughputPerSecond is [Result.Steady]; null: not computed, or too large for it.
	SteadyThroughputPerSecond *float64 `json:"steady_throughput_per_s"`
	// EnergyJoules is of the batch, Energy its parts; null: the accelerator's description has no figures.
	EnergyJoules      *float64        `json:"energy_j"`
	AveragePowerWatts *float64        `json:"average_power_w"`
	Energy            *cost.Energy    `json:"energy"`
	LimitedBy         string          `json:"limited_by"`
	Busy              []scheduler.Use `json:"busy"`            // units and bandwidths
	BoundSeconds      float64         `json:"lower_bound_s"`   // that no execution of the program can beat
	MMEUtilization    float64         `json:"mme_utilization"` // of the chip's peak
	VMEUtilization    float64         `json:"vme_utilization"`
	MACs              int64           `json:"macs"`
	VectorOps         int64           `json:"vector_ops"`

	// Groups, order, joins and spills are of a chunk, on the first cluster or on all that divide it.
	Groups       []GroupReport       `json:"groups"`
	Order        OrderReport         `json:"order"`
	Joins        []JoinReport        `json:"joins"`
	Memory       MemoryReport        `json:"memory"`
	Spills       []SpillReport       `json:"spills"`
	Kernels      int64               `json:"kernels"` // launches in the program of a cluster
	Time         []TimeReport        `json:"time"`
	Last         int                 `json:"last_cluster"` // to end
	Commands     []CommandReport     `json:"commands"`     // by isa.Kind
	Resources    []ResourceReport    `json:"resources"`
	TensorWrites LevelCounts[Counts] `json:"tensor_writes"`
	// Traffic has each move at the farthest level that it touches.
	Traffic LevelCounts[ByteCounts] `json:"traffic"`
	Working scheduler.Working       `json:"working"`
	Tuned   []TrialReport           `json:"tuned"`      // chunks that were tried
	Also    []string                `json:"also_tried"` // beside them, in words
	Notes   []string                `json:"notes"`
}

// GroupReport is a group of operators and what became of it.
type GroupReport struct {
	Name        string  `json:"name"`
	SplitDim    *string `json:"split_dim"` // null: not split
	SplitIndex  *int    `json:"split_dim_index"`
	SplitFactor int64   `json:"split_factor"`
	Instances   int     `json:"instances"`
	FitsL1      bool    `json:"fits_l1"` // an instance, by Algorithm 1's count
	PeakBytes   int64   `json:"unsplit_peak_bytes"`
	Layers      int     `json:"layers"`
	// Clusters has the cluster of each instance, if they divide the network.
	Clusters []int `json:"clusters,omitempty"`
	// OutputLevels says where the outputs of the instances are, after spilling.
	OutputLevels []string `json:"output_levels"`
	Ops          []string `json:"ops"`
	// Bindings lists the instances' bindings in words, each once; see [BindingText].
	Bindings []string `json:"-"`
}

// OrderReport is the order of the instances, with the orders that it was chosen from.
type OrderReport struct {
	Name       string            `json:"name"`
	Candidates []CandidateReport `json:"candidates"`
	Instances  []InstanceReport  `json:"instances"`
}

// CandidateReport is the cost of an order.
type CandidateReport struct {
	Name          string  `json:"name"`
	Chosen        bool    `json:"chosen"`
	MovedBytes    int64   `json:"moved_bytes"`
	Utilization   float64 `json:"l1_utilization"`
	PeakBytes     int64   `json:"l1_peak_bytes"` // over the cores of a cluster
	OverflowBytes int64   `json:"l1_overflow_bytes"`
}

// InstanceReport is an instance in its place in the order.
type InstanceReport struct {
	Group   string           `json:"group"`
	Index   int64            `json:"index"`
	Binding schedule.Binding `json:"binding"` // cores per dimension of the first output
	Scope   string           `json:"scope"`   // where the output is declared, before spilling
	// GroupIndex is the group's place among the groups.
	GroupIndex int `json:"-"`
}

// JoinReport sums up the joins of a kind.
type JoinReport struct {
	Kind       schedule.JoinKind `json:"kind"`
	Count      int               `json:"count"`
	MovedBytes int64             `json:"moved_bytes"`
}

// MemoryReport is the use of the buffers, of the cluster that uses most.
type MemoryReport struct {
	L1  BufferReport `json:"l1_per_core"`
	LLB BufferReport `json:"llb_per_cluster"`
}

// BufferReport is the use of a buffer; a capacity of 0 is that of none.
type BufferReport struct {
	CapacityBytes int64   `json:"capacity_bytes"`
	PeakBytes     int64   `json:"peak_bytes"`
	MeanBytes     float64 `json:"mean_bytes"`
}

// SpillReport is a value that was moved away from where it should be.
type SpillReport struct {
	Tensor   string `json:"tensor"`
	Group    string `json:"group,omitempty"` // "": a network input
	Instance int64  `json:"instance"`
	From     string `json:"from"`
	To       string `json:"to"`
	Bytes    int64  `json:"bytes"`
}

// TimeReport divides the time of a cluster.
type TimeReport struct {
	Cluster        int     `json:"cluster"`
	ComputeSeconds float64 `json:"compute_s"`
	MoveSeconds    float64 `json:"move_s"`
	LaunchSeconds  float64 `json:"launch_s"`
	IdleSeconds    float64 `json:"idle_s"`
}

// CommandReport counts the commands of a kind.
type CommandReport struct {
	Kind    string `json:"kind"`
	Static  int64  `json:"static"`
	Dynamic int64  `json:"dynamic"`
}

// ResourceReport is the use of a bandwidth.
type ResourceReport struct {
	Name           string  `json:"name"`
	What           string  `json:"what"`          // as in busy, which has the largest utilization of those of a name
	ChargedBytes   int64   `json:"charged_bytes"` // at the full rate, see scheduler.Use
	BytesPerSecond int64   `json:"rate_bytes_per_s"`
	Utilization    float64 `json:"utilization"`
}

// LevelCounts has a count for each level of memory.
type LevelCounts[T any] struct {
	DDR T `json:"ddr"`
	LLB T `json:"llb"`
	L1  T `json:"l1"`
}

// Counts are of cluster 0's program with the batch loop counted once, and of all that was executed.
type Counts struct {
	Static  int64 `json:"static"`
	Dynamic int64 `json:"dynamic"`
}

// ByteCounts are Counts in bytes.
type ByteCounts struct {
	Static  int64 `json:"static_bytes"`
	Dynamic int64 `json:"dynamic_bytes"`
}

// TrialReport is a chunk size and what it gave.
type TrialReport struct {
	Chunk               int64    `json:"chunk"`
	Chosen              bool     `json:"chosen"`
	ThroughputPerSecond *float64 `json:"throughput_per_s"` // null: failed
	Error               string   `json:"error,omitempty"`
}

// Report puts a result into numbers. origin says what the result does not know: how
// the model was named, its type and the options.
func NewReport(r *scheduler.Result, origin schedulefile.Origin) *Report {
	s, sr, own := r.Schedule, r.Sim, r.OutputBindings()
	const ps = 1e-12
	a := &Report{
		Model: origin.Model, Hardware: r.Machine.Name, Level: scheduler.LevelL1, Variant: r.Recipe.Name, DType: origin.DType,
		InPlace: origin.InPlace || r.InPlace, Spill: origin.Spill,
		Batch: r.Batch, Shares: []int64{}, Chunk: r.Chunk, Clusters: r.Clusters.Name(),
		ThroughputPerSecond: r.ThroughputPerSecond(), LatencySeconds: r.LatencySeconds(), LimitedBy: r.LimitText(),
		Busy:           append([]scheduler.Use{}, r.Uses()...),
		BoundSeconds:   float64(sr.Bound.Ps()) * ps,
		MMEUtilization: sr.MACUtilization, VMEUtilization: sr.VectorUtilization, MACs: sr.MACs, VectorOps: sr.VectorOps,
		Groups: reportGroups(s, own), Order: reportOrder(s, own), Joins: reportJoins(s), Spills: []SpillReport{},
		Kernels: sr.Static.Commands[isa.Launch],
		Time:    []TimeReport{}, Last: r.Last(), Commands: []CommandReport{}, Resources: []ResourceReport{},
		Tuned: []TrialReport{}, Working: r.Working(), Also: append([]string{}, r.Also...),
		Notes: append([]string{}, r.Notes...),
	}
	if r.Clusters == scheduler.OverBatch {
		a.Shares = r.Shares
	}
	a.Notes = append(a.Notes, latencies(r)...)
	if r.Raised() {
		a.Level = scheduler.LevelLLB
	}
	if a.Energy = r.Energy(); a.Energy != nil {
		total := a.Energy.Total()
		power := total / a.LatencySeconds
		a.EnergyJoules, a.AveragePowerWatts = &total, &power
	}
	a.Memory.L1.CapacityBytes = r.Program.Capacity[isa.L1]
	a.Memory.LLB.CapacityBytes = r.Program.Capacity[isa.LLB]
	for i := range sr.Clusters {
		c := &sr.Clusters[i]
		a.Memory.L1.raise(c.Memory[isa.L1].PeakBytes, c.Memory[isa.L1].MeanBytes)
		a.Memory.LLB.raise(c.Memory[isa.LLB].PeakBytes, c.Memory[isa.LLB].MeanBytes)
		a.Time = append(a.Time, TimeReport{i, float64(c.Time.ComputePs) * ps, float64(c.Time.MovePs) * ps,
			float64(c.Time.LaunchPs) * ps, float64(c.Time.IdlePs) * ps})
	}
	for _, sp := range s.Spills {
		v := &s.Values[sp.Value]
		x := SpillReport{Tensor: s.Graph.Tensor(v.Tensor).Name, From: sp.From.Word(), To: sp.To.Word(), Bytes: sp.Bytes}
		if v.Instance >= 0 {
			inst := &s.Instances.Instances[v.Instance]
			x.Group, x.Instance = s.Grouping.Groups[inst.Group].Name, inst.Index
		}
		a.Spills = append(a.Spills, x)
	}
	for k := range isa.NumKinds {
		a.Commands = append(a.Commands, CommandReport{k.String(), sr.Static.Commands[k], sr.Dynamic.Commands[k]})
	}
	for i, res := range r.Program.Resources {
		a.Resources = append(a.Resources, ResourceReport{res.Name, r.ResourceWord(res), sr.Resources[i].Bytes,
			res.BytesPerSecond, sr.Resources[i].Utilization})
	}
	writes := func(l isa.Level) Counts { return Counts{sr.Static.TensorWrites[l], sr.Dynamic.TensorWrites[l]} }
	moved := func(l isa.Level) ByteCounts { return ByteCounts{sr.Static.LevelBytes[l], sr.Dynamic.LevelBytes[l]} }
	a.TensorWrites = LevelCounts[Counts]{writes(isa.DDR), writes(isa.LLB), writes(isa.L1)}
	a.Traffic = LevelCounts[ByteCounts]{moved(isa.DDR), moved(isa.LLB), moved(isa.L1)}
	for _, t := range r.Tried {
		x := TrialReport{Chunk: t.Chunk, Chosen: t.Chunk == r.Chunk}
		if t.Err != nil {
			x.Error = t.Err.Error()
		} else {
			x.ThroughputPerSecond = &t.ThroughputPerSecond
		}
		a.Tuned = append(a.Tuned, x)
	}
	return a
}

// latencies says which loads wait for the latency of the one before for a third of the time, since a machine's
// description has no more than one in flight.
func latencies(r *scheduler.Result) (notes []string) {
	spec, gb := r.Spec, 0.0
	if spec.LLB != nil {
		gb = spec.LLB.LatencySeconds
	}
	most := [isa.NumQueueKinds]float64{}
	for i, q := range r.Program.Queues {
		most[q.Kind] = max(most[q.Kind], float64(r.Sim.Queues[i].Commands)/float64(max(1, r.Sim.TotalPs))*1e12)
	}
	for _, x := range []struct {
		what, key string
		link      hardware.Link
		latency   float64
		kind      isa.QueueKind
	}{{"DDR loads", "ddr_link", spec.DDRLink, spec.DDR.LatencySeconds + spec.DDRLink.LatencySeconds, isa.DDRLoadQueue},
		{"loads into the L1s", "core_link", spec.CoreLink, spec.CoreLink.LatencySeconds + gb, isa.InQueue}} {
		if share := most[x.kind] * x.latency; x.link.Loads() == 1 && share >= 1.0/3 {
			notes = append(notes, fmt.Sprintf("%.0f %% of the time is the latency of %s, of which a cluster has one in "+
				"flight: see %s.in_flight of the machine's description", 100*share, x.what, x.key))
		}
	}
	return notes
}

// AddSteady fills in the steady rate, unless its program would be too large.
func (a *Report) AddSteady(ctx context.Context, r *scheduler.Result) error {
	steady, err := r.Steady(ctx)
	if err == nil {
		a.SteadyThroughputPerSecond = &steady
	} else if scheduler.TooLarge(err) {
		err = nil
	}
	return err
}

// raise keeps the larger values; clusters differ if their shares do.
func (b *BufferReport) raise(peak int64, mean float64) {
	b.PeakBytes, b.MeanBytes = max(b.PeakBytes, peak), max(b.MeanBytes, mean)
}

func reportGroups(s *schedule.Schedule, own []schedule.Binding) []GroupReport {
	g := s.Graph
	groups := make([]GroupReport, len(s.Grouping.Groups))
	for k, sg := range s.Grouping.Groups {
		x := &groups[k]
		*x = GroupReport{Name: sg.Name, PeakBytes: sg.PeakBytes, Layers: len(s.Layers[k]), SplitFactor: sg.Factor(),
			FitsL1: sg.Split.Factor != schedule.Unsplittable, OutputLevels: []string{}}
		if d := sg.SplitDim(); d >= 0 {
			name := g.Tensor(sg.Outputs[0]).DimName(d)
			x.SplitDim, x.SplitIndex = &name, &d
		}
		for _, id := range sg.Ops {
			x.Ops = append(x.Ops, g.Op(id).Name)
		}
	}
	for i := range own {
		k := s.Instances.Instances[i].Group
		x := &groups[k]
		x.Instances++
		if s.Place != nil {
			x.Clusters = append(x.Clusters, s.Place[i])
		}
		if text := own[i].Text(g.Tensor(s.Grouping.Groups[k].Outputs[0])); !slices.Contains(x.Bindings, text) {
			x.Bindings = append(x.Bindings, text)
		}
	}
	levels := make([][]schedule.Level, len(groups))
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 {
			k := s.Instances.Instances[v.Instance].Group
			if slices.Contains(s.Grouping.Groups[k].Outputs, v.Tensor) && !slices.Contains(levels[k], v.Level) {
				levels[k] = append(levels[k], v.Level)
			}
		}
	}
	for k := range groups {
		slices.Sort(levels[k])
		for _, l := range levels[k] {
			groups[k].OutputLevels = append(groups[k].OutputLevels, l.Word())
		}
	}
	return groups
}

func reportOrder(s *schedule.Schedule, own []schedule.Binding) OrderReport {
	o := OrderReport{Name: s.OrderName, Candidates: []CandidateReport{}, Instances: []InstanceReport{}}
	for _, c := range s.Costs {
		o.Candidates = append(o.Candidates, CandidateReport{c.Name, c.Name == s.OrderName,
			c.Cost.MovedBytes, c.Cost.Utilization, c.Cost.PeakBytes, c.Cost.OverflowBytes})
	}
	for _, i := range s.Order {
		inst := &s.Instances.Instances[i]
		o.Instances = append(o.Instances, InstanceReport{s.Grouping.Groups[inst.Group].Name, inst.Index,
			append(schedule.Binding{}, own[i]...), s.Scopes[i].Word(), inst.Group})
	}
	return o
}

func reportJoins(s *schedule.Schedule) []JoinReport {
	joins := []JoinReport{}
	for _, kind := range []schedule.JoinKind{schedule.Concat, schedule.SplitOp, schedule.Copy, schedule.Redistribute} {
		x := JoinReport{Kind: kind}
		for _, join := range s.Joins {
			if join.Kind == kind {
				x.Count++
				x.MovedBytes += join.Bytes
			}
		}
		joins = append(joins, x)
	}
	return joins
}
