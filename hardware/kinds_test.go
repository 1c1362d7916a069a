package hardware

import (
	"slices"
	"strings"
	"testing"
)

// kindsText is a machine of three kinds of core in the given order.
func kindsText(t *testing.T, order ...string) string {
	cores := map[string]string{
		"big": `  - name: big
    count: 2
    runs: [matrix, reduction, element-wise, injective]
    units:
      - {name: array, kind: matrix, rows: 64, cols: 32, rate: {f16: 1}, fill: 0cycles}
      - {name: simd, kind: vector, lanes: 64, rate: {f16: 1}, fill: 0cycles, cycles_per_op: {simple: 1, special: 4, move: 1}}
`,
		"small": `  - name: small
    count: 8
    runs: [matrix, reduction, element-wise, injective]
    units:
      - {name: array, kind: matrix, rows: 8, cols: 8, rate: {f16: 1}, fill: 0cycles}
      - {name: simd, kind: vector, lanes: 8, rate: {f16: 1}, fill: 0cycles, cycles_per_op: {simple: 1, special: 4, move: 1}}
`,
		"vector": `  - name: vector
    count: 1
    runs: [reduction, element-wise]
    units:
      - {name: simd, kind: vector, lanes: 4096, rate: {f16: 1}, fill: 0cycles, cycles_per_op: {simple: 1, special: 4, move: 1}}
`}
	text := "core_types:\n"
	for _, name := range order {
		text += cores[name]
	}
	whole := example(t)
	begin, end := strings.Index(whole, "core_types:"), strings.Index(whole, "\nlb:")
	return whole[:begin] + text + whole[end+1:]
}

func TestKinds(t *testing.T) {
	for _, order := range [][]string{{"big", "small", "vector"}, {"vector", "small", "big"}, {"small", "vector", "big"}} {
		s, err := Parse("my.yaml", []byte(kindsText(t, order...)))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for k, types := range s.Kinds() {
			names = append(names, types[0].Name)
			if one := s.Kind(k); len(one.CoreTypes) != 1 || one.CoreTypes[0].Name != types[0].Name {
				t.Errorf("kind %d is %v, expected the cores of %s alone", k, one.CoreTypes, types[0].Name)
			}
		}
		if want := []string{"big", "small", "vector"}; !slices.Equal(names, want) {
			t.Errorf("core types in the order %v have the kinds %v, expected %v", order, names, want)
		}
		if got := []int{s.FirstCore(0), s.FirstCore(1), s.FirstCore(2)}; !slices.Equal(got, []int{0, 2, 10}) {
			t.Errorf("kinds begin at cores %v", got)
		}
		if u, ok := s.UnitOf(Matrix); !ok || u.Rows != 64 || s.CoresWith(Matrix) != 2 {
			t.Errorf("a layer without a kind has %d units of %d rows, expected those of the first", s.CoresWith(Matrix), u.Rows)
		}
		if _, err := Raise(s); err == nil || !strings.Contains(err.Error(), "cores of several kinds") {
			t.Errorf("raised: %v", err)
		}
	}
}

func TestRunsErrors(t *testing.T) {
	text := kindsText(t, "big", "vector")
	for _, c := range []struct{ old, new, want string }{
		{"    runs: [reduction, element-wise]\n", "", `core_types[1].runs: found none, expected a list of`},
		{"[reduction, element-wise]", "[reduction, conv]", `core_types[1].runs: found "conv", expected classes of operators`},
		{"[reduction, element-wise]", "[reduction, reduction]", `core_types[1].runs: found "reduction" twice, expected each`},
		{"[reduction, element-wise]", "reduction", `core_types[1].runs: found "reduction", expected a list of`},
		{"    runs: [reduction, element-wise]\n", "    runs: [reduction]\n    has_lb: false\n", `core_types[1].has_lb: found "false", expected true`},
		{"simd, kind: vector, lanes: 4096", "simd, kind: matrix, rows: 1, cols: 1, lanes: 4096",
			`core_types[1].units: found no vector unit and no special unit`},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("the text has no %q", c.old)
		}
		_, err := Parse("my.yaml", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}

// A machine taken apart has a cluster for each kind, the LLB's room in equal parts, and the same peak.
func TestApart(t *testing.T) {
	s, err := Parse("kinds.yaml", []byte(kindsText(t, "big", "small", "vector")))
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Apart()
	if err != nil {
		t.Fatal(err)
	}
	if a.Clusters != 3*s.Clusters || a.Sides() != 3 || s.Sides() != 1 || a.LLB.SizeBytes != s.LLB.SizeBytes/3 ||
		a.PeakMACsPerSecond("f16") != s.PeakMACsPerSecond("f16") ||
		a.Kind(1).CoreTypes[0].Name != s.Kind(1).CoreTypes[0].Name {
		t.Errorf("taken apart: %+v", a)
	}
	s, err = Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apart(); err == nil || !strings.Contains(err.Error(), "expected several kinds") {
		t.Errorf("cores of one kind: %v", err)
	}
}

// A part has at most so many cores of each kind, and is none where the kinds would change places.
func TestPart(t *testing.T) {
	s, err := Parse("my.yaml", []byte(kindsText(t, "small", "big", "vector")))
	if err != nil {
		t.Fatal(err)
	}
	part := s.Part(3)
	for i, want := range []int{3, 2, 1} {
		if got := part.CoreTypes[i].Count; got != want {
			t.Errorf("%d cores of %s, expected %d", got, part.CoreTypes[i].Name, want)
		}
	}
	if s.CoreTypes[0].Count != 8 {
		t.Error("the machine has changed")
	}
	s.CoreTypes[0].Count = 100 // together they are faster than the big ones
	if part = s.Part(3); part != nil {
		t.Errorf("part has %v", part.CoreTypes)
	}
}
