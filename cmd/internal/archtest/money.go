package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// wireWords is the package with the interfaces of what costs money.
const wireWords = "agent/llm"

// runnersCall is the file of the Runner that calls the model of a turn. It reserves and settles itself, because it
// settles only after the beginning of its turn is stored.
const runnersCall = "agent/ask.go"

// costly are the interfaces whose calls cost money, and the calls themselves.
var (
	costly      = []string{"Provider", "Embedder"}
	costlyCalls = []string{"Chat", "Embed", "Transcribe", "Speak", "Draw"}
)

// wirers make what costs money and call nothing of it: the package that builds the models, and the one that wires.
var wirers = []string{wiring, "cmd/internal/providers"}

// checkMoney checks that nothing calls a model, embeddings or a transcription unmetered: other packages than those of
// the providers, the one that meters and the Runner hold agent/spend's types, and the wiring calls nothing.
func checkMoney(files []goFile) []Problem {
	var out []Problem
	for _, f := range files {
		if f.test || forTests(f.dir) || within(f.dir, wireWords) || f.dir == "agent/spend" {
			continue
		}
		find := f.holds
		if withinAny(f.dir, wirers) || f.dir == "agent" {
			find = f.calls
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if text := find(n); text != "" {
				out = append(out, f.at(n.Pos(), "money", text))
			}
			return true
		})
	}
	return out
}

// holds says what is wrong with a use of a type whose calls cost money; "" = nothing.
func (f goFile) holds(n ast.Node) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok || !contains(costly, s.Sel.Name) {
		return ""
	}
	if pkg, ok := s.X.(*ast.Ident); !ok || f.importOf(pkg.Name) != wireWords {
		return ""
	}
	return fmt.Sprintf("%s holds an llm.%s, whose calls nobody pays for; hold a type of agent/spend", f.dir, s.Sel.Name)
}

// calls says what is wrong with a call, in the packages that hold such types; "" = nothing.
func (f goFile) calls(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || f.name == runnersCall {
		return ""
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !contains(costlyCalls, s.Sel.Name) {
		return ""
	}
	return fmt.Sprintf("calls %s, which nobody pays for; call a type of agent/spend elsewhere", s.Sel.Name)
}

// importOf returns the directory within the module that a file imports under a name; "" = none.
func (f goFile) importOf(name string) string {
	for _, spec := range f.ast.Imports {
		full := strings.Trim(spec.Path.Value, "`\"")
		own := path.Base(full)
		if spec.Name != nil {
			own = spec.Name.Name
		}
		if own != name {
			continue
		}
		for _, i := range f.imports {
			if i.path == full {
				return i.local
			}
		}
	}
	return ""
}
