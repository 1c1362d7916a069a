package bound_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

var (
	ranged = regexp.MustCompile(`ESTIMATE.* range ([0-9.]+)[a-z]* to ([0-9]+(?:\.[0-9]+)?)`)
	// What takes longer the larger it is; of all other figures the high end is the fast one.
	slowing = []string{"fill", "latency", "sync", "launch", "gap", "block", "simple", "move", "special"}
)

// A bound is of the machine as its file says, estimates too. Docs name how far it falls where each estimate that has a
// range is at its fast end, and where those that take time, with ranges and without, take none.
func TestBoundAtFastEndsOfEstimates(t *testing.T) {
	cases := []string{"resnet18", "gpt2-decode"}[:1+min(1, usual()/36)]
	for _, name := range hardware.Presets() {
		given, err := hardware.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		machines := [3]*hardware.Description{given, given, given}
		set := func(k int, field, value string) {
			if machines[k], err = machines[k].With(field, value); err != nil {
				t.Fatal(err)
			}
		}
		for _, field := range given.Fields() {
			comment, _ := given.Comment(field)
			value, _ := given.Value(field)
			unit, key := strings.TrimLeft(value, "0123456789."), field[strings.LastIndex(field, ".")+1:]
			slows := slices.Contains(slowing, key)
			if m := ranged.FindStringSubmatch(comment); m != nil && slows {
				set(1, field, m[1]+unit)
			} else if m != nil {
				set(1, field, m[2]+unit)
			}
			if strings.Contains(comment, "ESTIMATE") && slows && !strings.Contains(field, "cycles_per_op") {
				set(2, field, "0"+unit)
			}
		}
		for _, c := range cases {
			net, err := network.Open(c, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var least [3]float64
			for k, m := range machines {
				spec, err := m.Spec()
				if err == nil && spec.NeedsRaise() {
					spec, err = hardware.Raise(spec)
				}
				if err != nil {
					t.Fatal(err)
				}
				b, err := bound.Cold(t.Context(), net, spec, 4)
				if err != nil {
					t.Fatal(err)
				}
				least[k] = b.Seconds
			}
			fast, free := least[1]/least[0], least[2]/least[0]
			t.Logf("%s on %s: %.3f at the fast ends, %.3f without", c, name, fast, free)
			if fast > 1+1e-9 || fast < .93 || free > 1+1e-9 || free < .73 {
				t.Errorf("%s on %s: %g and %g of the bound, expected .93 to 1 and .73 to 1", c, name, fast, free)
			}
		}
	}
}
