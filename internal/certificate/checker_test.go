package certificate_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
)

// checker runs scripts/check_certificate.py on files, and gives what it says of each.
func checker(t *testing.T, files ...string) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("DSASCHED_PYTHON") == "required" {
			t.Fatal("DSASCHED_PYTHON=required, but python3 is not on the PATH")
		}
		t.Skip("python3 is not on the PATH, so that the second checker of certificates is not tested")
	}
	out, err := exec.Command(python, append([]string{"../../scripts/check_certificate.py"}, files...)...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(files) {
		t.Fatalf("%d answers for %d files", len(lines), len(files))
	}
	return lines
}

// The paper's configurations and a network with attention in windows, those that take longest only where the checker
// must be there.
func TestSecondCheckerAccepts(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, c := range []struct {
		label, name string
		batch       int64
		slow        bool
	}{{"A", "resnet50", 64, false}, {"B", "bert-128", 32, true}, {"C", "bert-256", 16, true},
		{"D", "bert-large-384", 8, true}, {"E", "bert-512", 8, true}, {"F", "dlrm", 1024, false},
		{"G", "mobilenetv2", 128, true}, {"H", "vit-b16", 32, true}, {"I", "densenet121", 32, true},
		{"J", "conformer", 12, true},
		// Needs that grow out of proportion where they are put together.
		{"windows", "swin-t", 8, false},
		// Attention as one operator: of heads that share keys, causal; behind a cache of keys; whole blocks.
		{"shared", "attention", 4, false}, {"cache", "gpt2-decode", 8, true}, {"heads", "bert-128", 8, true},
		// Cores load copies.
		{"copies", "resnet18", 1, false},
		// One product, with and without an LLB.
		{"product", "product", 333, false}, {"slices", "product", 4, false}, {"alone", "product", 333, false},
		{"narrow", "product", 333, false},
		// Units with clocks of their own, a unit that reads its operands in turn with computing, an LLB in the L1's role.
		{"clocks", "toy-fig3", 4, false}, {"operands", "toy-fig3", 4, false}, {"across", "toy-fig3", 4, false}} {
		if c.slow && os.Getenv("DSASCHED_PYTHON") != "required" {
			continue
		}
		machine := map[string]string{"copies": "a100", "clocks": "inferentia2", "operands": "wormhole-n150",
			"across": "gaudi2", "product": "a100", "narrow": "a100", "slices": "ipu", "alone": "goya"}[c.label]
		named, err := scheduler.OpenMachine(cmp.Or(machine, "stcp920"))
		if err != nil {
			t.Fatal(err)
		}
		chip, level := named, "lb"
		if named.NeedsRaise() {
			level = "gb"
			if chip, err = hardware.Raise(named); err != nil {
				t.Fatal(err)
			}
		}
		net := network.Network{Name: c.name, Graph: func(batch int64) (*model.Graph, error) {
			b, weights := model.NewBuilder(c.name), model.F16
			if c.label == "narrow" {
				weights = model.I4
			}
			b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", model.F16, batch, 1000),
				b.Param("w", weights, 1000, 77)))
			return b.Build()
		}}
		if c.label == "shared" {
			net.Graph = func(batch int64) (*model.Graph, error) {
				return zoo.Attention{Heads: 8, KeyHeads: 2, Tokens: 200, Width: 64, Causal: true}.Build(
					zoo.Options{Batch: batch, DType: model.F16})
			}
		} else if c.name != "product" {
			if net, err = network.Open(c.name, network.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if c.label == "shared" || c.label == "cache" || c.label == "heads" {
			net = network.FuseAttention(net)
		}
		b, p, err := certificate.Prove(t.Context(), net, chip, c.batch)
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		latency := 1.25 * b.Seconds // the checker reads no schedule
		f := &certificate.File{Kind: certificate.Kind, Version: certificate.Version, Batch: c.batch, Bound: *b, Proof: *p,
			Network:        certificate.Network{Model: c.name, Fingerprint: schedulefile.GraphFingerprint(g)},
			Hardware:       schedulefile.Hardware{Name: named.Name, Level: level, Fingerprint: schedulefile.Fingerprint(named)},
			LatencySeconds: latency, ThroughputPerSecond: float64(c.batch) / latency, CertifiedBoundSeconds: b.Seconds,
			Gap: b.Gap(latency)}
		files = append(files, save(t, filepath.Join(dir, c.label+".json"), f))
	}
	for _, line := range checker(t, files...) {
		if !strings.Contains(line, ".json: holds: ") {
			t.Error(line)
		}
	}
}

func save(t *testing.T, path string, f *certificate.File) string {
	t.Helper()
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// forge makes files of a good one, the first, in each of which a field that the second checker reads is changed by a
// little.
func forge(t *testing.T) (files, fields []string) {
	t.Helper()
	data, err := makeCertificate(t, "toy-fig3", 12).Write()
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	if err := os.WriteFile(good, data, 0o666); err != nil {
		t.Fatal(err)
	}
	files, fields = []string{good}, []string{""}
	// What it does not read: the schedule, the greedy variant, names and how the network is opened.
	skip := []string{"schedule", "greedy_throughput_per_s", "network.model", "network.dtype", "network.grain",
		"network.allow_unknown", "bound.parts[0].part", "bound.parts[1].part", "bound.parts[2].part", "bound.parts[3].part"}
	number, seen := regexp.MustCompile(`[0-9]+`), map[string]int{} // fields of lists that are alike
	var walk func(at string, v any, set func(any))
	walk = func(at string, v any, set func(any)) {
		if slices.Contains(skip, at) {
			return
		}
		switch x := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				walk(strings.TrimPrefix(at+"."+k, "."), x[k], func(y any) { x[k] = y })
			}
			return
		case []any:
			for k, inner := range x {
				walk(fmt.Sprintf("%s[%d]", at, k), inner, func(y any) { x[k] = y })
			}
			return
		case float64:
			set(x*1.001 + .001)
			if x == float64(int64(x)) {
				set(x + 1)
			}
		case string:
			set(x + "x")
		case bool:
			set(!x)
		default:
			return
		}
		defer set(v)
		// The fingerprint is of all of the first graph.
		if strings.HasPrefix(at, "proof.graphs[0]") && len(files)%8 > 0 && !strings.Contains(at, ".kind") {
			return
		}
		alike := number.ReplaceAllString(at, "")
		if seen[alike]++; seen[alike] > 12 {
			return
		}
		forged, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.json", len(files)))
		if err := os.WriteFile(path, forged, 0o666); err != nil {
			t.Fatal(err)
		}
		files, fields = append(files, path), append(fields, at)
	}
	walk("", whole, nil)
	if len(files) <= 200 {
		t.Errorf("%d forged files, expected 200 at least", len(files)-1)
	}
	t.Logf("%d forged files", len(files)-1)
	return files, fields
}

// The second checker names the field of what is not there or of another type.
func TestSecondCheckerNamesFields(t *testing.T) {
	data, err := makeCertificate(t, "toy-fig3", 12).Write()
	if err != nil {
		t.Fatal(err)
	}
	text, dir := string(data), t.TempDir()
	var files, want []string
	for _, c := range [][3]string{
		{`"series":`, `"series_then_loads":null,"series":`, "proof.witness.shares[0].series_then_loads: found None"},
		{`"term":"ddr"`, `"name":"ddr"`, ".term: missing"}} {
		i := strings.Index(text, c[0])
		if i < 0 {
			t.Fatalf("no %s in the certificate", c[0])
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(path, []byte(text[:i]+c[1]+text[i+len(c[0]):]), 0o666); err != nil {
			t.Fatal(err)
		}
		files, want = append(files, path), append(want, c[2])
	}
	for k, line := range checker(t, files...) {
		if !strings.Contains(line, "refused: ") || !strings.Contains(line, want[k]) {
			t.Errorf("found %q, expected %q", line, want[k])
		}
	}
}

func TestForgedFieldsAreRefused(t *testing.T) {
	files, fields := forge(t)
	for k, file := range files {
		f, err := certificate.Load(file)
		if err == nil {
			_, err = f.Check(t.Context(), file, "", "")
		}
		if (err == nil) != (k == 0) {
			t.Errorf("forged %q: %v", fields[k], err)
		}
	}
}

func TestSecondCheckerRefuses(t *testing.T) {
	files, fields := forge(t)
	for k, line := range checker(t, files...) {
		if k == 0 && !strings.Contains(line, ": holds: ") || k > 0 && !strings.Contains(line, ": refused: ") {
			t.Errorf("forged %q: %s", fields[k], line)
		}
	}
}
