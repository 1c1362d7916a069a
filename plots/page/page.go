// Package page makes HTML files that need nothing beside them. Write makes that of a report: what is concluded, then
// chapters that are opened from a menu: the published numbers in a table that can be searched, filtered and sorted,
// the tables and figures of each experiment, a viewer of recorded schedules, and where all of it comes from.
// WriteSchedule makes that of one schedule, or of several beside each other, with the same viewer.
//
// A file is complete: styles, scripts, figures, data and the figures' font are in it, and its content security policy
// lets a browser fetch nothing. Chapters are compressed until they are opened; Unpack puts them in their places, as
// the script does. The same Report gives the same bytes.
//
// # What is trusted
//
// Nothing. Texts are escaped, Markdown may hold no HTML, figures may hold only shapes
// and text (see the errors of Write), and the policy names the hash of the one script.
package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

// Report is the content of the page.
type Report struct {
	Title   string
	Preface []string // paragraphs; all but the first are with the numbers
	// Headlines and Leads open the page: the numbers that a reader came for, and figures with a sentence each.
	Headlines []Headline
	Leads     []Lead
	// Verdicts from best to worst; others may occur in Lines.
	Verdicts  []string
	ByChapter Table // as Summary
	Summary   Table
	Lines     []Line
	Chapters  []Chapter
	// Recording is the JSON of the viewer; nil: there is none. Package recording describes its form.
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

// Lead is a figure with what it shows.
type Lead struct {
	Experiment, Title string
	Sentences         []string
	Figure            Figure
	First             bool // before the headlines
}

// shown is a lead with its figure as it stands on the page.
type shown struct {
	Lead
	Picture template.HTML
}

// Value is a cell: its text, and its sort key, which is Number, or Text if it has none.
type Value struct {
	Text   string
	Number *float64
}

// Number is a value that has a number.
func Number(text string, x float64) Value { return Value{text, &x} }

// Chapter is a part of the page that has an entry in the menu.
type Chapter struct {
	ID         string // also of its place on the page
	Menu       string
	Title      string
	Conclusion string
	// Experiments are its sections.
	Experiments []Experiment
}

// Experiment is a section of a chapter.
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

//go:embed chapters.js
var chaptersScript string

var parsed = template.Must(template.New("page").Funcs(
	template.FuncMap{"slug": slug, "mod": func(k int) int { return k % groupColours }}).Parse(htmlTemplate))

// section is an experiment as it is shown.
type section struct {
	Name, Title string
	Body        template.HTML
}

// folded is a chapter as it stands in the file.
type folded struct {
	ID, Menu, Holds string
	Packed          template.HTML
}

// policy lets the script run, and nothing be fetched.
func policy(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write writes the page. Errors name the file and what in it can't be shown.
func Write(w io.Writer, r *Report) error {
	script := chaptersScript + tableScript + viewerScript
	data := struct {
		*Report
		Policy       string
		Styles       template.CSS
		Script       template.JS
		Folded       []folded
		VerdictNames []string
		Recorded     bool
		ByGroup      bool
		Packed       template.HTML // of the recording
		Shown        []shown       // of Leads
	}{
		Report:   r,
		Policy:   policy(script),
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
		data.Shown = append(data.Shown, shown{l, template.HTML(svg)})
	}
	var used []string
	for _, l := range r.Lines {
		used = append(used, l.Verdict)
	}
	for _, v := range slices.Concat(r.Verdicts, used) {
		if slices.Contains(used, v) && !slices.Contains(data.VerdictNames, v) {
			data.VerdictNames = append(data.VerdictNames, v)
		}
	}
	// fold makes a chapter of a template.
	fold := func(name, id, menu, holds string, of any) error {
		var b bytes.Buffer
		if err := parsed.ExecuteTemplate(&b, name, of); err != nil {
			return fmt.Errorf("the page can't be made: %w", err)
		}
		packed, err := pack(b.Bytes())
		data.Folded = append(data.Folded, folded{id, menu, holds, template.HTML(packed)}) // base64 needs no escapes
		return err
	}
	for _, c := range r.Chapters {
		var sections []section
		var holds []string
		for _, e := range c.Experiments {
			title, body, err := renderExperiment(e, &figures)
			if err != nil {
				return err
			}
			sections, holds = append(sections, section{e.Name, title, body}), append(holds, slug(e.Name))
		}
		err := fold("chapter", c.ID, c.Menu, strings.Join(holds, " "), struct {
			Chapter
			Sections []section
		}{c, sections})
		if err != nil {
			return err
		}
	}
	if err := fold("numbers", "numbers", "Numbers", "", data); err != nil {
		return err
	}
	if err := fold("origin", "origin", "Origin", "", data); err != nil {
		return err
	}
	if data.Recorded {
		packed, err := packJSON(r.Recording)
		if err != nil {
			return err
		}
		data.Packed = template.HTML(packed)
	}
	return execute(w, "report", data)
}

// execute writes a page, all of it or nothing.
func execute(w io.Writer, name string, data any) error {
	var b bytes.Buffer
	if err := parsed.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("the page can't be made: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

var packedChapter = regexp.MustCompile(`<script type="application/octet-stream">([^<]*)</script></section>`)

// Unpack puts the chapters of a page in their places.
func Unpack(html []byte) (out []byte, err error) {
	out = packedChapter.ReplaceAllFunc(html, func(m []byte) []byte {
		text := bytes.NewReader(packedChapter.FindSubmatch(m)[1])
		z, failed := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, text))
		if err = cmp.Or(err, failed); failed != nil {
			return nil
		}
		data, failed := io.ReadAll(z)
		err = cmp.Or(err, failed)
		return append(data, "</section>"...)
	})
	return out, err
}

// packJSON compresses a recording.
func packJSON(data []byte) (string, error) {
	if !json.Valid(data) {
		return "", fmt.Errorf("the recording is not valid JSON")
	}
	return pack(data)
}

// pack compresses what browsers have the means to undo.
func pack(data []byte) (string, error) {
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
	return `@font-face{font-family:"Liberation Sans";src:url("data:font/ttf;base64,` +
		base64.StdEncoding.EncodeToString(liberationsansregular.TTF) + `") format("truetype")}` + "\n"
}

// VerdictClass is the class of a verdict, by its place in the list, for its colour.
func (r *Report) VerdictClass(v string) string {
	if i := slices.Index(r.Verdicts, v); i >= 0 {
		return fmt.Sprintf("v%d", i)
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
