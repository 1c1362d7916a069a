package cli

import (
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/systems/mofang/partition"
)

// Both programs agree on divisions that are not the best ones, on their loads and on which break a rule.
func TestBenchmarkDivisions(t *testing.T) {
	dir := benchCopy(t)
	files, err := filepath.Glob(filepath.Join(dir, "partition", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewSource(5))
	rows, wrong := bestKnown{}, 0
	for _, file := range files {
		p, err := partition.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		found, err := filepath.Glob(filepath.Join(dir, "answers", "partition", name+".*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		for i := range 40 {
			d, err := partition.LoadDivision(found[0], p)
			if err != nil {
				t.Fatal(err)
			}
			sets := slices.Concat(d.Accelerators, d.CPUs)
			color := map[int]int{}
			for _, n := range p.Nodes {
				color[n.ID] = n.Color
			}
			for range 1 + rng.Intn(2) { // layers, with those of their colour, go to another device
				moved := p.Nodes[rng.Intn(len(p.Nodes))]
				to, back := rng.Intn(len(sets)), []int{}
				for k := range sets {
					sets[k] = slices.DeleteFunc(slices.Clone(sets[k]), func(id int) bool {
						is := id == moved.ID || moved.Color != partition.NoColor && color[id] == moved.Color
						if is {
							back = append(back, id)
						}
						return is
					})
				}
				sets[to] = append(sets[to], back...)
			}
			d = &partition.Division{Accelerators: sets[:p.Accelerators], CPUs: sets[p.Accelerators:]}
			r := &bestRow{kind: "partition", instance: name, method: "right"}
			if p.Check(d) == nil {
				r.best, err = p.MaxLoad(d)
			} else {
				r.method, r.best = "wrong", float64(i) // no load is as small
				wrong++
			}
			answer, fail := json.Marshal(map[string]any{"devices": sets})
			if err := errors.Join(err, fail, os.WriteFile(r.answer(dir, "json"), answer, 0o666)); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "best.csv"), rows.text(), 0o666); err != nil {
		t.Fatal(err)
	}
	out, _ := benchPython(t, benchDir+"/check.py", dir, "partition")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(rows) || wrong < 100 || wrong > len(rows)-100 {
		t.Fatalf("%d lines of %d divisions, %d of them wrong", len(lines), len(rows), wrong)
	}
	for i, line := range lines {
		if ok := strings.HasPrefix(line, "ok "); ok != (rows[i].method == "right") || !ok && strings.Contains(line, "costs") {
			t.Errorf("%s division: %s", rows[i].method, line)
		}
	}
}
