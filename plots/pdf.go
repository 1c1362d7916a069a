package plots

import (
	"bytes"
	"regexp"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
)

var pdfDate = regexp.MustCompile(`/(?:Creation|Mod)Date \(D:\d+`)

// PDF returns the figure as a document of one page, with its fonts in it.
func (f *Figure) PDF() ([]byte, error) {
	c := vgpdf.New(f.width, f.height)
	c.EmbedFonts(true)
	f.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// The time of writing would make each file another. The length stays, for the offsets in the file's table.
	return pdfDate.ReplaceAllFunc(b.Bytes(), func(date []byte) []byte {
		digits := bytes.IndexByte(date, ':') + 1
		for i := range date[digits:] {
			date[digits+i] = "20000101000000"[i%14]
		}
		return date
	}), nil
}
