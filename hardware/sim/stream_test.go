package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// streamed runs a program in parts of random lengths.
func streamed(p *isa.Program, ahead int, rng *rand.Rand) (*Result, error) {
	ctx := context.Background()
	head := *p
	head.Commands, head.Buffers = nil, nil
	s, err := NewStream(&head, ahead, Options{})
	if err != nil {
		return nil, err
	}
	part := make([]isa.Command, 0, len(p.Commands))
	for i := 0; i < len(p.Commands); {
		n := min(1+rng.IntN(20), len(p.Commands)-i)
		part = append(part[:0], p.Commands[i:i+n]...)
		if err := s.Feed(ctx, part); err != nil {
			return nil, err
		}
		for k := range part {
			part[k] = isa.Command{} // nothing of it is kept
		}
		i += n
	}
	head.Buffers = p.Buffers
	return s.End(ctx)
}

// A stream gives what a run of the whole program gives, or says that it knew too little.
func TestStream(t *testing.T) {
	late, equal, overlaps := 0, 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := random(rng, shape{commands: 1 + rng.IntN(3000), clusters: 1, queues: 1 + rng.IntN(8),
			resources: 1 + rng.IntN(5), deps: 3})
		want := run(t, p)
		wrong := CheckBuffers(p, want)
		want.Start, want.End = nil, nil
		for ahead := 1; ; ahead *= 4 {
			got, err := streamed(p, ahead, rng)
			var before *LateError
			if errors.As(err, &before) && ahead < len(p.Commands) {
				if before.ShouldPs >= before.Ps {
					t.Fatalf("seed %d: %v", seed, before)
				}
				late++
				continue
			}
			if !reflect.DeepEqual(err, wrong) {
				t.Fatalf("seed %d: %v, want %v", seed, err, wrong)
			}
			if wrong != nil {
				overlaps++
			} else if equal++; !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %d ahead:\n%+v\nwant\n%+v", seed, ahead, got, want)
			}
			break
		}
	}
	if late < 50 || equal < 50 {
		t.Errorf("%d times late, %d equal, %d overlaps", late, equal, overlaps)
	}
	p := pipeline(1, 200_000)
	want := run(t, p)
	want.Start, want.End = nil, nil
	if got, err := streamed(p, 1000, rand.New(rand.NewPCG(1, 1))); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("of 200 000 commands a thousand known ahead: %v", err)
	}
}

func TestStreamRefuses(t *testing.T) {
	ctx := context.Background()
	p := &isa.Program{Clusters: 1, Labels: []string{""}, Queues: []isa.Queue{{}},
		Resources: []isa.Resource{{BytesPerSecond: giga}}}
	feed := func(c isa.Command) error {
		s, err := NewStream(p, 1, Options{})
		if err != nil {
			return err
		}
		return s.Feed(ctx, []isa.Command{c})
	}
	var problem *isa.ProblemError
	if err := feed(isa.Command{Queue: 1}); !errors.As(err, &problem) || problem.Index != 0 {
		t.Errorf("a command of no queue: %v", err)
	}
	var limit *LimitError
	if err := feed(isa.Command{Kind: isa.DDRLoad, Uses: []isa.Use{{Bytes: 1 << 60}}}); !errors.As(err, &limit) ||
		limit.Index != 0 {
		t.Errorf("2^60 bytes: %v", err)
	}
	if err := feed(isa.Command{Kind: isa.DDRLoad, Uses: make([]isa.Use, 1<<16)}); !errors.As(err, &limit) {
		t.Errorf("65536 uses: %v", err)
	}
	p.Queues[0].Cluster = 1
	if err := feed(isa.Command{}); !errors.As(err, &problem) {
		t.Errorf("a queue of no cluster: %v", err)
	}
}

// What has not come begins no earlier than Past says, in queues that have had a command.
func TestPast(t *testing.T) {
	past := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := random(rng, shape{commands: 1 + rng.IntN(300), clusters: 1, queues: 1 + rng.IntN(5),
			resources: 1 + rng.IntN(5), deps: 3})
		want := run(t, p)
		head := *p
		head.Commands, head.Buffers = nil, nil
		s, err := NewStream(&head, 1+rng.IntN(20), Options{TimesOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		known := map[int32]bool{}
		for i := range p.Commands {
			if err := s.Feed(context.Background(), p.Commands[i:i+1]); err != nil {
				break // it knew too little
			}
			known[p.Commands[i].Queue] = true
			now := s.e.now
			if now == 0 || !s.Past(now) {
				continue
			}
			past++
			for j := i + 1; j < len(p.Commands); j++ {
				if known[p.Commands[j].Queue] && want.Start[j] < now {
					t.Fatalf("seed %d: command %d begins at %d, after command %d all should begin at %d or later", seed, j,
						want.Start[j], i, now)
				}
			}
		}
	}
	if past < 100 {
		t.Errorf("found %d moments that are past, expected 100 at least", past)
	}
}
