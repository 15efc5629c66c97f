package archtest

import (
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
)

// buttonData is how the data of a button begins: who handles its press, in two characters.
var buttonData = regexp.MustCompile(`^([a-z][a-z0-9])(?::|$)`)

// ButtonOwners returns which packages below bot use each beginning of the data of buttons: as a constant that is called
// a prefix, or at the beginning of a text such as "a1:".
func ButtonOwners(tree fs.FS, names []string) (map[string][]string, error) {
	module, err := moduleOf(tree)
	if err != nil {
		return nil, err
	}
	owners := map[string][]string{}
	for _, name := range names {
		if !isGo(name) || strings.HasSuffix(name, "_test.go") || !strings.HasPrefix(name, "bot/") {
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
		for _, prefix := range f.buttons() {
			if list := owners[prefix]; len(list) == 0 || list[len(list)-1] != f.dir {
				owners[prefix] = append(list, f.dir)
			}
		}
	}
	return owners, nil
}

// buttons lists the beginnings of data that a file uses.
func (f goFile) buttons() (list []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i >= len(n.Values) || !strings.HasSuffix(strings.ToLower(name.Name), "prefix") {
					continue
				}
				if m := buttonData.FindStringSubmatch(textOf(n.Values[i], nil)); m != nil {
					list = append(list, m[1])
				}
			}
		case *ast.BasicLit:
			if m := buttonData.FindStringSubmatch(textOf(n, nil)); m != nil && strings.Contains(textOf(n, nil), ":") {
				list = append(list, m[1])
			}
		}
		return true
	})
	return list
}
