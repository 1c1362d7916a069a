package readings

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
)

// experiment runs readings on an accelerator.
type experiment struct {
	hardware string
	readings []reading
}

// Experiments has the one that holds the published numbers against all readings.
func Experiments() []harness.Experiment {
	return []harness.Experiment{experiment{"stcp920", readings()}.experiment()}
}

func (e experiment) experiment() harness.Experiment {
	return harness.Experiment{Name: "readings",
		Description: "every published number under each reading of the paper's text",
		Paper:       "GraphTurbo (OSDI 2023): Table 1, Table 3, Figs. 3, 14 and 15, and the throughputs of TVM on its slides",
		Plan:        e.plan}
}

// of lists the numbers that in says.
func of(in func(number) bool) (list []number) {
	for _, n := range numbers() {
		if in(n) {
			list = append(list, n)
		}
	}
	return list
}

// set is a number of numbers whose error is of interest.
type set struct {
	name string
	list []number
}

// sets are the sets of choices of the matrix.
func sets() (out []set) {
	for _, name := range []string{groupTVM, groupUnseen, groupMeans, groupGains, groupTable1, groupOthers, groupStages} {
		out = append(out, set{name, of(func(n number) bool {
			return n.group == name || name == groupUnseen && n.group == groupTVM &&
				!strings.Contains(literature.Calibrated, n.what[:1])
		})})
	}
	return out
}

// plain writes a number, or a dash.
func plain(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return harness.PlainNumber(x)
}

func (e experiment) report(list []results) (*harness.Report, error) {
	d := harness.NewDocument(e.experiment(), e.hardware)
	written := func(n number) bool { return n.group == groupWrites }
	cells := of(written)
	d.Table(e.readingTable())
	d.Table(matrix(list, cells)...)
	others := func(n number) bool { return !written(n) }
	d.Table(tables("numbers", "Published numbers and ours", list, others, significant)...)
	d.Table(tables("cells", "Table 3 cell by cell", list, written, plain)...)
	for _, r := range list {
		for _, x := range r.setting.runs() {
			if row := r.rows[x]; row.ThroughputPerSecond == 0 {
				d.Note("%s: %s by %s is missing: %s.", r.setting.Name, x.network, x.recipe, strings.Join(row.Notes, "; "))
			}
		}
	}
	figure(d, list)
	var data []settingData
	for _, r := range list {
		s := settingData{Setting: r.setting.Name, Change: r.setting.Change.String()}
		for _, n := range numbers() {
			x := numberData{What: n.what, Unit: n.unit, Published: harness.Round(n.published)}
			if ours := n.ours(r); !math.IsNaN(ours) {
				ours = harness.Round(ours)
				x.Ours = &ours
			}
			s.Numbers = append(s.Numbers, x)
		}
		data = append(data, s)
	}
	return d.Report(struct {
		Readings []reading     `json:"readings"`
		Settings []settingData `json:"settings"`
	}{e.readings, data})
}

// settingData is a setting in the JSON file.
type settingData struct {
	Setting string       `json:"setting"`
	Change  string       `json:"change"`
	Numbers []numberData `json:"numbers"`
}

type numberData struct {
	What      string   `json:"what"`
	Unit      string   `json:"unit"`
	Published float64  `json:"published"`
	Ours      *float64 `json:"ours"` // null: a run is missing
}

func (e experiment) readingTable() harness.Table {
	t := harness.Table{Name: "readings", Title: "Readings: what is in force, and what else the text allows",
		Columns: harness.Columns("<Reading", "<In force", "<Else", "<By")}
	for _, r := range e.readings {
		for i, c := range r.Choices[1:] {
			name, first := r.Name, r.Choices[0].Name
			if i > 0 {
				name, first = "", ""
			}
			t.Add(name, first, c.Name, c.Change.String())
		}
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %s Source: %s.", r.Name, r.Question, r.Source))
	}
	return t
}

// matrix has a row for each setting: the means, and the errors.
func matrix(list []results, cells []number) []harness.Table {
	means := harness.Table{Name: "means", Title: "Mean speedups and gains (×) under each reading",
		Columns: harness.Columns("<Setting"),
		Notes:   []string{"Throughputs are of one batch from a cold start, at the paper's batches per cluster."}}
	errors := harness.Table{Name: "errors", Title: "Errors of groups of numbers under each reading (×)",
		Columns: harness.Columns("<Setting"),
		Notes: []string{
			"Error: exp of the mean |ln(ours / published)|. Table 3: cells within 20 %, of those that are not 0 in both."}}
	heads := []string{"over\nTVM", "over\nAStitch", "AStitch\nover TVM", "variant 2", "variant 3", "variant 4"}
	published := []string{"published"}
	var shown []number
	for _, n := range numbers() {
		if n.group == groupMeans || n.group == groupGains {
			means.AddColumns(heads[len(shown)])
			shown = append(shown, n)
			published = append(published, harness.Fixed(n.published, 2))
		}
	}
	means.Add(published)
	for _, g := range sets() {
		errors.AddColumns(g.name)
	}
	errors.AddColumns("Table 3")
	for _, r := range list {
		a, b := []string{r.setting.Name}, []string{r.setting.Name}
		for _, n := range shown {
			a = append(a, fixed(n.ours(r)))
		}
		for _, g := range sets() {
			b = append(b, fixed(geometricError(g.list, r)))
		}
		means.Add(a)
		errors.Add(b, within(cells, r))
	}
	return []harness.Table{means, errors}
}

func fixed(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return harness.Fixed(x, 2)
}

// heading breaks a name into lines of at most some 14 characters, where it has words.
func heading(name string) string {
	const most = 14
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(name) {
		switch {
		case width == 0:
		case width+1+len(word) > most:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}

// mostSettings is the number of settings that stand side by side.
const mostSettings = 6

// tables has a row for each number that is not always zero, and a column for each setting
// that changes one of them, in as many tables as a page needs.
func tables(name, title string, list []results, in func(number) bool, write func(float64) string) []harness.Table {
	var rows []number
	var others []results
	for _, n := range of(in) {
		if n.published != 0 || slices.ContainsFunc(list, func(r results) bool { return n.ours(r) != 0 }) {
			rows = append(rows, n)
		}
	}
	for _, r := range list[1:] {
		if slices.ContainsFunc(rows, func(n number) bool { return write(n.ours(r)) != write(n.ours(list[0])) }) {
			others = append(others, r)
		}
	}
	var out []harness.Table
	for part := range slices.Chunk(others, mostSettings-1) {
		t := harness.Table{Name: fmt.Sprintf("%s-%d", name, len(out)+1), Title: title,
			Columns: harness.Columns("<", "Published")}
		part = append([]results{list[0]}, part...)
		for _, r := range part {
			t.AddColumns(heading(r.setting.Name))
		}
		for _, n := range rows {
			row := []string{n.what, write(n.published)}
			for _, r := range part {
				row = append(row, write(n.ours(r)))
			}
			t.Add(row)
		}
		out = append(out, t)
	}
	return out
}

func significant(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return harness.Significant(x)
}

// moved is the least change of a mean that a setting is drawn for, and mostGroups the number of settings in a panel.
const moved, mostGroups = .05, 9

// figure draws ours over published for the means, of the settings that move one.
func figure(d *harness.Document, list []results) {
	series := []plots.Series{{Name: "over TVM"}, {Name: "over AStitch"}, {Name: "variant 2"}, {Name: "variant 3"},
		{Name: "variant 4"}}
	means := make([]number, 0, len(series))
	for _, published := range []float64{literature.MeanSpeedup.Value, literature.MeanOverAStitch.Value,
		literature.MeanL1.Value, literature.MeanOrder.Value, literature.MeanCross.Value} {
		means = append(means, of(func(n number) bool {
			return n.published == published && (n.group == groupMeans || n.group == groupGains)
		})[0])
	}
	drawn := slices.DeleteFunc(slices.Clone(list), func(r results) bool {
		return r.setting.Name != list[0].setting.Name && !slices.ContainsFunc(means, func(n number) bool {
			return math.Abs(n.ours(r)/n.ours(list[0])-1) >= moved
		})
	})
	var panels []plots.Groups
	count := (len(drawn) + mostGroups - 1) / mostGroups
	for part := range slices.Chunk(drawn, (len(drawn)+count-1)/count) {
		g := plots.Groups{YLabel: "Ours / published", Line: 1, Series: slices.Clone(series)}
		for _, r := range part {
			g.Categories = append(g.Categories, heading(r.setting.Name))
			for i, n := range means {
				g.Series[i].Values = append(g.Series[i].Values, max(0, n.ours(r)/n.published))
			}
		}
		panels = append(panels, g)
	}
	d.Bars("means",
		fmt.Sprintf("Mean speedups and gains over the published ones, by the readings that change one by %s %%",
			harness.Percent(moved)), panels...)
}
