package binding

import (
	"context"
	"strings"
	"testing"
)

const twoNodes = `{"name":"two","nodes":[{"name":"a","labels":["1","2"],"cost":[3,5]},{"name":"b","labels":["1"],"cost":[7]}],
"edges":[{"from":0,"to":1,"cost":[[9],[1]]}],"given":[0,0]}`

func TestRead(t *testing.T) {
	p, given, err := Read("two.json", []byte(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solve(context.Background(), p, "search", Options{Start: given})
	if err != nil || p.Seconds(given) != 19 || r.Objective != 13 || r.Bound != 13 {
		t.Errorf("given costs %g; %+v, %v", p.Seconds(given), r, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`[3,5]`, `[3]`, "two.json: nodes[0].labels: found 2, expected 1, one for each cost"},
		{`[3,5]`, `[3,-5]`, "two.json: nodes[0].cost[1]: found -5, expected a whole number from 0 to"},
		{`[3,5]`, `[3,0.5]`, "two.json: nodes[0].cost[1]: found "},
		{`[[9],[1]]`, `[[9]]`, "two.json: edges[0].cost: found 1, expected 2, one for each label of node 0"},
		{`[[9],[1]]`, `[[9],[-1]]`, "two.json: edges[0].cost[1][0]: found -1"},
		{`"to":1`, `"to":2`, "two.json: edges[0].to: found 2, expected a node from 0 to 1"},
		{`"given":[0,0]`, `"given":[0,1]`, "two.json: given[1]: found 1, expected a label of node"},
		{`"given":[0,0]`, `"taken":[0,0]`, "two.json: taken: found "},
	} {
		if _, _, err := Read("two.json", []byte(strings.Replace(twoNodes, c.from, c.to, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(twoNodes))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, given, err := Read("f", data); err == nil && p.Seconds(given) < p.Floor() {
			t.Errorf("given costs %g, below the floor %g", p.Seconds(given), p.Floor())
		}
	})
}
