package dsasched_test

import (
	"os/exec"
	"sort"
	"strings"
	"testing"
)

const root = "github.com/dsasched/dsasched/"

// mayImport is the architecture: for each package the project's packages that it
// may import. A new edge is a decision and belongs here first.
//
// Imports go one way: model and hardware know nothing of schedules; model/schedule
// knows graphs and hardware descriptions; heuristics and formulation know
// model/schedule and never each other; hardware/lower knows schedules, hardware/sim
// only programs; experiments knows all but HiGHS; the command wires everything.
var mayImport = map[string][]string{
	"model":                 {},
	"model/zoo":             {"model", "spell"},
	"model/onnx":            {"model"},
	"model/simplify":        {"model"},
	"model/project":         {},
	"model/schedule":        {"model", "hardware"},
	"model/ordering":        {},
	"model/schedulefile":    {"hardware", "model", "model/schedule"},
	"model/structure":       {"model", "model/schedule"},
	"model/memory":          {},
	"spell":                 {},
	"hardware":              {"spell"},
	"hardware/isa":          {},
	"hardware/sim":          {"hardware/isa"},
	"hardware/sim/trace":    {"hardware/isa", "hardware/sim"},
	"hardware/cost":         {"hardware", "model"},
	"hardware/lower":        {"hardware", "hardware/cost", "hardware/isa", "model", "model/schedule"},
	"heuristics/astitch":    {"model", "model/schedule"},
	"heuristics/graphturbo": {"model", "model/schedule"},
	"heuristics/project":    {"model/project"},
	"heuristics/tvm":        {"model", "model/schedule"},
	"formulation/milp":      {},
	"formulation/highs":     {"formulation/milp"},
	"formulation/binding":   {"formulation/milp", "hardware", "hardware/cost", "model", "model/schedule"},
	"formulation/split":     {"formulation/milp", "hardware", "hardware/cost", "model", "model/schedule"},
	"formulation/joint":     {"formulation/binding", "formulation/milp", "formulation/ordering", "model/ordering", "model/schedule"},
	"formulation/project":   {"formulation/milp", "model/project"},
	"experiments/issue":     {"formulation/project", "hardware/isa", "heuristics/project", "model/project"},
	"heuristics/memory":     {"model/memory"},
	"formulation/memory":    {"formulation/milp", "model/memory"},
	"heuristics/ordering":   {"model/ordering"},
	"formulation/ordering":  {"formulation/milp", "model/ordering"},
	"experiments/page":      {},
	"experiments/network":   {"experiments/variant", "model", "model/onnx", "model/simplify", "model/zoo"},
	"experiments/variant":   {"formulation/binding", "formulation/joint", "formulation/memory", "formulation/milp", "formulation/ordering", "formulation/split", "hardware", "hardware/cost", "hardware/isa", "hardware/lower", "hardware/sim", "heuristics/astitch", "heuristics/graphturbo", "heuristics/ordering", "heuristics/tvm", "model", "model/memory", "model/ordering", "model/schedule", "model/schedulefile", "spell"},
	"experiments":           {"experiments/issue", "experiments/network", "experiments/page", "experiments/variant", "formulation/binding", "formulation/joint", "formulation/memory", "formulation/milp", "formulation/ordering", "formulation/project", "formulation/split", "hardware", "hardware/cost", "hardware/isa", "hardware/lower", "hardware/sim", "heuristics/graphturbo", "heuristics/ordering", "model", "model/ordering", "model/schedule", "model/structure", "plots", "spell"},
	"plots":                 {},
	"examples/accelerator":  {"experiments/network", "experiments/variant", "hardware"},
	"examples/cost":         {"experiments/network", "experiments/variant", "hardware", "hardware/cost", "model"},
	"examples/experiment":   {"experiments", "experiments/network", "experiments/variant", "hardware"},
	"examples/scheduler":    {"experiments/network", "experiments/variant", "hardware", "model/schedule"},
	"cmd/dsasched":          {"experiments", "experiments/explain", "experiments/network", "experiments/picture", "experiments/variant", "formulation/binding", "formulation/highs", "formulation/memory", "formulation/milp", "formulation/ordering", "formulation/project", "formulation/split", "hardware", "hardware/cost", "hardware/isa", "hardware/sim", "hardware/sim/trace", "heuristics/graphturbo", "heuristics/memory", "heuristics/ordering", "heuristics/project", "model", "model/memory", "model/onnx", "model/ordering", "model/project", "model/schedule", "model/schedulefile", "model/simplify", "model/structure", "model/zoo", "plots", "spell"},
	"experiments/picture":   {"experiments/variant", "hardware/isa", "model/schedule", "plots"},
	"experiments/explain":   {"experiments/picture", "experiments/variant", "hardware/isa", "hardware/sim", "heuristics/graphturbo", "model", "model/schedule", "spell"},
}

func TestImportsGoOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		if fields[0]+"/" == root {
			continue
		}
		pkg := strings.TrimPrefix(fields[0], root)
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package %s is not in mayImport", pkg)
			continue
		}
		ok := map[string]bool{}
		for _, a := range allowed {
			ok[a] = true
		}
		for _, imp := range fields[1:] {
			if dep, own := strings.CutPrefix(imp, root); own && !ok[dep] {
				t.Errorf("%s imports %s, which mayImport does not allow", pkg, dep)
			}
			if strings.Contains(imp, "lanl/highs") && pkg != "formulation/highs" {
				t.Errorf("%s imports %s: only formulation/highs touches HiGHS", pkg, imp)
			}
		}
	}
}

// The table itself has no cycle and names no package that does not exist.
func TestArchitectureIsAcyclic(t *testing.T) {
	state := map[string]int{}
	var visit func(p string, path []string)
	visit = func(p string, path []string) {
		if state[p] == 1 {
			t.Fatalf("cycle: %s", strings.Join(append(path, p), " -> "))
		}
		if state[p] == 2 {
			return
		}
		state[p] = 1
		deps, ok := mayImport[p]
		if !ok {
			t.Errorf("%v names %s, which is not in mayImport", path, p)
		}
		for _, d := range deps {
			visit(d, append(path, p))
		}
		state[p] = 2
	}
	names := make([]string, 0, len(mayImport))
	for p := range mayImport {
		names = append(names, p)
	}
	sort.Strings(names)
	for _, p := range names {
		visit(p, nil)
	}
}

// No grab-bag packages: a helper with no home in the domain stays beside its caller.
func TestNoGrabBags(t *testing.T) {
	for p := range mayImport {
		for _, bad := range []string{"util", "common", "helpers", "misc"} {
			if strings.Contains(p, bad) {
				t.Errorf("package %s", p)
			}
		}
	}
}
