// Package page makes one HTML file of a report: the published numbers in a table that
// can be searched, filtered and sorted, the tables and figures of each experiment, a
// viewer of recorded schedules, and where all of it comes from.
//
// The file is complete: styles, scripts, figures, data and the figures' font are in it,
// and its content security policy lets a browser fetch nothing. Without scripts, all
// but the viewer is still there. The same Report gives the same bytes.
//
// # What is trusted
//
// Nothing. Texts are escaped, Markdown may hold no HTML, figures may hold only shapes
// and text (see the errors of Write), and the policy names the hash of the one script.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

// Report is the content of the page.
type Report struct {
	Title   string
	Preface []string // paragraphs
	// Headlines and Leads open the page: the numbers that a reader came for, and figures
	// with a sentence each.
	Headlines []Headline
	Leads     []Lead
	// Verdicts from best to worst; others may occur in Lines.
	Verdicts    []string
	Summary     Table
	Lines       []Line
	Experiments []Experiment
	// Recording is the JSON of the viewer; nil: there is none. Its form is described at
	// the experiment "timeline".
	Recording []byte
	Builds    Table // what made which results
	Modules   []Modules
	Hardware  []Hardware
}

// Table is a plain table; the columns after the first hold numbers if Numbers.
type Table struct {
	Columns []string
	Rows    [][]string
	Numbers bool
}

// Line is a published number, or statement, beside ours.
type Line struct {
	Experiment, What, Unit string
	Published, Ours        Value
	Ratio                  Value
	Error                  Value // in percent
	Verdict                string
	Remark                 string // why, or what to know
}

// Headline is a published number beside ours, for a card.
type Headline struct {
	Experiment, What, Unit, Published, Ours, Verdict, Words string
}

// Lead is a figure with a sentence.
type Lead struct {
	Experiment, Title, Sentence string
	Figure                      Figure
}

// Value is what people read, and what it is sorted by: Number, or Text if it has none.
type Value struct {
	Text   string
	Number *float64
}

// Number is a value that has a number.
func Number(text string, x float64) Value { return Value{text, &x} }

// Experiment is a section of the page.
type Experiment struct {
	Name string
	// Texts are Markdown; the first begins with the title. Their images are looked up
	// among the figures by the name without an ending.
	Texts []Text
	// Figures that no text shows come last, in their order.
	Figures []Figure
}

// Text is a file of Markdown.
type Text struct {
	File     string // for errors
	Markdown []byte
}

// Figure is an SVG file.
type Figure struct {
	Name string // without an ending
	File string // for errors
	SVG  []byte
}

// Modules lists the modules of a program, each with its version.
type Modules struct {
	Experiments string
	List        []string
}

// Hardware is an accelerator's description.
type Hardware struct{ Name, Hash, YAML string }

//go:embed page.html.tmpl
var htmlTemplate string

//go:embed page.css
var styles string

//go:embed table.js
var tableScript string

//go:embed viewer.js
var viewerScript string

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{"slug": slug}).Parse(htmlTemplate))

// Write writes the page. Errors name the file and what in it can't be shown.
func Write(w io.Writer, r *Report) error {
	script := tableScript + viewerScript
	sum := sha256.Sum256([]byte(script))
	type section struct {
		Name, Title string
		Body        template.HTML
	}
	data := struct {
		*Report
		Policy       string
		Styles       template.CSS
		Script       template.JS
		Sections     []section
		VerdictNames []string
		Recorded     bool
		Packed       template.HTML
		Pictures     []template.HTML // of Leads
	}{
		Report:   r,
		Policy:   "default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		Styles:   template.CSS(fontFace() + styles),
		Script:   template.JS(script),
		Recorded: r.Recording != nil,
	}
	figures := 0
	for _, l := range r.Leads {
		figures++
		svg, err := inlineSVG(l.Figure, l.Title, fmt.Sprintf("lead%d-", figures))
		if err != nil {
			return err
		}
		data.Pictures = append(data.Pictures, template.HTML(svg))
	}
	for _, e := range r.Experiments {
		title, body, err := renderExperiment(e, &figures)
		if err != nil {
			return err
		}
		data.Sections = append(data.Sections, section{e.Name, title, body})
	}
	used := map[string]bool{}
	for _, l := range r.Lines {
		used[l.Verdict] = true
	}
	for _, v := range r.Verdicts {
		if used[v] {
			data.VerdictNames = append(data.VerdictNames, v)
			delete(used, v)
		}
	}
	for _, l := range r.Lines { // in their order, not that of the map
		if used[l.Verdict] {
			data.VerdictNames = append(data.VerdictNames, l.Verdict)
			delete(used, l.Verdict)
		}
	}
	if data.Recorded {
		packed, err := pack(r.Recording)
		if err != nil {
			return err
		}
		data.Packed = template.HTML(packed) // base64 needs no escapes
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, data); err != nil {
		return fmt.Errorf("the page can't be made: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// pack compresses JSON, for browsers have the means to undo it.
func pack(data []byte) (string, error) {
	if !json.Valid(data) {
		return "", fmt.Errorf("the recording is not valid JSON")
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(data); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// fontFace is the font of the figures, whose letters have places computed for it:
// Liberation Sans as it is, which its licence (SIL OFL 1.1) lets one embed.
func fontFace() string {
	return `@font-face{font-family:"Liberation Sans";src:url("data:font/ttf;base64,` + base64.StdEncoding.EncodeToString(liberationsansregular.TTF) + `") format("truetype")}` + "\n"
}

// VerdictClass is the class of a verdict, by its place in the list, for its colour.
func (r *Report) VerdictClass(v string) string {
	for i, w := range r.Verdicts {
		if v == w {
			return fmt.Sprintf("v%d", i)
		}
	}
	if v == "–" {
		return "none"
	}
	return "other"
}

// slug makes a name fit for an id.
func slug(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-') {
			b[i] = '-'
		}
	}
	return string(b)
}
