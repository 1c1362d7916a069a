package optimality

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// edge is the link between chip and DDR: bytes per second, and picoseconds of latency.
type edge struct{ bandwidth, latency int64 }

// transfers is SoMa's problem of a fixed order: step by step an operator, and for each load the step at whose beginning
// it may start, for each store of a result the step before whose beginning it has ended. A tensor fills the memory from
// the step of its load, or of its operator, to that in which it is read last, spilled, or stored. What starts at a step
// waits until all that has left before it has gone.
type transfers struct {
	w     *wholeTensors
	steps []ordering.Step
	edge  edge
	moves []transfer
	kept  []stay // of outputs, whose times are no choice
}

// A transfer is a load for a step, or a store of what a step makes.
type transfer struct {
	load     bool
	bytes    int64
	step     int
	until    int // the step after the last in which what is loaded is in the memory
	earliest int // least value of its window; of a store the greatest is the number of steps
	fixed    bool
	after    int // of a load, the move that stored it; -1: none
}

// A stay of bytes in the memory, from the beginning of a step to that of another.
type stay struct {
	bytes    int64
	from, to int
}

func newTransfers(w *wholeTensors, steps []ordering.Step, e edge) (*transfers, error) {
	t := &transfers{w: w, steps: steps, edge: e}
	g := ordering.NewGraph(w.Problem)
	n := len(steps)
	at, copied := make([]int, n), make([]int, n) // the step of each operator; the move that has stored it, or -1
	// since when an output is in the memory, -1: not; the load that brought it, or -1
	in, load := make([]int, n), make([]int, n)
	left := make([]int, n)
	for k := range n {
		copied[k], in[k], load[k], left[k] = -1, -1, -1, len(g.Readers[k])
	}
	leaves := func(k, step int) {
		if load[k] >= 0 {
			t.moves[load[k]].until = step
		} else {
			t.kept = append(t.kept, stay{w.Subgraphs[k].OutputBytes, in[k], step})
		}
		in[k], load[k] = -1, -1
	}
	for s, step := range steps {
		k := step.Run[0]
		at[k] = s
		for _, ref := range step.Store {
			if o := ref[0]; copied[o] < 0 {
				copied[o] = len(t.moves)
				t.moves = append(t.moves, transfer{bytes: w.Subgraphs[o].OutputBytes, step: at[o], earliest: s,
					fixed: true, after: -1})
			}
			leaves(ref[0], s)
		}
		for _, ref := range step.Load {
			o := ref[0]
			if copied[o] < 0 {
				return nil, fmt.Errorf("internal error, step %d loads what was not stored", s)
			}
			in[o], load[o] = s, len(t.moves)
			t.moves = append(t.moves, transfer{load: true, bytes: w.Subgraphs[o].OutputBytes, step: s,
				earliest: t.moves[copied[o]].earliest, after: copied[o]})
		}
		if w.fixed[k] > 0 {
			t.moves = append(t.moves, transfer{load: true, bytes: w.fixed[k], step: s, until: s + 1, after: -1})
		}
		in[k] = s
		for _, r := range g.Reads[k] {
			if left[r]--; left[r] == 0 {
				leaves(r, s+1)
			}
		}
		if w.results[k] > 0 {
			t.moves = append(t.moves, transfer{bytes: w.results[k], step: s, earliest: s + 1, after: -1})
		}
		if left[k] == 0 {
			leaves(k, s+1)
		}
	}
	return t, nil
}

// stays lists what is in the memory, for a window of each move: a load's first step, the step that a store has ended
// before.
func (t *transfers) stays(windows []int) []stay {
	list := slices.Clone(t.kept)
	for i, m := range t.moves {
		switch {
		case m.load:
			list = append(list, stay{m.bytes, windows[i], m.until})
		case !m.fixed && windows[i] > m.step+1:
			list = append(list, stay{m.bytes, m.step + 1, windows[i]})
		}
	}
	return list
}

// fits reports whether the memory never holds more than it can.
func (t *transfers) fits(windows []int) bool {
	change := make([]int64, len(t.steps)+1)
	for _, s := range t.stays(windows) {
		change[s.from] += s.bytes
		change[s.to] -= s.bytes
	}
	full := int64(0)
	for _, c := range change {
		if full += c; full > t.w.CapacityBytes {
			return false
		}
	}
	return true
}

// late are the windows in which nothing is in the memory for longer than it must be.
func (t *transfers) late() []int {
	windows := make([]int, len(t.moves))
	for i, m := range t.moves {
		if windows[i] = m.step; !m.load {
			windows[i] = m.earliest
		}
	}
	return windows
}

// ahead lets each load, in order, start one step ahead, and each result be stored during the next step, where there is
// room.
func (t *transfers) ahead() []int {
	windows := t.late()
	for i := range t.moves {
		if next, ok := t.shifted(windows, i, 1); ok {
			windows = next
		}
	}
	return windows
}

// shifted gives a move so many steps more, if it may and there is room.
func (t *transfers) shifted(windows []int, i, steps int) ([]int, bool) {
	m := t.moves[i]
	to, low, high := windows[i]+steps, m.earliest, len(t.steps)
	if m.load {
		to, high = windows[i]-steps, m.step
	}
	if m.fixed || to < low || to > high || to == windows[i] {
		return nil, false
	}
	next := slices.Clone(windows)
	next[i] = to
	return next, t.fits(next)
}

// program has a queue of loads, one of stores and one of operators. It says which command each move and each step is.
func (t *transfers) program(windows []int) (p *isa.Program, command, operator []int32) {
	const loads, stores, unit = 0, 1, 2
	p = &isa.Program{Name: t.w.Name, Clusters: 1, Labels: []string{"move", "operator"},
		Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: t.edge.bandwidth, Kind: isa.DDRBandwidth}},
		Queues: []isa.Queue{{Name: "loads", Kind: isa.DDRLoadQueue}, {Name: "stores", Kind: isa.DDRStoreQueue},
			{Name: "unit", Kind: isa.MatrixQueue}}}
	command, operator = make([]int32, len(t.moves)), make([]int32, len(t.steps))
	move := func(i int, kind isa.Kind, queue int32, deps []int32) {
		command[i] = int32(len(p.Commands))
		m := t.moves[i]
		p.Commands = append(p.Commands, isa.Command{Kind: kind, Queue: queue, Bytes: m.bytes, DurationPs: t.edge.latency,
			Deps: deps, Uses: []isa.Use{{Bytes: m.bytes}}, Cores: 1})
	}
	n := len(t.steps) + 1
	begin, need, made, gone := make([][]int, n), make([][]int, n), make([][]int, n), make([][]int32, n) // by step
	for i, m := range t.moves {
		if m.load {
			begin[windows[i]], need[m.step] = append(begin[windows[i]], i), append(need[m.step], i)
		} else {
			made[m.step] = append(made[m.step], i)
		}
	}
	for s, step := range t.steps {
		// What begins here waits for what has left before: of stores that ended earlier the last operator has waited.
		if s > 0 {
			gone[s] = append(gone[s], operator[s-1])
		}
		for _, i := range begin[s] {
			deps := slices.Clone(gone[s])
			if after := t.moves[i].after; after >= 0 {
				deps = append(deps, command[after])
			}
			move(i, isa.DDRLoad, loads, deps)
		}
		deps := gone[s]
		for _, i := range need[s] {
			deps = append(deps, command[i])
		}
		operator[s] = int32(len(p.Commands))
		p.Commands = append(p.Commands, isa.Command{Kind: isa.Matrix, Queue: unit, Label: 1, Cores: 1, Deps: deps,
			DurationPs: int64(math.Ceil(1e12 * t.w.seconds[step.Run[0]]))})
		for _, i := range made[s] {
			move(i, isa.DDRStore, stores, []int32{operator[s]})
			gone[windows[i]] = append(gone[windows[i]], command[i])
		}
	}
	return p, command, operator
}

// latency simulates windows for their time alone, in picoseconds.
func (t *transfers) latency(ctx context.Context, windows []int) (ps int64, err error) {
	p, _, _ := t.program(windows)
	ps, _, err = sim.Latency(ctx, p, []int{1}, 0)
	return ps, err
}

// measure simulates windows, and looks for addresses.
func (t *transfers) measure(ctx context.Context, windows []int) (x twofold, err error) {
	p, _, _ := t.program(windows)
	r, err := sim.Run(ctx, p, sim.Options{})
	if err != nil {
		return x, err
	}
	x = twofold{Bytes: r.Dynamic.LevelBytes[isa.DDR], Seconds: float64(r.TotalPs) * 1e-12}
	x.Placed, err = t.placed(ctx, windows)
	return x, err
}

// search moves loads and stores by up to four steps, beginning one step ahead, as long as the evaluations last: it
// takes what is no slower. It returns the last windows, which are the best.
func (t *transfers) search(ctx context.Context, evaluations int) ([]int, error) {
	rng := rand.New(rand.NewPCG(0, 0))
	best := t.ahead()
	least, err := t.latency(ctx, best)
	for range evaluations {
		if len(t.moves) == 0 || err != nil {
			break
		}
		next, ok := t.shifted(best, rng.IntN(len(t.moves)), []int{-4, -2, -1, 1, 2, 4}[rng.IntN(6)])
		if !ok {
			continue // it counts, so that a full memory ends the search, too
		}
		var took int64
		if took, err = t.latency(ctx, next); err == nil && took <= least {
			best, least = next, took
		}
	}
	return best, err
}
