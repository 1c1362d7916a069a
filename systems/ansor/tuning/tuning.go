// Package tuning searches the loops of the kernels of networks by Ansor, keeps them in files, and decides by them for
// strategy ansor of the scheduler's row nest.
package tuning

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/scheduler"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/systems/ansor"
)

// Settings are the settings of a tuning beside the search's.
type Settings struct {
	ansor.Options
	// Log, if not nil, gets a line of JSON for what is tuned and one for each trial. Before holds what the log has by
	// then, of any number of tunings: trials of this one, which was interrupted, are not made again, those of others of
	// the same machine are what it begins with, and of trials to go on with (the same tuning with fewer trials) this
	// one has so many less. No answer is worse than the log's. Lines that end early are left out. Name is the log's,
	// for what is wrong in it.
	Log    io.Writer
	Before io.Reader
	Name   string
}

// Tasks lists the kernels of networks, with the groups, bindings and memory plans of a recipe at a chunk size. Equal
// kernels of one or several networks are one task, weighted by its runs for the first cluster's share of each batch.
// from records network, machine, recipe and sizes.
func Tasks(ctx context.Context, nets []network.Network, machine *hardware.Spec, batch int64, r scheduler.Recipe,
	opt scheduler.Options) (tasks []*ansor.Task, from From, err error) {
	from = From{Kind: Kind, Version: Version, Batch: batch,
		Chunk: opt.Chunk, Variant: r.Name, InPlace: opt.InPlace, Hardware: machine.Name}
	if opt.Uneven != schedule.UnevenFastest {
		from.Uneven = opt.Uneven.String()
	}
	r = r.Picking(scheduler.Pick{Stage: "nest", Strategy: "rules"})
	r.Fallback = nil
	decide := r.FastestChunk
	if r.Evaluations > 0 {
		decide = r.Prepare
	}
	known := map[string]*ansor.Task{}
	for j, net := range nets {
		made, err := decide(ctx, net, machine, batch, opt)
		if err != nil {
			return nil, from, err
		}
		from.Networks, from.Graphs = append(from.Networks, net.Name), append(from.Graphs, made.Schedule.Graph.Name)
		from.Fingerprint = schedulefile.Fingerprint(made.Spec)
		for _, seg := range made.Plans[0] {
			kernels, err := ansor.Kernels(ctx, seg.Schedule, seg.Schedule.BusyClusters(), made.Lower)
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
func Tune(ctx context.Context, nets []network.Network, machine *hardware.Spec, batch int64, r scheduler.Recipe,
	opt scheduler.Options, set Settings) (*Tuned, error) {
	tasks, from, err := Tasks(ctx, nets, machine, batch, r, opt)
	if err != nil {
		return nil, err
	}
	return TuneAll(ctx, tasks, from, set)
}

// TuneAll is Tune of what [Tasks] has listed.
func TuneAll(ctx context.Context, tasks []*ansor.Task, from From, set Settings) (*Tuned, error) {
	out := &Tuned{From: from}
	out.Enough = set.Enough
	out.Seed, out.Objective, out.Scheduler = set.Seed, cmp.Or(set.Objective, ansor.Objectives[0]),
		cmp.Or(set.Scheduler, ansor.Schedulers[0])
	set.Trials = cmp.Or(set.Trials, 64*len(tasks))
	best, err := continueLog(out, &set)
	if err != nil {
		return nil, err
	}
	found, err := ansor.Tune(ctx, tasks, set.Options)
	if err != nil {
		return nil, err
	}
	for i := range found.Answers {
		a := &found.Answers[i]
		if e := best(a.Task); e != nil && ansor.Seconds(e.Picoseconds, a.Runs()) < a.Seconds {
			a.Program, a.Seconds = e.Program, ansor.Seconds(e.Picoseconds, a.Runs())
			a.Best = append(a.Best, a.Seconds)
		}
	}
	fill(out, found)
	return out, found.Stopped
}

// fill puts an outcome into the words of the file.
func fill(t *Tuned, found *ansor.Outcome) {
	t.Trials, t.Curve = found.Trials, found.Curve
	for _, name := range t.Networks {
		t.Result = append(t.Result, Network{Name: name})
	}
	for _, a := range found.Answers {
		x := Task{Task: TaskName(a.Key), Name: a.Name, Weights: a.Weights,
			Operations: a.Operations, Trials: a.Trials,
			RuleSeconds: a.RuleSeconds, Seconds: a.Seconds, FloorSecs: a.Floor, Rounds: a.Best}
		for i, n := range a.Program {
			x.Layers = append(x.Layers, Layer{Layer: a.Layer(i),
				Nest: strings.Split(strings.TrimSuffix(n.Text(a.Output(i)), "\n"), "\n")})
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

// logHead is the line in front of the trials of a tuning.
type logHead struct {
	From
	Trials int `json:"trials"`
}

// logRun is the part of a log between the beginnings of two tunings.
type logRun struct {
	head   logHead
	trials []logged
}

// continueLog takes the trials of earlier tunings and lets new ones be written down. best is the best that the log had
// of a task by then, nil for none.
func continueLog(t *Tuned, set *Settings) (best func(*ansor.Task) *ansor.Earlier, err error) {
	head := logHead{t.From, set.Trials}
	head.Kind = LogKind
	var runs []logRun
	if set.Before != nil {
		data, err := io.ReadAll(set.Before)
		if err != nil {
			return nil, err
		}
		if runs, err = readTrials(data); err != nil {
			if set.Name != "" {
				err = fmt.Errorf("%s: %w", set.Name, err)
			}
			return nil, err
		}
	}
	// Known are trials of the same machine; earlier are those in front of this tuning.
	known, all, earlier := map[string]int64{}, map[string][]logged{}, map[string][]logged{}
	own := false
	for _, r := range runs {
		same := r.head
		same.Trials = head.Trials
		own = own || alike(r.head, head)
		if r.head.Fingerprint != head.Fingerprint {
			continue
		}
		for _, x := range r.trials {
			known[x.Task+x.Program] = x.Picoseconds
			if all[x.Task] = append(all[x.Task], x); !own {
				earlier[x.Task] = append(earlier[x.Task], x)
			}
		}
		if !own && r.head.Trials < head.Trials && alike(same, head) {
			set.Trials -= len(r.trials)
		}
	}
	set.Trials = max(0, set.Trials)
	of := func(list map[string][]logged) func(*ansor.Task) []ansor.Earlier {
		return func(task *ansor.Task) (out []ansor.Earlier) {
			for _, x := range list[TaskName(task.Key)] {
				if e := (ansor.Earlier{Program: x.Nests, Picoseconds: x.Picoseconds}); x.Runs == task.Runs() &&
					task.Can(e.Program) {
					out = append(out, e)
				}
			}
			return out
		}
	}
	set.Earlier = of(earlier)
	best = func(task *ansor.Task) *ansor.Earlier {
		list := of(all)(task)
		if len(list) == 0 {
			return nil
		}
		e := slices.MinFunc(list, func(a, b ansor.Earlier) int { return cmp.Compare(a.Picoseconds, b.Picoseconds) })
		return &e
	}
	write := func(x any) error {
		data, err := json.Marshal(x)
		if err == nil {
			_, err = set.Log.Write(append(data, '\n'))
		}
		return err
	}
	if set.Log != nil {
		if len(runs) == 0 || !alike(runs[len(runs)-1].head, head) {
			if err := write(head); err != nil {
				return nil, err
			}
		}
		set.Record = func(x ansor.Trial) error {
			name := TaskName(x.Task.Key)
			if _, old := known[name+x.ID]; old {
				return nil
			}
			return write(logged{name, x.Task.Name, x.Round, x.ID, x.Program, x.Picoseconds, x.Runs})
		}
	}
	set.Known = func(key, program string) (int64, bool) {
		ps, ok := known[TaskName(key)+program]
		return ps, ok
	}
	return best, nil
}

// alike reports whether two heads are written alike.
func alike(a, b logHead) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// readTrials reads a log, whose last line may have been cut off.
func readTrials(data []byte) (runs []logRun, err error) {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var head struct {
			Kind    string `json:"kind"`
			Version int    `json:"version"`
		}
		if err := json.Unmarshal(line, &head); err != nil {
			if i > 0 && bytes.Count(data, []byte("\n")) == i {
				return runs, nil // cut off
			}
			return nil, fmt.Errorf("log: line %d: %w, expected what was tuned, or a trial", i+1, err)
		}
		if head.Kind != "" || len(runs) == 0 {
			if head.Kind != LogKind || head.Version != Version {
				return nil, fmt.Errorf("log: line %d is of kind %q in version %d, expected %q in version %d", i+1, head.Kind,
					head.Version, LogKind, Version)
			}
			var r logRun
			if err := json.Unmarshal(line, &r.head); err != nil {
				return nil, fmt.Errorf("log: line %d: %w, expected what was tuned", i+1, err)
			}
			runs = append(runs, r)
			continue
		}
		var x logged
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("log: line %d: %w, expected a trial", i+1, err)
		}
		if x.Picoseconds < 1 {
			return nil, fmt.Errorf("log: line %d: ps is %d, expected more than zero", i+1, x.Picoseconds)
		}
		r := &runs[len(runs)-1]
		r.trials = append(r.trials, x)
	}
	return runs, nil
}
