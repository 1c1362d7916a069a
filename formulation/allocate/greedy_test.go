package allocate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func span(lo, hi int64) Interval { return Interval{Lower: lo, Upper: hi} }

func TestPlace(t *testing.T) {
	four := int64(4)
	// Once b and d have ended, 3 bytes are free at 2 and 2 bytes at 6.
	holes := []Buffer{
		{ID: "a", Lifetime: span(0, 9), Size: 2},
		{ID: "b", Lifetime: span(0, 5), Size: 3},
		{ID: "c", Lifetime: span(0, 9), Size: 1},
		{ID: "d", Lifetime: span(0, 5), Size: 2},
		{ID: "e", Lifetime: span(0, 9), Size: 1},
		{ID: "f", Lifetime: span(5, 9), Size: 2},
	}
	for _, c := range []struct {
		name    string
		rule    Rule
		buffers []Buffer
		want    []int64
	}{
		{"the lowest room", firstFit, holes, []int64{0, 2, 5, 6, 8, 2}},
		{"the smallest room", bestFit, holes, []int64{0, 2, 5, 6, 8, 6}},
		{"long ones first", longestLifetime, holes, []int64{0, 4, 2, 7, 3, 4}},
		{"large ones first", largestFirst, holes, []int64{3, 0, 7, 5, 8, 0}},
		{"alignment", firstFit, []Buffer{
			{ID: "a", Lifetime: span(0, 2), Size: 3}, {ID: "b", Lifetime: span(0, 2), Size: 3, Alignment: 4}}, []int64{0, 4}},
		{"fixed ones come first", firstFit, []Buffer{
			{ID: "a", Lifetime: span(0, 2), Size: 5}, {ID: "b", Lifetime: span(1, 2), Size: 3, Offset: &four}}, []int64{7, 4}},
		{"nothing", bestFit, nil, []int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Problem{Buffers: c.buffers}
			got, err := placeAll(context.Background(), p, c.rule)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("found %v, %v, want %v", got, err, c.want)
			}
			if err := Check(p, NoLimit, got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSpillRules(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "long", Lifetime: span(0, 9), Size: 2},
		{ID: "large", Lifetime: span(4, 6), Size: 6},
		{ID: "other", Lifetime: span(4, 8), Size: 3},
		{ID: "giant", Lifetime: span(20, 21), Size: 11},
	}}
	for _, c := range []struct {
		rule spillRule
		want []bool
		cost int64
	}{
		{SpillLongestLifetime, []bool{true, false, false, true}, 26},
		{SpillLargest, []bool{false, true, false, true}, 34},
	} {
		got, err := spillByRule(p, 10, c.rule)
		if err != nil || !reflect.DeepEqual(got, c.want) || SpillCost(p, got) != c.cost {
			t.Errorf("%s: found %v, %v, want %v, %d", c.rule, got, err, c.want, c.cost)
		}
	}
}

// Whatever the rule, the result is right and not below the bound.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		p := &Problem{}
		for i := range 1 + r.IntN(20) {
			lo := r.Int64N(12)
			b := Buffer{ID: fmt.Sprint(i), Lifetime: span(lo, lo+1+r.Int64N(8)), Size: r.Int64N(12), Alignment: 1 + r.Int64N(4)}
			p.Buffers = append(p.Buffers, b)
		}
		for _, rule := range Rules() {
			offsets, err := placeAll(context.Background(), p, rule)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(p, NoLimit, offsets); err != nil {
				t.Fatalf("%d: %s: %v", n, rule, err)
			}
			if peak := p.Peak(offsets); peak < p.Bound() || peak > p.Reach() {
				t.Errorf("%d: %s: peak %d, want one from %d to %d", n, rule, peak, p.Bound(), p.Reach())
			}
		}
		for _, rule := range spillRules() {
			capacity := r.Int64N(30)
			spilled, err := spillByRule(p, capacity, rule)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkSpill(p, capacity, spilled); err != nil {
				t.Fatalf("%d: %s: %v", n, rule, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	zero, one := int64(0), int64(1)
	clash := &Problem{Buffers: []Buffer{
		{ID: "a", Lifetime: span(0, 2), Size: 2, Offset: &zero}, {ID: "b", Lifetime: span(1, 3), Size: 2, Offset: &one}}}
	bad := &Problem{Buffers: []Buffer{{ID: "a"}}}
	none := &Problem{}
	for _, c := range []struct {
		run  func() error
		want string
	}{
		{func() error { _, err := placeAll(context.Background(), clash, firstFit); return err },
			`buffer "b": fixed offsets overlap: found the fixed offset 1, expected one outside [-1, 2)`},
		{func() error { _, err := placeAll(context.Background(), bad, firstFit); return err }, `buffer #0 "a": upper`},
		{func() error { _, err := placeAll(context.Background(), none, "worst-fit"); return err },
			`rule "worst-fit", expected one of first-fit, best-fit`},
		{func() error { _, err := spillByRule(bad, 1, SpillLargest); return err }, `upper`},
		{func() error { _, err := spillByRule(none, 1, "any"); return err },
			`spill rule "any", expected one of longest-lifetime`},
		{func() error { _, err := spillByRule(none, -1, SpillLargest); return err }, `capacity -1`},
	} {
		if err := c.run(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
}

func Example_placeAll() {
	p := &Problem{Buffers: []Buffer{
		{ID: "x", Lifetime: span(0, 2), Size: 8},
		{ID: "y", Lifetime: span(1, 3), Size: 4},
		{ID: "z", Lifetime: span(2, 4), Size: 8},
	}}
	for _, rule := range Rules() {
		offsets, err := placeAll(context.Background(), p, rule)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rule, offsets, p.Peak(offsets))
	}
	// Output:
	// first-fit [0 8 0] 12
	// best-fit [0 8 0] 12
	// longest-lifetime [0 8 0] 12
	// largest-first [0 8 0] 12
}
