package readings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/grain"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// reading is a question that the text leaves open. The first choice is in force.
type reading struct {
	Name     string // short, for headings
	Question string
	Source   string // the text, by section, or what else is published
	Choices  []choice
	// Evidence names the choice that the text, else other published facts, speak for where it is not in force, as
	// defaults stay; empty: the first.
	Evidence string
	// Before names the choice that was in force before the readings were asked for
	// together; empty: the first.
	Before string
}

// choice is an answer.
type choice struct {
	Name   string
	Change change
}

// change is the difference of a choice from the one in force; the zero value does not.
type change struct {
	// Networks of the zoo in place of those that stand for configurations, by label.
	Networks map[string]string
	// Grains at which recipes get networks, by the recipe's name.
	Grains map[string]grain.Grain
	// Picks are strategies in place of those of recipes, by the recipe's name.
	Picks map[string][]scheduler.Pick
	// Instead are recipes in place of others, by name.
	Instead map[string]string
	// InPlace is of scheduler.Options, flipped.
	InPlace bool
	// Uneven is of scheduler.Options.
	Uneven schedule.Uneven
	// Fields of the accelerator, in the file's units.
	LaunchMicroseconds float64
	// DDRShare is the share of the DDR's bandwidth that is left in both directions; 0: all.
	DDRShare float64
	// Steady takes the rate of batches in a row for every throughput.
	Steady bool
	// MeanOfRatios compares with the published quotient of two means the mean of the
	// quotients.
	MeanOfRatios bool
	// GainOverTVM reads the published gain of variant 2 as one over TVM.
	GainOverTVM bool
}

// String says how the choice is applied.
func (c change) String() string {
	var parts []string
	for _, label := range slices.Sorted(maps.Keys(c.Networks)) {
		parts = append(parts, label+" = "+c.Networks[label])
	}
	of := map[string][]string{} // recipes, by what they take
	for _, name := range slices.Sorted(maps.Keys(c.Picks)) {
		for _, p := range c.Picks[name] {
			of[p.String()] = append(of[p.String()], name)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, p+" for "+strings.Join(of[p], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Instead)) {
		parts = append(parts, c.Instead[name]+" for "+name)
	}
	if grains := slices.Sorted(maps.Values(c.Grains)); len(grains) > 0 {
		parts = append(parts, fmt.Sprintf("--grain %s for %s", grains[0],
			strings.Join(slices.Sorted(maps.Keys(c.Grains)), ", ")))
	}
	if c.Steady {
		parts = append(parts, "steady_throughput_per_s")
	}
	if c.InPlace {
		parts = append(parts, "--in-place")
	}
	if c.Uneven != schedule.UnevenFastest {
		parts = append(parts, "--uneven "+c.Uneven.String())
	}
	if c.LaunchMicroseconds != 0 {
		parts = append(parts, fmt.Sprintf("launch: %gus", c.LaunchMicroseconds))
	}
	if c.DDRShare != 0 {
		parts = append(parts, fmt.Sprintf("ddr.bandwidth times %g", c.DDRShare))
	}
	if c.MeanOfRatios || c.GainOverTVM {
		parts = append(parts, "the mean is another")
	}
	if len(parts) == 0 {
		return "as it is"
	}
	return strings.Join(parts, ", ")
}

// add makes one change of two; where both speak of the same thing, the second counts.
func (c change) add(d change) change {
	c.Networks = joined(c.Networks, d.Networks)
	c.Instead = joined(c.Instead, d.Instead)
	c.Grains = joined(c.Grains, d.Grains)
	c.Steady = c.Steady || d.Steady
	picks := map[string][]scheduler.Pick{}
	for _, m := range []map[string][]scheduler.Pick{c.Picks, d.Picks} {
		for name, list := range m {
			for _, p := range list {
				others := slices.DeleteFunc(slices.Clone(picks[name]), func(q scheduler.Pick) bool { return q.Stage == p.Stage })
				picks[name] = append(others, p)
			}
		}
	}
	c.Picks = picks
	c.InPlace = c.InPlace != d.InPlace
	if d.Uneven != schedule.UnevenFastest {
		c.Uneven = d.Uneven
	}
	if d.LaunchMicroseconds != 0 {
		c.LaunchMicroseconds = d.LaunchMicroseconds
	}
	if d.DDRShare != 0 {
		c.DDRShare = d.DDRShare
	}
	c.MeanOfRatios = c.MeanOfRatios || d.MeanOfRatios
	c.GainOverTVM = c.GainOverTVM || d.GainOverTVM
	return c
}

func joined[T any](a, b map[string]T) map[string]T {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]T{}
	}
	maps.Copy(m, b)
	return m
}

// machine is the accelerator with the change.
func (c change) machine(spec *hardware.Spec) (*hardware.Spec, error) {
	s := spec.Clone() // its memories, too
	if c.LaunchMicroseconds != 0 {
		s.LaunchSeconds = c.LaunchMicroseconds * 1e-6
	}
	if c.DDRShare != 0 {
		s.DDR.BandwidthBytesPerSecond *= c.DDRShare
	}
	return s, s.Validate()
}

// recipe is the one of this name with the change.
func (c change) recipe(name string) (scheduler.Recipe, error) {
	picks := c.Picks[name]
	if other := c.Instead[name]; other != "" {
		name = other
	}
	r, err := scheduler.Lookup(name)
	if err != nil || len(picks) == 0 {
		return r, err
	}
	return scheduler.Replace(r, scheduler.Options{}, picks...)
}

// options are the options of a recipe's run; what has no split has no footprints either.
func (c change) options(r scheduler.Recipe, chunk int64) scheduler.Options {
	return scheduler.Options{Chunk: chunk, Uneven: c.Uneven,
		InPlace: c.InPlace && strings.HasPrefix(r.Pick("group"), "alg2")}
}

// variants are the recipes of the breakdown.
var variants = []string{"llb", "l1", "ordering", "cross-layer"}

// picks takes strategies in recipes.
func picks(list []scheduler.Pick, recipes ...string) map[string][]scheduler.Pick {
	m := map[string][]scheduler.Pick{}
	for _, r := range recipes {
		m[r] = list
	}
	return m
}

// pick lists strategies by pairs of stage and strategy.
func pick(pairs ...string) (list []scheduler.Pick) {
	for p := range slices.Chunk(pairs, 2) {
		list = append(list, scheduler.Pick{Stage: p[0], Strategy: p[1]})
	}
	return list
}

// noInstances has variants 1 and 2 run whole sub-graphs, one after the other.
var noInstances = pick("split", "none", "order", "bfs")

// fused are the systems with the fusion of TVM's pass, which is for the framework's operators.
var fused = map[string]string{"tvm": "tvm-fuse", "astitch": "astitch-fuse"}

// grains gives recipes the framework's operators.
func grains(recipes ...string) map[string]grain.Grain {
	m := map[string]grain.Grain{}
	for _, r := range recipes {
		m[r] = grain.Framework
	}
	return m
}

// readings lists them all.
func readings() []reading {
	return []reading{
		{Name: "in place", Question: "Does an element-wise operator overwrite its input in Algorithm 1's footprints?",
			Source:  "§3.1 has the peak of the memory in use and no word on it; the vendor's guide partitions ResNet-50 by hand into 8, 4, 2, 1, which comes out at 8 images per cluster if it does not",
			Choices: []choice{{Name: "no"}, {"yes", change{InPlace: true}}}},
		{Name: "D", Question: "Which network is BERT-384?",
			Source:  "the evaluation's models are mostly MLPerf v2.0's, whose BERT is large and runs at 384 tokens; Table 3 has 515 results of TVM for D and 242 for B, C and E alike, as twice the layers have; with BERT-base TVM would work at 1.3 TMAC/s, a quarter of what it shows on A and B",
			Choices: []choice{{Name: "BERT-large"}, {"BERT-base", change{Networks: map[string]string{"D": "bert-384"}}}},
			Before:  "BERT-base"},
		{Name: "H", Evidence: "384", Question: "At what resolution does Vision_Transformer run?",
			Source:  "not given; Table 3's 214 results of TVM mean 12 layers; 40 images/s are 0.7 TMAC/s at 224 pixels and 2.2 at 384, where TVM shows 4.4 on A and 5.7 on B",
			Choices: []choice{{Name: "224"}, {"384", change{Networks: map[string]string{"H": "vit-b16-384"}}}}},
		{Name: "Eq. (1)", Question: "Which factors does Eq. (1) compare?",
			Source:  "Algorithm 1, line 5 compares ceil(peak/v), line 10 asks divisibility of intermediates only; \"then the smaller loop depth\"",
			Choices: []choice{{Name: "least"}, {"divisors", change{Picks: picks(pick("group", "alg2-divisors"), variants...)}}},
			Before:  "divisors"},
		{Name: "uneven", Question: "Need the pieces of an extent be alike?",
			Source: "Algorithm 1: any v from the cores to the extent of the output, line 10 asks divisibility of intermediates only; §3.4: a binding goes on to the next factor where an extent can't be divided. Pieces of all extents are our extension, as compilers make them",
			Choices: []choice{{Name: "fastest of all and none"}, {"all", change{Uneven: schedule.UnevenAll}},
				{"none", change{Uneven: schedule.UnevenNone}}, {"outputs", change{Uneven: schedule.UnevenOutputs}}},
			Before: "none"},
		{Name: "promotion", Question: "Do variants 1 to 3 hide a weight's way to the L1 behind work of the same layer?",
			Source:  "§4.4: the latency \"can be hidden by an earlier executed layer\"; §2.1: what promotion costs \"is hidden by computation (§4.4)\", which variant 4 adds. Against it: §4.4 \"enhances\" what earlier systems hide within a layer",
			Choices: []choice{{Name: "no"}, {"yes", change{Picks: picks(pick("issue", "in-order"), "llb", "l1", "ordering")}}},
			Before:  "yes"},
		{Name: "units", Question: "Do units begin a layer, in variant 4, on those parts of its inputs that are complete?",
			Source:   "§4.4, Fig. 13: units \"can execute different computation tasks of two blocks\" at once; the text beside it speaks of loads. The bound is of layers that wait",
			Choices:  []choice{{Name: "no"}, {"yes", change{Picks: picks(pick("issue", "cross-unit"), "cross-layer")}}},
			Evidence: "yes"},
		{Name: "peak", Question: "Do tensors inside a layer count in Algorithm 1's footprints?",
			Source: "§4.1 fuses a layer by tiles, so that a tensor inside a layer (a product in front of GELU) never exists whole; Algorithm 1 has the peak of the sub-graph and no word on it. That results of layers without a product lie over what they read is ours",
			Choices: []choice{{Name: "yes"}, {"no", change{Picks: picks(pick("group", "alg2-layers"), variants...)}},
				{"no, and results lie over inputs",
					change{Picks: picks(pick("group", "alg2-layers", "spill", "overwrite"), variants...)}}}, Evidence: "no"},
		{Name: "instances", Question: "Have variants 1 and 2 instances?",
			Source: "the slides: variant 3 is \"variant 2 + schedule sub-graph instance\"; §5.3: ordering comes on top of L1. With one factor for all, variants 1 and 2 load all weights once per instance",
			Choices: []choice{{Name: "chunk by chunk, the largest factor for all"},
				{"none", change{Picks: picks(noInstances, "llb", "l1")}},
				{"group by group, the largest factor for all", change{Picks: picks(pick("order", "bfs"), "llb", "l1")}},
				{"group by group, own factors", change{Picks: picks(pick("split", "alg1", "order", "bfs"), "llb", "l1")}}},
			Evidence: "none"},
		{Name: "loads of TVM", Question: "Do the kernels of TVM and AStitch hide a weight's way to the L1?",
			Source:   "§4.4 says what variant 4 adds, and of TVM nothing: if variants 1 to 3 do not hide it, by the same words nor do these",
			Choices:  []choice{{Name: "yes"}, {"no", change{Picks: picks(pick("issue", "exposed"), "tvm", "astitch")}}},
			Evidence: "no"},
		{Name: "prefetch", Question: "Which loads from the DDR run ahead of their kernel's launch?",
			Source: "§4.4 has promotions within a kernel only; a cluster runs one kernel at a time (vendor's guide), and its DMA engine is no part of that",
			Choices: []choice{{Name: "variant 4's"}, {"none", change{Picks: picks(pick("prefetch", "wait"), "cross-layer")}},
				{"all", change{Picks: picks(pick("prefetch", "ahead"), recipes...)}}}},
		{Name: "first launch", Question: "Do variant 4's first loads wait for the first launch?",
			Source:  "not in the text; if not, a batch of one kernel pays nothing for its launch",
			Choices: []choice{{Name: "yes"}, {"no", change{Picks: picks(pick("prefetch", "at-start"), "cross-layer")}}},
			Before:  "no"},
		{Name: "TVM", Question: "Where does TVM leave its results?",
			Source: "Table 3: all in the DDR; §5.1: \"the LLB holds all batches\" at batch 8 and 16; §2: kernels exchange data off the cores",
			Choices: []choice{{Name: "DDR"}, {"LLB", change{Instead: map[string]string{"tvm": "tvm-llb"}}},
				{"LLB, loads ahead, weights kept", change{Instead: map[string]string{"tvm": "tvm-llb"},
					Picks: picks(pick("prefetch", "ahead", "weights", "keep"), "tvm")}}}},
		{Name: "grain", Question: "Which operators have the graphs?",
			Source: "Table 3 counts 242 results of TVM on BERT, where whole normalisations and activations give 183 and TensorFlow's parts of them 244; §2.2: a graph comes simplified by standard optimisations, which it does not name",
			Choices: []choice{{Name: "the zoo's"},
				{"the framework's for TVM, AStitch", change{Grains: grains("tvm", "astitch"), Instead: fused}},
				{"the framework's for all", change{Grains: grains(recipes...), Instead: fused}}},
			Evidence: "the framework's for TVM, AStitch"},
		{Name: "rate", Question: "Are throughputs of one batch, or of batches in a row?",
			Source:  "§5 does not say; a server runs batches in a row",
			Choices: []choice{{Name: "one batch"}, {"in a row", change{Steady: true}}}},
		{Name: "launch", Question: "What does a launch cost?",
			Source:  "not published; Table 3 and the throughputs of F and J bound it: 25.7 us for each of DLRM's 76 results, if launches were all of its time",
			Choices: []choice{{Name: "fitted"}, {"25.7 us", change{LaunchMicroseconds: 25.7}}}},
		{Name: "DDR", Question: "What is left of the DDR's 108 GB/s?",
			Source:  "the manual's figure is the pins'; refresh takes 280 ns of each 3.904 us (LPDDR4 of 8 Gb). What turns between reading and writing cost is in the fitted share of activations",
			Choices: []choice{{Name: "all"}, {"without refresh", change{DDRShare: 0.928}}}},
		{Name: "1.81", Question: "What is AStitch's speedup over TVM?",
			Source:  "§5.2: 11.15 over TVM and 6.16 over AStitch are arithmetic means of speedups; their quotient is no mean of quotients",
			Choices: []choice{{Name: "quotient of means"}, {"mean of quotients", change{MeanOfRatios: true}}},
			Before:  "mean of quotients"},
		{Name: "3.67", Question: "What does variant 2 gain 3.67 over?",
			Source:  "§5.3: \"data moved from DDR to L1 instead of LLB\"; the slides: \"outperforms Variant 1\"",
			Choices: []choice{{Name: "variant 1"}, {"TVM", change{GainOverTVM: true}}}, Evidence: "TVM"},
	}
}

// setting is a set of choices to be run.
type setting struct {
	Name   string
	Change change
}

// settings are the choices in force, each reading's other choices alone, all that the evidence speaks for,
// and all as it was before.
func settings(list []reading) []setting {
	all := []setting{{Name: "in force"}}
	evidence, before := change{}, change{}
	for _, r := range list {
		for _, c := range r.Choices[1:] {
			all = append(all, setting{r.Name + ": " + c.Name, c.Change})
			if c.Name == r.Evidence {
				evidence = evidence.add(c.Change)
			}
			if c.Name == r.Before {
				before = before.add(c.Change)
			}
		}
	}
	return append(all, setting{"by the evidence", evidence}, setting{"all as before", before})
}
