package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// onMachine opens a network in a type that the machine's matrix units know.
func onMachine(t *testing.T, name string, spec *hardware.Spec) (network.Network, string) {
	t.Helper()
	dt := model.F16
	if u, _ := spec.UnitOf(hardware.Matrix); !u.Supports(dt.String()) {
		dt = model.I8
	}
	src, err := network.Open(name, network.Options{DType: dt})
	if err != nil {
		t.Fatal(err)
	}
	return src, dt.String()
}

func macs(t *testing.T, src network.Network, batch int64) int64 {
	t.Helper()
	g, err := src.Graph(batch)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, op := range g.Ops {
		n += g.Work(op, nil).MACs
	}
	return n
}

// Every variant runs on every machine, as fast as its peak and its memory allow and no
// faster, and twice the same way. Run has checked schedules and buffers itself.
func TestMachines(t *testing.T) {
	for _, c := range []struct {
		network string
		batches []int64
	}{
		{"toy-fig3", []int64{1, 6, 16}},
		{"resnet18", []int64{1, 8}},
		{"bert-128", []int64{2}},
	} {
		if os.Getenv("DSASCHED_FULL") == "" && c.network == "bert-128" {
			continue
		}
		for _, hw := range []string{"goya", "ascend910", "ascend910-abstract", "ipu", "a100", "v100"} {
			spec := load(t, hw)
			src, dtype := onMachine(t, c.network, spec)
			for _, batch := range c.batches {
				work := float64(macs(t, src, batch))
				for _, v := range recipes.Table() {
					name := fmt.Sprintf("%s on %s, batch %d, %s", c.network, hw, batch, v.Name)
					r, err := scheduler.Run(context.Background(), src, spec, batch, v, scheduler.Options{})
					if err != nil {
						t.Errorf("%s: %v", name, err)
						continue
					}
					if peak := spec.PeakMACsPerSecond(dtype); work/r.LatencySeconds() > peak {
						t.Errorf("%s: %g MAC/s, the peak is %g", name, work/r.LatencySeconds(), peak)
					}
					if rate := float64(r.Sim.Dynamic.LevelBytes[isa.DDR]) /
						r.LatencySeconds(); rate > spec.DDR.BandwidthBytesPerSecond {
						t.Errorf("%s: %g B/s of the DDR, which has %g", name, rate, spec.DDR.BandwidthBytesPerSecond)
					}
					// Each network input crosses the DDR at least once.
					in := int64(0)
					g := r.Schedule.Graph
					for _, id := range g.Inputs {
						in += g.Tensor(id).Bytes()
					}
					if got := r.Sim.Dynamic.LevelBytes[isa.DDR]; got < in {
						t.Errorf("%s: %d bytes of the DDR, the input alone has %d", name, got, in)
					}
					if bound := r.Sim.Bound.Ps(); r.Sim.TotalPs < bound {
						t.Errorf("%s: %d ps, below the bound of %d", name, r.Sim.TotalPs, bound)
					}
					if batch != c.batches[0] || c.network != "toy-fig3" {
						continue
					}
					again, err := scheduler.Run(context.Background(), src, spec, batch, v, scheduler.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if again.Sim.TotalPs != r.Sim.TotalPs || !reflect.DeepEqual(again.Program, r.Program) {
						t.Errorf("%s: a second run gives another program", name)
					}
				}
			}
		}
	}
}

// With the LLB in the role of the L1, clusters share the work even of a single image,
// and an L1's size does not matter any more.
func TestAcrossClusters(t *testing.T) {
	spec := load(t, "stcp920")
	small := load(t, "stcp920-paper")
	for _, v := range recipes.Table() {
		r, err := scheduler.Run(context.Background(), open(t, "resnet50"), spec, 1, v,
			scheduler.Options{Level: scheduler.LevelLLB})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Shares) != 1 || r.Schedule.L1Capacity > int64(spec.LLB.SizeBytes) {
			t.Errorf("%s: shares %v and an L1 of %d bytes, want one share and at most the LLB's %v", v.Name, r.Shares,
				r.Schedule.L1Capacity, spec.LLB.SizeBytes)
		}
		most := int64(0)
		for i := range r.Schedule.Steps {
			most = max(most, r.Schedule.Steps[i].Cores)
		}
		if most != int64(spec.Clusters) {
			t.Errorf("%s: at most %d clusters work on the image, want %d", v.Name, most, spec.Clusters)
		}
		other, err := scheduler.Run(context.Background(), open(t, "resnet50"), small, 1, v,
			scheduler.Options{Level: scheduler.LevelLLB})
		if err != nil {
			t.Fatal(err)
		}
		if other.Sim.TotalPs != r.Sim.TotalPs {
			t.Errorf("%s: %d ps with an L1 of 1 MiB, %d with 64 KiB", v.Name, r.Sim.TotalPs, other.Sim.TotalPs)
		}
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Run(context.Background(), open(t, "toy-fig3"), spec, 1, v,
		scheduler.Options{Level: "l2"}); err == nil || !strings.Contains(err.Error(), `"l2"`) {
		t.Errorf("an unknown level gives %v", err)
	}
}

// An L1 so large that everything fits: nothing is split, nothing spills, and what is
// gained over a kernel per layer is gained across layers (§3.6).
func TestLargeL1(t *testing.T) {
	spec := load(t, "stcp920")
	spec.L1.SizeBytes = 1 << 30
	for _, name := range []string{"resnet50", "bert-128", "toy-fig3"} {
		ps := map[string]int64{}
		for _, v := range recipes.Table() {
			r, err := scheduler.Run(context.Background(), open(t, name), spec, 16, v, scheduler.Options{Chunk: 4})
			if err != nil {
				t.Fatal(err)
			}
			ps[v.Name] = r.Sim.TotalPs
			for _, sg := range r.Schedule.Grouping.Groups {
				if sg.Factor() != 1 {
					t.Errorf("%s, %s: %s has %d instances", name, v.Name, sg.Name, sg.Factor())
				}
			}
			for _, sp := range r.Schedule.Spills {
				if sp.From == schedule.L1 {
					t.Errorf("%s, %s: value %d leaves the L1", name, v.Name, sp.Value)
				}
			}
		}
		if ps["cross-layer"] >= ps["ordering"] || ps["ordering"] >= ps["tvm"] {
			t.Errorf("%s: %d ps of tvm, %d of ordering, %d of cross-layer, want each faster than the one before", name,
				ps["tvm"], ps["ordering"], ps["cross-layer"])
		}
	}
}

// Where there is no LLB, weights that fit the cores' weight parts come from the DDR
// once, however many rounds there are.
func TestWeightsStayWithoutLLB(t *testing.T) {
	spec := load(t, "ipu")
	src := open(t, "resnet50")
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	var ddr [2]int64
	for i, batch := range []int64{8, 32} { // rounds of 4 on each of two chips
		r, err := scheduler.Run(context.Background(), src, spec, batch, v, scheduler.Options{Chunk: 4})
		if err != nil {
			t.Fatal(err)
		}
		ddr[i] = r.Sim.Dynamic.LevelBytes[isa.DDR]
	}
	g, err := src.Graph(1)
	if err != nil {
		t.Fatal(err)
	}
	image := int64(0)
	for _, id := range append(append([]model.TensorID(nil), g.Inputs...), g.Outputs...) {
		image += g.Tensor(id).Bytes()
	}
	// A core's halo makes it read a little more of the image than its own rows.
	if more := ddr[1] - ddr[0]; more < 24*image || more > 24*image*3/2 {
		t.Errorf("24 more images move %d bytes more, want about their own %d", more, 24*image)
	}
}

// A grid changes bindings and nothing that must hold.
func TestGridOfCores(t *testing.T) {
	spec := load(t, "a100")
	spec.CoreTypes[0].Grid = []int{9, 12}
	for _, name := range []string{"toy-fig3", "resnet50"} {
		for _, v := range append(recipes.Table(), recipes.ConvFusion()) {
			r, err := scheduler.Run(context.Background(), open(t, name), spec, 8, v, scheduler.Options{Chunk: 8})
			if err != nil {
				t.Errorf("%s, %s: %v", name, v.Name, err)
				continue
			}
			columns := false
			for i := range r.Schedule.Steps {
				b := r.Schedule.Steps[i].Binding
				columns = columns || len(b) == 4 && b[0] > 1 && b[1] > 1
			}
			if !columns {
				t.Errorf("%s, %s: no layer has images along one dimension of the grid and channels along the other", name, v.Name)
			}
		}
	}
}

// The tailored network's blocks become one kernel each, with their first result inside.
func TestConvFusion(t *testing.T) {
	spec := load(t, "a100")
	src := open(t, "resnet18-tailor")
	table := recipes.Table()
	tvm, err := scheduler.Run(context.Background(), src, spec, 8, table[0], scheduler.Options{Chunk: 8})
	if err != nil {
		t.Fatal(err)
	}
	fused, err := scheduler.Run(context.Background(), src, spec, 8, recipes.ConvFusion(), scheduler.Options{Chunk: 8})
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for k, layers := range fused.Schedule.Layers {
		if len(layers) > 2 {
			t.Errorf("kernel %d has %d layers", k, len(layers))
		}
		if len(layers) == 2 {
			pairs++
		}
	}
	if pairs != 8 { // two in each of the four stages
		t.Errorf("%d pairs, want 8", pairs)
	}
	if got, want := fused.Schedule.Kernels(), tvm.Schedule.Kernels()-pairs; got != want {
		t.Errorf("%d kernels, want %d", got, want)
	}
	inner := 0
	for i := range fused.Schedule.Values {
		v := &fused.Schedule.Values[i]
		if v.Instance < 0 {
			continue
		}
		out := false
		for _, o := range fused.Schedule.Grouping.Groups[fused.Schedule.Instances.Instances[v.Instance].Group].Outputs {
			out = out || o == v.Tensor
		}
		if out != (v.Level.String() == "DDR") {
			t.Errorf("%q is in the %v", fused.Schedule.Graph.Tensor(v.Tensor).Name, v.Level)
		}
		if !out {
			inner++
		}
	}
	if inner != pairs {
		t.Errorf("%d results stay inside a kernel, want %d", inner, pairs)
	}
}
