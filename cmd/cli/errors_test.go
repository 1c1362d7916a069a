package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsasched/dsasched/experiments"
)

// asMain makes the test binary behave as the program, so that tests can start it.
const asMain = "DSASCHED_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		Main()
		return
	}
	clock = still
	os.Exit(m.Run())
}

func TestBadInput(t *testing.T) {
	workspace(t)
	before := fileNames(t)
	for _, c := range []struct {
		args   string
		status int
		want   string // regular expression
	}{
		{"schedule nosuch.onnx", 1, `nosuch\.onnx: no such file`},
		{"inspect nosuch.onnx", 1, `nosuch\.onnx: no such file`},
		{"schedule truncated.onnx", 1, `truncated\.onnx: not a valid ONNX file: at byte \d+`},
		{"schedule garbage.onnx", 1, `garbage\.onnx: not a valid ONNX file: at byte \d+`},
		{"inspect empty.onnx", 1, `empty\.onnx: not a valid ONNX file: it is empty`},
		{"schedule custom.onnx", 1, `custom\.onnx: 2 unsupported operators: node "fro" is Frobnicate.*node "twi" is Twiddle`},
		{"solve stitch crnn --training", 1, `crnn: .*operator "conv7": found Conv, whose gradient of input 0 is not known`},
		{"schedule toy-fig3 --batch 2000000", 2, `expected a whole number of at most 1048576`},
		{"bound toy-fig3 --batch 2000000", 2, `expected a whole number of at most 1048576`},
		{"schedule resnet51", 1,
			`unknown model "resnet51" \(did you mean resnet50\?\)(; the path of a file ends in .onnx or .mlir)?\n`},
		{"inspect resnet51", 1,
			`unknown model "resnet51" \(did you mean resnet50\?\)(; the path of a file ends in .onnx or .mlir)?\n`},
		{"schedule file", 1, `unknown model "file".*\./file`},
		{"schedule resnet50 --hardware stcp921", 1,
			`unknown accelerator "stcp921" \(did you mean stcp920\?\)[^,]*(, v100x16)?\n`},
		{"hardware stcp921", 1, `unknown accelerator "stcp921" \(did you mean stcp920\?\)[^,]*(, v100x16)?\n`},
		{"hardware stcp921 --yaml", 1, `unknown accelerator "stcp921"`},
		{"hardware nosuch.yaml", 1, `nosuch\.yaml: no such file`},
		{"bound toy-fig5 --hardware stcp920x4", 1, `stcp920x4 is a machine of 4 chips, expected one chip\n`},
		{"hardware mistakes.yaml", 1,
			`mistakes\.yaml:\d+: clusters: found "zero", expected .*; mistakes\.yaml:\d+: lunch: found an unknown field`},
		{"schedule resnet50 --hardware mistakes.yaml", 1, `mistakes\.yaml:\d+: `},
		{"hardware syntax.yaml", 1, `syntax\.yaml:\d+: not valid YAML`},
		{"schedule toy-fig5 --hardware tiny.yaml", 1,
			`layer "[^"]+": not even one tile fits.* tensor "[^"]+" needs [\d.]+ \w+.*[\d.]+ \w+ too few`},
		{"schedule resnet50 --batch 8 --chunk 3", 1, `chunk is 3, expected 1 to 2`},
		{"schedule resnet50 --batch 0", 2, `"0" for "--batch".*at least 1 \(see 'dsasched schedule --help'\)`},
		{"schedule resnet50 --batch -4", 2, `"-4" for "--batch".*at least 1`},
		{"schedule resnet50 --batch many", 2, `"many" for "--batch"`},
		{"schedule resnet50 --batch 99999999999999999999", 2, `"99999999999999999999" for "--batch"`},
		{"schedule resnet50 --batch", 2, `needs an argument: --batch`},
		{"inspect resnet50 --batch 0", 2, `"0" for "--batch"`},
		{"schedule resnet50 --chunk -1", 2, `"-1" for "--chunk".*at least 0`},
		{"schedule resnet50 --variant gvm", 2, `"gvm" for "--variant" flag: did you mean tvm\?`},
		{"schedule resnet50 --spill smallest", 2,
			`"smallest" for "--spill" flag: expected one of longest-lifetime, largest-first`},
		{"schedule resnet50 --order serach", 2,
			`"serach" for "--order" flag: did you mean search\? \(see`},
		{"schedule resnet50 --bind=", 2, `"" for "--bind" flag: expected one of plain`},
		{"schedule resnet50 --variant tvm --split one-factor", 2,
			`split is one-factor, which does not go with group layers: expected group alg2`},
		{"schedule resnet50 --group algo2", 2,
			`"algo2" for "--group" flag: did you mean alg2\? \(see`},
		{"explain resnet50 --order serach", 2,
			`"serach" for "--order" flag: did you mean search\? \(see`},
		{"explain resnet50 --variant gvm", 2, `"gvm" for "--variant" flag: did you mean tvm\?`},
		{"export order resnet50 --split none1", 2, `"none1" for "--split" flag: did you mean none\?`},
		{"sweep net.onnx --set order=serach", 2,
			`order=serach: order is "serach" \(did you mean search\?\)\n`},
		{"sweep net.onnx --set variant=tvm --set split=one-factor", 2,
			`split: split is one-factor, which does not go with group layers`},
		{"sweep net.onnx --set variant=gvm", 2, `variant=gvm: unknown variant "gvm" \(did you mean tvm\?\)\n`},
		{"sweep net.onnx --set stage=1", 2, `stage: no setting.*, expected one of model, hardware`},
		{"schedule resnet50 --time-limit 0s", 2, `"0s" for "--time-limit" flag: expected a time of more than 0s`},
		{"schedule resnet50 --variant cros-layer", 2,
			`"cros-layer" for "--variant" flag: did you mean cross-layer\? \(see`},
		{"schedule resnet50 --bathc 4", 2,
			`unknown flag: --bathc \(did you mean --batch\?\) \(see 'dsasched schedule --help'\)`},
		{"schedule resnet50 --zzz", 2, `unknown flag: --zzz \(see`},
		{"sweep resnet50 --hardware a100", 2, `unknown flag: --hardware \(give --set hardware=\.\.\.\) \(see`},
		{"shcedule resnet50", 2, `unknown command "shcedule": did you mean schedule\?`},
		{"sweep", 2, `MODEL is missing: .*dsasched models`},
		{"sweep resnet50 --set batch", 2, `--set "batch", expected KEY=VALUE`},
		{"sweep resnet50 --set model=vgg16", 2, `the networks are given already: "resnet50"`},
		{"sweep resnet51 --set batch=8", 1, `unknown model "resnet51" \(did you mean resnet50\?\)`},
		{"sweep resnet50 --set bacth=8", 2, `bacth: no setting \(did you mean batch\?\)\n`},
		{"sweep resnet50 --set batch=many", 2, `batch=many: expected a whole number of at least 1`},
		{"sweep resnet50 --set hardware.gb.sise=8MiB", 2,
			`unknown field "gb\.sise" of preset stcp920 \(did you mean gb\.size\?\)\n`},
		{"sweep resnet50 --set hardware.gb.size=8Mib", 2,
			`hardware\.gb\.size=8Mib: gb\.size: found "8Mib", expected a size in B, KiB, MiB`},
		{"sweep net.onnx --set hardware=mistakes.yaml", 1, `mistakes\.yaml:\d+: clusters: found "zero"`},
		{"sweep net.onnx -o sweep.gif", 2,
			`"sweep\.gif" for "-o, --out" flag: expected a name that ends in one of \.svg, \.png, \.pdf`},
		{"sweep net.onnx --csv=", 2, `"" for "--csv" flag: expected a file name`},
		{"sweep net.onnx --csv a.svg -o ./a.svg", 2, `--csv and --out name the same file, \./a\.svg`},
		{"sweep net.onnx --time-limit 0s", 2, `"0s" for "--time-limit" flag: expected a time of more than 0s`},
		{"compare-hardware", 2, `MODEL is missing`},
		{"compare-hardware net.onnx --hardware stcp920,stcp921", 1,
			`unknown accelerator "stcp921" \(did you mean stcp920\?\)`},
		{"compare-hardware net.onnx --variant tvm,tmv", 2, `variant=tmv: unknown variant "tmv", expected one of tvm`},
		{"compare-hardware net.onnx --hardware stcp920,stcp920", 2, `hardware=stcp920: stands there twice`},
		{"man pages", 2, `dsasched man takes no argument, found "pages"`},
		{"schedule resnet50 --dtype i16", 2, `"i16" for "--dtype" flag: did you mean f16\?`},
		{"schedule", 2, `MODEL is missing: .*dsasched models`},
		{"schedule net.onnx -o nosuch/a.json", 1, `write nosuch/a\.json: no such file`},
		{"schedule net.onnx -o -", 2, `"-" for "-o, --out" flag: expected a file name`},
		{"schedule net.onnx -o net.onnx", 2, `--out: net\.onnx is the file that is read: give another name`},
		{"schedule net.onnx --hardware ./my-npu.yaml -o my-npu.yaml", 2, `--out: my-npu\.yaml is the file that is read`},
		{"sweep net.onnx --set hardware=./my-npu.yaml --csv my-npu.yaml", 2, `--csv: my-npu\.yaml is the file that is read`},
		{"schedule net.onnx --trace ./net.onnx", 2, `--trace: \./net\.onnx is the file that is read`},
		{"simulate net.schedule.json --trace net.schedule.json", 2, `--trace: net\.schedule\.json is the file that is read`},
		{"schedule net.onnx --trace=", 2, `"" for "--trace" flag: expected a file name`},
		{"schedule net.onnx --gantt a.gif", 2,
			`"a\.gif" for "--gantt" flag: expected a name that ends in one of \.svg, \.png, \.pdf`},
		{"schedule net.onnx --gantt nosuch/a.svg", 1, `write nosuch/a\.svg: no such file`},
		{"check schedule", 2, `SCHEDULE\.json is missing`},
		{"check schedule nosuch.json", 1, `^dsasched: nosuch\.json: no such file`},
		{"check schedule chain.json", 1, `chain\.json: file: found a problem of 'solve order', expected fields kind, version`},
		{"check schedule file", 1, `file: file: found unexpected EOF at byte 0, expected JSON`},
		{"simulate net.schedule.json --hardware goya", 1,
			`net\.schedule\.json breaks a rule, see 'dsasched check schedule': clusters: 4 of them, "goya" has 1`},
		{"simulate net.schedule.json --hardware stcp921", 1, `unknown accelerator "stcp921"`},
		{"explain", 2, `SCHEDULE\.json or MODEL is missing`},
		{"explain net.schedule.json --op fisrt", 1, `net\.schedule\.json: there is no operator "fisrt"`},
		{"explain net.schedule.json --op firs", 1, `there is no operator "firs"; names with it: first`},
		{"explain net.schedule.json --tensor y --op first", 2, `--tensor and --op exclude each other`},
		{"explain net.schedule.json --against net.schedule.json --op first", 2, `--op and --against exclude each other`},
		{"explain net.schedule.json --against nosuch.json", 1, `nosuch\.json: no such file`},
		{"explain resnet18 --batch 8 --against net.schedule.json", 1,
			`net\.schedule\.json is of \w+ at batch \d+, expected resnet18 at batch 8`},
		{"explain net.schedule.json --batch 8", 2, `--batch goes with a network: net\.schedule\.json is a schedule`},
		{"explain net.schedule.json --group=", 2, `--group is empty`},
		{"inspect", 2, `MODEL is missing`},
		{"schedule resnet50 bert-128", 2, `takes one MODEL, found 2: "resnet50", "bert-128"`},
		{"export order resnet51 -o out.onnx", 1, `unknown model "resnet51"`},
		{"solve bind", 2, `MODEL is missing`},
		{"compare", 2, `MODEL is missing`},
		{"inspect resnet50 --batch 1000000000", 1, `more than 17592186044416 elements\n$`},
		{"compare resnet50 --decision fate", 2, `--decision "fate", expected some of "split", "order", "bind"`},
		{"compare resnet50 --time-limit -1s", 2, `"-1s" for "--time-limit" flag: expected a time such as 60s`},
		{"compare resnet50 --batch 6", 1, `batch 6 does not divide evenly over 4 clusters`},
		{"calibrate resnet50", 2, `takes no argument`},
		{"calibrate --hardware stcp921", 1, `unknown accelerator "stcp921"`},
		{"compare nosuch.onnx", 1, `nosuch\.onnx`},
		{"solve bind resnet51", 1, `unknown model "resnet51"`},
		{"solve bind resnet50 --method dfs", 2, `"dfs" for "--method" flag: expected one of greedy, ilp, search`},
		{"solve bind resnet50 --time-limit 0s", 2, `expected a time of more than 0s`},
		{"solve bind resnet50 --time-limit soon", 2, `"soon" for "--time-limit"`},
		{"solve bind resnet50 --export model.txt", 2,
			`"model\.txt" for "--export" flag: expected a name that ends in one of \.lp, \.json`},
		{"solve bind resnet50 --batch 8 --chunk 3", 1, `chunk is 3, expected 1 to 2`},
		{"solve bind toy-fig5 --hardware tiny.yaml", 1, `not even one tile fits`},
		{"solve bind net.onnx --export nosuch/model.lp", 1, `write nosuch/model\.lp: no such file`},
		{"solve split", 2, `MODEL is missing`},
		{"solve split resnet51", 1, `unknown model "resnet51"`},
		{"solve split resnet50 --method dp", 2, `"dp" for "--method" flag: expected one of greedy, ilp, search`},
		{"solve split resnet50 --time-limit 0s", 2, `expected a time of more than 0s`},
		{"solve split resnet50 --export model.txt", 2,
			`"model\.txt" for "--export" flag: expected a name that ends in one of \.lp, \.json`},
		{"solve split resnet50 --batch 8 --chunk 3", 1, `chunk is 3, expected 1 to 2`},
		{"solve split toy-fig5 --hardware tiny.yaml", 1, `not even one tile fits`},
		{"solve split net.onnx --export nosuch/model.lp", 1, `nosuch/model\.lp.*no such file`},
		{"export order custom.onnx -o out.onnx", 1, `custom\.onnx: 2 unsupported operators`},
		{"export order net.onnx -o nosuch/out.onnx", 1, `write nosuch/out\.onnx: no such file`},
		{"export order net.onnx -o /dev/null", 1, `/dev/null is not a regular file`},
		{"export order net.onnx -o .", 1, `\. is not a regular file`},
		{"export order net.onnx -o file/out.onnx", 1, `file/out\.onnx: not a directory`},
		{"export order", 2, `MODEL is missing`},
		{"export order net.onnx -o net.onnx", 2, `--out: (\./)?net\.onnx is the file that is read: give another name`},
		{"export order net.onnx -o ./net.onnx", 2, `--out: (\./)?net\.onnx is the file that is read: give another name`},
		{"export order net.onnx -o - --json", 2, `--json and --out - exclude each other`},
		{"export order net.onnx -o out.onnx --batch 0", 2, `"0" for "--batch"`},
		{"solve partition nosuch.json", 1, `nosuch\.json`},
		{"solve partition latency.json", 1, `latency\.json: objective: found "latency", expected "throughput"`},
		{"solve partition cycle.json", 1, `cycle\.json: edges: found the cycle`},
		{"solve partition large.json", 1, `large\.json: no division: node 1 needs 160 bytes, an accelerator has 120`},
		{"solve partition chain.json", 1, `chain\.json: file: found a problem of 'solve order'`},
		{"solve partition graph.json --method best", 2, `"best" for "--method" flag: expected one of exact`},
		{"solve layering net.onnx --threshold 2", 2, `--threshold is 2, expected 0 to 1`},
		{"solve layering net.onnx --efficiency 0", 2, `--efficiency is 0, expected more than 0`},
		{"solve layering nosuch", 1, `unknown model "nosuch"`},
		{"solve pipeline net.onnx --devices 17", 1, `found 17 devices, expected 1 to 16, which v100x16 has`},
		{"solve pipeline net.onnx --server v100x17", 1, `unknown machine of several devices "v100x17"`},
		{"solve order chain.json --method cp", 2, `"cp" for "--method" flag: expected one of bfs, `},
		{"solve order chain.json --time-limit -1s", 2, `"-1s" for "--time-limit" flag: expected a time such as 60s`},
		{"solve order chain.json --out=", 2, `"" for "-o, --out" flag: expected a file name`},
		{"solve order chain.json -o chain.json", 2, `--out: chain\.json is the file that is read`},
		{"solve order chain.json -o nosuch/a.json", 1, `write nosuch/a\.json: no such file`},
		{"solve allocate", 2, `FILE.csv is missing`},
		{"solve allocate buffers.csv", 2, `give --capacity N, or --minimize`},
		{"solve allocate buffers.csv --capacity -1", 2, `"-1" for "--capacity"`},
		{"solve allocate buffers.csv --capacity 8 --method worst-fit", 2,
			`"worst-fit" for "--method" flag: did you mean first-fit\?`},
		{"solve allocate buffers.csv --minimize --spill", 2, `--spill and --minimize exclude each other`},
		{"solve allocate buffers.csv --capacity 8 --spill --method best-fit", 2,
			`--method best-fit does not say what to spill`},
		{"solve allocate buffers.csv --minimize --time-limit -1s", 2,
			`"-1s" for "--time-limit" flag: expected a time such as 60s`},
		{"solve allocate buffers.csv --minimize -o buffers.csv", 2, `--out: buffers\.csv is the file that is read`},
		{"solve allocate buffers.csv --minimize --out=", 2, `"" for "-o, --out" flag: expected a file name`},
		{"solve allocate buffers.csv --minimize -o nosuch/out.csv", 1, `nosuch/out\.csv: no such file`},
		{"solve allocate nosuch.csv --minimize", 1, `nosuch\.csv: no such file`},
		{"solve allocate mistakes.csv --minimize", 1,
			`mistakes\.csv:2: column size: found "four", expected a whole number\n$`},
		{"solve order", 2, `FILE is missing`},
		{"solve order nosuch.json", 1, `nosuch\.json: no such file`},
		{"solve joint chain.json", 1, `chain\.json: file: found a problem of 'solve order'`},
		{"solve joint joint.json --method cp", 2, `"cp" for "--method" flag: expected one of greedy, ilp, search`},
		{"solve order field.json", 1, `field\.json: subgraphs\[0\]\.instances: found 2\.5, expected a whole number`},
		{"solve order garbage.onnx", 1, `garbage\.onnx: file: found .* at byte \d+, expected JSON`},
		{"solve order chain.json --method best", 2, `"best" for "--method" flag: expected one of bfs, dfs, heavy`},
		{"solve order chain.json --objective time", 2, `"time" for "--objective" flag: expected one of traffic, peak`},
		{"solve order chain.json --time-limit soon", 2, `"soon" for "--time-limit"`},
		{"solve order chain.json --time-limit -1s", 2, `"-1s" for "--time-limit" flag: expected a time such as 60s`},
		{"solve order chain.json -o chain.json", 2, `--out: chain\.json is the file that is read`},
		{"solve order chain.json -o nosuch/a.json", 1, `nosuch/a\.json`},
		{"check order chain.json", 2, `takes PROBLEM and ORDER, found 1`},
		{"check order chain.json broken.json", 1,
			`broken\.json: file: found invalid character ',' looking for beginning of object key string at byte \d+, expected JSON`},
		{"check order chain.json chain.json", 1,
			`chain\.json: file: found a problem of 'solve order', expected fields method, objective`},
		{"check order chain.json twice.json", 1, `twice\.json: steps\[1\]: runs \[0 0\] a second time`},
		{"check order tight.json order.json", 1,
			`order\.json: steps\[2\]: .* 8 bytes in the L1, 1 more than its capacity of 7`},
		{"hardware a b", 2, `at most one accelerator, found 2`},
		{"hardware --yaml", 2, `--yaml needs the name of a built-in accelerator: one of a100, .*stcp920`},
		{"hardware ./chip.yaml --yaml", 2, `--yaml needs the name of a built-in accelerator: one of a100, .*stcp920`},
		{"hardware stcp920 --yaml --json", 2, `exclude each other`},
		{"models resnet50", 2, `takes no argument, found "resnet50"`},
		{"list all", 2, `takes no argument`},
		{"variants tvm", 2, `takes no argument`},
		{"version 1", 2, `takes no argument`},
		{"run ablatoin", 2, `unknown experiment "ablatoin" \(did you mean ablation\?\)`},
		{"run optimality --no-exact", 2,
			`optimality is about exact methods alone, expected another experiment with --no-exact`},
		{"run ablation --workers -1", 2, `"-1" for "--workers"`},
		{"run ablation --out=", 2, `--out is empty`},
		{"schedul resnet50", 2, `unknown command "schedul": did you mean schedule\?`},
		{"frobnicate", 2, `unknown command "frobnicate": 'dsasched --help' lists`},
		{"frobnicate --help", 2, `unknown command "frobnicate": 'dsasched --help' lists`},
		{"solve frobnicate --help", 2, `unknown command "frobnicate": 'dsasched solve --help' lists`},
		{"help frobnicate", 2, `no command "frobnicate"`},
		{"schedule resnet50 --fast", 2, `unknown flag: --fast`},
		{"--fast", 2, `unknown flag: --fast`},
		{"schedul resnet50 --batch 4", 2, `unknown command "schedul": did you mean schedule\?`},
		{"completion", 2, `SHELL is missing: expected one of bash, zsh, fish`},
		{"completion tcsh", 2, `unknown shell "tcsh", expected one of bash`},
	} {
		t.Run(c.args, func(t *testing.T) {
			for _, extra := range [][]string{nil, {"--json"}} {
				args := append(strings.Fields(c.args), extra...)
				if extra != nil && (strings.HasSuffix(c.args, "--batch") || strings.HasPrefix(c.args, "--") ||
					strings.HasPrefix(c.args, "help ") || strings.Contains(c.args, "--yaml")) {
					continue // where it would change the mistake
				}
				r := call(t, args...)
				if r.status != c.status {
					t.Errorf("%q: status %d, want %d", args, r.status, c.status)
				}
				if r.stdout != "" {
					t.Errorf("%q prints %q", args, r.stdout)
				}
				if !strings.HasPrefix(r.stderr, "dsasched: ") || strings.Count(r.stderr, "\n") != 1 ||
					!strings.HasSuffix(r.stderr, "\n") {
					t.Errorf("%q: stderr is not one line: %q", args, r.stderr)
				}
				if !regexp.MustCompile(c.want).MatchString(r.stderr) {
					t.Errorf("%q: %q does not match %q", args, r.stderr, c.want)
				}
			}
		})
	}
	if after := fileNames(t); !slices.Equal(before, after) {
		t.Errorf("the files are %q, were %q", after, before)
	}
}

func fileNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The real experiments check their folder before they work.
func TestRunCannotWrite(t *testing.T) {
	workspace(t)
	var stdout, stderr bytes.Buffer
	status := report(&stderr, run(context.Background(), &stdout, &stderr, []string{"run", "ablation", "--out", "file"}))
	if status != exitFailure || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 ||
		!strings.Contains(stderr.String(), "can't be written") {
		t.Errorf("status %d, stdout %q, stderr %q", status, &stdout, &stderr)
	}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"none", nil, 0, ""},
		{"plain", errors.New("a"), 1, "dsasched: a\n"},
		{"usage", fmt.Errorf("b: %w", usagef("a")), 2, "dsasched: b: a\n"},
		{"interrupted", context.Canceled, 130, "dsasched: interrupted\n"},
		{"interrupted run", &experiments.InterruptedError{Experiment: "e", Done: 1, Total: 2, Out: "o",
			Err: context.Canceled}, 130,
			"dsasched: interrupted: 1 of 2 cells of e are finished and kept in o; run the same command again to go on from there\n"},
		{"lines", errors.Join(errors.New("a\n\n  b"), errors.New("c")), 1, "dsasched: a; b; c\n"},
		{"many lines", errors.New("a\nb\nc\nd\ne"), 1, "dsasched: a; b; c; and 2 more\n"},
		{"control characters", errors.New("a\x1b[31m\tb"), 1, "dsasched: a?[31m b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if got := report(&b, c.err); got != c.status || b.String() != c.want {
				t.Errorf("status %d, %q; want %d, %q", got, &b, c.status, c.want)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := callContext(t, ctx, "schedule", "resnet50", "--batch", "64")
	if r != (result{"", "dsasched: interrupted\n", exitInterrupted}) {
		t.Errorf("%+v", r)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestStdoutFull(t *testing.T) {
	var stderr bytes.Buffer
	err := run(context.Background(), brokenWriter{}, &stderr, []string{"models"})
	if status := report(&stderr, err); status != exitFailure ||
		stderr.String() != "dsasched: the answer can't be printed: no space left on device\n" {
		t.Errorf("status %d, stderr %q", status, &stderr)
	}
}

// The whole program, with a signal while it works.
func TestInterrupt(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, "run", "ablation", "--quiet", "--workers", "1", "--out", out)
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Once the first folder is there, the work has begun.
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(out, "ablation", "cells")); err == nil {
			break
		}
		if time.Since(begin) > 30*time.Second {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("nothing happens: %s", &stderr)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("exit status %d, want %d", got, exitInterrupted)
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout is %q", &stdout)
	}
	if got := stderr.String(); !strings.HasPrefix(got, "dsasched: interrupted") || strings.Count(got, "\n") != 1 {
		t.Errorf("stderr is %q", got)
	}
}

// A line of an error has room for a name of any file, and no more.
func TestLongProblems(t *testing.T) {
	long := oneLine(strings.Repeat("x", 2000) + "\nfile: " + strings.Repeat("y", 900))
	half := strings.Repeat("x", 500)
	if want := half + " ... " + half + "; file: " + strings.Repeat("y", 900); long != want {
		t.Errorf("%d bytes, want %d: %.20q", len(long), len(want), long)
	}
	if r := call(t, "schedule", "--variant", strings.Repeat("é", 5000)); len(r.stderr) > 1200 || r.status != exitUsage {
		t.Errorf("status %d, stderr of %d bytes", r.status, len(r.stderr))
	}
}
