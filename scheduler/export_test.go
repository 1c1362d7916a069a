package scheduler

import "slices"

// The table that package recipes hands in, for tests that stand inside: those outside import that package.

const (
	GreedyRecipe = "cross-layer"
	Default      = "tiled"
)

func Lookup(name string) (Recipe, error) { return lookup(name) }

// All are the recipes that need no trials.
func All() []Recipe {
	return slices.DeleteFunc(slices.Clone(table.Recipes),
		func(r Recipe) bool { return r.Evaluations > 0 || r.Pick("nest") == "ansor" })
}

func Tiled() []Recipe {
	return slices.DeleteFunc(slices.Clone(table.Recipes), func(r Recipe) bool { return !r.Ours })
}
