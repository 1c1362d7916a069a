package pipeline

import (
	"slices"
	"testing"

	"github.com/dsasched/dsasched/internal/schedulefile"
	"github.com/dsasched/dsasched/model/schedule"
)

// A file has the values of settings of the table that the recipe does not say, so that a new row changes no file; and
// all values of a caller's own.
func TestSettingsInFiles(t *testing.T) {
	x := Setting[int64]{Name: "x", Choices: []Choice[int64]{{Name: "one", Value: 1}, {Name: "two", Value: 2}}}
	row := x.Stage()
	recipe, err := Lookup(GreedyRecipe)
	if err != nil {
		t.Fatal(err)
	}
	table := recipe
	table.stages = append(Stages(), row)
	for _, c := range []struct {
		recipe Recipe
		pick   string
		value  int64
		want   string // "": not in the file
	}{
		{table, "one", 1, ""}, {table, "one", 2, "2"}, {table, "two", 1, "1"}, {table, "two", 2, ""},
		{recipe.WithStage("", row), "one", 1, "1"},
	} {
		r, s := &Result{Recipe: Picking(c.recipe, Pick{"x", c.pick})}, &schedule.Schedule{}
		r.keep(s, map[string]Decision{"x": plain[int64]{&x, c.value}, "order": unread{"order", "7"}})
		want := []schedulefile.Decision{{Stage: "order", Value: "7"}}
		if c.want != "" {
			want = append(want, schedulefile.Decision{Stage: "x", Value: c.want})
		}
		if got := r.written(s); !slices.Equal(got, want) {
			t.Errorf("picked %s, decided %d: the file has %v, expected %v", c.pick, c.value, got, want)
		}
	}
	if y, err := row.read([]byte("2")); err != nil || y.(plain[int64]).value != 2 {
		t.Errorf("2 is read as %v (%v)", y, err)
	}
	if _, err := row.read([]byte(`"a"`)); err == nil || err.Error() != `value is "a", expected one such as 1` {
		t.Errorf(`"a": %v`, err)
	}
}
