package sim

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// copied puts copies of a program of one cluster behind it. The first resources are
// shared by all, the others each cluster has for itself.
func copied(p *isa.Program, clusters, shared int) *isa.Program {
	q := *p
	q.Clusters = clusters
	n, own := int32(len(p.Commands)), int32(len(p.Resources)-shared)
	for k := int32(1); k < int32(clusters); k++ {
		q.Resources = append(q.Resources, p.Resources[shared:]...)
		for _, x := range p.Queues {
			x.Cluster = k
			q.Queues = append(q.Queues, x)
		}
		for _, c := range p.Commands {
			c.Queue += k * int32(len(p.Queues))
			c.Deps, c.Uses = slices.Clone(c.Deps), slices.Clone(c.Uses)
			for i := range c.Deps {
				c.Deps[i] += k * n
			}
			for i := range c.Uses {
				if c.Uses[i].Resource >= int32(shared) {
					c.Uses[i].Resource += k * own
				}
			}
			q.Commands = append(q.Commands, c)
		}
		for _, b := range p.Buffers {
			b.Cluster = k
			b.First += k * n
			b.Lasts = slices.Clone(b.Lasts)
			for i := range b.Lasts {
				b.Lasts[i] += k * n
			}
			q.Buffers = append(q.Buffers, b)
		}
	}
	return &q
}

// both runs a program with and without folding; the results must be the same to the
// last picosecond.
func both(t *testing.T, p *isa.Program) (folded, full *Result) {
	t.Helper()
	folded = run(t, p)
	full, err := Run(context.Background(), p, Options{OnCommand: func(int, int64, int64) {}})
	if err != nil {
		t.Fatal(err)
	}
	return folded, full
}

func TestFoldChangesNothing(t *testing.T) {
	folds := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := shape{commands: 1 + rng.IntN(150), clusters: 1, queues: 1 + rng.IntN(8), resources: 2 + rng.IntN(4), deps: 3}
		p := random(rng, s)
		shared := 1 + rng.IntN(s.resources-1)
		clusters := 2 + rng.IntN(4)
		q := copied(p, clusters, shared)
		if seed%3 == 0 {
			// A cluster that does something else, in the way of the others.
			other := *random(rng, s)
			k, n, first, queues := int32(clusters), int32(len(q.Commands)), int32(len(q.Resources)), int32(len(q.Queues))
			q.Resources = append(q.Resources, other.Resources[shared:]...)
			q.Queues = append(q.Queues, other.Queues...)
			for i := range other.Queues {
				q.Queues[int(queues)+i].Cluster = k
			}
			for _, c := range other.Commands {
				c.Queue += queues
				for i := range c.Deps {
					c.Deps[i] += n
				}
				for i := range c.Uses {
					if c.Uses[i].Resource >= int32(shared) {
						c.Uses[i].Resource += first - int32(shared)
					}
				}
				q.Commands = append(q.Commands, c)
			}
			q.Clusters++
		}
		for i := range 20 {
			if len(p.Commands) < 3 {
				break
			}
			b := isa.Buffer{Level: isa.L1, Address: int64(100 * i), Bytes: rng.Int64N(100),
				First: rng.Int32N(int32(len(p.Commands)))}
			b.Lasts = []int32{b.First}
			p.Buffers = append(p.Buffers, b)
		}
		q.Buffers = copied(p, clusters, shared).Buffers
		folded, full := both(t, q)
		if !reflect.DeepEqual(folded, full) {
			t.Fatalf("seed %d: %d clusters: folded %d ps, full %d ps", seed, clusters, folded.TotalPs, full.TotalPs)
		}
		if got := foldClusters(q).as[1]; got == 0 {
			folds++
		}
		if err := CheckBuffers(q, folded); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	// A resource that is to be shared may have no user before one that is not.
	if folds < 200 {
		t.Errorf("only %d of 300 programs were folded", folds)
	}
}

func TestFoldOnlyWhatIsAlike(t *testing.T) {
	base := func() *isa.Program {
		p := &isa.Program{Name: "fold", Clusters: 1, Labels: []string{"a"},
			Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 10 * giga}, {Name: "port", BytesPerSecond: 4 * giga},
				{Name: "gb", BytesPerSecond: 4 * giga}},
			Queues: []isa.Queue{{Name: "dma"}, {Name: "mme"}}}
		p.Commands = []isa.Command{
			{Kind: isa.DDRLoad, Queue: 0, Bytes: 1000, Uses: []isa.Use{{Resource: 0, Bytes: 1000}, {Resource: 1, Bytes: 1000}}},
			{Kind: isa.Matrix, Queue: 1, DurationPs: 1000, Deps: []int32{0}},
			{Kind: isa.L1Load, Queue: 0, Bytes: 10, Uses: []isa.Use{{Resource: 2, Bytes: 10}}, Deps: []int32{1}},
		}
		return copied(p, 3, 1)
	}
	for _, c := range []struct {
		name   string
		change func(p *isa.Program)
		want   []int32
	}{
		{"nothing", func(*isa.Program) {}, []int32{0, 0, 0}},
		{"a duration", func(p *isa.Program) { p.Commands[4].DurationPs++ }, []int32{0, 1, 0}},
		{"a kind", func(p *isa.Program) { p.Commands[7].Kind = isa.Vector }, []int32{0, 0, 2}},
		{"a dependency", func(p *isa.Program) { p.Commands[4].Deps = nil }, []int32{0, 1, 0}},
		{"one across clusters", func(p *isa.Program) { p.Commands[8].Deps[0] = 1 }, []int32{0, 1, 2}},
		{"a size", func(p *isa.Program) { p.Commands[0].Uses[0].Bytes++ }, []int32{0, 1, 1}},
		{"a rate", func(p *isa.Program) { p.Resources[3].BytesPerSecond++ }, []int32{0, 1, 0}},
		{"a queue", func(p *isa.Program) { p.Commands[5].Queue = 3 }, []int32{0, 1, 0}},
		{"a resource for another", func(p *isa.Program) { p.Commands[5].Uses[0].Resource = 3 }, []int32{0, 1, 0}},
		{"a resource shared by two of three", func(p *isa.Program) { p.Commands[5].Uses[0].Resource = 2 }, []int32{0, 1, 2}},
		{"commands that are mixed", func(p *isa.Program) {
			p.Commands[2], p.Commands[3] = p.Commands[3], p.Commands[2]
			p.Commands[4].Deps[0], p.Commands[5].Deps[0] = 2, 4
		}, []int32{0, 1, 2}},
		{"an idle cluster", func(p *isa.Program) { p.Commands = p.Commands[:6] }, []int32{0, 0, 2}},
		{"what is shared behind what is not", func(p *isa.Program) {
			p.Resources[0], p.Resources[1] = p.Resources[1], p.Resources[0]
			for i := range p.Commands {
				for j, u := range p.Commands[i].Uses {
					if u.Resource < 2 {
						p.Commands[i].Uses[j].Resource = 1 - u.Resource
					}
				}
			}
		}, []int32{0, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := base()
			c.change(p)
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			if got := foldClusters(p).as; !slices.Equal(got, c.want) {
				t.Errorf("clusters are as %v, want %v", got, c.want)
			}
			if folded, full := both(t, p); !reflect.DeepEqual(folded, full) {
				t.Errorf("folded and full results differ: %d ps and %d ps", folded.TotalPs, full.TotalPs)
			}
		})
	}
}

// An overlap on several clusters is reported as if each had been looked at.
func TestFoldKeepsTheFirstOverlap(t *testing.T) {
	p := &isa.Program{Name: "overlap", Clusters: 1, Labels: []string{"a"}, Queues: []isa.Queue{{Name: "mme"}}}
	p.Commands = []isa.Command{{Kind: isa.Matrix, DurationPs: 10}, {Kind: isa.Matrix, DurationPs: 10}}
	p.Buffers = []isa.Buffer{
		{Level: isa.L1, Bytes: 10, First: 0, Lasts: []int32{1}},
		{Level: isa.L1, Address: 5, Bytes: 10, First: 1, Lasts: []int32{1}},
	}
	q := copied(p, 3, 0)
	err, ok := CheckBuffers(q, run(t, q)).(*OverlapError)
	if !ok || err.Cluster != 0 || err.A.Index != 0 || err.B.Index != 1 {
		t.Errorf("got %v, want the overlap of buffers 0 and 1", err)
	}
}
