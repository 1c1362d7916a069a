package ordering

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// residual has a shared output, a halo, a whole read and costs that differ.
const residual = `{"name": "residual", "capacity_bytes": 11, "store_cost_per_byte": 1, "load_cost_per_byte": 0.5,
 "subgraphs": [
  {"name": "a", "instances": 2, "output_bytes": 3, "workspace_bytes": 1},
  {"name": "b", "instances": 2, "output_bytes": 2, "workspace_bytes": 0},
  {"name": "c", "instances": 1, "output_bytes": 1, "workspace_bytes": 1}],
 "arcs": [
  {"from": 0, "to": 1, "reads": [[0, 1], [0, 2]]},
  {"from": 1, "to": 2, "reads": [[0, 2]]},
  {"from": 0, "to": 2, "reads": [[1, 2]]}]}`

func problem(t testing.TB, text string) *Problem {
	t.Helper()
	p, err := Read("test.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct {
		name, old, new, want string
	}{
		{"not JSON", `{"name"`, `{name`, `test.json: file: found invalid character 'n'`},
		{"cut off", "]}", "", `found an object, expected a list`},
		{"more", `[[1, 2]]}]}`, `[[1, 2]]}]} 5`, `file: found more after the end of the object`},
		{"a list", residual, `[]`, `file: found a list, expected an object`},
		{"too deep", `"residual"`, strings.Repeat("[", 30) + strings.Repeat("]", 30), `name: found a list, expected a text`},
		{"missing field", `"capacity_bytes": 11, `, ``, `capacity_bytes: found nothing, expected the field`},
		{"unknown field", `"capacity_bytes"`, `"capacity": 1, "capacity_bytes"`, `capacity: found an unknown field`},
		{"repeated field", `"capacity_bytes"`, `"capacity_bytes": 1, "capacity_bytes"`,
			`capacity_bytes: found the field a second time`},
		{"text for a number", `11`, `"11"`, `capacity_bytes: found "11", expected a whole number`},
		{"fraction of a byte", `11`, `11.5`, `capacity_bytes: found 11.5, expected a whole number`},
		{"number for a text", `"a"`, `7`, `subgraphs[0].name: found 7, expected a text`},
		{"null", `"a"`, `null`, `subgraphs[0].name: found null`},
		{"huge", `11`, `99999999999999999999`, `capacity_bytes: found 99999999999999999999`},
		{"negative capacity", `11`, `-1`, `capacity_bytes: found -1`},
		{"negative cost", `0.5`, `-0.5`, `load_cost_per_byte: found -0.5, expected a cost from 0`},
		{"too fine a cost", `0.5`, `0.12345678`, `load_cost_per_byte: found 0.12345678`},
		{"overflowing cost", `0.5`, `1e999`, `load_cost_per_byte: found 1e999, expected a number`},
		{"no instances", `"instances": 1`, `"instances": 0`, `subgraphs[2].instances: found 0`},
		{"too many instances", `"instances": 1`, `"instances": 2000000`, `subgraphs[2].instances: found 2000000`},
		{"negative output", `"output_bytes": 1`, `"output_bytes": -1`, `subgraphs[2].output_bytes: found -1`},
		{"negative workspace", `"workspace_bytes": 0`, `"workspace_bytes": -1`, `subgraphs[1].workspace_bytes: found -1`},
		{"unknown sub-graph", `"to": 1`, `"to": 3`, `arcs[0].to: found 3, expected a sub-graph from 0 to 2`},
		{"itself", `"to": 1`, `"to": 0`, `arcs[0].to: found 0, expected another sub-graph`},
		{"twice", `{"from": 0, "to": 2, "reads": [[1, 2]]}`, `{"from": 1, "to": 2, "reads": [[0, 1]]}`,
			`arcs[2]: found a second arc from 1 to 2`},
		{"cycle", `{"from": 0, "to": 2, "reads": [[1, 2]]}`, `{"from": 2, "to": 0, "reads": [[0, 1], [0, 1]]}`,
			`expected sub-graphs without a cycle`},
		{"ranges missing", `[[0, 1], [0, 2]]`, `[[0, 1]]`, `arcs[0].reads: found 1, expected 2 ranges`},
		{"range too far", `[[0, 1], [0, 2]]`, `[[0, 1], [0, 3]]`,
			`arcs[0].reads[1]: found [0, 3], expected 0 <= lo <= hi <= 2`},
		{"range backwards", `[[0, 1], [0, 2]]`, `[[1, 0], [0, 2]]`, `arcs[0].reads[0]: found [1, 0]`},
		{"ends decrease", `[[0, 1], [0, 2]]`, `[[0, 2], [0, 1]]`,
			`arcs[0].reads[1]: found [0, 1] after [0, 2], expected ends that do not decrease`},
		{"no pair", `[[0, 1], [0, 2]]`, `[[0, 1], [0]]`, `arcs[0].reads[1]: found a list of 1, expected a list of 2`},
		{"costs too high", `"output_bytes": 3`, `"output_bytes": 10000000000000`, ``},
		{"costs far too high", `"store_cost_per_byte": 1,`, `"store_cost_per_byte": 9000000000000,`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(residual, c.old, c.new, 1)
			if text == residual {
				t.Fatal("nothing is replaced")
			}
			_, err := Read("test.json", []byte(text))
			if c.want == "" {
				if err != nil {
					t.Errorf("%v, expected none", err)
				}
				return
			}
			var in *InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "test.json: ") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	huge := problem(t, residual)
	huge.Subgraphs[0].OutputBytes, huge.StoreCostPerByte = maxBytes, maxBytes
	if err := huge.Validate(); err == nil || !strings.Contains(err.Error(), "costs of at most") {
		t.Errorf("%v, want that the costs are too high", err)
	}
	if _, err := Load("nosuch.json"); err == nil || !strings.Contains(err.Error(), "nosuch.json") {
		t.Errorf("%v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	p := problem(t, residual)
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if again := problem(t, string(data)); !reflect.DeepEqual(p, again) {
		t.Errorf("%+v, want %+v", again, p)
	}
	g := NewGraph(p)
	res, err := Fixed("by ID", g, g.Topological(), Traffic)
	if err != nil {
		t.Fatal(err)
	}
	res.Effort = &milp.Effort{Rows: 1, Columns: 2, Nonzeros: 3, Nodes: 4}
	if data, err = json.Marshal(res); err != nil {
		t.Fatal(err)
	}
	again, err := ReadResult("r.json", data)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(again)
	if err != nil || string(second) != string(data) {
		t.Errorf("%s, want %s (%v)", second, data, err)
	}
	if _, err := ReadResult("r.json", []byte(`{"status": "optimal", "objective": "traffic", "steps": []}`)); err == nil ||
		!strings.Contains(err.Error(), "r.json: cost: found nothing") {
		t.Errorf("%v", err)
	}
}

func TestGraph(t *testing.T) {
	g := NewGraph(problem(t, residual))
	if want := [][]int{nil, nil, {0}, {0, 1}, {1, 2, 3}}; !reflect.DeepEqual(g.Reads, want) {
		t.Errorf("reads %v, want %v", g.Reads, want)
	}
	if want := [][]int{{2, 3}, {3, 4}, {4}, {4}, nil}; !reflect.DeepEqual(g.Readers, want) {
		t.Errorf("readers %v, want %v", g.Readers, want)
	}
	// A cost of 0.5 makes units of a tenth.
	if g.Unit != 10 || g.Store[0] != 30 || g.Load[0] != 15 {
		t.Errorf("unit %v, store %d, load %d", g.Unit, g.Store[0], g.Load[0])
	}
	if got := []int64{g.Need(0), g.Need(3), g.Need(4), g.LargestNeed()}; !slices.Equal(got, []int64{4, 8, 9, 9}) {
		t.Errorf("needs %v", got)
	}
}

// byHand is an order of residual at capacity 9: b1 runs while the output of b0
// is away.
func byHand(t testing.TB) (*Problem, *Result) {
	p := problem(t, strings.Replace(residual, `"capacity_bytes": 11`, `"capacity_bytes": 9`, 1))
	return p, &Result{Method: "by hand", Objective: Traffic, Status: milp.Feasible, Cost: 3, Bound: 0,
		PeakBytes: 9, Steps: []Step{
			{Run: Ref{0, 0}}, {Run: Ref{1, 0}}, {Run: Ref{0, 1}, Store: nil},
			{Store: []Ref{{1, 0}}, Run: Ref{1, 1}}, {Load: []Ref{{1, 0}}, Run: Ref{2, 0}},
		}}
}

// Each rule is broken by one change of a valid order.
func TestCheck(t *testing.T) {
	p, r := byHand(t)
	v, err := Check(p, r)
	if err != nil {
		t.Fatal(err)
	}
	// Store 2 bytes at 1, load them at 0.5; a1, b0, b1, c and its workspace.
	if *v != (Verdict{Cost: 3, PeakBytes: 9, Stores: 1, Loads: 1}) {
		t.Errorf("%+v", *v)
	}
	for _, c := range []struct {
		name   string
		change func(p *Problem, r *Result)
		want   string
	}{
		{"too small", func(p *Problem, r *Result) { p.CapacityBytes = 8 },
			"steps[2]: runs [0 1] with 9 bytes in the L1, 1 more than its capacity of 8"},
		{"not stored", func(p *Problem, r *Result) { r.Steps[3].Store = nil }, "steps[3]: runs [1 1] with 10 bytes"},
		{"not loaded", func(p *Problem, r *Result) { r.Steps[4].Load = nil },
			"steps[4]: runs [2 0], which reads the output of [1 0], and that is not in the L1"},
		{"stored twice", func(p *Problem, r *Result) { r.Steps[3].Store = []Ref{{1, 0}, {1, 0}} },
			"steps[3]: stores the output of [1 0], which is not in the L1"},
		{"dead stored", func(p *Problem, r *Result) { r.Steps[4].Store = []Ref{{0, 0}} },
			"steps[4]: stores the output of [0 0], which is not in the L1"},
		{"loaded twice", func(p *Problem, r *Result) { r.Steps[4].Load = []Ref{{1, 0}, {1, 0}} },
			"steps[4]: loads the output of [1 0], which is in the L1"},
		{"loaded from nowhere", func(p *Problem, r *Result) { r.Steps[1].Load = []Ref{{0, 1}} },
			"steps[1]: loads the output of [0 1], which is not in the LLB"},
		{"unknown stored", func(p *Problem, r *Result) { r.Steps[1].Store = []Ref{{0, 2}} },
			"steps[1]: stores [0 2], which is no instance"},
		{"unknown loaded", func(p *Problem, r *Result) { r.Steps[1].Load = []Ref{{-1, 2}} },
			"steps[1]: loads [-1 2], which is no instance"},
		{"unknown run", func(p *Problem, r *Result) { r.Steps[1].Run = Ref{3, 0} },
			"steps[1]: runs [3 0], which is no instance"},
		{"too early", func(p *Problem, r *Result) { r.Steps[0], r.Steps[1] = r.Steps[1], r.Steps[0] },
			"steps[0]: runs [1 0] before [0 0], which it reads"},
		{"run twice", func(p *Problem, r *Result) { r.Steps[2].Run = Ref{0, 0} }, "steps[2]: runs [0 0] a second time"},
		{"not all run", func(p *Problem, r *Result) { r.Steps = r.Steps[:4] },
			"the order has 4 steps, expected one for each of 5 instances"},
		{"cost", func(p *Problem, r *Result) { r.Cost = 2 }, "cost: found 2, expected 3"},
		{"peak", func(p *Problem, r *Result) { r.PeakBytes = 8 }, "peak_bytes: found 8, expected 9"},
		{"bound", func(p *Problem, r *Result) { r.Bound = 4 }, "bound: found 4, expected at most the cost of 3"},
		{"bound that is none", func(p *Problem, r *Result) { r.Bound = math.NaN() }, "bound: found NaN"},
		{"not proven", func(p *Problem, r *Result) { r.Status = milp.Optimal },
			`status: found "optimal", but the bound is 0 and the cost 3`},
		{"proven", func(p *Problem, r *Result) { r.Bound = 3 },
			`status: found "feasible", but the bound is 3 and the cost 3`},
		{"status", func(p *Problem, r *Result) { r.Status = 99 }, `status: found "Status(99)"`},
		{"objective", func(p *Problem, r *Result) { r.Objective = "time" }, `objective: found "time"`},
		{"moves for the peak", func(p *Problem, r *Result) { r.Objective = Peak }, `objective "peak" with 4 bytes moved`},
		{"limit", func(p *Problem, r *Result) { r.Status = milp.Limit }, `status "limit" with 5 steps`},
		{"infeasible", func(p *Problem, r *Result) { r.Status = milp.Infeasible }, `status "infeasible" with 5 steps`},
		{"infeasible without proof", func(p *Problem, r *Result) { r.Status, r.Steps = milp.Infeasible, nil },
			`instance: found none`},
		{"infeasible, but it fits", func(p *Problem, r *Result) {
			r.Status, r.Steps, r.Infeasible = milp.Infeasible, nil, &InfeasibleError{Instance: Ref{2, 0}, MissingBytes: 1}
		}, `missing_bytes: found 1, but [2 0] needs 9 of 9`},
		{"infeasible, tensors missing", func(p *Problem, r *Result) {
			p.CapacityBytes = 8
			r.Status, r.Steps, r.Infeasible = milp.Infeasible, nil, &InfeasibleError{Instance: Ref{2, 0}, MissingBytes: 1}
		}, `tensors: 4 that [2 0] touches are missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, r := byHand(t)
			c.change(p, r)
			_, err := Check(p, r)
			var broken *RuleError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A copy in the LLB is paid for once, however often its output leaves the L1.
func TestCheckCleanCopy(t *testing.T) {
	p, r := byHand(t)
	p.CapacityBytes = 100
	r.Steps[2].Store = []Ref{{1, 0}}
	r.Steps[3] = Step{Load: []Ref{{1, 0}}, Run: Ref{1, 1}}
	r.Steps[4] = Step{Store: []Ref{{1, 0}}, Load: []Ref{{1, 0}}, Run: Ref{2, 0}}
	r.Cost, r.PeakBytes = 2+1+1, 10
	if v, err := Check(p, r); err != nil || v.Stores != 2 || v.Loads != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestInfeasible(t *testing.T) {
	p := problem(t, strings.Replace(residual, `"capacity_bytes": 11`, `"capacity_bytes": 6`, 1))
	g := NewGraph(p)
	res, err := Fixed("by ID", g, g.Topological(), Traffic)
	if err != nil {
		t.Fatal(err)
	}
	want := &InfeasibleError{Instance: Ref{2, 0}, Tensors: []Ref{{0, 1}, {1, 0}, {1, 1}, {2, 0}}, MissingBytes: 3}
	if res.Status != milp.Infeasible || !reflect.DeepEqual(res.Infeasible, want) {
		t.Errorf("%+v, want %+v", res.Infeasible, want)
	}
	if _, err := Check(p, res); err != nil {
		t.Error(err)
	}
	if !math.IsInf(res.Outcome().Gap(), 1) {
		t.Errorf("gap %v", res.Outcome().Gap())
	}
	if res, err = Fixed("by ID", g, g.Topological(), Peak); err != nil || !res.HasOrder() {
		t.Errorf("%+v, %v: the peak ignores the capacity", res, err)
	}
}

// The longest remaining lifetime leaves, and the lowest ID among equals.
func TestSequence(t *testing.T) {
	p := problem(t, `{"name": "three", "capacity_bytes": 6, "store_cost_per_byte": 1, "load_cost_per_byte": 1,
	 "subgraphs": [{"name": "a", "instances": 3, "output_bytes": 2, "workspace_bytes": 0}, {"name": "b", "instances": 2, "output_bytes": 2, "workspace_bytes": 0}],
	 "arcs": [{"from": 0, "to": 1, "reads": [[0, 1], [1, 3]]}]}`)
	g := NewGraph(p)
	steps, cost, peak, err := Sequence(g, []int{2, 1, 0, 3, 4}, Traffic)
	if err != nil {
		t.Fatal(err)
	}
	// Instances 1 and 2 are read last, at the same time.
	want := []Step{{Run: Ref{0, 2}}, {Run: Ref{0, 1}}, {Run: Ref{0, 0}}, {Store: []Ref{{0, 1}}, Run: Ref{1, 0}},
		{Load: []Ref{{0, 1}}, Run: Ref{1, 1}}}
	if !reflect.DeepEqual(steps, want) || cost != 4 || peak != 6 {
		t.Errorf("%v, cost %d, peak %d", steps, cost, peak)
	}
	for _, order := range [][]int{{0, 1}, {3, 0, 1, 2, 4}, {0, 0, 1, 3, 4}, {0, 1, 2, 3, 5}} {
		if _, _, _, err := Sequence(g, order, Traffic); err == nil {
			t.Errorf("%v is taken for an order", order)
		}
	}
}

// Every order of the published files that Sequence plays obeys the rules.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/order/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("skipped: the problem files are not on this machine")
	}
	for _, file := range files {
		p, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGraph(p)
		for _, objective := range []Objective{Traffic, Peak} {
			res, err := Fixed("by level", g, g.Topological(), objective)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Check(p, res); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if p.KnownTraffic == nil || objective == Traffic && res.Cost < *p.KnownTraffic {
				t.Errorf("%s: cost %v below the known optimum", file, res.Cost)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(residual)
	f.Add(
		`{"name": "", "capacity_bytes": 0, "store_cost_per_byte": 0, "load_cost_per_byte": 1e-3, "subgraphs": [{"name": "", "instances": 1, "output_bytes": 0, "workspace_bytes": 0}], "arcs": []}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read("fuzz.json", []byte(text))
		if err != nil {
			var in *InputError
			if !errors.As(err, &in) {
				t.Fatalf("%v is no InputError", err)
			}
			return
		}
		if instances := len(NewGraph(p).Refs); instances > 1000 {
			return
		}
		g := NewGraph(p)
		for _, objective := range []Objective{Traffic, Peak} {
			res, err := Fixed("by level", g, g.Topological(), objective)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Check(p, res); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzCheck(f *testing.F) {
	p, r := byHand(f)
	data, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(
		`{"status": "infeasible", "objective": "traffic", "steps": [], "instance": [2, 0], "tensors": [[0, 1]], "missing_bytes": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ReadResult("fuzz.json", []byte(text))
		if err != nil {
			return
		}
		if v, err := Check(p, r); err == nil && r.HasOrder() && (v.Cost < 3 && r.Objective == Traffic || len(r.Steps) != 5) {
			t.Errorf("%s passes", text)
		}
	})
}

func ExampleCheck() {
	p, err := Read("chain.json",
		[]byte(`{"name": "chain", "capacity_bytes": 9, "store_cost_per_byte": 1, "load_cost_per_byte": 1,
	 "subgraphs": [{"name": "first", "instances": 2, "output_bytes": 3, "workspace_bytes": 4}, {"name": "last", "instances": 1, "output_bytes": 2, "workspace_bytes": 0}],
	 "arcs": [{"from": 0, "to": 1, "reads": [[0, 2]]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &Result{Objective: Traffic, Status: milp.Optimal, Cost: 6, Bound: 6, PeakBytes: 8, Steps: []Step{
		{Run: Ref{0, 0}}, {Store: []Ref{{0, 0}}, Run: Ref{0, 1}}, {Load: []Ref{{0, 0}}, Run: Ref{1, 0}}}}
	v, err := Check(p, r)
	fmt.Println(v.Cost, v.PeakBytes, err)
	r.Steps[1].Store = nil
	_, err = Check(p, r)
	fmt.Println(err)
	// Output:
	// 6 8 <nil>
	// steps[1]: runs [0 1] with 10 bytes in the L1, 1 more than its capacity of 9
}

func ExampleRead() {
	_, err := Read("bad.json",
		[]byte(
			`{"name": "bad", "capacity_bytes": -3, "store_cost_per_byte": 1, "load_cost_per_byte": 1, "subgraphs": [], "arcs": []}`))
	fmt.Println(err)
	_, err = Load(filepath.Join(os.TempDir(), "no", "such.json"))
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output:
	// bad.json: capacity_bytes: found -3, expected bytes from 0 to 17592186044416
	// true
}

// An order is left as it is, and anything else becomes one.
func TestObey(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := NewGraph(randomProblem(seed, 4))
		order := g.Obey(r.Perm(len(g.Refs)))
		if err := checkOrder(g, order); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if again := g.Obey(order); !slices.Equal(again, order) {
			t.Errorf("seed %d: the order %v became %v", seed, order, again)
		}
	}
}
