package outline_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// TestGoLikeItsParser compares the outline of every Go file of this project with what the parser of Go says.
func TestGoLikeItsParser(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, ok := declared(src)
		if !ok {
			return nil
		}
		files++
		var got []string
		for _, s := range outline.Parse(outline.Go, src).Symbols {
			if s.Kind != outline.Module {
				got = append(got, fmt.Sprintf("%d %s.%s %d-%d", s.Line, s.Container, s.Name, s.Start, s.End))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files compared (%v)", files, err)
	}
}

// declared lists what a file declares, by Go's parser.
func declared(src []byte) ([]string, bool) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	var out []string
	add := func(container string, name *ast.Ident, whole ast.Node) {
		if name.Name != "_" {
			line := func(p token.Pos) int { return fset.Position(p).Line }
			out = append(out, fmt.Sprintf("%d %s.%s %d-%d", line(name.Pos()), container, name.Name, line(whole.Pos()), line(whole.End())))
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(receiver(d), d.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				var whole ast.Node = spec
				if !d.Lparen.IsValid() {
					whole = d
				}
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add("", name, whole)
					}
				case *ast.TypeSpec:
					add("", spec.Name, whole)
					if i, ok := spec.Type.(*ast.InterfaceType); ok {
						for _, m := range i.Methods.List {
							for _, name := range m.Names {
								add(spec.Name.Name, name, m)
							}
						}
					}
				}
			}
		}
	}
	return out, true
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}
