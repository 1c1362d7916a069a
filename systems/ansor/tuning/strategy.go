package tuning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
)

// Register lets strategy ansor of row nest decide.
func Register() { recipes.SetNestSearch(tunedNests) }

// defaultTrials is the number of trials each task has where nobody has tuned before.
const defaultTrials = 32

// tunedNests gives every kernel the nests of a file, or looks for some.
func tunedNests(ctx context.Context, d *scheduler.Draft) error {
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
		d.Tell(fmt.Sprintf("%d of %d kernels have more than %d layers, whose loops are not searched", large,
			len(kernels), ansor.MaxLayers))
	}
	if t, ok := d.Options.Tuned.(*Tuned); ok {
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
		if missing == small {
			return fmt.Errorf("the tuned kernels are of %s on %s by %s, batch %d in chunks of %d: none of the %d kernels "+
				"is among them", strings.Join(t.Networks, ", "), t.Hardware, t.Variant, t.Batch, t.Chunk, len(kernels))
		}
		d.Tell(fmt.Sprintf("%d of %d kernels are among the tuned ones", small-missing, len(kernels)))
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
		d.Tell(fmt.Sprintf("loops searched in %d trials with seed 1; 'dsasched tune' searches longer", found.Trials))
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

// Adopt gives the kernels their programs, task by task, where the chunk gets faster by it on all clusters: alone, a
// kernel does not know what the others hide. Of a program that makes it slower, those layers are taken that make it
// faster. In large schedules several tasks are judged together, so that no more than adoptSteps are simulated.
func Adopt(ctx context.Context, d *scheduler.Draft, kernels []*ansor.Task,
	programs map[*ansor.Task]ansor.Program) error {
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
	plans := d.BusyPlans(&own)
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
					restore = append(restore, d.SaveStep(at.step))
					if !d.TryNest(at.step, programs[k][at.layer]) {
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
		d.Tell(fmt.Sprintf("%d of %d layers keep the loops of the generator's rules: in their place, the "+
			"memories have no room for the tuned ones", len(noRoom), len(d.Steps)))
	}
	if rejected > 0 {
		d.Tell(fmt.Sprintf("%d of %d tuned kernels keep the loops of the generator's rules: beside the others, "+
			"those are faster", rejected, len(tasks)))
	}
	return nil
}
