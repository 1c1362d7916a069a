package tiling

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// randomKernel is a kernel small enough to try every nest.
func randomKernel(rng *rand.Rand) *kernel {
	k := &kernel{Product: kernelProduct{Count: 1 + rng.Int63n(2), Rows: 1 + rng.Int63n(10), Columns: 1 + rng.Int63n(9),
		Reduction: 1 + rng.Int63n(9),
		RowBytes:  1 + rng.Int63n(2), ColumnBytes: 1 + rng.Int63n(2), ResultBytes: 1 + rng.Int63n(4)},
		Machine: kernelMachine{Cores: 1 + rng.Int63n(4), UnitReduction: 1 + rng.Int63n(3), UnitColumns: 1 + rng.Int63n(3),
			RowPs:  1 + rng.Int63n(2000),
			LoadPs: rng.Int63n(4000), FillPs: rng.Int63n(3000), L1Bytes: 20 + rng.Int63n(200), L1PerUs: 1000 + rng.Int63n(20000),
			DDRPerUs: 1000 + rng.Int63n(20000), L1Ps: rng.Int63n(2000), DDRPs: rng.Int63n(9000), SyncPs: rng.Int63n(2000),
			Broadcast: rng.Intn(2) == 0}}
	if rng.Intn(3) > 0 {
		k.Machine.LLBBytes, k.Machine.LLBPerUs = 20+rng.Int63n(300), 1000+rng.Int63n(20000)
	}
	if rng.Intn(2) == 0 {
		w := &kernelWindow{1 + rng.Int63n(2), 1 + rng.Int63n(2), 1 + rng.Int63n(2), 1 + rng.Int63n(4)}
		k.Product.Window, k.Product.Reduction = w, w.Height*w.Width*(1+rng.Int63n(4))
	}
	return k
}

// best tries every nest.
func (k *kernel) best() (ps int64) {
	ps = -1
	p := &k.Product
	for cb := int64(1); cb <= p.Count; cb++ {
		for cm := int64(1); cm <= p.Rows && cb*cm <= k.Machine.Cores; cm++ {
			for cn := int64(1); cn <= p.Columns && cb*cm*cn <= k.Machine.Cores; cn++ {
				for ck := int64(1); cb*cm*cn*ck <= k.Machine.Cores; ck++ {
					_, rows, columns, reduction := k.part([4]int64{cb, cm, cn, ck})
					for tile := range rows * columns * reduction {
						for way := range 32 {
							n := &Nest{Cores: [4]int64{cb, cm, cn, ck}, Tile: [3]int64{1 + tile%rows, 1 + tile/rows%columns, 1 +
								tile/rows/columns},
								Inner: []string{"rows", "columns"}[way&1], Panel: way&2 > 0, Sums: 1 + int64(way>>2&1)}
							if way&8 > 0 {
								n.Keep = append(n.Keep, "rows")
							}
							if way&16 > 0 {
								n.Keep = append(n.Keep, "columns")
							}
							if t, err := k.Time(n); err == nil && (ps < 0 || t < ps) {
								ps = t
							}
						}
					}
				}
			}
		}
	}
	return ps
}

// The search finds the best of all nests, its bounds are none too high, and it is never worse than the rule.
func TestKernelSearch(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	none := 0
	for i := range 60 {
		k := randomKernel(rng)
		want := k.best()
		data, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ReadKernel("k.json", data)
		if err != nil {
			t.Fatal(err)
		}
		r, err := SolveKernel(context.Background(), read, "search", KernelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want < 0 {
			none++
			if r.Nest != nil || r.Status != milp.Infeasible {
				t.Errorf("%d: found %+v where none has room", i, r)
			}
			continue
		}
		if r.Nest == nil {
			t.Errorf("%d: found none, want %d: %s", i, want, data)
			continue
		}
		got, err := k.Time(r.Nest)
		if err != nil || got != want || r.Objective != float64(want) || r.Bound != r.Objective {
			t.Errorf("%d: %+v takes %d, %v, objective %g, bound %g, want %d: %s", i, r.Nest, got, err, r.Objective, r.Bound,
				want, data)
		}
		rule, err := SolveKernel(context.Background(), k, "rule", KernelOptions{})
		if err != nil || rule.Nest != nil && rule.Objective < float64(want) {
			t.Errorf("%d: the rule takes %+v, %v, the best is %d", i, rule, err, want)
		}
	}
	if none > 30 {
		t.Errorf("%d of 60 kernels have no nest", none)
	}
}

// A limit ends with the best so far and a bound below it.
func TestKernelLimit(t *testing.T) {
	k := &kernel{Product: kernelProduct{1, 4096, 4096, 4096, 2, 2, 2, nil},
		Machine: kernelMachine{64, 16, 16, 1000, 4000, 9000, 1 << 17, 1 << 23, 50_000, 800_000, 100_000, 200_000, 500_000,
			100_000, true}}
	r, err := SolveKernel(context.Background(), k, "search", KernelOptions{WorkLimit: 50})
	if err != nil || r.Status != milp.Feasible || r.Bound > r.Objective || r.Nest == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = SolveKernel(context.Background(), k, "search", KernelOptions{TimeLimit: time.Nanosecond}); err != nil ||
		r.Status == milp.Optimal {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReadKernel(t *testing.T) {
	good :=
		`{"name":"k","product":{"count":1,"rows":8,"columns":8,"reduction":8,"row_bytes":2,"column_bytes":2,"result_bytes":2},
"machine":{"cores":2,"unit_reduction":4,"unit_columns":4,"row_ps":1000,"load_ps":0,"fill_ps":0,"l1_bytes":1024,"llb_bytes":0,"l1_bytes_per_us":1000,
"llb_bytes_per_us":0,"ddr_bytes_per_us":1000,"l1_latency_ps":0,"ddr_latency_ps":0,"sync_ps":0,"broadcast":true}}`
	k, err := ReadKernel("k.json", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"rows":8`, `"rows":0`, "k.json: product.rows: found 0, expected 1 to 1048576"},
		{`"rows":8`, `"lines":8`, "k.json: product.lines: found "},
		{`"llb_bytes":0`, `"llb_bytes":64`, "k.json: machine.llb_bytes_per_us: found 0"},
		{`"ddr_bytes_per_us":1000`, `"ddr_bytes_per_us":1`, "machine.ddr_bytes_per_us: found 1"},
		{`"count":1,"rows":8,"columns":8,"reduction":8`,
			`"count":1048576,"rows":1048576,"columns":1048576,"reduction":1048576`, "k.json: product: found 1.2"},
		{`"result_bytes":2`, `"result_bytes":2,"window":{"height":3,"width":1,"stride":1,"output_width":4}`,
			"product.reduction: found 8, expected a multiple of the window's 3"},
		{`"result_bytes":2`, `"result_bytes":2,"window":{"height":1,"width":1,"stride":0,"output_width":4}`,
			"product.window.stride: found 0"},
	} {
		if _, err := ReadKernel("k.json", []byte(strings.Replace(good, c.from, c.to, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
	fine := Nest{Cores: [4]int64{1, 2, 1, 1}, Tile: [3]int64{4, 8, 8}, Inner: "rows", Sums: 1}
	if ps, err := k.Time(&fine); err != nil || ps <= 0 {
		t.Errorf("%d, %v", ps, err)
	}
	for i, change := range []func(*Nest){
		func(n *Nest) { n.Cores[0] = 2 }, func(n *Nest) { n.Cores[2] = 2 }, func(n *Nest) { n.Tile[0] = 5 },
		func(n *Nest) { n.Tile[1] = 3 },
		func(n *Nest) { n.Tile[2] = 0 }, func(n *Nest) { n.Inner = "reduction" }, func(n *Nest) { n.Sums = 3 },
		func(n *Nest) { n.Keep = []string{"rows"} },
	} {
		n := fine
		change(&n)
		if _, err := k.Time(&n); err == nil {
			t.Errorf("%d: %+v breaks no rule", i, n)
		}
	}
	small := *k
	small.Machine.L1Bytes = 100
	if _, err := small.Time(&fine); err == nil || !strings.Contains(fmt.Sprint(err), "of the L1") {
		t.Errorf("%v", err)
	}
}

func FuzzReadKernel(f *testing.F) {
	f.Add(
		[]byte(
			`{"name":"k","product":{"count":1,"rows":8,"columns":8,"reduction":8,"row_bytes":2,"column_bytes":2,"result_bytes":2},
"machine":{"cores":2,"unit_reduction":4,"unit_columns":4,"row_ps":1000,"load_ps":0,"fill_ps":0,"l1_bytes":1024,"llb_bytes":0,"l1_bytes_per_us":1000,
"llb_bytes_per_us":0,"ddr_bytes_per_us":1000,"l1_latency_ps":0,"ddr_latency_ps":0,"sync_ps":0,"broadcast":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ReadKernel("k", data)
		if err != nil {
			return
		}
		n := &Nest{Cores: [4]int64{1, 1, 1, 1}, Tile: [3]int64{1, min(k.Product.Columns, k.Machine.UnitColumns),
			min(k.Product.Reduction, k.grain())}, Inner: "rows", Sums: 1}
		if ps, err := k.Time(n); err == nil && ps < 0 {
			t.Errorf("%d ps", ps)
		}
	})
}
