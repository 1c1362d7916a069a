package measured

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
)

// largest is the largest batch that is simulated; larger ones take as much longer as they are larger.
const largest = 8

// prediction is a row's time by the program, in seconds; none has the host's.
type prediction struct {
	Seconds     float64 `json:"seconds"`
	Bound       float64 `json:"certified_lower_bound_s"`
	Term        string  `json:"term"` // of the bound
	HostSeconds float64 `json:"host_s"`
	Limit       string  `json:"limited_by,omitempty"`
	Error       string  `json:"error,omitempty"` // why there is none
}

// total has the host's part.
func (p *prediction) total() float64 { return p.Seconds + p.HostSeconds }

// machine is a row's, as the row was measured.
func (r *row) machine() (*hardware.Spec, error) {
	d, err := r.description()
	if err != nil {
		return nil, err
	}
	return d.Spec()
}

// description is the machine's before it is read.
func (r *row) description() (*hardware.Description, error) {
	d, err := hardware.Describe(r.Machine)
	if err != nil {
		return nil, err
	}
	set := func(field, value string) {
		if err == nil {
			d, err = d.With(field, value)
		}
	}
	rate, half := strings.CutSuffix(r.Rate, halfByte)
	if rate != "" {
		set("core_types[0].units[0].rate."+r.Type, rate)
	}
	if half {
		for _, field := range []string{"core_types[0].units[0].operands", "lb.size", "lb.bandwidth", "ddr.bandwidth",
			"core_link.bandwidth"} {
			set(field, "*2")
		}
	}
	for remark, fields := range map[string][2]string{gapsExcluded: {"gap", "sync"}, inGraph: {"launch", "gap"}} {
		if strings.HasPrefix(r.Remark, remark) {
			value, missing := d.Value(fields[1])
			if missing != nil {
				return nil, missing
			}
			set(fields[0], value)
		}
	}
	return d, err
}

// network is a row's case, the elements of its batch, and the chunk: all of it for a single operator, 0 for networks.
func (r *row) network() (net network.Network, batch, chunk int64, err error) {
	dt, err := model.ParseDType(r.Type)
	if err != nil {
		return net, 0, 0, err
	}
	if r.Kind == networks {
		net, err = network.Open(r.Case, network.Options{DType: dt})
		if r.Remark == apartInGraph {
			net = network.BiasApart(net)
		}
		return net, r.Batch, 0, err
	}
	op, text, _ := strings.Cut(r.Case, " ")
	reps, text, repeated := strings.Cut(text, "*")
	if !repeated {
		reps, text = "", reps
	}
	reps, shared, grouped := strings.Cut(reps, "/")
	var n []int64
	for _, s := range append(strings.Split(text, "x"), strings.Fields(reps+" "+shared)...) {
		x, err := strconv.ParseInt(s, 10, 64)
		if err != nil || x < 1 {
			return net, 0, 0, fmt.Errorf("case %q: %q is no size", r.Case, s)
		}
		n = append(n, x)
	}
	want := map[string]int{"matmul": 3, attention: 3, "causal": 3, "apart": 3, "divided": 3,
		"softmax": 2, "layernorm": 2, "gelu": 1, "add": 1, "conv": 5}[op]
	attends := slices.Contains([]string{attention, "causal", "apart", "divided"}, op) // the last two by operators
	// Heads of queries that share one of keys.
	group := int64(1)
	if grouped && len(n) == 5 {
		group = n[4]
	}
	if want == 0 || len(n) < want || attends && !repeated || grouped && !(attends && len(n) == 5 && n[3]%group == 0) {
		return net, 0, 0, fmt.Errorf("case %q is not known", r.Case)
	}
	width := int64(1) // of elements without rows
	switch {
	case attends:
		batch = n[3] / group
	case repeated:
		batch = n[3]
	case want == 1 && n[0]%1024 == 0:
		width = 1024
		batch = n[0] / width
	default:
		batch = n[0]
	}
	return network.Network{Name: r.Case, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(op)
		switch {
		case op == "apart" || op == "divided": // by their scale, in PyTorch a kernel
			return zoo.Attention{Heads: 1, Tokens: n[0], Width: n[2], Divided: op == "divided",
				Packed: r.Remark == packed}.Build(
				zoo.Options{Batch: batch, DType: dt})
		case attends:
			b.Output(b.Op("Attention", op, model.Attr{Group: group, Softmax: true, Causal: op == "causal"},
				b.Input("q", dt, batch, group, n[0], n[2]), b.Input("k", dt, batch, 1, n[1], n[2]),
				b.Input("v", dt, batch, 1, n[1], n[2])))
		case repeated:
			b.Output(b.Op("MatMul", op, model.Attr{}, b.Input("x", dt, batch, n[0], n[1]), b.Input("y", dt, batch, n[1], n[2])))
		case op == "conv": // images, channels, rows, channels made, kernel
			pad := n[4] / 2
			b.Output(b.Op("Conv", op, model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
				Pads: []int64{pad, pad, pad, pad}, Group: 1}, b.Input("x", dt, batch, n[1], n[2], n[2]),
				b.Param("w", dt, n[3], n[1], n[4], n[4])))
		case op == "matmul":
			b.Output(b.Op("MatMul", op, model.Attr{}, b.Input("x", dt, batch, n[1]), b.Param("w", dt, n[1], n[2])))
		case op == "softmax":
			b.Output(b.Op("Softmax", op, model.Attr{Axis: 1}, b.Input("x", dt, batch, n[1])))
		case op == "layernorm":
			b.Output(b.Op("LayerNorm", op, model.Attr{Axis: 1}, b.Input("x", dt, batch, n[1]), b.Param("scale", dt, n[1]),
				b.Param("bias", dt, n[1])))
		case op == "add":
			b.Output(b.Op("Add", op, model.Attr{}, b.Input("x", dt, batch, width), b.Input("y", dt, batch, width)))
		default:
			b.Output(b.Op("Gelu", op, model.Attr{}, b.Input("x", dt, batch, width)))
		}
		return b.Build()
	}}, batch, batch, nil
}

// host is how much of the measured time the file, or the row's authors, put down to the host.
func (r *row) host(spec *hardware.Spec) (float64, error) {
	switch {
	case r.Host == "no" || r.hidden():
		return 0, nil
	case r.Host == "yes":
		return spec.HostSeconds, nil
	}
	us, err := strconv.ParseFloat(r.Host, 64)
	return us * 1e-6, err
}

// predict is a row's case in the simulator and by the bound.
func (r *row) predict(ctx context.Context, recipe scheduler.Recipe) *prediction {
	spec := bail.Of(r.machine())
	out := r.simulate(ctx, spec, recipe)
	out.Bound, out.Term = r.bound(ctx, spec)
	return out
}

// bound returns the lower bound on a row's time in seconds, and the term that it comes from.
func (r *row) bound(ctx context.Context, spec *hardware.Spec) (seconds float64, term string) {
	net, batch, _, err := r.network()
	bail.Check(err)
	batch, scale := r.scaled(batch)
	seen := bail.Of(scheduler.LevelAuto.Machine(spec))
	least := bound.Cold
	if r.Kind == networks {
		least = bound.Steady
	}
	for _, n := range []network.Network{net, network.FuseAttention(net)} {
		b := bail.Of(least(ctx, n, seen, batch*r.Cores))
		if x := b.Seconds * scale; seconds == 0 || x < seconds {
			seconds, term = x, b.Term
		}
	}
	return seconds, term
}

// scaled is the batch to simulate, and how many times longer the row's takes.
func (r *row) scaled(batch int64) (int64, float64) {
	if r.Kind == networks && batch > largest {
		return largest, float64(batch) / largest
	}
	return batch, 1
}

// simulate is a row's case on a machine, without its bound.
func (r *row) simulate(ctx context.Context, spec *hardware.Spec, recipe scheduler.Recipe) *prediction {
	net, batch, chunk, err := r.network()
	bail.Check(err)
	batch, scale := r.scaled(batch)
	batch *= r.Cores // each has one of its own
	out := &prediction{HostSeconds: bail.Of(r.host(spec))}
	seen := bail.Of(scheduler.LevelAuto.Machine(spec))
	var made *scheduler.Result
	for _, c := range chunks(chunk, slices.Max(schedule.Shares(batch, seen.Clusters))) {
		x, err := scheduler.Run(ctx, net, spec, batch, recipe, scheduler.Options{Chunk: c})
		if scheduler.TooLarge(err) { // which is an answer
			out.Error = err.Error()
			continue
		}
		if err != nil {
			bail.Check(fmt.Errorf("%s on %s: %w", r.Case, r.Machine, err))
		}
		if made == nil || x.LatencySeconds() < made.LatencySeconds() {
			made = x
		}
	}
	if made == nil {
		return out
	}
	out.Error, out.Limit, out.Seconds = "", made.LimitText(), made.LatencySeconds()*scale
	if r.Kind == networks {
		perSecond, err := made.Steady(ctx)
		if !scheduler.TooLarge(err) {
			bail.Check(err)
			out.Seconds = math.Min(out.Seconds, float64(batch)/perSecond*scale)
		}
	}
	return out
}

// chunks lists the chunks to try: the given one, or the largest two divisors of a share.
func chunks(given, share int64) []int64 {
	if given > 0 {
		return []int64{given}
	}
	all := schedule.Divisors(share, scheduler.MaxTunedChunk)
	return all[max(0, len(all)-2):]
}
