// Package outline lists what a source file declares: functions, types, constants, keys and headings, with their lines.
//
// Go, Markdown and TOML are read by the parsers of their libraries; mistakes in a file cost what contains them, not
// what follows. The other languages have a scanner per family. A scanner knows comments, strings and brackets, so that
// nothing inside them is taken for a declaration, and it never fails: what it does not understand is left out. JSON and
// YAML have scanners too, because their parsers give nothing of what follows a mistake, and take comments in JSON and
// the templates of Helm for mistakes.
//
// Time is linear in the size of the file and bounded by the limits below, whatever the file contains.
// Scanners are loops without recursion; Go's parser is recursive, and can need 128 MB of stack for a
// file that somebody made for that.
package outline

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of one file; what exceeds them is left out.
const (
	MaxBytes   = 1 << 20 // of the file that are read
	MaxSymbols = 4000
	MaxName    = 200 // bytes
	MaxDoc     = 400 // bytes
	maxScopes  = 200 // nested brackets whose contents are looked at
)

// Language is the name of a language, as in [index] languages.
type Language string

// The languages.
const (
	Go         Language = "go"
	Rust       Language = "rust"
	Python     Language = "python"
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
	Java       Language = "java"
	C          Language = "c"
	CPP        Language = "cpp"
	Ruby       Language = "ruby"
	Bash       Language = "bash"
	TOML       Language = "toml"
	JSON       Language = "json"
	YAML       Language = "yaml"
	Markdown   Language = "markdown"
)

// Languages returns all languages.
func Languages() []Language {
	return []Language{Go, Rust, Python, JavaScript, TypeScript, Java, C, CPP, Ruby, Bash, TOML, JSON, YAML, Markdown}
}

// Kind is what a symbol is.
type Kind string

// The kinds.
const (
	Function  Kind = "function"
	Method    Kind = "method"
	Class     Kind = "class"
	Struct    Kind = "struct"
	Interface Kind = "interface"
	Enum      Kind = "enum"
	Trait     Kind = "trait"
	Type      Kind = "type"
	Constant  Kind = "constant"
	Variable  Kind = "variable"
	Module    Kind = "module"
	Macro     Kind = "macro"
	Section   Kind = "section" // a heading or a table
	Key       Kind = "key"     // of a configuration or data file
)

// Symbol is a declaration. Lines are counted from 1.
type Symbol struct {
	Name      string
	Container string // the type, module or section it belongs to; "" = the file
	Kind      Kind
	Start     int // first line
	Line      int // the line with the name
	End       int // last line
	Doc       string
}

// Outline is what a file declares, in the order of the file.
type Outline struct {
	Symbols   []Symbol
	Truncated bool // a limit was reached
}

// Parse lists the symbols of a file. It accepts any bytes, and returns an empty Outline for an unknown language.
func Parse(lang Language, src []byte) Outline {
	out := &builder{}
	if len(src) > MaxBytes {
		src = src[:MaxBytes]
		out.Truncated = true
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	switch lang {
	case Go:
		golang(src, out)
	case Rust, JavaScript, TypeScript, Java, C, CPP:
		braces(lang, src, out)
	case Python:
		python(src, out)
	case Ruby:
		ruby(src, out)
	case Bash:
		bash(src, out)
	case TOML:
		toml(src, out)
	case JSON:
		jsonKeys(src, out)
	case YAML:
		yaml(src, out)
	case Markdown:
		markdown(src, out)
	}
	return out.Outline
}

// builder collects symbols within the limits.
type builder struct{ Outline }

// add appends a symbol and returns its index; -1 if it was left out.
func (b *builder) add(s Symbol) int {
	if s.Name == "" || len(s.Name) > MaxName || !utf8.ValidString(s.Name) {
		return -1
	}
	if len(b.Symbols) >= MaxSymbols {
		b.Truncated = true
		return -1
	}
	if len(s.Container) > MaxName || !utf8.ValidString(s.Container) {
		s.Container = ""
	}
	s.Doc = cutText(s.Doc, MaxDoc)
	s.Line = max(s.Line, s.Start)
	s.End = max(s.End, s.Line)
	// The strings are parts of the file, which must not be kept in memory because of them.
	s.Name, s.Container, s.Doc = strings.Clone(s.Name), strings.Clone(s.Container), strings.Clone(s.Doc)
	b.Symbols = append(b.Symbols, s)
	return len(b.Symbols) - 1
}

// end sets the last line of a symbol.
func (b *builder) end(i, line int) {
	if i >= 0 && line > b.Symbols[i].End {
		b.Symbols[i].End = line
	}
}

// cutText shortens a text to n bytes of valid UTF-8.
func cutText(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, ""))
}

// extensions are the languages by the extension of a file's name, in lower case.
func byExtension(ext string) Language {
	switch ext {
	case ".go":
		return Go
	case ".rs":
		return Rust
	case ".py", ".pyi", ".pyw":
		return Python
	case ".js", ".mjs", ".cjs", ".jsx":
		return JavaScript
	case ".ts", ".mts", ".cts", ".tsx":
		return TypeScript
	case ".java":
		return Java
	case ".c":
		return C
	case ".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx", ".ipp", ".inl":
		return CPP
	case ".rb", ".rake", ".gemspec":
		return Ruby
	case ".sh", ".bash", ".bats":
		return Bash
	case ".toml":
		return TOML
	case ".json", ".jsonc":
		return JSON
	case ".yaml", ".yml":
		return YAML
	case ".md", ".markdown":
		return Markdown
	}
	return ""
}

// Of returns the language of a file by its name; "" = none of ours.
func Of(name string) Language {
	base := path.Base(name)
	switch base {
	case "Rakefile", "Gemfile", "Vagrantfile":
		return Ruby
	case "Cargo.lock", "poetry.lock", "uv.lock", "package-lock.json", "composer.lock", "pnpm-lock.yaml":
		return "" // written by programs: thousands of keys that nobody looks for
	}
	return byExtension(strings.ToLower(path.Ext(base)))
}
