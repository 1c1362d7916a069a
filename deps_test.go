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
// knows graphs and hardware descriptions; hardware/lower knows schedules, hardware/sim
// only programs; scheduler, the engine, knows no method; heuristics and formulation/exact
// import it to be its strategies, of which recipes makes the table; heuristics know no
// problem of formulation but the closed form of tiles; experiments knows all but HiGHS;
// the command wires everything.
var mayImport = map[string][]string{
	"cmd/dsasched": {"cmd/cli"},
	"cmd/cli": {"experiments", "experiments/harness",
		"experiments/schedules", "formulation/allocate", "formulation/binding", "formulation/bound", "formulation/exact",
		"formulation/highs", "formulation/joint", "formulation/milp", "formulation/ordering", "formulation/solve",
		"formulation/split", "hardware", "hardware/chips", "hardware/isa", "internal/bail", "internal/certificate",
		"internal/safefile", "internal/suggest", "model", "model/grain", "model/network", "model/onnx",
		"model/schedule", "model/schedulefile", "model/simplify", "model/structure", "model/zoo", "plots",
		"plots/recording", "recipes", "scheduler", "scheduler/answers", "scheduler/explain",
		"scheduler/picture", "scheduler/search", "systems/ansor", "systems/ansor/tuning",
		"systems/astitchgpu/fusion", "systems/astitchgpu/kernels", "systems/astitchgpu/simt",
		"systems/exchange/plans", "systems/exchange/trace", "systems/explore", "systems/measured/calibration",
		"systems/mofang/balance", "systems/mofang/partition", "systems/mofang/pipelining",
		"systems/mofang/streams"},
	"examples/accelerator": {"hardware", "model/network", "recipes", "scheduler"},
	"examples/command":     {"cmd/cli", "formulation/milp", "heuristics/graphturbo", "recipes", "scheduler"},
	"examples/experiment":  {"experiments", "hardware", "model/network", "recipes", "scheduler"},
	"examples/scheduler": {"hardware", "model/network", "model/schedule", "recipes", "scheduler",
		"scheduler/search"},
	"experiments": {"experiments/harness", "experiments/internal/ablation", "experiments/internal/beside",
		"experiments/internal/optimality", "experiments/internal/paperfigs", "experiments/internal/report",
		"hardware", "internal/literature", "internal/suggest",
		"model/network", "scheduler", "systems"},
	"experiments/harness": {"hardware", "hardware/isa", "hardware/lower", "hardware/sim", "internal/bail",
		"internal/safefile", "model", "model/network", "plots", "recipes", "scheduler"},
	"experiments/harness/harnesstest": {},
	"experiments/internal/ablation": {"experiments/harness", "hardware", "internal/literature", "model", "plots",
		"plots/recording", "recipes", "scheduler"},
	"experiments/internal/beside": {"experiments/harness", "formulation/bound", "hardware",
		"internal/bail", "internal/literature", "model/network", "model/schedule", "plots", "recipes", "scheduler",
		"scheduler/search"},
	"experiments/internal/optimality": {"experiments/harness", "formulation/bound", "hardware", "hardware/isa",
		"hardware/lower", "internal/bail", "internal/literature", "model", "model/network", "plots", "recipes",
		"scheduler", "scheduler/answers", "scheduler/search"},
	"experiments/internal/paperfigs": {"experiments/harness", "formulation/allocate", "formulation/exact",
		"hardware", "hardware/isa", "internal/literature", "model", "model/schedule", "model/structure",
		"plots", "recipes", "scheduler", "scheduler/picture"},
	"experiments/internal/report": {"experiments/harness", "internal/safefile",
		"plots/page", "plots/recording"},
	"experiments/schedules": {"experiments/harness", "experiments/internal/optimality", "formulation/bound", "hardware",
		"internal/certificate", "model", "model/network", "plots", "recipes", "scheduler"},
	"formulation/allocate": {"formulation/milp", "formulation/solve"},
	"formulation/binding": {"formulation/milp", "formulation/solve", "hardware/cost", "internal/heap",
		"internal/strict", "model", "model/schedule"},
	"formulation/bound": {"hardware", "hardware/cost", "model", "model/network", "model/schedule",
		"model/simplify"},
	"formulation/exact": {"formulation/allocate", "formulation/binding", "formulation/bound", "formulation/joint",
		"formulation/milp", "formulation/ordering", "formulation/solve", "formulation/split", "hardware",
		"hardware/cost", "heuristics/graphturbo", "model", "model/schedule", "model/simplify", "scheduler"},
	"formulation/highs": {"formulation/milp"},
	"formulation/issue": {"hardware/isa", "internal/heap"},
	"formulation/joint": {"formulation/binding", "formulation/milp", "formulation/ordering",
		"formulation/solve", "internal/heap", "internal/safefile", "internal/strict", "model/schedule"},
	"formulation/milp": {},
	"formulation/ordering": {"formulation/milp", "formulation/solve", "internal/heap", "internal/safefile",
		"internal/strict"},
	"formulation/solve": {"formulation/milp"},
	"formulation/split": {"formulation/milp", "formulation/solve", "hardware", "hardware/cost", "internal/heap",
		"internal/strict", "model", "model/schedule"},
	"formulation/tiling": {"formulation/milp", "formulation/solve", "hardware", "hardware/cost",
		"internal/heap", "model", "model/schedule"},
	"hardware":              {"internal/safefile", "internal/suggest"},
	"hardware/chips":        {"hardware"},
	"hardware/cost":         {"hardware", "model"},
	"hardware/isa":          {},
	"hardware/lower":        {"hardware", "hardware/cost", "hardware/isa", "model", "model/schedule"},
	"hardware/sim":          {"hardware/isa"},
	"heuristics/astitch":    {"internal/heap", "model", "model/schedule", "scheduler"},
	"heuristics/graphturbo": {"hardware", "internal/heap", "model", "model/schedule", "scheduler"},
	"heuristics/tiles": {"formulation/tiling", "hardware", "hardware/cost", "hardware/lower", "model",
		"model/schedule", "model/schedulefile", "scheduler"},
	"heuristics/tvm": {"model", "model/schedule", "scheduler"},
	"internal/certificate": {"formulation/bound", "hardware", "internal/safefile", "internal/strict", "model",
		"model/grain", "model/network", "model/schedule", "model/schedulefile", "recipes", "scheduler"},
	"internal/bail":   {},
	"internal/heap":   {},
	"internal/interp": {"model"},
	"internal/literature": {"experiments/harness", "hardware", "heuristics/tvm", "model", "model/grain",
		"model/schedule", "scheduler"},
	"internal/safefile":  {},
	"internal/strict":    {"internal/bail"},
	"internal/suggest":   {},
	"model":              {},
	"model/grain":        {"model"},
	"model/network":      {"model", "model/grain", "model/onnx", "model/simplify", "model/zoo"},
	"model/onnx":         {"internal/bail", "internal/safefile", "model"},
	"model/schedule":     {"hardware", "hardware/cost", "internal/heap", "model"},
	"model/schedulefile": {"hardware", "internal/safefile", "internal/strict", "model", "model/schedule"},
	"model/simplify":     {"internal/heap", "model"},
	"model/structure":    {"model", "model/schedule", "model/simplify"},
	"model/zoo":          {"internal/suggest", "model"},
	"plots":              {},
	"plots/page":         {},
	"plots/recording": {"experiments/harness", "hardware", "hardware/isa", "hardware/sim", "model/schedule",
		"plots/page", "scheduler", "scheduler/explain", "scheduler/picture"},
	"recipes": {"formulation/exact", "heuristics/astitch", "heuristics/graphturbo", "heuristics/tiles",
		"heuristics/tvm", "internal/suggest", "model/schedule", "scheduler"},
	"scheduler": {"formulation/milp", "formulation/solve", "formulation/split", "hardware", "hardware/chips",
		"hardware/cost", "hardware/isa", "hardware/lower", "hardware/sim", "internal/suggest", "model",
		"model/network", "model/schedule", "model/schedulefile", "model/simplify"},
	"scheduler/answers": {"formulation/binding", "formulation/exact", "formulation/issue", "formulation/milp",
		"formulation/ordering", "formulation/solve", "formulation/split", "hardware", "hardware/cost",
		"hardware/isa", "hardware/lower", "internal/suggest", "model", "model/network", "model/schedule",
		"model/schedulefile", "recipes", "scheduler"},
	"scheduler/explain": {"hardware/isa", "hardware/sim", "heuristics/graphturbo", "internal/suggest", "model",
		"model/schedule", "scheduler", "scheduler/picture"},
	"scheduler/picture": {"hardware/isa", "model/schedule", "plots", "scheduler"},
	"scheduler/search": {"formulation/milp", "formulation/split", "hardware", "hardware/cost", "hardware/lower",
		"model", "model/network", "model/schedule", "model/simplify", "recipes", "scheduler"},
	"systems": {"experiments/harness", "systems/ansor/loops", "systems/ansor/tuning",
		"systems/astitchgpu/stitching", "systems/exchange/stablehlo", "systems/kinds",
		"systems/measured", "systems/mofang/balancing", "systems/mofang/staging", "systems/readings"},
	"systems/ansor": {"hardware", "hardware/cost", "hardware/lower", "hardware/sim", "internal/suggest",
		"model", "model/schedule"},
	"systems/ansor/example": {"hardware", "model/network", "model/schedule", "recipes", "scheduler",
		"systems/ansor", "systems/ansor/tuning"},
	"systems/ansor/loops": {"experiments/harness", "formulation/milp", "formulation/solve",
		"formulation/tiling", "hardware", "internal/bail", "model", "model/network", "plots", "scheduler",
		"systems/ansor", "systems/ansor/tuning"},
	"systems/ansor/tuning": {"hardware", "hardware/lower", "hardware/sim", "model/network", "model/schedule",
		"model/schedulefile", "recipes", "scheduler", "systems/ansor"},
	"systems/astitchgpu/fusion": {"model", "systems/astitchgpu/simt"},
	"systems/astitchgpu/kernels": {"formulation/milp", "internal/suggest", "model", "model/grain",
		"model/network", "model/simplify", "systems/astitchgpu/fusion", "systems/astitchgpu/rules",
		"systems/astitchgpu/simt", "systems/astitchgpu/stitch", "systems/astitchgpu/tensorrt",
		"systems/astitchgpu/xla", "systems/training"},
	"systems/astitchgpu/rules": {"heuristics/astitch", "model", "systems/astitchgpu/fusion",
		"systems/astitchgpu/simt"},
	"systems/astitchgpu/simt":   {"hardware"},
	"systems/astitchgpu/stitch": {"formulation/milp", "formulation/solve"},
	"systems/astitchgpu/stitching": {"experiments/harness", "internal/bail", "model", "model/network", "plots",
		"systems/astitchgpu/fusion", "systems/astitchgpu/kernels", "systems/astitchgpu/simt"},
	"systems/astitchgpu/tensorrt": {"model", "systems/astitchgpu/fusion", "systems/astitchgpu/simt"},
	"systems/astitchgpu/xla":      {"model", "systems/astitchgpu/fusion", "systems/astitchgpu/simt"},
	"systems/exchange/plans":      {"formulation/allocate"},
	"systems/exchange/stablehlo":  {"internal/bail", "internal/safefile", "model", "model/network", "model/onnx"},
	"systems/exchange/trace":      {"hardware/isa", "hardware/sim"},
	"systems/explore": {"experiments/harness", "hardware", "internal/suggest", "model", "model/grain",
		"model/network", "plots", "recipes", "scheduler"},
	"systems/kinds": {"formulation/solve", "hardware", "model", "model/schedule", "scheduler",
		"systems/kinds/unrelated"},
	"systems/kinds/unrelated": {"formulation/bound", "formulation/milp", "formulation/solve",
		"internal/strict"},
	"systems/measured": {"experiments/harness", "formulation/bound", "formulation/milp",
		"formulation/solve", "formulation/tiling", "hardware", "hardware/cost", "internal/bail", "model",
		"model/network", "model/schedule", "model/zoo", "plots", "recipes", "scheduler"},
	"systems/measured/calibration": {"hardware", "internal/bail", "internal/literature", "model", "model/network",
		"scheduler"},
	"systems/mofang": {"systems/mofang/streams"},
	"systems/mofang/balance": {"formulation/milp", "formulation/solve", "hardware", "hardware/chips", "model",
		"model/network", "systems/mofang", "systems/mofang/devicepipe", "systems/mofang/layering",
		"systems/mofang/partition", "systems/mofang/pipelining", "systems/mofang/streams", "systems/training"},
	"systems/mofang/balancing": {"experiments/harness", "formulation/milp", "hardware/chips", "internal/bail", "model",
		"model/network", "plots", "systems/mofang", "systems/mofang/balance", "systems/mofang/devicepipe",
		"systems/mofang/partition", "systems/mofang/pipelining", "systems/mofang/streams"},
	"systems/mofang/devicepipe": {},
	"systems/mofang/layering":   {"formulation/milp", "formulation/solve", "internal/strict"},
	"systems/mofang/partition": {"formulation/milp", "formulation/solve", "internal/safefile",
		"internal/strict"},
	"systems/mofang/pipelining": {"internal/strict"},
	"systems/mofang/staging": {"formulation/milp", "formulation/split", "hardware", "model", "model/schedule",
		"scheduler", "systems/mofang/partition"},
	"systems/mofang/streams": {"hardware", "model"},
	"systems/readings": {"experiments/harness", "hardware", "internal/literature", "model",
		"model/grain", "model/network", "model/schedule", "plots", "recipes", "scheduler"},
	"systems/training": {"model"},
	"tests/benchmarks": {"hardware", "model"},
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
