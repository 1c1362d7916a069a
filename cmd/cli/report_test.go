package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/plots/page"
)

func TestReportPage(t *testing.T) {
	workspace(t)
	got := answer(t, "report", "results/", "-o", "page.html")
	for _, want := range []string{`(?m)^page +page\.html, \d\.\d\d MB$`, `(?m)^experiments +fig14$`,
		`(?m)^compared +1 published`, `(?m)^figures +1$`, `(?m)^viewer +none`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	file, err := os.ReadFile("page.html")
	if err != nil {
		t.Fatal(err)
	}
	if html := answer(t, "report", "-o", "-"); html != string(file) {
		t.Error("the standard output gets another page")
	}
	answer(t, "report", "--json")
	if second, err := os.ReadFile(filepath.Join("results", "report.html")); err != nil || string(second) != string(file) {
		t.Errorf("without -o: another page (%v)", err)
	}
	open, err := page.Unpack(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"throughput</td>", "-10.0", "A picture</figcaption>"} {
		if !strings.Contains(string(open), want) {
			t.Errorf("no %q on the page", want)
		}
	}
}

func TestBadReportPage(t *testing.T) {
	workspace(t)
	experimentResults(t, "odd/fig14", "fig14")
	put := func(name, data string) {
		if err := os.WriteFile(filepath.Join("odd", "fig14", name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("bare", 0o777); err != nil {
		t.Fatal(err)
	}
	put("speed.svg", `<svg width="1pt" height="1pt"><script/></svg>`)
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"report nosuch", `results can't be read: .*nosuch`, 1},
		{"report file", `results can't be read: .*file`, 1},
		{"report bare", `^dsasched: bare: found no results, expected folders like bare/optimality that 'dsasched run' writes$`, 1},
		{"report odd", `^dsasched: odd/fig14/speed\.svg: found an element "script", expected one of svg`, 1},
		{"report results odd", `takes at most one folder of results, found 2: "results", "odd"`, 2},
		{"report --output=", `"" for "-o, --output" flag: expected a file name`, 2},
		{"report -o - --json", `exclude each other`, 2},
		{"report -o nosuch/page.html", `nosuch/page\.html`, 1},
	} {
		r := call(t, strings.Fields(c.args)...)
		if r.status != c.status || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!regexp.MustCompile(c.want).MatchString(strings.TrimSpace(r.stderr)) {
			t.Errorf("%s: status %d, stderr %q, want %d and %q", c.args, r.status, r.stderr, c.status, c.want)
		}
	}
	put("speed.svg", `<svg width="1pt" height="1pt"></svg>`)
	put("origin.json", "[]")
	if r := call(t, "report", "odd"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "odd/fig14/origin.json: not what 'dsasched run' writes") {
		t.Errorf("status %d, stderr %q", r.status, r.stderr)
	}
}
