package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// bestJSON is the answer of `dsasched best`.
type bestJSON struct {
	Model               string   `json:"model"`
	Hardware            string   `json:"hardware"`
	DType               string   `json:"dtype"`
	Batch               int64    `json:"batch"`
	Chunk               int64    `json:"chunk"`
	ThroughputPerSecond float64  `json:"throughput_per_s"`
	LatencySeconds      float64  `json:"latency_s"`
	EnergyJoules        *float64 `json:"energy_j"` // null: the accelerator's description has no figures
	AveragePowerWatts   *float64 `json:"average_power_w"`
	Objective           string   `json:"objective"`
	// null: none is of this schedule, see notes
	CertifiedBoundSeconds *float64 `json:"certified_lower_bound_s"`
	Scope                 string   `json:"scope"`     // of the bound
	Estimates             []string `json:"estimates"` // at their fast ends in the bound
	certificate.Form
	// latency over bound, less 1; null as the bound
	Gap *float64 `json:"gap"`
	// null: that variant fails, or time ended before it
	GreedyThroughputPerSecond *float64             `json:"greedy_throughput_per_s"`
	GreedyChunk               int64                `json:"greedy_chunk,omitempty"`
	Seed                      uint64               `json:"seed"`
	Evaluations               int                  `json:"evaluations"`
	Stop                      string               `json:"stop"`
	Starts                    []search.Start       `json:"starts"`
	Trajectory                []search.Improvement `json:"trajectory"`
	Notes                     []string             `json:"notes"`
}

func newBest() *cobra.Command {
	cmd := command("best")
	takesModel(cmd)
	quiet, accelerator, from := addQuiet(cmd), addHardware(cmd), addNetwork(cmd)
	batch, chunk := addBatch(cmd, "every divisor of its share")
	evaluations := addNumber(cmd, "evaluations", 0, 0,
		"number of schedules that the search simulates, besides those of other variants; 0: about a minute on two cores")
	seed := addNumber(cmd, "seed", 0, 0, "seed of the random choices")
	threads := addNumber(cmd, "threads", 0, 0,
		"schedules simulated in parallel, which does not change the result; 0: one per core")
	start := cmd.Flags().String("start", "",
		"schedule `file` to start from, of the same network, batch and accelerator")
	objective := &choice{value: string(search.ByLatency), kind: "objective",
		words: harness.Each(search.Objectives[:], func(o search.Objective) string { return string(o) })}
	addChoice(cmd, objective, "objective", "objective to minimise: "+oneOf(plain(objective.words)))
	limit := addLimit(cmd, 0, "time for the search, such as 60s; the result then depends on the machine")
	out := addFile(cmd, "o out", "write the whole schedule to this `file`")
	proof := addFile(cmd, "certificate", "write schedule and bound to this `file`, for 'dsasched certify'; "+
		"restricts the search to even batch splits and linear operator chains", ".json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		heapFloor.Store(448 << 20)
		show := newStatus(cmd, *quiet)
		defer show.end()
		spec := oneChip(*accelerator)
		net := try(network.Open(args[0], from.options()))
		machine := try(scheduler.LevelAuto.Machine(spec))
		given, fused := try2(certificate.Bounds(cmd.Context(), net, machine, batch.value))
		least := given
		if fused != nil && fused.Seconds < given.Seconds {
			least = fused
		}
		opt := search.BestOptions{Options: scheduler.Options{Chunk: chunk.value, TimeLimit: limit.value},
			Evaluations: int(evaluations.value), Seed: uint64(seed.value), Threads: int(threads.value),
			Objective: search.Objective(objective.value)}
		opt.Lines = proof.name != ""
		if *start != "" {
			opened := try(scheduler.Open(*start, *accelerator))
			_, opt.Start = try2(opened.Restore(cmd.Context()))
		}
		if show != nil {
			opt.Better = func(p milp.Progress) {
				show.show(func(age time.Duration) string {
					if p.Objective < least.Seconds { // of uneven shares, for which it does not hold
						return fmt.Sprintf("best: best %s after %s", duration(p.Objective), harness.Wait(p.Seconds+age.Seconds()))
					}
					return fmt.Sprintf("best: best %s, bound %s, gap %s after %s", duration(p.Objective), duration(least.Seconds),
						percent(least.Gap(p.Objective)), harness.Wait(p.Seconds+age.Seconds()))
				})
			}
		}
		found := try(search.Best(cmd.Context(), net, spec, batch.value, opt))
		show.end()
		holds, form, why := certificate.BoundOf(context.WithoutCancel(cmd.Context()), net, found.Result, given, fused)
		if opt.Lines {
			found.Notes = append(found.Notes, "only what a certificate covers is searched: 'schedule' may be faster")
		}
		if found.Unended != "" {
			found.Notes = append(found.Notes, "variants that were stopped early are not compared: "+found.Unended)
		}
		var seconds, gap *float64
		if why != nil {
			found.Notes = append(found.Notes, "no bound is of this schedule: "+why.Error())
		} else if err := holds.Check(found.LatencySeconds()); err != nil {
			return err
		} else {
			least = holds
			far := least.Gap(found.LatencySeconds())
			seconds, gap = &least.Seconds, &far
		}
		answer := bestJSON{Scope: least.Scope, Estimates: least.Estimates, Form: form, Model: args[0], Hardware: spec.Name,
			DType: from.dtype.value, Batch: found.Batch, Chunk: found.Chunk,
			ThroughputPerSecond: found.ThroughputPerSecond(), LatencySeconds: found.LatencySeconds(),
			CertifiedBoundSeconds: seconds, Gap: gap, Seed: opt.Seed,
			Evaluations: found.Evaluations, Stop: found.Stop.String(), Starts: found.Starts, Trajectory: found.Trajectory,
			Notes: append([]string{}, found.Notes...), Objective: objective.value}
		if e := found.Energy(); e != nil {
			total, power := e.Total(), e.Total()/found.LatencySeconds()
			answer.EnergyJoules, answer.AveragePowerWatts = &total, &power
		}
		if found.Greedy != nil {
			t := found.Greedy.ThroughputPerSecond()
			answer.GreedyThroughputPerSecond, answer.GreedyChunk = &t, found.Greedy.Chunk
		}
		unwritten := out.write(found.Result.File(schedulefile.Origin{MadeBy: madeBy, Model: args[0],
			DType: from.dtype.value}).Write)
		unwritten = errors.Join(unwritten, proof.write(func() ([]byte, error) {
			c, err := certificate.New(context.WithoutCancel(cmd.Context()), args[0], from.options(), found.Result,
				answer.GreedyThroughputPerSecond)
			if err != nil {
				return nil, err
			}
			return c.Write()
		}))
		return finish(cmd, answer, func(b *bytes.Buffer) { writeBest(b, &answer) }, unwritten)
	}
	return cmd
}

func writeBest(b *bytes.Buffer, a *bestJSON) {
	row(b, "best", "%s (%s) on %s, batch %d in chunks of %d", a.Model, a.DType, a.Hardware, a.Batch, a.Chunk)
	baseline := "cross-layer not run (time limit)"
	if t := a.GreedyThroughputPerSecond; t != nil {
		baseline = fmt.Sprintf("%.3f times cross-layer's %s", a.ThroughputPerSecond / *t, perSecond(*t))
		if a.GreedyChunk != a.Chunk {
			baseline += fmt.Sprintf(" in chunks of %d", a.GreedyChunk)
		}
	}
	row(b, "throughput", "%s, %s", perSecond(a.ThroughputPerSecond), baseline)
	if a.Gap == nil {
		row(b, "latency", "%s", duration(a.LatencySeconds))
	} else {
		bound, gap := duration(*a.CertifiedBoundSeconds), percent(*a.Gap)
		row(b, "latency", "%s; the bound is %s, gap %s", duration(a.LatencySeconds), bound, gap)
		of := a.Scope
		if n := len(a.Estimates); n > 0 {
			of += fmt.Sprintf("; with %s of the machine at the fast end", plural(n, "estimate"))
		}
		rowWrapped(b, "bound of all", of)
	}
	if text := a.Form.Text(); text != "" {
		rowWrapped(b, "graph", text+", in the schedule and for the bound")
	}
	row(b, "energy", "%s", energyText(a.EnergyJoules, a.AveragePowerWatts))
	done := plural(a.Evaluations, "evaluation")
	if a.Stop != milp.Complete.String() {
		done += ", stopped: " + a.Stop
	}
	row(b, "search", "%s", done)
	writeNotes(b, a.Notes)
	columns, energy := "evaluations|latency|<by", a.Objective != string(search.ByLatency)
	if energy {
		columns = "evaluations|latency|energy|<by"
	}
	list(b, "", columns, a.Trajectory, func(_ int, x search.Improvement) []any {
		if energy {
			return []any{x.Evaluations, duration(x.LatencySeconds), joules(x.EnergyJoules), x.Move}
		}
		return []any{x.Evaluations, duration(x.LatencySeconds), x.Move}
	})
}
