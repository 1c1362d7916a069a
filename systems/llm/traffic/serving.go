package traffic

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm"
	"github.com/dsasched/dsasched/systems/llm/serving"
)

// A servingCase is a decoder on a machine under requests of a mix.
type servingCase struct {
	Machine, Decoder, Mix string
	Limit                 int32 // tokens of a request
}

var (
	servingCases = []servingCase{{"stcp920", "gpt2", "short", 1024}, {"stcp920x4", "llama3-8b", "chat", 4096}, {"a100",
		"llama3-8b", "chat", 4096}}
	servingLoads = []float64{0.2, 0.4, 0.6, 0.8, 0.9, 1.1} // of the most requests a second
)

const (
	servingRequests = 2000
	servingSmall    = 40 // traces of a few requests for the best plan
	servingSeed     = 1
)

var servingLimits = serving.Limits{Batch: 32, Tokens: 2048, Chunk: 512, Grain: 64}

// A servedLoad has the results of all policies at a load.
type servedLoad struct {
	Load     float64          `json:"load"`
	Rate     float64          `json:"requests_per_s"`
	Bound    float64          `json:"latency_mean_bound_s"`
	Policies []serving.Result `json:"policies"`
}

// A servedSmall is a small trace with its best plan.
type servedSmall struct {
	Status   milp.Status `json:"status"`
	Best     float64     `json:"best_latency_mean_s"`
	Policies []float64   `json:"latency_mean_s"`
	Bound    float64     `json:"bound_s"`
}

type served struct {
	Machine string        `json:"hardware"`
	Decoder string        `json:"model"`
	Mix     string        `json:"mix"`
	Source  string        `json:"mix_source"`
	Cache   int64         `json:"cache_tokens"`
	Most    float64       `json:"most_requests_per_s"`
	Loads   []servedLoad  `json:"loads"`
	Small   []servedSmall `json:"small"`
}

func servingExperiment() harness.Experiment {
	e := harness.Experiment{Name: "serving",
		Description: "servers that answer requests with a decoder: policies by load, beside the best plan and a bound",
		Paper:       "none; policies of Orca, vLLM and Sarathi-Serve on this project's schedules"}
	e.Plan = func() (*harness.Plan, error) {
		p := &harness.Plan{}
		for _, c := range servingCases {
			key := fmt.Sprintf("%s-%s-%s", c.Machine, c.Decoder, c.Mix)
			p.Cells = append(p.Cells, harness.Cell{Key: key, Label: key, Inputs: []any{c, servingLoads, servingRequests,
				servingSmall, servingSeed, servingLimits, recipes.Default},
				Run: func(ctx context.Context) (any, error) { return serve(ctx, c, servingRequests, servingSmall) }})
		}
		p.Report = harness.Of(func(rows []served) (*harness.Report, error) { return reportServing(e, rows) })
		return p, nil
	}
	return e
}

func serve(ctx context.Context, c servingCase, requests, small int) (*served, error) {
	spec, recipe, err := machineAndRecipe(c.Machine)
	if err != nil {
		return nil, err
	}
	mixes := serving.Mixes()
	mix := mixes[slices.IndexFunc(mixes, func(m serving.Mix) bool { return m.Name == c.Mix })]
	at := func(rate float64) ([]serving.Request, error) {
		return serving.Generate(requests, rate, mix, c.Limit, servingSeed)
	}
	list, err := at(1e6)
	if err != nil {
		return nil, err
	}
	p := &serving.Problem{Requests: list, Limits: servingLimits}
	// Small traces must fit as well.
	reach := append(slices.Clone(list), serving.Request{Prompt: 128, Answer: 4})
	if p.Times, err = llm.ServingTimes(ctx, c.Decoder, model.F16, spec, recipe, reach, p.Limits, nil); err != nil {
		return nil, err
	}
	s := &served{Machine: c.Machine, Decoder: c.Decoder, Mix: c.Mix, Source: mix.Source, Cache: p.Times.CacheTokens}
	all, err := serving.Simulate(ctx, p, serving.Policies()[0]) // that all arrive at once
	if err != nil {
		return nil, err
	}
	s.Most = float64(all.Requests) / all.Seconds
	for _, load := range servingLoads {
		l := servedLoad{Load: load, Rate: load * s.Most}
		if p.Requests, err = at(l.Rate); err != nil {
			return nil, err
		}
		for _, policy := range serving.Policies() {
			r, err := serving.Simulate(ctx, p, policy)
			if err != nil {
				return nil, err
			}
			l.Policies = append(l.Policies, *r)
		}
		if l.Bound, err = serving.Bound(p); err != nil {
			return nil, err
		}
		s.Loads = append(s.Loads, l)
	}
	// A few requests that arrive within some steps, three at a time.
	step := float64(p.Times.Tokens.Cost[0].Ps) * 1e-12
	p.Limits = serving.Limits{Batch: 3, Tokens: 192, Chunk: 128, Grain: 64}
	for k := range small {
		if p.Requests, err = serving.Generate(4, 1/(2*step), serving.Mix{Prompt: serving.Lengths{Median: 64, P90: 128},
			Answer: serving.Lengths{Median: 3, P90: 6}}, 256, servingSeed+uint64(k)); err != nil {
			return nil, err
		}
		plan, err := serving.Best(ctx, p, solve.Options[[]serving.Step]{})
		if err != nil {
			return nil, err
		}
		one := servedSmall{Status: plan.Status, Best: plan.Objective}
		for _, policy := range serving.Policies() {
			r, err := serving.Simulate(ctx, p, policy)
			if err != nil {
				return nil, err
			}
			one.Policies = append(one.Policies, r.LatencyMean)
		}
		if one.Bound, err = serving.Bound(p); err != nil {
			return nil, err
		}
		s.Small = append(s.Small, one)
	}
	return s, nil
}

func reportServing(e harness.Experiment, rows []served) (*harness.Report, error) {
	d := harness.NewDocument(e)
	loads := harness.Table{Title: "Policies by load: times", Name: "loads", Columns: harness.Columns("<Machine",
		"<Decoder", "<Requests", "Load", "<Policy", "TTFT, s", "99 %", "TPOT, ms", "99 %", "Latency, s", "At least")}
	rates := harness.Table{Title: "Policies by load: rates", Name: "rates", Columns: harness.Columns("<Machine",
		"<Decoder", "<Requests", "Load", "Requests/s", "<Policy", "Tokens/s", "Tokens/J", "Busy, %", "Batch")}
	small := harness.Table{Title: "Mean latency of small traces over the best plan's", Name: "small",
		Columns: harness.Columns("<Machine", "<Decoder", "<Requests", "Traces", "Proven", "<Policy", "Mean", "Worst",
			"Best plans")}
	var panels []plots.Curves
	worst := 0.0
	for _, s := range rows {
		key := []string{s.Machine, s.Decoder, s.Mix}
		first := plots.Curves{Title: fmt.Sprintf("%s on %s, %s", s.Decoder, s.Machine, s.Mix), XLabel: "load",
			YLabel: "TTFT 99 %, s", LogY: true}
		each := plots.Curves{Title: first.Title, XLabel: "load", YLabel: "TPOT 99 %, ms", LogY: true}
		for k, policy := range serving.Policies() {
			f, t := plots.Series{Name: policy.Name}, plots.Series{Name: policy.Name}
			for _, l := range s.Loads {
				r := l.Policies[k]
				f.Values, t.Values = append(f.Values, r.First99), append(t.Values, r.Each99*1e3)
				perJoule := ""
				if r.TokensPerJoule != nil {
					perJoule = short(*r.TokensPerJoule)
				}
				loads.Add(key, short(l.Load), r.Policy, short(r.FirstMedian), short(r.First99), short(r.EachMedian*1e3),
					short(r.Each99*1e3), short(r.LatencyMean), short(l.Bound))
				rates.Add(key, short(l.Load), short(l.Rate), r.Policy, short(r.TokensPerS), perJoule,
					fmt.Sprintf("%.1f", 100*r.Busy), fmt.Sprintf("%.1f", r.MeanBatch()))
			}
			first.Series, each.Series = append(first.Series, f), append(each.Series, t)
			mean, most, best, proven := 0.0, 0.0, 0, 0
			for _, one := range s.Small {
				if one.Status != milp.Optimal {
					continue
				}
				proven++
				ratio := one.Policies[k] / one.Best
				mean, most = mean+math.Log(ratio), max(most, ratio)
				if ratio <= 1+1e-9 { // means are rounded
					best++
				}
			}
			if proven > 0 {
				small.Add(key, len(s.Small), proven, policy.Name, fmt.Sprintf("%.3f", math.Exp(mean/float64(proven))),
					fmt.Sprintf("%.3f", most), best)
			}
		}
		for _, l := range s.Loads {
			first.X, each.X = append(first.X, l.Load), append(each.X, l.Load)
			if l.Load < 1 {
				worst = max(worst, l.Policies[0].LatencyMean/l.Bound)
			}
		}
		panels = append(panels, first, each)
		d.Note(
			"%s on %s: keys and values of %d tokens fit; at most %s requests a second with all there at once and fcfs. Mix %s: %s.", s.Decoder, s.Machine, s.Cache, short(s.Most), s.Mix, s.Source)
	}
	d.Note(
		"Load is the requests a second over those that the machine answers when all are there at once, under fcfs. %d requests, %d at a time, steps of up to %d tokens, under chunked %d. TTFT: time to first token; TPOT: time per further token; medians and 99th percentiles. Latency: the mean time from arrival to last token; at least: a bound for every plan.",
		servingRequests, servingLimits.Batch, servingLimits.Tokens, servingLimits.Chunk)
	d.Note(
		"Steps are sums of parts scheduled by %s and simulated at some sizes, linear between them. A request begins when the memory has room for all of its tokens.", recipes.Default)
	d.Note(
		"Small traces have four requests of one or two pieces and a few tokens each, three at a time. Ratios of proven ones; the mean is geometric.")
	d.Table(loads, rates, small)
	d.Curves("load", "Time to the first token and per further token against the load", panels...)
	d.Lead("load", "Servers",
		fmt.Sprintf(
			"Below saturation, first come first served has at most %.1f times the mean latency that is proven to be needed.",
			worst))
	return d.Report(harness.Data{Data: rows})
}

// machineAndRecipe opens a machine of one or several chips; the recipe is the default.
func machineAndRecipe(name string) (spec *hardware.Spec, recipe scheduler.Recipe, err error) {
	if spec, err = chips.LoadMachine(name); err == nil {
		recipe, err = recipes.Lookup(recipes.Default)
	}
	return spec, recipe, err
}
