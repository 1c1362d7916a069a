package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
)

// shapes are the elements that a figure may consist of.
var shapes = []string{"svg", "g", "defs", "clipPath", "path", "rect", "circle", "ellipse", "line", "polyline",
	"polygon", "text", "tspan", "title", "desc"}

// defaultStyle is plots' style of plain text; the page's styles say the same once.
const defaultStyle = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-variant:normal;font-weight:normal;font-style:normal;"

// inlineSVG makes an SVG file part of the page. Identifiers get a prefix, since those
// of all figures share one page; what could run, or fetch anything, is an error.
func inlineSVG(f Figure, title, prefix string) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%s: %s", f.File, fmt.Sprintf(format, args...))
	}
	d := xml.NewDecoder(bytes.NewReader(f.SVG))
	var b strings.Builder
	var open []string
	roots := 0
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail("not valid SVG: %v", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			if t.Name.Space != "" || !slices.Contains(shapes, name) {
				return fail("found an element %q, expected one of %s", t.Name.Local, strings.Join(shapes, ", "))
			}
			if len(open) == 0 {
				if name != "svg" || roots > 0 {
					return fail("found %q as the outermost element, expected one svg", name)
				}
				roots++
				start, err := svgRoot(t, title)
				if err != nil {
					return fail("%v", err)
				}
				b.WriteString(start)
				open = append(open, name)
				continue
			}
			b.WriteString("<" + name)
			for _, a := range t.Attr {
				value := a.Value
				switch key := a.Name.Local; {
				case a.Name.Space == "xmlns" || key == "xmlns":
					continue
				case a.Name.Space != "" || key == "href" || strings.HasPrefix(strings.ToLower(key), "on"):
					return fail("found an attribute %q of %s, expected only what draws", key, name)
				case key == "id":
					value = prefix + value
				case key == "style":
					value = strings.Replace(value, defaultStyle, "", 1)
				}
				if strings.Contains(strings.ReplaceAll(value, "url(#", ""), "url(") || strings.Contains(value, `\`) {
					return fail("found a reference in %s=%q of %s, expected none to outside", a.Name.Local, a.Value, name)
				}
				value = strings.ReplaceAll(value, "url(#", "url(#"+prefix)
				if value != "" {
					b.WriteString(" " + a.Name.Local + `="` + html.EscapeString(value) + `"`)
				}
			}
			b.WriteString(">")
			open = append(open, name)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name.Local {
				return fail("not valid SVG: an element %s ends that did not begin", t.Name.Local)
			}
			open = open[:len(open)-1]
			b.WriteString("</" + t.Name.Local + ">")
		case xml.CharData:
			inText := len(open) > 0 && slices.Contains([]string{"text", "tspan", "title", "desc"}, open[len(open)-1])
			if inText {
				b.WriteString(html.EscapeString(string(t)))
			}
		}
	}
	if roots == 0 || len(open) > 0 {
		return fail("not valid SVG: the drawing has no end")
	}
	return b.String(), nil
}

// svgRoot is the beginning of a drawing: its own size in points is for print, on screen the page decides.
func svgRoot(t xml.StartElement, title string) (string, error) {
	attr := map[string]string{}
	for _, a := range t.Attr {
		attr[a.Name.Local] = a.Value
	}
	size := func(name string) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSuffix(attr[name], "pt"), 64)
		if err != nil || !(v > 0 && v < 1e5) {
			return 0, fmt.Errorf("%s of svg is %q, expected a length in points", name, attr[name])
		}
		return v, nil
	}
	w, err := size("width")
	if err != nil {
		return "", err
	}
	h, err := size("height")
	if err != nil {
		return "", err
	}
	box := attr["viewBox"]
	if box == "" {
		box = fmt.Sprintf("0 0 %g %g", w, h)
	}
	return fmt.Sprintf(`<svg viewBox="%s" role="img" aria-label="%s" style="--w:%g;aspect-ratio:%g/%g">`,
		html.EscapeString(box), html.EscapeString(title), w, w, h), nil
}
