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
	for i, j := 0, 0; i < len(s) && j < len(t); {
		// A group has as few dimensions as possible.
		first, second := i, j
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
				return
			}
			if max(p, q) > MaxElements {
				return
			}
		}
		for !ones && first < i-1 && s[first] == 1 {
			first++
		}
		for !ones && second < j-1 && t[second] == 1 {
			second++
		}
		pair(first, second)
	}
}
