package kernels

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/rules"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
	"github.com/dsasched/dsasched/systems/astitchgpu/tensorrt"
	"github.com/dsasched/dsasched/systems/astitchgpu/xla"
	"github.com/dsasched/dsasched/systems/training"
)

// A Method makes kernels of a graph.
type Method struct {
	Name        string
	Description string
	run         func(ctx context.Context, g *model.Graph, m *simt.Machine) (*Result, error)
}

// Result is a plan, and what the exact method knows of it.
type Result struct {
	*fusion.Plan
	Exact *Exact `json:"exact,omitempty"`
}

var methods = []Method{
	{"astitch", "AStitch: stitching scopes, dominants, adaptive mappings",
		rule(func(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
			return rules.AStitch(g, m, rules.Options{})
		})},
	{"xla", "XLA: producers fused into consumers, no reduction in the middle",
		rule(func(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
			return xla.Fuse(g, m, xla.Options{})
		})},
	{"tvm", "TVM: operators fused with their post-dominators", rule(rules.TVM)},
	{"tensorrt", "TensorRT: library calls with what follows them, element-wise operators together", rule(tensorrt.Fuse)},
	{"framework", "a kernel for each operator, as TensorFlow runs a graph", rule(apart)},
	{"exact", "best kernels and schemes within AStitch's scopes, with proof", exact},
	// The steps of AStitch's ablation between XLA and the whole method.
	{"xla-mapping", "XLA's kernels with AStitch's mappings",
		rule(func(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
			return xla.Fuse(g, m, xla.Options{Adaptive: true})
		})},
	{"astitch-unmerged", "AStitch with every candidate dominant a group of its own",
		rule(func(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
			return rules.AStitch(g, m, rules.Options{NoMerging: true})
		})},
	{"astitch-nearby", "AStitch without remote stitching",
		rule(func(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
			return rules.AStitch(g, m, rules.Options{NoRemote: true})
		})},
}

// Methods lists the methods.
func Methods() []Method { return append([]Method(nil), methods...) }

// MethodNames lists their names.
func MethodNames() []string {
	var names []string
	for _, m := range methods {
		names = append(names, m.Name)
	}
	return names
}

// apart is a plan without fusion. What a framework's host does for each operator is not in it.
func apart(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
	roles, err := fusion.Roles(g)
	if err != nil {
		return nil, err
	}
	var list []fusion.Kernel
	for _, op := range g.Ops {
		switch roles[op.ID] {
		case fusion.View:
		case fusion.Heavy:
			list = append(list, fusion.Library(g, m, op.ID))
		default:
			k, ok := fusion.Single(g, m, []model.OpID{op.ID}, nil, m.Plain)
			if !ok {
				return nil, fmt.Errorf("machine %s can't run the kernel of %q", m.Name, op.Name)
			}
			list = append(list, k)
		}
	}
	return fusion.Finish("framework", g, m, list, func(_, _ model.OpID) string { return "every operator is a kernel" })
}

func rule(make func(*model.Graph, *simt.Machine) (*fusion.Plan, error)) func(context.Context, *model.Graph,
	*simt.Machine) (*Result, error) {
	return func(ctx context.Context, g *model.Graph, m *simt.Machine) (*Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := make(g, m)
		if err != nil {
			return nil, err
		}
		return &Result{Plan: p}, nil
	}
}

// whole lists the methods that know softmaxes as one operator: they stand for systems with a kernel for it.
var whole = []string{"tensorrt", "framework"}

// Open reads a network of the zoo or an ONNX file, simplifies it and takes its operators
// apart, as far as the method has them in parts.
func Open(name string, batch int64, method string, opt network.Options) (*model.Graph, error) {
	g, err := simplified(name, batch, opt)
	if err != nil {
		return nil, err
	}
	return Expand(g, method)
}

// OpenTraining is Open for the training step of a network, see [training.Step].
func OpenTraining(name string, batch int64, method string, opt network.Options) (*model.Graph, error) {
	g, err := simplified(name, batch, opt)
	if err != nil {
		return nil, err
	}
	// Gradients are those of a framework's operators: of a softmax, not of its maximum.
	e, err := grain.To(g, grain.Framework)
	if err != nil {
		return nil, err
	}
	if g, err = training.Step(e.Graph); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return Expand(g, method)
}

func simplified(name string, batch int64, opt network.Options) (*model.Graph, error) {
	g, err := network.Raw(name, batch, opt)
	if err != nil {
		return nil, err
	}
	if g, _, err = simplify.Run(g); err != nil {
		return nil, err
	}
	if len(g.Ops) == 0 {
		return nil, fmt.Errorf("%s: the network has no operators", name)
	}
	return g, nil
}

// Expand takes a graph's operators apart, as far as the method has them in parts.
func Expand(g *model.Graph, method string) (*model.Graph, error) {
	to := grain.Primitive
	if slices.Contains(whole, method) {
		to = grain.Framework
	}
	e, err := grain.To(g, to)
	return e.Graph, err
}

// Run makes kernels of a graph, which should be at the grain that [Open] has for the method,
// by the method of that name.
func Run(ctx context.Context, g *model.Graph, m *simt.Machine, method string) (*Result, error) {
	for _, x := range methods {
		if x.Name == method {
			r, err := x.run(ctx, g, m)
			if err != nil {
				return nil, err
			}
			r.Method = method
			return r, nil
		}
	}
	return nil, fmt.Errorf("unknown method %q%s", method, suggest.Expected(method, MethodNames()))
}
