package partition

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

const small = `{"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 0,
 "nodes": [
  {"id": 1, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "colorClass": 1, "size": 60},
  {"id": 2, "supportedOnFpga": true, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": false, "colorClass": 2, "size": 50, "layerId": 7}],
 "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5, "size": 4}]}`

func isInput(err error) bool {
	var e *InputError
	return errors.As(err, &e)
}

// Each case changes the small file in one place.
func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"field missing", `"cpuLatency": 20, `, ``, `nodes[0].cpuLatency: found nothing`},
		{"no number", `"fpgaLatency": 3`, `"fpgaLatency": "3"`, `nodes[1].fpgaLatency: found "3", expected a number`},
		{"negative", `"size": 60`, `"size": -60`, `nodes[0].size: found -60`},
		{"too large", `"size": 60`, `"size": 1e400`, `nodes[0].size: found 1e400`},
		{"no flag", `"isBackwardNode": 0`, `"isBackwardNode": 2`,
			`nodes[0].isBackwardNode: found 2, expected true, false, 1 or 0`},
		{"id twice", `"id": 2`, `"id": 1`, `nodes[1].id: found 1 twice`},
		{"id no whole number", `"id": 2`, `"id": 2.5`, `nodes[1].id: found 2.5`},
		{"field twice", `"id": 2`, `"id": 2, "id": 2`, `nodes[1].id: found the field a second time`},
		{"unknown end", `"destId": 2`, `"destId": 9`, `edges[0].destId: found 9, expected the id of a node`},
		{"cost missing", `"cost": 0.5, `, ``, `edges[0].cost: found nothing`},
		{"unknown field", `"maxCPUs": 0`, `"maxCPUs": 0, "maxGPUs": 1`, `maxGPUs: found an unknown field`},
		{"no device", `"maxFPGAs": 2`, `"maxFPGAs": 0`, `found no device`},
		{"half a device", `"maxFPGAs": 2`, `"maxFPGAs": 1.5`, `maxFPGAs: found 1.5`},
		{"null", `"nodes": [`, `"nodes": null, "x": [`, `nodes: found null, expected a list`},
		{"other objective", `"maxCPUs": 0`, `"maxCPUs": 0, "objective": "latency"`,
			`objective: found "latency", expected "throughput"`},
		{"a loop", `"destId": 2`, `"destId": 1`, `edges: found the cycle 1 1`},
		{"a cycle", `"edges": [`, `"edges": [{"sourceId": 2, "destId": 1, "cost": 1}, `, `edges: found the cycle 2 1 2`},
		{"two costs", `"edges": [`, `"edges": [{"sourceId": 1, "destId": 2, "cost": 1}, `,
			`edge 1 to 2: cost: found 0.5, expected 1, as the other edges of node 1 have`},
		{"backward first", `"isBackwardNode": 0`, `"isBackwardNode": 1`,
			`edge 1 to 2: found a backward node before a forward one`},
		{"contracted", `"layerId": 7`, `"containedSubnodes": [2]`,
			`nodes[1].containedSubnodes: found a list, expected a graph that was not contracted`},
		{"end missing", `"size": 4}]}`, `"size": 4}]`, `found unexpected EOF`},
		{"more behind", `"size": 4}]}`, `"size": 4}]} 1`, `file: found more after the end of the object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.new, 1)
			if text == small {
				t.Fatal("nothing was changed")
			}
			_, err := Read("f.json", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found error %q, expected one with %q", err, c.want)
			}
			if !isInput(err) {
				t.Errorf("%T is no input error", err)
			}
		})
	}
	if _, err := Read("f.json", []byte(`{"fpgas": [], "cpus": []}`)); err == nil ||
		!strings.Contains(err.Error(), "fpgas: found an unknown field") {
		t.Errorf("a division in place of a graph: %v", err)
	}
}

func TestInfeasible(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a node that fits nowhere", `"size": 60`, `"size": 160`, "node 1 needs 160 bytes, an accelerator has 100"},
		{"a node that no device runs", `"supportedOnFpga": 1`, `"supportedOnFpga": 0`, "node 1 runs on no accelerator"},
		{"a colour that fits nowhere", `"colorClass": 2`, `"colorClass": 1`,
			"the 2 nodes of colour 1 (1, 2) need 110 bytes together"},
		{"two colours that wait for each other", `"size": 50, "layerId": 7}],
 "edges": [`, `"size": 50}, {"id": 3, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 1},
  {"id": 4, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 2}],
 "edges": [{"sourceId": 2, "destId": 3, "cost": 1}, `, "the 4 nodes of the colours 1, 2, which wait for each other (1, 2, 3, 4) need 110 bytes together"},
		{"a colour with another between", `"size": 50, "layerId": 7}],
 "edges": [`, `"size": 50}, {"id": 3, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 1}],
 "edges": [{"sourceId": 2, "destId": 3, "cost": 1}, `, "the 3 nodes of the colours 1, 2, which wait for each other (1, 2, 3) need 110 bytes together"},
		{"all together", `"maxFPGAs": 2`, `"maxFPGAs": 1`, "the nodes need 110 bytes, the accelerators (1) have 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read("f.json", []byte(strings.Replace(small, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range Methods() {
				if m.NeedsSolver {
					continue
				}
				r, err := Solve(context.Background(), p, m.Name, Options{})
				if err != nil || r.Status != milp.Infeasible || !strings.Contains(r.Reason, c.want) {
					t.Errorf("%s: %v, %+v, expected %q", m.Name, err, r, c.want)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	p, err := Read("f.json", []byte(`{"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1,
 "nodes": [
  {"id": 1, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "colorClass": 1, "size": 40},
  {"id": 2, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 3, "isBackwardNode": 0, "size": 40},
  {"id": 3, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 4, "isBackwardNode": 0, "size": 40},
  {"id": 4, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 5, "isBackwardNode": 0, "size": 0},
  {"id": 5, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 5, "isBackwardNode": 1, "colorClass": 1, "size": 0},
  {"id": 6, "supportedOnFpga": 0, "cpuLatency": 20, "fpgaLatency": 5, "isBackwardNode": 0, "size": 0}],
 "edges": [{"sourceId": 1, "destId": 2, "cost": 1}, {"sourceId": 2, "destId": 3, "cost": 7}, {"sourceId": 1, "destId": 4, "cost": 1}, {"sourceId": 4, "destId": 5, "cost": 2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		d    Division
		want string
	}{
		{"good", Division{[][]int{{1, 4, 5}, {2, 3}}, [][]int{{6}}}, ""},
		{"memory", Division{[][]int{{1, 2, 3, 4, 5}}, [][]int{{6}}}, "rule (3): accelerator 0 holds 120 bytes"},
		{"support", Division{[][]int{{1, 4, 5, 6}, {2, 3}}, nil}, "rule (4): node 6"},
		{"colour", Division{[][]int{{1, 4}, {2, 3, 5}}, [][]int{{6}}}, "rule (5): nodes 1 and 5 of colour 1"},
		{"contiguity", Division{[][]int{{1, 5, 3, 4}, {2}}, [][]int{{6}}},
			"rule (6): a path leaves accelerator 0 and comes back to node 3"},
		{"row", Division{[][]int{{1, 3, 5}, {}}, [][]int{{2, 4, 6}}}, "rule (6)"},
		{"nowhere", Division{[][]int{{1, 4, 5}, {2}}, [][]int{{6}}}, "node 3 is on no device"},
		{"twice", Division{[][]int{{1, 4, 5}, {2, 3}}, [][]int{{6, 3}}}, "node 3 is on accelerator 1 and on CPU 0"},
		{"unknown", Division{[][]int{{1, 4, 5, 8}, {2, 3}}, [][]int{{6}}}, "node 8 is not in the graph"},
		{"devices", Division{[][]int{{1, 4, 5}, {2}, {3}}, [][]int{{6}}}, "found 3 accelerators"},
	} {
		err := p.Check(&c.d)
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(*Violation))) {
			t.Errorf("%s: found %v, expected %q", c.name, err, c.want)
		}
	}
	// 1 and 4 on the same accelerator, 2 and 3 on the other: the output of 1 passes
	// once on each side. By hand: 2+5+5+1 and 3+4+1.
	loads, err := p.Loads(&Division{[][]int{{1, 4, 5}, {2, 3}}, [][]int{{6}}})
	if err != nil || loads[0] != 13 || loads[1] != 8 || loads[2] != 20 {
		t.Errorf("loads %v, %v", loads, err)
	}
}

// Two devices that each wait for the other are no row, though each set is
// contiguous.
func TestCheckRow(t *testing.T) {
	p := &Problem{Name: "crossed", Accelerators: 2, MemoryBytes: 1,
		Nodes: []Node{{ID: 1, Supported: true, Color: NoColor}, {ID: 2, Supported: true, Color: NoColor},
			{ID: 3, Supported: true, Color: NoColor}, {ID: 4, Supported: true, Color: NoColor}},
		Edges: []Edge{{0, 1, 0}, {2, 3, 0}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(&Division{Accelerators: [][]int{{1, 4}, {2, 3}}}); err == nil ||
		!strings.Contains(err.Error(), "rule (7)") {
		t.Errorf("crossed sets: %v", err)
	}
	if err := p.Check(&Division{Accelerators: [][]int{{1, 3}, {2, 4}}}); err != nil {
		t.Error(err)
	}
}

func TestReadDivision(t *testing.T) {
	p, err := Read("f.json", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"devices": [[1], [2]]}`,
		`{"fpgas": [{"nodes": [1], "load": -1}, {"nodes": [2]}], "cpus": []}`} {
		d, err := readDivision("d.json", []byte(text), p)
		if err != nil {
			t.Fatal(err)
		}
		if load, err := p.MaxLoad(d); err != nil || load != 3.5 {
			t.Errorf("%s: %v, %v", text, load, err)
		}
	}
	if _, err := readDivision("d.json", []byte(`{"devices": [[1], [2], []]}`), p); !isInput(err) {
		t.Errorf("three devices: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read("f.json", data)
		if err != nil || len(p.Nodes) > 12 || len(p.Edges) > 40 || p.Accelerators+p.CPUs > 6 {
			return
		}
		r, err := Solve(context.Background(), p, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.HasDivision() && (p.Check(r.Division()) != nil || math.IsNaN(r.MaxLoad) || r.Bound > r.MaxLoad) {
			t.Fatalf("%+v", r)
		}
	})
}

func FuzzReadDivision(f *testing.F) {
	p, err := Read("f.json", []byte(small))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"devices": [[1], [2]]}`))
	f.Add([]byte(`{"fpgas": [{"nodes": [1], "load": -1}, {"nodes": [2]}], "cpus": []}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := readDivision("d.json", data, p)
		if err != nil {
			if !isInput(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		if load, err := p.MaxLoad(d); p.Check(d) == nil && (err != nil || load < 3.5) {
			t.Fatalf("%s has load %v, %v, less than the least", data, load, err)
		}
	})
}
