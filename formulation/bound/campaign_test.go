package bound_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// divisions are the divisions of a network between clusters, those of systems first.
var divisions = []scheduler.Division{scheduler.OverLayer}

// usual is the number of cases: less without DSASCHED_FULL=1 in the environment.
func usual() int {
	if os.Getenv("DSASCHED_FULL") != "" {
		return 36
	}
	return 12
}

var (
	cases = flag.Int("cases", usual(), "hostile networks, each on one machine, that are scheduled several times")
	from  = flag.Uint64("from", 1, "the first one's seed")
	// The campaign of docs/formulations.md had 20.
	evaluations = flag.Int("evaluations", 2, "a third of how many schedules a short search simulates")
)

// hostileMachine is a preset, or one of which most figures are drawn: one core, no LLB, tiny memories, slow DDR.
func hostileMachine(r *rand.Rand) *hardware.Spec {
	name := "stcp920"
	if r.IntN(4) == 0 {
		name = pick(r, hardware.Presets()...)
	}
	s, err := hardware.Load(name)
	if err != nil {
		panic(err)
	}
	if r.IntN(6) == 0 {
		return s
	}
	often := func() bool { return r.IntN(3) > 0 }
	if often() {
		s.Clusters = pick(r, 1, 1, 2, 3, 5, 16)
	}
	if often() {
		s.CoreTypes[0].Count = pick(r, 1, 1, 2, 3, 4, 8)
	}
	if often() {
		s.LaunchSeconds = pick(r, 0, 1e-9, 1e-7, 1e-6, 1e-4)
	}
	if often() {
		s.SyncSeconds = pick(r, 0, 1e-7)
	}
	if often() {
		s.DDR.BandwidthBytesPerSecond = pick(r, 1e8, 1e9, 1e10, 1e12, 1e15)
	}
	if often() {
		s.DDR.LatencySeconds = pick(r, 0, 0, 1e-8, 1e-6, 1e-4)
	}
	if often() {
		s.DDRActivationEfficiency = pick(r, 0, .01, .5, 1)
	}
	if often() {
		s.DDRLink.BandwidthBytesPerSecond, s.DDRLink.LatencySeconds = pick(r, 0, 0, 1e9, 1e11), pick(r, 0, 1e-7, 1e-5)
	}
	if often() {
		s.CoreLink.BandwidthBytesPerSecond, s.CoreLink.LatencySeconds = pick(r, 1e9, 1e10, 1e12, 1e15), pick(r, 0, 1e-8, 1e-6)
	}
	s.CoreLink.Broadcast = s.CoreLink.Broadcast && r.IntN(2) == 0
	s.CoreLink.InFlight, s.DDRLink.InFlight = pick(r, 0, 0, 2, 4), pick(r, 0, 0, 1, 3)
	if often() && s.L1 != nil {
		s.L1.SizeBytes, s.L1WeightBytes = pick(r, hardware.Bytes(256), 2048, 16384, 1<<20), pick(r, hardware.Bytes(0), 128,
			1024, 1<<18)
		s.L1.BandwidthBytesPerSecond = pick(r, s.L1.BandwidthBytesPerSecond, 1e9, 1e14)
	}
	switch {
	case s.LLB == nil:
	case r.IntN(5) == 0 && s.L1 != nil:
		s.LLB, s.Energy = nil, nil
	case often():
		s.LLB.SizeBytes = pick(r, hardware.Bytes(256), 1000, 4096, 65536, 8<<20)
		s.LLB.BandwidthBytesPerSecond, s.LLB.LatencySeconds = pick(r, 1e9, 1e10, 1e12, 1e15), pick(r, 0, 0, 1e-7)
	}
	c := &s.CoreTypes[0]
	for i := range c.Units {
		u := &c.Units[i]
		if often() {
			u.FillCycles = pick(r, hardware.Cycles(0), 0, 10, 100, 1000)
		}
		if u.Kind == hardware.Matrix {
			if often() {
				u.Rows, u.Cols, u.BlockCycles = pick(r, 1, 2, 8, 64), pick(r, 1, 2, 8, 32), pick(r, 0., 2, 20, 200)
				u.InFlight = pick(r, 0, 0, 1, 5)
			}
			continue
		}
		if often() {
			u.Lanes = pick(r, 1, 4, 64, 512)
			for _, class := range []string{hardware.OpSimple, hardware.OpSpecial, hardware.OpMove} {
				if _, there := u.CyclesPerOp[class]; there {
					u.CyclesPerOp[class] = pick(r, .5, 1, 4)
				}
			}
		}
		if r.IntN(4) == 0 {
			u.SharesWith = ""
		}
	}
	if r.IntN(10) == 0 {
		s.CoreTypes = append(s.CoreTypes, hardware.CoreType{Name: "other", Count: 1 + r.IntN(2), HasL1: r.IntN(2) == 0,
			Units: c.Units[1:]})
	}
	if r.IntN(12) == 0 {
		c.Units = c.Units[1:]
	}
	return s
}

// mixed makes a machine one of two or three kinds of core: its own, slower or faster ones, some without products.
func mixed(r *rand.Rand, s *hardware.Spec) *hardware.Spec {
	classes := []string{"matrix", "reduction", "element-wise", "injective"}
	s = s.Clone()
	own := s.CoreTypes[:1]
	own[0].Runs, own[0].Grid = classes, nil
	for k := range 1 + r.IntN(2) {
		t := s.Clone().CoreTypes[0]
		t.Name, t.Count = fmt.Sprintf("kind%d", k+1), 1+r.IntN(6)
		for i := range t.Units {
			u := &t.Units[i]
			u.FillCycles = pick(r, u.FillCycles, 0, 100)
			if u.Kind == hardware.Matrix {
				u.Rows, u.Cols, u.BlockCycles = pick(r, u.Rows, 1, 4, 32), pick(r, u.Cols, 1, 4, 32), pick(r, u.BlockCycles, 0, 50)
			} else {
				u.Lanes = pick(r, u.Lanes, 1, 16, 256)
			}
			if r.IntN(4) == 0 {
				u.SharesWith = ""
			}
		}
		if r.IntN(3) == 0 {
			t.Runs = classes[1:]
		}
		own = append(own, t)
	}
	if len(own[1].Runs) == len(classes) && r.IntN(4) == 0 {
		own[0].Runs = pick(r, classes[:1], classes[1:])
	}
	s.CoreTypes = own
	return s
}

// A campaign counts what became of its schedules.
type campaign struct {
	network                   func(seed uint64) network.Network // nil: hostile ones
	t                         *testing.T
	mixed                     bool // machines of several kinds of core
	tight                     bool // memories that hold little
	several                   int  // schedules in which more than one works
	schedules, outside, files int
	divided                   int // by schedules of parts of the network
	fused, steady             int // of graphs with attention as an operator that the network has not; rows of batches
	nests, blocked, attending int // schedules with nests, with blocked ones, with loops over queries and keys
	parts                     int // of graphs with scans or normalisations in parts
	closest                   map[string]float64
	others                    map[string]int
	bad, uneven               int
	traded, binding           int // schedules held by launches, bytes and products; sums of these above the least
}

// draw is a hostile network, a hostile machine, as it is and as the decisions see it, and a batch.
func (c *campaign) draw(r *rand.Rand, seed uint64) (machine, spec *hardware.Spec, level scheduler.Level,
	net network.Network, batch int64, err error) {
	machine, net = hostileMachine(r), hostile(seed)
	if c.network != nil {
		net = c.network(seed)
	}
	if c.tight {
		tighten(r, machine)
	}
	batch = pick(r, int64(1), 1, 2, 3, 4, 6, 7, 12)
	if r.IntN(16) == 0 {
		batch = pick(r, int64(33), 64, 100, 257, 1000)
	}
	if c.mixed {
		machine = mixed(r, machine)
	}
	if err := machine.Validate(); err != nil {
		return nil, nil, level, net, 0, fmt.Errorf("no machine: %w", err)
	}
	level = pick(r, scheduler.LevelAuto, scheduler.LevelAuto, scheduler.LevelAuto, scheduler.LevelLLB)
	spec, err = level.Machine(machine)
	return machine, spec, level, net, batch, err
}

// one schedules a hostile network on a hostile machine in several ways, all of which the bound holds for.
func (c *campaign) one(seed uint64) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	r := rand.New(rand.NewPCG(seed, 21))
	machine, spec, level, net, batch, err := c.draw(r, seed)
	if err != nil {
		c.others[err.Error()]++
		return
	}
	what := fmt.Sprintf("seed %d", seed)
	if _, err := net.Graph(1); err != nil {
		c.others["no network"]++
		return
	}
	if g, err := net.Graph(batch); err != nil || commands(g, spec) > 4000 && r.IntN(20) > 0 {
		c.others["too large"]++ // mostly left out, for more of the others
		return
	}
	on := &held{net: net, spec: spec, batch: batch}
	if on.form, err = bound.AnyForm(ctx, net, spec, batch); err != nil || on.of(ctx, net) != nil {
		c.others["no bound"]++
		return
	}
	b := on.even[0]
	if *cases == 1 {
		g, _ := net.Graph(batch)
		m := *spec
		m.Energy = nil
		c.t.Logf("%s\n%+v\nLB %+v weights %v GB %+v\n%+v", describe(g), m, m.L1, m.L1WeightBytes, m.LLB, b.Terms)
	}
	if any, form := on.any[0], on.form.Seconds; any > form || form > b.Seconds {
		c.t.Errorf("%s: %g s for any division, %g s for any form, %g s for lines", what, any, form, b.Seconds)
	}
	searched := net
	if r.IntN(3) == 0 {
		searched = network.FuseAttention(net)
	}
	chosen := slices.DeleteFunc(recipes.All(), func(r scheduler.Recipe) bool { return r.Name == "exact-all" })
	share := schedule.Shares(batch, spec.Clusters)[0]
	var made *scheduler.Result
	for k := range 6 {
		if ctx.Err() != nil {
			break
		}
		recipe := pick(r, chosen...)
		if recipe.Exact() && r.IntN(8) > 0 {
			recipe, _ = recipes.Lookup("cross-layer")
		}
		if r.IntN(6) == 0 { // one kernel, with attentions as operators and scans in parts
			recipe, _ = recipes.Lookup(pick(r, "tiled-llb", "tiled-l1", "tiled-groups", "tiled-room", "tiled-slices",
				"tiled-moved", "tiled-twelfth"))
		}
		opt := scheduler.Options{Level: level, InPlace: r.IntN(2) == 0, Chunk: pick(r, 0, 1, share, 1+r.Int64N(share)),
			TimeLimit: 20 * time.Millisecond, TimeLimitOnly: true,
			Uneven: pick(r, schedule.UnevenFastest, schedule.UnevenAll, schedule.UnevenOutputs, schedule.UnevenNone)}
		how := fmt.Sprintf("%s, %d: %s, chunk %d", what, k, recipe.Name, opt.Chunk)
		var result *scheduler.Result
		switch {
		case k >= 4:
			recipe = anyRecipe(recipe, r)
			how += ", at random"
		case k == 3 && r.IntN(2) == 0:
			greedy, _ := recipes.Lookup("cross-layer")
			opt.Chunk, opt.TimeLimit, opt.TimeLimitOnly = 0, 0, false
			start := []scheduler.Recipe{greedy}
			if !recipe.Exact() && recipe.Name != greedy.Name {
				start = append(start, recipe)
			}
			found, err := search.Best(ctx, searched, machine, batch, search.BestOptions{Options: opt,
				Recipes: start, Evaluations: *evaluations * pick(r, 3, 3, 15, 50), Seed: seed, Threads: 1})
			if err == nil {
				result = found.Result
				c.schedules += found.Evaluations - 1
			}
			how += ", best"
		case r.IntN(2) == 0:
			recipe = anyOptions(recipe, r)
		}
		if result == nil && r.IntN(3) == 0 {
			recipe = anyNests(recipe, r)
			how += ", with nests"
		}
		if result == nil {
			if result, err = scheduler.Run(ctx, searched, machine, batch, recipe, opt); err != nil {
				c.failed(how, err)
				continue
			}
			c.schedules += max(0, len(result.Tried)-1)
		}
		made = result
		c.hold(ctx, how, on, made)
		if r.IntN(4) == 0 {
			c.row(ctx, how, on, made, pick(r, 2, 3, 5, 9), r.IntN(3) == 0)
		}
	}
	for k := range 2 {
		if spec.Clusters == 1 || seed%2 == 0 || r.IntN(2) == 0 { // dead operators are not divided
			break
		}
		division := pick(r, divisions...)
		how := fmt.Sprintf("%s, division %d: %s", what, k, division)
		recipe := pick(r, chosen[:5]...)
		divided, err := scheduler.Run(ctx, searched, machine, batch, recipe,
			scheduler.Options{Level: level, Clusters: division,
				Chunk: pick(r, 0, 1, batch), InPlace: r.IntN(2) == 0})
		if err != nil {
			c.failed("division", err)
			continue
		}
		c.divided++
		c.hold(ctx, how, on, divided)
		if made == nil || r.IntN(4) == 0 {
			made = divided // its file is edited
		}
	}
	for k := range 10 {
		if made == nil || ctx.Err() != nil {
			break
		}
		f := made.File(schedulefile.Origin{})
		for range 1 + r.IntN(3) {
			mutate(f, r)
		}
		how := fmt.Sprintf("%s, file %d", what, k)
		if data, err := f.Write(); err != nil {
			continue
		} else if f, err = schedulefile.Read("file", data); err != nil {
			c.others["file not read"]++
			continue
		}
		if *cases == 1 {
			c.t.Logf("file %d: clusters %v, generator %+v", k, f.Clusters, f.Generator)
			for i := range f.Schedules {
				p := &f.Schedules[i]
				c.t.Logf("batch %d, groups %+v, instances %+v, order %v, memory %+v", p.Batch, p.Groups, p.Instances, p.Order,
					p.Memory)
			}
		}
		again, err := scheduler.Restore(ctx, f, machine)
		opened := &scheduler.Opened{Path: "file", File: f, Spec: machine}
		var large *lower.TooLargeError
		if checked, wrong := opened.Check(ctx); wrong == nil && checked.OK != (err == nil) && ctx.Err() == nil &&
			!errors.As(err, &large) {
			c.t.Errorf("%s: checked with %v, simulated with %v", how, checked.Violations, err)
		}
		if err != nil {
			c.failed("file", err)
			continue
		}
		c.files++
		c.hold(ctx, how, on, again)
		if r.IntN(2) == 0 {
			made = again
		}
	}
}

// held are the bounds that a network's schedules are held against: of its graph, and of that with attention as an
// operator, if that differs.
type held struct {
	net    network.Network
	spec   *hardware.Spec
	batch  int64
	even   []*bound.Bound
	steady []*bound.Bound
	any    []float64    // 0: there is none
	form   *bound.Bound // of all forms
	graphs []func(batch int64) (*model.Graph, error)
}

// of adds the bounds of a network.
func (h *held) of(ctx context.Context, net network.Network) error {
	b, err := bound.Cold(ctx, net, h.spec, h.batch)
	if err != nil {
		return err
	}
	steady, err := bound.Steady(ctx, net, h.spec, h.batch)
	if err != nil {
		return err
	}
	any, err := bound.AnyDivision(ctx, net, h.spec, h.batch)
	if err != nil {
		any = 0
	}
	h.even, h.steady, h.any, h.graphs = append(h.even, b), append(h.steady, steady), append(h.any, any), append(h.graphs,
		net.Graph)
	return nil
}

// which finds the bounds for a schedule by its graph; -1: there are none.
func (h *held) which(ctx context.Context, s *schedule.Schedule, batch int64) int {
	print := schedulefile.GraphFingerprint(s.Graph)
	same := func(graph func(batch int64) (*model.Graph, error)) bool {
		g, err := graph(batch)
		return err == nil && schedulefile.GraphFingerprint(g) == print
	}
	for i, graph := range h.graphs {
		if same(graph) {
			return i
		}
	}
	fused := network.FuseAttention(h.net)
	if len(h.graphs) == 1 && same(fused.Graph) && h.of(ctx, fused) == nil {
		return 1
	}
	if g, err := fused.Graph(batch); err == nil {
		parts := scheduler.SlicesOf(g, h.spec)
		if cut := network.Slice(fused, parts); parts != nil && same(cut.Graph) && h.of(ctx, cut) == nil {
			return len(h.graphs) - 1
		}
	}
	return -1
}

// inSlices reports whether a feed-forward is.
func inSlices(g *model.Graph) bool {
	return slices.ContainsFunc(g.Ops, func(op *model.Op) bool { return strings.HasSuffix(op.Name, "]") })
}

// inParts reports whether a scan or a normalisation of a graph is taken apart.
func inParts(g *model.Graph) bool {
	return slices.ContainsFunc(g.Ops, func(op *model.Op) bool {
		return strings.Contains(op.Name, ".part") || strings.HasSuffix(op.Name, ".square")
	})
}

// commands is about how many a network's tensors take to move through a machine's memories.
func commands(g *model.Graph, spec *hardware.Spec) int64 {
	room, bytes := int64(1<<20), int64(0)
	if spec.L1 != nil {
		room = int64(spec.L1.SizeBytes) * int64(spec.Cores())
	}
	if spec.LLB != nil {
		room = min(room, int64(spec.LLB.SizeBytes))
	}
	for _, t := range g.Tensors {
		bytes += 4 * t.Bytes()
	}
	return bytes / room
}

func (c *campaign) failed(how string, err error) {
	var tooBig *graphturbo.DoesNotFitError
	var bad *scheduler.ViolationsError
	switch text := err.Error(); {
	case errors.As(err, &tooBig), strings.Contains(text, "does not fit"):
		c.others["do not fit"]++
	case errors.As(err, &bad):
		c.others["break a rule"]++
	case errors.Is(err, context.DeadlineExceeded):
		c.others["time"]++
	case strings.Contains(text, "breaks a rule of memory") && !strings.Contains(text, "and reads"):
		c.others["refused by the simulator"]++
	case strings.Contains(text, "internal") && !strings.Contains(how, "at random"):
		c.t.Errorf("%s: %v", how, err)
	default:
		for _, quoted := range []string{`hostile-[0-9]+ on [^:]*: `, `"[^"]*"`, `[0-9]+`} { // one line for all that are alike
			text = regexp.MustCompile(quoted).ReplaceAllString(text, "")
		}
		c.others[text[:min(70, len(text))]]++
	}
}

// even reports whether clusters divide the batch evenly, and do the same with as much of it.
func even(r *scheduler.Result) bool {
	shares := slices.Clone(r.Shares)
	slices.SortFunc(shares, func(a, b int64) int { return int(b - a) })
	if r.Clusters != scheduler.OverBatch || !slices.Equal(shares, schedule.Shares(r.Batch, r.Spec.Clusters)) {
		return false
	}
	for k, plan := range r.Plans {
		for i := range k {
			if r.Shares[i] == r.Shares[k] && !slices.Equal(r.Plans[i], plan) {
				return false
			}
		}
	}
	return true
}

// hold compares a schedule with all terms of the bound.
func (c *campaign) hold(ctx context.Context, how string, on *held, r *scheduler.Result) {
	which, several, nested, blocked, attending, lines := 0, 0, 0, 0, 0, true
	for _, plan := range r.Plans {
		for _, seg := range plan {
			lines = lines && bound.Covers(seg.Schedule) == nil
			worked := map[int]bool{}
			for i := range seg.Schedule.Steps {
				worked[seg.Schedule.Steps[i].Kind] = true
			}
			if len(worked) > 1 {
				several = 1
			}
			for i := range seg.Schedule.Steps {
				if n := seg.Schedule.Steps[i].Nest; n != nil {
					nested = 1
					if n.Blocked() {
						blocked = 1
					}
					if n.Attention != nil {
						attending = 1
					}
				}
			}
		}
	}
	switch which = on.which(ctx, r.Schedule, r.Chunk); {
	case which >= 0:
	case r.Clusters == scheduler.OverBatch && (inParts(r.Schedule.Graph) || inSlices(r.Schedule.Graph)):
		which = len(on.even) - 1 // they do what the whole's operators do, and more
		lines = lines && !inSlices(r.Schedule.Graph)
		c.parts++
	default:
		if ctx.Err() == nil {
			c.others["of another graph"]++
		}
		return
	}
	c.schedules++
	c.fused += which
	c.several += several
	c.nests, c.blocked, c.attending = c.nests+nested, c.blocked+blocked, c.attending+attending
	hold := func(term string, seconds float64) {
		if seconds > r.LatencySeconds() {
			c.bad++
			c.t.Errorf("%s: %s says %.6g s, simulated in %.6g s (%.4f) on %s, batch %d in shares %v, chunk %d", how, term,
				seconds, r.LatencySeconds(), r.LatencySeconds()/seconds, r.Spec.Name, r.Batch, r.Shares, r.Chunk)
		}
		c.closest[term] = max(c.closest[term], seconds/r.LatencySeconds())
	}
	hold("any division", on.any[0])
	if !even(r) {
		c.uneven++
		return
	}
	hold("any form", on.form.Seconds)
	if !lines {
		c.outside++
		return
	}
	for _, term := range on.even[which].Terms {
		hold(term.Name, term.Seconds)
	}
	if which > 0 || r.Program == nil || r.Shares[0] == 0 {
		return
	}
	// What it launches, moves and computes.
	launches, moved, products := spent(r.Program)
	t, err := bound.Trade(on.net, r.Spec, r.Shares[0])
	if err != nil || launches == 0 || launches > 64 {
		return
	}
	c.traded++
	for _, share := range []float64{1, .5, 0} {
		a, b := share/r.Spec.DDR.BandwidthBytesPerSecond, 1-share
		found, least := a*(moved-t.Bytes)+b*(products-t.Products), t.Fewest(int(launches), a, b)[int(launches)]
		if least > found+1e-9*(a*moved+b*products)+1e-12 {
			c.bad++
			c.t.Errorf("%s: %g launches, %g bytes (at least %g), %g s of products (at least %g) on %s, "+
				"by a share of %g %g, expected at least %g", how, launches, moved, t.Bytes, products, t.Products,
				r.Spec.Name, share, found, least)
		}
		if least > 0 {
			c.binding++
		}
	}
}

// row compares n batches, one after the other, with n times each term of the bound on one of many.
func (c *campaign) row(ctx context.Context, how string, on *held, r *scheduler.Result, n int, fresh bool) {
	for _, plan := range r.Plans {
		for _, seg := range plan {
			if bound.Covers(seg.Schedule) != nil {
				return
			}
		}
	}
	which := on.which(ctx, r.Schedule, r.Chunk)
	if which < 0 || !even(r) {
		return
	}
	plans := make([][]lower.Segment, len(r.Plans))
	for k, plan := range r.Plans {
		plans[k] = slices.Repeat(plan, n)
		if len(plan) == 1 {
			plans[k] = []lower.Segment{{Schedule: plan[0].Schedule, Iterations: n * plan[0].Iterations}}
		}
	}
	opt := r.Lower
	opt.Batches, opt.Fresh = n, fresh
	p, alike, err := lower.Outline("row", r.Spec, plans, opt)
	if err != nil {
		c.others["no row of batches"]++
		return
	}
	ps, _, err := sim.Latency(ctx, p, alike, math.MaxInt64)
	if err != nil {
		return
	}
	c.steady++
	for _, term := range on.steady[which].Terms {
		name, each := "steady "+term.Name, float64(ps)*1e-12/float64(n)
		if term.Seconds > each {
			c.bad++
			c.t.Errorf("%s: %s says %.6g s, %d batches are simulated in %.6g s each on %s", how, name, term.Seconds, n, each,
				r.Spec.Name)
		}
		c.closest[name] = max(c.closest[name], term.Seconds/each)
	}
}

// anyOptions draws what the generator may be told and no recipe tells it.
func anyOptions(recipe scheduler.Recipe, r *rand.Rand) scheduler.Recipe {
	o := lower.Options{Generator: schedule.Generator{CrossLayer: r.IntN(4) > 0, KeepWeights: r.IntN(4) > 0,
		Prefetch:    r.IntN(4) > 0,
		BeforeFirst: r.IntN(2) == 0, Exposed: r.IntN(3) == 0,
		KeepQuarters: r.IntN(5), Pieces: pick(r, int64(0), 1, 2, 8, 64), WeightTiles: pick(r, int64(0), 2, 4),
		LoadTiles:    pick(r, int64(0), 2, 4, 64),
		WeightsFirst: r.IntN(2) == 0, StorePieces: r.IntN(2) == 0}}
	return recipe.With("weights", scheduler.Strategy{Name: "any", Decide: func(_ context.Context,
		d *scheduler.Draft) error {
		d.Lower = o
		return nil
	}})
}

// No schedule of a hostile network on a hostile machine is faster than any term of the bound.
func TestCampaign(t *testing.T) {
	c := &campaign{t: t, closest: map[string]float64{}, others: map[string]int{}}
	c.one(93000225)  // a constant behind a second result, which is on more cores than the first
	c.one(310000249) // a layer with an attention of which the result needs no row
	c.run()
}

// Each layer takes at least what it takes on the kind of core that is fastest for it.
func TestMixedCampaign(t *testing.T) {
	c := &campaign{t: t, mixed: true, closest: map[string]float64{}, others: map[string]int{}}
	c.run()
	t.Logf("%d schedules on several kinds of core", c.several)
	if *cases > 10 && c.several == 0 {
		t.Error("no schedule on several kinds of core")
	}
}

// Nor of one with a relative shift.
func TestShiftCampaign(t *testing.T) {
	c := &campaign{t: t, network: shifted, closest: map[string]float64{}, others: map[string]int{}}
	c.run()
}

// Nor of one with transposed convolutions, weights of few bits, recurrence or attention in windows.
func TestKindsCampaign(t *testing.T) {
	all := *cases
	defer func() { *cases = all }()
	*cases = (all + 1) / 2
	for name, network := range map[string]func(uint64) network.Network{"transposed": mostly("ConvTranspose"),
		"dequantised": mostly("Dequantize"), "recurrent": recurrent, "windows": windows} {
		t.Run(name, func(t *testing.T) {
			c := &campaign{t: t, network: network, closest: map[string]float64{}, others: map[string]int{}}
			c.run()
		})
	}
}

func (c *campaign) run() {
	t, begin := c.t, time.Now()
	for i := range uint64(*cases) {
		c.one(*from + i)
		if c.bad > 300 {
			t.Fatal("that is enough")
		}
		if i%100 == 99 {
			t.Logf(
				"%d networks, %d schedules, %d of files, %d divided, %d uneven, %d not covered, %d with nests, %d blocked, %d "+
					"attending, %d fused, %d in parts, %d rows, %v", i+1, c.schedules, c.files, c.divided, c.uneven, c.outside,
				c.nests, c.blocked,
				c.attending, c.fused, c.parts, c.steady, time.Since(begin).Round(time.Second))
		}
	}
	t.Logf("%d networks, %d schedules, %d of files, %d with the network divided, %d that are not even",
		*cases, c.schedules, c.files, c.divided, c.uneven)
	t.Logf("%d with nests, %d with blocked ones, %d with those of attentions, %d of graphs with attention put together, "+
		"%d with scans or normalisations in parts, %d rows of batches", c.nests, c.blocked, c.attending,
		c.fused, c.parts, c.steady)
	t.Logf("%d held against launches, bytes and products, %d sums above what nothing spares", c.traded, c.binding)
	t.Logf("%d not covered besides; closest %v; besides %v", c.outside, c.closest, c.others)
}

// describe is a graph, an operator a line.
func describe(g *model.Graph) string {
	var b strings.Builder
	name := func(id model.TensorID) string {
		t := g.Tensor(id)
		return fmt.Sprintf("%d%v %v %v", id, t.Shape, t.DType, t.Role)
	}
	for _, op := range g.Ops {
		fmt.Fprintf(&b, "%s", op.Kind)
		for _, t := range op.Inputs {
			fmt.Fprintf(&b, " (%s)", name(t))
		}
		b.WriteString(" ->")
		for _, t := range op.Outputs {
			fmt.Fprintf(&b, " (%s)", name(t))
		}
		fmt.Fprintf(&b, " %+v\n", *op.Attr)
	}
	return b.String() + fmt.Sprintf("outputs %v", g.Outputs)
}
