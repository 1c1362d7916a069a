package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/rcpsp"
)

// Jobs 2, 3, 5 and 6 share a unit: 5 + 2 + 4 + 3 = 14, and job 4 fits beside.
func TestRCPSP(t *testing.T) {
	workspace(t)
	p, err := readProject("project.sm")
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"list", "ilp"} {
		if _, err := highs.New(); err != nil && method == "ilp" {
			continue
		}
		var a rcpsp.Result
		if err := json.Unmarshal(
			[]byte(answer(t, "solve", "rcpsp", "project.sm", "--method", method, "--json", "-o", "out.json")), &a); err != nil {
			t.Fatal(err)
		}
		if a.Method != method || a.Status != milp.Optimal || a.Makespan != 14 || a.Bound != 14 || a.Seconds <= 0 ||
			p.Check(a.Start) != nil || p.Makespan(a.Start) != 14 {
			t.Errorf("%s: %+v", method, a)
		}
		var b rcpsp.Result
		data, err := os.ReadFile("out.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &b); err != nil || b.Seconds != a.Seconds {
			t.Errorf("%s: the file has %+v, %v", method, b, err)
		}
	}
	if text := answer(t, "solve", "rcpsp", "project.sm"); !strings.Contains(text, "makespan      14\n") {
		t.Errorf("%s", text)
	}
}

// Interrupted, the integer program leaves the schedule that it began with.
func TestRCPSPInterrupted(t *testing.T) {
	if _, err := highs.New(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	file := sharedFile(t, "../rcpsp/j30/j3013_6.sm")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	r := callContext(t, ctx, "solve", "rcpsp", file, "--method", "ilp", "--json")
	var a rcpsp.Result
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil || a.Status != milp.Feasible ||
		a.Bound > 64 || a.Makespan < 64 {
		t.Errorf("%s: %v", r.stdout, err)
	}
	if r.status != exitInterrupted {
		t.Errorf("status %d, stderr %q", r.status, r.stderr)
	}
}
