// Package suggest finds the names that a misspelt one may have meant.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest name that is looked for, in bytes: the time is that of its length times that of all known ones.
const longest = 1000

// Nearest lists the known names that are nearest to name by edit distance, in their order: of those that differ in
// about a third of their letters at most (or begin with name), the ones that differ least. Case does not count.
func Nearest(name string, known []string) []string {
	if name == "" || len(name) > longest {
		return nil
	}
	lower := strings.ToLower(name)
	var near []string
	least := -1
	for _, k := range known {
		to := strings.ToLower(k)
		d := levenshtein.ComputeDistance(lower, to)
		if strings.HasPrefix(to, lower) {
			d = min(d, 1)
		}
		if 3*d > max(len(lower), len(to))+1 || slices.Contains(near, k) {
			continue
		}
		switch {
		case least < 0 || d < least:
			least, near = d, []string{k}
		case d == least:
			near = append(near, k)
		}
	}
	return near
}

// Hint is " (did you mean a or b?)" for the names nearest to a misspelt one, or
// nothing if none is near. It goes behind the name in an error.
func Hint(name string, known []string) string {
	const most = 3
	near := Nearest(name, known)
	if len(near) == 0 || len(near) > most {
		return ""
	}
	return " (did you mean " + strings.Join(near, " or ") + "?)"
}

// HintOr is [Hint], or other if no name is near: a list of all of them would hide the one that was meant.
func HintOr(name string, known []string, other string) string {
	if hint := Hint(name, known); hint != "" {
		return hint
	}
	return other
}

// Expected is [Hint], or ", expected one of" and [Some] of the names if none is near.
func Expected(name string, known []string) string {
	return HintOr(name, known, ", expected one of "+Some(known))
}

// Some lists names, of more than eight the first eight and how many more there are.
func Some(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
