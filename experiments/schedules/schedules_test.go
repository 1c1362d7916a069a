package schedules

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/certificate"
)

const frozenFile = "../../bench/schedules.csv"

func frozen(t *testing.T) []Row {
	t.Helper()
	data, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Read(frozenFile, data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Write(rows), data) {
		t.Error("written again, the table is another file")
	}
	return rows
}

// Cells computed again are as they are frozen or faster, and their certificates hold by both checkers; with
// DSASCHED_FULL more of them, on all machines.
func TestFrozenCells(t *testing.T) {
	rows, cells := frozen(t), 3
	full := os.Getenv("DSASCHED_FULL") != ""
	if full {
		cells = 8
	}
	var files []string
	for _, k := range rand.New(rand.NewPCG(58, 0)).Perm(len(rows)) {
		r := rows[k]
		cheap := r.Machine == "goya" && r.Kind == "CNN" && r.Network != "nasnet-mobile"
		if cells == 0 || r.Exact == 0 || !full && !cheap {
			continue
		}
		cells--
		c, err := Measure(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Row // whose default and exact decisions may be faster than those of the build that wrote the table
		got.Tiled, got.Exact, got.By = r.Tiled, r.Exact, r.By
		if got != r || c.Tiled > r.Tiled || c.Exact > r.Exact {
			t.Errorf("computed again, %+v is %+v", r, c.Row)
		}
		proofs, err := c.Certificates(t.Context())
		if err != nil || len(proofs) == 0 {
			t.Fatal(len(proofs), err)
		}
		for _, f := range proofs {
			path := filepath.Join(t.TempDir(), f.Name)
			if err := harness.WriteFile(path, f.Data); err != nil {
				t.Fatal(err)
			}
			read, err := certificate.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			v, err := read.Check(t.Context(), path, "", "")
			if err != nil {
				t.Fatal(err)
			}
			ps := map[bool]int64{true: r.Greedy, false: c.Exact}[strings.Contains(f.Name, ".greedy.")]
			if int64(v.LatencySeconds*1e12+0.5) != ps || v.CertifiedBoundSeconds*1e12 < float64(r.Bound) {
				t.Errorf("%s proves %g s, at least %g s, the row has %d and %d ps", f.Name, v.LatencySeconds,
					v.CertifiedBoundSeconds, ps, r.Bound)
			}
			// The second checker does not know running sums and group normalisation.
			if !strings.HasPrefix(r.Network, "mamba") && !strings.HasPrefix(r.Network, "sd-unet") {
				files = append(files, path)
			}
		}
	}
	if cells > 0 {
		t.Errorf("%d cells are missing", cells)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not on the PATH")
	}
	files = append([]string{"../../scripts/check_certificate.py"}, files...)
	if out, err := exec.Command(python, files...).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// The document has what the table says.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/study.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range Sentences(frozen(t)) {
		if !strings.Contains(string(data), "\n- "+sentence+"\n") {
			t.Errorf("docs/study.md lacks %s", sentence)
		}
	}
}

// A row with one field changed is refused, whichever it is, but for names.
func TestMutatedRow(t *testing.T) {
	rows := frozen(t)
	k := slices.IndexFunc(rows, func(r Row) bool { return strings.HasPrefix(r.Verdict(), "exact") })
	if k < 0 {
		t.Fatal("no cell has a gain")
	}
	data := Write(rows[k : k+1])
	for i, column := range columns[4:14] {
		lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		old := lines[1][4+i]
		for _, change := range []float64{0.5, 1.5, -1} {
			lines[1][4+i] = "open"
			if n, err := strconv.ParseFloat(old, 64); err == nil {
				lines[1][4+i] = strconv.FormatFloat(n*change, 'f', 0, 64)
			}
			var b bytes.Buffer
			if err := csv.NewWriter(&b).WriteAll(lines); err != nil {
				t.Fatal(err)
			}
			if _, err := Read("mutant", b.Bytes()); err == nil && column != "exact_by" && column != "any_division_ps" {
				t.Errorf("%s %s for %s is taken", column, lines[1][4+i], old)
			}
		}
	}
}

// Sentences and figures follow from rows, whatever is missing in them.
func TestVerdicts(t *testing.T) {
	for _, x := range []struct {
		r    Row
		want string
	}{
		{Row{Greedy: 1050, Exact: 1000, Tiled: 1000, Bound: 1000}, "within 5.0 %"},
		{Row{Greedy: 1051, Exact: 1041, Tiled: 1000, Bound: 1000}, "within 5.1 %"},
		{Row{Greedy: 1051, Exact: 1040, Tiled: 1000, Bound: 1000}, "exact gains 1.1 %"},
		{Row{Greedy: 1101, Exact: 1100, Tiled: 1000, Bound: 1000}, "tiled gains 10.1 %"},
		{Row{Greedy: 1101, Exact: 1100, Tiled: 1095, Bound: 1000}, "open"},
		{Row{Greedy: 1101, Note: "none"}, "open"},
		{Row{Note: "none"}, "not posed"},
	} {
		if got := x.r.Verdict(); got != x.want || x.r.check() != nil {
			t.Errorf("%+v: %q, %v, expected %q", x.r, got, x.r.check(), x.want)
		}
	}
	rows := []Row{{Network: "a", Kind: "CNN", Machine: "goya", Greedy: 30, Exact: 20, Tiled: 10, Bound: 10, By: "exact-all"},
		{Network: "a", Kind: "CNN", Machine: "a100", Note: "none"}, {Network: "b", Kind: "audio", Machine: "goya", Greedy: 8,
			Exact: 8, Tiled: 8, Bound: 8}, {Network: "b", Kind: "audio", Machine: "a100", Greedy: 8, Note: "none"}}
	rep, err := Report(rows)
	if err != nil || len(rep.Files) < 3 {
		t.Fatal(err)
	}
	for _, want := range []string{"2 networks on 2 machines, 4 cells", "in 1 and within 10 % in 0 more", "In 1 of the others",
		"1.22 in the geometric mean of the 2 cells with an exact schedule, and at most 1.50 (a on goya)", "1 are open, and 1 have"} {
		if !strings.Contains(rep.Text, want) {
			t.Errorf("the report lacks %q:\n%s", want, rep.Text)
		}
	}
	if err := (&Row{Greedy: 1, Exact: 2, Tiled: 3, Bound: 1}).check(); err == nil {
		t.Error(errors.New("an exact schedule that is slower than greedy's is taken"))
	}
}

// Exact decisions still gain on the shrunk network, and its row is consistent.
func TestSmallest(t *testing.T) {
	p, err := Smallest(t.Context(), Row{Network: "toy-fig5", Machine: "a100"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Operators) == 0 || len(p.Operators) > 22 || float64(p.Greedy) <= much*float64(p.Exact) || p.check() != nil {
		t.Errorf("%+v", p)
	}
	if p, err := Smallest(t.Context(), Row{Network: "dlrm-kaggle", Machine: "goya"}); err == nil ||
		!strings.Contains(err.Error(), "gain less") {
		t.Errorf("%+v, %v", p, err)
	}
}
