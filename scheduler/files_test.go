package scheduler_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// order has the package's files in the order in which a draft passes them: what decisions are, the rows with their
// strategies, the table of rows, the loop over it, what simulates, and what runs, reads and explains whole schedules.
var order = strings.Fields(`
	doc.go options.go decision.go stage.go setting.go draft.go decisions.go recipe.go site.go shared.go
	simulate.go graphs.go
	groups.go splits.go layers.go kinds.go orders.go bindings.go generator.go spills.go loops.go
	dump.go slower.go table.go
	decide.go result.go problem.go evaluate.go redecide.go clusters.go attempts.go tuner.go run.go head.go measured.go steady.go
	restore.go file.go limit.go kernels.go`)

// Of the uses of package-level names between files, and of the exported names, there are at most so many.
const (
	mostBack     = 0.09 // the part of the uses whose name stands in a later file
	mostExported = 68
)

// nothing stands for the packages that are imported: names of this package resolve without them.
type nothing struct{}

func (nothing) Import(p string) (*types.Package, error) {
	made := types.NewPackage(p, path.Base(p))
	made.MarkComplete()
	return made, nil
}

func parsed(t *testing.T) (*token.FileSet, []*ast.File) {
	set, list := token.NewFileSet(), []*ast.File{}
	dir, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range dir {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if found++; !slices.Contains(order, e.Name()) {
			t.Errorf("%s has no place in the order of files", e.Name())
		}
		f, err := parser.ParseFile(set, e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	if found != len(order) {
		t.Errorf("the order has %d files, found %d", len(order), found)
	}
	return set, list
}

func TestFilesUseThoseBefore(t *testing.T) {
	set, list := parsed(t)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: nothing{}, Error: func(error) {}, DisableUnusedImportCheck: true}
	pkg, _ := check.Check("scheduler", set, list, info)
	at := func(pos token.Pos) int { return slices.Index(order, set.Position(pos).Filename) }
	uses, back := 0, 0
	for id, obj := range info.Uses {
		if from, to := at(id.Pos()), at(obj.Pos()); obj.Parent() == pkg.Scope() && from != to {
			if uses++; to > from {
				back++
			}
		}
	}
	share := float64(back) / float64(uses)
	t.Logf("%d of %d uses between files, %.1f %%, are of a later one", back, uses, 100*share)
	if uses < 500 || share > mostBack {
		t.Errorf("%d of %d uses are of a later file, expected at most %g", back, uses, mostBack)
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	_, list := parsed(t)
	exported := 0
	name := func(doc *ast.CommentGroup, id *ast.Ident) {
		if !id.IsExported() {
			return
		}
		if exported++; doc == nil {
			t.Errorf("%s is exported and has no comment", id.Name)
		}
	}
	for _, f := range list {
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					name(d.Doc, d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						name(first(s.Doc, s.Comment, d.Doc), s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							name(first(s.Doc, s.Comment, d.Doc), id)
						}
					}
				}
			}
		}
	}
	t.Logf("%d exported names", exported)
	if exported > mostExported {
		t.Errorf("%d exported names, expected at most %d", exported, mostExported)
	}
}

func first(list ...*ast.CommentGroup) *ast.CommentGroup {
	for _, c := range list {
		if c != nil {
			return c
		}
	}
	return nil
}
