package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// File is the result as a schedule file. Fields of origin are kept unless the result knows them better.
func (r *Result) File(origin schedulefile.Origin) *schedulefile.File {
	origin.Source, origin.Variant, origin.Recipe, origin.Tuned = r.Source, r.Recipe.Name, "", nil
	origin.Fastest, origin.Also, origin.Notes = "", r.Also, r.Notes[r.described:]
	origin.InPlace = origin.InPlace || r.InPlace
	if known, err := lookup(r.winner.Name); err == nil && known.Text() == r.winner.Text() {
		origin.Fastest = known.Name
	}
	if known := recipeOf(origin); known.Text() != r.Recipe.Text() {
		origin.Recipe = r.Recipe.Text()
	}
	for _, t := range r.Tried {
		x := schedulefile.Trial{Chunk: t.Chunk, ThroughputPerSecond: t.ThroughputPerSecond}
		if t.Err != nil {
			x.Error = t.Err.Error()
		}
		origin.Tuned = append(origin.Tuned, x)
	}
	f := &schedulefile.File{Kind: schedulefile.Kind, Version: schedulefile.Version, Origin: &origin, Batch: r.Batch,
		Hardware: schedulefile.Hardware{Name: r.Machine.Name, Level: string(LevelL1),
			Fingerprint: schedulefile.Fingerprint(r.Machine)},
		Generator: r.Lower.Generator,
		Clusters:  [][]schedulefile.Segment{}, Schedules: []schedulefile.Plan{}}
	if r.Raised() {
		f.Hardware.Level = string(LevelLLB)
	}
	if r.Clusters != OverBatch {
		f.Division = string(r.Clusters)
		var segments []schedulefile.Segment
		rest := r.Batch
		for j, whole := range r.wholes {
			var parts []*schedule.Schedule
			for _, plan := range r.Plans {
				parts = append(parts, plan[j].Schedule)
			}
			times := int64(r.Plans[0][j].Iterations)
			batch := r.Chunk
			if j > 0 {
				batch = rest / times
			}
			rest -= batch * times
			p := schedulefile.NewPlan(whole, batch, r.Outputs, parts...)
			p.Decisions = r.written(whole)
			f.Schedules = append(f.Schedules, p)
			segments = append(segments, schedulefile.Segment{Schedule: j, Iterations: times})
		}
		for range r.Plans {
			f.Clusters = append(f.Clusters, slices.Clone(segments))
		}
		return f
	}
	known, sizes := map[*schedule.Schedule]int{}, r.Sizes()
	for _, plan := range r.Plans {
		segments := []schedulefile.Segment{}
		for _, seg := range plan {
			at, ok := known[seg.Schedule]
			if !ok {
				at = len(f.Schedules)
				known[seg.Schedule] = at
				p := schedulefile.NewPlan(seg.Schedule, sizes[seg.Schedule], r.Outputs)
				p.Decisions = r.written(seg.Schedule)
				f.Schedules = append(f.Schedules, p)
			}
			segments = append(segments, schedulefile.Segment{Schedule: at, Iterations: int64(seg.Iterations)})
		}
		f.Clusters = append(f.Clusters, segments)
	}
	return f
}

// ViolationsError lists which rules a schedule file breaks.
type ViolationsError struct{ Violations []schedulefile.Violation }

func (e *ViolationsError) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

// MachineOf returns the machine that a schedule file's decisions were made for: described, with the file's level in the
// role of the L1.
func MachineOf(f *schedulefile.File, described *hardware.Spec) (*hardware.Spec, error) {
	return Division(f.Division).machine(described, Level(f.Hardware.Level))
}

// recipeOf is the recipe that a file says it was made by. Strategies that nobody knows have their names only; of a
// variant that nobody knows, the names are empty.
func recipeOf(o schedulefile.Origin) Recipe {
	r, err := lookup(o.Variant)
	switch {
	case o.Recipe != "":
		return Parse(o.Variant, "", o.Recipe)
	case err != nil:
		r = Recipe{Name: o.Variant}
		for _, st := range Stages() {
			r.set(Pick{Stage: st.Name})
		}
	}
	return r
}

// written are the values of a schedule's settings for which the file has no words of its own: the caller's, and those
// of the table that differ from what the recipe says.
func (r *Result) written(s *schedule.Schedule) (all []schedulefile.Decision) {
	for _, name := range slices.Sorted(maps.Keys(r.values[s])) {
		data, err := json.Marshal(r.values[s][name])
		if err != nil {
			continue // no JSON can say it
		}
		if st, err := r.Recipe.stage(name); err == nil && !st.own && st.read != nil {
			if st.inPlan {
				continue
			}
			if said, err := json.Marshal(st.take(&Draft{Recipe: r.Recipe}, false)); err == nil && bytes.Equal(said, data) {
				continue
			}
		}
		all = append(all, schedulefile.Decision{Stage: name, Value: string(data)})
	}
	return all
}

// Settings are the values of the settings of the chunk's schedule, as its file has them under decisions.
func (r *Result) Settings() []schedulefile.Decision { return r.written(r.Schedule) }

// unread is the decision of a stage that the reader of a file does not have. The schedule does not need it.
type unread struct{ stage, value string }

func (x unread) Stage() string                       { return x.stage }
func (x unread) Apply(context.Context, *Draft) error { return nil }
func (x unread) Key(b *Key, _ *Decisions)            { b.Text(x.value) }
func (x unread) MarshalJSON() ([]byte, error)        { return []byte(x.value), nil }

// readValues takes over what a file says of settings.
func (r *Result) readValues(s *schedule.Schedule, number int, all []schedulefile.Decision) error {
	for i, y := range all {
		var x Decision = unread{y.Stage, y.Value}
		st, err := r.Recipe.stage(y.Stage)
		_, twice := r.values[s][y.Stage]
		switch {
		case twice:
			err = fmt.Errorf("%q stands there twice", y.Stage)
		case !json.Valid([]byte(y.Value)):
			err = fmt.Errorf("value is %q, expected JSON", y.Value)
		case err == nil && st.read != nil:
			x, err = st.read([]byte(y.Value))
		default:
			err = nil
		}
		if err != nil {
			return &ViolationsError{[]schedulefile.Violation{
				{At: fmt.Sprintf("schedules[%d].decisions[%d]", number, i), What: err.Error()}}}
		}
		r.keep(s, map[string]Decision{y.Stage: x})
	}
	return nil
}

// Restore simulates the schedule of a file on a machine, after it was checked. A
// schedule that breaks rules is a [*ViolationsError]. What [Result.File] has written gives
// the same result as the run that it was written of, if that had no operator cost of its own.
func Restore(ctx context.Context, f *schedulefile.File, described *hardware.Spec) (*Result, error) {
	r, err := planned(ctx, f, described)
	if err != nil {
		return nil, err
	}
	if err := r.Simulate(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// planned is Restore without a simulation.
func planned(ctx context.Context, f *schedulefile.File, described *hardware.Spec) (*Result, error) {
	spec, err := MachineOf(f, described)
	if err != nil {
		return nil, err
	}
	if bad := schedulefile.Check(ctx, f, spec); len(bad) > 0 {
		return nil, cmp.Or(ctx.Err(), error(&ViolationsError{bad}))
	}
	var origin schedulefile.Origin
	if f.Origin != nil {
		origin = *f.Origin
	}
	r := &Result{Recipe: recipeOf(origin), Source: origin.Source, Machine: described, Spec: spec, Batch: f.Batch,
		Uneven: schedule.UnevenAll, level: Level(f.Hardware.Level), InPlace: origin.InPlace}
	if p := f.Schedules[0]; p.Divisors {
		r.Uneven = schedule.UnevenDivisors
	} else if !p.UnevenCores {
		r.Uneven = schedule.UnevenOutputs
	}
	r.winner, _ = lookup(origin.Fastest)
	r.Also, r.Notes = origin.Also, origin.Notes
	r.Outputs = f.Schedules[0].OutputLevel()
	r.Lower = lower.Options{Generator: f.Generator}
	for _, t := range origin.Tuned {
		x := Trial{Chunk: t.Chunk, ThroughputPerSecond: t.ThroughputPerSecond}
		if t.Error != "" {
			x.Err = errors.New(t.Error)
		}
		r.Tried = append(r.Tried, x)
	}
	if r.Clusters, err = LookupDivision(cmp.Or(f.Division, OverBatch.Name())); err != nil {
		return nil, err
	}
	// get completes what the file has of schedule i, or of a cluster's part in it.
	get := func(i, cluster int) (*schedule.Schedule, error) {
		s, bad := f.Build(ctx, i, spec, cluster)
		if bad != nil {
			return nil, cmp.Or(ctx.Err(), error(&ViolationsError{bad}))
		}
		s.Joins = table.Join(s)
		measureJoins(s)
		if f.Schedules[i].Memory == nil {
			how := Placing{Rule: spillRules()[0]}
			if st, err := LookupStage("spill"); err == nil {
				if by, err := st.Lookup(origin.Spill); err == nil && by.Places != nil && !by.Places.Over {
					how.Rule = by.Places.Rule
				}
			}
			if err := table.Place(ctx, s, how); err != nil {
				return nil, fmt.Errorf("schedules[%d] has no memory plan, and none is found: %w", i, err)
			}
			if err := schedule.Check(s); err != nil {
				return nil, fmt.Errorf("internal error, the memory plan of schedules[%d] breaks a rule: %w", i, err)
			}
		}
		return s, nil
	}
	if r.Clusters != OverBatch {
		return r.restoreTogether(f, get)
	}
	schedules := make([]*schedule.Schedule, len(f.Schedules))
	for i := range f.Schedules {
		if schedules[i], err = get(i, 0); err != nil {
			return nil, err
		}
		if err = r.readValues(schedules[i], i, f.Schedules[i].Decisions); err != nil {
			return nil, err
		}
	}
	idle := 0
	r.sizes = map[*schedule.Schedule]int64{}
	for _, segments := range f.Clusters {
		var plan []lower.Segment
		share := int64(0)
		for _, seg := range segments {
			if r.Schedule == nil {
				r.Schedule, r.Chunk = schedules[seg.Schedule], f.Schedules[seg.Schedule].Batch
			}
			share += seg.Iterations * f.Schedules[seg.Schedule].Batch
			r.sizes[schedules[seg.Schedule]] = f.Schedules[seg.Schedule].Batch
			plan = append(plan, lower.Segment{Schedule: schedules[seg.Schedule], Iterations: int(seg.Iterations)})
		}
		if share == 0 {
			idle++
		}
		r.Shares, r.Plans = append(r.Shares, share), append(r.Plans, plan)
	}
	return r, r.describe(idle)
}

// restoreTogether is planned of clusters that divide chunks.
func (r *Result) restoreTogether(f *schedulefile.File,
	get func(i, cluster int) (*schedule.Schedule, error)) (*Result, error) {
	made, wholes := make([][]*schedule.Schedule, len(f.Schedules)), make([]*schedule.Schedule, len(f.Schedules))
	busy := make([]bool, r.Spec.AllClusters())
	for i := range made {
		for k := range busy {
			part, err := get(i, k)
			if err != nil {
				return nil, err
			}
			made[i] = append(made[i], part)
			part.Graph = made[i][0].Graph // what one writes is what another reads
			busy[k] = busy[k] || len(part.Order) > 0
		}
		var order []int
		for _, x := range f.Schedules[i].Order {
			order = append(order, made[i][0].Instances.First[x[0]]+x[1])
		}
		whole, err := joined(order, made[i])
		if err != nil {
			return nil, err
		}
		wholes[i] = whole
		if err := r.readValues(whole, i, f.Schedules[i].Decisions); err != nil {
			return nil, err
		}
	}
	idle := 0
	for k, segments := range f.Clusters {
		var plan []lower.Segment
		for _, seg := range segments {
			plan = append(plan, lower.Segment{Schedule: made[seg.Schedule][k], Iterations: int(seg.Iterations)})
			if k == 0 {
				r.wholes = append(r.wholes, wholes[seg.Schedule])
			}
		}
		if !busy[k] {
			idle++
		}
		r.Shares, r.Plans = append(r.Shares, f.Batch), append(r.Plans, plan)
	}
	r.Schedule, r.Chunk = r.wholes[0], f.Schedules[f.Clusters[0][0].Schedule].Batch
	return r, r.describe(idle)
}

// Fits says why a search can't start from the schedule; nil: it can.
func (r *Result) Fits(network string, g *model.Graph, machine *hardware.Spec, batch int64, chunks []int64) error {
	wrong := func(what string, found, want any) error {
		return fmt.Errorf("the schedule to start from: %s: found %v, expected %v", what, found, want)
	}
	switch {
	case r.Clusters != OverBatch:
		return wrong("clusters", r.Clusters.Name(), OverBatch.Name())
	case r.Batch != batch:
		return wrong("batch", r.Batch, batch)
	case !slices.Contains(chunks, r.Chunk):
		return wrong("chunk", r.Chunk, fmt.Sprintf("one of %v", chunks))
	case schedulefile.Fingerprint(r.Machine) != schedulefile.Fingerprint(machine):
		return wrong("accelerator", r.Machine.Name+" as it was described then", machine.Name+" as it is described now")
	case schedulefile.GraphFingerprint(r.Schedule.Graph) != schedulefile.GraphFingerprint(g):
		return wrong("network", r.Source+" with other operators or shapes", network)
	}
	return nil
}
