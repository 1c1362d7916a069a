package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// certificateOf certifies the greedy schedule of a file.
func certificateOf(t *testing.T, model, schedule, out string) {
	t.Helper()
	o, err := scheduler.Open(schedule, "")
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := o.Restore(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rate := r.ThroughputPerSecond()
	f, err := certificate.New(context.Background(), model, network.Options{}, r, &rate)
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Greedy is at its best chunk, whatever that of the search is.
func TestCertifyChunk(t *testing.T) {
	workspace(t)
	answer(t, "best", "toy-fig5", "--batch", "16", "--chunk", "1", "--evaluations", "2", "--certificate", "chunk.json")
	if text := answer(t, "certify", "chunk.json"); !strings.Contains(text, "batch 16: holds") {
		t.Error(text)
	}
}

func TestCertify(t *testing.T) {
	workspace(t)
	text := answer(t, "certify", "net.certificate.json")
	for _, want := range []string{"net.onnx on stcp920, batch 1: holds", "gap", "1.000 times as fast here", "work"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	bounds := strings.Join(strings.Fields(answer(t, "bound", "toy-fig5", "--batch", "4")), " ")
	for _, want := range []string{"single batch of 4 any division at least ", "/s even split at least ", "/s limited by",
		"/s (steady state): "} {
		if !strings.Contains(bounds, want) {
			t.Errorf("no throughput is followed by %q in\n%s", want, bounds)
		}
	}
	if strings.Contains(text, " 0 ns") {
		t.Errorf("a term that limits nothing:\n%s", text)
	}
	data, err := os.ReadFile("net.certificate.json")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), `"gap": `, `"gap": 1`, 1)
	if err := os.WriteFile("edited.json", []byte(edited), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"edited.json":       "edited.json: gap: found ",
		"net.schedule.json": `net.schedule.json: kind: found "dsasched-schedule", expected "dsasched-certificate"`,
		"nosuch.json":       "nosuch.json: no such file",
	} {
		if r := call(t, "certify", file); r.status != exitFailure || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: status %d, %q, %q", file, r.status, r.stdout, r.stderr)
		}
	}
}
