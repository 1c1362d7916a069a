// Package plots draws results as figures for print.
//
// A Figure is as wide as a column of a two-column paper, so that it goes in at its own size, with letters of 6.5 points
// and more. One panel stands above the other, a network each, since images and sentences per second have no common
// scale. The axes of bars begin at zero. Colours are those of Okabe and Ito (Color Universal Design, 2008), which
// people who are colour-blind can distinguish, in pairs whose brightness differs too, for a print without colours.
//
// What others published is drawn beside the bars as marks of another shape and
// never as a bar, so that it can't be taken for a result of ours.
//
// The same data gives the same bytes, as PNG, as SVG and as PDF.
package plots
