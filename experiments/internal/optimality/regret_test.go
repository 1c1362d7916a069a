package optimality

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/scheduler/search"
)

// The tables count losses by decision and machine, keep what does not fit.
func TestRegretReport(t *testing.T) {
	x := regret{machines: []string{"wormhole-n150", "tpu-v4i"}, networks: []string{"one", "two", "three"}}
	var cells []regretCell
	for i := range 6 {
		c := regretCell{Regretted: search.Regretted{Recipe: "tiled-llb", GreedySeconds: 2, BestSeconds: 1}, Bound: 0.5}
		for _, name := range search.RegretDecisions() {
			r := search.Regret{Decision: name, AllBest: search.Choice{GreedySeconds: 1, BestSeconds: 1},
				Greedy: search.Choice{GreedySeconds: 2, BestSeconds: 2}}
			if name == "bind" { // 0, 8, 16 % on the first machine, 4, 12, no fit on the second
				if r.Greedy.GreedySeconds = 2 * (1 + 0.04*float64(i)); i == 5 {
					r.Greedy.GreedySeconds = 0
				}
			}
			c.Regrets = append(c.Regrets, r)
		}
		cells = append(cells, c)
	}
	rep, err := x.report(cells)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range rep.Files {
		files[f.Name] = string(f.Data)
	}
	for file, want := range map[string]string{
		"table-greedy.csv": `bind,"8.0, 16.0, 2/3","12.0, no fit, 2/3","10.0, no fit, 4/6",0/6`,
		"table-best.csv":   `bind,"0.0, 0.0, 0/3","0.0, 0.0, 0/3","0.0, 0.0, 0/6",0/6`,
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s has no line %q:\n%s", file, want, files[file])
		}
	}
	full := fullRegret() // has to fit a page
	full.networks = []string{"one"}
	if _, err := full.report(cells[:len(full.machines)]); err != nil {
		t.Error(err)
	}
	if files["regret.png"] == "" {
		t.Error("there is no figure")
	}
}
