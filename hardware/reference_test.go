package hardware_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

// The reference of the machine file has every field that a preset has.
func TestReferenceHasEveryField(t *testing.T) {
	page, err := os.ReadFile("../docs/machine-file.md")
	if err != nil {
		t.Fatal(err)
	}
	index := regexp.MustCompile(`\[\d+\]`)
	told := map[string]bool{}
	for _, name := range hardware.Presets() {
		d, err := hardware.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Fields() {
			f = index.ReplaceAllString(f, "[]")
			for _, m := range []string{"rate", "cycles_per_op", "energy.mac", "energy.vector"} { // of types and classes
				if at := strings.Index(f, m+"."); at >= 0 {
					f = f[:at+len(m)]
				}
			}
			if !told[f] && !strings.Contains(string(page), "\n| `"+f+"` | ") {
				t.Errorf("docs/machine-file.md has no row of `%s` (%s)", f, name)
			}
			told[f] = true
		}
	}
	_, err = hardware.Parse("my.yaml", []byte("core_types: [{units: [{rate: {f17: 1}}]}]"))
	_, types, _ := strings.Cut(fmt.Sprint(err), "rate.f17: found an unknown dtype, expected one ")
	if types, _, _ = strings.Cut(types, "\n"); !strings.Contains(string(page), "`{f16: 1, i8: 2}`, "+types+" |") {
		t.Errorf("docs/machine-file.md does not name the types %q", types)
	}
}

// The example of the page is read, has every field of its table, and describes what a preset can.
func TestMachineFileExample(t *testing.T) {
	page, err := os.ReadFile("../docs/machine-file.md")
	if err != nil {
		t.Fatal(err)
	}
	table, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/machine-file.md has no example")
	}
	spec, err := hardware.Parse("my-chip.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if spec.Cores() != 9 || spec.PeakMACsPerSecond("f16") == 0 || spec.Energy == nil {
		t.Errorf("%s", spec.Describe())
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(?:[a-z_]+(?:\\[\\])?\\.)*([a-z_]+)` ").FindAllStringSubmatch(
		table, -1) {
		if !regexp.MustCompile("(?m)^[ #-]*" + row[1] + ":").MatchString(example) {
			t.Errorf("the example has no field %s", row[1])
		}
	}
}
