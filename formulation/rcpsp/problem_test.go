package rcpsp

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func five(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/five.sm")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parse(t testing.TB, text string) *Project {
	t.Helper()
	p, err := ParsePSPLIB(strings.NewReader(text), "five.sm")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePSPLIB(t *testing.T) {
	p := parse(t, five(t))
	if len(p.Activities) != 7 || !slices.Equal(p.Resources, []Resource{{"R1", 1}, {"R2", 2}}) {
		t.Fatalf("%+v", p)
	}
	a := p.Activities[5]
	if a.Name != "6" || a.Duration != 3 || !slices.Equal(a.Demand, []int64{1, 1}) || !slices.Equal(a.After, []int{2, 3}) {
		t.Errorf("%+v", a)
	}
	if got := p.Bound(); got != 14 {
		t.Errorf("bound %d, want 14", got)
	}
	if got := p.Tails(); !slices.Equal(got, []int64{9, 4, 3, 3, 0, 0, 0}) {
		t.Errorf("tails %v", got)
	}
}

func TestParsePSPLIBErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"jobs", "  7\n", "  x\n", `five.sm:3: found "x", expected 1 to 100000 for "jobs"`},
		{"too few jobs", "  7\n", "  6\n", `five.sm:16: found successor 7, expected another of jobs 1 to 6 for job 5`},
		{"nonrenewable", "nonrenewable              :  0", "nonrenewable              :  2",
			`five.sm:7: found "2", expected 0 for "- nonrenewable"`},
		{"section", "PRECEDENCE RELATIONS:", "PRECEDENCE:",
			`five.sm: found the end of the file, expected a line "PRECEDENCE RELATIONS"`},
		{"columns", "jobnr. mode duration", "job mode duration",
			`five.sm:21: found "job mode duration  R 1  R 2", expected the columns of REQUESTS/DURATIONS, from "jobnr." on`},
		{"order of jobs", "   2        1          1           5", "   3        1          1           5",
			`five.sm:13: found job 3, expected job 2`},
		{"modes", "   2        1          1           5", "   2        2          1           5",
			`five.sm:13: found 2 modes, expected 1 for job 2`},
		{"number of successors", "   2        1          1           5", "   2        1          2           5",
			`five.sm:13: found 1 successors, expected the 2 that job 2 announces`},
		{"itself", "   2        1          1           5", "   2        1          1           2",
			`five.sm:13: found successor 2, expected another of jobs 1 to 7 for job 2`},
		{"twice", "2   3   4", "2   3   3", `five.sm:12: found successor 3 twice, expected each once for job 1`},
		{"word", "2   3   4", "2   3   d", `five.sm:12: found "d", expected a whole number of job 1's modes and successors`},
		{"requests", "  2      1     5       1    0", "  2      1     5       1",
			`five.sm:24: found 4 numbers, expected 5: job 2's number, mode, duration and 2 requests`},
		{"duration", "  2      1     5       1    0", "  2      1    -5       1    0",
			`five.sm:24: found duration -5, expected 0 to 1125899906842624 for job 2`},
		{"request", "  2      1     5       1    0", "  2      1     5      -1    0",
			`five.sm:24: found request -1, expected 0 to 1099511627776 of resource 1 for job 2`},
		{"capacities", "\n    1    2\n", "\n    1\n", `five.sm:33: found 1 capacities, expected one for each of 2 resources`},
		{"more than there is", "\n    1    2\n", "\n    0    2\n",
			`project "five.sm": activity 1 ("2"): demand of resource 0 ("R1"): found 1, expected 0 to its capacity, 0`},
		{"cycle", "   5        1          1           7", "   5        1          1           2",
			`project "five.sm": activity 1 ("2"): found a wait for itself by way of those it comes after, expected no cycle`},
		{"more", "    1    2\n", "    1    2\n3\n", `five.sm:34: found "3", expected nothing more`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := five(t)
			if !strings.Contains(text, c.old) {
				t.Fatalf("nothing to replace: %q", c.old)
			}
			_, err := ParsePSPLIB(strings.NewReader(strings.Replace(text, c.old, c.new, 1)), "five.sm")
			if err == nil || err.Error() != c.want {
				t.Errorf("%v, want\n%s", err, c.want)
			}
		})
	}
	for n := range strings.Count(five(t), "\n") - 1 {
		text := strings.Join(strings.SplitAfter(five(t), "\n")[:n], "")
		if _, err := ParsePSPLIB(strings.NewReader(text), "five.sm"); (err == nil) != (n == 33) {
			t.Errorf("the first %d lines: %v", n, err)
		}
	}
}

func FuzzParsePSPLIB(f *testing.F) {
	f.Add(five(f))
	f.Add(
		"jobs:1\n- renewable:0\n- nonrenewable:0\n- doubly constrained:0\nPRECEDENCE RELATIONS\njobnr.\n1 1 0\nREQUESTS/DURATIONS\njobnr.\n---\n1 1 9\nRESOURCEAVAILABILITIES\n.\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePSPLIB(strings.NewReader(text), "fuzz.sm")
		if err != nil {
			var bad *TextError
			var input *InputError
			if p != nil || !errors.As(err, &bad) && !errors.As(err, &input) && !strings.Contains(err.Error(), "token too long") {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(p.Activities) > 300 {
			return
		}
		order, err := p.Order()
		if err != nil {
			t.Fatal(err)
		}
		start, now := make([]int64, len(order)), int64(0)
		for _, i := range order {
			start[i] = now
			now += p.Activities[i].Duration
		}
		if err := p.Check(start); err != nil {
			t.Fatal(err)
		}
		if b := p.Bound(); b > now {
			t.Fatalf("bound %d, done at %d", b, now)
		}
	})
}

func TestCheckFindsFaults(t *testing.T) {
	p := parse(t, five(t))
	good := []int64{0, 0, 9, 0, 5, 11, 14}
	if err := p.Check(good); err != nil {
		t.Fatal(err)
	}
	if got := p.Makespan(good); got != 14 {
		t.Errorf("makespan %d", got)
	}
	for _, c := range []struct {
		name  string
		start []int64
		rule  int
		want  string
	}{
		{"too few", good[:6], 0, `found 6 start times, expected one for each of 7`},
		{"negative", []int64{-1, 0, 9, 0, 5, 11, 14}, 3, `activity 0 ("1") starts at -1`},
		{"far out", []int64{0, 0, 9, 0, 5, 11, 1 << 62}, 3, `activity 6 ("7") starts at`},
		{"before its predecessor's end", []int64{0, 0, 9, 0, 4, 11, 14}, 1,
			`activity 4 ("5") starts at 4, expected at least 5, when activity 1 ("2") ends`},
		{"sink too soon", []int64{0, 0, 9, 0, 5, 11, 13}, 1, `activity 6 ("7") starts at 13, expected at least 14`},
		{"together", []int64{0, 0, 8, 0, 5, 11, 14}, 2,
			`at 8, when activity 2 ("3") starts, 2 of resource 0 ("R1") are in use, expected at most 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := p.Check(c.start)
			var v *Violation
			if !errors.As(err, &v) || v.Rule != c.rule || !strings.Contains(v.What, c.want) || !errors.Is(err, ErrSchedule) {
				t.Errorf("%v, want rule (%d): %s", err, c.rule, c.want)
			}
		})
	}
}

// Check agrees with counting at each moment.
func TestCheckAgainstCounting(t *testing.T) {
	found := [2]int{}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := &Project{Resources: []Resource{{"a", 1 + rng.Int64N(4)}, {"b", 1 + rng.Int64N(4)}}}
		var start []int64
		for i := range 1 + rng.IntN(6) {
			a := Activity{Duration: rng.Int64N(4),
				Demand: []int64{rng.Int64N(p.Resources[0].Capacity + 1), rng.Int64N(p.Resources[1].Capacity + 1)}}
			if i > 0 && rng.IntN(4) == 0 {
				a.After = []int{rng.IntN(i)}
			}
			p.Activities = append(p.Activities, a)
			start = append(start, rng.Int64N(8))
		}
		want := true
		for i, a := range p.Activities {
			for _, h := range a.After {
				want = want && start[i] >= start[h]+p.Activities[h].Duration
			}
		}
		for at := int64(0); at < 12; at++ {
			for k, r := range p.Resources {
				used := int64(0)
				for i, a := range p.Activities {
					if start[i] <= at && at < start[i]+a.Duration {
						used += a.Demand[k]
					}
				}
				want = want && used <= r.Capacity
			}
		}
		if err := p.Check(start); (err == nil) != want {
			t.Fatalf("seed %d: %v, want right: %v", seed, err, want)
		}
		if want {
			found[1]++
		} else {
			found[0]++
		}
	}
	if found[0] < 100 || found[1] < 100 {
		t.Errorf("wrong and right: %v", found)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *Project)
		want   string
	}{
		{"capacity", func(p *Project) { p.Resources[0].Capacity = -1 }, `resource 0 ("R1"): capacity: found -1`},
		{"duration", func(p *Project) { p.Activities[1].Duration = -1 }, `activity 1 ("2"): duration: found -1`},
		{"sum", func(p *Project) { p.Activities[1].Duration = MaxHorizon; p.Activities[2].Duration = 1 },
			`activity 2 ("3"): sum of durations so far: found 1125899906842625`},
		{"demands", func(p *Project) { p.Activities[1].Demand = nil }, `activity 1 ("2"): number of demands: found 0`},
		{"range", func(p *Project) { p.Activities[1].After = []int{7} },
			`activity 1 ("2"): comes after: found activity 7, expected 0 to 6`},
		{"itself", func(p *Project) { p.Activities[1].After = []int{1} }, `activity 1 ("2"): found a wait for itself`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, five(t))
			c.change(p)
			var e *InputError
			if err := p.Validate(); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestLargeWork(t *testing.T) {
	p := &Project{Resources: []Resource{{"r", maxCapacity}}, Activities: []Activity{
		{Duration: MaxHorizon / 2, Demand: []int64{maxCapacity}},
		{Duration: MaxHorizon / 2, Demand: []int64{maxCapacity - 1}}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := p.Bound(); got != MaxHorizon-512 { // less 2^49 / 2^40
		t.Errorf("bound %d, want %d", got, MaxHorizon-512)
	}
}

// The published files are read.
func TestPublished(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/rcpsp/j30/*.sm")
	if len(files) == 0 {
		t.Skip("skipped: no published projects on this machine")
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePSPLIB(f, name)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Activities) != 32 || len(p.Resources) != 4 {
			t.Errorf("%s: %d activities, %d resources", name, len(p.Activities), len(p.Resources))
		}
	}
}
