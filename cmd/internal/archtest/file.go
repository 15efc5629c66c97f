package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// topLevels are the directories at the root; the design has no others.
var topLevels = []string{"cmd", "bot", "agent", "tools", "policy", "persistence", "charts", "docs", ".ci", ".github"}

// keysAreReadIn is the file that parses session keys.
const keysAreReadIn = "bot/session.go"

// vagueNames say nothing about what a package is for.
var vagueNames = []string{
	"util", "utils", "common", "helper", "helpers", "shared", "base", "types", "models", "interfaces",
}

// unfinished finds marks of unfinished work, which belongs in a tracked issue.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// foreign finds paths of the machine on which the project was written, and of notes next to the checkout. They are
// concatenated here so that this file does not contain them.
var foreign = regexp.MustCompile(regexp.QuoteMeta("../"+"shared") +
	`/(design|contract|style|ux|spec|seeds|hooks|README)\b|` +
	regexp.QuoteMeta("/work"+"/") + `(main|shared)\b`)

// goFile is what the rules need to know about one source file.
type goFile struct {
	name    string // path from the root
	dir     string // its package's directory; "." for the root
	test    bool   // is a _test.go file
	pkg     string // name in the package clause
	doc     bool   // has a package comment
	imports []imported
	ast     *ast.File
	fset    *token.FileSet
	marked  bool // contains a mark of unfinished work, perhaps as data
}

// imported is one import of a file.
type imported struct {
	path  string // as written
	local string // directory within the module; "" when it is another module's
	line  int
}

// parse parses one file.
func parse(module, name string, data []byte) (goFile, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, fmt.Errorf("parse: %w", err)
	}
	f := goFile{
		name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		pkg: tree.Name.Name, doc: tree.Doc != nil, ast: tree, fset: fset, marked: marked(data),
	}
	for _, spec := range tree.Imports {
		i := imported{path: strings.Trim(spec.Path.Value, "`\""), line: fset.Position(spec.Pos()).Line}
		if rest, ok := strings.CutPrefix(i.path, module+"/"); ok {
			i.local = rest
		}
		f.imports = append(f.imports, i)
	}
	return f, nil
}

// shape checks that importing the file has no side effects.
func (f goFile) shape() []Problem {
	var out []Problem
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv == nil && fn.Name.Name == "init" {
			out = append(out, f.at(fn.Pos(), "init", "no init(): a constructor that cmd calls says when it happens"))
		}
	}
	return out
}

// comments checks that no comment marks unfinished work.
func (f goFile) comments() []Problem {
	if !f.marked {
		return nil
	}
	var out []Problem
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if m := unfinished.FindString(c.Text); m != "" {
				out = append(out, f.at(c.Pos(), "unfinished", m+": do it, or open an issue"))
			}
		}
	}
	return out
}

// sessionKeys checks that the keys of sessions are parsed in one place: in the packages that use them, nothing else is
// split at slashes.
func (f goFile) sessionKeys() []Problem {
	if f.test || f.name == keysAreReadIn || !contains([]string{"bot", "persistence", wiring}, topOf(f.dir)) {
		return nil
	}
	var out []Problem
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		split, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(split.Sel.Name, "Split") {
			return true
		}
		if at, ok := call.Args[1].(*ast.BasicLit); ok && at.Value == `"/"` {
			out = append(out, f.at(
				call.Pos(),
				"key",
				"a session's key is read by the methods of bot.SessionKey, any key of a chat by bot.CutChat",
			))
		}
		return true
	})
	return out
}

// topOf returns the top-level directory of a package; the wiring counts as one.
func topOf(dir string) string {
	if dir == wiring {
		return dir
	}
	top, _, _ := strings.Cut(dir, "/")
	return top
}

func (f goFile) at(pos token.Pos, rule, text string) Problem {
	return Problem{File: f.name, Line: f.fset.Position(pos).Line, Rule: rule, Text: text}
}

// topLevel checks that a directory at the root is one of the known ones.
func topLevel(name string) []Problem {
	dir, _, nested := strings.Cut(name, "/")
	if !nested || contains(topLevels, dir) {
		return nil
	}
	return []Problem{{File: name, Rule: "directory", Text: fmt.Sprintf(
		"%s is not a top-level directory of the project; those are %s", dir, strings.Join(topLevels, ", "),
	)}}
}

// words checks every line of a text file, whatever its format. A mark of unfinished work counts if it opens a comment
// of a script or a page; Go's comments are checked by comments.
func words(name string, data []byte) []Problem {
	marks := !strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") && marked(data)
	if !marks && !suspicious(data) {
		return nil
	}
	var out []Problem
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if m := foreign.FindString(line); m != "" {
			out = append(out, Problem{
				File: name,
				Line: number,
				Rule: "foreign",
				Text: fmt.Sprintf("%q is a place outside of the project", m),
			})
		}
		if m := unfinishedOpening.FindStringSubmatch(line); marks && m != nil {
			out = append(out, Problem{
				File: name,
				Line: number,
				Rule: "unfinished",
				Text: m[1] + ": do it, or open an issue",
			})
		}
	}
	return out
}

// marked reports whether unfinished could find anything; it is fast, like suspicious.
func marked(data []byte) bool {
	return bytes.Contains(data, []byte("TODO")) || bytes.Contains(data, []byte("FIXME"))
}

// suspicious reports whether foreign could find anything; it is fast, and most files contain neither beginning.
func suspicious(data []byte) bool {
	return bytes.Contains(data, []byte("../"+"shared/")) || bytes.Contains(data, []byte("/work"+"/"))
}

// unfinishedOpening is unfinished for text in which a search pattern or an example may contain the word too.
var unfinishedOpening = regexp.MustCompile(`(?:^|#|//|--|/\*|<!--)\s*(TODO|FIXME)\b`)
