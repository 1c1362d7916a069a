package cli

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
)

// All commands that solve the problem of a file begin with a solution that they have written,
// write a program that HiGHS could read, and a row that shows how bound and value have met.
func TestProblemFiles(t *testing.T) {
	workspace(t)
	_, missing := highs.New()
	for _, c := range []struct {
		args       []string
		start, ilp string // "": there is no program
		other      string // a file that is no solution of this problem
	}{
		{[]string{"solve", "order", "chain.json"}, "search", "counting-ilp",
			`{"objective":"traffic","status":"limit","steps":[]}`},
		{[]string{"solve", "allocate", "buffers.csv", "--minimize"}, "search", "",
			"id,lower,upper,size,offset\nnone,0,1,1,0\n"},
		{[]string{"solve", "partition", "graph.json"}, "exact", "ilp", `{"devices":[[1],[2],[3],[4],[5]]}`},
	} {
		t.Run(c.args[1], func(t *testing.T) {
			with := func(more ...string) []string { return append(append([]string(nil), c.args...), more...) }
			answer(t, with("--quiet", "--method", c.start, "-o", "made")...)
			if c.ilp != "" {
				answer(t, with("--quiet", "--export", "program.lp")...)
				if lp := strings.ToLower(string(readFile(t, "program.lp"))); !strings.Contains(lp, "subject to") ||
					!strings.HasSuffix(lp, "end\n") {
					t.Errorf("no program: %.300s", lp)
				}
			}
			methods := []string{c.start}
			if missing == nil && c.ilp != "" {
				methods = append(methods, c.ilp)
			}
			for _, method := range methods {
				args := with("--quiet", "--method", method, "--start", "made", "--json")
				if c.ilp != "" {
					args = append(args, "--seed", "3")
				}
				var again map[string]any
				if err := json.Unmarshal([]byte(answer(t, args...)), &again); err != nil {
					t.Fatal(err)
				}
				if again["status"] != "optimal" {
					t.Errorf("%s from the optimum: %v", method, again["status"])
				}
			}
			if err := os.WriteFile("other", []byte(c.other), 0o644); err != nil {
				t.Fatal(err)
			}
			r := call(t, with("--quiet", "--method", cmp.Or(c.ilp, c.start), "--start", "other")...)
			if r.status != exitFailure || !strings.Contains(r.stderr, "other") {
				t.Errorf("another problem's solution: %+v", r)
			}
		})
	}
	for _, line := range []string{
		"solve order chain.json --method bfs --start made",
		"solve allocate buffers.csv --capacity 4 --spill --start made",
		"solve allocate buffers.csv --capacity 4 --method ilp",
		"solve order chain.json --export p.txt",
	} {
		if r := call(t, strings.Fields(line)...); r.status != exitUsage {
			t.Errorf("%s: %+v, expected a usage error", line, r)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// With --work, answers do not depend on how busy the machine is; each says how much processor time it took.
func TestWork(t *testing.T) {
	workspace(t)
	times := regexp.MustCompile(`"(seconds|processor_s)": [^\n]*`)
	var spinning atomic.Bool
	spinning.Store(true)
	defer spinning.Store(false)
	for _, args := range [][]string{
		{"solve", "order", "chain.json", "--method", "search", "--work", "2", "--json"},
		{"solve", "allocate", "buffers.csv", "--minimize", "--work", "3", "--json"},
		{"solve", "partition", "graph.json", "--work", "1", "--json"},
	} {
		before := answer(t, append(args, "--quiet")...)
		for range 4 {
			go func() {
				for spinning.Load() {
				}
			}()
		}
		after := answer(t, append(args, "--quiet")...)
		if a, b := times.ReplaceAllString(before, ""), times.ReplaceAllString(after, ""); a != b {
			t.Errorf("%v: %s\nthen %s", args, a, b)
		}
		if !processor.MatchString(before) {
			t.Errorf("%v: no processor time in %s", args, before)
		}
		if text := answer(t, args[:len(args)-1]...); !strings.Contains(text, "\nprocessor ") {
			t.Errorf("%v: no processor time in %s", args, text)
		}
	}
}
