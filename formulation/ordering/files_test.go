package ordering

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// shared is where the problem files stand beside the project; they are no part of
// it.
const shared = "../../../shared/data/order"

// optima are the published optima of the files (traffic), each proven by two
// solvers elsewhere.
var optima = []struct {
	file    string
	traffic float64
}{
	{"chain-8-4-2-1.json", 24},
	{"chain-16-8-4-2-1.json", 56},
	{"chain-16-16-8-8-4-2.json", 12},
	{"chain-32-16-16-8-4.json", 24},
	{"chain-56-28-14-7.json", 168},
}

func load(t testing.TB, name string) *Problem {
	t.Helper()
	path := filepath.Join(shared, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is not on this machine", path)
	}
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSearchFiles(t *testing.T) {
	for _, c := range optima {
		t.Run(c.file, func(t *testing.T) {
			p := load(t, c.file)
			res := mustSearch(t, p, Traffic, Options{})
			if res.Status != milp.Optimal || res.Cost != c.traffic {
				t.Errorf("%s, cost %v, bound %v, want %v", res.Status, res.Cost, res.Bound, c.traffic)
			}
			t.Logf("traffic %v %s %.4f s", res.Cost, res.Status, res.Seconds)
			res = mustSearch(t, p, Peak, Options{})
			t.Logf("peak %v %s %.4f s", res.Cost, res.Status, res.Seconds)
		})
	}
}
