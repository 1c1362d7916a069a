package experiments

import (
	"context"
	"encoding/json"
	"strings"
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
