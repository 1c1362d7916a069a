package model

import "slices"

// DimSets are sets of dimensions of which one grows as the others do.
type DimSets []int

// Add makes a set of one dimension, and returns the dimension.
func (d *DimSets) Add() int {
	*d = append(*d, len(*d))
	return len(*d) - 1
}

// Find returns the dimension that stands for the set of a.
func (d DimSets) Find(a int) int {
	for d[a] != a {
		d[a] = d[d[a]]
		a = d[a]
	}
	return a
}

// Join makes one set of those of a and b; that of b stands for it.
func (d DimSets) Join(a, b int) { d[d.Find(a)] = d.Find(b) }

// ReshapePairs calls pair with the outermost dimensions, of s and of t, of each group that has equally many elements in
// both shapes, which are of the same elements. Dimensions of extent 1 are the outermost of a group with others only if
// ones may be the batch. Shapes with an extent that is not known (negative) have no groups.
func ReshapePairs(s, t Shape, ones bool, pair func(i, j int)) {
	if slices.ContainsFunc(slices.Concat(s, t), func(n int64) bool { return n < 1 }) {
		return
	}
	for _, g := range ReshapeGroups(s, t) {
		for !ones && g.From < g.To-1 && s[g.From] == 1 {
			g.From++
		}
		for !ones && g.First < g.End-1 && t[g.First] == 1 {
			g.First++
		}
		pair(g.From, g.First)
	}
}

// A ReshapeGroup is dimensions of one shape, From up to To, and of another, First up to End, of as many elements.
type ReshapeGroup struct{ From, To, First, End int }

// ReshapeGroups cuts two shapes into groups of as few dimensions as possible, each of at least one of both, up to where
// one of them ends or no group is of as many elements in both.
func ReshapeGroups(s, t Shape) (list []ReshapeGroup) {
	for i, j := 0, 0; i < len(s) && j < len(t); {
		g := ReshapeGroup{From: i, First: j}
		p, q := s[i], t[j]
		i, j = i+1, j+1
		for p != q {
			switch {
			case p < q && i < len(s):
				p *= s[i]
				i++
			case p > q && j < len(t):
				q *= t[j]
				j++
			default:
				return list
			}
			if max(p, q) > MaxElements {
				return list
			}
		}
		g.To, g.End = i, j
		list = append(list, g)
	}
	return list
}
