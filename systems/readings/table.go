package readings

import (
	"bytes"
	"cmp"
	_ "embed" // readings.yaml
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"go.yaml.in/yaml/v3"
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
	// Before names the choice that was in force before the readings were asked for together; empty: the first.
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
	InPlace bool `yaml:"in_place"`
	// Uneven is of scheduler.Options, by its name.
	Uneven string
	// Fields of the accelerator, in the file's units.
	LaunchMicroseconds float64 `yaml:"launch_us"`
	// DDRShare is the share of the DDR's bandwidth that is left in both directions; 0: all.
	DDRShare float64 `yaml:"ddr_share"`
	// L1Bytes is an L1 of so many bytes in place of the accelerator's, for data and weights; 0: as it is.
	L1Bytes int64 `yaml:"l1_bytes"`
	// Steady takes the rate of batches in a row for every throughput.
	Steady bool
	// MeanOfRatios compares with the published quotient of two means the mean of the quotients.
	MeanOfRatios bool `yaml:"mean_of_ratios"`
	// GainOverTVM reads the published gain of variant 2 as one over TVM.
	GainOverTVM bool `yaml:"gain_over_tvm"`
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
	if c.Uneven != "" {
		parts = append(parts, "--uneven "+c.Uneven)
	}
	if c.LaunchMicroseconds != 0 {
		parts = append(parts, fmt.Sprintf("launch: %gus", c.LaunchMicroseconds))
	}
	if c.DDRShare != 0 {
		parts = append(parts, fmt.Sprintf("ddr.bandwidth times %g", c.DDRShare))
	}
	if c.L1Bytes != 0 {
		parts = append(parts, fmt.Sprintf("L1 of %d bytes for data and weights", c.L1Bytes))
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
	c.Uneven = cmp.Or(d.Uneven, c.Uneven)
	if d.LaunchMicroseconds != 0 {
		c.LaunchMicroseconds = d.LaunchMicroseconds
	}
	if d.DDRShare != 0 {
		c.DDRShare = d.DDRShare
	}
	c.L1Bytes = cmp.Or(d.L1Bytes, c.L1Bytes)
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
	if c.L1Bytes != 0 {
		s.L1.SizeBytes, s.L1WeightBytes = hardware.Bytes(c.L1Bytes), 0
	}
	return s, s.Validate()
}

// recipe is the one of this name with the change. TVM's results stay in the LLB where a cluster takes its whole share
// of the batch at once.
func (c change) recipe(name string, whole bool) (scheduler.Recipe, error) {
	picks := c.Picks[name]
	if whole && name == "tvm" && !slices.ContainsFunc(picks, func(p scheduler.Pick) bool { return p.Stage == "outputs" }) {
		picks = append(slices.Clone(picks), scheduler.Pick{Stage: "outputs", Strategy: "llb"})
	}
	r, _ := literature.ByText(cmp.Or(c.Instead[name], name))
	if len(picks) == 0 {
		return r, nil
	}
	return r.Replace(scheduler.Options{}, picks...)
}

// options are the options of a recipe's run; what has no split has no footprints either.
func (c change) options(r scheduler.Recipe, chunk int64) scheduler.Options {
	opt := literature.Options(chunk)
	opt.InPlace = c.InPlace && strings.HasPrefix(r.Pick("group"), "alg2")
	if c.Uneven != "" {
		opt.Uneven, _ = schedule.ParseUneven(c.Uneven)
	}
	return opt
}

//go:embed readings.yaml
var readingsYAML []byte

// readings lists them all.
func readings() (list []reading) {
	decoder := yaml.NewDecoder(bytes.NewReader(readingsYAML))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		panic("readings.yaml: " + err.Error())
	}
	return list
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
