package schedule_test

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

func image() *model.Tensor {
	return &model.Tensor{Name: "x", Shape: model.Shape{2, 64, 8, 8}, Layout: []int{0, 2, 3, 1}}
}

// Of a result's rows a core has those of its slice, and one beyond those that have any has none.
func TestRowTile(t *testing.T) {
	x := image()
	whole := []schedule.Instance{{Regions: schedule.Regions{0: model.Whole(x.Shape)}}}
	s := &schedule.Schedule{Graph: &model.Graph{Tensors: []*model.Tensor{x}},
		Instances: &schedule.InstanceGraph{Instances: whole}}
	st := &schedule.Step{Binding: schedule.Binding{2, 1, 4, 1}, Nest: &schedule.Nest{Tiles: 4, Columns: []int64{64}},
		CoreOutput: model.Region{{Hi: 1}, {Hi: 64}, {Hi: 2}, {Hi: 8}}}
	for core, want := range map[int64]model.Region{0: {{Hi: 1}, {Hi: 32}, {Lo: 1, Hi: 2}, {Hi: 4}}, 8: nil} {
		if r := s.RowTile(st, core, 2, 4, model.Interval{Hi: 32}); !r.Equal(want) {
			t.Errorf("core %d: found %v, expected %v", core, r, want)
		}
	}
}

const nestText = `cores n:2 h:4
for tile in 4 of 2
  bring in 1
  for columns in 64 64
    for reduction in 288 288
      weights stay
      for piece in 2
        multiply
        vector
    store
`

func TestParseNest(t *testing.T) {
	n, err := schedule.ParseNest(nestText, image())
	if err != nil {
		t.Fatal(err)
	}
	if n.Text(image()) != nestText || !n.Cores.Equal(schedule.Binding{2, 1, 4, 1}) || n.Tiles != 4 || n.Depth != 2 ||
		!n.Stay || n.Vector != schedule.AtPiece || n.Store != schedule.AtColumns {
		t.Errorf("%+v", n)
	}
	staged := strings.NewReplacer("  bring in 1", "  stage in 1\n  bring in 2", "weights stay",
		"weights by 3 stay").Replace(nestText)
	if n, err = schedule.ParseNest(staged, image()); err != nil || n.Text(image()) != staged || n.Stage != 1 || n.Once ||
		n.Group != 3 || !n.Stay {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err = schedule.ParseNest("rfactor 4\n"+staged, image()); err == nil ||
		!strings.Contains(err.Error(), `expected "cores n:2 h:4"`) {
		t.Errorf("%+v, %v", n, err)
	}
	shared := strings.Replace(staged, "for tile", "rfactor 4\nfor tile", 1)
	if n, err = schedule.ParseNest(shared, image()); err != nil || n.Text(image()) != shared || n.Rfactor != 4 {
		t.Errorf("%+v, %v", n, err)
	}
	once := strings.NewReplacer("for tile", "stage in 8\nfor tile", "weights stay", "weights by 2").Replace(nestText)
	if n, err = schedule.ParseNest(once, image()); err != nil || n.Text(image()) != once || n.Stage != 8 || !n.Once ||
		n.Group != 2 || n.Stay {
		t.Errorf("%+v, %v", n, err)
	}
	// Whatever the width of indents, and with loops in another order.
	moved :=
		"for columns in 64 64\n\tfor tile in 4 of 2\n\t     bring in 1\n\t     for reduction in 288 288\n\t\t\t\t\t\t\tweights\n\n" +
			"\t\t\t\t\t\t\tfor piece in 2\n\t\t\t\t\t\t\t\tmultiply\n\t     vector\n\t     store\n"
	if n, err = schedule.ParseNest(moved, image()); err != nil || !n.ColumnsFirst ||
		n.Vector != schedule.AtColumns || n.Cores != nil {
		t.Errorf("%+v, %v", n, err)
	}
}

const blockedText = `cores n:2 h:4
for columns in 32 64x5 16
  for tile in 4 of 3
    sums of 2
    for reduction in 64x9
      bring once by 3
      weights by 9
      multiply
    vector
    store
`

func TestParseBlockedNest(t *testing.T) {
	n, err := schedule.ParseNest(blockedText, image())
	if err != nil {
		t.Fatal(err)
	}
	if n.Text(image()) != blockedText || !n.Blocked() || !n.ColumnsFirst || n.Tiles != 4 || n.Depth != 3 || n.Sums != 2 ||
		!n.Once || n.Stage != 3 ||
		n.Group != 9 || n.Stay || len(n.Columns) != 7 || len(n.Reduction) != 9 || n.Loads != 1 ||
		n.Vector != schedule.AtColumns {
		t.Errorf("%+v", n)
	}
	for _, c := range []struct{ old, new, want string }{
		{"bring once by 3", "bring", ""},
		{"bring once by 3", "bring by 3", ""},
		{"bring once by 3", "bring once by 3 keep 2", ""},
		{"bring once by 3", "bring once by 3 keep x", `found "x", expected a number`},
		{"weights by 9", "weights stay", ""},
		{"      weights by 9", "      columns of 5\n      weights", ""},
		{"      weights by 9", "      ring of 4096\n      weights by 9", ""},
		{"      weights by 9", "      weights by 9\n      ring of 4096",
			`found "weights by 9" in 3 loops, expected "ring of 4096"`},
		{"      weights by 9", "      ring of 0\n      weights by 9", `found "0", expected a number`},
		{"for columns in 32 64x5 16\n  for tile in 4 of 3", "for tile in 4 of 3\n  for columns in 32 64x5 16", ""},
		{"bring once by 3", "bring once", ""},
		{"    vector\n", "", `expected "vector" in 2 loops`},
		{"64x9", "64x0", `found "0", expected a number`},
		{"64x9", "64x99999", "more than 65536 tiles"},
		{"    sums of 2\n", "", "found loops over"},
	} {
		text := strings.Replace(blockedText, c.old, c.new, 1)
		n, err := schedule.ParseNest(text, image())
		if c.want == "" && (err != nil || n.Text(image()) != text) {
			t.Errorf("%q in the place of %q: %+v, %v", c.new, c.old, n, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q in the place of %q: %+v, %v; want %q", c.new, c.old, n, err, c.want)
		}
	}
}

func TestParseNestRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"cores n:2 h:4", "cores k:2", `line 1: found dimension "k", expected one of n, h, w, c`},
		{"cores n:2 h:4", "cores n:0", `line 1: found "0", expected a number from 1`},
		{"tile in 4 of 2", "tile in 4", `line 2: found "for tile in 4" in 0 loops, expected "for tile in 4 of N"`},
		{"    store", "      store", `line 10: found "store" in 3 loops, expected "store" in 2 loops`},
		{"    store", "", `found the end, expected`},
		{"        vector\n", "", `expected "vector" in 4 loops`},
		{"multiply", "multiply twice", `line 8: found "multiply twice" in 4 loops, expected "multiply" in 4 loops`},
		{"bring in 1", "bring in many", `line 3: found "many"`},
		{"for reduction in 288 288", "for sum in 288", `line 5: found "sum", expected cores, rfactor`},
		{"weights stay", "weight stays", `line 6: found "weight"`},
		{"weights stay", "weights by 0", `line 6: found "0", expected a number from 1`},
		{"weights stay", "weights for 2", `line 6: found "weights for 2" in 3 loops, expected "weights" in 3 loops`},
		{"    for reduction", "    stage in 1\n    for reduction",
			`line 3: found "bring in 1" in 1 loops, expected "stage in 1" in 1 loops`},
		{nestText, "", "found loops over nothing"},
		{nestText, strings.Repeat("x", 1<<17), "at most 65536"},
	} {
		if n, err := schedule.ParseNest(strings.Replace(nestText, c.old, c.new, 1), image()); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in the place of %q: %+v, %v; want %q", c.new, c.old, n, err, c.want)
		}
	}
}

// What is read is written and read again as the same.
func FuzzParseNest(f *testing.F) {
	f.Add(blockedText)
	f.Add(nestText)
	f.Add(
		"stage in 2\nfor tile in 2 of 2\n stage in 1\n bring in 2\n for columns in 4\n  for reduction in 3 3\n   weights by 2 stay\n   for piece in 1\n    multiply\n  vector\n  store\n")
	f.Add("for tile in 1 of 2\n bring in 1\n for piece in 1\n  vector\n store\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := schedule.ParseNest(text, image())
		if err != nil {
			return
		}
		again, err := schedule.ParseNest(n.Text(image()), image())
		if err != nil || again.Text(image()) != n.Text(image()) {
			t.Errorf("%q is read as\n%sand that: %v", text, n.Text(image()), err)
		}
	})
}
