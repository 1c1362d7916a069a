package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/plots/page"
)

func TestReportOverAll(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, testNames); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.md")); err == nil {
		t.Error("a report of nothing")
	}
	put := func(name string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, name+".json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("sensitivity", []int{1, 2}) // of another form
	put("fig14", map[string]any{"experiment": "fig14", "published": []harness.Line{
		{Experiment: "fig14", What: "near", Unit: "images/s", Published: 100, Ours: 110, Calibration: true},
		{Experiment: "fig14", What: "far", Unit: "x", Published: 11.15, Ours: 6.75, Headline: 1,
			Cause: "another graph"},
		{Experiment: "fig14", What: "none", Unit: "tensors", Published: 0, Ours: 3},
	}})
	d := harness.NewDocument(harness.Experiment{Name: "fig10"})
	d.Number("kernels in all", "kernels", 65, 57)
	d.Why("of what, nobody knows")
	d.Claim("in a picture", "yes", "no", "differs")
	d.Why("simplified")
	rep, err := d.Report(nil)
	if err != nil {
		t.Fatal(err)
	}
	put("fig10", json.RawMessage(rep.Files[0].Data))
	if err := Write(dir, testNames); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fig10, fig14, sensitivity",
		"| kernels in all | kernels | 65 | 57 | 0.88 | -12.3 | holds | of what, nobody knows |",
		"| in a picture |  | yes | no | – | – | misses | simplified |", "| fig14 | 0 | 2 | 0 | 1 |",
		"**GraphTurbo**: 1 of 4 published facts hold. The median miss is off by a factor of 1.65. No sign",
		"| another graph | 1 | far (6.75 for 11.15) |", "| no cause is known | 2 | in a picture (no for yes); none (3 for 0) |",
		"near † | images/s | 100 | 110 | 1.10 | +10.0 | not counted |",
		"| 11.15 | 6.75 | 0.61 | -39.5 | misses |", "## In brief",
		"| far | 11.15 | 6.75 | × | misses | 39\u00a0% less than published |", "| 0 | 3 | – | – | misses |"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in\n%s", want, data)
		}
	}

	// The page has the same lines, and what is said in words; an experiment that this
	// program does not know comes last.
	put("fig13", map[string]any{"experiment": "fig13", "claims": []harness.Claim{
		{Quantity: "Overlap", Paper: "yes", Ours: "for 5 µs", Verdict: "as in the paper"},
		{Quantity: "Gain", Paper: "1.72", Ours: "1.6", Verdict: harness.Holds},
		{Quantity: "Less", Paper: "likely", Ours: "in 8 of 10", Verdict: "mostly"}}})
	put("another", map[string]any{"experiment": "another"})
	for name, text := range map[string]string{
		"fig13/fig13.md":      "# fig13: two\\_blocks\n\n| A |\n|---|\n| 1 |\n\n![Blocks](gantt.png)\n",
		"fig13/gantt.svg":     `<svg width="10pt" height="10pt"><path d="M0,0Z"/></svg>`,
		"fig13/more.svg":      `<svg width="10pt" height="10pt"><path d="M1,1Z"/></svg>`,
		"fig13/lead.json":     `[{"figure": "gantt", "title": "Units", "sentences": ["They overlap.", "They wait."]}, {"figure": "none", "title": "Nothing", "sentences": ["No figure."]}]`,
		"fig13/part.md":       "| A |\n|---|\n| 1 |\n",
		"fig13/viewer.json":   `{"schema": 1, "configurations": []}`,
		"another/another.md":  "# another: one\n",
		"fig14/origin.json":   `{"version": "v1.2.3", "revision": "abcdef", "modified": true, "go": "go1.2", "platform": "os/arch", "solver": "S 1", "modules": [{"path": "m.org/a", "version": "v9"}], "hardware": [{"name": "chip", "sha256": "12", "yaml": "name: chip\n"}, {"name": "chip", "sha256": "34"}], "seeds": [7]}`,
		"shared-cells/x.json": "{}",
		"notes.txt":           "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	html, contents, err := Page(dir, testNames)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", *contents),
		"{Experiments:[{Name:fig10 Lines:2 Figures:[]} {Name:fig13 Lines:3 Figures:[gantt more]} {Name:fig14 Lines:3 Figures:[]} {Name:sensitivity Lines:0 Figures:[]} {Name:another Lines:0 Figures:[]}] Viewer:true}"; got != want {
		t.Errorf("contents %s, want %s", got, want)
	}
	open, err := page.Unpack(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>GraphTurbo: 3 of 6 published facts hold</title>",
		`>near †</td><td>images/s</td><td class="number" data-sort="100">100</td>`, `data-sort="-39.46`,
		`<span class="verdict v0">holds`,
		`<span class="verdict v0">holds</span></td><td></td></tr>`,
		`<p class="what">Far</p>`, `<p class="big">6.75 <span class="unit">×</span></p>`,
		`misses</span>: 39` + "\u00a0" + `% less than published</p>`, "<h3>Units (<a href=\"#fig13\">fig13</a>)</h3>\n<ul><li>They overlap.</li>\n<li>They wait.</li>",
		"two_blocks</h3>",
		"3 of 6 published facts hold. The median miss is off by a factor of 1.65. No sign is wrong. 1 missed: another graph. 2 missed: no cause is known. They overlap. They wait. No figure.", "Other experiments</h2>", `<td>fig13</td><td class="number">2</td><td class="number">0</td><td class="number">0</td><td class="number">1</td>`, "<figcaption>Blocks</figcaption>", "<figcaption>more</figcaption>", "one</h3>",
		"<td>fig14</td><td>v1.2.3</td><td>abcdef, with changes</td><td>go1.2 os/arch</td><td>S 1</td><td>chip, chip (varied)</td><td>7</td>",
		"<td>fig10, fig13, sensitivity, another</td><td>not recorded</td>", "<li>m.org/a v9</li>", "name: chip\n",
		"dsasched of an unrecorded version, v1.2.3.",
	} {
		if !strings.Contains(string(open), want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if n := strings.Count(string(open), "<td>1</td>"); n != 1 { // of part.md, which is in fig13.md too
		t.Errorf("the table of fig13 is there %d times", n)
	}
	if err := Write(dir, testNames); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || string(written) != string(html) {
		t.Errorf("report.html is not the page (%v)", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fig13", "viewer.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Page(dir, testNames); err == nil ||
		!strings.Contains(err.Error(), filepath.Join("fig13", "viewer.json")+": not valid JSON") {
		t.Errorf("error %v", err)
	}
}

var testNames = []string{"fig10", "fig13", "fig14", "sensitivity"}

// A folder of results may hold anything: it is refused, or there is a report of it.
func FuzzResults(f *testing.F) {
	f.Add(
		[]byte(
			`{"published": [{"experiment": "a", "what": "speed", "published": 1, "ours": 2, "headline": 1}], "claims": [{"quantity": "q", "paper": "p", "ours": "o", "verdict": "differs"}]}`))
	f.Add([]byte(`{"published": [{"experiment": "a", "what": "", "headline": 1}]}`))
	f.Add(
		[]byte(
			`{"schema": 1, "version": "v1", "modules": [{"path": "a", "version": "v0"}], "hardware": [{"name": "n", "yaml": "name: n"}], "seeds": [1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := collected{name: "a", lines: comparedLines(data)}
		if o, err := harness.ReadOrigin("origin.json", data); err == nil {
			e.origin = o
		}
		c := &collection{experiments: []collected{e}}
		if !strings.HasPrefix(reportText(c), "#") || c.report() == nil {
			t.Error("no report")
		}
	})
}

// A folder that an older program has written, before its files had numbers of a schema, is
// read; so are fields that a newer one adds. What says that it must not be is refused.
func TestOldAndNewResults(t *testing.T) {
	_, old, err := Page(filepath.Join("testdata", "results-0"), testNames)
	if err != nil {
		t.Fatal(err)
	}
	if len(old.Experiments) != 1 || old.Experiments[0].Name != "mofang-fig13" || old.Experiments[0].Lines != 2 ||
		len(old.Experiments[0].Figures) != 1 {
		t.Errorf("%+v", old)
	}
	dir := filepath.Join(t.TempDir(), "results")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "results-0"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mofang-fig13", harness.OriginFile)
	for _, c := range []struct{ head, want string }{
		{`{"schema": 1, "weather": ["fair"],`, ""},
		{`{"schema": 2,`, path + ": schema: found 2, expected at most 1: the results are of a later dsasched (v0.0.0-"},
		{`{"schema": "1",`, path + ": not what 'dsasched run' writes"},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "results-0", "mofang-fig13", harness.OriginFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), "{", c.head, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Page(dir, testNames); c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.head, err, c.want)
		}
	}
}
