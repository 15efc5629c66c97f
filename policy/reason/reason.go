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

// Reason is a code with what its sentence leaves open. The zero value is none.
type Reason struct {
	Code Code `json:"code,omitempty"`
	// Args are quoted where they come from a call: "`rm -rf x`".
	Args []string `json:"args,omitempty"`
	// Detail is English, and only English sentences contain it.
	Detail string `json:"detail,omitempty"`
	// Of is a reason inside this one.
	Of *Reason `json:"of,omitempty"`
}

var sentences = sync.OnceValue(english)

// English returns the sentence of each code, with gaps as [Reason.In] fills them.
func English() map[Code]string { return maps.Clone(sentences()) }

// New returns a reason with its arguments.
func New(code Code, args ...string) Reason { return Reason{Code: code, Args: args} }

// With adds the reason inside it.
func (r Reason) With(of Reason) Reason {
	r.Of = &of
	return r
}

// Verb is what a call does to a file, or the name of a tool, inside a reason.
func Verb(word string) Reason {
	if code := Code("verb_" + word); sentences()[code] != "" {
		return New(code)
	}
	return New(Name, word)
}

// Known reports whether this version has a sentence for it. A record of another one may have a code without.
func (r Reason) Known() bool {
	text, ok := sentences()[r.Code]
	return ok && strings.Count(text, "%s") == len(r.Args) && (r.Of == nil || r.Of.Known())
}

// Equal reports whether both say the same.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && r.Detail == other.Detail && slices.Equal(r.Args, other.Args) &&
		(r.Of == nil) == (other.Of == nil) && (r.Of == nil || r.Of.Equal(*other.Of))
}

// Quoting returns the reason with another first argument; "" = the call itself, which the sentence then calls "this".
func (r Reason) Quoting(arg string) Reason {
	whole := map[Code]Code{RuleAsks: RuleAsksThis, NoRule: NoRuleThis}
	if code, ok := whole[r.Code]; ok && arg == "" {
		r.Code, r.Args = code, nil
		return r
	}
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
	if r.Of != nil {
		return r.With(r.Of.Map(change))
	}
	return r
}

// String returns the English sentence; "" of what is not Known.
func (r Reason) String() string { return r.In(sentences()) }

// In returns the sentence of another language; "" of what is not Known. Its gaps are %s or %[2]s for the arguments, {of}
// or {:of} for the reason inside it, and {} for the detail.
func (r Reason) In(language map[Code]string) string {
	if !r.Known() {
		return ""
	}
	text := language[r.Code]
	if strings.Contains(text, "{") {
		of, behind := "", ""
		if r.Of != nil {
			of = r.Of.In(language)
			behind = ": " + of
		}
		text = fill(text, literal(behind), literal(of), literal(r.Detail))
	}
	args := make([]any, len(r.Args))
	for i, arg := range r.Args {
		if args[i] = arg; arg == "" {
			args[i] = language[This]
		}
	}
	return fmt.Sprintf(text, args...)
}

// fill fills the gaps that are no arguments, in one pass: what is filled in has none.
func fill(text, behind, of, detail string) string {
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
			b.WriteString(behind)
		case "of":
			b.WriteString(of)
		case "":
			b.WriteString(detail)
		}
	}
}

// literal is text that a format does not read.
func literal(text string) string { return strings.ReplaceAll(text, "%", "%%") }
