package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func allocated(t *testing.T, args ...string) placement {
	t.Helper()
	a := decode[placement](t, answer(t, append([]string{"solve", "allocate", "--json"}, args...)...))
	if a.Seconds < 0 {
		t.Errorf("%v seconds", a.Seconds)
	}
	return a
}

func readBuffers(t *testing.T, file string) (*allocate.Problem, []int64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := allocate.ReadCSV(file, data)
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	for i := range p.Buffers {
		if o := p.Buffers[i].Offset; o != nil {
			offsets = append(offsets, *o)
		}
	}
	return p, offsets
}

func TestAllocate(t *testing.T) {
	workspace(t)
	for _, method := range plain(methodWords(allocate.Methods())) {
		t.Run(method, func(t *testing.T) {
			for _, goal := range []string{"--minimize", "--capacity=12", "--capacity=20", "--capacity=20 --minimize"} {
				a := allocated(t, append([]string{"buffers.csv", "--method", method, "-o", "placed.csv"},
					strings.Fields(goal)...)...)
				if !a.Status.HasValues() || a.Peak == nil || *a.Peak < 12 || a.Bound != 12 || a.Buffers != 5 || a.Method != method {
					t.Fatalf("%s: %+v", goal, a)
				}
				if (a.Status == milp.Optimal) != (*a.Peak == a.Bound) {
					t.Errorf("%s: %s with peak %d and bound %d", goal, a.Status, *a.Peak, a.Bound)
				}
				if strings.Contains(goal, "--minimize") && !slices.Contains(allocate.Rules(), allocate.Rule(method)) &&
					*a.Peak != 12 {
					t.Errorf("%s: peak %d", goal, *a.Peak)
				}
				if (a.Capacity == nil) != (goal == "--minimize") {
					t.Errorf("%s: capacity %v", goal, a.Capacity)
				}
				p, offsets := readBuffers(t, "placed.csv")
				if err := allocate.Check(p, *a.Peak, offsets); err != nil {
					t.Error(err)
				}
				if again := allocated(t, "placed.csv", "--capacity", fmt.Sprint(*a.Peak), "--method", method); again.Peak == nil ||
					*again.Peak != *a.Peak {
					t.Errorf("with fixed offsets: %+v", again)
				}
			}
			if a := allocated(t, "buffers.csv", "--capacity=11", "--method", method, "-o",
				"none.csv"); a.Status != milp.Infeasible || a.Peak != nil || a.Bound <= 11 || a.Out != nil ||
				a.Overfull == nil || a.Overfull.MissingBytes != 1 || len(a.Overfull.Buffers) == 0 {
				t.Errorf("within 11: %+v", a)
			}
			if a := allocated(t, "clash.csv", "--minimize", "--method", method); a.Status != milp.Infeasible || a.Peak != nil {
				t.Errorf("fixed offsets that overlap: %+v", a)
			}
			if _, err := os.Stat("none.csv"); err == nil {
				t.Error("a placement is written where none was found")
			}
		})
	}
	if text := answer(t, "solve", "allocate", "buffers.csv", "--capacity", "11"); !strings.Contains(text,
		"in use are 1 byte too many: b") {
		t.Errorf("no reason: %s", text)
	}
	text := answer(t, "solve", "allocate", "buffers.csv", "--capacity", "12")
	for _, want := range []string{"buffers.csv, 5 buffers", "status        optimal", "peak          12",
		"bound         12"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// Rules are never better than the exact method, and nothing is below the bound.
func TestAllocateMethodsCompared(t *testing.T) {
	workspace(t)
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 40 {
		p := &allocate.Problem{}
		for i := range 9 {
			lo := r.Int64N(12)
			p.Buffers = append(p.Buffers, allocate.Buffer{ID: fmt.Sprint(i), Size: 1 + r.Int64N(9), Alignment: 1 + r.Int64N(4),
				Lifetime: allocate.Interval{Lower: lo, Upper: lo + 1 + r.Int64N(6)}})
		}
		if _, err := writePlacement("p.csv", p, nil); err != nil {
			t.Fatal(err)
		}
		best := allocated(t, "p.csv", "--minimize")
		if best.Status != milp.Optimal || best.Bound != *best.Peak || best.Bound < p.Bound() {
			t.Fatalf("%d: %+v", n, best)
		}
		for _, method := range plain(methodWords(allocate.Methods())) {
			a := allocated(t, "p.csv", "--minimize", "--method", method)
			if *a.Peak < *best.Peak || a.Bound > *best.Peak {
				t.Errorf("%d: %+v, but the least peak is %d", n, a, *best.Peak)
			}
		}
	}
}

func TestAllocateSpill(t *testing.T) {
	workspace(t)
	type answers struct {
		File     string
		Buffers  int
		Capacity int64
		Spills   []struct {
			Method, Status, Stop string
			Moved                *int64 `json:"moved_bytes"`
			Bound                int64  `json:"bound_bytes"`
			Spilled              []string
			Placement            string
			Seconds              float64
		}
		Out *string
	}
	spilled := func(args ...string) answers {
		var a answers
		if err := json.Unmarshal([]byte(answer(t, append([]string{"solve", "allocate", "--json", "--spill"}, args...)...)),
			&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := spilled("buffers.csv", "--capacity", "8", "-o", "kept.csv")
	if len(a.Spills) != 3 || a.Capacity != 8 || a.Out == nil {
		t.Fatalf("%+v", a)
	}
	for _, s := range a.Spills {
		if s.Bound != 8 || s.Moved == nil || *s.Moved < 8 || (s.Status == "optimal") != (*s.Moved == 8) ||
			int64(8*len(s.Spilled)) != *s.Moved {
			t.Errorf("%+v", s)
		}
	}
	if best := a.Spills[2]; best.Status != "optimal" || best.Placement != "feasible" {
		t.Errorf("%+v", best)
	}
	kept, offsets := readBuffers(t, "kept.csv")
	if err := allocate.Check(kept, 8, offsets); err != nil || len(kept.Buffers) != 5-len(a.Spills[2].Spilled) {
		t.Errorf("%d buffers are kept, %v", len(kept.Buffers), err)
	}
	if a := spilled("buffers.csv", "--capacity", "12"); *a.Spills[0].Moved != 0 || a.Spills[0].Status != "optimal" ||
		a.Spills[0].Spilled == nil {
		t.Errorf("where all fits: %+v", a)
	}
	t.Run("ilp", func(t *testing.T) {
		if _, err := highs.New(); err != nil {
			t.Skip(err)
		}
		if b := spilled("buffers.csv", "--capacity", "8", "--method", "ilp"); len(b.Spills) != 1 || *b.Spills[0].Moved != 8 ||
			b.Spills[0].Status != "optimal" {
			t.Errorf("%+v", b)
		}
	})
}

// An interruption prints what is known before it ends the program.
func TestAllocateInterrupted(t *testing.T) {
	workspace(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := callContext(t, ctx, "solve", "allocate", "buffers.csv", "--minimize", "--json")
	var a placement
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil || r.status != exitInterrupted ||
		a.Peak == nil || a.Bound != 12 {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestAllocateShared(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/minimalloc/[CEF].1048576.csv")
	if err != nil || len(files) == 0 {
		t.Skip("skipped: ../shared/data is not there")
	}
	for _, f := range files {
		if a := allocated(t, f, "--capacity", "1048576"); a.Peak == nil || *a.Peak > 1048576 {
			t.Errorf("%+v", a)
		}
	}
}
