package answers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/internal/search"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/internal/schedulefile"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// TuneSettings are those of a tuning beside the search's.
type TuneSettings struct {
	ansor.Options
	// Log, if not nil, gets a line of JSON for each trial. Before holds what an earlier
	// log has, whose trials are not made again; lines that end early are left out. Name is the
	// log's, for what is wrong in it.
	Log    io.Writer
	Before io.Reader
	Name   string
}

// TuningTasks lists the kernels of networks by a recipe, at a chunk size: its groups,
// bindings and memory plan are those that the loops are found for. Equal kernels of one or
// several networks are one task, whose weights are runs for the first cluster's share of
// each batch. from says for what.
func TuningTasks(ctx context.Context, nets []network.Network, machine *hardware.Spec, batch int64, r pipeline.Recipe,
	opt pipeline.Options) (tasks []*ansor.Task, from pipeline.TunedFrom, err error) {
	from = pipeline.TunedFrom{Kind: pipeline.TunedKind, Version: pipeline.TunedVersion, Batch: batch, Chunk: opt.Chunk, Variant: r.Name,
		InPlace: opt.InPlace, Hardware: machine.Name}
	if opt.Uneven != schedule.UnevenFastest {
		from.Uneven = opt.Uneven.String()
	}
	r = pipeline.Picking(r, pipeline.Pick{Stage: "nest", Strategy: "rules"})
	r.Fallback = nil
	decide := pipeline.FastestChunk
	if pipeline.Evaluations(r) > 0 {
		decide = search.Prepare
	}
	known := map[string]*ansor.Task{}
	for j, net := range nets {
		made, err := decide(ctx, net, machine, batch, r, opt)
		if err != nil {
			return nil, from, err
		}
		from.Bindings = append(from.Bindings, pipeline.BoundInside(made.Schedule)...)
		from.Networks, from.Graphs = append(from.Networks, net.Name), append(from.Graphs, made.Schedule.Graph.Name)
		from.Fingerprint = schedulefile.Fingerprint(made.Spec)
		for _, seg := range made.Plans[0] {
			kernels, err := ansor.Kernels(ctx, seg.Schedule, made.Spec.Clusters, made.Lower)
			if err != nil {
				return nil, from, err
			}
			for _, k := range kernels {
				if k == nil {
					continue
				}
				if known[k.Key] == nil {
					known[k.Key] = k
					k.Weights = make([]int64, len(nets))
					tasks = append(tasks, k)
				}
				known[k.Key].Weights[j] += int64(seg.Iterations)
			}
		}
	}
	return tasks, from, nil
}

// Tune searches for the loops of all kernels of networks. If ctx ends first, the answer is
// what was found, and the error ctx's.
func Tune(ctx context.Context, nets []network.Network, machine *hardware.Spec, batch int64, r pipeline.Recipe, opt pipeline.Options,
	set TuneSettings) (*pipeline.Tuned, error) {
	tasks, from, err := TuningTasks(ctx, nets, machine, batch, r, opt)
	if err != nil {
		return nil, err
	}
	return TuneTasks(ctx, tasks, from, set)
}

// TuneTasks is Tune of what [TuningTasks] has listed.
func TuneTasks(ctx context.Context, tasks []*ansor.Task, from pipeline.TunedFrom, set TuneSettings) (*pipeline.Tuned, error) {
	out := &pipeline.Tuned{TunedFrom: from}
	out.Enough = set.Enough
	out.Seed, out.Objective, out.Scheduler = set.Seed, cmp.Or(set.Objective, ansor.Objectives[0]),
		cmp.Or(set.Scheduler, ansor.Schedulers[0])
	if err := continueLog(out, &set); err != nil {
		return nil, err
	}
	found, err := ansor.Tune(ctx, tasks, set.Options)
	if err != nil {
		return nil, err
	}
	fill(out, found)
	return out, found.Stopped
}

// fill puts an outcome into the words of the file.
func fill(t *pipeline.Tuned, found *ansor.Outcome) {
	t.Trials, t.Curve = found.Trials, found.Curve
	for _, name := range t.Networks {
		t.Result = append(t.Result, pipeline.TunedNetwork{Name: name})
	}
	for _, a := range found.Answers {
		x := pipeline.TunedTask{Task: pipeline.TaskName(a.Key), Name: a.Name, Weights: a.Weights, Operations: a.Operations, Trials: a.Trials,
			RuleSeconds: a.RuleSeconds, Seconds: a.Seconds, FloorSecs: a.Floor, Rounds: a.Best}
		for i, n := range a.Program {
			x.Layers = append(x.Layers, pipeline.TunedLayer{Layer: a.Layer(i), Nest: strings.Split(strings.TrimSuffix(n.Text(a.Output(i)), "\n"),
				"\n")})
		}
		for j, w := range a.Weights {
			t.Result[j].RuleSeconds += float64(w) * a.RuleSeconds
			t.Result[j].Seconds += float64(w) * a.Seconds
			t.Result[j].Kernels += w
		}
		t.Tasks = append(t.Tasks, x)
	}
}

// logged is a line of a log of trials.
type logged struct {
	Task        string           `json:"task"`
	Name        string           `json:"name"`
	Round       int              `json:"round"`
	Program     string           `json:"program"` // its numbers, for looking it up
	Nests       []*schedule.Nest `json:"nests"`
	Picoseconds int64            `json:"ps"` // of all runs
	Runs        int              `json:"runs"`
}

// continueLog takes the trials of an earlier log and lets new ones be written down.
func continueLog(t *pipeline.Tuned, set *TuneSettings) error {
	head := t.TunedFrom
	head.Kind = pipeline.TunedLogKind
	known, begun := map[string]int64{}, false
	if set.Before != nil {
		data, err := io.ReadAll(set.Before)
		if err != nil {
			return err
		}
		if err := readTrials(data, head, known); err != nil {
			if set.Name != "" {
				err = fmt.Errorf("%s: %w", set.Name, err)
			}
			return err
		}
		begun = len(data) > 0
	}
	write := func(x any) error {
		data, err := json.Marshal(x)
		if err == nil {
			_, err = set.Log.Write(append(data, '\n'))
		}
		return err
	}
	if set.Log != nil {
		if !begun {
			if err := write(head); err != nil {
				return err
			}
		}
		set.Record = func(x ansor.Trial) error {
			name := pipeline.TaskName(x.Task.Key)
			if _, old := known[name+x.ID]; old {
				return nil
			}
			return write(logged{name, x.Task.Name, x.Round, x.ID, x.Program, x.Picoseconds, x.Runs})
		}
	}
	set.Known = func(key, program string) (int64, bool) {
		ps, ok := known[pipeline.TaskName(key)+program]
		return ps, ok
	}
	return nil
}

// readTrials reads a log, whose last line may have been cut off.
func readTrials(data []byte, head pipeline.TunedFrom, known map[string]int64) error {
	for i, line := range bytes.Split(data, []byte("\n")) {
		whole := len(line) > 0
		switch {
		case !whole:
		case i == 0:
			var found pipeline.TunedFrom
			if err := json.Unmarshal(line, &found); err != nil {
				return fmt.Errorf("log: line 1: %w, expected what was tuned", err)
			}
			if what := differs(&found, &head); what != "" {
				return fmt.Errorf("log: line 1 is of another tuning: %s", what)
			}
		default:
			var x logged
			if err := json.Unmarshal(line, &x); err != nil {
				if bytes.Count(data, []byte("\n")) == i {
					return nil // cut off
				}
				return fmt.Errorf("log: line %d: %w, expected a trial", i+1, err)
			}
			if x.Picoseconds < 1 {
				return fmt.Errorf("log: line %d: ps is %d, expected more than zero", i+1, x.Picoseconds)
			}
			known[x.Task+x.Program] = x.Picoseconds
		}
	}
	return nil
}

// differs names the fields in which what was tuned is not what was expected.
func differs(found, want *pipeline.TunedFrom) string {
	var list []string
	a, b := reflect.ValueOf(found).Elem(), reflect.ValueOf(want).Elem()
	for i := range a.NumField() {
		x, _ := json.Marshal(a.Field(i).Interface())
		y, _ := json.Marshal(b.Field(i).Interface())
		if !bytes.Equal(x, y) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			list = append(list, fmt.Sprintf("%s is %s, expected %s", name, x, y))
		}
	}
	return strings.Join(list, "; ")
}
