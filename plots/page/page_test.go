package page

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const drawing = `<?xml version="1.0"?>
<!-- a comment -->
<svg width="120pt" height="60pt" viewBox="0 0 120 60"
	xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<defs><clipPath id="box"><rect width="10" height="10"/></clipPath></defs>
<g transform="scale(1, -1) translate(0, -60)" clip-path="url(#box)">
<path d="M0,0L10,10Z" style="fill:#0072B2" />
<text x="1" y="-2" transform="scale(1, -1)"
	style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-variant:normal;font-weight:normal;font-style:normal;font-size:6.5px">a &lt; b &amp; c</text>
</g></svg>
`

// example is a report with some of everything; recording may be nil.
func example(recording []byte) *Report {
	return &Report{
		Title: "A <report>", Preface: []string{"First & last."},
		Headlines: []Headline{{Experiment: "one", What: "Speed <up>", Unit: "×", Published: "11.15", Ours: "7.5",
			Verdict: "direction only", Words: "less"}},
		Leads: []Lead{{Experiment: "two", Title: "Gaps", Sentences: []string{"Of 5, 3 <are> best."},
			Figure: Figure{"a", "two/a.svg", []byte(drawing)}}},
		Verdicts: []string{"reproduced within 20 %", "within a factor of two", "direction only", "not reproduced",
			"as in the paper", "differs"},
		Summary: Table{Columns: []string{"Experiment", "reproduced within 20 %"},
			Rows: [][]string{{"one", "1"}}, Numbers: true},
		Lines: []Line{
			{Experiment: "one", What: "throughput <b>", Unit: "images/s", Published: Number("100", 100),
				Ours: Number("110", 110), Ratio: Number("1.10", 1.1), Error: Number("+10.0", 10), Verdict: "reproduced within 20 %",
				Remark: "why not"},
			{Experiment: "one", What: "latency", Unit: "ms", Published: Number("9", 9), Ours: Number("30", 30),
				Ratio: Number("3.33", 3.333), Error: Number("+233.3", 233.3), Verdict: "not reproduced"},
			{Experiment: "two", What: "order", Published: Value{Text: "DFS"}, Ours: Value{Text: "DFS"}, Ratio: Value{Text: "–"},
				Error: Value{Text: "–"}, Verdict: "as in the paper"},
			{Experiment: "two", What: "none", Unit: "tensors", Published: Number("0", 0), Ours: Number("0", 0),
				Ratio: Value{Text: "–"}, Error: Value{Text: "–"}, Verdict: "odd"},
		},
		ByChapter: Table{Columns: []string{"Chapter", "all"}, Rows: [][]string{{"Both <of them>", "4"}}, Numbers: true},
		Chapters: []Chapter{{ID: "chapter-both", Menu: "Both", Title: "Both <of them>", Conclusion: "One of <two>.",
			Experiments: []Experiment{
				{Name: "one", Texts: []Text{
					{"one.md",
						[]byte(
							"# one: the\\_title\n\nText.\n\n## Part\n\n| A | B |\n|:---|---:|\n| x&lt;y | 1 |\n\n![The picture](a.png)\n\n[beside](a.csv) [far](https://example.org/)\n")}},
					Figures: []Figure{{"a", "a.svg", []byte(drawing)}, {"b", "b.svg", []byte(drawing)}}},
				{Name: "two", Texts: []Text{{"two.md", []byte("# two: other\n\n<script>alert(1)</script>\n")}},
					Figures: []Figure{{"a", "two/a.svg", []byte(drawing)}}},
			}}},
		Recording: recording,
		Builds:    Table{Columns: []string{"Experiments"}, Rows: [][]string{{"one, two"}}},
		Modules:   []Modules{{"one, two", []string{"example.org/m v1.2.3"}}},
		Hardware:  []Hardware{{"stcp920", "12ab", "name: stcp920 # <x>\n"}},
	}
}

func write(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unpacked is a page with all chapters open.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	html, err := Unpack([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

func TestWrite(t *testing.T) {
	file := write(t, example([]byte(`{}`)))
	if strings.Contains(file, "the_title") || strings.Contains(file, "throughput &lt;b&gt;") {
		t.Error("a chapter is not compressed")
	}
	html := unpacked(t, file)
	for _, want := range []string{
		"<td>Both &lt;of them&gt;</td>", "One of &lt;two&gt;.", `data-holds="one two" hidden`,
		"<title>A &lt;report&gt;</title>", "Speed &lt;up&gt;", `<span class="verdict v2">direction only</span>: less`,
		"Of 5, 3 &lt;are&gt; best.", `id="lead1-box"`, "First &amp; last.", "throughput &lt;b&gt;", `data-sort="110"`,
		`<span class="verdict v0">reproduced within 20 %`, `<span class="verdict v4">as in the paper`,
		`<span class="verdict other">odd`,
		`<span class="name">one</span> the_title</h3>`, "<h4>Part</h4>", "x&lt;y", "<figcaption>The picture</figcaption>",
		"<figcaption>b</figcaption>",
		`<a href="https://example.org/">far</a>`, "a &lt; b &amp; c</text>", `style="font-size:6.5px"`, "# &lt;x&gt;",
		"example.org/m v1.2.3",
		`<option>reproduced within 20 %</option><option>not reproduced</option><option>as in the paper</option><option>odd</option>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, bad := range []string{"alert(1)</script>", "a.csv", "xlink", "<?xml", "within a factor of two</option>"} {
		if strings.Contains(html, bad) {
			t.Errorf("found %q", bad)
		}
	}
	if again := write(t, example([]byte(`{}`))); again != file {
		t.Error("other bytes the second time")
	}
	if none := write(t, example(nil)); strings.Contains(none, `id="viewer"`) || strings.Contains(none, `href="#viewer"`) {
		t.Error("a viewer of nothing")
	}
}

// Identifiers are unique on the page, and what refers to them finds them.
func TestIdentifiers(t *testing.T) {
	html := unpacked(t, write(t, example([]byte(`{}`))))
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %q", m[1])
		}
		ids[m[1]] = true
	}
	references := regexp.MustCompile(`(?:href="#|url\(#|aria-labelledby="|list=")([^")]*)`).FindAllStringSubmatch(html, -1)
	for _, m := range references {
		if !ids[m[1]] {
			t.Errorf("nothing has the id %q", m[1])
		}
	}
	if len(references) < 10 {
		t.Errorf("%d references, want those of the contents and three figures", len(references))
	}
}

// Nothing on the page makes a browser fetch anything.
func TestNothingFromOutside(t *testing.T) {
	html := unpacked(t, write(t, example([]byte(`{}`))))
	outside := regexp.MustCompile(
		`(?i)(?:src|srcset|data|action|poster)\s*=\s*"([^"]*)"|@import[^;]*;|url\(([^)]*)\)|<link[^>]*>`)
	for _, m := range outside.FindAllStringSubmatch(html, -1) {
		if target := m[1] + strings.Trim(m[2], `"`); !strings.HasPrefix(target, "#") &&
			!strings.HasPrefix(target, "data:font/ttf;") {
			t.Errorf("found %.80q", m[0])
		}
	}
	if !strings.Contains(html, "default-src &#39;none&#39;") {
		t.Error("no content security policy")
	}
}

func TestBadReports(t *testing.T) {
	figure := func(svg string) func(*Report) {
		return func(r *Report) { r.Chapters[0].Experiments[0].Figures[0].SVG = []byte(svg) }
	}
	inside := func(s string) func(*Report) {
		return figure(`<svg width="1pt" height="1pt">` + s + `</svg>`)
	}
	for _, c := range []struct {
		name  string
		spoil func(*Report)
		want  string
	}{
		{"script", inside(`<script>1</script>`), `a.svg: found an element "script", expected one of svg, g,`},
		{"style", inside(`<style>a{}</style>`), `a.svg: found an element "style"`},
		{"image", inside(`<image href="x"/>`), `a.svg: found an element "image"`},
		{"foreign", inside(`<h:p xmlns:h="x"/>`), `a.svg: found an element "p"`},
		{"handler", inside(`<path onclick="x()"/>`), `a.svg: found an attribute "onclick" of path`},
		{"link", inside(`<g xlink:href="http://x"/>`), `a.svg: found an attribute "href" of g`},
		{"reference", inside(`<path style="fill:url(http://x/y)"/>`), `a.svg: found a reference in style=`},
		{"escape", inside(`<path style="fill:u\72l(//x)"/>`), `a.svg: found a reference in style=`},
		{"no size", figure(`<svg></svg>`), `a.svg: width of svg is "", expected a length in points`},
		{"other root", figure(`<g></g>`), `a.svg: found "g" as the outermost element`},
		{"two", figure(`<svg width="1pt" height="1pt"></svg><svg></svg>`), `a.svg: found "svg" as the outermost element`},
		{"cut", figure(drawing[:len(drawing)/2]), `a.svg: not valid SVG`},
		{"crossed", inside(`<g><path></g></path>`), `a.svg: not valid SVG: an element g ends`},
		{"empty", figure(``), `a.svg: not valid SVG`},
		{"picture that is not there", func(r *Report) { e := &r.Chapters[0].Experiments[0]; e.Figures = e.Figures[1:] },
			`one.md: shows a.png, but there is no a.svg beside it`},
		{"recording", func(r *Report) { r.Recording = []byte("{") }, `the recording is not valid JSON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := example(nil)
			c.spoil(r)
			var b bytes.Buffer
			err := Write(&b, r)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if b.Len() > 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

func FuzzInlineSVG(f *testing.F) {
	f.Add([]byte(drawing))
	f.Add([]byte(`<svg width="1pt" height="1pt"><text onload="x">]]></text></svg>`))
	active := regexp.MustCompile(`(?i)<(script|style|iframe|image|use|a|foreignObject)\b|<[^>]* (on[a-z]+|href)=`)
	f.Fuzz(func(t *testing.T, svg []byte) {
		out, err := inlineSVG(Figure{"f", "f.svg", svg}, "t", "p-")
		if err == nil && active.MatchString(out) {
			t.Errorf("%q became %q", svg, out)
		}
	})
}

func ExampleWrite() {
	var b bytes.Buffer
	err := Write(&b, &Report{
		Title: "Two chips", Verdicts: []string{"near", "far"},
		Lines: []Line{{Experiment: "speed", What: "throughput", Unit: "images/s", Published: Number("100", 100),
			Ours:  Number("104", 104),
			Ratio: Number("1.04", 1.04), Error: Number("+4.0", 4), Verdict: "near"}},
		Chapters: []Chapter{{ID: "chips", Menu: "Chips", Title: "Two chips", Experiments: []Experiment{
			{Name: "speed", Texts: []Text{{File: "speed.md", Markdown: []byte("# speed: of light\n")}}}}}},
	})
	fmt.Println(err)
	html, err := Unpack(b.Bytes())
	fmt.Println(err, strings.Contains(string(html), `<span class="verdict v0">near</span>`))
	// Output:
	// <nil>
	// <nil> true
}

// The page of a schedule has all texts, each escaped, and the same bytes every time.
func TestWriteSchedule(t *testing.T) {
	once := func() string {
		var b bytes.Buffer
		if err := WriteSchedule(&b, scheduleExample(t, 40)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	html := once()
	for _, want := range []string{"<title>Net &lt;on&gt; chip</title>", "at &lt;least&gt; 1 ms", "A note.",
		`style="width:50.00%"`, "x&lt;y", "g11: the &lt;last&gt;", "--c:var(--g1)",
		"<li>because</li>", "<title>&lt;third&gt;</title>", `data-operator="second"`, `<option value="group" selected>`,
		`href="#graph"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	if once() != html {
		t.Error("other bytes the second time")
	}
	bad := scheduleExample(t, 40)
	bad.Recording = []byte("{")
	if err := WriteSchedule(&bytes.Buffer{}, bad); err == nil {
		t.Error("a recording that is not valid is taken")
	}
}

// Nodes stand behind all that they follow, and no two at one place; bows and turns of edges
// stay on the drawing.
func TestGraphPlaces(t *testing.T) {
	g := &Graph{Title: "diamonds"}
	for k := range 30 {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprint(k)}, Node{Name: fmt.Sprint(k, "left")},
			Node{Name: fmt.Sprint(k, "right")})
		at := 3 * k
		g.Edges = append(g.Edges, [2]int{at, at + 1}, [2]int{at, at + 2})
		if k > 0 {
			g.Edges = append(g.Edges, [2]int{at - 2, at}, [2]int{at - 1, at}, [2]int{at - 3, at})
		}
	}
	spots, err := g.place()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[spot]bool{}
	for _, s := range spots {
		if seen[s] || s.lane > 1 {
			t.Errorf("place %+v is taken twice, or lower than two lanes", s)
		}
		seen[s] = true
	}
	for _, e := range g.Edges {
		if spots[e[0]].column >= spots[e[1]].column {
			t.Errorf("edge %v goes from column %d to %d", e, spots[e[0]].column, spots[e[1]].column)
		}
	}
	svg, err := g.svg("x")
	if err != nil || strings.Count(svg, "<rect") != 90 || strings.Count(svg, `class="edge"`) != len(g.Edges) ||
		strings.Contains(svg, "-1,") {
		t.Errorf("%v: %.200s", err, svg)
	}
	g.Edges = append(g.Edges, [2]int{5, 0})
	if _, err := g.svg("x"); err == nil {
		t.Error("a cycle is drawn")
	}
}
