package sim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// decode makes a program of any bytes: a few queues and resources, and commands
// until the bytes run out. Numbers may be as large as the type allows.
func decode(data []byte) *isa.Program {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	number := func() int64 { // any size, with a short mantissa
		m, e := next(), next()
		return int64(m)<<(e%56) - int64(e>>7&min(m, 1))
	}
	p := &isa.Program{Name: "fuzz", Clusters: 1 + next()%3, Labels: []string{""}, PeakMACsPerSecond: 1}
	p.Capacity[isa.L1] = number()
	for range next() % 5 {
		p.Resources = append(p.Resources, isa.Resource{BytesPerSecond: 1 + number()})
	}
	for range 1 + next()%7 {
		p.Queues = append(p.Queues, isa.Queue{Cluster: int32(next() % p.Clusters)})
	}
	for len(data) > 0 && len(p.Commands) < 60 {
		i := len(p.Commands)
		c := isa.Command{
			Kind: isa.Kind(next() % int(isa.NumKinds)), Queue: int32(next() % len(p.Queues)),
			Iteration: int32(next() & 1), WriteLevel: isa.Level(next() % int(isa.NumLevels)),
		}
		shape := next()
		if shape&1 > 0 {
			c.DurationPs = number()
		}
		if shape&2 > 0 {
			c.MACs, c.VectorOps, c.Bytes = number(), number(), number()
		}
		for range min(i, shape>>2&3) {
			c.Deps = append(c.Deps, int32(i-1-next()%i))
		}
		if c.Kind.IsMove() && len(p.Resources) > 0 {
			for range shape >> 4 & 7 {
				c.Uses = append(c.Uses, isa.Use{Resource: int32(next() % len(p.Resources)), Bytes: number()})
			}
		}
		if shape&128 > 0 {
			b := isa.Buffer{
				Level: isa.L1 + isa.Level(next()%3), Cluster: int32(next() % p.Clusters),
				Address: number(), Bytes: number(), First: int32(i),
			}
			for range next() % 3 {
				b.Lasts = append(b.Lasts, int32(next()%(i+1)))
			}
			p.Buffers = append(p.Buffers, b)
		}
		p.Commands = append(p.Commands, c)
	}
	return p
}

// Any program either runs by the rules or is refused with a reason, whatever the
// size of its numbers.
func FuzzRun(f *testing.F) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		data := make([]byte, 30*(seed+1))
		for i := range data {
			data[i] = byte(rng.Uint32())
			if seed%2 == 0 {
				data[i] &= 0x9f // smaller exponents
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := decode(data)
		if err := p.Check(); err != nil {
			t.Skip(err)
		}
		r, err := Run(context.Background(), p, Options{})
		if err != nil {
			var limit *LimitError
			if !errors.As(err, &limit) {
				t.Fatalf("a %T: %v", err, err)
			}
			return
		}
		if err := checkTimes(p, r); err != nil {
			t.Fatal(err)
		}
		if r.TotalPs < r.Bound.Ps() {
			t.Fatalf("total %d, bound %+v", r.TotalPs, r.Bound)
		}
		for i, c := range r.Clusters {
			if c.Time.TotalPs() != r.TotalPs {
				t.Fatalf("cluster %d: %+v is not %d in sum", i, c.Time, r.TotalPs)
			}
		}
		overlap := false
		for i := range p.Buffers {
			for j := range i {
				a, b := &p.Buffers[i], &p.Buffers[j]
				if a.Address > math.MaxInt64-a.Bytes || b.Address > math.MaxInt64-b.Bytes {
					continue // beyond any capacity
				}
				overlap = overlap || overlaps(r, a, b)
			}
		}
		err = CheckBuffers(p, r)
		var o *OverlapError
		var c *CapacityError
		if overlap != errors.As(err, &o) && !errors.As(err, &c) {
			t.Fatalf("overlap %v, error %v", overlap, err)
		}
		if again := run(t, p); !reflect.DeepEqual(r, again) {
			t.Fatal("a second run gives another result")
		}
	})
}
