package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// Kind and version of files of tuned kernels, and of logs of trials.
const (
	TunedKind    = "dsasched-tuned"
	TunedLogKind = "dsasched-trials"
	TunedVersion = 1
)

// TunedFrom is the workload that kernels were tuned for; a log of trials begins with it.
type TunedFrom struct {
	Kind     string   `json:"kind"`
	Version  int      `json:"version"`
	Networks []string `json:"networks"`
	Graphs   []string `json:"graphs"` // the names in them
	Batch    int64    `json:"batch"`
	Chunk    int64    `json:"chunk"`
	Variant  string   `json:"variant"`
	InPlace  bool     `json:"in_place,omitempty"`
	Uneven   string   `json:"uneven,omitempty"` // which pieces may differ, if not the fastest
	DType    string   `json:"dtype,omitempty"`
	Grain    string   `json:"grain,omitempty"` // how far operators were taken apart, if at all
	// Dims and AllowUnknown are of ONNX files.
	Dims         map[string]int64 `json:"dims,omitempty"`
	AllowUnknown bool             `json:"allow_unknown,omitempty"`
	Hardware     string           `json:"hardware"`
	// Fingerprint is of the hardware as the decisions see it.
	Fingerprint string `json:"hardware_fingerprint"`
	Seed        uint64 `json:"seed"`
	Objective   string `json:"objective"`
	// Enough is the time that is good enough for each network, if f2 was given any.
	Enough    []float64 `json:"enough_s,omitempty"`
	Scheduler string    `json:"scheduler"`
	// Bindings has the bindings of layers inside kernels that differ from their group's.
	Bindings []TunedBinding `json:"bindings,omitempty"`
}

// Tuned is the result of [Tune]: a nest for each layer of each kernel.
type Tuned struct {
	TunedFrom
	Trials int            `json:"trials"`
	Result []TunedNetwork `json:"results"`
	Tasks  []TunedTask    `json:"tasks"`
	Curve  []ansor.Point  `json:"curve"` // the objective by trials
	// Name is the file that it is from, for errors.
	Name string `json:"-"`
}

// TunedNetwork is the time of the kernels of a batch, as if none overlapped another.
type TunedNetwork struct {
	Name        string  `json:"name"`
	RuleSeconds float64 `json:"rule_s"`
	Seconds     float64 `json:"tuned_s"`
	Kernels     int64   `json:"kernels"`
}

// TunedTask is a kernel. Layers can be edited; the times are then another program's.
type TunedTask struct {
	Task        string       `json:"task"` // a hash of all that its time hangs on
	Name        string       `json:"name"`
	Weights     []int64      `json:"weights"` // runs of a cluster in a batch of each network
	Operations  int64        `json:"operations"`
	Trials      int          `json:"trials"`
	RuleSeconds float64      `json:"rule_s"`
	Seconds     float64      `json:"tuned_s"`
	FloorSecs   float64      `json:"bound_s"` // no program is faster
	Rounds      []float64    `json:"best_after_rounds_s"`
	Layers      []TunedLayer `json:"layers"`
}

// TunedLayer is a layer of a kernel with its nest, as [schedule.Nest.Text] has it, line by
// line.
type TunedLayer struct {
	Layer string   `json:"layer"`
	Nest  []string `json:"nest"`
}

// TaskName is the short name of a task's key.
func TaskName(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:12] }

// ReadTuned reads what [Tune] has found, as JSON. Nests are looked at when they are used.
func ReadTuned(data []byte) (*Tuned, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	t := &Tuned{}
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("no file of tuned kernels: %w", err)
	}
	if t.Kind != TunedKind || t.Version != TunedVersion {
		return nil, fmt.Errorf("kind is %q in version %d, expected %q in version %d", t.Kind, t.Version, TunedKind,
			TunedVersion)
	}
	seen := map[string]bool{}
	for i, x := range t.Tasks {
		if seen[x.Task] {
			return nil, fmt.Errorf("tasks[%d].task: %q stands in the file twice", i, x.Task)
		}
		seen[x.Task] = true
	}
	return t, nil
}

// Program is the program of a task of the file, false if the file does not have the task.
func (t *Tuned) Program(task *ansor.Task) (ansor.Program, bool, error) {
	p, ok, err := t.program(task)
	if err != nil && t.Name != "" {
		err = fmt.Errorf("%s: %w", t.Name, err)
	}
	return p, ok, err
}

func (t *Tuned) program(task *ansor.Task) (ansor.Program, bool, error) {
	name := TaskName(task.Key)
	i := slices.IndexFunc(t.Tasks, func(x TunedTask) bool { return x.Task == name })
	if i < 0 {
		return nil, false, nil
	}
	layers := t.Tasks[i].Layers
	if len(layers) != len(task.Rule) {
		return nil, false, fmt.Errorf("tasks[%d].layers has %d, expected %d", i, len(layers), len(task.Rule))
	}
	p := make(ansor.Program, len(layers))
	for k, l := range layers {
		var err error
		if p[k], err = schedule.ParseNest(strings.Join(l.Nest, "\n"), task.Output(k)); err != nil {
			return nil, false, fmt.Errorf("tasks[%d].layers[%d].nest: %w", i, k, err)
		}
	}
	if err := task.Check(p); err != nil {
		return nil, false, fmt.Errorf("tasks[%d] (%s): %w", i, task.Name, err)
	}
	return p, true, nil
}

// defaultTrials is the number of trials each task has where nobody has tuned before.
const defaultTrials = 32

var (
	ruleNests = Strategy{Name: "rules", Description: "by the kernel generator's rules",
		Decide: func(_ context.Context, d *Draft) error {
			d.fitAttentions()
			return nil
		}}
	ansorNests = Strategy{Name: "ansor", Description: "searched by Ansor, or those of a file of tuned kernels",
		Trials: true, Decide: tunedNests}
)

// loops are the nests of layers that do not run by the generator's rules.
type loops struct {
	// nests are those of a schedule's steps; nil: of other groups or layers.
	nests map[stepKey]*schedule.Nest
	// tiles: without nests, products have those of the rule of tiles.
	tiles bool
	// own are nests of layers, by anchor, in the place of these.
	own map[model.OpID]*schedule.Nest
	// made has the steps and values that all decisions together have given; nil: they are made anew.
	made *schedule.Schedule
}

// A stepKey names a step among those of the same groups and layers.
type stepKey struct{ instance, layer int }

func takeLoops(d *Draft, all bool) Decision {
	x := loops{nests: map[stepKey]*schedule.Nest{}, tiles: d.Recipe.at("nest").Name == tiledNests.Name}
	for i := range d.Steps {
		if st := &d.Steps[i]; st.Nest != nil && !d.fitted(i) {
			x.nests[stepKey{st.Instance, st.Layer}] = st.Nest
		}
	}
	if all {
		x.made = d.Schedule
	}
	return x
}

// Stage names the row.
func (x loops) Stage() string { return "nest" }

// Apply gives the steps their nests, as far as they fit.
func (x loops) Apply(ctx context.Context, d *Draft) error {
	if x.made != nil {
		d.Steps, d.Values = slices.Clone(x.made.Steps), slices.Clone(x.made.Values)
		d.Spills, d.GBActivationBytes = x.made.Spills, x.made.GBActivationBytes
		return nil
	}
	if x.nests == nil && x.tiles {
		if err := tileSteps(ctx, d, false); err != nil {
			return err
		}
	}
	d.Index()
	defer d.fitAttentions()
	if len(x.nests)+len(x.own) == 0 {
		return nil
	}
	for i := range d.Steps {
		n := x.nests[stepKey{d.Steps[i].Instance, d.Steps[i].Layer}]
		if own := x.own[layerAt(d.Schedule, &d.Steps[i]).Anchor]; own != nil && d.follow(i, own) {
			continue
		}
		if n != nil {
			d.follow(i, n)
		}
	}
	return nil
}

// fitAttentions gives attentions without a nest tiles for the room that there is.
func (d *Draft) fitAttentions() {
	for i := range d.Steps {
		if st := &d.Steps[i]; st.Attending != nil && st.Nest == nil {
			if n := d.FitAttention(i); n != nil {
				d.follow(i, n)
			}
		}
	}
}

// fitted reports whether the nest of a step is as fitAttentions makes it.
func (d *Draft) fitted(i int) bool {
	st := &d.Steps[i]
	if st.Attending == nil || st.Nest.Attention == nil || st.Nest.Cores != nil {
		return false
	}
	n := d.FitAttention(i)
	return n != nil && *n.Attention == *st.Nest.Attention
}

// Key has the nests. Steps and values that were made belong to one schedule.
func (x loops) Key(b *Key, _ *Decisions) {
	b.Add(int64(len(x.nests)))
	for _, k := range slices.SortedFunc(maps.Keys(x.nests), func(a, b stepKey) int {
		return cmp.Or(a.instance-b.instance, a.layer-b.layer)
	}) {
		b.Add(int64(k.instance), int64(k.layer))
		b.nest(x.nests[k])
	}
	if x.tiles && x.nests == nil {
		b.Add(-2)
	}
	addMap(b, x.own, func(n *schedule.Nest) bool {
		b.nest(n)
		return n != nil
	})
	if x.made != nil {
		b.Add(-1)
	}
}

func (b *Key) nest(n *schedule.Nest) {
	if n != nil && n.Attention != nil {
		b.Text(fmt.Sprintf("%+v", *n.Attention))
		outer := *n
		outer.Attention, n = nil, &outer
	}
	b.Text(fmt.Sprintf("%+v", n))
}

// After drops what was made for other layers or memories.
func (x loops) After(changed string, _, _ *Decisions) Decision {
	switch changed {
	case "issue": // all of the generator's settings
		return x
	case "group", "layers":
		x.nests = nil
	}
	x.made = nil
	return x
}

func (x loops) extend(e *extension) Decision {
	own := extended(x.own, e.ops)
	switch {
	case !e.same:
		return loops{tiles: x.tiles, own: own}
	case !maps.Equal(own, x.own):
		x.own, x.made = own, nil
	}
	return x
}

// follow lets a step run by a nest, if memories and loops allow: equal kernels differ in what others keep there.
func (d *Draft) follow(i int, n *schedule.Nest) bool {
	step, restore := d.Steps[i], d.save(i)
	checks := lower.LoopsOf(d.Schedule, i, d.Cost)
	err := d.Follow(i, n)
	if err == nil {
		if n.Cores != nil && !n.Cores.Equal(step.Binding) {
			checks = lower.LoopsOf(d.Schedule, i, d.Cost)
		}
		err = checks.Check(d.Schedule, i)
	}
	if err != nil {
		restore()
	}
	return err == nil
}

// save returns a function that restores a step and the values that it writes.
func (d *Draft) save(i int) (restore func()) {
	step := d.Steps[i]
	var values []schedule.Value
	for _, w := range step.Writes {
		values = append(values, d.Values[w])
	}
	return func() {
		changed := !d.Steps[i].Binding.Equal(step.Binding)
		d.Steps[i] = step
		for k, w := range step.Writes {
			d.Values[w] = values[k]
		}
		if changed {
			d.Reread(step.Writes)
		}
	}
}

// tunedNests gives every kernel the nests of a file, or looks for some.
func tunedNests(ctx context.Context, d *Draft) error {
	kernels, err := ansor.Kernels(ctx, d.Schedule, d.BusyClusters(), d.Lower)
	if err != nil {
		return err
	}
	programs, small := map[*ansor.Task]ansor.Program{}, 0
	for _, k := range kernels {
		if k != nil {
			small++
		}
	}
	if large := len(kernels) - small; large > 0 {
		d.state.tell(fmt.Sprintf("%d of %d kernels have more than %d layers, whose loops are not searched", large,
			len(kernels), ansor.MaxLayers))
	}
	if t := d.Options.Tuned; t != nil {
		missing := 0
		for _, k := range kernels {
			if k == nil {
				continue
			}
			p, ok, err := t.Program(k)
			if err != nil {
				return err
			}
			if ok {
				programs[k] = p
			} else {
				missing++
			}
		}
		if found := schedulefile.Fingerprint(d.Spec); found != t.Fingerprint {
			return fmt.Errorf("the tuned kernels are for %s as described then (hardware_fingerprint %s), this is %s (%s)",
				t.Hardware, t.Fingerprint, d.Spec.Name, found)
		}
		if missing == small && missing > 0 && !slices.Contains(t.Graphs, d.Graph.Name) {
			return fmt.Errorf("the tuned kernels are of %s on %s by %s, batch %d in chunks of %d: none of the %d kernels "+
				"is among them",
				strings.Join(t.Networks, ", "), t.Hardware, t.Variant, t.Batch, t.Chunk, missing)
		}
		if d.LayerBindings == nil && slices.ContainsFunc(t.Bindings,
			func(b TunedBinding) bool { return b.Graph == d.Graph.Name }) {
			d.state.tell("the tuned file's bindings of layers inside kernels are left out, as bind is not inside")
		}
		if missing > 0 {
			d.state.tell(fmt.Sprintf("%d of %d kernels are not among the tuned ones and run by the generator's rules", missing,
				len(kernels)))
		}
	} else {
		var tasks []*ansor.Task
		seen := map[*ansor.Task]bool{nil: true}
		for _, k := range kernels {
			if !seen[k] {
				seen[k], k.Weights = true, []int64{0}
				tasks = append(tasks, k)
			}
			if k != nil {
				k.Weights[0]++
			}
		}
		found, err := ansor.Tune(ctx, tasks, ansor.Options{Trials: defaultTrials * len(tasks), Seed: 1})
		if err != nil {
			return err
		}
		if found.Stopped != nil {
			return found.Stopped
		}
		d.state.tell(fmt.Sprintf("loops searched in %d trials with seed 1; 'dsasched tune' searches longer", found.Trials))
		for _, a := range found.Answers {
			programs[a.Task] = a.Program
		}
	}
	return Adopt(ctx, d, kernels, programs)
}

// adoptSteps is about how many steps are simulated to see which programs make a chunk faster, and
// retrySteps how many to see which layers of those that do not.
const (
	adoptSteps = 5 << 17
	retrySteps = 1 << 21
)

// Adopt gives the kernels their programs, task by task, where the chunk gets faster by it on
// all clusters: alone, a kernel does not know what the others hide. Of a program that makes
// it slower, those layers are taken that make it faster. In large schedules several tasks are
// judged together, so that no more than adoptSteps are simulated.
func Adopt(ctx context.Context, d *Draft, kernels []*ansor.Task, programs map[*ansor.Task]ansor.Program) error {
	var tasks []*ansor.Task
	done := map[*ansor.Task]bool{}
	task := map[int]*ansor.Task{} // of each instance
	for k, id := range d.Order {
		if task[id] = kernels[k]; programs[kernels[k]] != nil && !done[kernels[k]] {
			done[kernels[k]] = true
			tasks = append(tasks, kernels[k])
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	d.Index()
	own := *d.Schedule // shares steps and values, which follow changes
	own.Place = nil    // waiting for other clusters takes no loops
	plans := d.onBusy(&own, d.inRow())
	opt := d.Lower
	opt.Memory = &lower.Memory{}
	latency := func(limit int64) (int64, error) {
		p, alike, err := lower.Outline("", d.Spec, plans, opt)
		if err != nil {
			return 0, err
		}
		ps, _, err := sim.Latency(ctx, p, alike, limit)
		return ps, err
	}
	best, err := latency(0)
	if err != nil {
		return err
	}
	noRoom := map[int]bool{}
	type place struct{ step, layer int }
	places := map[*ansor.Task][]place{}
	next := map[int]int{} // layer of each instance
	for i := range d.Steps {
		id := d.Steps[i].Instance
		places[task[id]] = append(places[task[id]], place{i, next[id]})
		next[id]++
	}
	// follow lets kernels run some layers by their programs, if that is no slower.
	follow := func(tasks []*ansor.Task, wanted func(layer int) bool) (bool, error) {
		var restore []func()
		for _, k := range tasks {
			for _, at := range places[k] {
				if wanted(at.layer) {
					restore = append(restore, d.save(at.step))
					if !d.follow(at.step, programs[k][at.layer]) {
						noRoom[at.step] = true
					}
				}
			}
		}
		now, err := latency(best + 1)
		if err != nil || now <= best {
			best = min(best, now)
			return true, err
		}
		for _, put := range slices.Backward(restore) {
			put()
		}
		return false, nil
	}
	rejected, retried := 0, 0
	together := (len(tasks)*len(d.Steps) + adoptSteps - 1) / adoptSteps
	for some := range slices.Chunk(tasks, together) {
		taken, err := follow(some, func(int) bool { return true })
		if err != nil {
			return err
		}
		if taken {
			continue
		}
		if together == 1 {
			for one := range programs[some[0]] {
				if retried += len(d.Steps); retried > retrySteps {
					break
				}
				layer, err := follow(some, func(layer int) bool { return layer == one })
				if err != nil {
					return err
				}
				taken = taken || layer
			}
		}
		if !taken {
			rejected += len(some)
		}
	}
	if len(noRoom) > 0 {
		d.state.tell(fmt.Sprintf("%d of %d layers keep the loops of the generator's rules: in their place, the "+
			"memories have no room for the tuned ones", len(noRoom), len(d.Steps)))
	}
	if rejected > 0 {
		d.state.tell(fmt.Sprintf("%d of %d tuned kernels keep the loops of the generator's rules: beside the others, "+
			"those are faster", rejected, len(tasks)))
	}
	return nil
}
