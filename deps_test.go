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
	"cmd/dsasched": {"experiments", "formulation/allocate", "formulation/binding", "formulation/bound",
		"formulation/highs", "formulation/milp", "formulation/ordering", "formulation/partition",
		"formulation/sharding", "formulation/solve", "formulation/split", "formulation/tiling", "hardware",
		"hardware/isa", "heuristics/ansor", "heuristics/graphturbo", "internal/calibration",
		"internal/certificate", "internal/explore", "internal/grain", "internal/harness",
		"internal/recording", "internal/safefile", "internal/schedulefile", "internal/server",
		"internal/simplify", "internal/simt", "internal/structure", "internal/suggest", "internal/trace",
		"model", "model/network", "model/onnx", "model/schedule", "model/zoo", "plots", "scheduler",
		"scheduler/answers", "scheduler/explain", "scheduler/picture", "scheduler/search",
		"systems/astitchgpu/kernels", "systems/exchange/convert", "systems/llm", "systems/llm/experts",
		"systems/llm/serving", "systems/mofang/balance", "systems/mofang/pipelining",
		"systems/mofang/streams"},
	"examples/accelerator": {"hardware", "model/network", "scheduler"},
	"examples/cost":        {"hardware", "hardware/cost", "model", "model/network", "scheduler"},
	"examples/experiment":  {"experiments", "hardware", "model/network", "scheduler"},
	"examples/tuning": {"hardware", "heuristics/ansor", "model/network", "model/schedule", "scheduler",
		"scheduler/answers"},
	"examples/scheduler": {"hardware", "model/network", "model/schedule", "scheduler", "scheduler/search"},
	"experiments": {"experiments/internal/ablation", "experiments/internal/beside",
		"experiments/internal/loops", "experiments/internal/measured", "experiments/internal/optimality",
		"experiments/internal/paperfigs", "experiments/internal/peers", "experiments/internal/readings",
		"experiments/internal/report", "experiments/internal/roofline", "experiments/internal/timeline",
		"experiments/internal/tuning", "hardware", "internal/harness", "internal/literature",
		"internal/suggest", "model/network", "scheduler", "systems"},
	"experiments/internal/ablation": {"hardware", "internal/harness", "internal/literature", "model", "plots",
		"scheduler"},
	"internal/calibration": {"hardware", "internal/literature", "model", "model/network", "scheduler"},
	"internal/explore": {"hardware", "internal/grain", "internal/harness", "internal/suggest", "model",
		"model/network", "plots", "scheduler"},
	"internal/literature": {"internal/harness", "scheduler"},
	"experiments/internal/beside": {"formulation/bound", "hardware", "internal/harness",
		"internal/literature", "model/network", "plots", "scheduler", "scheduler/search"},
	"experiments/internal/loops": {"formulation/milp", "formulation/solve", "formulation/tiling", "hardware",
		"heuristics/ansor", "internal/harness", "model", "model/network", "plots", "scheduler",
		"scheduler/answers", "scheduler/explain"},
	"experiments/internal/measured": {"formulation/bound", "formulation/milp", "formulation/sharding",
		"formulation/solve", "formulation/tiling", "hardware", "hardware/cost", "hardware/lower",
		"heuristics/graphturbo", "internal/harness", "model", "model/network", "model/schedule", "plots",
		"scheduler", "scheduler/search"},
	"experiments/internal/optimality": {"formulation/bound", "hardware", "hardware/isa", "internal/harness",
		"internal/literature", "model", "model/network", "plots", "scheduler", "scheduler/answers",
		"scheduler/search"},
	"experiments/internal/paperfigs": {"formulation/allocate", "hardware", "hardware/isa",
		"heuristics/graphturbo", "internal/grain", "internal/harness", "internal/literature",
		"internal/structure", "model", "model/schedule", "plots", "scheduler", "scheduler/picture"},
	"experiments/internal/peers": {"formulation/bound", "hardware", "internal/harness", "internal/simplify",
		"model", "model/network", "scheduler"},
	"experiments/internal/readings": {"hardware", "internal/grain", "internal/harness", "internal/literature",
		"model", "model/network", "model/schedule", "plots", "scheduler"},
	"experiments/internal/report": {"experiments/internal/timeline", "internal/harness", "internal/page",
		"internal/safefile"},
	"experiments/internal/roofline": {"formulation/bound", "formulation/milp", "formulation/solve",
		"formulation/tiling", "hardware", "hardware/cost", "hardware/isa", "internal/certificate",
		"internal/harness", "model", "model/network", "model/schedule", "model/zoo", "plots", "scheduler",
		"scheduler/search"},
	"experiments/internal/timeline": {"hardware", "internal/harness", "internal/literature",
		"internal/recording", "model", "scheduler"},
	"experiments/internal/tuning": {"hardware", "internal/calibration", "internal/harness",
		"internal/literature", "model", "model/network", "plots", "scheduler"},
	"formulation/allocate": {"formulation/milp", "formulation/solve"},
	"formulation/binding": {"formulation/milp", "formulation/solve", "hardware/cost", "internal/heap",
		"internal/strict", "model", "model/schedule"},
	"formulation/bound": {"formulation/unrelated", "hardware", "hardware/cost", "internal/simplify", "model",
		"model/network", "model/schedule"},
	"formulation/highs": {"formulation/milp"},
	"formulation/joint": {"formulation/binding", "formulation/milp", "formulation/ordering", "formulation/solve",
		"internal/heap", "model/schedule"},
	"formulation/milp": {},
	"formulation/ordering": {"formulation/milp", "formulation/solve", "internal/heap", "internal/safefile",
		"internal/strict"},
	"formulation/partition": {"formulation/milp", "formulation/solve", "internal/safefile", "internal/strict"},
	"formulation/sharding":  {"formulation/binding", "formulation/solve", "hardware", "model", "model/schedule"},
	"formulation/solve":     {"formulation/milp"},
	"formulation/split": {"formulation/milp", "formulation/solve", "hardware", "hardware/cost", "internal/heap",
		"internal/strict", "model", "model/schedule"},
	"formulation/tiling": {"formulation/milp", "formulation/solve", "hardware", "hardware/cost",
		"internal/heap", "internal/strict", "model", "model/schedule"},
	"formulation/unrelated": {"formulation/milp", "formulation/solve", "internal/strict"},
	"hardware":              {"internal/safefile", "internal/suggest"},
	"hardware/cost":         {"hardware", "model"},
	"hardware/isa":          {},
	"hardware/lower":        {"hardware", "hardware/cost", "hardware/isa", "model", "model/schedule"},
	"hardware/sim":          {"hardware/isa"},
	"heuristics/ansor": {"hardware", "hardware/cost", "hardware/lower", "hardware/sim", "internal/suggest",
		"model", "model/schedule"},
	"internal/heuristics/astitch": {"internal/fusion", "internal/heap", "internal/simt", "model", "model/schedule"},
	"heuristics/graphturbo":       {"hardware", "internal/heap", "model", "model/schedule"},
	"internal/heuristics/tvm":     {"internal/fusion", "internal/simt", "model", "model/schedule"},
	"internal/certificate": {"formulation/bound", "hardware", "internal/grain", "internal/safefile",
		"internal/schedulefile", "internal/strict", "model", "model/network", "scheduler"},
	"internal/fusion": {"internal/simt", "model"},
	"internal/grain":  {"model"},
	"internal/harness": {"hardware", "hardware/isa", "hardware/lower", "hardware/sim",
		"heuristics/graphturbo", "internal/safefile", "model", "model/network", "plots", "scheduler"},
	"internal/harness/harnesstest": {},
	"internal/heap":                {},
	"internal/interp":              {"model"},
	"internal/issue":               {"hardware/isa", "internal/heap"},
	"internal/schedulefile":        {"hardware", "internal/safefile", "internal/strict", "model", "model/schedule"},
	"internal/server":              {"hardware"},
	"internal/simplify":            {"internal/heap", "model"},
	"internal/simt":                {"hardware"},
	"internal/strict":              {},
	"internal/page":                {},
	"internal/recording": {"hardware", "hardware/isa", "hardware/sim", "internal/harness", "internal/page",
		"model/schedule", "scheduler", "scheduler/explain", "scheduler/picture"},
	"internal/trace":     {"hardware/isa", "hardware/sim"},
	"internal/training":  {"model"},
	"model":              {},
	"model/network":      {"internal/grain", "internal/simplify", "model", "model/onnx", "model/stablehlo", "model/zoo"},
	"model/onnx":         {"internal/safefile", "model"},
	"model/schedule":     {"hardware", "hardware/cost", "internal/heap", "model"},
	"model/stablehlo":    {"internal/safefile", "model"},
	"internal/structure": {"internal/simplify", "model", "model/schedule"},
	"model/zoo":          {"internal/suggest", "model"},
	"plots":              {},
	"internal/safefile":  {},
	"scheduler": {"formulation/allocate", "formulation/binding", "formulation/joint", "formulation/milp",
		"formulation/ordering", "formulation/partition", "formulation/solve", "formulation/split", "formulation/tiling",
		"formulation/unrelated", "hardware", "hardware/cost", "hardware/isa", "hardware/lower",
		"hardware/sim", "heuristics/ansor", "heuristics/graphturbo", "internal/heap",
		"internal/heuristics/astitch", "internal/heuristics/tvm", "internal/schedulefile", "internal/server",
		"internal/simplify", "internal/suggest", "model", "model/network", "model/schedule"},
	"scheduler/picture": {"hardware/isa", "model/schedule", "plots", "scheduler"},
	"internal/suggest":  {},
	"scheduler/answers": {"formulation/binding", "formulation/milp", "formulation/ordering",
		"formulation/sharding", "formulation/split", "hardware", "hardware/cost", "hardware/isa",
		"hardware/lower", "heuristics/ansor", "internal/issue", "internal/schedulefile", "internal/suggest",
		"model", "model/network", "model/schedule", "scheduler"},
	"scheduler/explain": {"hardware/isa", "hardware/sim", "heuristics/graphturbo", "internal/suggest",
		"model", "model/schedule", "scheduler", "scheduler/picture"},
	"scheduler/search": {"formulation/milp", "formulation/split", "hardware", "hardware/cost",
		"hardware/lower", "heuristics/graphturbo", "model", "model/network", "model/schedule", "scheduler"},
	"tests/benchmarks": {"model"},
	"systems": {"internal/harness", "systems/astitchgpu/stitching", "systems/llm/traffic",
		"systems/mofang/balancing"},
	"systems/astitchgpu/kernels": {"formulation/milp", "internal/fusion", "internal/grain",
		"internal/heuristics/astitch", "internal/heuristics/tvm", "internal/simplify", "internal/simt",
		"internal/suggest", "internal/training", "model", "model/network", "plots",
		"systems/astitchgpu/stitch", "systems/astitchgpu/tensorrt", "systems/astitchgpu/xla"},
	"systems/astitchgpu/stitch": {"formulation/milp", "formulation/solve"},
	"systems/astitchgpu/stitching": {"internal/fusion", "internal/harness", "internal/simt", "model",
		"model/network", "plots", "systems/astitchgpu/kernels"},
	"systems/astitchgpu/tensorrt": {"internal/fusion", "internal/simt", "model"},
	"systems/astitchgpu/xla":      {"internal/fusion", "internal/simt", "model"},
	"systems/exchange/convert":    {"hardware", "internal/safefile", "internal/strict"},
	"systems/llm": {"formulation/bound", "formulation/sharding", "formulation/solve", "hardware",
		"internal/simplify", "model", "model/network", "model/zoo", "scheduler", "systems/llm/experts",
		"systems/llm/serving"},
	"systems/llm/experts": {"formulation/milp", "formulation/solve", "internal/strict"},
	"systems/llm/serving": {"formulation/milp", "formulation/solve", "internal/heap", "internal/strict"},
	"systems/llm/traffic": {"formulation/binding", "formulation/milp", "formulation/solve", "hardware",
		"internal/harness", "internal/server", "model", "model/network", "model/zoo", "plots", "scheduler",
		"scheduler/answers", "systems/llm", "systems/llm/experts", "systems/llm/serving"},
	"systems/mofang": {"systems/mofang/streams"},
	"systems/mofang/balance": {"formulation/milp", "formulation/partition", "formulation/solve", "hardware",
		"internal/server", "internal/training", "model", "model/network", "systems/mofang",
		"systems/mofang/devicepipe", "systems/mofang/layering", "systems/mofang/pipelining",
		"systems/mofang/streams"},
	"systems/mofang/balancing": {"formulation/milp", "formulation/partition", "hardware/isa",
		"hardware/lower", "internal/harness", "internal/server", "model", "model/network", "plots",
		"scheduler", "systems/mofang", "systems/mofang/balance", "systems/mofang/devicepipe",
		"systems/mofang/pipelining", "systems/mofang/streams"},
	"systems/mofang/devicepipe": {},
	"systems/mofang/layering":   {"formulation/milp", "formulation/solve", "internal/strict"},
	"systems/mofang/pipelining": {"internal/strict"},
	"systems/mofang/streams":    {"hardware", "model"},
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
