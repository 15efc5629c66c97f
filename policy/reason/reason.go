// Package reason says why a call is allowed, asked about or refused: by a code with arguments, which other packages
// render in the languages of people, and in English for the audit log and the model. It is pure and safe for concurrent
// use.
package reason

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Reason is a code with what its sentence leaves open. Without a code it is Detail, as it is. The zero value is none.
type Reason struct {
	Code Code `json:"code,omitempty"`
	// Args are quoted where they come from a call: "`rm -rf x`".
	Args []string `json:"args,omitempty"`
	// Detail is English. Of a reason with a code, only the English sentence contains it.
	Detail string `json:"detail,omitempty"`
	// Of are the reasons inside this one.
	Of []Reason `json:"parts,omitempty"`
}

var sentences = sync.OnceValue(english)

// English returns the sentence of each code, with gaps as [Reason.In] fills them.
func English() map[Code]string { return maps.Clone(sentences()) }

// New returns a reason with its arguments.
func New(code Code, args ...string) Reason { return Reason{Code: code, Args: args} }

// Plain returns a reason that is known as an English sentence only.
func Plain(english string) Reason { return Reason{Detail: english} }

// Or returns a reason, or what is known of it in English if it is none.
func Or(r Reason, english string) Reason {
	if r.Code == "" && r.Detail == "" {
		return Plain(english)
	}
	return r
}

// With adds the reasons inside it.
func (r Reason) With(of ...Reason) Reason {
	r.Of = of
	return r
}

// Notes returns what a card says about a call beside what it does, part by part.
func Notes(parts ...Reason) Reason { return New(Note).With(parts...) }

// And adds reasons to those inside it.
func (r Reason) And(more ...Reason) Reason {
	r.Of = append(slices.Clone(r.Of), more...)
	return r
}

// Verb is what a call does to a file, or that it uses the tool of that name, inside a reason.
func Verb(word string) Reason { return wordReason("verb_", word, UseTool) }

// Trust is the trust level of an MCP server.
func Trust(level string) Reason { return wordReason("trust_", level, Name) }

// From is where a text comes from: a source.Source, or what an older version or a tool calls it. "" is no reason.
func From(source string) Reason {
	if source == "" {
		return Reason{}
	}
	kind, name, _ := strings.Cut(source, ":")
	r := New(Code("from_" + strings.NewReplacer(" ", "_", "-", "_").Replace(kind)))
	if r.Known() {
		return r
	}
	if r.Args = []string{name}; name != "" && r.Known() {
		return r
	}
	return New(Name, source)
}

// aboutSource are the codes whose first argument is a source, which [From] says. They keep it as it is stored.
var aboutSource = []Code{ //nolint:gochecknoglobals // a table
	WayNetwork, WayServer, WayAddress, ContentFlagged, MemoryForeign,
}

// wordReason returns what a word means that is a part of a code, or the word as the argument of another code.
func wordReason(prefix, word string, other Code) Reason {
	if code := Code(prefix + word); sentences()[code] != "" {
		return New(code)
	}
	return New(other, word)
}

// Known reports whether this version can say it. A record of another one may have a code without a sentence here.
func (r Reason) Known() bool {
	if r.Code == "" {
		return r.Detail != ""
	}
	text, ok := sentences()[r.Code]
	unknown := func(of Reason) bool { return !of.Known() }
	return ok && strings.Count(text, "%s") == len(r.Args) && !slices.ContainsFunc(r.Of, unknown)
}

// Equal reports whether both say the same.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && r.Detail == other.Detail && slices.Equal(r.Args, other.Args) &&
		slices.EqualFunc(r.Of, other.Of, Reason.Equal)
}

// Quoting returns the reason with another first argument; "" = the call itself, which the sentence then calls "this".
func (r Reason) Quoting(arg string) Reason {
	if r.Args = slices.Clone(r.Args); len(r.Args) == 0 {
		r.Args = []string{""}
	}
	r.Args[0] = arg
	return r
}

// Map returns the reason with its arguments and details as change returns them.
func (r Reason) Map(change func(string) string) Reason {
	r.Args = slices.Clone(r.Args)
	for i := range r.Args {
		r.Args[i] = change(r.Args[i])
	}
	r.Detail = change(r.Detail)
	r.Of = slices.Clone(r.Of)
	for i := range r.Of {
		r.Of[i] = r.Of[i].Map(change)
	}
	return r
}

// String returns the English sentence; "" of what is not Known.
func (r Reason) String() string { return r.In(sentences()) }

// In returns the sentence of another language; "" of what is not Known. Its gaps are %s or %[2]s for the arguments,
// {of}, {.of}, {+of}, {~of} or {:of} for the reasons inside it, separated by commas, dots, plus signs or nothing, or
// behind a colon if there are any, and {} for the detail.
func (r Reason) In(language map[Code]string) string {
	if !r.Known() {
		return ""
	}
	if r.Code == "" {
		return r.Detail
	}
	if whole := language[r.Code+"_this"]; whole != "" && len(r.Args) > 0 && r.Args[0] == "" {
		r.Code, r.Args = r.Code+"_this", r.Args[1:]
	}
	if slices.Contains(aboutSource, r.Code) {
		r = r.Quoting(From(r.Args[0]).In(language))
	}
	text := r.fill(language[r.Code], language)
	args := make([]any, len(r.Args))
	for i, arg := range r.Args {
		if args[i] = arg; arg == "" {
			args[i] = language[This]
		}
	}
	return fmt.Sprintf(text, args...)
}

// fill fills the gaps that are no arguments, in one pass: what is filled in has none.
func (r Reason) fill(text string, language map[Code]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		switch text = after; name {
		case ":of":
			if len(r.Of) > 0 {
				b.WriteString(": " + r.list(", ", language))
			}
		case "of":
			b.WriteString(r.list(", ", language))
		case ".of":
			b.WriteString(r.list(" · ", language))
		case "+of":
			b.WriteString(r.list(" + ", language))
		case "~of":
			b.WriteString(r.list("", language))
		case "":
			b.WriteString(literal(r.Detail))
		}
	}
}

// list returns the reasons inside it.
func (r Reason) list(sign string, language map[Code]string) string {
	said := make([]string, len(r.Of))
	for i := range r.Of {
		said[i] = literal(r.Of[i].In(language))
	}
	return strings.Join(said, sign)
}

// literal is text that a format does not read.
func literal(text string) string { return strings.ReplaceAll(text, "%", "%%") }
