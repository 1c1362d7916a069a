package harness

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

// awkward has all that must be escaped somewhere.
var awkward = Table{
	Title: "A_b & 50 % of <c> | #1",
	Name:  "awkward",
	Columns: []Column{
		{Name: "Name", Text: true}, {Group: "Time\n(µs)", Name: "first"}, {Group: "Time\n(µs)", Name: "last"},
		{Name: "Bytes\nper s"},
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
	tex := awkward.LaTeX("a-label")
	harnesstest.Golden(t, "table/table.tex", []byte(tex))
	harnesstest.LaTeX(t, "awkward", []byte(tex))
	harnesstest.Golden(t, "table/table.csv", awkward.CSV())
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
	}{{0, "0"}, {8725.94, "8726"}, {100, "100"}, {99.96, "100.0"}, {12.345, "12.3"}, {1.005, "1.00"}, {0.5866, "0.587"},
		{-3.14159, "-3.14"}, {1e6, "1000000"}} {
		if got := Significant(test.x); got != test.want {
			t.Errorf("significant(%g) is %s, want %s", test.x, got, test.want)
		}
	}
}

func TestExactHidesRounding(t *testing.T) {
	// The tenth digit is where processors differ.
	for _, x := range []float64{0.1 + 0.2, 1.0 / 3, 1e-12 / 3, 123456789012} {
		y := x * (1 + 1e-15)
		if exact(x) != exact(y) {
			t.Errorf("%v and %v are written as %s and %s", x, y, exact(x), exact(y))
		}
	}
	if exact(0.1+0.2) != "0.3" {
		t.Errorf("0.1+0.2 is written as %s", exact(0.1+0.2))
	}
}

// However long its texts are, a table fits the page, with texts of several lines or on several pages.
func TestTableFits(t *testing.T) {
	sentence :=
		"An output that nothing reads leaves the local buffer when its instance ends, and so does one whose last reader has run. "
	for _, tt := range []struct {
		name                 string
		texts, numbers, rows int // columns and rows
		sentences            int // in each text
		environments         int
	}{
		{name: "small", texts: 1, numbers: 3, rows: 4, environments: 1},
		{name: "wide", texts: 1, numbers: 7, rows: 4, environments: 1},
		{name: "long", texts: 1, numbers: 2, rows: 100, environments: 3},
		{name: "a text", texts: 1, numbers: 2, rows: 3, sentences: 1, environments: 1},
		{name: "texts", texts: 4, numbers: 3, rows: 3, sentences: 1, environments: 1},
		{name: "long and with texts", texts: 3, numbers: 1, rows: 40, sentences: 3, environments: 14},
		{name: "too wide", texts: 1, numbers: 40, rows: 1, environments: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tab := Table{Title: strings.TrimSpace(sentence), Name: "x", Notes: []string{strings.Repeat(sentence, 3)}}
			for range tt.texts {
				tab.Columns = append(tab.Columns, Column{Name: "Why", Text: true})
			}
			for range tt.numbers {
				tab.Columns = append(tab.Columns, Column{Name: "Some number"})
			}
			for i := range tt.rows {
				var row []string
				for k := range tt.texts {
					row = append(row, fmt.Sprintf("%d-%d %s", i, k, strings.Repeat(sentence, tt.sentences)))
				}
				for range tt.numbers {
					row = append(row, "1234.5")
				}
				tab.Rows = append(tab.Rows, row)
			}
			tex := tab.LaTeX("x")
			if got := strings.Count(tex, "\\begin{table*}"); got != tt.environments {
				t.Errorf("%d tables, want %d", got, tt.environments)
			}
			harnesstest.LaTeX(t, tt.name, []byte(tex))
		})
	}
}
