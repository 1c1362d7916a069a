package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{withPrefix(0), "0"},
		{withPrefix(999), "999"},
		{withPrefix(1000), "1 k"},
		{withPrefix(999949), "999.9 k"},
		{withPrefix(999999), "1.000 M"},
		{withPrefix(25557032), "25.56 M"},
		{withPrefix(4089184256), "4.089 G"},
		{withPrefix(0.5), "0.500"},
		{unit(7, "MAC"), "7 MAC"},
		{unit(65.536e12, "MAC/s"), "65.54 TMAC/s"},
		{size(0), "0 B"},
		{size(1023), "1023 B"},
		{size(1 << 20), "1 MiB"},
		{size(1310720), "1.250 MiB"},
		{duration(0.0073186), "7.319 ms"},
		{duration(12.5), "12.50 s"},
		{duration(84e-9), "84 ns"},
		{joules(4.3721e-5), "43.72 uJ"},
		{joules(0.6123), "612.3 mJ"},
		{joules(1234), "1.234 kJ"},
		{duration(0), "0 ns"},
		{perSecond(8885.4), "8885/s"},
		{perSecond(265200), "265200/s"},
		{perSecond(0.25), "0.250/s"},
		{percent(0.1234), "12.3 %"},
		{plural(1, "group"), "1 group"},
		{plural(2, "group"), "2 groups"},
		{shorten("short", 10), "short"},
		{shorten("a-very-long-name", 9), "a-ve…name"},
		{shorten("a\x1b\n\u202eb", 10), "a???b"},
		{sharesText([]int64{2, 2, 1, 0}), "2 on 2 clusters, 1 on 1 cluster, 0 on 1 cluster"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestStrip(t *testing.T) {
	for _, c := range []struct {
		groups []int
		want   string
	}{
		{nil, ""},
		{[]int{0}, "0"},
		{[]int{0, 0, 1, 0, 0, 1, 2}, "2*0 1 2*0 1 2"},
		{[]int{0, 1, 2, 3}, "0-3"},
		{[]int{0, 1}, "0 1"},
		{[]int{0, 0, 1, 1, 2, 2, 3}, "2*0-2 3"},
		{[]int{5, 4, 3}, "5 4 3"},
	} {
		if got := strings.Join(strip(c.groups), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.groups, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	words := strings.Fields("aaa bbb ccc ddd eee")
	if got, want := wrap(words, " ", 8, 5), " aaa bbb\n ccc ddd\n eee\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wrap(words, " ", 8, 2), " aaa bbb\n ccc ... (2 more)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wrap(words, " ", 19, 1), " aaa ... (4 more)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wrap(strings.Fields("äää bbb ccc"), "", 7, 5), "äää bbb\nccc\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wrap([]string{"longer-than-the-line"}, "", 5, 3), "longer-than-the-line\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	writeTable(&b, "lrl", []string{"name", "n", "note"},
		[][]string{{"a", "1", "x"}, {"bb…", "1000", ""}, {"", "", "some words"}})
	want := []string{" name     n  note", " a        1  x", " bb…   1000", "             some words", ""}
	if got := strings.Split(b.String(), "\n"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
