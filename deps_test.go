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
	"cmd/dsasched":                    {"experiments", "experiments/harness", "experiments/tuning", "formulation/allocate", "formulation/binding", "formulation/bound", "formulation/highs", "formulation/milp", "formulation/ordering", "formulation/partition", "formulation/pipelining", "formulation/rcpsp", "formulation/solve", "formulation/split", "formulation/whole", "hardware", "hardware/isa", "hardware/server", "hardware/sim/trace", "hardware/simt", "hardware/streams", "heuristics/ansor", "heuristics/graphturbo", "model", "model/grain", "model/network", "model/onnx", "model/schedule", "model/schedulefile", "model/simplify", "model/structure", "model/zoo", "plots", "regular", "scheduler", "scheduler/balance", "scheduler/certificate", "scheduler/explain", "scheduler/kernels", "scheduler/picture", "spell"},
	"examples/accelerator":            {"hardware", "model/network", "scheduler"},
	"examples/cost":                   {"hardware", "hardware/cost", "model", "model/network", "scheduler"},
	"examples/experiment":             {"experiments", "hardware", "model/network", "scheduler"},
	"examples/scheduler":              {"hardware", "model/network", "model/schedule", "scheduler"},
	"experiments":                     {"experiments/ablation", "experiments/balancing", "experiments/harness", "experiments/loops", "experiments/optimality", "experiments/paperfigs", "experiments/readings", "experiments/report", "experiments/stitching", "experiments/systems", "experiments/timeline", "experiments/tuning", "hardware", "model/network", "scheduler", "spell"},
	"experiments/ablation":            {"experiments/harness", "experiments/literature", "hardware", "model", "plots", "scheduler"},
	"experiments/balancing":           {"experiments/harness", "formulation/milp", "formulation/partition", "formulation/pipelining", "hardware", "hardware/isa", "hardware/pipeline", "hardware/server", "hardware/streams", "heuristics/mofang", "model", "model/network", "plots", "scheduler", "scheduler/balance"},
	"experiments/harness":             {"formulation/milp", "hardware", "hardware/isa", "hardware/lower", "hardware/sim", "model", "model/network", "plots", "regular", "scheduler"},
	"experiments/harness/harnesstest": {},
	"experiments/literature":          {"experiments/harness", "scheduler"},
	"experiments/loops":               {"experiments/harness", "formulation/milp", "formulation/solve", "formulation/tiling", "hardware", "heuristics/ansor", "model", "model/network", "scheduler", "scheduler/explain"},
	"experiments/optimality":          {"experiments/harness", "experiments/literature", "formulation/bound", "formulation/milp", "formulation/ordering", "hardware", "model/network", "plots", "scheduler"},
	"experiments/paperfigs":           {"experiments/harness", "experiments/literature", "formulation/allocate", "hardware", "hardware/isa", "hardware/lower", "heuristics/graphturbo", "model", "model/grain", "model/schedule", "model/structure", "plots", "scheduler"},
	"experiments/readings":            {"experiments/harness", "experiments/literature", "hardware", "hardware/lower", "heuristics/graphturbo", "model", "model/grain", "model/network", "model/schedule", "plots", "scheduler"},
	"experiments/report":              {"experiments/harness", "experiments/report/page", "experiments/timeline", "regular"},
	"experiments/report/page":         {},
	"experiments/stitching":           {"experiments/harness", "hardware/simt", "model", "model/fusion", "model/network", "plots", "scheduler/kernels"},
	"experiments/systems":             {"experiments/harness", "experiments/literature", "formulation/bound", "hardware", "hardware/lower", "heuristics/graphturbo", "model/network", "plots", "scheduler"},
	"experiments/timeline":            {"experiments/harness", "experiments/literature", "hardware", "hardware/isa", "model", "scheduler"},
	"experiments/tuning":              {"experiments/harness", "experiments/literature", "hardware", "model", "model/grain", "model/network", "plots", "scheduler", "spell"},
	"formulation/allocate":            {"formulation/milp", "formulation/solve"},
	"formulation/binding":             {"formulation/milp", "formulation/solve", "hardware/cost", "heap", "model", "model/schedule"},
	"formulation/bound":               {"hardware", "hardware/cost", "model", "model/network", "model/schedule"},
	"formulation/highs":               {"formulation/milp"},
	"formulation/joint":               {"formulation/binding", "formulation/milp", "formulation/ordering", "formulation/solve", "heap", "model/schedule"},
	"formulation/layering":            {"formulation/milp", "formulation/solve"},
	"formulation/milp":                {},
	"formulation/ordering":            {"formulation/milp", "formulation/solve", "heap", "regular"},
	"formulation/partition":           {"formulation/milp", "formulation/solve", "regular"},
	"formulation/pipelining":          {"formulation/milp"},
	"formulation/rcpsp":               {"formulation/milp", "formulation/solve"},
	"formulation/solve":               {"formulation/milp"},
	"formulation/split":               {"formulation/milp", "formulation/solve", "hardware", "hardware/cost", "model", "model/schedule"},
	"formulation/stitch":              {"formulation/milp", "formulation/solve"},
	"formulation/tiling":              {"formulation/milp", "formulation/solve", "heap"},
	"formulation/whole":               {"formulation/binding", "formulation/joint", "formulation/milp", "formulation/ordering", "formulation/solve", "heap", "model/schedule"},
	"hardware":                        {"regular", "spell"},
	"hardware/cost":                   {"hardware", "model"},
	"hardware/interp":                 {"hardware/isa", "model", "model/schedule"},
	"hardware/isa":                    {},
	"hardware/lower":                  {"hardware", "hardware/cost", "hardware/isa", "model", "model/schedule"},
	"hardware/pipeline":               {},
	"hardware/server":                 {"hardware"},
	"hardware/sim":                    {"hardware/isa"},
	"hardware/sim/trace":              {"hardware/isa", "hardware/sim"},
	"hardware/simt":                   {"hardware"},
	"hardware/streams":                {"hardware", "model"},
	"heap":                            {},
	"heuristics/ansor":                {"hardware", "hardware/cost", "hardware/lower", "hardware/sim", "model", "model/schedule", "spell"},
	"heuristics/astitch":              {"hardware/simt", "heap", "model", "model/fusion", "model/schedule"},
	"heuristics/graphturbo":           {"heap", "model", "model/schedule"},
	"heuristics/mofang":               {"hardware/streams"},
	"heuristics/tvm":                  {"hardware/simt", "model", "model/fusion", "model/schedule"},
	"heuristics/xla":                  {"hardware/simt", "model", "model/fusion"},
	"model":                           {},
	"model/fusion":                    {"hardware/simt", "model"},
	"model/grain":                     {"model"},
	"model/network":                   {"model", "model/grain", "model/onnx", "model/simplify", "model/zoo"},
	"model/onnx":                      {"model", "regular"},
	"model/schedule":                  {"hardware", "hardware/cost", "heap", "model"},
	"model/schedulefile":              {"hardware", "model", "model/schedule", "regular"},
	"model/simplify":                  {"model"},
	"model/structure":                 {"model", "model/schedule", "model/simplify"},
	"model/training":                  {"model"},
	"model/zoo":                       {"model", "spell"},
	"plots":                           {},
	"regular":                         {},
	"scheduler":                       {"formulation/allocate", "formulation/binding", "formulation/joint", "formulation/milp", "formulation/ordering", "formulation/partition", "formulation/rcpsp", "formulation/solve", "formulation/split", "formulation/whole", "hardware", "hardware/cost", "hardware/isa", "hardware/lower", "hardware/server", "hardware/sim", "heap", "heuristics/ansor", "heuristics/astitch", "heuristics/graphturbo", "heuristics/tvm", "model", "model/network", "model/schedule", "model/schedulefile", "scheduler/issue", "spell"},
	"scheduler/balance":               {"formulation/layering", "formulation/milp", "formulation/partition", "formulation/pipelining", "formulation/solve", "hardware", "hardware/pipeline", "hardware/server", "hardware/streams", "heuristics/mofang", "model", "model/network", "model/training"},
	"scheduler/certificate":           {"formulation/bound", "hardware", "model", "model/grain", "model/network", "model/schedulefile", "regular", "scheduler"},
	"scheduler/explain":               {"hardware/isa", "hardware/sim", "heuristics/graphturbo", "model", "model/schedule", "scheduler", "scheduler/picture", "spell"},
	"scheduler/issue":                 {"formulation/rcpsp", "hardware/isa"},
	"scheduler/kernels":               {"formulation/milp", "formulation/stitch", "hardware/simt", "heuristics/astitch", "heuristics/tvm", "heuristics/xla", "model", "model/fusion", "model/grain", "model/network", "model/simplify", "plots", "spell"},
	"scheduler/picture":               {"hardware/isa", "model/schedule", "plots", "scheduler"},
	"spell":                           {},
	"tests/benchmarks":                {"model"},
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
