package split

import (
	"context"
	"strings"
	"testing"
)

const threeAtoms = `{"name":"three","reads":[[],[0],[1]],"groups":[{"atoms":[0],"cost":5},{"atoms":[1],"cost":5},{"atoms":[2],"cost":5},
{"atoms":[0,1],"cost":8,"split":"2 along 0"},{"atoms":[1,2],"cost":6},{"atoms":[0,2],"cost":1}],"given":[0,1,2]}`

func TestRead(t *testing.T) {
	p, given, err := Read("three.json", []byte(threeAtoms))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solve(context.Background(), p, "search", Options{Start: given})
	if err != nil || p.Seconds(given) != 15 || r.Objective != 11 || r.Bound != 11 {
		t.Errorf("given costs %g; %+v, %v", p.Seconds(given), r, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"cost":8`, `"cost":-8`, "three.json: groups[3].cost: found -8, expected a whole number from 0 to"},
		{`"cost":8`, `"cost":8.5`, "three.json: groups[3].cost: found "},
		{`[[],[0],[1]]`, `[[],[0],[2]]`, "three.json: reads[2]: found [2], expected "},
		{`"atoms":[2]`, `"atoms":[1]`, "three.json: groups: found none of atom 2 alone, expected "},
		{`"given":[0,1,2]`, `"given":[0,2,1]`, "three.json: given[1]: found group 2 before atom 1, expected it behind"},
		{`"given":[0,1,2]`, `"given":[9]`, "three.json: given[0]: found 9, expected a group, 0 to 5"},
		{`"reads"`, `"writes"`, "three.json: writes: found "},
	} {
		if _, _, err := Read("three.json", []byte(strings.Replace(threeAtoms, c.from, c.to, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(threeAtoms))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, given, err := Read("f", data); err == nil {
			if err := p.CheckChoice(given); err != nil {
				t.Error(err)
			}
		}
	})
}
