package certificate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// certified is a certificate, made once and read for each test.
func certified(t *testing.T) *certificate.File {
	t.Helper()
	if written == nil {
		data, err := makeCertificate(t, "alexnet", 6).Write()
		if err != nil {
			t.Fatal(err)
		}
		written = data
	}
	f, err := certificate.Read("proof", written)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var written []byte

func makeCertificate(t testing.TB, model string, batch int64) *certificate.File {
	t.Helper()
	ctx := context.Background()
	net, err := network.Open(model, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(ctx, net, chip, batch, recipe, scheduler.Options{InPlace: true})
	if err != nil {
		t.Fatal(err)
	}
	greedy, err := scheduler.Run(ctx, net, chip, batch, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rate := greedy.ThroughputPerSecond()
	f, err := certificate.New(ctx, model, network.Options{}, r, &rate)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCertificateHolds(t *testing.T) {
	data, err := certified(t).Write()
	if err != nil {
		t.Fatal(err)
	}
	f, err := certificate.Read("proof", data)
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.Check(context.Background(), "proof", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if v.Gap < 0 || v.Gap != v.LatencySeconds/v.CertifiedBoundSeconds-1 || v.CertifiedBoundSeconds <= 0 {
		t.Errorf("%+v", v)
	}
	if v.DType != "f16" || v.Grain != "given" || v.Level != "lb" || len(v.Chunks) == 0 || v.Scope == "" ||
		v.HardwareFingerprint != f.Hardware.Fingerprint || v.HardwareFile != "" {
		t.Errorf("the verdict does not say what it is of: %+v", v)
	}
	again, err := f.Write()
	if err != nil || string(again) != string(data) {
		t.Errorf("what was read is written otherwise (%v)", err)
	}
}

// Where each attention is one operator, the certificate is of that graph, and says so. Of a graph whose running sums
// are in parts no bound is known.
func TestCertificateOfFusedAttention(t *testing.T) {
	ctx := context.Background()
	chip, err := scheduler.OpenMachine("a100")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	run := func(model string) (*scheduler.Result, network.Network) {
		net, err := network.Open(model, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(ctx, net, chip, 2, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r, net
	}
	r, net := run("gpt2-decode")
	_, fused, err := certificate.Bounds(ctx, net, r.Spec, 2)
	if err != nil {
		t.Fatal(err)
	}
	f, err := certificate.New(ctx, "gpt2-decode", network.Options{}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Network.AttentionFused || f.CertifiedBoundSeconds != fused.Seconds {
		t.Errorf("fused: %t, bound %v, expected that of fused attention, %v", f.Network.AttentionFused,
			f.CertifiedBoundSeconds, fused.Seconds)
	}
	if v, err := f.Check(ctx, "proof", "", ""); err != nil || v.GreedyThroughputPerSecond != nil {
		t.Errorf("a file without the greedy schedule claims nothing of it: %v", err)
	}
	var wrong *schedulefile.InputError
	claimed := 1.0
	f.GreedyThroughputPerSecond = &claimed
	if _, err := f.Check(ctx, "proof", "", ""); !errors.As(err, &wrong) || wrong.Field != "greedy_throughput_per_s" {
		t.Errorf("expected an error about the greedy schedule alone: %v", err)
	}
	f.Network.AttentionFused = false
	if _, err := f.Check(ctx, "proof", "", ""); !errors.As(err, &wrong) || wrong.Field != "network.fingerprint" {
		t.Errorf("as the network's own operators: %v", err)
	}
	r, _ = run("mamba-block")
	if _, err := certificate.New(ctx, "mamba-block", network.Options{}, r, nil); err == nil ||
		!strings.Contains(err.Error(), "no bound is known") {
		t.Errorf("running sums in parts: %v", err)
	}
}

// Where feed-forwards are in slices, the certificate is of the graph with so many.
func TestCertificateOfSlices(t *testing.T) {
	ctx := t.Context()
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-slices")
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.Open("vit-b16", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{Chunk: 8, Lines: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := certificate.New(ctx, "vit-b16", network.Options{}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := bound.Cold(ctx, net, r.Spec, 32)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Network.Slices) != 12 || f.CertifiedBoundSeconds >= own.Seconds {
		t.Errorf("slices %v, bound %v, expected less than %v of the network's own graph", f.Network.Slices,
			f.CertifiedBoundSeconds, own.Seconds)
	}
	v, err := f.Check(ctx, "proof", "", "")
	if err != nil || !strings.Contains(v.Text(), "3 slices") {
		t.Errorf("%v, %v", v, err)
	}
	for _, c := range []struct {
		slices []int64
		what   string
	}{{nil, "network.fingerprint"}, {f.Network.Slices[1:], "11 feed-forwards, expected 12"}} {
		f.Network.Slices = c.slices
		if _, err := f.Check(ctx, "proof", "", ""); err == nil || !strings.Contains(err.Error(), c.what) {
			t.Errorf("slices %v: %v, expected %q", c.slices, err, c.what)
		}
	}
}

// A verdict names the file that an accelerator is from, whatever it is called in there.
func TestAcceleratorOfFile(t *testing.T) {
	data, err := os.ReadFile("../../hardware/presets/stcp920.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	f := certified(t)
	v, err := f.Check(context.Background(), "proof", file, "")
	if err != nil {
		t.Fatal(err)
	}
	if v.HardwareFile != file || v.HardwareFingerprint != f.Hardware.Fingerprint {
		t.Errorf("the accelerator is of %q, fingerprint %s, expected %q, %s", v.HardwareFile, v.HardwareFingerprint, file,
			f.Hardware.Fingerprint)
	}
	f.Hardware.Name, f.Schedule.Hardware.Name = file, file
	if _, err := f.Check(context.Background(), "proof", "", ""); err == nil ||
		!strings.Contains(err.Error(), "hardware.name: found ") {
		t.Errorf("got %v, expected the file's name to be refused", err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name            string
		edit            func(f *certificate.File)
		hardware, model string
		want            string
	}{
		{"another kind", func(f *certificate.File) { f.Kind = "dsasched-schedule" }, "", "",
			`kind: found "dsasched-schedule", expected "dsasched-certificate"`},
		{"another version", func(f *certificate.File) { f.Version++ }, "", "", `version: found 9, expected 8`},
		{"another graph", func(f *certificate.File) { f.Network.Model = "resnet18" }, "", "", `network.fingerprint: found "`},
		{"another graph asked for", nil, "", "resnet18", `network.fingerprint: found "`},
		{"another type", func(f *certificate.File) { f.Network.DType = "f32" }, "", "", `network.fingerprint: found "`},
		{"no such grain", func(f *certificate.File) { f.Network.Grain = "fine" }, "", "", `network.grain: `},
		{"no such type", func(f *certificate.File) { f.Network.DType = "f12" }, "", "",
			`network.dtype: unknown element type "f12"`},
		{"another machine", func(f *certificate.File) { f.Hardware.Name = "goya" }, "", "", `hardware.fingerprint: found "`},
		{"a machine of a file", func(f *certificate.File) { f.Hardware.Name = "./stcp920.yaml" }, "", "",
			`hardware.name: found "./stcp920.yaml", expected a built-in accelerator, or --hardware with its file`},
		{"another machine asked for", nil, "ipu", "", `hardware.fingerprint: found "`},
		{"a schedule for another machine", func(f *certificate.File) { f.Schedule.Hardware.Fingerprint = "" }, "", "",
			`schedule.hardware: found {stcp920 lb }, expected`},
		{"another level", func(f *certificate.File) { f.Hardware.Level, f.Schedule.Hardware.Level = "gb", "gb" }, "",
			"", `bound.terms`},
		{"an edited bound", func(f *certificate.File) { f.CertifiedBoundSeconds *= 1.01 }, "", "",
			`certified_lower_bound_s: found 0.00`},
		{"an edited bound inside", func(f *certificate.File) { f.Bound.Seconds *= 1.01 }, "", "", `bound: found "`},
		{"an edited term", func(f *certificate.File) { f.Bound.Terms[0].Seconds *= 1.01 }, "", "",
			`bound.terms[0]: found {work`},
		{"a term less", func(f *certificate.File) { f.Bound.Terms = f.Bound.Terms[1:] }, "", "", `bound.terms: found `},
		{"many shares", func(f *certificate.File) { f.Bound.Shares = make([]int64, 100_000) }, "", "",
			`bound.shares: found 100000, expected 4`},
		{"a long name", func(f *certificate.File) { f.Network.Fingerprint = strings.Repeat("x", 100_000) }, "", "",
			`network.fingerprint: found "` + strings.Repeat("x", 60) + `...", expected`},
		{"another load", func(f *certificate.File) { f.Proof.Witness.Shares[0].Loads++ }, "", "", `proof.witness: found `},
		{"another machine in the proof", func(f *certificate.File) { f.Proof.Machine.ClockHz *= 2 }, "", "",
			`proof.machine: found `},
		{"another graph in the proof", func(f *certificate.File) { f.Proof.Graphs[0].Batch++ }, "", "",
			`proof.graphs: found `},
		{"another batch", func(f *certificate.File) { f.Batch = 8 }, "", "", `bound.`},
		{"a batch of the schedule's own", func(f *certificate.File) { f.Schedule.Batch = 8 }, "", "",
			`schedule.batch: found 8, expected 6`},
		{"an edited latency", func(f *certificate.File) { f.LatencySeconds *= 0.99 }, "", "", `latency_s: found 0.00`},
		{"an edited throughput", func(f *certificate.File) { f.ThroughputPerSecond++ }, "", "", `throughput_per_s: found `},
		{"an edited gap", func(f *certificate.File) { f.Gap = 0 }, "", "", `gap: found 0, expected 0.0`},
		{"edited greedy", func(f *certificate.File) { *f.GreedyThroughputPerSecond /= 2 }, "", "",
			`greedy_throughput_per_s: found `},
		{"a broken rule", func(f *certificate.File) { f.Schedule.Schedules[0].Instances[0].Cores[0] = 1000 }, "", "",
			`the schedule breaks a rule: schedules[0].instances[0]`},
		{"another network in the schedule", func(f *certificate.File) {
			f.Schedule.Schedules[0].Graph.Ops[0].Name = "other"
		}, "", "", `schedule.schedules[0].graph: found "`},
		{"clusters that differ", func(f *certificate.File) {
			s := &f.Schedule
			s.Schedules = append(s.Schedules, s.Schedules[0])
			s.Clusters[1] = slices.Clone(s.Clusters[1])
			s.Clusters[1][0].Schedule = len(s.Schedules) - 1
		}, "", "", `schedule: clusters: found different schedules for clusters 0 and 1 with 2 batch elements each`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := certified(t)
			if c.edit != nil {
				c.edit(f)
			}
			data, err := f.Write()
			if err != nil {
				t.Fatal(err)
			}
			if f, err = certificate.Read("proof", data); err == nil {
				_, err = f.Check(context.Background(), "proof", c.hardware, c.model)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "proof: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A certificate that takes more memory and time to read than a certificate has is neither read nor written.
func TestLargeCertificates(t *testing.T) {
	f := certified(t)
	f.Network.Model = strings.Repeat("x", 16<<20)
	if _, err := f.Write(); err == nil || !strings.Contains(err.Error(), "expected at most 16777216") {
		t.Errorf("written: %v", err)
	}
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, bytes.Repeat([]byte("["), 16<<20+1), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := certificate.Load(path); err == nil ||
		err.Error() != path+": file: found more, expected at most 16777216 bytes" {
		t.Errorf("read: %v", err)
	}
}

func TestMissingFieldIsRefused(t *testing.T) {
	data, err := certified(t).Write()
	if err != nil {
		t.Fatal(err)
	}
	_, err = certificate.Read("proof", []byte(strings.Replace(string(data), `"gap"`, `"gab"`, 1)))
	if err == nil || !strings.Contains(err.Error(), "proof: gab: ") {
		t.Errorf("got %v", err)
	}
}

// What is read is written and read again as the same.
func FuzzRead(f *testing.F) {
	data, err := makeCertificate(f, "alexnet", 6).Write()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"kind":"dsasched-certificate","version":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := certificate.Read("f.json", data)
		if err != nil {
			var in *schedulefile.InputError
			if !errors.As(err, &in) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		first, err := c.Write()
		if err != nil {
			t.Fatal(err)
		}
		again, err := certificate.Read("f.json", first)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if second, err := again.Write(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written again, the file is another one: %v", err)
		}
	})
}
