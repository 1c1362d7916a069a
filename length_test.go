package dsasched_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// longest is the most lines of a function of the core, and longer has those that are longer, with their lines.
const longest = 120

var longer = map[string]int{
	"formulation/bound.bounds":      205,
	"formulation/exact.explore":     128,
	"formulation/ordering.Validate": 125,
	"formulation/tiling.time":       325,
	"hardware/sim.foldClusters":     135,
	"model/schedule.seconds":        129,
}

// Functions do one thing, or a few in named steps. None grows, and no other becomes as long.
func TestFunctionsAreShort(t *testing.T) {
	found := map[string]int{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || ofSystem(file):
			return nil
		}
		tokens := token.NewFileSet()
		f, err := parser.ParseFile(tokens, file, nil, 0)
		if err != nil {
			return err
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
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range longer {
		if found[name] <= longest {
			t.Errorf("%s has %d lines, and stands among the longer ones", name, found[name])
		}
	}
}
