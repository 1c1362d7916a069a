package dsasched_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// longest is the limit on a function's lines in the core; longer lists the exceptions with limits of their own.
const longest = 120

var longer = map[string]int{
	"formulation/bound.bounds": 205,
	"formulation/tiling.time":  325,
	"model/schedule.seconds":   129,
}

// Functions do one thing, or a few in named steps. None grows, and no other becomes as long.
func TestFunctionsAreShort(t *testing.T) {
	found := map[string]int{}
	for file, src := range sources(t) {
		if strings.HasSuffix(file, "_test.go") || ofSystem(file) {
			continue
		}
		tokens := token.NewFileSet()
		f, err := parser.ParseFile(tokens, file, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := tokens.Position(fn.End()).Line - tokens.Position(fn.Pos()).Line + 1
				name := filepath.Dir(file) + "." + fn.Name.Name
				if most := max(longest, longer[name]); lines > most {
					t.Errorf("%s has %d lines, expected at most %d", name, lines, most)
				}
				found[name] = max(found[name], lines)
			}
		}
	}
	for name := range longer {
		if found[name] <= longest {
			t.Errorf("%s has %d lines, and stands among the longer ones", name, found[name])
		}
	}
}
