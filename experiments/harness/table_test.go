package harness

import (
	"bytes"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

// awkward has all that must be escaped somewhere.
var awkward = Table{
	Title: "A_b & 50 % of <c> | #1",
	Label: "tab:awkward",
	Columns: []Column{
		{Name: "Name", Text: true}, {Group: "Time\n(µs)", Name: "first"}, {Group: "Time\n(µs)", Name: "last"}, {Name: "Bytes\nper s"},
	},
	Rows: [][]string{
		{`back\slash_{x}`, "1", "2", "3"},
		{"5 × 3 – a|b", "10.25", "", "~$^"},
	},
	Notes: []string{"One note: 100 % of *all*.", "Another_one."},
}

func TestTable(t *testing.T) {
	var text bytes.Buffer
	if err := awkward.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	harnesstest.Golden(t, "table/table.txt", text.Bytes())
	harnesstest.Golden(t, "table/table.md", []byte(awkward.Markdown()))
	harnesstest.Golden(t, "table/table.tex", []byte(awkward.Latex()))
	harnesstest.Golden(t, "table/table.csv", CSVBytes([][]string{{"a", "b"}, {"x,y", "a \"quoted\" word"}, {"", "two\nlines"}}))
}

func TestTableDoesNotDependOnTheLocale(t *testing.T) {
	for _, locale := range []string{"C", "ja_JP.UTF-8", "en_US.UTF-8"} {
		t.Setenv("LC_ALL", locale)
		t.Setenv("LANG", locale)
		var text bytes.Buffer
		if err := awkward.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		harnesstest.Golden(t, "table/table.txt", text.Bytes())
	}
}

func TestSignificant(t *testing.T) {
	for _, test := range []struct {
		x    float64
		want string
	}{{0, "0"}, {8725.94, "8726"}, {100, "100"}, {99.96, "100.0"}, {12.345, "12.3"}, {1.005, "1.00"}, {0.5866, "0.587"}, {-3.14159, "-3.14"}, {1e6, "1000000"}} {
		if got := Significant(test.x); got != test.want {
			t.Errorf("significant(%g) is %s, want %s", test.x, got, test.want)
		}
	}
}

func TestExactHidesRounding(t *testing.T) {
	// The tenth digit is where processors differ.
	for _, x := range []float64{0.1 + 0.2, 1.0 / 3, 1e-12 / 3, 123456789012} {
		y := x * (1 + 1e-15)
		if Exact(x) != Exact(y) {
			t.Errorf("%v and %v are written as %s and %s", x, y, Exact(x), Exact(y))
		}
	}
	if Exact(0.1+0.2) != "0.3" {
		t.Errorf("0.1+0.2 is written as %s", Exact(0.1+0.2))
	}
}
