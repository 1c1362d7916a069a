package peers

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/scheduler"
)

//go:embed machines/*.yaml
var machines embed.FS

// golden is the result that a tool's own test expects of a workload on a machine: cycles of a nanosecond, as seconds,
// and joules, 0 if it says nothing of energy.
type golden struct {
	tool, machine, workload string
	seconds, joules         float64
}

const (
	resnet = "resnet18"
	gated  = "swiglu"
	gpt    = "gpt3-175b-prefill"
	decode = "gpt3-175b-decode"

	unfused = "gpt3-175b-prefill, by layer" // of which each layer passes the DDR, as ours does by layer
)

// cases are facts of the tools' tests: tests/main/test_origin of KULeuven-MICAS/zigzag, tests/golden_metrics.json of
// KULeuven-MICAS/stream, tests/regression_reference.json of Accelergy-Project/accelforge.
var cases = []golden{
	{"ZigZag", "tpu_like", resnet, 3703960.5e-9, 1.871e-3},
	{"ZigZag", "edge_tpu_like", resnet, 2887804.5e-9, 1.903e-3},
	{"ZigZag", "ascend_like", resnet, 3032311e-9, 1.940e-3},
	{"ZigZag", "meta_prototype", resnet, 2700449.66e-9, 1.863e-3},
	{"Stream", "eyeriss_like_single_core", gated, 343933021e-9, 0},
	{"Stream", "eyeriss_like_dual_core", gated, 170918067e-9, 0},
	{"Stream", "eyeriss_like_quad_core", gated, 127074661e-9, 0},
	{"Stream", "fusemax", gated, 76808227e-9, 0},
	{"Stream", "meta_prototype_dual_core_simd_offchip", gated, 110100501e-9, 0},
	{"AccelForge", "tpu_v4i", gpt, 0.0563306, 1.17513},
	{"AccelForge", "tpu_v4i", unfused, 0.0595010, 1.33581},
	{"AccelForge", "tpu_v4i", decode, 0.00606649, 0},
}

// recipes are a kernel per layer in the loops that suit it, as ZigZag has it, and the project's own.
var recipes = []string{byLayer, "tiled"}

const byLayer = "by layer"

func recipe(name string) scheduler.Recipe {
	if name != byLayer {
		return harness.Recipe(name)
	}
	return harness.Recipe("tvm", scheduler.Pick{Stage: "nest", Strategy: "tiles"})
}

// why says of each tool what its model has that ours has not, and the other way round.
var why = []string{
	"ZigZag adds up layers, each with the loops that take least by its model. It charges what moves between buffers and registers inside a core, which costs nothing here, and lets no layer fetch " +
		"the next one's weights; ours do. Its networks leave out what is not a product, an addition or a pooling. Our arrays are told which dimension is the reduction; its mappings choose.",
	"Stream's test fixes tiles of 16 tokens by 128 and 32 columns, which leave most of an array idle, moves each tile over links of 4 or 8 bytes a cycle, and finds the best division over cores under these. " +
		"Here tiles are the scheduler's. On `fusemax` no L1 of 2 MiB holds what the bound lets pass once: the gated rows, 4 MiB, go to the DDR and come back.",
	"Stream's `simba` and `tpu_like_quad_core` have no row: of the release compared here (28fb9011ec) their numbers are not at hand. Those of another one (eed1349985: 103,809,024 and 106,954,752 cycles) " +
		"are by another model, in which `eyeriss_like_single_core` takes 442,499,072 cycles in the place of 343,933,021.",
	"AccelForge's figure is the best mapping under its model, with reads and writes of its shared buffer through separate ports of 2048 and 1024 GB/s; here both share their sum. " +
		"Decode is bound by weights, which both read once. Its mappings take less energy in the same time: `tiled` looks at time alone, and where products take all of it, reads what is in the DDR several times.",
	"Where the DDR limits, `tiled` is furthest from the bound, which lets all pass it once: where the L1 is small, tiles read inputs or weights again.",
}

// network opens a workload in the type that its tool counts in.
func (g *golden) network() (network.Network, error) {
	if g.workload != gated {
		name, _, _ := strings.Cut(g.workload, ",")
		return network.Open(name, network.Options{DType: g.dtype()})
	}
	return network.Network{Name: gated, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(gated)
		product := func(name string, x model.TensorID, in, out int64) model.TensorID {
			return b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".weight", model.F16, in, out))
		}
		x := b.Input("x", model.F16, batch, 256, 2048)
		gate := b.Op("Silu", "silu", model.Attr{}, product("gate", x, 2048, 8192))
		b.Output(product("down", b.Op("Mul", "gated", model.Attr{}, gate, product("up", x, 2048, 8192)), 8192, 2048))
		g, err := b.Build()
		if err != nil {
			return nil, err
		}
		s, _, err := simplify.Run(g)
		return s, err
	}}, nil
}

func (g *golden) dtype() model.DType {
	if g.workload == resnet {
		return model.I8
	}
	return model.F16 // Stream's bfloat16 is as wide
}

func (g *golden) spec() (*hardware.Spec, error) {
	name := "machines/" + g.machine + ".yaml"
	data, err := machines.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return hardware.Parse(name, data)
}

// cell is our result by recipe: 0 or an error where there is none.
type cell struct {
	Bound   float64            `json:"certified_lower_bound_s"`
	Term    string             `json:"term"`
	Seconds map[string]float64 `json:"seconds"`
	Joules  map[string]float64 `json:"joules"`
	Limited string             `json:"limited_by"`
	Errors  map[string]string  `json:"errors,omitempty"`
}

// Experiment is the experiment.
func Experiment() harness.Experiment {
	return harness.Experiment{Name: "peers",
		Description: "golden cases of ZigZag, Stream and AccelForge: theirs, ours, our bound",
		Paper:       "none; what the tools' own tests hold", Plan: plan}
}

func plan() (*harness.Plan, error) {
	pl := &harness.Plan{Report: harness.Of(report)}
	for _, g := range cases {
		spec, err := g.spec()
		if err != nil {
			return nil, err
		}
		hash := harness.SpecHash(spec)
		key := strings.ReplaceAll(g.workload, ", by ", "-by-") + "-" + g.machine
		pl.Cells = append(pl.Cells, harness.Cell{Key: key, Label: g.workload + " on " + g.machine,
			Inputs: map[string]any{"network": g.workload, "hardware_sha256": hash, "recipes": recipes},
			Run:    func(ctx context.Context) (any, error) { return g.measure(ctx, spec) }})
	}
	return pl, nil
}

func (g *golden) measure(ctx context.Context, spec *hardware.Spec) (*cell, error) {
	net, err := g.network()
	if err != nil {
		return nil, err
	}
	machine, err := scheduler.Machine(spec, scheduler.LevelAuto)
	if err != nil {
		return nil, err
	}
	out := &cell{Seconds: map[string]float64{}, Joules: map[string]float64{}, Errors: map[string]string{}}
	for _, n := range []network.Network{net, network.FuseAttention(net)} {
		b, err := bound.Cold(ctx, n, machine, 1)
		if err != nil {
			return nil, err
		}
		if x := harness.Round(b.Seconds); out.Bound == 0 || x < out.Bound {
			out.Bound, out.Term = x, b.Term
		}
	}
	for _, name := range recipes {
		made, err := scheduler.Run(ctx, net, spec, 1, recipe(name), scheduler.Options{Chunk: 1})
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			out.Errors[name] = err.Error()
			continue
		}
		out.Seconds[name] = harness.Round(made.LatencySeconds())
		if e := made.Energy(); e != nil {
			out.Joules[name] = harness.Round(e.Total())
		}
		if made.LatencySeconds() < out.Bound {
			return nil, fmt.Errorf("%s takes %g s, its bound is %g s", name, made.LatencySeconds(), out.Bound)
		}
		out.Limited = made.LimitText()
	}
	return out, nil
}

func report(list []cell) (*harness.Report, error) {
	d := harness.NewDocument(Experiment())
	table := harness.Table{Name: "peers", Title: "Golden cases of other tools: time",
		Columns: harness.Columns("<Machine", "<Workload", "ms|theirs|by layer|tiled|bound", "theirs / tiled",
			"tiled / bound"),
		Notes: why}
	energy := harness.Table{Name: "peers-energy", Title: "Golden cases of other tools: energy, and what limits tiled",
		Columns: harness.Columns("<Machine", "mJ|theirs|by layer|tiled", "<limited by")}
	for i, g := range cases {
		c := list[i]
		text := func(x float64) string {
			if x == 0 {
				return "–"
			}
			return harness.Significant(1e3 * x)
		}
		ratio := func(a, b float64) string {
			if a == 0 || b == 0 {
				return "–"
			}
			return harness.Fixed(a/b, 2)
		}
		tiled := c.Seconds["tiled"]
		name, _, _ := strings.Cut(g.machine, "_simd_") // as short as a page needs
		table.Add(name, g.workload, text(g.seconds), text(c.Seconds[byLayer]), text(tiled), text(c.Bound),
			ratio(g.seconds, tiled), ratio(tiled, c.Bound))
		limit, _, _ := strings.Cut(c.Limited, ",")
		energy.Add(name, text(g.joules), text(c.Joules[byLayer]), text(c.Joules["tiled"]), limit)
		for _, r := range recipes {
			if e := c.Errors[r]; e != "" {
				d.Note("%s on %s by %s: %s", g.workload, g.machine, r, e)
			}
		}
	}
	d.Table(table, energy)
	return d.Report(struct {
		Results []cell `json:"results"`
	}{list})
}
