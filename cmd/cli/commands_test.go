package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func TestTexts(t *testing.T) {
	workspace(t)
	for _, c := range []struct {
		name string
		args []string
		want []string // regular expressions
	}{
		{"no command", nil, []string{`(?m)^Usage:`, `(?m)^  schedule +Schedule a network`}},
		{"help flag", []string{"schedule", "--help"},
			[]string{`--variant VARIANT`, `--batch N +batch size.*\(default 1\)`, `-h, --help`}},
		{"help command", []string{"help", "schedule"}, []string{`--variant VARIANT`, `-h, --help`}},
		{"models", []string{"models"}, []string{`(?m)^ name +parameters +MACs +operators +largest tensor$`,
			`(?m)^ name +description$`,
			`resnet50 +25\.56 M +4\.089 G +176 +4\.500 MiB`, `bert-128 +108\.\d M +11\.17 G +365 +44\.71 MiB`}},
		{"hardware", []string{"hardware"}, []string{`stcp920 +4 x 8 +65\.54 TMAC/s f16 +1 MiB +8 MiB +16 GiB +108 GB/s`,
			`stcp920-paper .* 64 KiB`, `stcp920-paper +Stream`, `gemmini +1 x 1 +256 GMAC/s i8 `}},
		{"a preset", []string{"hardware", "stcp920"}, []string{`clock +1GHz`, `DDR +16GiB, 108GB/s`, `launch +20.5us`}},
		{"times in four digits", []string{"hardware", "goya"}, []string{`latency 2\.667ns`}},
		{"SIMT machines", []string{"hardware"}, []string{`v100-simt +80 +160 +96 KiB`, `v100-simt +NVIDIA`}},
		{"a SIMT machine", []string{"hardware", "t4-simt"}, []string{`wave +40 blocks of 1024 threads`, `launch +10.* us`}},
		{"its comments", []string{"hardware", "v100-simt", "--yaml"}, []string{`(?m)^sms: 80 `, `(?m)^#`}},
		{"machines of several", []string{"hardware"}, []string{`stcp920x4 +4 +stcp920 +\d`, `v100x16 +\w+ .*`}},
		{"a machine of several", []string{"hardware", "stcp920x4"},
			[]string{`devices +4 of stcp920`, `link +\d+ .B/s, latency`}},
		{"the file of one", []string{"hardware", "stcp920x4", "--yaml"}, []string{`(?m)^device: stcp920`, `(?m)^#`}},
		{"its file", []string{"hardware", "stcp920", "--yaml"}, []string{`(?m)^clusters: 4`, `(?m)^#`}},
		{"a file", []string{"hardware", "my-npu.yaml"}, []string{`clusters +4`}},
		{"inspect", []string{"inspect", "resnet50"},
			[]string{`parameters +25\.56 M \(48\.75 MiB\)`, `work +4\.089 GMAC, 28\.15 M vector operations`,
				`operators +176, 123 after simplification`, `layers +57: 54 with a matrix operator`, `fold-batch-norms +53 +53`,
				`Conv +matrix +53 +53`,
				`BatchNorm +element-wise +53 +0`, `image +\[1,3,224,224\] +f16 +294 KiB`, `head.softmax`, `stem.bn .*1\.531 MiB`}},
		{"inspect stages", []string{"inspect", "resnet50"}, []string{
			`stage +blocks +types +layers +ops +output +peak live +share +params +MACs`,
			`stem +2 +A B +2 +3 +\[1,64,56,56\]`, `stage 1 +3 +C 2D +10 +22 +\[1,256,56,56\] +3\.445 MiB +100\.0 %`,
			`stage 4 +3 +E 2D +10 +22 +\[1,2048,7,7\] +784 KiB +22\.2 %`, `head +2 `}},
		{"inspect blocks", []string{"inspect", "resnet50", "--blocks"},
			[]string{`stage 2 +5 +E +4 +8 `, `repeated: D x12, E x3`}},
		{"inspect with a batch", []string{"inspect", "bert-128", "--batch", "4"},
			[]string{`\[4,128,768\]`, `work +44\.69 GMAC`}},
		{"inspect a file", []string{"inspect", "net.onnx"},
			[]string{`parameters +768 \(1\.500 KiB\)`, `work +768 MAC, 32 vector`, `MatMul +matrix +2 +2`, `x +\[1,16\]`}},
		{"inspect another type", []string{"inspect", "net.onnx", "--dtype", "f32", "--batch", "3"},
			[]string{`x +\[3,16\] +f32 +192 B`}},
		{"inspect a hostile name", []string{"schedule", "escape.onnx"}, []string{`re\?\[31mlu\?`}},
		{"schedule a file", []string{"schedule", "net.onnx"}, []string{`net\.onnx \(f16\) on stcp920, batch 1, variant tiled`,
			`batch 1 leaves 3 of 4 clusters idle`, `first \.\. second`, `1 on 1 cluster, 0 on 3 clusters, in chunks of 1`}},
		{"schedule with all flags", strings.Fields(
			"schedule net.onnx --hardware my-npu.yaml --batch 16 --variant ordering --chunk 2 --dtype f32 --in-place --spill largest-first --full"),
			[]string{`\(f32\) on stcp920, batch 16, variant ordering`, `4 on 4 clusters, in chunks of 2`}},
		{"schedule unequal shares", []string{"schedule", "net.onnx", "--batch", "7"},
			[]string{`2 on 3 clusters, 1 on 1 cluster, in chunks of 2`,
				`does not divide`, `tuned chunk +1: \d+/s, 2: \d+/s \(kept\)`}},
		{"schedule", []string{"schedule", "resnet50", "--batch", "8", "--variant", "cross-layer"},
			[]string{`throughput +\d+/s`, `latency +[\d.]+ ms \(no less than [\d.]+ ms for these commands\)`,
				`utilisation +[\d.]+ % of peak MACs`,
				`limited by +\S`, `time +compute [\d.]+ %, exposed moves`, `busy +launches`, `kernels +\d+ launches`,
				`(?m)^\d+ groups, \d+ instances$`, `g0 +stem\.conv \.\. stage\S+ +\d+ +n in 2 +2 `,
				`Order: [bd]fs`, `(?m)^ 2\*0 [-\d* ]*\d$`, `(?m)^ bfs .*MiB`, `(?m)^ dfs .*MiB`, `joins +concat \d+, split \d+`,
				`L1 +peak .* of 1\.250 MiB per core`,
				`LLB +peak .* of 8 MiB per cluster`, `spills`, `(?m)^ DDR +1 +4 `, `(?m)^ LLB `, `(?m)^ L1 `}},
		{"schedule stages", strings.Fields("schedule toy-fig5 --batch 8 --variant cross-layer --clusters pipeline"),
			[]string{`(?m)^time +cluster 1: compute`, `(?m)^shares +none, the clusters work on one batch, in chunks of 2$`}},
		{"the fastest of several", []string{"schedule", "resnet50", "--batch", "8"},
			[]string{`(?m)variant tiled$`, `note +tiled: the schedule is that of tiled-\S+, the fastest of 8`}},
		{"one cluster", []string{"schedule", "toy-fig5", "--hardware", "goya", "--clusters", "layers"},
			[]string{`(?m)note +--clusters layers divides nothing: goya has one cluster$`}},
		{"clusters that divide the batch", []string{"schedule", "toy-fig3", "--batch", "8", "--clusters", "layers"},
			[]string{`note +clusters divide the batch: layers over them take 1\.\d+ times`}},
		{"one kind of core", []string{"schedule", "toy-fig5", "--kinds", "ilp"}, []string{`(?m)variant tiled$`,
			`note +--kinds decides nothing: the cores of stcp920 are of one kind`}},
		{"schedule many groups", []string{"schedule", "resnet50", "--variant", "tvm"},
			[]string{`57 groups`, `\d+ more: --full shows them`, `k56 +head.softmax.* DDR`, `(?m)^ 0-56$`}},
		{"schedule in full", []string{"schedule", "resnet50", "--variant", "tvm", "--full"}, []string{`k30 `}},
		{"variants", []string{"variants"}, []string{`(?m)^ tvm +as-is +layers +none +ddr$`,
			`(?m)^ tvm +sixteenth +longest-lifetime +lowest +in-order$`,
			`(?m)^ tiled +parts +one +none +llb-kept$`, `(?m)^ cross-layer +greedy +alg3 +alg4 +stay$`,
			`(?m)^ exact-memory +\S+ +search +lowest +cross-layer$`, `(?m)^ graphturbo\+ansor +ahead +keep +ansor$`,
			`(?m)^ tvm +a kernel per layer`}},
		{"tasks", []string{"tasks", "toy-fig3", "--full"}, []string{`tasks +\d+ of toy-fig3 on stcp920 by ansor`,
			`(?m)^ task +kernel +runs +by rules +bound$`, `(?m)^  multi-level tiling of `, `(?m)^    for tile in `}},
		{"tune", []string{"tune", "toy-fig3", "--trials", "40"},
			[]string{`search +40 trials over`, `by rules .*: 1\.\d+x`,
				`(?m)^ task +kernel +runs +trials +by rules +tuned +faster +bound$`}},
		{"list", []string{"list"}, []string{`ablation +\S+`}},
		{"version", []string{"version"}, []string{`(?m)^dsasched +\S`, `(?m)^Go +` + regexp.QuoteMeta(runtime.Version()),
			`(?m)^HiGHS +\S`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answer(t, c.args...)
			for _, w := range c.want {
				if !regexp.MustCompile(w).MatchString(got) {
					t.Errorf("%q prints no %q:\n%s", c.args, w, got)
				}
			}
			if strings.ContainsAny(got, "\x1b\r\t") {
				t.Errorf("%q prints control characters:\n%q", c.args, got)
			}
			for line := range strings.Lines(got) {
				if strings.HasSuffix(line, " \n") {
					t.Errorf("trailing space in %q", line)
				}
			}
			if again := answer(t, c.args...); again != got {
				t.Errorf("%q prints something else the second time:\n%s\n%s", c.args, got, again)
			}
		})
	}
}

// A summary has to fit a screen, whatever it sums up.
func TestScheduleFitsAScreen(t *testing.T) {
	for _, args := range [][]string{
		{"resnet50", "--variant", "tvm"},
		{"squeezenet", "--batch", "4", "--hardware", "stcp920-paper"},
		{"bert-128", "--batch", "32"},
		{"resnet50", "--batch", "4", "--hardware", "goya"},
	} {
		got := answer(t, append([]string{"schedule"}, args...)...)
		if n := strings.Count(got, "\n"); n > 40 {
			t.Errorf("%q: %d lines:\n%s", args, n, got)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q: %d characters: %s", args, n, line)
			}
		}
	}
}

// processor matches the processor time in the JSON of solve.
var processor = regexp.MustCompile(`,\n  "processor_s": [0-9.]+\n`)

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(processor.ReplaceAllString(text, "\n")))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

func TestScheduleJSONAddsUp(t *testing.T) {
	workspace(t)
	for _, args := range [][]string{
		{"resnet50", "--batch", "8"},
		{"squeezenet", "--batch", "8", "--chunk", "1"},
		{"squeezenet", "--batch", "6"},
		{"squeezenet", "--batch", "4", "--hardware", "stcp920-paper"},
		{"resnet50", "--batch", "4", "--variant", "tvm"},
		{"resnet50", "--batch", "4", "--variant", "llb"},
		{"bert-128", "--batch", "2", "--variant", "cross-layer"},
		{"net.onnx", "--batch", "64"},
		{"toy-fig3", "--batch", "8", "--variant", "l1", "--clusters", "layers"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			a := decode[answers.Report](t, answer(t, append([]string{"schedule", "--json"}, args...)...))
			near := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-9*math.Abs(want)+1e-15 {
					t.Errorf("%s is %v, want %v", what, got, want)
				}
			}
			sum := int64(0)
			for _, s := range a.Shares {
				sum += s
			}
			if a.Clusters != "batch" {
				sum += a.Batch // of no shares
			}
			near("the sum of shares", float64(sum), float64(a.Batch))
			near("throughput times latency", a.ThroughputPerSecond*a.LatencySeconds, float64(a.Batch))
			if a.BoundSeconds > a.LatencySeconds || a.BoundSeconds <= 0 {
				t.Errorf("lower bound %v, latency %v", a.BoundSeconds, a.LatencySeconds)
			}
			for _, c := range a.Time {
				near(fmt.Sprintf("the time of cluster %d", c.Cluster), c.ComputeSeconds+c.MoveSeconds+c.LaunchSeconds+c.IdleSeconds,
					a.LatencySeconds)
			}

			instances, ops := 0, map[string]bool{}
			for _, g := range a.Groups {
				instances += g.Instances
				if int64(g.Instances) != g.SplitFactor || (g.SplitDim == nil) != (g.Instances == 1) ||
					(g.SplitDim == nil) != (g.SplitIndex == nil) {
					t.Errorf("group %s: %d instances, factor %d, dimension %v", g.Name, g.Instances, g.SplitFactor, g.SplitDim)
				}
				for _, o := range g.Ops {
					if ops[o] {
						t.Errorf("operator %s is in two groups", o)
					}
					ops[o] = true
				}
				if len(g.OutputLevels) == 0 || g.Layers == 0 {
					t.Errorf("group %s: %d layers, outputs in %v", g.Name, g.Layers, g.OutputLevels)
				}
			}
			info := decode[structure.Report](t, answer(t, "inspect", "--json", args[0]))
			if len(ops) != info.OperatorsAfter {
				t.Errorf("%d operators in groups, %d after simplification", len(ops), info.OperatorsAfter)
			}
			near("MACs", float64(a.MACs), float64(info.MACs*a.Batch))
			if len(a.Order.Instances) != instances {
				t.Errorf("%d instances in order, %d in groups", len(a.Order.Instances), instances)
			}
			chosen := 0
			for _, c := range a.Order.Candidates {
				if c.Chosen {
					chosen++
				}
			}
			if len(a.Order.Candidates) > 0 && chosen != 1 {
				t.Errorf("%d orders chosen", chosen)
			}

			for name, l := range map[string]answers.BufferReport{"l1": a.Memory.L1, "llb": a.Memory.LLB} {
				if l.PeakBytes > l.CapacityBytes || l.MeanBytes > float64(l.PeakBytes) {
					t.Errorf("%s: %+v", name, l)
				}
			}
			for name, w := range map[string]answers.Counts{"ddr": a.TensorWrites.DDR, "llb": a.TensorWrites.LLB,
				"l1": a.TensorWrites.L1} {
				if w.Static > w.Dynamic {
					t.Errorf("tensor writes to %s: %d static, %d dynamic", name, w.Static, w.Dynamic)
				}
			}
			if a.TensorWrites.DDR.Static < 1 {
				t.Error("nothing is written to the DDR, not even the result")
			}
			kept := slices.IndexFunc(a.Tuned, func(t answers.TrialReport) bool { return t.Chosen })
			if len(a.Tuned) > 0 {
				near("the throughput of the kept chunk", *a.Tuned[kept].ThroughputPerSecond, a.ThroughputPerSecond)
				for _, x := range a.Tuned {
					if x.ThroughputPerSecond != nil && *x.ThroughputPerSecond > a.ThroughputPerSecond {
						t.Errorf("chunk %d is faster than the kept one", x.Chunk)
					}
				}
			}
		})
	}
}

// The vendor's own partition of ResNet-50, found again at 8 images per cluster.
func TestStagesOfResNet50(t *testing.T) {
	a := decode[answers.Report](t, answer(t, "schedule", "resnet50", "--batch", "32", "--chunk", "8", "--json"))
	var factors []int64
	for _, g := range a.Groups {
		factors = append(factors, g.SplitFactor)
		if g.SplitDim != nil && *g.SplitDim != "n" {
			t.Errorf("group %s is split along %s", g.Name, *g.SplitDim)
		}
	}
	if want := []int64{4, 2, 1}; !slices.Equal(factors, want) {
		t.Errorf("factors %v, want %v", factors, want)
	}
}

func TestListsAreComplete(t *testing.T) {
	var got []string
	for _, m := range decode[modelsJSON](t, answer(t, "models", "--json")).Models {
		got = append(got, m.Name)
	}
	if want := zoo.Names(); !slices.Equal(got, want) {
		t.Errorf("models %v, want %v", got, want)
	}
	got = nil
	machines := decode[struct {
		Hardware []hardware.Sheet
		SIMT     []map[string]any
		Several  []map[string]any
	}](t, answer(t, "hardware", "--json"))
	for _, h := range machines.Hardware {
		got = append(got, h.Name)
	}
	for _, m := range append(machines.SIMT, machines.Several...) {
		got = append(got, fmt.Sprint(m["name"]))
	}
	if want := allMachines(); !slices.Equal(got, want) {
		t.Errorf("hardware %v, want %v", got, want)
	}
	got = nil
	for _, v := range decode[variantsJSON](t, answer(t, "variants", "--json")).Variants {
		got = append(got, v.Name)
	}
	var want []string
	for _, v := range recipes.Known() {
		want = append(want, v.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("variants %v, want %v", got, want)
	}
	got = nil
	for _, e := range decode[listJSON](t, answer(t, "list", "--json")).Experiments {
		got = append(got, e.Name)
	}
	if want := experiments.Names(); !slices.Equal(got, want) {
		t.Errorf("experiments %v, want %v", got, want)
	}
}

func TestVersionTellsOfHiGHS(t *testing.T) {
	v := decode[versionJSON](t, answer(t, "version", "--json"))
	if v.Go != runtime.Version() {
		t.Errorf("Go is %q, want %q", v.Go, runtime.Version())
	}
	if _, err := highs.New(); v.Cgo != (err == nil) {
		t.Errorf("cgo is %v, and the solver says %v", v.Cgo, err)
	}
	if _, err := highs.New(); err != nil {
		if v.HiGHS != nil || !strings.Contains(v.Note, "not in this build") {
			t.Errorf("a build without HiGHS says %v, %q", v.HiGHS, v.Note)
		}
	} else if v.HiGHS == nil || *v.HiGHS != highs.Version() {
		t.Errorf("HiGHS is %v, want %s", v.HiGHS, highs.Version())
	}
}

func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	r := call(t, "run", "ablation", "--out", "here")
	if r.status != exitOK || r.stdout != "table of ablation\n" || r.stderr != "progress of ablation\n" {
		t.Errorf("run: %+v", r)
	}
	r = call(t, "run", "ablation", "--quiet", "--json", "--out", "here")
	if r.status != exitOK || r.stderr != "" {
		t.Errorf("run --quiet: %+v", r)
	}
	got := decode[experiments.Results](t, r.stdout)
	want := experiments.Results{Out: "here",
		Experiments: []experiments.ExperimentResults{{Name: "ablation", Dir: filepath.Join("here", "ablation"), Cells: 1,
			Files: []experiments.Written{{Path: filepath.Join("here", "ablation", "a.md"), Bytes: 2},
				{Path: filepath.Join("here", "ablation", "b.csv"), Bytes: 2}}}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("run --json: %+v, want %+v", got, want)
	}
	if r := call(t, "run"); r.status != exitOK {
		t.Errorf("run of everything: %+v", r)
	}
	for _, name := range experiments.Names() {
		if _, err := os.Stat(filepath.Join("results", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestSharedNetworks(t *testing.T) {
	for _, file := range []string{"light_resnet50.onnx", "light_squeezenet.onnx", "light_vgg19.onnx", "resnet18.onnx"} {
		t.Run(file, func(t *testing.T) {
			path := sharedFile(t, file)
			one := decode[structure.Report](t, answer(t, "inspect", path, "--json", "--batch", "1"))
			s := decode[answers.Report](t, answer(t, "schedule", path, "--batch", "4", "--json"))
			if s.MACs != 4*one.MACs {
				t.Errorf("%d MACs at batch 4, %d at batch 1", s.MACs, one.MACs)
			}
		})
	}
}

// A flag that names the strategy that the default variant has already changes nothing; another one does.
func TestOwnStrategyChangesNothing(t *testing.T) {
	schedule := func(flags ...string) (a answers.Report) {
		t.Helper()
		out := answer(t, append([]string{"schedule", "toy-fig3", "--batch", "4", "--chunk", "1", "--json"}, flags...)...)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	plain := schedule()
	for _, same := range [][]string{{"--reserve", "sixteenth"}, {"--group", "one", "--split", "none"}} {
		if a := schedule(same...); a.Variant != plain.Variant || a.LatencySeconds != plain.LatencySeconds {
			t.Errorf("with %v, which tiled has already, %s takes %g s, expected %s and %g", same, a.Variant,
				a.LatencySeconds, plain.Variant, plain.LatencySeconds)
		}
	}
	if a := schedule("--order", "dfs"); a.Variant == plain.Variant {
		t.Error("with --order dfs, the schedule is that of tiled")
	}
}

// What tiled falls back to has the strategies that are asked for, or is left out.
func TestStrategiesLeaveOutFallbacks(t *testing.T) {
	v, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	p := scheduler.Pick{Stage: "split", Strategy: "none"}
	left := v.Having([]scheduler.Pick{p}).Fallback
	if len(left) == 0 || len(left) >= len(v.Fallback) {
		t.Errorf("%v are left of %v", left, v.Fallback)
	}
	for _, name := range left {
		if r, err := recipes.Lookup(name); err != nil || !r.Has(p) {
			t.Errorf("%s is left, which has not %v (%v)", name, p, err)
		}
	}
}
