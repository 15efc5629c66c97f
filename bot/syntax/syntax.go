// Package syntax divides code for colours: into comments, strings, numbers and the words of its language. Its rules are
// data (languages.json), which the page of the simulator applies as well: regular expressions that mean the same in RE2
// and in a browser.
package syntax

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// Languages is the JSON of the rules: what comments and strings look like (styles), the words of each language, and
// other names of languages (same).
//
//go:embed languages.json
var Languages []byte

// Longest is how many bytes of code are divided; longer code is plain.
const Longest = 50_000

// Kind is what a piece of code is.
type Kind string

// The kinds. What is none of them is plain.
const (
	Plain   Kind = ""
	Comment Kind = "comment"
	String  Kind = "string"
	Number  Kind = "number"
	Word    Kind = "word"
	Added   Kind = "plus"  // a line of a difference
	Removed Kind = "minus" // as above
)

// Piece is a piece of code.
type Piece struct {
	Text string
	Kind Kind
}

// rules are those of languages.json.
type rules struct {
	Styles map[string]struct {
		Plain   string `json:"plain"` // what looks like the beginning of a comment and is none
		Comment string `json:"comment"`
		String  string `json:"string"`
		Word    string `json:"word"` // a form that is always a word of the language; "" = only those in the list
	} `json:"styles"`
	Languages map[string]struct {
		Style   string `json:"style"`
		Words   string `json:"words"`
		AnyCase bool   `json:"anycase"`
	} `json:"languages"`
	Same map[string]string `json:"same"`
}

// language is one language, ready for use.
type language struct {
	pattern *regexp.Regexp
	kinds   []Kind // of its groups
	words   map[string]bool
	anyCase bool
	always  bool // every word that is found counts
}

// readRules reads the rules at their first use: a service that shows no code to a terminal never does.
var readRules = sync.OnceValue(func() (r rules) {
	if err := json.Unmarshal(Languages, &r); err != nil {
		return rules{} // they are part of the program; a test reads them
	}
	return r
})

// compiled are the languages that were used, by name; nil = there is no such language.
var compiled sync.Map

// languageOf returns the language of a name; nil = it is not known.
func languageOf(name string) *language {
	all := readRules()
	if other, ok := all.Same[name]; ok {
		name = other
	}
	l, ok := all.Languages[name]
	if !ok {
		return nil
	}
	if known, ok := compiled.Load(name); ok {
		return known.(*language)
	}
	style := all.Styles[l.Style]
	made := &language{words: map[string]bool{}, anyCase: l.AnyCase, always: style.Word != ""}
	for word := range strings.FieldsSeq(l.Words) {
		made.words[word] = true
	}
	word := `[A-Za-z_$][\w$]*`
	if made.always {
		word = style.Word
	}
	var parts []string
	for _, part := range []struct {
		kind    Kind
		pattern string
	}{{Plain, style.Plain}, {Comment, style.Comment}, {String, style.String}, {Number, `\b\d[\w.]*`}, {Word, word}} {
		if part.pattern != "" {
			parts, made.kinds = append(parts, "("+part.pattern+")"), append(made.kinds, part.kind)
		}
	}
	pattern, err := regexp.Compile(strings.Join(parts, "|"))
	if err != nil {
		return nil // as for the rules
	}
	made.pattern = pattern
	compiled.Store(name, made)
	return made
}

// Known reports whether a language is known: code in it is divided, also while nothing in it is found.
func Known(name string) bool {
	name = strings.ToLower(name)
	return isDiff(name) || languageOf(name) != nil
}

func isDiff(name string) bool { return name == "diff" || name == "patch" }

// Divide returns code in pieces, which together are the code. Code of a language that is not known is one piece.
func Divide(code, name string) []Piece {
	name = strings.ToLower(name)
	if len(code) > Longest {
		return []Piece{{Text: code}}
	}
	if isDiff(name) {
		return divideDiff(code)
	}
	l := languageOf(name)
	if l == nil {
		return []Piece{{Text: code}}
	}
	var list []Piece
	at := 0
	for _, match := range l.pattern.FindAllStringSubmatchIndex(code, -1) {
		start, end := match[0], match[1]
		kind := l.kindOf(code[start:end], match)
		if start == end || kind == Plain {
			continue
		}
		if start > at {
			list = append(list, Piece{Text: code[at:start]})
		}
		list = append(list, Piece{Text: code[start:end], Kind: kind})
		at = end
	}
	if at < len(code) {
		list = append(list, Piece{Text: code[at:]})
	}
	return list
}

// kindOf returns what a match is; groups are its offsets.
func (l *language) kindOf(text string, groups []int) Kind {
	for i, kind := range l.kinds {
		if groups[2*i+2] < 0 {
			continue
		}
		if l.anyCase {
			text = strings.ToLower(text)
		}
		if kind == Word && !l.always && !l.words[text] {
			return Plain
		}
		return kind
	}
	return Plain
}

// divideDiff divides a difference into its lines.
func divideDiff(code string) []Piece {
	var list []Piece
	for line := range strings.SplitAfterSeq(code, "\n") {
		piece := Piece{Text: line}
		switch {
		case line == "":
			continue
		case startsAny(line, "@@", "diff ", "index ", "+++", "---"):
			piece.Kind = Comment
		case line[0] == '+':
			piece.Kind = Added
		case line[0] == '-':
			piece.Kind = Removed
		}
		list = append(list, piece)
	}
	return list
}

func startsAny(line string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}
