// Command measure prints figures about the shape of the code: lines by layer, packages, how functions are named, how
// much the wiring imports, exported identifiers that no other package uses, and interfaces with one implementation.
// They are a thermometer: no test enforces them.
//
//	go run ./cmd/internal/archtest/measure            the figures
//	go run ./cmd/internal/archtest/measure -list      also each identifier and interface that is counted
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
)

func main() {
	list := flag.Bool("list", false, "name each identifier and interface that is counted")
	flag.Parse()
	if err := measure(os.Stdout, *list); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measure reads the module in the working directory and writes its figures.
func measure(w io.Writer, list bool) error {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedImports | packages.NeedExportFile |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Tests: true,
	}, "./...")
	if err != nil {
		return fmt.Errorf("load the module: %w", err)
	}
	m := module{
		defined: map[string]bool{},
		used:    map[string]bool{},
		lines:   map[string]*layerLines{},
		files:   map[string]bool{},
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return fmt.Errorf("load %s: %w", p.ID, p.Errors[0])
		}
		if p.Module != nil && !strings.HasSuffix(p.PkgPath, ".test") {
			m.path = p.Module.Path
			if err := m.readPackage(p); err != nil {
				return err
			}
		}
	}
	return m.print(w, list)
}

// module is what was counted.
type module struct {
	path                 string
	packages             int
	functions, bareNames int
	fanOut               int                    // packages of the module that the wiring imports
	lines                map[string]*layerLines // by layer
	// files that were counted: a package is loaded with and without its tests
	files      map[string]bool
	defined    map[string]bool // exported identifiers of production code, as keyOf writes them
	used       map[string]bool // those that another package uses; an external test is another package
	interfaces []methodSet
	concrete   []methodSet
}

type layerLines struct{ production, tests int }

// methodSet is a named type and its methods, with their signatures as text: the same type is loaded several times.
type methodSet struct {
	name    string
	methods []string
}

func (m *module) readPackage(p *packages.Package) error {
	plain := p.ID == p.PkgPath
	if plain {
		m.packages++
	}
	if plain && p.PkgPath == m.path+"/cmd/internal/app" {
		for path := range p.Imports {
			if strings.HasPrefix(path, m.path+"/") {
				m.fanOut++
			}
		}
	}
	for i, file := range p.CompiledGoFiles {
		if m.files[file] || !strings.HasSuffix(file, ".go") {
			continue
		}
		m.files[file] = true
		if err := m.readFile(p, file, p.Syntax[i]); err != nil {
			return err
		}
	}
	m.readTypes(p)
	for _, object := range p.TypesInfo.Uses {
		if object.Pkg() != nil && object.Pkg().Path() != p.PkgPath {
			m.used[keyOf(object)] = true
		}
	}
	return nil
}

func (m *module) readFile(p *packages.Package, file string, syntax *ast.File) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	layer, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(p.PkgPath, "_test"), m.path+"/"), "/")
	if m.lines[layer] == nil {
		m.lines[layer] = &layerLines{}
	}
	count := bytes.Count(data, []byte("\n"))
	if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(filepath.Base(filepath.Dir(file)), "test") {
		m.lines[layer].tests += count
		return nil
	}
	m.lines[layer].production += count
	for _, d := range syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			m.functions++
			if !strings.ContainsFunc(f.Name.Name[1:], unicode.IsUpper) {
				m.bareNames++
			}
		}
	}
	for ident, object := range p.TypesInfo.Defs {
		inFile := syntax.FileStart <= ident.Pos() && ident.Pos() <= syntax.FileEnd
		if inFile && object != nil && object.Exported() && isDeclaration(object) {
			m.defined[keyOf(object)] = true
		}
	}
	return nil
}

// isDeclaration says whether the object is declared at the top of a package or as a method of a type that is no
// interface. Fields and methods of interfaces are not counted: values that are encoded, and implementations, need them.
func isDeclaration(object types.Object) bool {
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		return !types.IsInterface(f.Signature().Recv().Type())
	}
	return object.Parent() == object.Pkg().Scope()
}

// keyOf names an object so that it is found again in each copy of its package.
func keyOf(object types.Object) string {
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		t := f.Signature().Recv().Type()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			return object.Pkg().Path() + "." + named.Obj().Name() + "." + object.Name()
		}
	}
	if object.Pkg() == nil || object.Parent() != object.Pkg().Scope() {
		return ""
	}
	return object.Pkg().Path() + "." + object.Name()
}

func (m *module) readTypes(p *packages.Package) {
	for _, name := range p.Types.Scope().Names() {
		named, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || named.IsAlias() {
			continue
		}
		set := methodSet{name: p.PkgPath + "." + name, methods: methodsOf(named.Type())}
		switch {
		case len(set.methods) == 0:
		case !types.IsInterface(named.Type()):
			m.concrete = append(m.concrete, set)
		case p.ID == p.PkgPath:
			m.interfaces = append(m.interfaces, set)
		}
	}
}

// methodsOf returns the methods of a type, or of a pointer to it, in order.
func methodsOf(t types.Type) []string {
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	var out []string
	for method := range types.NewMethodSet(t).Methods() {
		signature := method.Type().(*types.Signature)
		out = append(out, method.Obj().Id()+tuple(signature.Params())+tuple(signature.Results()))
	}
	slices.Sort(out)
	return out
}

// tuple writes types without the names of parameters.
func tuple(t *types.Tuple) string {
	var out strings.Builder
	for v := range t.Variables() {
		out.WriteString("," + types.TypeString(v.Type(), nil))
	}
	return "(" + out.String() + ")"
}

// lonely returns the interfaces that exactly one type of the module implements, tests included.
func (m *module) lonely() []string {
	var out []string
	for _, i := range m.interfaces {
		found := map[string]bool{}
		for _, c := range m.concrete {
			if !slices.ContainsFunc(i.methods, func(s string) bool {
				_, has := slices.BinarySearch(c.methods, s)
				return !has
			}) {
				found[c.name] = true
			}
		}
		if len(found) == 1 {
			for name := range found {
				out = append(out, m.short(i.name)+" ← "+m.short(name))
			}
		}
	}
	slices.Sort(out)
	return out
}

// unused returns the exported identifiers that only their own package uses. A method counts only if no interface of the
// module has one of its name.
func (m *module) unused() []string {
	demanded := map[string]bool{"String": true, "Error": true, "Unwrap": true, "Is": true, "As": true, "Close": true}
	for _, i := range m.interfaces {
		for _, method := range i.methods {
			name, _, _ := strings.Cut(method, "(")
			demanded[name] = true
		}
	}
	var out []string
	for key := range m.defined {
		rest := strings.Split(key[strings.LastIndex(key, "/")+1:], ".")
		if !m.used[key] && (len(rest) < 3 || !demanded[rest[2]]) {
			out = append(out, m.short(key))
		}
	}
	slices.Sort(out)
	return out
}

func (m *module) short(name string) string { return strings.TrimPrefix(name, m.path+"/") }

func (m *module) print(w io.Writer, list bool) error {
	var out strings.Builder
	total := layerLines{}
	fmt.Fprintf(&out, "%-46s %10s %8s\n", "lines", "production", "tests")
	for _, layer := range []string{"policy", "tools", "agent", "bot", "persistence", "cmd"} {
		if l := m.lines[layer]; l != nil {
			fmt.Fprintf(&out, "  %-44s %10d %8d\n", layer, l.production, l.tests)
			total.production += l.production
			total.tests += l.tests
		}
	}
	fmt.Fprintf(&out, "  %-44s %10d %8d\n", "all", total.production, total.tests)
	unused, lonely := m.unused(), m.lonely()
	fmt.Fprintf(&out, "%-46s %10d\n", "packages", m.packages)
	fmt.Fprintf(
		&out, "%-46s %9.1f%%\n", "functions named by one word", 100*float64(m.bareNames)/float64(max(m.functions, 1)),
	)
	fmt.Fprintf(&out, "%-46s %10d\n", "packages that cmd/internal/app imports", m.fanOut)
	fmt.Fprintf(&out, "%-46s %10d\n", "exported, but used by no other package", len(unused))
	fmt.Fprintf(&out, "%-46s %10d\n", "interfaces with one implementation", len(lonely))
	if list {
		fmt.Fprintf(&out, "\nexported, but used by no other package:\n  %s\n", strings.Join(unused, "\n  "))
		fmt.Fprintf(&out, "\ninterfaces with one implementation:\n  %s\n", strings.Join(lonely, "\n  "))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
