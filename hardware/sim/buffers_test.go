package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// steps is a program of n commands of 10 ps, one after the other.
func steps(clusters, n int) *isa.Program {
	p := newProgram(clusters)
	p.Labels = []string{"x", "y", "z"}
	for range n {
		p.compute("mme", 10)
	}
	return &p.Program
}

func TestCheckBuffers(t *testing.T) {
	tests := []struct {
		name    string
		buffers []isa.Buffer
		want    string // of the error, "" for none
	}{
		{"none", nil, ""},
		{"apart in address", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10, First: 0, Lasts: []int32{2}},
			{Level: isa.L1, Address: 10, Bytes: 10, First: 0, Lasts: []int32{2}},
		}, ""},
		{"one after the other", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10, First: 0, Lasts: []int32{1}},
			{Level: isa.L1, Address: 0, Bytes: 10, First: 2, Lasts: []int32{2}},
		}, ""},
		{"listed in another order than in time", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10, First: 2, Lasts: []int32{2}},
			{Level: isa.L1, Address: 0, Bytes: 10, First: 0, Lasts: []int32{1}},
		}, ""},
		{"other level, other cluster", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10},
			{Level: isa.LLB, Address: 0, Bytes: 10},
			{Level: isa.L1, Cluster: 1, Address: 0, Bytes: 10},
		}, ""},
		{"the same twice", []isa.Buffer{
			{Level: isa.L1, Label: 1, Address: 4, Bytes: 10},
			{Level: isa.L1, Label: 2, Address: 4, Bytes: 10},
		},
			`program "test": L1 of cluster 0: buffer 1 (z) at [4, 14) from 0 to 10 ps overlaps buffer 0 (y) at [4, 14) from 0 to 10 ps`},
		{"one byte, one command", []isa.Buffer{
			{Level: isa.LLB, Cluster: 1, Label: 1, Address: 9, Bytes: 10, First: 1, Lasts: []int32{1}},
			{Level: isa.LLB, Cluster: 1, Label: 0, Address: 0, Bytes: 10, First: 0, Lasts: []int32{0, 1}},
		},
			`program "test": LLB of cluster 1: buffer 0 (y) at [9, 19) from 10 to 20 ps overlaps buffer 1 (x) at [0, 10) from 0 to 20 ps`},
		{"inside a larger one", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 100, Lasts: []int32{2}},
			{Level: isa.L1, Address: 50, Bytes: 1, First: 1},
		}, "buffer 1 (x) at [50, 51) from 10 to 20 ps overlaps buffer 0"},
		{"around a smaller one", []isa.Buffer{
			{Level: isa.L1, Address: 50, Bytes: 1, Lasts: []int32{2}},
			{Level: isa.L1, Address: 0, Bytes: 100, First: 1},
		}, "buffer 1 (x) at [0, 100) from 10 to 20 ps overlaps buffer 0"},
		{"the last of the lasts counts", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10, Lasts: []int32{2, 1}},
			{Level: isa.L1, Address: 0, Bytes: 10, First: 2},
		}, "from 20 to 30 ps overlaps buffer 0 (x) at [0, 10) from 0 to 30 ps"},
		{"no bytes or no time", []isa.Buffer{
			{Level: isa.L1, Address: 0, Bytes: 10, Lasts: []int32{2}},
			{Level: isa.L1, Address: 5, Bytes: 0, Lasts: []int32{2}},
			{Level: isa.L1, Address: 5, Bytes: 5, First: 3, Lasts: []int32{3}},
		}, ""},
		{"full", []isa.Buffer{{Level: isa.L1, Address: 90, Bytes: 10}}, ""},
		{"too large", []isa.Buffer{
			{Level: isa.LLB, Address: 90, Bytes: 100},
			{Level: isa.L1, Label: 2, Address: 91, Bytes: 10, First: 1, Lasts: []int32{2}},
		},
			`program "test": L1 of cluster 0: buffer 1 (z) at [91, 101) from 10 to 30 ps passes the capacity of 100 by 1 bytes`},
		{"larger than any", []isa.Buffer{{Level: isa.LLB, Address: 1, Bytes: math.MaxInt64}}, "by 1 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := steps(2, 3)
			p.Commands = append(p.Commands, isa.Command{})
			p.Capacity[isa.L1] = 100
			p.Buffers = test.buffers
			err := CheckBuffers(p, run(t, p))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if test.want == "" && err != nil || !strings.Contains(got, test.want) {
				t.Errorf("error %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckBuffersErrors(t *testing.T) {
	p := steps(1, 2)
	p.Buffers = []isa.Buffer{{Level: isa.L1, Bytes: 8, Lasts: []int32{1}}, {Level: isa.L1, Address: 4, Bytes: 8, First: 1}}
	r := run(t, p)
	var overlap *OverlapError
	if err := CheckBuffers(p, r); !errors.As(err, &overlap) {
		t.Fatal(err)
	}
	want := OverlapError{"test", isa.L1, 0, BufferUse{0, "x", 0, 8, 0, 20}, BufferUse{1, "x", 4, 8, 10, 20}}
	if *overlap != want {
		t.Errorf("%+v, want %+v", *overlap, want)
	}
	p.Capacity[isa.L1] = 5
	var capacity *CapacityError
	if err := CheckBuffers(p, r); !errors.As(err, &capacity) {
		t.Fatal(err)
	}
	if want := (CapacityError{"test", isa.L1, 0, 5, BufferUse{0, "x", 0, 8, 0, 20}, 3}); *capacity != want {
		t.Errorf("%+v, want %+v", *capacity, want)
	}
	defer func() {
		if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "sim: ") {
			t.Errorf("panic %v", s)
		}
	}()
	CheckBuffers(steps(1, 3), r)
}

// randomBuffers fills the memories of p by first fit in the order of commands, so
// that nothing overlaps if the times are those of r.
func randomBuffers(rng *rand.Rand, p *isa.Program, r *Result, n int) {
	for len(p.Buffers) < n {
		i := rng.IntN(len(p.Commands))
		b := isa.Buffer{
			Level: isa.L1 + isa.Level(rng.IntN(2)), Cluster: rng.Int32N(int32(p.Clusters)),
			Bytes: rng.Int64N(100), First: int32(i),
		}
		for range rng.IntN(3) {
			b.Lasts = append(b.Lasts, int32(min(len(p.Commands)-1, i+rng.IntN(8))))
		}
		for j := 0; j < len(p.Buffers); {
			if overlaps(r, &b, &p.Buffers[j]) {
				b.Address = p.Buffers[j].Address + p.Buffers[j].Bytes
				j = 0
				continue
			}
			j++
		}
		p.Buffers = append(p.Buffers, b)
	}
	rng.Shuffle(n, func(i, j int) { p.Buffers[i], p.Buffers[j] = p.Buffers[j], p.Buffers[i] })
}

func overlaps(r *Result, a, b *isa.Buffer) bool {
	af, at := r.Lifetime(a)
	bf, bt := r.Lifetime(b)
	return a.Level == b.Level && a.Cluster == b.Cluster &&
		max(af, bf) < min(at, bt) && max(a.Address, b.Address) < min(a.Address+a.Bytes, b.Address+b.Bytes)
}

func TestCheckBuffersRandom(t *testing.T) {
	caught := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := random(rng, someShape(rng))
		r := run(t, p)
		randomBuffers(rng, p, r, 1+rng.IntN(150))
		if err := CheckBuffers(p, r); err != nil {
			t.Fatalf("seed %d: clean, but %v", seed, err)
		}
		// Now move some somewhere else and let all pairs decide.
		for range 1 + rng.IntN(3) {
			p.Buffers[rng.IntN(len(p.Buffers))].Address = rng.Int64N(300)
		}
		want := false
		for i := range p.Buffers {
			for j := range i {
				want = want || overlaps(r, &p.Buffers[i], &p.Buffers[j])
			}
		}
		err := CheckBuffers(p, r)
		var o *OverlapError
		if errors.As(err, &o) {
			caught++
			if !overlaps(r, &p.Buffers[o.A.Index], &p.Buffers[o.B.Index]) {
				t.Errorf("seed %d: %v, but they do not", seed, err)
			}
		}
		if want != (err != nil) {
			t.Errorf("seed %d: overlap %v, error %v", seed, want, err)
		}
		// The occupancy, at the ends and in the middle of each step.
		r = run(t, p)
		for c := range r.Clusters {
			for level := range isa.NumLevels {
				checkOccupancy(t, p, r, c, level)
			}
		}
	}
	if caught < 50 {
		t.Errorf("only %d programs had overlaps", caught)
	}
}

func checkOccupancy(t *testing.T, p *isa.Program, r *Result, cluster int, level isa.Level) {
	t.Helper()
	o := &r.Clusters[cluster].Memory[level]
	held := func(ps int64) (sum int64) {
		for i := range p.Buffers {
			b := &p.Buffers[i]
			from, to := r.Lifetime(b)
			if b.Level == level && int(b.Cluster) == cluster && from <= ps && ps < to {
				sum += b.Bytes
			}
		}
		return sum
	}
	var peak int64
	var area float64
	for i, s := range o.Steps {
		next := r.TotalPs
		if i+1 < len(o.Steps) {
			next = o.Steps[i+1].Ps
			if next <= s.Ps || o.Steps[i+1].Bytes == s.Bytes {
				t.Fatalf("step %d and the next: %v, %v", i, s, o.Steps[i+1])
			}
		}
		for _, ps := range []int64{s.Ps, (s.Ps + next) / 2, next - 1} {
			if ps < s.Ps {
				continue
			}
			if h := held(ps); h != s.Bytes || o.At(ps) != h {
				t.Fatalf("at %d ps: %d and %d bytes, want %d", ps, s.Bytes, o.At(ps), h)
			}
		}
		peak = max(peak, s.Bytes)
		area += float64(s.Bytes) * float64(next-s.Ps)
	}
	if o.PeakBytes != peak {
		t.Fatalf("peak %d, want %d", o.PeakBytes, peak)
	}
	if mean := area / max(1, float64(r.TotalPs)); math.Abs(o.MeanBytes-mean) > 1e-9*mean {
		t.Fatalf("mean %v, want %v", o.MeanBytes, mean)
	}
}

func TestRankSet(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 4096, 4097, 300_000} {
		rng := rand.New(rand.NewPCG(uint64(n), 7))
		s := newRankSet(n)
		in := make([]bool, n)
		for range 300 {
			k := rng.IntN(n)
			if in[k] {
				s.remove(k)
			} else {
				s.add(k)
			}
			in[k] = !in[k]
			k = rng.IntN(n)
			before, after := k-1, k+1
			for before >= 0 && !in[before] {
				before--
			}
			for after < n && !in[after] {
				after++
			}
			if after == n {
				after = -1
			}
			if got := [2]int{s.before(k), s.after(k)}; got != [2]int{before, after} {
				t.Fatalf("n %d: neighbours of %d: %v, want %d and %d", n, k, got, before, after)
			}
		}
	}
}

func TestResultOfTheSameBuffersIsTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	p := random(rng, someShape(rng))
	randomBuffers(rng, p, run(t, p), 50)
	if !reflect.DeepEqual(run(t, p), run(t, p)) {
		t.Error("two runs differ")
	}
}
