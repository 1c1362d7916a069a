package graphturbo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
)

// options describes one cluster of the STCP920: 8 cores with 1 MiB of L1 data.
var options = schedule.SplitOptions{L1Bytes: 8 << 20, Cores: 8, MACsPerSecond: 16.4e12, VectorOpsPerSecond: 512e9,
	LLBBytesPerSecond: 256e9}

func grouped(g *model.Graph, opt schedule.SplitOptions) *schedule.Grouping {
	gr, _ := graphturbo.Group(context.Background(), g, opt)
	return gr
}

func network(t testing.TB, name string, batch int64) *model.Graph {
	t.Helper()
	g, err := zoo.Build(name, zoo.Options{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	if g, _, err = simplify.Run(g); err != nil {
		t.Fatal(err)
	}
	return g
}

// summary lists factor and dimension of each sub-graph, with the stage of its
// last convolution.
func summary(g *model.Graph, gr *schedule.Grouping) []string {
	var out []string
	for _, sg := range gr.Groups {
		stage := "head"
		for _, id := range sg.Ops {
			op := g.Op(id)
			if op.Kind == "Conv" {
				stage = strings.SplitN(op.Name, ".", 2)[0]
			}
		}
		out = append(out, fmt.Sprintf("%s/%d@%d", stage, sg.Factor(), sg.SplitDim()))
	}
	return out
}

// The vendor's hand partition of ResNet-50 is four groups, the stages, split along
// the batch by 8, 4, 2 and 1 (vendor's compiler guide), at 8 images per cluster, the
// paper's own example. Stem and head join their neighbours.
func TestVendorPartitionOfResNet50(t *testing.T) {
	for _, c := range []struct {
		images  int64
		inPlace bool
		want    []string
	}{
		{8, false, []string{"stage1/8@0", "stage2/4@0", "stage3/2@0", "stage4/1@-1"}},
		// Twice the images: twice the factors. The head needs no split and follows a
		// sub-graph that does, so rule (i) keeps it apart.
		{16, false, []string{"stage1/16@0", "stage2/8@0", "stage3/4@0", "stage4/2@0", "head/1@-1"}},
		// With Add and ReLU in place less memory is needed, factors meet and stages
		// fall together.
		{8, true, []string{"stage2/4@0", "stage4/2@0"}},
	} {
		g := network(t, "resnet50", c.images)
		opt := options
		opt.InPlace = c.inPlace
		gr := grouped(g, opt)
		if err := schedule.CheckGrouping(g, gr); err != nil {
			t.Fatal(err)
		}
		if got := summary(g, gr); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d images, in place %t: groups %v, want %v", c.images, c.inPlace, got, c.want)
		}
	}
}

// Each stage holds exactly its own blocks: the boundaries lie at the last addition
// of a stage, up to the ReLU behind it.
func TestStageBoundaries(t *testing.T) {
	g := network(t, "resnet50", 8)
	gr := grouped(g, options)
	for k, sg := range gr.Groups {
		for _, id := range sg.Ops {
			op := g.Op(id)
			if op.Kind != "Conv" || strings.HasPrefix(op.Name, "stem") {
				continue
			}
			if want := fmt.Sprintf("stage%d.", k+1); !strings.HasPrefix(op.Name, want) {
				t.Errorf("group %d holds %q", k, op.Name)
			}
		}
	}
}

// The conv and identity block of the paper's Fig. 5 become one sub-graph; branch
// patterns come before the straight ones that they enable.
func TestBlocksOfFigure5(t *testing.T) {
	b := model.NewBuilder("fig5")
	conv := func(name string, x model.TensorID, out, kernel int64) model.TensorID {
		in := b.Tensor(x).Shape[1]
		w := b.Param(name+".w", model.F16, out, in, kernel, kernel)
		p := kernel / 2
		x = b.Op("Conv", name, model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
			Pads: []int64{p, p, p, p}, Group: 1}, x, w)
		return x
	}
	relu := func(name string, x model.TensorID) model.TensorID { return b.Op("Relu", name, model.Attr{}, x) }
	x := b.Input("x", model.F16, 8, 64, 56, 56)
	y := relu("r1", conv("c1", x, 64, 1))
	y = relu("r2", conv("c2", y, 64, 3))
	y = conv("c3", y, 256, 1)
	y = relu("r3", b.Op("Add", "add1", model.Attr{}, y, conv("shortcut", x, 256, 1)))
	z := relu("r4", conv("c4", y, 64, 1))
	z = relu("r5", conv("c5", z, 64, 3))
	z = conv("c6", z, 256, 1)
	// The paper draws the addition and the ReLU behind it as one node; the ReLU alone
	// needs a smaller factor, so rule (i) leaves it to the block that follows.
	b.Output(b.Op("Add", "add2", model.Attr{}, z, y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	gr := grouped(g, options)
	if len(gr.Groups) != 1 || gr.Groups[0].Factor() != 8 {
		t.Errorf("groups %v, want one split by 8", summary(g, gr))
	}
	branches := 0
	for _, e := range gr.Events {
		if e.Accepted && e.Pattern == "branch" {
			branches++
		}
	}
	if branches != 2 {
		t.Errorf("%d branches were merged, want the two additions", branches)
	}
}

// Straight chains obey rule (i) by its two conditions.
func TestRuleOne(t *testing.T) {
	// An operator of this output size and input size per image; L1 of 100 units.
	chain := func(channels ...int64) *schedule.Grouping {
		b := model.NewBuilder("chain")
		x := b.Input("x", model.F16, 8, channels[0], 8, 8)
		for i, c := range channels[1:] {
			w := b.Param(fmt.Sprintf("w%d", i), model.F16, c, b.Tensor(x).Shape[1], 1, 1)
			x = b.Op("Conv", fmt.Sprintf("conv%d", i),
				model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: make([]int64, 4), Group: 1}, x, w)
		}
		b.Output(x)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		opt := options
		opt.L1Bytes = 64 * 2 * 8 * 100 // eight images of 100 channels
		return grouped(g, opt)
	}
	for _, c := range []struct {
		name     string
		channels []int64
		factors  []int64
	}{
		{"all fits", []int64{10, 20, 30}, []int64{1}},
		{"shrinking: a large factor does not reach later groups", []int64{300, 80, 10}, []int64{4, 1}},
		{"growing: earlier groups take the larger factor", []int64{10, 80, 300}, []int64{4}},
	} {
		gr := chain(c.channels...)
		var got []int64
		for _, sg := range gr.Groups {
			got = append(got, sg.Factor())
		}
		if !reflect.DeepEqual(got, c.factors) {
			t.Errorf("%s: factors %v, want %v", c.name, got, c.factors)
		}
	}
}

// Behind an up-sampling operator the rule is mirrored: the large factor of what
// follows does not reach back.
func TestUpsampling(t *testing.T) {
	b := model.NewBuilder("up")
	x := b.Input("x", model.F16, 8, 64, 8, 8)
	x = b.Op("Relu", "small", model.Attr{}, x)
	x = b.Op("Resize", "up", model.Attr{Shape: []int64{8, 64, 64, 64}, Kernel: []int64{1, 1, 1, 1}}, x)
	x = b.Op("Relu", "large", model.Attr{}, x)
	b.Output(x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	opt := options
	opt.L1Bytes = 2 << 20
	gr := grouped(g, opt)
	if err := schedule.CheckGrouping(g, gr); err != nil {
		t.Fatal(err)
	}
	if len(gr.Groups) < 2 || gr.Groups[0].Factor() != 1 || gr.Groups[len(gr.Groups)-1].Factor() <= 1 {
		t.Fatalf("groups %v, want a small unsplit one in front of a split one", summary(g, gr))
	}
	mirrored := false
	for _, e := range gr.Events {
		mirrored = mirrored || strings.Contains(e.Reason, "mirrored")
	}
	if !mirrored {
		t.Error("no event names the mirrored rule")
	}
	// The producer feeds several finer instances: a split operator is put in between.
	ig := schedule.NewInstanceGraph(g, gr)
	order := graphturbo.BFS(ig)
	bind, scope := graphturbo.BindGrid(g, gr, ig, order, []int64{8}, schedule.SlicesAlike)
	found := false
	for _, j := range graphturbo.Join(g, gr, ig, order, bind, scope, schedule.SlicesAlike) {
		found = found || j.Kind == schedule.SplitOp
	}
	if !found {
		t.Error("no split operator between a coarse producer and its finer consumers")
	}
}

// Algorithm 1 against the definition: over all dimensions and all candidates, the
// smallest factor with which the largest instance fits.
func TestSplitInfoAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	smaller, uneven := int64(0), 0
	for trial := 0; trial < 200; trial++ {
		b := model.NewBuilder("random")
		x := b.Input("x", model.F16, 1+rng.Int63n(12), 1+rng.Int63n(20), 4+rng.Int63n(20), 4+rng.Int63n(20))
		for i, n := 0, 1+rng.Intn(4); i < n; i++ {
			name := fmt.Sprintf("op%d", i)
			switch rng.Intn(3) {
			case 0:
				x = b.Op("Relu", name, model.Attr{}, x)
			case 1:
				w := b.Param(name+".w", model.F16, 1+rng.Int63n(20), b.Tensor(x).Shape[1], 3, 3)
				x = b.Op("Conv", name, model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
					Pads: []int64{1, 1, 1, 1}, Group: 1}, x, w)
			default:
				x = b.Op("Add", name, model.Attr{}, x, x)
			}
		}
		b.Output(x)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		ops := schedule.ExecutionOrder(g)
		outputs := g.Outputs
		opt := options
		opt.L1Bytes = 500 + rng.Int63n(60000)
		opt.Uneven = schedule.Uneven(trial % 3)
		infos, peak := graphturbo.NewSplitter(g, opt).SplitInfo(ops, outputs)
		if n := g.Tensor(outputs[0]).Shape[0]; len(infos) == 0 && (n >= 8 || n&(n-1) == 0) && (peak+n-1)/n <= opt.L1Bytes {
			t.Fatalf("trial %d: nothing found, though one of %d images fits", trial, n)
		}
		for _, info := range infos {
			most := int64(0)
			for q := int64(0); q < info.Factor; q++ {
				reg := schedule.InstanceRegions(g, ops, outputs, info.Dim, info.Factor, q)
				most = max(most, schedule.Peak(g, ops, outputs, reg, schedule.PeakOptions{}))
			}
			if most > opt.L1Bytes {
				t.Fatalf("trial %d: %+v needs %d of %d bytes", trial, info, most, opt.L1Bytes)
			}
			tr := schedule.Track(g, ops, outputs, info.Dim)
			// Factor v cuts the output into so many pieces, and divides what the setting asks.
			cuts := func(v int64) bool {
				n := g.Tensor(outputs[0]).Shape[info.Dim]
				size := (n + v - 1) / v
				if (v-1)*size >= n || opt.Uneven == schedule.UnevenNone && n%v != 0 {
					return false
				}
				for _, id := range ops[:len(ops)-1] {
					if o := g.Op(id).Outputs[0]; opt.Uneven != schedule.UnevenAll && tr.Dim[o] >= 0 &&
						g.Tensor(o).Shape[tr.Dim[o]]%v != 0 {
						return false
					}
				}
				return true
			}
			if !cuts(info.Factor) {
				t.Fatalf("trial %d: %+v does not cut %v, uneven %v", trial, info, g.Tensor(outputs[0]).Shape, opt.Uneven)
			}
			if g.Tensor(outputs[0]).Shape[info.Dim]%info.Factor != 0 {
				uneven++
			}
			// Lines 4 to 10 as printed.
			least := int64(1)
			for ; least < info.Factor; least++ {
				divides := true
				for _, id := range ops[:len(ops)-1] {
					o := g.Op(id).Outputs[0]
					divides = divides && (opt.Uneven == schedule.UnevenAll || tr.Dim[o] < 0 || g.Tensor(o).Shape[tr.Dim[o]]%least == 0)
				}
				if (peak+least-1)/least <= opt.L1Bytes && divides && (least >= 8 || least&(least-1) == 0) {
					break
				}
			}
			if info.Compared() != least {
				t.Fatalf("trial %d: Eq. (1) compares %d of %+v, by lines 4 to 10 it is %d", trial, info.Compared(), info, least)
			}
			smaller += min(1, info.Factor-least)
			// No smaller candidate fits along the batch, where nothing is computed twice.
			if info.Dim != 0 {
				continue
			}
			for v := int64(1); v < info.Factor; v++ {
				candidate := v <= 8 && v&(v-1) == 0 || v > 8
				if !candidate || !cuts(v) {
					continue
				}
				reg := schedule.InstanceRegions(g, ops, outputs, 0, v, 0)
				if p := schedule.Peak(g, ops, outputs, reg, schedule.PeakOptions{}); p <= opt.L1Bytes {
					t.Fatalf("trial %d: factor %d fits (%d bytes of %d), Algorithm 1 took %d", trial, v, p, opt.L1Bytes, info.Factor)
				}
			}
		}
	}
	if uneven == 0 {
		t.Error("no factor leaves a shorter last piece")
	}
	if smaller == 0 {
		t.Error("no factor that Eq. (1) compares is below the one that divides")
	}
}

// At 32 images a convolution behind MobileNetV2's stem needs at least 12 parts along the
// batch as along the channels; the batch is outermost.
func TestEquationOneTakesTheOutermost(t *testing.T) {
	g := network(t, "mobilenetv2", 32)
	for _, divisors := range []bool{false, true} {
		opt := options
		opt.Divisors = divisors
		channels := 0
		for _, sg := range grouped(g, opt).Groups {
			if sg.SplitDim() == 1 {
				channels++
			}
		}
		if (channels > 0) != divisors {
			t.Errorf("%d groups are split along the channels; factors that divide the output compared: %t", channels, divisors)
		}
	}
}

func TestBestIsLexicographic(t *testing.T) {
	infos := []schedule.SplitInfo{
		{Ops: 3, Factor: 8, Dim: 0, Depth: 0},
		{Ops: 4, Factor: 9, Dim: 1, Depth: 3},
		{Ops: 4, Factor: 4, Dim: 2, Depth: 2},
		{Ops: 4, Factor: 4, Dim: 3, Depth: 1},
	}
	if got := graphturbo.Best(infos); got.Dim != 3 {
		t.Errorf("best is dimension %d, want 3: most operators, then smallest factor, then outermost", got.Dim)
	}
	if got := graphturbo.Best(nil); got.Factor != schedule.Unsplittable {
		t.Errorf("best of nothing has factor %d", got.Factor)
	}
}

// fourStages is the paper's running example (Fig. 3 and 6): stages split into 8, 4,
// 2 and 1 instances, each reading two of the stage before.
func fourStages() *schedule.InstanceGraph {
	ig := &schedule.InstanceGraph{}
	previous := 0
	for stage, n := range []int{8, 4, 2, 1} {
		first := len(ig.Instances)
		ig.First = append(ig.First, first)
		for q := 0; q < n; q++ {
			inst := schedule.Instance{ID: len(ig.Instances), Group: stage, Index: int64(q)}
			if stage > 0 {
				inst.Deps = []schedule.Dep{{From: previous + 2*q}, {From: previous + 2*q + 1}}
			}
			ig.Instances = append(ig.Instances, inst)
		}
		previous = first
	}
	ig.Consumers = make([][]int, len(ig.Instances))
	for i, inst := range ig.Instances {
		for _, d := range inst.Deps {
			ig.Consumers[d.From] = append(ig.Consumers[d.From], i)
		}
	}
	return ig
}

func groups(ig *schedule.InstanceGraph, order []int) string {
	var b strings.Builder
	for _, i := range order {
		fmt.Fprint(&b, ig.Instances[i].Group+1)
	}
	return b.String()
}

// Figure 7: the breadth-first order runs stage by stage, the depth-first one runs a
// consumer as soon as its inputs are there (Fig. 3b).
func TestOrdersOfFigure7(t *testing.T) {
	ig := fourStages()
	for _, c := range []struct {
		name  string
		order []int
		want  string
	}{
		{"bfs", graphturbo.BFS(ig), "111111112222334"},
		{"dfs", graphturbo.DFS(ig), "112112311211234"},
	} {
		if err := schedule.CheckOrder(&schedule.Schedule{Instances: ig, Order: c.order}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := groups(ig, c.order); got != c.want {
			t.Errorf("%s runs %s, want %s", c.name, got, c.want)
		}
	}
}

// Of the two, the order that moves fewer bytes wins.
func TestOrderKeepsTheBetter(t *testing.T) {
	ig := fourStages()
	items := make([]schedule.OrderItem, len(ig.Instances))
	for i, inst := range ig.Instances {
		items[i] = schedule.OrderItem{OutputBytes: 4, WorkspaceBytes: 4, Seconds: 1}
		for _, d := range inst.Deps {
			items[i].Reads = append(items[i].Reads, d.From)
		}
	}
	order, name, costs := graphturbo.Order(ig, items, 14)
	if name != "dfs" || groups(ig, order) != "112112311211234" {
		t.Errorf("kept %s (%v)", name, costs)
	}
	if costs[1].Cost.MovedBytes >= costs[0].Cost.MovedBytes {
		t.Errorf("costs %+v, want fewer bytes for dfs", costs)
	}
	// The proven optimum of this instance is 24 bytes.
	if costs[1].Cost.MovedBytes < 24 {
		t.Errorf("dfs moves %d bytes, below the proven optimum of 24", costs[1].Cost.MovedBytes)
	}
}

// Random graphs: both orders are valid whatever the shape.
func TestOrdersAreValid(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for trial := 0; trial < 300; trial++ {
		n := 1 + rng.Intn(30)
		ig := &schedule.InstanceGraph{Consumers: make([][]int, n)}
		for i := 0; i < n; i++ {
			inst := schedule.Instance{ID: i}
			for j := 0; j < i; j++ {
				if rng.Intn(4) == 0 {
					inst.Deps = append(inst.Deps, schedule.Dep{From: j})
					ig.Consumers[j] = append(ig.Consumers[j], i)
				}
			}
			ig.Instances = append(ig.Instances, inst)
		}
		for _, order := range [][]int{graphturbo.BFS(ig), graphturbo.DFS(ig)} {
			if err := schedule.CheckOrder(&schedule.Schedule{Instances: ig, Order: order}); err != nil {
				t.Fatalf("trial %d: %v", trial, err)
			}
		}
	}
}

// A split operator yields several outputs; Algorithm 1 takes a factor that suits all.
func TestSeveralOutputs(t *testing.T) {
	b := model.NewBuilder("split")
	x := b.Input("x", model.F16, 8, 64, 64, 64)
	ys := b.OpN("Split", "split", model.Attr{Axis: 1, Splits: []int64{16, 48}}, x)
	b.Output(b.Op("Relu", "a", model.Attr{}, ys[0]), b.Op("Relu", "b", model.Attr{}, ys[1]))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	opt := options
	opt.L1Bytes = 3 << 20
	gr := grouped(g, opt)
	if err := schedule.CheckGrouping(g, gr); err != nil {
		t.Fatal(err)
	}
	ig := schedule.NewInstanceGraph(g, gr)
	if err := schedule.CheckInstances(g, gr, ig); err != nil {
		t.Fatal(err)
	}
	if f := gr.Groups[0].Factor(); f < 2 {
		t.Errorf("the split operator has factor %d, want at least 2", f)
	}
}

// Algorithm 4 on the four stages of ResNet-50: every instance uses all cores, and
// factors divide their extents.
func TestBindUsesAllCores(t *testing.T) {
	g := network(t, "resnet50", 8)
	gr := grouped(g, options)
	ig := schedule.NewInstanceGraph(g, gr)
	order := graphturbo.DFS(ig)
	bind, scope := graphturbo.BindGrid(g, gr, ig, order, []int64{8}, schedule.SlicesAlike)
	for i, b := range bind {
		inst := &ig.Instances[i]
		out := gr.Groups[inst.Group].Outputs[0]
		if err := schedule.CheckBinding(inst.Regions[out], b, nil, 8); err != nil {
			t.Errorf("instance %d: %v", i, err)
		}
		if inst.Group < 3 && b.Cores() != 8 {
			t.Errorf("instance %d of group %d is bound %v, want all 8 cores", inst.Index, inst.Group, b)
		}
		if scope[i] == schedule.DDR {
			t.Errorf("instance %d has scope DDR, Algorithm 4 knows L1 and LLB", i)
		}
	}
	// Stage 1 runs one image at a time: its rows are spread. Stage 2 two images: both
	// dimensions are.
	if got := bind[0]; !got.Equal(schedule.Binding{1, 1, 8, 1}) {
		t.Errorf("stage 1 is bound %v (N,C,H,W), want 8 along H", got)
	}
	if got := bind[8]; !got.Equal(schedule.Binding{2, 1, 4, 1}) {
		t.Errorf("stage 2 is bound %v (N,C,H,W), want 2 along N and 4 along H", got)
	}
	joins := map[schedule.JoinKind]int{}
	for _, j := range graphturbo.Join(g, gr, ig, order, bind, scope, schedule.SlicesAlike) {
		joins[j.Kind]++
	}
	if joins[schedule.Concat] != 7 {
		t.Errorf("%d concats, want one in front of each of the 4+2+1 consumers of two producers", joins[schedule.Concat])
	}
	if joins[schedule.Redistribute] == 0 {
		t.Error("no redistribution between differently bound stages")
	}
}

// A spec in which one tile does not fit is refused with the tensor and the bytes.
func TestDoesNotFit(t *testing.T) {
	g := network(t, "resnet50", 1)
	spec, err := hardware.Load("stcp920-paper")
	if err != nil {
		t.Fatal(err)
	}
	spec.L1.SizeBytes = 512
	gr := grouped(g, schedule.SplitOptions{L1Bytes: 8 * 384, Cores: 8, MACsPerSecond: 1, VectorOpsPerSecond: 1,
		LLBBytesPerSecond: 1e12})
	s := &schedule.Schedule{Graph: g, Spec: spec, Grouping: gr, Instances: schedule.NewInstanceGraph(g, gr)}
	for _, sg := range gr.Groups {
		s.Layers = append(s.Layers, schedule.Layers(g, sg.Ops))
	}
	s.Order = graphturbo.BFS(s.Instances)
	s.Bindings, s.Scopes = graphturbo.BindGrid(g, gr, s.Instances, s.Order, []int64{8}, schedule.SlicesAlike)
	if err := s.BuildSteps(context.Background(), schedule.L1); err != nil {
		t.Fatal(err)
	}
	var dnf *graphturbo.DoesNotFitError
	if err := graphturbo.Place(s, scheduler.Placing{Rule: graphturbo.LongestLifetime}, nil); !errors.As(err, &dnf) {
		t.Fatalf("got %v, want a DoesNotFitError", err)
	}
	if dnf.Missing <= 0 || dnf.Tensor == "" || dnf.Needed-dnf.Has != dnf.Missing {
		t.Errorf("the error says %+v", dnf)
	}
}

// Groups of a cancelled context are none.
func TestGroupCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := network(t, "resnet18", 1)
	if made, err := graphturbo.Group(ctx, g, options); made == nil || err != nil {
		t.Fatal(made, err)
	}
	cancel()
	if made, err := graphturbo.Group(ctx, g, options); made != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", made, err)
	}
}
