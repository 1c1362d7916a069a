// Package roofline asks how near the rules for tiles come to what a machine can do: products, convolutions and
// attentions, each a network of its own, on all machines, by the rule's closed form, by the best tiling of the same
// space, in the simulator, and over the certified bound.
package roofline
