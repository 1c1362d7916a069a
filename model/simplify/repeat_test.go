package simplify_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
)

// The repetition that is found covers as much as any that there is.
func TestRepetition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		names := make([]int, r.IntN(40))
		period := 1 + r.IntN(5)
		for i := range names {
			if names[i] = r.IntN(2); i >= period && r.IntN(12) > 0 {
				names[i] = names[i-period]
			}
		}
		most := 0
		repeats := func(from, period, times int) bool {
			for i := from + period; i < from+period*times; i++ {
				if names[i] != names[i-period] {
					return false
				}
			}
			return true
		}
		for from := range names {
			for period := 1; period <= len(names); period++ {
				for times := simplify.LeastTimes; from+period*times <= len(names) && repeats(from, period, times); times++ {
					most = max(most, period*times)
				}
			}
		}
		x := simplify.RepetitionOf(len(names), func(i, j int) bool { return names[i] == names[j] })
		if x.Period*x.Times != most || most > 0 && !repeats(x.From, x.Period, x.Times) {
			t.Fatalf("%v: %+v covers %d, expected %d", names, x, x.Period*x.Times, most)
		}
	}
}

// A network that ends with a block ends with one as well if it has fewer.
func TestShortenToTheLast(t *testing.T) {
	b := model.NewBuilder("chain")
	x := b.Input("x", model.F16, 4)
	for i := range 20 {
		y := b.Op("Relu", fmt.Sprint("relu", i), model.Attr{}, x)
		x = b.Op("Add", fmt.Sprint("add", i), model.Attr{}, y, x)
		b.Output(y) // blocks have results of their own, too
	}
	b.Output(x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	short, err := simplify.Shorten(g, simplify.Repeated(g), 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := short.Validate(); err != nil {
		t.Fatal(err)
	}
	last := short.Ops[len(short.Ops)-1]
	if last.Kind != "Add" || !short.IsOutput(last.Outputs[0]) || len(short.Outputs) != 5 {
		t.Errorf("%d results, the last operator is %q, expected 5 and the sum that is one of them", len(short.Outputs),
			last.Name)
	}
}

// A network with fewer of its equal blocks has the operators and products of these and of what is around them, and is
// the network of so many layers where one is built in.
func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name  string
		times int
	}{{"bert-128", 11}, {"vit-s16", 11}, {"gpt2-decode", 11}, {"llama2-7b-decode", 31}, {"resnet101", 21}} {
		net, err := network.Open(c.name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(2)
		if err != nil {
			t.Fatal(err)
		}
		r := simplify.Repeated(g)
		if r.Times < c.times {
			t.Fatalf("%s: %+v, expected %d times or more", c.name, r, c.times)
		}
		three, err := simplify.Shorten(g, r, 3)
		if err != nil {
			t.Fatal(err)
		}
		four, err := simplify.Shorten(g, r, 4)
		if err != nil {
			t.Fatal(err)
		}
		for what, n := range map[string][3]int64{
			"operators":  {int64(len(g.Ops)), int64(len(four.Ops)), int64(len(three.Ops))},
			"MACs":       {g.MACs(), four.MACs(), three.MACs()},
			"parameters": {g.Params(), four.Params(), three.Params()},
			"inputs":     {int64(len(g.Inputs)), int64(len(four.Inputs)), int64(len(three.Inputs))},
			"outputs":    {int64(len(g.Outputs)), int64(len(four.Outputs)), int64(len(three.Outputs))},
		} {
			if want := n[2] + (n[1]-n[2])*int64(r.Times-3); n[0] != want {
				t.Errorf("%s: %d %s, expected %d: with four blocks %d, with three %d", c.name, n[0], what, want, n[1], n[2])
			}
		}
		if err := three.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if again := simplify.Repeated(four); again.Times != 0 {
			t.Errorf("%s: %+v is left", c.name, again)
		}
	}
	for _, name := range []string{"densenet121", "inception-v1", "resnet50"} { // whose blocks differ, or are few
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		if r := simplify.Repeated(g); r.Times*r.Period > len(g.Ops)/2 {
			t.Errorf("%s: %+v, expected less than half of it", name, r)
		}
	}
}
