package archtest

import (
	"go/ast"
	"io/fs"
	"strings"
)

// EnglishRefusals lists where the program refuses something with words that are known in English only: a literal of an
// error with the category or code PolicyBlocked and without a reason, or a call of reason.Plain. Each is DIRECTORY:
// FUNCTION, once for each place. What the stores say of a broken database is for the operator, in English.
func EnglishRefusals(tree fs.FS, names []string) ([]string, error) {
	module, err := moduleOf(tree)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range names {
		if !isGo(name) || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "persistence/") {
			continue
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			continue // it was deleted since the list was made
		}
		f, err := parse(module, name, data)
		if err != nil || forTests(f.dir) {
			continue
		}
		for _, decl := range f.ast.Decls {
			of := "variable"
			if function, ok := decl.(*ast.FuncDecl); ok {
				of = function.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if refusesInEnglish(n) {
					list = append(list, f.dir+": "+of)
				}
				return true
			})
		}
	}
	return list, nil
}

// refusesInEnglish reports whether a node is one of those places.
func refusesInEnglish(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		blocked, reasoned := false, false
		for _, e := range n.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, _ := field.Key.(*ast.Ident)
			reasoned = reasoned || key != nil && key.Name == "Reason"
			blocked = blocked || key != nil && lastName(field.Value) == "PolicyBlocked"
		}
		return blocked && !reasoned
	case *ast.CallExpr:
		if called, ok := n.Fun.(*ast.SelectorExpr); ok && lastName(called.X) == "reason" && called.Sel.Name == "Plain" {
			return true
		}
		return lastName(n.Fun) == "Errorf" && len(n.Args) > 0 && lastName(n.Args[0]) == "PolicyBlocked"
	}
	return false
}

// lastName is the name that an expression is, or ends with; "" = none.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
