package bound_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

var (
	cases = flag.Int("cases", 150, "hostile networks, each on one machine, that are scheduled several times")
	from  = flag.Uint64("from", 1, "the first one's seed")
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
	if often() && s.LB != nil {
		s.LB.SizeBytes, s.LBWeightBytes = pick(r, hardware.Bytes(256), 2048, 16384, 1<<20), pick(r, hardware.Bytes(0), 128,
			1024, 1<<18)
		s.LB.BandwidthBytesPerSecond = pick(r, s.LB.BandwidthBytesPerSecond, 1e9, 1e14)
	}
	switch {
	case s.GB == nil:
	case r.IntN(5) == 0 && s.LB != nil:
		s.GB, s.Energy = nil, nil
	case often():
		s.GB.SizeBytes = pick(r, hardware.Bytes(256), 1000, 4096, 65536, 8<<20)
		s.GB.BandwidthBytesPerSecond, s.GB.LatencySeconds = pick(r, 1e9, 1e10, 1e12, 1e15), pick(r, 0, 0, 1e-7)
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
		s.CoreTypes = append(s.CoreTypes, hardware.CoreType{Name: "other", Count: 1 + r.IntN(2), HasLB: r.IntN(2) == 0,
			Units: c.Units[1:]})
	}
	if r.IntN(12) == 0 {
		c.Units = c.Units[1:]
	}
	return s
}

// A campaign counts what became of its schedules.
type campaign struct {
	t                         *testing.T
	schedules, outside, files int
	divided                   int // by schedules of parts of the network
	closest                   map[string]float64
	others                    map[string]int
	bad, uneven               int
}

// one schedules a hostile network on a hostile machine in several ways, all of which the bound holds for.
func (c *campaign) one(seed uint64) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	r := rand.New(rand.NewPCG(seed, 21))
	machine, net, batch := hostileMachine(r), hostile(seed), pick(r, int64(1), 1, 2, 3, 4, 6, 7, 12)
	if r.IntN(16) == 0 {
		batch = pick(r, int64(33), 64, 100, 257, 1000)
	}
	if err := machine.Validate(); err != nil {
		c.others["no machine: "+err.Error()]++
		return
	}
	level := pick(r, scheduler.LevelAuto, scheduler.LevelAuto, scheduler.LevelAuto, scheduler.LevelGB)
	spec, err := scheduler.Machine(machine, level)
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
	b, err := bound.Cold(ctx, net, spec, batch)
	if err != nil {
		c.others["no bound"]++
		return
	}
	if *cases == 1 {
		g, _ := net.Graph(batch)
		m := *spec
		m.Energy = nil
		c.t.Logf("%s\n%+v\nLB %+v weights %v GB %+v\n%+v", describe(g), m, m.LB, m.LBWeightBytes, m.GB, b.Terms)
	}
	any, err := bound.AnyDivision(ctx, net, spec, batch)
	if err != nil {
		c.others["no bound of any division"]++
		any = 0
	}
	if any > b.Seconds {
		c.t.Errorf("%s: %g s for any division, %g s for even ones", what, any, b.Seconds)
	}
	recipes := slices.DeleteFunc(scheduler.All(), func(r scheduler.Recipe) bool { return r.Name == "exact-all" })
	share := scheduler.Shares(batch, spec.Clusters)[0]
	var made *scheduler.Result
	for k := range 6 {
		recipe := pick(r, recipes...)
		if recipe.Exact() && r.IntN(8) > 0 {
			recipe, _ = scheduler.Lookup("cross-layer")
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
			greedy, _ := scheduler.Lookup("cross-layer")
			opt.Chunk = 0
			found, err := scheduler.Best(ctx, net, machine, batch, scheduler.BestOptions{Options: opt,
				Recipes: []scheduler.Recipe{greedy}, Evaluations: 60, Seed: seed, Threads: 1})
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
			if result, err = scheduler.Run(ctx, net, machine, batch, recipe, opt); err != nil {
				c.failed(how, err)
				continue
			}
			c.schedules += max(0, len(result.Tried)-1)
		}
		made = result
		c.hold(how, b, any, made)
	}
	for k := range 2 {
		if spec.Clusters == 1 || seed%2 == 0 || r.IntN(2) == 0 { // dead operators are not divided
			break
		}
		division := pick(r, scheduler.Pipelined, scheduler.OverLayer)
		how := fmt.Sprintf("%s, division %d: %s", what, k, division)
		recipe := pick(r, recipes[:5]...)
		divided, err := scheduler.Run(ctx, net, machine, batch, recipe, scheduler.Options{Level: level, Clusters: division,
			Chunk: pick(r, 0, 1, batch), InPlace: r.IntN(2) == 0})
		if err != nil {
			c.failed("division", err)
			continue
		}
		c.divided++
		c.hold(how, b, any, divided)
	}
	for k := range 6 {
		if made == nil {
			break
		}
		f := scheduler.File(made, schedulefile.Origin{})
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
		if err != nil {
			c.failed("file", err)
			continue
		}
		c.files++
		c.hold(how, b, any, again)
		if r.IntN(2) == 0 {
			made = again
		}
	}

}

// commands is about how many a network's tensors take to move through a machine's memories.
func commands(g *model.Graph, spec *hardware.Spec) int64 {
	room, bytes := int64(1<<20), int64(0)
	if spec.LB != nil {
		room = int64(spec.LB.SizeBytes) * int64(spec.Cores())
	}
	if spec.GB != nil {
		room = min(room, int64(spec.GB.SizeBytes))
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
	case strings.Contains(text, "overwrites memory in use"):
		c.others["refused by the simulator"]++
	case strings.Contains(text, "internal") && !strings.Contains(how, "at random"):
		c.t.Errorf("%s: %v", how, err)
	default:
		c.others[text[:min(60, len(text))]]++
	}
}

// even reports whether clusters divide the batch evenly, and do the same with as much of it.
func even(r *scheduler.Result) bool {
	shares := slices.Clone(r.Shares)
	slices.SortFunc(shares, func(a, b int64) int { return int(b - a) })
	if r.Clusters != scheduler.OverBatch || !slices.Equal(shares, scheduler.Shares(r.Batch, r.Spec.Clusters)) {
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
func (c *campaign) hold(how string, b *bound.Bound, any float64, r *scheduler.Result) {
	for _, plan := range r.Plans {
		for _, seg := range plan {
			if bound.Covers(seg.Schedule) != nil {
				c.outside++
				return
			}
		}
	}
	c.schedules++
	hold := func(term string, seconds float64) {
		if seconds > r.LatencySeconds() {
			c.bad++
			c.t.Errorf("%s: %s says %.6g s, simulated in %.6g s (%.4f) on %s, batch %d in shares %v, chunk %d", how, term,
				seconds, r.LatencySeconds(), r.LatencySeconds()/seconds, r.Spec.Name, r.Batch, r.Shares, r.Chunk)
		}
		c.closest[term] = max(c.closest[term], seconds/r.LatencySeconds())
	}
	hold("any division", any)
	if !even(r) {
		c.uneven++
		return
	}
	for _, term := range b.Terms {
		hold(term.Name, term.Seconds)
	}
}

// anyOptions draws what the generator may be told and no recipe tells it.
func anyOptions(recipe scheduler.Recipe, r *rand.Rand) scheduler.Recipe {
	o := lower.Options{Generator: schedule.Generator{CrossLayer: r.IntN(4) > 0, KeepWeights: r.IntN(4) > 0, Prefetch: r.IntN(4) > 0,
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
	begin := time.Now()
	for i := range uint64(*cases) {
		c.one(*from + i)
		if c.bad > 300 {
			t.Fatal("that is enough")
		}
		if i%500 == 499 {
			t.Logf("%d networks, %d schedules, %d of files, %d not covered, %v", i+1, c.schedules, c.files, c.outside,
				time.Since(begin).Round(time.Second))
		}
	}
	t.Logf("%d networks, %d schedules, %d of files, %d with the network divided, %d that are not even",
		*cases, c.schedules, c.files, c.divided, c.uneven)
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
