package scheduler

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// Result is a simulated schedule.
type Result struct {
	Recipe   Recipe
	Source   string
	Machine  *hardware.Spec // as described
	Spec     *hardware.Spec // as the decisions saw it, see Level
	Batch    int64
	Chunk    int64
	Uneven   schedule.Uneven      // not UnevenFastest
	InPlace  bool                 // see Options
	Shares   []int64              // of the batch that each cluster sees: all of it if they divide the network
	Clusters Division             // of the work
	Schedule *schedule.Schedule   // of the first cluster's first chunk, or of all clusters without their steps
	Outputs  schedule.Level       // where layers' outputs should stay
	Lower    lower.Options        // what the kernel generator may do
	Plans    [][]lower.Segment    // what each cluster runs
	wholes   []*schedule.Schedule // sums of the segments that clusters divide
	Program  *isa.Program
	Sim      *sim.Result
	// Tried lists the chunk sizes that were tuned over, with their throughput.
	Tried []Trial
	// Also says what else was tried beside those and the recipe's variants, such as "4 of 8 cores".
	Also  []string
	Notes []string

	described int // notes at the start that follow from the plans

	winner  Recipe  // see By
	head    *Result // of a network whose recipes competed on a few of its equal blocks: the same for these; or nil
	half    bool    // results have a part of a memory, or what is left of a share has pieces of its own
	level   Level
	figures bool              // see Options.Figures
	answers map[string]Solved // of the exact strategies, by stage
	// values has the values of settings, by schedule and stage.
	values map[*schedule.Schedule]map[string]Decision
	sizes  map[*schedule.Schedule]int64 // see Sizes
}

// Trial is a chunk size and what it gave.
type Trial struct {
	Chunk               int64
	ThroughputPerSecond float64
	Err                 error
}

// By is the recipe that made the schedule: Recipe itself, or the fastest of its fallbacks.
func (r *Result) By() Recipe {
	if r.winner.Name != "" {
		return r.winner
	}
	return r.Recipe
}

// Improved is the result under the name of the search that began with its recipe.
func (r *Result) Improved() *Result {
	x := *r
	x.Recipe, x.winner = r.By(), Recipe{}
	if !strings.HasPrefix(x.Recipe.Name, "best (") { // else a search has gone on from what one had found
		x.Recipe.Name = fmt.Sprintf("best (from %s)", x.Recipe.Name)
		x.Recipe.Description = "a recipe's schedule, improved as a whole"
	}
	if r.Program != nil {
		p := *r.Program
		x.Program, p.Name = &p, x.ProgramName()
	}
	return &x
}

// Beyond reports whether a schedule of the default has what no single recipe makes: uneven shares, fewer cores, a chunk
// that does not divide a share, a part of a memory, or other pieces for the rest of a share.
func (r *Result) Beyond() bool {
	return !slices.Equal(r.Shares, schedule.Shares(r.Batch, len(r.Shares))) || r.Schedule.Cores > 0 || r.half ||
		r.Shares[0]%r.Chunk != 0
}

// LatencySeconds is the time of the whole batch in seconds.
func (r *Result) LatencySeconds() float64 { return float64(r.Sim.TotalPs) * 1e-12 }

// Last is the cluster that ends last.
func (r *Result) Last() int {
	if len(r.Sim.End) == 0 { // known of clusters that all do the same, or nothing
		return 0
	}
	last := slices.Index(r.Sim.End, slices.Max(r.Sim.End))
	return int(r.Program.Queues[r.Program.Commands[last].Queue].Cluster)
}

// Timeline yields the commands of all clusters with their times; see sim.Result.Timeline.
func (r *Result) Timeline() iter.Seq[sim.Span] { return r.Sim.Timeline(r.Program) }

// ThroughputPerSecond is the rate of a single batch in batch elements per second.
func (r *Result) ThroughputPerSecond() float64 { return float64(r.Batch) / r.LatencySeconds() }

// Raised reports whether the LLB has the role of the L1; see Level.
func (r *Result) Raised() bool { return r.Spec != r.Machine && !r.Clusters.row().Kinds }

// Solved returns the status of an exact strategy's answer to a stage.
func (r *Result) Solved(stage string) (answer Solved, exact bool) {
	answer, exact = r.answers[stage]
	return answer, exact
}

// Decided is the value of a stage as JSON; "": it has none in that form.
func (r *Result) Decided(stage string) string {
	data, err := json.Marshal(r.values[r.Schedule][stage])
	if err != nil || r.values[r.Schedule][stage] == nil {
		return ""
	}
	return string(data)
}

// active counts the clusters that have a share of the batch.
func (r *Result) active() int {
	return len(slices.DeleteFunc(slices.Clone(r.Shares), func(share int64) bool { return share == 0 }))
}

// plan gives each cluster its chunks and what is left of its share; get makes the draft for so many batch elements,
// which a cluster runs so many times at most. cut divides what is left in two: a half, a quarter, ... of a whole chunk,
// and the rest. idle counts the clusters without work.
func (r *Result) plan(cut bool, get func(size, times int64) (*Draft, error)) (idle int, err error) {
	drafts, times := map[int64]*Draft{}, map[int64]int64{}
	r.sizes = map[*schedule.Schedule]int64{}
	type part struct{ size, times int64 }
	parts := func(share int64) []part {
		chunk := min(r.Chunk, share)
		if cut {
			first, left := r.Chunk, share%r.Chunk
			for first > left {
				first /= 2
			}
			return []part{{r.Chunk, share / r.Chunk}, {first, 1}, {left - first, 1}}
		}
		return []part{{chunk, share / max(1, chunk)}, {share % max(1, chunk), 1}}
	}
	for _, share := range r.Shares {
		for _, x := range parts(share) {
			times[x.size] = max(times[x.size], x.times)
		}
	}
	for _, share := range r.Shares {
		var plan []lower.Segment
		if share == 0 {
			idle++
		}
		for _, part := range parts(share) {
			if part.size*part.times == 0 {
				continue
			}
			d := drafts[part.size]
			if d == nil {
				if d, err = get(part.size, times[part.size]); err != nil {
					return 0, err
				}
				drafts[part.size], r.sizes[d.Schedule] = d, part.size
				r.keep(d.Schedule, d.values)
			}
			if r.Schedule == nil {
				r.Schedule, r.Outputs, r.Lower, r.answers = d.Schedule, d.Outputs, d.Lower, d.answers
			}
			plan = append(plan, lower.Segment{Schedule: d.Schedule, Iterations: int(part.times)})
		}
		r.Plans = append(r.Plans, plan)
	}
	return idle, nil
}

// keep notes values of a schedule's settings.
func (r *Result) keep(s *schedule.Schedule, values map[string]Decision) {
	if r.values == nil {
		r.values = map[*schedule.Schedule]map[string]Decision{}
	}
	if r.values[s] == nil {
		r.values[s] = map[string]Decision{}
	}
	maps.Copy(r.values[s], values)
}

// Sizes are the batch elements of the schedules of clusters that divide the batch: whole chunks first, then what is
// left.
func (r *Result) Sizes() map[*schedule.Schedule]int64 { return r.sizes }

// assume notes what a network takes for granted.
func (r *Result) assume(net network.Network) {
	if net.Assumed != "" {
		r.Notes = append(r.Notes, "assumed: "+net.Assumed)
	}
}

// describe notes what is odd about a result that has its plans, before all else. idle counts the clusters without work.
func (r *Result) describe(idle int) error {
	said := r.Notes
	r.Notes = nil
	defer func() { r.described, r.Notes = len(r.Notes), append(r.Notes, said...) }()
	if of := fmt.Sprintf("%d of %d clusters", idle, len(r.Shares)); idle > max(0, len(r.Shares)-int(r.Batch)) {
		r.Notes = append(r.Notes, of+" idle by choice") // weights are loaded less often, or there are fewer stages
	} else if idle > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d leaves %s idle", r.Batch, of))
	}
	if r.Schedule.Place == nil && r.Batch%int64(len(r.Shares)) != 0 && idle == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d does not divide over %d clusters: they take %v", r.Batch,
			len(r.Shares), r.Shares))
	}
	m, err := cost.NewWith(r.Spec, r.Lower.Cost)
	if err != nil {
		return err
	}
	if dt := lower.ComputeType(r.Schedule.Graph); m.Assumed(dt) != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("%s has no matrix rate for %v: assumed is %s", r.Machine.Name, dt,
			m.Assumed(dt)))
	}
	if made, needed := computed(r.Schedule); r.Schedule.Place == nil && made > needed {
		r.Notes = append(r.Notes, fmt.Sprintf("%.4g %% of the MACs are of elements that no output needs; a variant with groups "+
			"leaves them out", 100*float64(made-needed)/float64(made)))
	}
	if short := r.Shortage(); short != "" {
		r.Notes = append(r.Notes, short)
	}
	return nil
}

// computed is the MACs of all elements that instances make, each once, and of those that the outputs need.
func computed(s *schedule.Schedule) (made, needed int64) {
	reg, ids := schedule.Regions{}, make([]model.OpID, len(s.Graph.Ops))
	for _, o := range s.Graph.Outputs {
		reg[o] = model.Whole(s.Graph.Tensor(o).Shape)
	}
	for i, op := range s.Graph.Ops {
		ids[i] = op.ID
	}
	schedule.BackPropagate(s.Graph, ids, reg)
	for _, op := range s.Graph.Ops {
		if r := reg[op.Outputs[0]]; r.Elements() > 0 {
			needed += s.Graph.Work(op, r).MACs
		}
	}
	if needed == s.Graph.MACs() {
		return needed, needed
	}
	for g, group := range s.Grouping.Groups {
		for _, id := range group.Ops {
			op := s.Graph.Op(id)
			o := op.Outputs[0]
			var hull model.Region
			for q := range int(group.Factor()) {
				if r := s.Instances.Instances[s.Instances.First[g]+q].Regions[o]; r.Elements() > 0 && hull == nil {
					hull = r.Clone()
				} else if r.Elements() > 0 {
					hull.Include(r)
				}
			}
			if hull != nil {
				made += s.Graph.Work(op, hull).MACs
			}
		}
	}
	return made, needed
}

// Working says how many clusters have work, and how many cores of one work at a time.
type Working struct {
	Clusters    int `json:"clusters"`
	AllClusters int `json:"of_clusters"`
	Cores       int `json:"cores"` // at most
	AllCores    int `json:"of_cores"`
}

// OutputBindings are those of the schedule, with the steps of all clusters.
func (r *Result) OutputBindings() []schedule.Binding {
	var parts []*schedule.Schedule
	for _, plan := range r.Plans {
		if r.Schedule.Place != nil {
			parts = append(parts, plan[0].Schedule)
		}
	}
	return r.Schedule.OutputBindings(parts...)
}

// Working counts the clusters and cores that have work.
func (r *Result) Working() Working {
	w := Working{AllClusters: len(r.Plans), AllCores: r.Spec.Cores()}
	for _, plan := range r.Plans {
		busy := 0
		for _, seg := range plan {
			for i := range seg.Schedule.Steps {
				busy, w.Cores = 1, max(w.Cores, int(seg.Schedule.Steps[i].Active()))
			}
		}
		w.Clusters += busy
	}
	return w
}

// Shortage says how many bytes the DDR lacks; "": it is large enough. Counted are parameters once, inputs and outputs
// of the batch, and the peak of other live values in the cluster with the largest share.
func (r *Result) Shortage() string {
	s, chunks := r.Schedule, int64(1)
	if r.Clusters == OverBatch {
		chunks = r.Batch / r.Chunk
	}
	if s.Place != nil { // each cluster has its own steps
		return Shortage(s.Graph, r.Spec, chunks, 0)
	}
	change := make([]int64, len(s.Steps)+1)
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && v.Level == schedule.DDR && !s.Graph.IsOutput(v.Tensor) {
			change[v.Def] += v.Bytes
			change[v.Last+1] -= v.Bytes
		}
	}
	alive, most := int64(0), int64(0)
	for _, by := range change {
		alive += by
		most = max(most, alive)
	}
	return Shortage(s.Graph, r.Spec, chunks, most)
}

// Shortage says how many bytes the DDR lacks for the parameters, the inputs and outputs of so many chunks, and beside
// bytes of other data; "": it is large enough.
func Shortage(g *model.Graph, spec *hardware.Spec, chunks, beside int64) string {
	need, size := beside, int64(spec.DDR.SizeBytes)*int64(spec.ChipCount())
	for _, t := range g.Tensors {
		if t.Role == model.Constant {
			need += t.Bytes()
		}
	}
	for _, id := range slices.Concat(g.Inputs, g.Outputs) {
		need += chunks * g.Tensor(id).Bytes()
	}
	if need <= size {
		return ""
	}
	return fmt.Sprintf("the DDR is too small: it has %s, and what lies there takes at least %s",
		hardware.Bytes(size).Rounded(), hardware.Bytes(need).Rounded())
}

// ProgramName names the program of a result.
func (r *Result) ProgramName() string {
	if r.Clusters != OverBatch {
		return fmt.Sprintf("%s/%s/%s/%s", r.Source, r.Spec.Name, r.Recipe.Name, r.Clusters)
	}
	return fmt.Sprintf("%s/%s/%s", r.Source, r.Spec.Name, r.Recipe.Name)
}

// Decisions returns the decisions of a schedule. Values that the recipe's own strategies would make again are left out,
// unless all is set, as for a schedule from a file.
func (r *Result) Decisions(inPlace, all bool) *Decisions {
	_, slow := r.Recipe.greedy()
	all = all || r.Recipe.stages != nil || r.Recipe.Evaluations > 0
	behind := slices.IndexFunc(r.Recipe.table(), func(st Stage) bool { return st.Name == "bind" }) + 1
	for _, st := range r.Recipe.table()[behind:] {
		all = all || !r.Recipe.byRule(st.Name)
	}
	by := r.Recipe
	by.Fallback, by.Evaluations = nil, 0
	take := func(s *schedule.Schedule, size int64) *Decisions {
		d := &Draft{Schedule: s, Recipe: r.Recipe, Outputs: r.Outputs, Lower: r.Lower, values: r.values[s]}
		p := &Decisions{Recipe: by, InPlace: inPlace, Uneven: r.Uneven, Chunk: size, Stages: r.Recipe.table()}
		for _, st := range p.Stages {
			var x Decision
			if st.take != nil {
				x = st.take(d, all)
			}
			p.Values = append(p.Values, x)
		}
		return p
	}
	p := take(r.Schedule, r.Chunk)
	if all || slow {
		p.rest = map[int64]*Decisions{}
		for s, size := range r.Sizes() {
			if size != r.Chunk {
				p.rest[size] = take(s, size)
			}
		}
	}
	return p
}

// Energy is the energy of the simulated program: operations, bytes read and written at each level, and static power
// over the latency. nil: the machine's description has no figures.
func (r *Result) Energy() *cost.Energy {
	return lower.Energy(r.Spec, r.Schedule.Graph, r.Sim.MACs, r.Sim.VectorOps, r.Sim.Dynamic.AccessBytes, r.Sim.TotalPs)
}

// Joules is the energy of a result in joules; 0: the machine's description has no figures.
func (r *Result) Joules() float64 {
	if e := r.Energy(); e != nil {
		return e.Total()
	}
	return 0
}

// commands names the commands that the schedules of a result are lowered to, of the same graph and machine.
func (r *Result) commands() [sha256.Size]byte {
	b := Key(fmt.Append(nil, r.Lower.Generator))
	named := map[*schedule.Schedule]bool{}
	for _, segments := range r.Plans {
		for _, seg := range segments {
			b.Add(int64(seg.Iterations))
			if !named[seg.Schedule] {
				named[seg.Schedule] = true
				b.schedule(seg.Schedule)
			}
		}
	}
	return sha256.Sum256(b)
}

// schedule adds all that commands follow from.
func (b *Key) schedule(s *schedule.Schedule) {
	b.Add(s.WeightRoom.BufferBytes(s.Spec), s.WeightRoom.HomeBytes(s.Spec))
	for i := range s.Steps {
		st := &s.Steps[i]
		layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
		b.Add(int64(st.Instance), int64(st.Kind), int64(layer.Anchor), int64(len(layer.Ops)))
		for _, id := range layer.Ops {
			b.Add(int64(id))
		}
		b.region(st.CoreOutput)
		b.Binding(st.Binding)
		b.Add(st.Tiles, st.StageAddress, st.StageBytes, int64(len(st.Reads)), int64(len(st.Params)))
		if st.Panels {
			b.Add(-1)
		}
		for k := range st.Reads {
			r := &st.Reads[k]
			b.Add(int64(r.Value), r.NeedBytes, r.RemoteBytes, r.UnionBytes, r.CoreNeedBytes, r.CoreRemoteBytes)
		}
		for k := range st.Params {
			x := &st.Params[k]
			b.Add(int64(x.Tensor), x.Offset, x.CoreBytes, x.UnionBytes)
		}
		if st.Nest != nil {
			*b = append(*b, st.Nest.Text(s.Graph.Tensor(st.Output))...)
		}
	}
	for i := range s.Values {
		v := &s.Values[i]
		b.Add(int64(v.Tensor), int64(v.Instance), int64(v.Level), v.Address, v.Bytes, v.CoreBytes, int64(v.Def),
			int64(v.Last))
		b.region(v.Region)
		b.Binding(v.Binding)
	}
}

// leftOfLLB is the number of sixteenths of the LLB that values leave in all schedules of a result; 16: there is none.
func (r *Result) leftOfLLB() int64 {
	left := int64(16)
	for _, list := range r.Plans {
		for i := range list {
			if s := list[i].Schedule; s.LLBCapacity > 0 {
				left = min(left, 16*(s.LLBCapacity-s.LLBActivationBytes)/s.LLBCapacity)
			}
		}
	}
	return left
}
