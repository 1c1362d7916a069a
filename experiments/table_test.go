package experiments

import (
	"bytes"
	"testing"
)

// awkward has all that must be escaped somewhere.
var awkward = table{
	title: "A_b & 50 % of <c> | #1",
	label: "tab:awkward",
	columns: []column{
		{name: "Name", text: true}, {group: "Time\n(µs)", name: "first"}, {group: "Time\n(µs)", name: "last"}, {name: "Bytes\nper s"},
	},
	rows: [][]string{
		{`back\slash_{x}`, "1", "2", "3"},
		{"5 × 3 – a|b", "10.25", "", "~$^"},
	},
	notes: []string{"One note: 100 % of *all*.", "Another_one."},
}

func TestTable(t *testing.T) {
	var text bytes.Buffer
	if err := awkward.writeText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "table/table.txt", text.Bytes())
	golden(t, "table/table.md", []byte(awkward.markdown()))
	golden(t, "table/table.tex", []byte(awkward.latex()))
	golden(t, "table/table.csv", csvBytes([][]string{{"a", "b"}, {"x,y", "a \"quoted\" word"}, {"", "two\nlines"}}))
}

func TestTableDoesNotDependOnTheLocale(t *testing.T) {
	for _, locale := range []string{"C", "ja_JP.UTF-8", "en_US.UTF-8"} {
		t.Setenv("LC_ALL", locale)
		t.Setenv("LANG", locale)
		var text bytes.Buffer
		if err := awkward.writeText(&text); err != nil {
			t.Fatal(err)
		}
		golden(t, "table/table.txt", text.Bytes())
	}
}

func TestSignificant(t *testing.T) {
	for _, test := range []struct {
		x    float64
		want string
	}{{0, "0"}, {8725.94, "8726"}, {100, "100"}, {99.96, "100.0"}, {12.345, "12.3"}, {1.005, "1.00"}, {0.5866, "0.587"}, {-3.14159, "-3.14"}, {1e6, "1000000"}} {
		if got := significant(test.x); got != test.want {
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
