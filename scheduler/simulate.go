package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// latency is the simulated time of the plans, in picoseconds; math.MaxInt64 above a limit.
func (r *Result) latency(ctx context.Context, limit int64) (ps int64, err error) {
	return latency(ctx, r.ProgramName(), r.Spec, r.Plans, r.Lower, limit)
}

func latency(ctx context.Context, name string, spec *hardware.Spec, plans [][]lower.Segment, opt lower.Options,
	limit int64) (ps int64, err error) {
	_, made, err := stream(ctx, name, spec, plans, opt, sim.Options{TimesOnly: true, LimitPs: limit}, nil)
	switch {
	case errors.Is(err, sim.ErrLimit):
		return math.MaxInt64, nil
	case err != nil:
		return 0, err
	case made != nil:
		return made.TotalPs, nil
	}
	p, alike, err := lower.Outline(name, spec, plans, opt.Until(ctx))
	if err != nil {
		return 0, err
	}
	ps, _, err = sim.Latency(ctx, p, alike, limit)
	return ps, err
}

// Simulate lowers the plans and runs the program.
func (r *Result) Simulate(ctx context.Context) error {
	if r.figures {
		opt := r.Lower
		opt.Most = lower.MaxStreamed
		p, made, err := stream(ctx, r.ProgramName(), r.Spec, r.Plans, opt, sim.Options{}, nil)
		if made != nil || err != nil {
			r.Program, r.Sim = p, made
			return err
		}
	}
	var err error
	r.Program, err = lower.Program(r.ProgramName(), r.Spec, r.Plans, r.Lower.Until(ctx))
	if err != nil {
		return err
	}
	r.Sim, err = simulated(ctx, r.Program)
	return err
}

// lookAhead is the number of commands that a stream knows beyond the last that has ended, at first.
const lookAhead = 1 << 13

// stream simulates plans while they are lowered, and judges the program unless only times are wanted. seen, if not nil,
// is called with commands before they run, and the number of those before them; commands come anew from the first if
// too few were known, and its error ends the simulation. There is no result if clusters do different things.
func stream(ctx context.Context, name string, spec *hardware.Spec, plans [][]lower.Segment, opt lower.Options,
	measure sim.Options, seen func(s *sim.Stream, first int, commands []isa.Command) error) (
	p *isa.Program, made *sim.Result, err error) {
	for ahead := lookAhead; ; ahead *= 4 {
		var s *sim.Stream
		n := 0
		ok, err := lower.Stream(name, spec, plans, opt.Until(ctx), !measure.TimesOnly,
			func(program *isa.Program) (feed func([]isa.Command) error, err error) {
				p = program
				s, err = sim.NewStream(p, ahead, measure)
				return func(commands []isa.Command) error {
					if seen != nil {
						if err := seen(s, n, commands); err != nil {
							return err
						}
					}
					n += len(commands)
					return s.Feed(ctx, commands)
				}, err
			})
		var late *sim.LateError
		if errors.As(err, &late) {
			continue
		}
		if ok && err == nil {
			made, err = s.End(ctx)
		}
		return p, made, err
	}
}

// simulated runs a program and judges it.
func simulated(ctx context.Context, p *isa.Program) (*sim.Result, error) {
	r, err := sim.Run(ctx, p, sim.Options{})
	if err != nil {
		return nil, err
	}
	if err := sim.CheckBuffers(p, r); err != nil {
		return nil, fmt.Errorf("internal error, the program breaks a rule of memory: %w", err)
	}
	return r, nil
}

// LatencyOn is the latency in seconds on a machine that differs only in figures that no decision reads, such as the
// time of a launch.
func (r *Result) LatencyOn(ctx context.Context, spec *hardware.Spec) (float64, error) {
	machine, err := r.Clusters.machine(spec, r.level)
	if err != nil {
		return 0, err
	}
	on := *r
	on.Spec = machine
	ps, err := on.latency(ctx, math.MaxInt64)
	return float64(ps) * 1e-12, err
}

// Replay simulates a schedule of one cluster's chunk that every busy cluster runs a number of times.
func Replay(ctx context.Context, name string, s *schedule.Schedule, clusters int, iterations int,
	opt lower.Options) (*sim.Result, error) {
	plans := make([][]lower.Segment, s.Spec.Clusters)
	for k := range min(clusters, len(plans)) {
		plans[k] = []lower.Segment{{Schedule: s, Iterations: iterations}}
	}
	p, err := lower.Program(name, s.Spec, plans, opt.Until(ctx))
	if err != nil {
		return nil, err
	}
	return simulated(ctx, p)
}

// A Memory caches chosen nests of steps, bindings of attentions, outcomes of rehearsals, forms of graphs and what is
// known of each graph. It also keeps memories for making programs, which a sync.Pool would lose to the collector.
type Memory struct {
	Nests, forms, memos, attentions, parts, rehearsed, runs sync.Map

	mu   sync.Mutex
	free []*lower.Memory
}

// take is one that nobody uses, and give gives it back.
func (m *Memory) take() *lower.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.free)
	if n == 0 {
		return &lower.Memory{}
	}
	x := m.free[n-1]
	m.free = m.free[:n-1]
	return x
}

// memo returns the cache of a graph, for pieces of a kind.
func (m *Memory) memo(g *model.Graph, uneven schedule.Uneven) *schedule.Memo {
	type key struct {
		of     *model.Graph
		uneven schedule.Uneven
	}
	x, known := m.memos.Load(key{g, uneven})
	if !known {
		x, _ = m.memos.LoadOrStore(key{g, uneven}, schedule.NewMemo())
	}
	return x.(*schedule.Memo)
}

func (m *Memory) give(x *lower.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, x)
}

// Remembered is the memory of tiles chosen for earlier schedules, which recipes and moves may share.
func (d *Draft) Remembered() *Memory {
	if d.state.tiles == nil {
		d.state.tiles = &Memory{}
	}
	return d.state.tiles
}

// StepAlone simulates step i with nothing beside it and returns its time in picoseconds; math.MaxInt64 if that is more
// than limit or the step can't run.
func (d *Draft) StepAlone(ctx context.Context, i int, limit int64) (int64, error) {
	opt := d.Lower
	opt.Memory = d.Remembered().take()
	defer d.Remembered().give(opt.Memory)
	ps, err := latency(ctx, "step", d.Spec, d.onBusy(lower.StepAlone(d.Schedule, i), 1), opt, limit)
	if err != nil && ctx.Err() == nil {
		return math.MaxInt64, nil
	}
	return ps, err
}

// BusyPlans are the plans by which a schedule is judged as one of several chunks in a row on all busy clusters.
func (d *Draft) BusyPlans(s *schedule.Schedule) [][]lower.Segment {
	if d.state.times == 1 {
		return d.onBusy(s, 1)
	}
	return d.onBusy(s, 2) // what overlaps between chunks counts, if a cluster runs several
}

// onBusy are plans of a schedule that all clusters that have work run so many times, while they share the DDR.
func (d *Draft) onBusy(s *schedule.Schedule, times int) [][]lower.Segment {
	plans := make([][]lower.Segment, d.Spec.Clusters)
	for k := range d.BusyClusters() {
		plans[k] = []lower.Segment{{Schedule: s, Iterations: times}}
	}
	return plans
}
