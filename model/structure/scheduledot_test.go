package structure_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

type noSpace struct{}

func (noSpace) Write([]byte) (int, error) { return 0, errors.New("no space") }

// The graph has a cluster for each group, a node for each instance, an edge for each
// pair of which one reads the other, and Graphviz takes it.
func TestWriteScheduleDOT(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open("resnet50", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := src.Graph(16)
	if err != nil {
		t.Fatal(err)
	}
	g.Ops[0].Name = "a \"quoted\" \\ name"
	s, err := v.Schedule(context.Background(), g, spec, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := structure.WriteScheduleDOT(&b, s); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	edges := 0
	for _, cs := range s.Instances.Consumers {
		edges += len(cs)
	}
	for _, c := range []struct {
		what string
		want int
	}{
		{"subgraph cluster_g", len(s.Grouping.Groups)}, {"runs as number ", len(s.Instances.Instances)}, {" -> ", edges},
		{`penwidth=2.5];`, 1 + len(s.Spills)}, // the legend, too
	} {
		if got := strings.Count(text, c.what); got != c.want {
			t.Errorf("%q stands there %d times, expected %d", c.what, got, c.want)
		}
	}
	if !strings.Contains(text, `a \"quoted\" \\ name .. `) {
		t.Error("the name is not quoted")
	}
	if err := structure.WriteScheduleDOT(noSpace{}, s); err == nil {
		t.Error("a full disk is no error")
	}
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("skipped: Graphviz is not on this machine")
	}
	cmd := exec.CommandContext(context.Background(), dot, "-Tsvg")
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
		t.Errorf("dot: %v: %.200s", err, out)
	}
}
