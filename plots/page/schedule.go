package page

import (
	"fmt"
	"html/template"
	"io"
)

// Schedule is the content of the page of a schedule, or of several beside each other.
type Schedule struct {
	Title   string
	Preface []string
	Facts   []Fact
	// Recording is the JSON of the viewer; package recording describes its form.
	Recording []byte
	ByGroup   bool // colours are those of groups at first
	Sections  []Section
}

// Fact is a number for a card.
type Fact struct{ What, Value, Unit, Words string }

// Section is a part of the page that has an entry in the menu.
type Section struct {
	ID, Title, Text string
	Parts           []Part
}

// Part is one of the parts of a section that stand beside each other where there is room. What is empty is not shown.
type Part struct {
	Title, Text string
	Wide        bool // nothing beside it
	Shares      []Share
	Table       *Table
	Folded      []Folded
	Graph       *Graph
}

// Share is a row with a bar.
type Share struct {
	What, Text string
	Share      float64 // of 1
}

// Percent is the length of the bar.
func (s Share) Percent() string { return fmt.Sprintf("%.2f", 100*min(1, max(0, s.Share))) }

// Folded is a line that opens to more. Group has a colour, -1: none.
type Folded struct {
	Group   int
	Summary string
	Lines   []string
}

// groupColours is the number of colours that groups take in turn.
const groupColours = 10

// WriteSchedule writes the page of a schedule.
func WriteSchedule(w io.Writer, s *Schedule) error {
	script := chaptersScript + tableScript + viewerScript
	type part struct {
		Part
		Drawing template.HTML
	}
	type section struct {
		Section
		Parts []part
	}
	packed, err := packJSON(s.Recording)
	if err != nil {
		return err
	}
	data := struct {
		*Schedule
		Policy   string
		Styles   template.CSS
		Script   template.JS
		Packed   template.HTML // base64 needs no escapes
		Sections []section
	}{s, policy(script), template.CSS(styles), template.JS(script), template.HTML(packed), nil}
	graphs := 0
	for _, x := range s.Sections {
		shown := section{Section: x}
		for _, p := range x.Parts {
			q := part{Part: p}
			if p.Graph != nil {
				graphs++
				svg, err := p.Graph.svg(fmt.Sprintf("graph%d", graphs))
				if err != nil {
					return err
				}
				q.Drawing = template.HTML(svg)
			}
			shown.Parts = append(shown.Parts, q)
		}
		data.Sections = append(data.Sections, shown)
	}
	return execute(w, "schedule", data)
}
