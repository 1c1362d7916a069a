package experiments

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTable4(t *testing.T) {
	e := fullTable4()
	e.configurations = e.configurations[:1]
	e.variants = []string{"tvm", "cross-layer"}
	p, err := e.plan()
	if err != nil {
		t.Fatal(err)
	}
	result, err := compute(context.Background(), p.cells[0])
	if err != nil {
		t.Fatal(err)
	}
	var times []schedulingTime
	if err := json.Unmarshal(result, &times); err != nil || len(times) != 2 || times[0].Seconds <= 0 || times[1].Variant != "cross-layer" {
		t.Errorf("%v: %+v", err, times)
	}
	rep, err := p.report([]json.RawMessage{result})
	if err != nil || !strings.Contains(rep.text, "resnet50") {
		t.Errorf("%v: %+v", err, rep)
	}
}

func TestNoExact(t *testing.T) {
	e := fullTable4()
	if got := strings.Join(e.heuristics().variants, " "); got != "tvm astitch cross-layer" {
		t.Errorf("without exact methods the variants are %s", got)
	}
	with, err := e.plan()
	if err != nil {
		t.Fatal(err)
	}
	without, err := e.heuristics().plan()
	if err != nil {
		t.Fatal(err)
	}
	// Neither run makes the cells of the other stale.
	for i := range with.cells {
		if with.cells[i].key == without.cells[i].key {
			t.Errorf("cell %s is the same with and without exact methods", with.cells[i].key)
		}
	}
	var all, some atomic.Int64
	x := fake(2, &all, nil)
	x.heuristic = fake(1, &some, nil).plan
	if err := x.Run(context.Background(), Options{Out: t.TempDir(), NoExact: true}); err != nil {
		t.Fatal(err)
	}
	if all.Load() != 0 || some.Load() != 1 {
		t.Errorf("%d cells of the whole plan and %d of the other were computed, want 0 and 1", all.Load(), some.Load())
	}
	err = Run(context.Background(), []string{"optimality"}, Options{Out: t.TempDir(), NoExact: true})
	if err == nil || !strings.Contains(err.Error(), "optimality") {
		t.Errorf("optimality without exact methods: %v", err)
	}
}
