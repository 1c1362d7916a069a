package cli

import (
	"os"
	"strings"
	"testing"
)

// A sweep that goes on from the points of a folder prints and writes what one that begins does.
func TestSweepCells(t *testing.T) {
	t.Chdir(t.TempDir())
	names := []string{"a.csv", "a.svg"}
	sweep := append(strings.Fields("sweep toy-fig5 --set batch=1,2,3,4 --set variant=tvm,cross-layer --quiet"), "--csv=a.csv",
		"-o=a.svg")
	var want []string
	for _, more := range []string{"", "--cells=all", "--cells=all"} {
		got := []string{answer(t, append(sweep, strings.Fields(more)...)...)}
		for _, name := range names {
			got = append(got, file(t, name))
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = got
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: answer and files %q: part %d is\n%s\nwant\n%s", more, names, i, got[i], want[i])
			}
		}
	}
	if cells, err := os.ReadDir("all/sweep/cells"); err != nil || len(cells) != 8 {
		t.Errorf("%d points are kept, expected 8: %v", len(cells), err)
	}
}
