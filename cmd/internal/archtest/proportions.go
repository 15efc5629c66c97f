package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Proportions of the program, without its tests.
const (
	maxFunc   = 80 // lines of a function
	usualFunc = 40 // lines that 95 of 100 functions do not pass
	maxFile   = 400
	maxFields = 20 // of a struct that is neither configuration nor a record
)

// wideRecords are configuration or records: what was written down as one is read as one.
var wideRecords = []string{
	"agent/journal.Entry", "bot.Change", "bot.Message", "bot/telegram/telegramtest.Message", "bot/texts.book", "bot/texts.grantBook", "bot/texts.peopleBook", "cmd/internal/apptest.scene", "policy.Request", "tools.Call", "tools.Trail", "tools/audit.Line", "tools/audit.record",
	"tools/mcp.Server", "tools/shell/sandbox/warden.Plan",
}

// proportions checks the length of a file and its functions, and the width of its structs.
func (f goFile) proportions() []Problem {
	if f.test || ast.IsGenerated(f.ast) {
		return nil
	}
	var out []Problem
	if f.lines > maxFile {
		out = append(out, Problem{File: f.name, Rule: "length", Text: fmt.Sprintf("has %d lines; at most %d: split it by idea", f.lines, maxFile)})
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if n := f.height(d); n > maxFunc {
				out = append(out, f.at(d.Pos(), "function", fmt.Sprintf("%s has %d lines; at most %d", d.Name.Name, n, maxFunc)))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				out = append(out, f.width(spec)...)
			}
		}
	}
	return out
}

// height is how many lines a function has, its comment not counted.
func (f goFile) height(d *ast.FuncDecl) int {
	return f.fset.Position(d.End()).Line - f.fset.Position(d.Pos()).Line + 1
}

// width checks that a struct has not grown into a room where everything lies.
func (f goFile) width(spec ast.Spec) []Problem {
	named, ok := spec.(*ast.TypeSpec)
	if !ok {
		return nil
	}
	s, ok := named.Type.(*ast.StructType)
	name := f.dir + "." + named.Name.Name
	if !ok || s.Fields.NumFields() <= maxFields || within(f.dir, "cmd/internal/config") || strings.HasSuffix(name, "Options") ||
		contains(wideRecords, name) {
		return nil
	}
	return []Problem{f.at(named.Pos(), "struct", fmt.Sprintf("%s has %d fields; at most %d where it is not configuration or a record: name its parts",
		named.Name.Name, s.Fields.NumFields(), maxFields))}
}

// checkFunctions checks that nearly all functions of the program are short.
func checkFunctions(files []goFile) []Problem {
	var heights []int
	for _, f := range files {
		if f.test || forTests(f.dir) || ast.IsGenerated(f.ast) {
			continue
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				heights = append(heights, f.height(d))
			}
		}
	}
	if len(heights) == 0 {
		return nil
	}
	slices.Sort(heights)
	if n := heights[(len(heights)-1)*95/100]; n > usualFunc {
		return []Problem{{File: path.Dir("go.mod"), Rule: "function", Text: fmt.Sprintf("95 of 100 functions have up to %d lines; that is to be %d at most", n, usualFunc)}}
	}
	return nil
}
