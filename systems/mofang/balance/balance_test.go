package balance

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/systems/mofang/layering"
	"github.com/dsasched/dsasched/systems/mofang/partition"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

func operators(t *testing.T, name string, batch int64) (*streams.Device, []streams.Operator) {
	t.Helper()
	net, err := network.Open(name, network.Options{DType: model.F32})
	if err != nil {
		t.Fatal(err)
	}
	g, err := net.Graph(batch)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("v100")
	if err != nil {
		t.Fatal(err)
	}
	d, err := streams.NewDevice(spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	ops, _, err := streams.Operators(g, d)
	if err != nil {
		t.Fatal(err)
	}
	return d, ops
}

// On every network that fits: exact <= mofang <= greedy.
func TestLayerOperators(t *testing.T) {
	for _, name := range []string{"inception-v3", "resnet50", "squeezenet", "inception-v1", "vgg16"} {
		d, ops := operators(t, name, 1)
		got := map[string]*Layering{}
		for _, m := range LayerMethods() {
			r, err := LayerOperators(context.Background(), name, &d.Machine, ops, m.Name, LayerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got[m.Name] = r
			n := 0
			for _, l := range r.Layers {
				n += len(l.Numbers)
			}
			if n != len(ops) || math.Abs(r.Greedy-got["mofang"].Greedy) > 1e-15 {
				t.Errorf("%s, %s: %d of %d operators", name, m.Name, n, len(ops))
			}
		}
		t.Logf("%s: sequential %.4g, greedy %.4g, mofang %.4g, exact %.4g ms, %d sets", name, 1e3*got["sequential"].Seconds,
			1e3*got["greedy"].Seconds, 1e3*got["mofang"].Seconds, 1e3*got["exact"].Seconds, got["exact"].Sets)
		const eps = 1 + 1e-9
		for m, r := range got {
			if (r.Status == milp.Optimal) != (r.Seconds <= r.Bound*eps) {
				t.Errorf("%s, %s: %s at %v s, bound %v", name, m, r.Status, r.Seconds, r.Bound)
			}
		}
		if e := got["exact"]; e.Status != milp.Optimal || e.Seconds > eps*got["mofang"].Seconds ||
			got["mofang"].Seconds > eps*got["greedy"].Seconds {
			t.Errorf("%s: %s %v, mofang %v, greedy %v", name, e.Status, e.Seconds, got["mofang"].Seconds, got["greedy"].Seconds)
		}
	}
}

// What is not proven has a bound all the same: blocks too large to be searched, and limits.
func TestLayeringBound(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  LayerOptions
	}{{"nasnet-mobile", LayerOptions{}}, {"inception-v3", LayerOptions{Options: layering.Options{WorkLimit: 1}}}} {
		d, ops := operators(t, c.name, 1)
		for _, m := range LayerMethods() {
			r, err := LayerOperators(t.Context(), c.name, &d.Machine, ops, m.Name, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status == milp.Optimal || r.Bound < r.Seconds/4 || r.Bound > r.Seconds {
				t.Errorf("%s, %s: %s, %v s, bound %v", c.name, m.Name, r.Status, r.Seconds, r.Bound)
			}
			t.Logf("%s, %s: %.4g ms, bound %.4g", c.name, m.Name, 1e3*r.Seconds, 1e3*r.Bound)
		}
	}
}

// The last block of Inception-v3 by the whole way from the network: 180 sets and 4860
// transitions, and a proof that checks itself.
func TestLastInceptionBlock(t *testing.T) {
	d, ops := operators(t, "inception-v3", 1)
	cuts := streams.Cuts(ops)
	for b := range cuts[1:] {
		lo, hi := cuts[b], cuts[b+1]
		if hi-lo < 10 || lo < len(ops)/2 || cuts[b+2]-hi > 1 {
			continue
		}
		p := &layering.Problem{Name: "block"}
		for i := lo; i < hi; i++ {
			var after []int
			for _, h := range ops[i].After {
				if h >= lo {
					after = append(after, h-lo)
				}
			}
			p.After = append(p.After, after)
		}
		p.Price = func(set []int) float64 {
			shifted := make([]int, len(set))
			for k, i := range set {
				shifted[k] = lo + i
			}
			_, phases := d.Best(ops, shifted)
			return streams.Seconds(phases)
		}
		r, err := layering.Solve(context.Background(), p, "exact", layering.Options{})
		if err != nil || r.Sets != 180 || r.Transitions != 4860 {
			t.Errorf("%d sets, %d transitions, %v", r.Sets, r.Transitions, err)
		}
		return
	}
	t.Error("no last block")
}

func TestPipeline(t *testing.T) {
	n, err := chips.Load("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("resnet50", network.Options{DType: model.F32})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChain(net, n, 64, 0)
	if err != nil {
		t.Fatal(err)
	}
	weights := 0.0
	for _, cost := range c.Costs {
		weights += cost.WeightBytes
	}
	// ResNet-50 has 25.6 million parameters; 4 bytes each, three times. The fifty
	// thousand of batch normalisation may be folded.
	if math.Abs(weights/12-25.56e6) > 0.1e6 {
		t.Errorf("%v parameters", weights/12)
	}
	fewer := math.Inf(1)
	for devices := 1; devices <= 16; devices += 3 {
		got := map[string]*Pipeline{}
		for _, m := range PipelineMethods() {
			p, err := c.Pipeline(context.Background(), devices, m.Name, PipelineOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got[m.Name] = p
			layers := 0
			for _, s := range p.Stages {
				layers += s.Layers
			}
			if layers != len(c.Costs) || len(p.Stages) > devices || p.Simulated.Seconds <= 0 {
				t.Errorf("%d devices, %s: %+v", devices, m.Name, p)
			}
		}
		exact := got["exact"]
		for _, m := range []string{"gpipe", "mofang"} {
			if got[m].Fits && got[m].Simulated.Seconds < exact.Bound*(1-1e-9) {
				t.Errorf("%d devices: %s takes %v s, the bound is %v s", devices, m, got[m].Simulated.Seconds, exact.Bound)
			}
		}
		for m, p := range got {
			if math.Abs(p.BatchSeconds/p.Simulated.Seconds-1) > 1e-9 {
				t.Errorf("%d devices: %s: %v s, simulated %v s", devices, m, p.BatchSeconds, p.Simulated.Seconds)
			}
		}
		if exact.Simulated.Seconds > fewer {
			t.Errorf("%d devices: %v s, fewer take %v s", devices, exact.Simulated.Seconds, fewer)
		}
		fewer = exact.Simulated.Seconds * (1 + 1e-9)
	}
	if _, err := c.Pipeline(context.Background(), 17, "exact", PipelineOptions{}); err == nil ||
		!strings.Contains(err.Error(), "found 17 devices") {
		t.Errorf("17 devices: %v", err)
	}
	for _, m := range []string{"exact", "gpipe", "mofang"} {
		c.MemoryBytes = 1e6
		if _, err := c.Pipeline(context.Background(), 4, m, PipelineOptions{}); err == nil ||
			!strings.Contains(err.Error(), `operator "stem.conv": found 411155456 bytes for a batch of 64`) {
			t.Errorf("%s, 1 MB: %v", m, err)
		}
	}
	c.MemoryBytes = 2e9 // for each operator, not for a stage
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p, err := c.Pipeline(ctx, 4, "mofang", PipelineOptions{}); err != nil || p.Fits ||
		p.Status != milp.Limit {
		t.Errorf("%+v, %v", p, err)
	}
}

// No plan is below the bound of its case, none that fits is below what exact finds, and exact takes no longer with
// more devices, in 128 cases.
func TestPipelineBounds(t *testing.T) {
	n, err := chips.Load("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, name := range []string{"vgg16", "mobilenetv2", "squeezenet", "inception-v1"} {
		net, err := network.Open(name, network.Options{DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{1, 5, 16, 64} {
			c, err := NewChain(net, n, batch, 0)
			if err != nil {
				t.Fatal(err)
			}
			before := math.Inf(1)
			for _, devices := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
				cases++
				exact, err := c.Pipeline(t.Context(), devices, "exact", PipelineOptions{})
				if err != nil {
					t.Fatal(err)
				}
				took := exact.Simulated.Seconds
				if exact.Status != milp.Optimal || math.Abs(exact.Bound/took-1) > 1e-9 || !exact.Fits || took > before*(1+1e-9) {
					t.Errorf("%s, batch %d, %d devices: %s, %v s, bound %v, with fewer devices %v", name, batch, devices, exact.Status,
						took, exact.Bound, before)
				}
				before = took
				for _, m := range []string{"gpipe", "mofang"} {
					p, err := c.Pipeline(t.Context(), devices, m, PipelineOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if p.Fits && p.Simulated.Seconds < exact.Bound*(1-1e-9) {
						t.Errorf("%s, batch %d, %d devices: %s takes %v s, the bound is %v", name, batch, devices, m,
							p.Simulated.Seconds, exact.Bound)
					}
				}
			}
		}
	}
	if cases != 128 {
		t.Errorf("%d cases", cases)
	}
}

// Mofang's stages are within a twentieth of the optimum and faster than GPipe's. The simulated time equals the
// predicted one, on slow links too.
func TestPipelineChoices(t *testing.T) {
	n, err := chips.Load("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	slow := *n
	slow.LinkBytesPerSecond /= 100
	for _, name := range []string{"vgg16", "resnet50", "inception-v1"} {
		net, err := network.Open(name, network.Options{DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewChain(net, n, 128, 0)
		if err != nil {
			t.Fatal(err)
		}
		run := func(method string) *Pipeline {
			t.Helper()
			p, err := c.Pipeline(t.Context(), 4, method, PipelineOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(p.BatchSeconds/p.Simulated.Seconds-1) > 1e-9 ||
				method == "exact" && (p.Status != milp.Optimal || p.Bound != p.BatchSeconds || !p.Fits) {
				t.Errorf("%s, %s: %s, %v s, simulated %v, bound %v", name, method, p.Status, p.BatchSeconds,
					p.Simulated.Seconds, p.Bound)
			}
			return p
		}
		exact, mofang, gpipe := run("exact"), run("mofang"), run("gpipe")
		if mofang.BatchSeconds > gpipe.BatchSeconds || mofang.BatchSeconds > 1.05*exact.BatchSeconds {
			t.Errorf("%s: gpipe %v s, mofang %v, exact %v", name, gpipe.BatchSeconds, mofang.BatchSeconds, exact.BatchSeconds)
		}
		if c, err = NewChain(net, &slow, 128, 0); err != nil {
			t.Fatal(err)
		}
		if slower := run("exact"); slower.BatchSeconds < exact.BatchSeconds {
			t.Errorf("%s: exact %v s, on slow links %v", name, exact.BatchSeconds, slower.BatchSeconds)
		}
		c.MemoryBytes = .3 * exact.Bytes
		if _, err := c.Pipeline(t.Context(), 4, "exact", PipelineOptions{}); err == nil {
			t.Errorf("%s fits in %v bytes", name, c.MemoryBytes)
		}
	}
}

func ExampleLayerOperators() {
	m := &streams.Machine{Name: "v100", Processors: 80}
	ops := []streams.Operator{
		{Name: "a", Blocks: 48, BlockSeconds: 80e-6}, {Name: "b", After: []int{0}, Blocks: 96, BlockSeconds: 80e-6},
		{Name: "c", Blocks: 48, BlockSeconds: 80e-6}, {Name: "d", Blocks: 96, BlockSeconds: 80e-6},
	}
	r, err := LayerOperators(context.Background(), "module", m, ops, "exact", LayerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f ms one by one, %.2f greedily, %.2f at best\n", 1e3*r.Sequential, 1e3*r.Greedy, 1e3*r.Seconds)
	for _, l := range r.Layers {
		fmt.Println(l.Operators)
	}
	// Output:
	// 0.48 ms one by one, 0.40 greedily, 0.32 at best
	// [a d]
	// [b c]
}

// Training steps divided over devices: proven, with colours and both passes contiguous,
// and no worse than the other methods.
func TestDivision(t *testing.T) {
	s, err := chips.Load("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		devices int
	}{{"resnet18", 2}, {"inception-v3", 4}, {"bert-128", 6}} {
		net, err := network.Open(c.name, network.Options{DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(16)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Division(g, s, c.devices, 0)
		if err != nil {
			t.Fatal(err)
		}
		loads := map[string]float64{}
		for _, m := range []string{"exact", "pipedream", "greedy"} {
			r, err := partition.Solve(context.Background(), p, m, partition.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %s: %d nodes, %d classes, %d ideals: %s %.4g ms, bound %.4g, %.2f s", c.name, m, len(p.Nodes), r.Classes,
				r.Ideals, r.Status, 1e3*r.MaxLoad, 1e3*r.Bound, r.Seconds)
			if r.HasDivision() {
				if err := p.Check(r.Division()); err != nil {
					t.Error(err)
				}
				loads[m] = r.MaxLoad
			}
			if m == "exact" && r.Status != milp.Optimal {
				t.Errorf("%s: %s, %s", c.name, r.Status, r.Reason)
			}
		}
		for m, load := range loads {
			if load < loads["exact"] {
				t.Errorf("%s: %s %v, exact %v", c.name, m, load, loads["exact"])
			}
		}
	}
}
