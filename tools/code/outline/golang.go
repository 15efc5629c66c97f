package outline

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// Limits of what Go's parser, which is recursive, is given.
const (
	maxNesting = 1000     // brackets that are open; 100 000 of them would need 256 MB of stack
	maxBroken  = 64 << 10 // bytes of a declaration with mistakes; each mistake takes memory
)

// goFile lists what a Go file declares at its top level, and the methods of its interfaces.
type goFile struct {
	*builder
	files *token.FileSet
	above int // lines of the file above what is parsed
}

// goStart finds the beginning of a declaration, with the comment above it, in a file as gofmt writes it.
var goStart = regexp.MustCompile(`(?m)^(//.*\n)*(package|import|func|type|var|const)\b`)

// golang lists the declarations of a Go file. After a mistake, Go's parser takes the next functions for parts of the
// broken one. A file with mistakes is therefore parsed declaration by declaration.
func golang(src []byte, out *builder) {
	if nesting(src) > maxNesting {
		out.Truncated = true
		return
	}
	g := goFile{builder: out, files: token.NewFileSet()}
	if file, err := g.parse(src, 0); err == nil {
		g.list(file)
		return
	}
	starts := goStart.FindAllSubmatchIndex(src, MaxSymbols)
	at, line := 0, 0
	for i, start := range starts {
		line += bytes.Count(src[at:start[0]], []byte("\n"))
		at = start[0]
		end := len(src)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		g.above = line
		part := src[at:min(end, at+maxBroken)]
		if keyword := src[start[4]:start[5]]; !bytes.Equal(keyword, []byte("package")) {
			g.above--
			part = append([]byte("package p\n"), part...)
		}
		file, err := g.parse(part, parser.AllErrors) // or it gives up after ten
		g.list(file)
		if n := len(g.Symbols); err != nil && n > 0 &&
			(g.Symbols[n-1].Kind == Function || g.Symbols[n-1].Kind == Method) {
			g.end(n-1, line+1+bytes.Count(bytes.TrimSpace(src[at:end]), []byte("\n"))) // its body is broken
		}
	}
}

// nesting returns how many brackets are open at most, those in strings and comments included.
func nesting(src []byte) int {
	depth, deepest := 0, 0
	for _, c := range src {
		switch c {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

// parse returns what Go's parser makes of src.
func (g *goFile) parse(src []byte, mode parser.Mode) (*ast.File, error) {
	return parser.ParseFile(g.files, "", src, mode|parser.ParseComments|parser.SkipObjectResolution)
}

func (g *goFile) list(file *ast.File) {
	if doc := goDoc(file.Doc); doc != "" {
		g.declare(Module, "", file.Name, file.Package, file.Name.End(), doc)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			kind, receiver := Function, ""
			if d.Recv != nil {
				kind, receiver = Method, receiverType(d.Recv)
			}
			g.declare(kind, receiver, d.Name, d.Pos(), d.End(), goDoc(d.Doc))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if d.Lparen.IsValid() {
					g.spec(d.Tok, spec, spec.Pos(), spec.End(), nil)
				} else {
					g.spec(d.Tok, spec, d.Pos(), d.End(), d.Doc)
				}
			}
		}
	}
}

// spec lists the names of one type, or of constants or variables; doc is the comment above its keyword.
func (g *goFile) spec(keyword token.Token, spec ast.Spec, start, end token.Pos, doc *ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		kind := Variable
		if keyword == token.CONST {
			kind = Constant
		}
		for _, name := range spec.Names {
			g.declare(kind, "", name, start, end, goDoc(doc, spec.Doc, spec.Comment))
		}
	case *ast.TypeSpec:
		kind, methods := Type, []*ast.Field(nil)
		switch t := spec.Type.(type) {
		case *ast.StructType:
			kind = Struct
		case *ast.InterfaceType:
			kind, methods = Interface, t.Methods.List
		}
		g.declare(kind, "", spec.Name, start, end, goDoc(doc, spec.Doc, spec.Comment))
		for _, m := range methods {
			for _, name := range m.Names {
				g.declare(Method, spec.Name.Name, name, m.Pos(), m.End(), goDoc(m.Doc, m.Comment))
			}
		}
	}
}

func (g *goFile) declare(kind Kind, container string, name *ast.Ident, start, end token.Pos, doc string) {
	if name.Name == "_" {
		return
	}
	line := func(p token.Pos) int { return g.above + g.files.PositionFor(p, false).Line }
	g.add(Symbol{
		Name:      name.Name,
		Container: container,
		Kind:      kind,
		Start:     line(start),
		Line:      line(name.Pos()),
		End:       line(end),
		Doc:       doc,
	})
}

// receiverType returns the name of the type that a method belongs to.
func receiverType(list *ast.FieldList) string {
	if len(list.List) == 0 {
		return ""
	}
	typ := list.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.ParenExpr:
			typ = t.X
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// goDoc returns the first of some comments that says something, in one line.
func goDoc(comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		if text := strings.Join(strings.Fields(c.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}
