package measured

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

//go:embed pairs.csv
var pairsFile []byte

// Decisions that pairs differ in.
const (
	fuseCNNs         = "CNNs fused"
	fuseTransformers = "transformers fused"
	oneAttention     = "attention fused"
	headAttention    = "attention fused by heads"
	noSoftmax        = "softmax left out"
	packed           = "packed" // remark of operators that copy queries, keys and values out of one tensor
	ownProducts      = "products in L1s"
	ownNetworks      = "networks in L1s"
)

// pair is the same work on the same machine in two ways, of which the second has the decision. Times are in seconds.
type pair struct {
	Decision string `json:"decision"`
	row
	Measured  [2]float64 `json:"measured_s"`
	Predicted [2]float64 `json:"predicted_s"` // 0: none
	Uncounted string     `json:"uncounted,omitempty"`
}

// gain is how many times longer the first way takes.
func gain(x [2]float64) float64 { return x[0] / x[1] }

// readPairs reads the file: comments, a header, and pairs.
func readPairs(data []byte) (list []pair, err error) {
	in := csv.NewReader(bytes.NewReader(data))
	in.Comment = '#'
	records, err := in.ReadAll()
	for i, f := range records[min(1, len(records)):] {
		p := pair{Decision: f[0], Uncounted: f[9], row: row{Kind: networks, Machine: f[1], Case: f[2], Type: f[4], Rate: f[5],
			Cores: 1, Flight: 1, Host: "no", Unit: "us", Source: f[8]}}
		if strings.Contains(p.Decision, "attention") || p.Decision == noSoftmax {
			p.Kind = attention
		}
		p.Batch, err = strconv.ParseInt(f[3], 10, 64)
		for k := range p.Measured {
			if err == nil {
				p.Measured[k], err = strconv.ParseFloat(f[6+k], 64)
			}
			p.Measured[k] *= 1e-6
		}
		if err != nil || !(p.Batch > 0 && p.Measured[0] > 0 && p.Measured[1] > 0) {
			return nil, fmt.Errorf("pair %d, %v: expected a batch and two times, all positive", i+1, f)
		}
		list = append(list, p)
	}
	return list, err
}

// fusedPairs are the networks of an H100 that were measured operator by operator and compiled.
func fusedPairs(rows []row) (list []pair) {
	for _, b := range rows {
		for _, a := range rows {
			if a.Remark != "eager" || b.Remark != "compiled" || a.Case != b.Case || a.Batch != b.Batch {
				continue
			}
			p := pair{Decision: fuseCNNs, row: a, Measured: [2]float64{a.seconds(), b.seconds()}}
			if strings.HasPrefix(a.Case, "llama") && strings.Contains(a.Case, "decode") {
				p.Uncounted = "the compiled program copies its cache"
			}
			for _, name := range []string{"bert", "gpt", "llama", "vit", "swin"} {
				if strings.HasPrefix(a.Case, name) {
					p.Decision = fuseTransformers
				}
			}
			list = append(list, p)
		}
	}
	return list
}

// two are the ways of a decision, recipes that differ in nothing else. Networks operator by operator have attention as
// one, as PyTorch has.
func two(decision string) [2]scheduler.Recipe {
	whole := harness.Recipe("tiled-llb")
	switch decision {
	case ownProducts, ownNetworks:
		return [2]scheduler.Recipe{whole, harness.Recipe("tiled-l1")}
	case oneAttention:
		return [2]scheduler.Recipe{harness.Recipe("unfused"), whole}
	case headAttention: // FlashAttention of 2022 has a block of threads for each head
		return [2]scheduler.Recipe{harness.Recipe("unfused"), whole.Picking(scheduler.Pick{Stage: "bind", Strategy: "heads"}).
			Picking(scheduler.Pick{Stage: "nest", Strategy: "rules"})}
	}
	apart := scheduler.Pick{Stage: "rewrite", Strategy: "parts"}
	return [2]scheduler.Recipe{harness.Recipe("unfused", apart), whole}
}

// predict is the time of one way.
func (p *pair) predict(ctx context.Context, way int) float64 {
	recipe := two(p.Decision)[way]
	if p.Decision == ownProducts {
		return p.product(ctx, recipe, [2]schedule.Level{schedule.DDR, schedule.L1}[way])
	}
	r := p.row
	switch {
	case r.Remark == "eager":
		r.Remark = apartInGraph
	case p.Decision == headAttention && way == 0:
		r.Remark = packed
	}
	made := r.simulate(ctx, bail.Of(r.machine()), recipe)
	if made.Error != "" {
		bail.Check(fmt.Errorf("%s on %s by %s: %s", p.Case, p.Machine, recipe.Name, made.Error))
	}
	return made.Seconds
}

// product is the time of a product alone whose rows an operator before it makes, and whose result another reads, both
// at a level.
func (p *pair) product(ctx context.Context, recipe scheduler.Recipe, level schedule.Level) float64 {
	var m, k, n int64
	if _, err := fmt.Sscanf(p.Case, "matmul %dx%dx%d", &m, &k, &n); err != nil {
		bail.Check(fmt.Errorf("case %q is not known", p.Case))
	}
	dt := bail.Of(model.ParseDType(p.Type))
	net := network.Network{Name: "product", Graph: func(rows int64) (*model.Graph, error) {
		b := model.NewBuilder("product")
		made := b.Op("Relu", "made", model.Attr{}, b.Input("x", dt, rows, k))
		y := b.Op("MatMul", "product", model.Attr{}, made, b.Param("w", dt, k, n))
		b.Output(b.Op("MatMul", "read", model.Attr{}, y, b.Param("v", dt, n, 64)))
		return b.Build()
	}}
	made := bail.Of(scheduler.Run(ctx, net, bail.Of(p.machine()), m, recipe, scheduler.Options{Chunk: m}))
	for i := range made.Schedule.Values {
		if v := &made.Schedule.Values[i]; v.Def >= 0 && v.Level != level && !made.Schedule.Graph.IsOutput(v.Tensor) {
			bail.Check(fmt.Errorf("%s by %s: a value is at level %v, expected %v", p.Case, recipe.Name, v.Level, level))
		}
	}
	list := bail.Of(made.Kernels(ctx))
	i := slices.IndexFunc(list, func(k scheduler.Kernel) bool { return k.Layer == "product" })
	return list[i].Seconds
}

func gains() harness.Experiment {
	of := func(quick bool) func() (*harness.Plan, error) {
		return plan(func(s study) (*harness.Plan, error) {
			pairs, err := readPairs(pairsFile)
			return planGains(append(fusedPairs(s.rows), pairs...), quick), err
		})
	}
	return harness.Experiment{Name: "gains",
		Description: "what a decision gains on real machines, and here: fusion, attention in one kernel, values in L1s",
		Paper:       "none; times that others have published of work done in two ways, and an H100's, measured here",
		Plan:        of(false), Quick: of(true)}
}

// planGains has a cell for each decision, machine and network. The quick form has the first pair of each decision and
// machine.
func planGains(list []pair, quick bool) *harness.Plan {
	var groups [][]pair
	var left []pair
	for _, p := range list {
		same := func(other []pair) bool { return other[0].Decision == p.Decision && other[0].Machine == p.Machine }
		k := slices.IndexFunc(groups, func(g []pair) bool { return same(g) && (quick || g[0].family() == p.family()) })
		switch {
		case p.Uncounted != "":
			left = append(left, p)
		case k < 0:
			groups = append(groups, []pair{p})
		case !quick:
			groups[k] = append(groups[k], p)
		}
	}
	pl := &harness.Plan{}
	for i, g := range groups {
		_, hash := harness.Machine(g[0].Machine)
		pl.Cells = append(pl.Cells, harness.Cell{Key: fmt.Sprintf("%02d-%s-%s", i, g[0].family(), g[0].Machine),
			Label: fmt.Sprintf("%s: %s on %s", g[0].Decision, g[0].family(), g[0].Machine),
			Inputs: struct {
				Pairs        []pair              `json:"pairs"`
				HardwareHash string              `json:"hardware_sha256"`
				Ways         [2]scheduler.Recipe `json:"ways"`
			}{g, hash, two(g[0].Decision)},
			Run: func(ctx context.Context) (any, error) {
				done := slices.Clone(g)
				for i := range done {
					for way := range 2 {
						done[i].Predicted[way] = harness.Round(done[i].predict(ctx, way))
					}
				}
				return done, nil
			}})
	}
	pl.Report = harness.Of(func(cells [][]pair) (*harness.Report, error) {
		return reportGains(append(slices.Concat(cells...), left...))
	})
	return pl
}

// tally sums up pairs of one decision on one machine.
type tally struct {
	decision, machine    string
	pairs, beyond, right int
	off, seen, said      sample
	cloud                plots.Cloud
}

// noted is the least gain whose sign counts.
const noted = 0.03

func (t *tally) add(p *pair) {
	measured, predicted := gain(p.Measured), gain(p.Predicted)
	t.pairs++
	t.off.add(predicted / measured)
	t.seen.add(measured)
	t.said.add(predicted)
	t.cloud.X, t.cloud.Y = append(t.cloud.X, measured), append(t.cloud.Y, predicted)
	if math.Abs(measured-1) > noted {
		t.beyond++
		if (measured > 1) == (predicted > 1) {
			t.right++
		}
	}
}

// tallies sums up the pairs that count, in their order.
func tallies(list []pair) (all []*tally) {
	for i := range list {
		p := &list[i]
		if p.Uncounted != "" {
			continue
		}
		k := slices.IndexFunc(all, func(t *tally) bool { return t.decision == p.Decision && t.machine == p.Machine })
		if k < 0 {
			k = len(all)
			all = append(all, &tally{decision: p.Decision, machine: p.Machine})
		}
		all[k].add(p)
	}
	return all
}

// alike is the mean share of right signs and the error, each tally with the same weight.
func alike(all []*tally) (right, spread float64) {
	var errors sample
	n := 0
	for _, t := range all {
		errors.add(t.off.spread())
		if t.beyond > 0 {
			right, n = right+float64(t.right)/float64(t.beyond), n+1
		}
	}
	return right / float64(max(n, 1)), errors.bias()
}

func reportGains(list []pair) (*harness.Report, error) {
	all := tallies(list)
	t := harness.Table{Name: "gains", Title: "What decisions gain, by decision and machine",
		Columns: harness.Columns("<Decision", "<Accelerator", "Pairs", "Beyond 3 %", "Sign right", "Error of the gain",
			"Mean gain|measured|predicted"),
		Notes: []string{"Error of the gain: geometric mean of the larger over the smaller of predicted and measured gain. " +
			"A sign is right if both ways are ordered as measured, counted where the measured gain is beyond 3 %. Nests are " +
			"the same on both sides, and nothing is fitted. Machines alike: a machine's decisions have the same weight, and " +
			"machines have."}}
	var clouds []plots.Cloud
	var machines []string
	by := map[string][]*tally{}
	for _, x := range all {
		sign := "–"
		if x.beyond > 0 {
			sign = harness.Percent(float64(x.right) / float64(x.beyond))
		}
		t.Add(x.decision, x.machine, x.pairs, x.beyond, sign, number(x.off.spread()), number(x.seen.bias()),
			number(x.said.bias()))
		x.cloud.Name = strings.TrimSuffix(x.decision, " fused") + ", " + strings.TrimSuffix(x.machine, "-n150")
		clouds = append(clouds, x.cloud)
		if by[x.machine] = append(by[x.machine], x); len(by[x.machine]) == 1 {
			machines = append(machines, x.machine)
		}
	}
	right, errors, pairs := 0.0, sample{}, 0
	for _, m := range machines {
		share, spread := alike(by[m])
		right += share / float64(len(machines))
		errors.add(spread)
		for _, x := range by[m] {
			pairs += x.pairs
		}
	}
	t.Add("all", "machines alike", pairs, "", harness.Percent(right), number(errors.bias()), "", "")
	each := harness.Table{Name: "pairs", Title: "All pairs", Columns: harness.Columns("<Decision", "<Accelerator", "<Case",
		"Batch", "<Type", "us, measured|without|with", "us, predicted|without|with", "Gain|measured|predicted",
		"<Not counted")}
	for i := range list {
		p := &list[i]
		line := []string{p.Decision, p.Machine, p.Case, fmt.Sprint(p.Batch), p.Type, harness.Significant(1e6 * p.Measured[0]),
			harness.Significant(1e6 * p.Measured[1]), "–", "–", number(gain(p.Measured)), "–", p.Uncounted}
		if p.Predicted[0] > 0 {
			line[7], line[8] = harness.Significant(1e6*p.Predicted[0]), harness.Significant(1e6*p.Predicted[1])
			line[10] = number(gain(p.Predicted))
		}
		each.Add(line)
	}
	d := harness.NewDocument(gains(), machines...)
	d.Table(t)
	fig, err := plots.Rooflines(plots.Roofline{Title: "What a decision gains", Diagonal: true, XLabel: "Measured gain",
		YLabel: "Predicted gain", Clouds: clouds})
	d.Figure("gains", "Predicted against measured gain, a point for each pair", fig, err)
	d.Table(each)
	return d.Report(struct {
		Pairs []pair `json:"pairs"`
	}{list})
}
