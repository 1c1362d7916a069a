package plots

import (
	"image/color"
	"slices"
	"strings"
)

var (
	grey   = color.NRGBA{0x99, 0x99, 0x99, 0xff}
	sky    = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	green  = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	purple = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	brown  = color.NRGBA{0x8c, 0x51, 0x0a, 0xff}
	yellow = color.NRGBA{0xe3, 0xcf, 0x2b, 0xff} // darker than the palette's, for white paper
)

// systems have one colour in every figure, by how their names begin, behind an "over ".
var systems = []struct {
	colour   color.NRGBA
	prefixes []string
}{
	{grey, []string{"tvm"}},
	{sky, []string{"xla"}},
	{green, []string{"tensorrt"}},
	{black, []string{"tensorflow", "vendor"}},
	{purple, []string{"astitch"}},
	{yellow, []string{"llb", "variant 1"}},
	{orange, []string{"l1", "variant 2"}},
	{sky, []string{"ordering", "variant 3"}},
	{blue, []string{"cross-layer", "variant 4", "graphturbo"}},
	{green, []string{"tiled"}},
	{black, []string{"best", "exact"}},
}

// seriesColours are the colours of series that are no systems. Marks on bars are black or vermillion.
var seriesColours = []color.NRGBA{grey, sky, blue, orange, green, purple, brown}

// colours gives each of several series its own: a system its own in all figures, paler where it comes again, and others
// what is left.
func colours(names []string) []color.NRGBA {
	list := make([]color.NRGBA, len(names))
	times := map[color.NRGBA]int{}
	for i, n := range names {
		n = strings.TrimPrefix(strings.ToLower(n), "over ")
		for _, s := range systems {
			if slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(n, p) }) {
				list[i] = paler(s.colour, times[s.colour])
				times[s.colour]++
				break
			}
		}
	}
	next := 0
	for i := range list {
		if list[i].A > 0 {
			continue
		}
		for next < len(seriesColours)-1 && times[seriesColours[next]] > 0 {
			next++
		}
		list[i] = seriesColours[next]
		times[list[i]]++
	}
	return list
}

// paler mixes a colour with white so many times.
func paler(c color.NRGBA, times int) color.NRGBA {
	for range times {
		c.R, c.G, c.B = c.R+(0xff-c.R)/2, c.G+(0xff-c.G)/2, c.B+(0xff-c.B)/2
	}
	return c
}
