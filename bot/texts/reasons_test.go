package texts_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	t.Parallel()
	for english, want := range map[string]string{
		"":                             "",
		"No rule allows `touch it`.":   "Keine Regel erlaubt `touch it`.",
		"No rule allows write on `a`.": "Keine Regel erlaubt das Schreiben auf `a`.",
		"No rule allows `a. on b`.":    "Keine Regel erlaubt `a. on b`.",
		"No rule allows `echo A rule denies x.\nmore`.":                                     "Keine Regel erlaubt `echo A rule denies x.\nmore`.",
		"A rule denies to delete `/a b`.":                                                   "Eine Regel verbietet das Löschen: `/a b`.",
		"It may write `/etc/x`, which a rule denies.":                                       "Möglich ist das Schreiben von `/etc/x`, was eine Regel verbietet.",
		"It is not certain what `$x: y` runs: the command name comes from input.":           "Es ist nicht sicher, was `$x: y` ausführt: der Name des Befehls kommt aus der Eingabe.",
		"It is not certain what `eval x` runs: something that has no German words.":         "Es ist nicht sicher, was `eval x` ausführt.",
		"It is not certain which files `cat $x` reads: a word is not known before it runs.": "Es ist nicht sicher, welche Dateien `cat $x` liest: ein Wort steht erst fest, wenn es läuft.",
		"`--output` of git diff writes a file, and the rule does not name it.":              "`--output` kann mehr, als die Regel nennt.",
		"The redirection in `a > b` writes to `b`.":                                         "Die Umleitung in `a > b` schreibt nach `b`.",
		"`.bashrc` is obeyed by every shell: its content decides what later commands do.":   "Nach `.bashrc` richten sich Programme beim Start: Was dort steht, bestimmt, was spätere Befehle tun.",
		"A sentence of tomorrow.":                                                           "Eine Regel verlangt hier eine Entscheidung.",
	} {
		if got := w.Reason("de", english); got != want {
			t.Errorf("%q: %q, want %q", english, got, want)
		}
		if got := w.Reason("en", english); got != english {
			t.Errorf("English changed: %q", got)
		}
	}
	if got := w.Note("de", "server x · untrusted · The server says: it only reads, it reaches other systems. It is not a trusted server."); got !=
		"Server x · nicht vertrauenswürdig · Der Server sagt: er liest nur, er erreicht andere Systeme. Er ist nicht vertrauenswürdig." {
		t.Error(got)
	}
}

func TestReasonsElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ language, english, want string }{
		{"es", "A rule denies to write `/a b`.", "Una regla prohíbe escribir: `/a b`."},
		{"es", "A rule denies `rm`.", "Una regla prohíbe `rm`."},
		{"es", "It is not certain what `$x` runs: the text cannot be parsed.", "No es seguro qué ejecuta `$x`: el texto no se puede analizar."},
		{"ru", "No rule allows read, write on `a`.", "Ни одно правило не разрешает читать, записывать: `a`."},
		{"ru", "The tool bash is blocked for 3 more min because it failed too often (5 of 6 calls).", "Инструмент bash отключён ещё на 3 мин, потому что слишком часто не срабатывал."},
		{"ru", "A sentence of tomorrow.", "Правило требует здесь решения."},
	} {
		if got := w.Reason(tt.language, tt.english); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.english, got, tt.want)
		}
	}
}

func TestSandboxElsewhere(t *testing.T) {
	t.Parallel()
	level := "kernel sandbox: Landlock ABI 5 + seccomp + a root of its own; but the processes of a command share the table of the machine, modes, owners and times of files outside can be changed (only Linux has one, this is x)"
	want := "Sandbox des Kernels: Landlock ABI 5 + seccomp + eigenes Wurzelverzeichnis; aber die Prozesse eines Befehls sind in der Tabelle der Maschine, Rechte, Besitzer und Zeiten von Dateien außerhalb sind änderbar (die hat nur Linux, das hier ist x)"
	if got := w.Said("de", level); got != want {
		t.Errorf("%q", got)
	}
	if got := w.Said("de", "sandbox "+level); got != "Sandbox: "+want {
		t.Errorf("%q", got)
	}
	if got := w.ServerFailed("es", "files", "there is a server files already; /mcp remove files takes it away"); got != "files no funciona: ya hay un servidor files; /mcp remove files lo quita" {
		t.Errorf("%q", got)
	}
	if got := w.Said("de", "tools.policy.rules[0]"); got != "tools.policy.rules[0]" {
		t.Errorf("a name: %q", got)
	}
}

// TestEveryReasonIsTranslated looks into the source of the policy: what a reason begins with must have a sentence
// in every language.
func TestEveryReasonIsTranslated(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../policy/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, sentence := range sentences(n) {
				found++
				for _, l := range w.Languages()[1:] {
					if got := w.Reason(l, sentence); got == w.Reason(l, "A sentence of tomorrow.") {
						t.Errorf("%s: %q is not in [reasons] of languages/%s.toml", name, sentence, l)
					}
				}
			}
			return true
		})
	}
	if found < 25 {
		t.Errorf("only %d reasons found: does the policy still build them as this test expects?", found)
	}
}

// sentences are the reasons that a node of the policy's source makes, with `x` for what is only known when it runs.
func sentences(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		values := map[string]string{}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					values[key.Name] = text(kv.Value)
				}
			}
		}
		switch _, about := values["about"]; {
		case values["Reason"] != "" && strings.HasSuffix(values["Reason"], "."):
			return []string{values["Reason"]}
		case about && values["after"] != "" && values["after"] != "x":
			return []string{values["before"] + "`x`" + values["after"]}
		case values["before"] != "" && strings.HasSuffix(values["before"], "."):
			return []string{values["before"]}
		}
	case *ast.CallExpr: // ask(before, about, after) and the like
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "ask" && len(n.Args) == 3 && text(n.Args[2]) != "x" {
			return []string{text(n.Args[0]) + "`x`" + text(n.Args[2])}
		}
	case *ast.AssignStmt:
		var list []string
		for _, value := range n.Rhs {
			if s := text(value); strings.HasSuffix(s, ".") && strings.Contains(s, " ") && s[0] >= 'A' && s[0] <= 'Z' {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// text is a string as the source builds it, with x for the parts that are not written there.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "Why" { // what an option does: "of git diff writes a file"
			return "of x"
		}
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "quoted" {
			return "`x`"
		}
	}
	return "x"
}

// TestEveryRefusalIsTranslated looks into the source of the tools: why they refuse a file or an address, whoever asks.
func TestEveryRefusalIsTranslated(t *testing.T) {
	t.Parallel()
	found := 0
	for _, from := range []struct {
		files, function string
		argument        int
	}{{"../../tools/file/*.go", "refused", 1}, {"../../policy/netrule/*.go", "refuse", 1}} {
		files, err := filepath.Glob(from.files)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) <= from.argument {
					return true
				}
				if function, ok := call.Fun.(*ast.Ident); !ok || function.Name != from.function {
					return true
				}
				sentence := strings.ReplaceAll(text(call.Args[from.argument]), "%s", `"x"`)
				if sentence == "x" {
					return true
				}
				found++
				for _, l := range w.Languages()[1:] {
					if w.Said(l, sentence) == sentence {
						t.Errorf("%s: %q is not in [reasons] of languages/%s.toml", name, sentence, l)
					}
				}
				return true
			})
		}
	}
	if found < 25 {
		t.Errorf("only %d refusals found", found)
	}
}

// TestEveryOutageIsTranslated looks into the source of the store: what it says of a database that is out of order.
func TestEveryOutageIsTranslated(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../persistence/sql/errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Name.Name != "sqliteReason" {
			return true
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && text(lit) != "" {
				found++
				for _, l := range w.Languages()[1:] {
					if got := w.OutOfOrder(l, text(lit)); strings.Contains(got, text(lit)) {
						t.Errorf("%q is not in [reasons] of languages/%s.toml", text(lit), l)
					}
				}
			}
			return true
		})
		return false
	})
	if found < 10 {
		t.Errorf("only %d reasons found", found)
	}
}
