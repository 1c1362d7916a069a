package scheduler

import "testing"

// What is set in a copy of a recipe leaves the recipe and other copies as they are.
func TestSetLeavesCopies(t *testing.T) {
	r := Recipe{Picks: append(make([]Pick, 0, 4), Pick{"split", "greedy"})}
	other, added, more := r, r, r
	other.set(Pick{"split", "none"})
	added.set(Pick{"order", "bfs"})
	more.set(Pick{"order", "dfs"})
	if r.Pick("split") != "greedy" || other.Pick("split") != "none" {
		t.Errorf("split is %q and in the copy %q, expected greedy and none", r.Pick("split"), other.Pick("split"))
	}
	if added.Pick("order") != "bfs" || more.Pick("order") != "dfs" {
		t.Errorf("order is %q in one copy and %q in another, expected bfs and dfs", added.Pick("order"), more.Pick("order"))
	}
}

// Without package recipes nothing stands in for exact decisions, which is an error.
func TestExactDecisionsNeedATable(t *testing.T) {
	known := table
	defer SetTable(known)
	SetTable(Table{Strategies: known.Strategies})
	r := Parse("mine", "", "group=alg2 split=search")
	err := r.Usable(Options{})
	if want := "variant mine: greedy rules stand in for its exact and searched decisions: variant \"\": no variants are " +
		"known, expected package recipes in the program"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
