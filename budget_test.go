package dsasched_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// total is the most that the budgets may add up to. It only goes down: a package grows if others shrink by as much in
// the same change.
const total = 128_087

// core is the most that the budgets may add up to without systems and the commands of cmd/cli that bear their
// names: what `scripts/without.sh` leaves. It only goes down, too.
const core = 100_158

// slack is how far a budget may stand above the lines of its package, so that budgets follow the code down.
const slack = 60

// budget is the most lines of Go without tests that each package may have.
var budget = map[string]int{
	".":                               27,
	"cmd/cli":                         7220,
	"cmd/dsasched":                    7,
	"examples/accelerator":            47,
	"examples/command":                85,
	"examples/experiment":             78,
	"examples/scheduler":              125,
	"experiments":                     337,
	"experiments/harness":             2618,
	"experiments/harness/harnesstest": 111,
	"experiments/internal/ablation":   763,
	"experiments/internal/beside":     330,
	"experiments/internal/optimality": 640,
	"experiments/internal/paperfigs":  3804,
	"experiments/internal/report":     741,
	"experiments/schedules":           629,
	"formulation/allocate":            3442,
	"formulation/binding":             1888,
	"formulation/bound":               3690,
	"formulation/exact":               1868,
	"formulation/highs":               910,
	"formulation/issue":               149,
	"formulation/joint":               1453,
	"formulation/milp":                897,
	"formulation/ordering":            2987,
	"formulation/solve":               335,
	"formulation/split":               2074,
	"formulation/tiling":              2171,
	"hardware":                        3230,
	"hardware/chips":                  199,
	"hardware/cost":                   570,
	"hardware/isa":                    739,
	"hardware/lower":                  6338,
	"hardware/sim":                    2998,
	"heuristics/astitch":              823,
	"heuristics/graphturbo":           2561,
	"heuristics/tiles":                1083,
	"heuristics/tvm":                  491,
	"internal/bail":                   41,
	"internal/certificate":            619,
	"internal/heap":                   53,
	"internal/interp":                 516,
	"internal/literature":             412,
	"internal/safefile":               110,
	"internal/strict":                 380,
	"internal/suggest":                74,
	"model":                           3604,
	"model/grain":                     391,
	"model/network":                   247,
	"model/onnx":                      7219,
	"model/schedule":                  5918,
	"model/schedulefile":              1528,
	"model/simplify":                  2153,
	"model/structure":                 1055,
	"model/zoo":                       2681,
	"notebooks/show":                  69,
	"plots":                           1693,
	"plots/page":                      916,
	"plots/recording":                 893,
	"recipes":                         297,
	"scheduler":                       8135,
	"scheduler/answers":               1267,
	"scheduler/explain":               880,
	"scheduler/picture":               231,
	"scheduler/search":                2238,
	"systems":                         50,
	"systems/ansor":                   3130,
	"systems/ansor/example":           53,
	"systems/ansor/loops":             1015,
	"systems/ansor/tuning":            640,
	"systems/astitchgpu/fusion":       864,
	"systems/astitchgpu/kernels":      592,
	"systems/astitchgpu/rules":        550,
	"systems/astitchgpu/simt":         641,
	"systems/astitchgpu/stitch":       358,
	"systems/astitchgpu/stitching":    859,
	"systems/astitchgpu/tensorrt":     145,
	"systems/astitchgpu/xla":          364,
	"systems/exchange/plans":          321,
	"systems/exchange/stablehlo":      3829,
	"systems/exchange/trace":          344,
	"systems/explore":                 812,
	"systems/kinds":                   247,
	"systems/kinds/unrelated":         827,
	"systems/measured":                1685,
	"systems/measured/calibration":    467,
	"systems/mofang":                  338,
	"systems/mofang/balance":          498,
	"systems/mofang/balancing":        1133,
	"systems/mofang/devicepipe":       300,
	"systems/mofang/layering":         400,
	"systems/mofang/partition":        2556,
	"systems/mofang/pipelining":       547,
	"systems/mofang/staging":          180,
	"systems/mofang/streams":          608,
	"systems/readings":                874,
	"systems/training":                699,
	"tests/benchmarks":                83,
}

// heart lists the packages that are never cut for lines, with the least lines of each: order, binding and split
// programs, bound and certificates, the paper's algorithms and figures, machine, simulator and interpreter.
// A package that moves takes its floor with it.
var heart = map[string]int{
	"experiments/internal/ablation":   700,
	"experiments/internal/optimality": 640,
	"experiments/internal/paperfigs":  3800,
	"experiments/schedules":           600,
	"formulation/binding":             1500,
	"formulation/bound":               3000,
	"formulation/joint":               1200,
	"formulation/ordering":            2500,
	"formulation/split":               1400,
	"hardware/lower":                  3000,
	"hardware/sim":                    2000,
	"heuristics/graphturbo":           2000,
	"internal/certificate":            400,
	"internal/interp":                 400,
}

// ofSystem reports whether scripts/without.sh takes a file off with one of the systems.
func ofSystem(file string) bool {
	name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".go"), "_")
	_, err := os.Stat(path.Join("systems", name))
	return strings.HasPrefix(file, "systems/") || path.Dir(file) == "cmd/cli" && err == nil
}

func TestPackagesKeepTheirBudgets(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.go")
	out, err := list.Output()
	if err != nil {
		t.Skipf("git ls-files, which lists the project's files, failed: %v", err)
	}
	lines, left := map[string]int{}, 0
	for file := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(src, []byte("\n"))
		lines[path.Dir(file)] += n
		if !ofSystem(file) {
			left += n
		}
	}
	if left > core {
		t.Errorf("without systems there are %d lines of Go without tests, expected %d at most", left, core)
	}
	sum := 0
	for p, most := range budget {
		sum += most
		switch n := lines[p]; {
		case n > most:
			t.Errorf("%s has %d lines of Go without tests, its budget is %d", p, n, most)
		case n < most-slack:
			t.Errorf("%s has %d lines of Go without tests: lower its budget of %d to that", p, n, most)
		}
	}
	if sum > total {
		t.Errorf("budgets add up to %d lines, expected %d at most", sum, total)
	}
	for p := range lines {
		if _, ok := budget[p]; !ok {
			t.Errorf("%s has %d lines and no budget", p, lines[p])
		}
	}
	within := 0
	for p, n := range lines {
		if strings.HasPrefix(p, "internal/") {
			within += n
		}
	}
	if within > 5000 {
		t.Errorf("internal has %d lines, expected 5000 at most: only what has no other home stands there", within)
	}
	for p, least := range heart {
		if lines[p] < least {
			t.Errorf("%s, a part of the heart, has %d lines, expected %d at least", p, lines[p], least)
		}
	}
}
