package archtest

import (
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Buckets lists the buckets of facts that the program uses, by name: the texts, and the constants with texts, that
// stand for one in its source, without its rules of buckets.
func Buckets(tree fs.FS, names []string) ([]string, error) {
	module, err := moduleOf(tree)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	consts := map[string]map[string]string{} // by directory: names of constants with their texts
	var files []goFile
	for _, name := range names {
		if !isGo(name) || strings.HasSuffix(name, "_test.go") {
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
		files = append(files, f)
		f.texts(consts)
	}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if areBucketRules(n) {
				return false
			}
			for _, e := range bucketsIn(n) {
				if text := textOf(e, consts[f.dir]); text != "" {
					found[text] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// texts adds the constants of a file that are texts.
func (f goFile) texts(consts map[string]map[string]string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if text := textOf(value, nil); text != "" && i < len(spec.Names) {
				if consts[f.dir] == nil {
					consts[f.dir] = map[string]string{}
				}
				consts[f.dir][spec.Names[i].Name] = text
			}
		}
		return true
	})
}

// areBucketRules reports whether a node is a literal of rules of buckets.
func areBucketRules(n ast.Node) bool {
	list, ok := n.(*ast.CompositeLit)
	if !ok {
		return false
	}
	array, ok := list.Type.(*ast.ArrayType)
	return ok && lastName(array.Elt) == "BucketRule"
}

// bucketsIn returns the expressions that name buckets in a node: a constant that is called one, a field Bucket, the
// name of a facts.Bucket, and both of a facts.Followed.
func bucketsIn(n ast.Node) (list []ast.Expr) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if strings.HasSuffix(strings.ToLower(name.Name), "bucket") && i < len(n.Values) {
				list = append(list, n.Values[i])
			}
		}
	case *ast.CallExpr:
		if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "NewFollowed" && len(n.Args) > 2 {
			list = append(list, n.Args[1], n.Args[2])
		}
	case *ast.CompositeLit:
		return bucketsOf(n)
	}
	return list
}

// bucketsOf returns those in a literal of a struct.
func bucketsOf(n *ast.CompositeLit) (list []ast.Expr) {
	kind, ok := n.Type.(*ast.SelectorExpr)
	ofFacts := ok && kind.Sel.Name == "Bucket"
	for _, e := range n.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name, ok := field.Key.(*ast.Ident)
		if ok && (name.Name == "Bucket" || ofFacts && name.Name == "Name") {
			list = append(list, field.Value)
		}
	}
	return list
}

// textOf is the text that an expression is; "" = none.
func textOf(e ast.Expr, consts map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.Ident:
		return consts[e.Name]
	}
	return ""
}
