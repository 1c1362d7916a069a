package sim

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// shape says what random programs are like.
type shape struct {
	commands, clusters, queues, resources int
	deps                                  int  // at most, per command
	lonely                                bool // no resource is used by two queues
}

// random draws a program with times from nanoseconds to milliseconds, so that
// a picosecond is far below the tolerances of the tests.
func random(rng *rand.Rand, s shape) *isa.Program {
	p := &isa.Program{Name: "random", Clusters: s.clusters, Labels: []string{"a", "b", "c"}, PeakMACsPerSecond: 1e13,
		PeakVectorOpsPerSecond: 1e12}
	for i := range s.resources {
		r := rng.Int64N(100) * giga / 7
		if rng.IntN(4) == 0 {
			r = giga << rng.IntN(6) // equal rates make ties
		}
		p.Resources = append(p.Resources, isa.Resource{Name: fmt.Sprint("r", i), BytesPerSecond: (r + giga/2) &^ 1})
	}
	for i := range s.queues {
		p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprint("q", i), Cluster: int32(i % s.clusters)})
	}
	duration := func() int64 {
		switch rng.IntN(8) {
		case 0:
			return 0
		case 1:
			return 1_000_000 * rng.Int64N(5)
		}
		return rng.Int64N(20_000_000) &^ 1
	}
	for i := range s.commands {
		c := isa.Command{
			Kind: isa.Kind(rng.IntN(int(isa.NumKinds))), Queue: int32(rng.IntN(s.queues)), Label: rng.Int32N(3),
			Iteration: rng.Int32N(2), Cores: 1, DurationPs: duration(),
			MACs: rng.Int64N(1000), VectorOps: rng.Int64N(1000), WriteLevel: isa.Level(rng.IntN(int(isa.NumLevels))),
		}
		if i > 0 {
			for range rng.IntN(s.deps + 1) {
				// Mostly on recent commands, or all would run at once.
				c.Deps = append(c.Deps, int32(max(0, i-1-rng.IntN(min(i, 12)))))
			}
		}
		if c.Kind.IsMove() {
			c.DurationPs /= 4
			c.DurationPs &^= 1
			c.Bytes = rng.Int64N(200_000)
			if rng.IntN(4) == 0 {
				c.Bytes = 65536
			}
			if s.lonely {
				if int(c.Queue) < s.resources {
					c.Uses = []isa.Use{{Resource: c.Queue, Bytes: c.Bytes}}
				}
			} else {
				for range rng.IntN(5) {
					b := c.Bytes
					switch rng.IntN(4) {
					case 0:
						b *= rng.Int64N(32)
					case 1:
						b /= 1 + rng.Int64N(32)
					}
					c.Uses = append(c.Uses, isa.Use{Resource: rng.Int32N(int32(s.resources)), Bytes: b})
				}
			}
		}
		p.Commands = append(p.Commands, c)
	}
	return p
}

// someShape draws a shape, from a few commands on one queue to more flows than
// resources.
func someShape(rng *rand.Rand) shape {
	return shape{
		commands: 1 + rng.IntN(150), clusters: 1 + rng.IntN(4), queues: 1 + rng.IntN(40),
		resources: 1 + rng.IntN(15), deps: rng.IntN(4),
	}
}

func run(t testing.TB, p *isa.Program) *Result {
	t.Helper()
	r, err := Run(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// naive is the model of the package documentation written down a second time:
// floating point, one list of flows, every rate found anew at every event by
// raising all rates in steps, and everything searched for from the start.
func naive(p *isa.Program) (start, end []float64) {
	n := len(p.Commands)
	start, end = make([]float64, n), make([]float64, n)
	for i := range n {
		start[i], end[i] = math.Inf(1), math.Inf(1)
	}
	type flow struct {
		command int
		begin   float64 // after the latency
		bytes   float64 // that remain
		take    []float64
		rate    float64
	}
	var flows []*flow
	now := 0.0
	const eps = 1e-2 // ps: what is due this soon is due now; far above the last digit of a time
	for {
		// Start all that can start, until nothing changes.
		for again := true; again; {
			again = false
			for i, c := range p.Commands {
				ready := math.IsInf(start[i], 1)
				for _, d := range c.Deps {
					ready = ready && end[d] <= now
				}
				for j := range i {
					ready = ready && (p.Commands[j].Queue != c.Queue || end[j] <= now)
				}
				if !ready {
					continue
				}
				again = true
				start[i] = now
				take := make([]float64, len(p.Resources))
				for _, u := range c.Uses {
					take[u.Resource] += float64(u.Bytes)
				}
				own := slices.Max(append(take, 0))
				if own == 0 {
					end[i] = now + float64(c.DurationPs)
					continue
				}
				for k := range take {
					take[k] /= own
				}
				flows = append(flows, &flow{command: i, begin: now + float64(c.DurationPs), bytes: own, take: take})
			}
		}
		// Raise the rates of all that flow until each is stopped.
		left := make([]float64, len(p.Resources))
		for k, r := range p.Resources {
			left[k] = float64(r.BytesPerSecond)
		}
		var rising []*flow
		for _, f := range flows {
			f.rate = 0
			if f.begin <= now+eps {
				rising = append(rising, f)
			}
		}
		for len(rising) > 0 {
			step := math.Inf(1)
			sum := make([]float64, len(left))
			for k := range left {
				for _, f := range rising {
					sum[k] += f.take[k]
				}
				if sum[k] > 0 {
					step = min(step, left[k]/sum[k])
				}
			}
			for _, f := range rising {
				f.rate += step
			}
			full := make([]bool, len(left))
			for k := range left {
				full[k] = sum[k] > 0 && left[k]/sum[k] <= step*(1+1e-12)
				left[k] -= step * sum[k]
			}
			rising = slices.DeleteFunc(rising, func(f *flow) bool {
				for k := range full {
					if full[k] && f.take[k] > 0 {
						return true
					}
				}
				return false
			})
		}
		// The next event.
		next := math.Inf(1)
		for i := range n {
			if end[i] > now && !math.IsInf(end[i], 1) {
				next = min(next, end[i])
			}
		}
		for _, f := range flows {
			if f.begin > now+eps {
				next = min(next, f.begin)
			} else if f.rate > 0 {
				next = min(next, now+f.bytes/f.rate*1e12)
			}
		}
		if math.IsInf(next, 1) {
			return start, end
		}
		for _, f := range flows {
			f.bytes -= f.rate * (next - now) * 1e-12
		}
		now = next
		flows = slices.DeleteFunc(flows, func(f *flow) bool {
			if f.rate > 0 && f.bytes <= f.rate*eps*1e-12 {
				end[f.command] = now
				return true
			}
			return false
		})
	}
}

func TestAgainstNaive(t *testing.T) {
	worst := 0.0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := random(rng, someShape(rng))
		r := run(t, p)
		start, end := naive(p)
		total := slices.Max(end)
		if math.IsInf(total, 1) {
			t.Fatalf("seed %d: the naive simulation did not end", seed)
		}
		for i := range p.Commands {
			d := max(math.Abs(start[i]-float64(r.Start[i])), math.Abs(end[i]-float64(r.End[i])))
			// Times of a few ns at the beginning are compared to a ps or so.
			rel := d / max(end[i], 1e7)
			worst = max(worst, rel)
			if rel > 1e-6 {
				t.Fatalf("seed %d: command %d: %d to %d, naive %.3f to %.3f", seed, i, r.Start[i], r.End[i], start[i], end[i])
			}
		}
	}
	t.Logf("largest relative difference %.2g", worst)
}

// checkTimes verifies a result against the rules of package isa one by one.
func checkTimes(p *isa.Program, r *Result) error {
	free := make([]int64, len(p.Queues))
	for i := range p.Commands {
		c := &p.Commands[i]
		ready := free[c.Queue]
		for _, d := range c.Deps {
			ready = max(ready, r.End[d])
		}
		if r.Start[i] != ready {
			return fmt.Errorf("command %d starts at %d, but could at %d", i, r.Start[i], ready)
		}
		least := c.DurationPs
		for _, u := range c.Uses {
			least = max(least, c.DurationPs+alone(u.Bytes, newDivisor(uint64(p.Resources[u.Resource].BytesPerSecond))))
		}
		if d := r.End[i] - r.Start[i]; d < least || len(c.Uses) == 0 && d != least {
			return fmt.Errorf("command %d takes %d ps, but needs %d", i, d, least)
		}
		free[c.Queue] = r.End[i]
	}
	return nil
}

// naiveTime goes through the stretches in which nothing changes and looks at all
// commands for each.
func naiveTime(p *isa.Program, r *Result, cluster int32) (b Breakdown, kinds [isa.NumKinds]int64) {
	times := slices.Concat([]int64{0}, r.Start, r.End)
	slices.Sort(times)
	for k := 1; k < len(times); k++ {
		var runs [isa.NumKinds]bool
		for i := range p.Commands {
			c := &p.Commands[i]
			if p.Queues[c.Queue].Cluster == cluster && r.Start[i] <= times[k-1] && r.End[i] >= times[k] {
				runs[c.Kind] = true
			}
		}
		d := times[k] - times[k-1]
		for kind, on := range runs {
			if on {
				kinds[kind] += d
			}
		}
		switch {
		case runs[isa.Matrix] || runs[isa.Vector] || runs[isa.Special]:
			b.ComputePs += d
		case runs[isa.DDRLoad] || runs[isa.DDRStore] || runs[isa.L1Load] || runs[isa.L1Store] || runs[isa.Exchange]:
			b.MovePs += d
		case runs[isa.Launch] || runs[isa.Barrier]:
			b.LaunchPs += d
		default:
			b.IdlePs += d
		}
	}
	return b, kinds
}

func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := random(rng, someShape(rng))
		r := run(t, p)
		if err := checkTimes(p, r); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if b := r.Bound; r.TotalPs < b.Ps() || b.ChainPs < b.QueuePs {
			t.Errorf("seed %d: total %d, bound %+v", seed, r.TotalPs, b)
		}
		for q, u := range r.Queues {
			if u.AlonePs > min(u.BusyPs, r.Bound.QueuePs) || q == r.Bound.Queue && u.AlonePs != r.Bound.QueuePs {
				t.Errorf("seed %d: queue %d: %+v, bound %+v", seed, q, u, r.Bound)
			}
		}
		if !reflect.DeepEqual(r, run(t, p)) {
			t.Errorf("seed %d: a second run gives another result", seed)
		}
		for i, c := range r.Clusters {
			if c.Time.TotalPs() != r.TotalPs {
				t.Errorf("seed %d: cluster %d: %+v is not %d in sum", seed, i, c.Time, r.TotalPs)
			}
			if b, kinds := naiveTime(p, r, int32(i)); b != c.Time || kinds != c.KindPs {
				t.Errorf("seed %d: cluster %d: %+v and %v, want %+v and %v", seed, i, c.Time, c.KindPs, b, kinds)
			}
			for k, ps := range c.KindPs {
				if ps > r.TotalPs {
					t.Errorf("seed %d: cluster %d: %v takes %d of %d ps", seed, i, isa.Kind(k), ps, r.TotalPs)
				}
			}
		}
		var bytes int64
		for i, u := range r.Resources {
			bytes += u.Bytes
			if u.Utilization < 0 || u.Utilization > 1 {
				t.Errorf("seed %d: resource %d: utilisation %v", seed, i, u.Utilization)
			}
		}
		for _, c := range p.Commands {
			for _, u := range c.Uses {
				bytes -= u.Bytes
			}
		}
		if bytes != 0 {
			t.Errorf("seed %d: %d bytes too many", seed, bytes)
		}
	}
}

// Twice as fast in all is twice as fast, whatever the contention.
func TestScaling(t *testing.T) {
	var worst float64
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := random(rng, someShape(rng))
		slow := run(t, p)
		for i := range p.Resources {
			p.Resources[i].BytesPerSecond *= 2
		}
		for i := range p.Commands {
			p.Commands[i].DurationPs /= 2 // all are even
		}
		fast := run(t, p)
		d := math.Abs(float64(slow.TotalPs-2*fast.TotalPs)) / float64(len(p.Commands))
		worst = max(worst, d)
		if d > 4 {
			t.Errorf("seed %d: %d ps and %d ps for %d commands", seed, slow.TotalPs, fast.TotalPs, len(p.Commands))
		}
	}
	t.Logf("largest difference %.2g ps per command", worst)
}

// Without contention nothing gets faster by more bytes or slower by more
// bandwidth. (With contention, list scheduling has true anomalies.) A flow whose
// bottleneck takes a fraction of its bytes may be a ps late per command, by the
// rounding of the fraction; the others are exact.
func TestMonotone(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := someShape(rng)
		s.lonely = true
		if seed%3 == 0 {
			s.lonely, s.queues, s.clusters = false, 1, 1
		}
		p := random(rng, s)
		before := run(t, p)
		slack := int64(0)
		if !s.lonely {
			slack = int64(len(p.Commands))
		}
		if before.TotalPs > before.Bound.ChainPs+slack {
			t.Fatalf("seed %d: total %d, chain %d: there is contention", seed, before.TotalPs, before.Bound.ChainPs)
		}
		for range 10 {
			c := &p.Commands[rng.IntN(len(p.Commands))]
			for i := range c.Uses {
				c.Uses[i].Bytes += rng.Int64N(100_000)
			}
			after := run(t, p)
			for i := range after.End {
				if after.End[i] < before.End[i]-slack {
					t.Fatalf("seed %d: more bytes: command %d ends at %d, not %d", seed, i, after.End[i], before.End[i])
				}
			}
			before = after
		}
		p.Resources[rng.IntN(len(p.Resources))].BytesPerSecond *= 2
		after := run(t, p)
		for i := range after.End {
			if after.End[i] > before.End[i]+slack {
				t.Fatalf("seed %d: more bandwidth: command %d ends at %d, not %d", seed, i, after.End[i], before.End[i])
			}
		}
	}
}

// TestFairness lets flows come and go and checks after each change, exactly:
// no resource gives more than it has, and each flow has a bottleneck, that is, a
// resource that could not give one more unit to all its flows and on which no
// other flow is faster.
func TestFairness(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		sh := shape{commands: 300, clusters: 1, queues: 1 + rng.IntN(50), resources: 1 + rng.IntN(20)}
		p := random(rng, sh)
		s := newSharing(p.Resources, sh.queues)
		known := make([]uint64, sh.queues) // rates, as far as solve told
		for _, c := range p.Commands {
			q := c.Queue
			if s.flowing(q) {
				s.remove(q)
				known[q] = 0
			} else {
				if err := checkShares(s, q, c.Uses, begin(s, q, c.Uses)); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if rng.IntN(3) == 0 {
				continue // several changes at once
			}
			for _, q := range s.solve() {
				known[q] = s.rate[q]
			}
			if !slices.Equal(known, s.rate) {
				t.Fatalf("seed %d: rates changed unnoticed", seed)
			}
			if err := checkFair(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			// All from the start gives the same rates as one component.
			all := forgetful(s, p.Resources)
			all.solve()
			if !slices.Equal(all.rate, s.rate) {
				t.Fatalf("seed %d: rates %v, from the start %v", seed, s.rate, all.rate)
			}
		}
	}
}

// Rates of sets of flows that come again are those that are found anew, also where flows have more
// lists of shares than are remembered.
func TestKnownRates(t *testing.T) {
	for _, kinds := range []int{2, maxLists + 2} {
		rng := rand.New(rand.NewPCG(7, uint64(kinds)))
		p := random(rng, shape{commands: 2000, clusters: 1, queues: 4, resources: 5})
		s := newSharing(p.Resources, 4)
		uses := make([][][]isa.Use, 4)
		for _, c := range p.Commands {
			if len(uses[c.Queue]) < kinds && len(c.Uses) > 0 {
				uses[c.Queue] = append(uses[c.Queue], c.Uses)
			}
		}
		for range 20_000 {
			q := int32(rng.IntN(4))
			if s.flowing(q) {
				s.remove(q)
			} else {
				n := 2 // most often
				if rng.IntN(20) == 0 {
					n = len(uses[q])
				}
				begin(s, q, uses[q][rng.IntN(n)])
			}
			s.solve()
			fresh := forgetful(s, p.Resources)
			fresh.solve()
			if !slices.Equal(fresh.rate, s.rate) {
				t.Fatalf("rates %v, anew %v", s.rate, fresh.rate)
			}
		}
		if s.known.found < 10_000 || kinds > maxLists &&
			!slices.ContainsFunc(s.known.lists, func(l []list) bool { return len(l) == maxLists }) {
			t.Errorf("%d of %d sets were found, of %d lists", s.known.found, s.known.asked, s.known.numbers)
		}
	}
}

// Rates that are found cluster by cluster are those of all flows at once: where clusters share one resource, which
// may be the bottleneck or not, where they come to share it or another one later, and where they share nothing.
func TestRatesByDomains(t *testing.T) {
	byDomains, together, merged := 0, 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		const domains, each, local = 4, 4, 3
		resources := []isa.Resource{{Name: "ddr", BytesPerSecond: 1 + rng.Int64N(100*giga)>>(seed%2*5)}}
		for range domains * local {
			resources = append(resources, isa.Resource{BytesPerSecond: 1 + rng.Int64N(100*giga)})
		}
		shared := 1 + rng.IntN(3) // of three flows, so many use the DDR
		foreign := seed%4 == 3    // a resource of another cluster is used, too
		uses := func(slot int32, late bool) (list []isa.Use) {
			bytes := 1 + rng.Int64N(1000)
			if rng.IntN(3) < shared && seed%5 > 0 && (late || slot < each) {
				list = append(list, isa.Use{Resource: 0, Bytes: bytes})
			}
			for _, r := range rng.Perm(local)[:1+rng.IntN(local)] {
				list = append(list, isa.Use{Resource: 1 + slot/each*local + int32(r), Bytes: bytes << rng.IntN(3)})
			}
			if foreign && late && rng.IntN(20) == 0 {
				list = append(list, isa.Use{Resource: 1, Bytes: bytes})
			}
			return list
		}
		s := newSharing(resources, domains*each)
		for slot := range s.known.of {
			s.known.of[slot] = int32(slot / each)
		}
		s.known.divide(domains)
		ways := make([][]isa.Use, 3*domains*each)
		for i := range ways {
			ways[i] = uses(int32(i%(domains*each)), false)
		}
		for step := range 2000 {
			if step == 500 {
				for i := range ways {
					ways[i] = uses(int32(i%(domains*each)), true)
				}
			}
			slot := int32(rng.IntN(domains * each))
			if s.flowing(slot) {
				s.remove(slot)
			} else {
				begin(s, slot, ways[int(slot)+domains*each*rng.IntN(3)])
			}
			if rng.IntN(4) == 0 {
				continue // several changes at once
			}
			before := slices.Clone(s.rate)
			for _, q := range s.solve() {
				if before[q] == s.rate[q] {
					t.Fatalf("seed %d, step %d: the rate of slot %d has not changed", seed, step, q)
				}
				before[q] = s.rate[q]
			}
			fresh := forgetful(s, resources)
			fresh.solve()
			if !slices.Equal(before, s.rate) || !slices.Equal(fresh.rate, s.rate) {
				t.Fatalf("seed %d, step %d: rates %v, told %v, anew %v", seed, step, s.rate, before, fresh.rate)
			}
			if s.level > 0 {
				byDomains++
			} else if s.common != none && s.sum[s.common] > 0 {
				together++
			}
		}
		if len(s.known.domains) == 1 {
			merged++
		}
	}
	if byDomains < 10_000 || together < 10_000 || merged < 5 {
		t.Errorf("%d solves by domains, %d of all together, %d times clusters shared more than one resource",
			byDomains, together, merged)
	}
}

// Sets of as many flows and the same hash are told apart, also by slots that have flowed before.
func TestSameHash(t *testing.T) {
	k := newKnown(1360)
	k.asked = setsBefore
	rates := make([]uint64, 1360)
	var hash uint64
	for i, set := range [][]int32{{270, 575}, {1054, 1359}} {
		for _, n := range set {
			k.begin(n, n)
		}
		d := &k.domains[0]
		if i > 0 && d.hash != hash {
			t.Fatalf("hashes %x and %x: the sets are of no use here", hash, d.hash)
		}
		hash = d.hash
		if members, ok := k.find(d, 0); ok {
			t.Errorf("flows %v are taken for %v", set, members)
		}
		k.keep(d, 0, rates)
		if members, ok := k.find(d, 0); !ok || len(members) != 2 || members[0].slot != set[0] {
			t.Errorf("flows %v: found %v, %v", set, members, ok)
		}
		for _, n := range set {
			k.end(n)
		}
	}
}

// begin lets a slot flow, if it moves anything, and returns its own bytes.
func begin(s *sharing, slot int32, uses []isa.Use) int64 {
	f, _ := s.flow(slot, uses)
	if f.own > 0 {
		s.add(slot, f)
	}
	return f.own
}

// forgetful has the flows of another and remembers no rates.
func forgetful(of *sharing, resources []isa.Resource) *sharing {
	s := newSharing(resources, len(of.flows))
	s.known.asked = setsAtFirst
	for f := range int32(len(of.flows)) {
		if of.flowing(f) {
			begin(s, f, of.last[f].uses)
		}
	}
	return s
}

// checkShares verifies that a flow that moves its own bytes takes all the bytes
// of its uses, and hardly more.
func checkShares(s *sharing, slot int32, uses []isa.Use, own int64) error {
	want := map[int32]int64{}
	for _, u := range uses {
		if u.Bytes > 0 {
			want[u.Resource] += u.Bytes
		}
	}
	most, shares := int64(0), s.flows[slot].shares
	if own == 0 {
		shares = nil // nothing flows
	}
	for _, x := range shares {
		most = max(most, want[x.resource])
		hi, lo := bits.Mul64(x.coef, uint64(own))
		least, leastLo := bits.Mul64(uint64(want[x.resource]), 1<<coefBits)
		excess, borrow := bits.Sub64(lo, leastLo, 0)
		if hi-borrow != least || excess >= uint64(own) {
			return fmt.Errorf("slot %d: coefficient %d of resource %d for %d of %d bytes", slot, x.coef, x.resource,
				want[x.resource], own)
		}
	}
	if most != own || len(shares) != len(want) {
		return fmt.Errorf("slot %d: %d shares and %d own bytes for %v", slot, len(shares), own, uses)
	}
	return nil
}

// Two resources whose levels are the same but for a fraction of a unit: the rates
// depend on which freezes its flows first, and so must not on the order in which
// the flows came.
func TestRoundingDoesNotDependOnOrder(t *testing.T) {
	resources := []isa.Resource{{Name: "x", BytesPerSecond: 1}, {Name: "y", BytesPerSecond: 1},
		{Name: "wide", BytesPerSecond: giga}}
	flows := [][]isa.Use{
		{{Resource: 0, Bytes: 1000}, {Resource: 1, Bytes: 1000}},
		{{Resource: 0, Bytes: 1000}},
		{{Resource: 0, Bytes: 1000}}, // x: 4096/3 = 1365.33 units
		{{Resource: 1, Bytes: 1000}},
		{{Resource: 2, Bytes: 80_000}, {Resource: 1, Bytes: 79_900}}, // y: 4096/2.99875 = 1365.90 units
	}
	rates := func(order ...int32) []uint64 {
		s := newSharing(resources, len(flows))
		for _, f := range order {
			begin(s, f, flows[f])
		}
		s.solve()
		return s.rate
	}
	want := []uint64{1365, 1365, 1365, 1366, 1366}
	for _, order := range [][]int32{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {1, 4, 0, 2, 3}, {3, 0, 1, 4, 2}} {
		if got := rates(order...); !slices.Equal(got, want) {
			t.Errorf("order %v: rates %v, want %v", order, got, want)
		}
	}
}

func checkFair(s *sharing) error {
	n := len(s.capacity)
	saturated := make([]bool, n)
	fastest := make([]uint64, n)
	for r := range n {
		var hi, lo, sum uint64 // what is taken
		for f := range s.flows {
			if s.users[r][f/64]>>(f%64)&1 == 0 {
				continue
			}
			for _, x := range s.flows[f].shares {
				if int(x.resource) == r {
					h, l := bits.Mul64(x.coef, s.rate[f])
					var carry uint64
					lo, carry = bits.Add64(lo, l, 0)
					hi += h + carry
					sum += x.coef
				}
			}
			fastest[r] = max(fastest[r], s.rate[f])
		}
		h, l := bits.Mul64(s.capacity[r], 1<<coefBits)
		l, borrow := bits.Sub64(l, lo, 0)
		h, borrow = bits.Sub64(h, hi, borrow)
		if borrow != 0 {
			return fmt.Errorf("resource %d gives more than it has", r)
		}
		if sum != s.sum[r] {
			return fmt.Errorf("resource %d: sum %d, recorded %d", r, sum, s.sum[r])
		}
		saturated[r] = h == 0 && l < sum
	}
	for f := range s.flows {
		ok := !s.flowing(int32(f))
		for _, x := range s.flows[f].shares {
			ok = ok || saturated[x.resource] && s.rate[f] == fastest[x.resource]
		}
		if !ok {
			return fmt.Errorf("flow %d at %d has no bottleneck", f, s.rate[f])
		}
	}
	return nil
}
