package page

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// sheet renders the texts of one experiment.
type sheet struct {
	experiment Experiment
	file       string          // of the text at hand
	shown      map[string]bool // figures, by name
	count      *int            // of figures on the page
}

// renderExperiment returns the title of the first text, without the experiment's name, and the texts and figures.
func renderExperiment(e Experiment, figures *int) (title string, body template.HTML, err error) {
	s := &sheet{experiment: e, shown: map[string]bool{}, count: figures}
	md := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignStyle))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(s, 100))),
	)
	var b bytes.Buffer
	for i, t := range e.Texts {
		s.file = t.File
		doc := md.Parser().Parse(text.NewReader(t.Markdown), parser.WithContext(parser.NewContext()))
		if h, ok := doc.FirstChild().(*ast.Heading); ok && i == 0 && h.Level == 1 {
			title = plainText(h, t.Markdown)
			doc.RemoveChild(doc, h)
		}
		if err := md.Renderer().Render(&b, t.Markdown, doc); err != nil {
			return "", "", err
		}
	}
	title = strings.TrimPrefix(title, e.Name+": ")
	for _, f := range e.Figures {
		if !s.shown[f.Name] {
			out, err := s.figure(f, f.Name)
			if err != nil {
				return "", "", err
			}
			b.WriteString(out)
		}
	}
	return title, template.HTML(b.String()), nil
}

func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	// The walker below returns no error.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(util.UnescapePunctuations(t.Segment.Value(source)))
		}
		return ast.WalkContinue, nil
	})
	return html.UnescapeString(b.String())
}

// RegisterFuncs registers the node types that are rendered here.
func (s *sheet) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, s.heading)
	r.Register(ast.KindParagraph, s.paragraph)
	r.Register(ast.KindImage, s.image)
	r.Register(ast.KindLink, s.link)
	r.Register(extast.KindTable, s.table)
}

// heading: those of texts stand below that of their section.
func (s *sheet) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := min(n.(*ast.Heading).Level+2, 6)
	if entering {
		fmt.Fprintf(w, "<h%d>", level)
	} else {
		fmt.Fprintf(w, "</h%d>\n", level)
	}
	return ast.WalkContinue, nil
}

// paragraph: a figure is none.
func (s *sheet) paragraph(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if c := n.FirstChild(); c != nil && c.Kind() == ast.KindImage && c.NextSibling() == nil {
		return ast.WalkContinue, nil
	}
	if entering {
		w.WriteString("<p>")
	} else {
		w.WriteString("</p>\n")
	}
	return ast.WalkContinue, nil
}

func (s *sheet) image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	file := string(n.(*ast.Image).Destination)
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	for _, f := range s.experiment.Figures {
		if f.Name == name {
			s.shown[name] = true
			out, err := s.figure(f, plainText(n, source))
			if err != nil {
				return ast.WalkStop, err
			}
			w.WriteString(out)
			return ast.WalkSkipChildren, nil
		}
	}
	return ast.WalkStop, fmt.Errorf("%s: shows %s, but there is no %s.svg beside it", s.file, file, name)
}

func (s *sheet) figure(f Figure, title string) (string, error) {
	*s.count++
	svg, err := inlineSVG(f, title, fmt.Sprintf("f%d-", *s.count))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("<figure><div class=\"paper\">%s</div><figcaption>%s</figcaption></figure>\n", svg,
		html.EscapeString(title)), nil
}

// link: the page travels without the files beside it, so only those to the web stay.
func (s *sheet) link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to := string(n.(*ast.Link).Destination)
	if !strings.HasPrefix(to, "https://") {
		return ast.WalkContinue, nil
	}
	if entering {
		fmt.Fprintf(w, `<a href="%s">`, html.EscapeString(to))
	} else {
		w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

// table: wide ones scroll, by keyboard too.
func (s *sheet) table(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n")
	} else {
		w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}
