package kernels_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/kernels"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

func machine(t testing.TB, name string) *simt.Machine {
	t.Helper()
	m, err := simt.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func open(t testing.TB, name string, batch int64) *model.Graph {
	t.Helper()
	g, err := kernels.Open(name, batch, "", network.Options{DType: model.F32})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func run(t testing.TB, g *model.Graph, m *simt.Machine, method string) *kernels.Result {
	t.Helper()
	r, err := kernels.Run(context.Background(), g, m, method)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

// Every method on networks of each kind, on both machines: the plans pass the referee
// (Finish runs it), sums agree, and the exact method is at least as good as AStitch.
func TestMethods(t *testing.T) {
	names := []string{"squeezenet", "dlrm", "bert-128"}
	if !testing.Short() {
		names = append(names, "crnn", "asr-encoder")
	}
	for _, preset := range simt.Presets() {
		m := machine(t, preset)
		for _, name := range names {
			g := open(t, name, 1)
			memory := map[string]float64{}
			for _, method := range kernels.MethodNames() {
				r := run(t, g, m, method)
				sum := 0.0
				for _, k := range r.Kernels {
					sum += k.Seconds
				}
				if math.Abs(sum-r.Summary.Seconds) > 1e-9*sum ||
					r.Summary.MemoryKernels+r.Summary.LibraryKernels != len(r.Kernels) {
					t.Errorf("%s on %s, %s: %+v, the kernels take %g s", name, preset, method, r.Summary, sum)
				}
				if err := r.Check(); err != nil {
					t.Errorf("%s on %s, %s: %v", name, preset, method, err)
				}
				memory[method] = r.Summary.MemorySeconds
				if e := r.Exact; (e != nil) != (method == "exact") {
					t.Errorf("%s on %s, %s: exact %+v", name, preset, method, e)
				} else if e != nil && (math.Abs(e.Best-r.Summary.MemorySeconds) > 1e-9*e.Best || e.Bound > e.Best*(1+1e-9) ||
					e.Rule < e.Best*(1-1e-9) || e.Bound > 0 && e.Rule > e.Bound*(1+e.Gap)*(1+1e-9) ||
					e.Kernels < e.Best*(1-1e-9) || e.Schemes < e.Best*(1-1e-9)) {
					t.Errorf("%s on %s: %+v, the plan takes %g s", name, preset, e, r.Summary.MemorySeconds)
				}
			}
			if memory["exact"] > memory["astitch"]*(1+1e-9) || memory["astitch"] > memory["xla"] {
				t.Errorf("%s on %s: %v", name, preset, memory)
			}
		}
	}
}

// heavy is a network on which barriers cost more than launches would: reductions of
// split rows and of columns, one after the other.
func heavy(t testing.TB) *model.Graph {
	t.Helper()
	b := model.NewBuilder("heavy")
	x := b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 64, 3000))
	y := b.Op("ReduceSum", "r", model.Attr{Axes: []int64{1}, KeepDims: true}, x)
	z := b.Op("Div", "d", model.Attr{}, x, y)
	c := b.Op("ReduceMax", "c", model.Attr{Axes: []int64{0}, KeepDims: true}, z)
	b.Output(b.Op("Sub", "s", model.Attr{}, z, c))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Where a launch is cheaper than a barrier, kernels are better apart.
func TestExactParts(t *testing.T) {
	m := machine(t, "v100-simt")
	m.LaunchSeconds = 1e-7
	g := heavy(t)
	r := run(t, g, m, "exact")
	if r.Exact.Status != milp.Optimal || !(r.Exact.Best < r.Exact.Rule) || len(r.Kernels) < 2 ||
		!(r.Exact.Rule-r.Exact.Kernels > 0) {
		t.Errorf("%d kernels, %+v; want several, better than the rules", len(r.Kernels), r.Exact)
	}
}

// A cancelled exact run gives the rule's plan, with a bound, and says so.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m, g := machine(t, "v100-simt"), open(t, "bert-128", 1)
	r, err := kernels.Run(ctx, g, m, "exact")
	if err != nil {
		t.Fatal(err)
	}
	rule := run(t, g, m, "astitch")
	if e := r.Exact; e.Status != milp.Feasible || e.Proof != "feasible (cancelled)" || !(e.Bound < e.Best) ||
		math.Abs(e.Best-rule.Summary.MemorySeconds) > 1e-9*e.Best {
		t.Errorf("%+v, AStitch %g s", e, rule.Summary.MemorySeconds)
	}
	if _, err := kernels.Run(ctx, g, m, "astitch"); !errors.Is(err, context.Canceled) {
		t.Errorf("a rule under a cancelled context: %v", err)
	}
}

// AStitch's ablation on a CRNN goes down step by step, as published.
func TestAblationOrder(t *testing.T) {
	m, g := machine(t, "v100-simt"), open(t, "crnn", 1)
	last := math.Inf(1)
	for _, method := range []string{"xla", "xla-mapping", "astitch-unmerged", "astitch"} {
		s := run(t, g, m, method).Summary.Seconds
		if s > last {
			t.Errorf("%s takes %g s, the step before %g", method, s, last)
		}
		last = s
	}
}

func TestExplain(t *testing.T) {
	m, g := machine(t, "v100-simt"), open(t, "bert-128", 1)
	const exp = "encoder.layer0.attention.softmax/exp"
	for method, want := range map[string]string{
		"astitch": "1 kernels, 3 links, 0 cuts",
		"xla":     "1 kernels, 2 links, 1 cuts",
		"tvm":     "1 kernels, 1 links, 2 cuts",
	} {
		e, err := kernels.Explain(run(t, g, m, method).Plan, exp)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d kernels, %d links, %d cuts", len(e.Kernels), len(e.Links), len(e.Cuts)); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
		for _, c := range e.Cuts {
			if c.Reason == "" {
				t.Errorf("%s: %s -> %s is cut for no reason", method, c.FromName, c.ToName)
			}
		}
	}
	if _, err := kernels.Explain(run(t, g, m, "xla").Plan, exp+"p"); err == nil || !strings.Contains(err.Error(), exp) {
		t.Errorf("an operator that is not there: %v", err)
	}
}

// Every dependency that is not within a kernel is a cut with its reason, in every
// method; library calls are no exception.
func TestEveryCutHasAReason(t *testing.T) {
	type pair struct{ from, to model.OpID }
	m := machine(t, "t4-simt")
	for _, name := range []string{"bert-128", "squeezenet", "dien"} {
		g := open(t, name, 1)
		for _, method := range []string{"astitch", "xla", "tvm"} {
			r := run(t, g, m, method)
			served := map[pair]bool{}
			for _, c := range r.Cuts {
				served[pair{c.From, c.To}] = true
				closed := r.Kernels[c.First].Library || r.Kernels[c.Second].Library
				if c.Reason == "" || closed != strings.Contains(c.Reason, "its kernel is closed") {
					t.Fatalf("%s, %s: %s -> %s is cut because %q", name, method, c.FromName, c.ToName, c.Reason)
				}
			}
			for _, k := range r.Kernels {
				for _, l := range k.Links {
					served[pair{l.From, l.To}] = true
					if (l.Scheme.String() == "local") != (l.Reason == "") {
						t.Fatalf("%s, %s: %+v", name, method, l)
					}
				}
				if len(k.Operators) != len(k.Ops()) || k.Operators[0] != g.Op(k.Ops()[0]).Name {
					t.Fatalf("%s, %s: operators %v", name, method, k.Operators)
				}
			}
			for _, op := range g.Ops {
				for _, in := range op.Inputs {
					from := g.Tensor(fusion.Root(g, in)).Producer
					if op.Class() != model.ViewClass && from != model.NoOp && !served[pair{from, op.ID}] {
						t.Fatalf("%s, %s: %s -> %s is neither a link nor a cut", name, method, g.Op(from).Name, op.Name)
					}
				}
			}
		}
	}
}

// Equal input gives equal bytes.
func TestSameBytes(t *testing.T) {
	m, g := machine(t, "v100-simt"), open(t, "squeezenet", 1)
	var first string
	for i := range 2 {
		r := run(t, g, m, "astitch")
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if i == 0 {
			first = got
		} else if got != first {
			t.Error("another answer to the same question")
		}
	}
}

func TestUnknownMethod(t *testing.T) {
	_, err := kernels.Run(context.Background(), open(t, "squeezenet", 1), machine(t, "v100-simt"), "astich")
	if err == nil || !strings.Contains(err.Error(), `did you mean astitch`) {
		t.Errorf("%v", err)
	}
}

func Example() {
	m, err := simt.Load("v100-simt")
	if err != nil {
		panic(err)
	}
	g, err := kernels.Open("bert-128", 1, "astitch", network.Options{DType: model.F32})
	if err != nil {
		panic(err)
	}
	for _, method := range []string{"xla", "tvm", "astitch"} {
		r, err := kernels.Run(context.Background(), g, m, method)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d kernels beside %d library calls\n", method, r.Summary.MemoryKernels, r.Summary.LibraryKernels)
	}
	// Output:
	// xla: 196 kernels beside 96 library calls
	// tvm: 245 kernels beside 96 library calls
	// astitch: 73 kernels beside 96 library calls
}
