// Package command says which commands a bash text would run, without running anything.
//
// It parses with mvdan.cc/sh, resolves quotes and escapes, and follows wrappers (env, timeout, xargs, find -exec …),
// interpreters (sh -c …) and eval to what they run. What the text alone does not reveal is described in words
// (Script.Indirect), so that the caller can ask a person. The package is pure: no I/O, no clock, no goroutine. It is
// analysis, not enforcement; the kernel sandbox enforces.
package command

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/reason"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of one Parse. A script that exceeds any of them is not Certain.
const (
	// MaxText is the maximum length of a parsed text in bytes.
	MaxText = 64 << 10
	// maxNested limits the bytes of nested text (sh -c, eval, here-documents …).
	maxNested = 256 << 10
	// maxDepth limits the nesting of texts and wrappers.
	maxDepth = 24
	// maxBrackets limits the nesting of brackets, counted without regard to quotes.
	maxBrackets = 400
	// maxReasons limits the reasons in Indirect.
	maxReasons = 16
)

// Script is what one bash text would run.
type Script struct {
	// Text is the text as it was given.
	Text string
	// Commands are all simple commands at any depth, an outer one before those that it runs.
	Commands []Command
	// Redirects are all redirections at any depth.
	Redirects []Redirect
	// Indirect says why it is uncertain what runs; empty if it is certain.
	Indirect []reason.Reason
	// Doubts says what may make a known command do more than its words say: a variable that is not known to be
	// harmless, a script in another language. It does not matter where a command can change nothing.
	Doubts []reason.Reason
	// Problem says why the text cannot be parsed; "" if it can. Commands then contains what a rough reading found.
	Problem string
	// RunsDownload is true when an interpreter gets its program from a network command ("curl … | bash").
	RunsDownload bool
}

// Command is one simple command.
type Command struct {
	// Name is the base name of the first word, in the case of the text.
	Name string
	// Words are the words with quotes and escapes undone. A word with an expansion keeps its source text.
	Words []string
	// Marks says for each word what the shell would still do with it; nil if nothing for all of them.
	Marks []Mark
	// Dynamic is true if a word contains an expansion, or if words are added at run time (xargs).
	Dynamic bool
	// Text is Words joined by spaces; permission rules match it.
	Text string
	// Depth is the number of subshells, substitutions, functions, wrappers and interpreters around the command.
	Depth int
	// Via lists the wrappers and interpreters around it, outermost first: "sudo", "sh -c", "find -exec".
	Via []string
	// Values are what its words with variables may be, as far as the text gives these literal values.
	Values []FileName
	// Departures are what it asks for beyond the plain use of a well-known program; none if the program is not in the
	// tables.
	Departures []Departure
	// Sets are the variables that it gets by assignments before it, or before what runs it.
	Sets []Variable
}

// Variable is an assignment before a command.
type Variable struct {
	Name string
	// Value is the value with quotes and escapes undone, if it is Known.
	Value string
	Known bool
	// Harmless: with this value, it chooses neither a program nor code, configuration, an address or a place.
	Harmless bool
}

// Mark is the set of what the shell does with a word before the command gets it.
type Mark uint8

// Bits of a Mark.
const (
	// MarkExpansion: the word's value is only known at run time.
	MarkExpansion Mark = 1 << iota
	// MarkPattern: an unquoted * ? or [ may expand to file names.
	MarkPattern
	// MarkTilde: an unquoted ~ may expand to a home directory.
	MarkTilde
)

// Redirect is one redirection.
type Redirect struct {
	// Op is the operator, such as ">", ">>", "<", ">&", "<<", "<<<".
	Op string
	// Target is the file, descriptor or here-string; "" for a here-document.
	Target string
	// Dynamic is true if Target contains an expansion; it is the source text then.
	Dynamic bool
	// Writes is true if a file may be created or changed; false for /dev/null and for copied descriptors.
	Writes bool
}

// Parse parses text like bash. It never panics, and its work is limited: text longer than MaxText is a Problem.
func Parse(text string) Script {
	f := &finder{budget: maxNested}
	f.out.Text = text
	f.out.Problem = whyUnreadable(text)
	if f.out.Problem == "" {
		if utf8.ValidString(text) {
			if strings.Contains(text, "\r") {
				f.addIndirect(reason.New(reason.TextReturn))
			}
		} else {
			f.addIndirect(reason.New(reason.TextEncoding))
		}
		f.out.Problem = f.parseText(text, place{})
	}
	if f.out.Problem != "" {
		f.readRoughly(text, place{})
	}
	f.resolveWords()
	if f.arrays && f.values {
		f.addIndirect(reason.New(reason.ArrayDeclared))
	}
	return f.out
}

// Followed reports whether all commands that the shell would run are known.
func (s Script) Followed() bool { return s.Problem == "" && len(s.Indirect) == 0 }

// Judged reports whether everything that would run is known, and that it does what the words say, but for the variables
// that commands set.
func (s Script) Judged() bool { return s.Followed() && len(s.Doubts) == 0 }

// Certain reports whether everything that would run is known, and that it does what the words say.
func (s Script) Certain() bool { return s.Judged() && len(s.Reasons()) == 0 }

// Unclear is the first reason why a script is not Certain.
func (s Script) Unclear() reason.Reason {
	switch s.Problem {
	case "":
		return s.Reasons()[0]
	case tooLong:
		return reason.New(reason.TextLong)
	case hasNul:
		return reason.New(reason.TextNul)
	case tooDeep:
		return reason.New(reason.TextBrackets)
	}
	return reason.Reason{Code: reason.TextUnparsed, Detail: s.Problem}
}

// Problems of a text that is not given to the parser.
const (
	tooLong = "the command is longer than 64 KiB"
	hasNul  = "the command contains a NUL byte"
	tooDeep = "the command has too many nested brackets"
)

// Reasons says why a script that can be parsed is not Certain.
func (s Script) Reasons() []reason.Reason {
	reasons := slices.Concat(s.Indirect, s.Doubts)
	for i := range s.Commands {
		for _, v := range s.Commands[i].Sets {
			if !v.Harmless {
				reasons = append(reasons, setBy(anAssignment, reason.SetsPrograms, clipText(v.Name)))
			}
		}
	}
	return reasons
}

// whyUnreadable returns why a text is not given to the parser at all; "" if it is.
func whyUnreadable(text string) string {
	if len(text) > MaxText {
		return tooLong
	}
	open := 0
	for i := range len(text) {
		switch text[i] {
		case 0:
			return hasNul
		case '(', '{', '[':
			if open++; open > maxBrackets {
				return tooDeep
			}
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return ""
}

// place is the position of a command in the script.
type place struct {
	depth int
	via   []string
	nest  int // texts and wrappers around it
	sets  []Variable
	stdin *stdin // input from a here-document or here-string
}

// stdin is what the text tells about the standard input of a command.
type stdin struct {
	text  string
	known bool
	here  bool // a here-string: always indirect for an interpreter
}

// belowWrapper returns the place of the command that a wrapper at p runs.
func (p place) belowWrapper(via string) place {
	p.depth++
	p.nest++
	p.via = append(slices.Clip(p.via), via)
	return p
}

// finder collects the results of one Parse.
type finder struct {
	out          Script
	budget       int               // bytes of nested text that may still be parsed
	declared     bool              // the current command is a declaration in the grammar, so its values are not split
	arrays       bool              // a variable becomes an array
	values       bool              // a declaration has an unknown value
	given        map[string][]word // the values that the text gives to variables
	written      string            // the source of the next command, which is often its text
	lastDownload int               // 1 + index of the last command that uses the network
	lastTake     int               // 1 + index of the last command that runs an unknown program
}

// addIndirect adds a reason, once.
func (f *finder) addIndirect(why reason.Reason) {
	if len(f.out.Indirect) < maxReasons && !slices.ContainsFunc(f.out.Indirect, why.Equal) {
		f.out.Indirect = append(f.out.Indirect, why)
	}
}

// addDoubt adds a doubt, once.
func (f *finder) addDoubt(why reason.Reason) {
	if len(f.out.Doubts) < maxReasons && !slices.ContainsFunc(f.out.Doubts, why.Equal) {
		f.out.Doubts = append(f.out.Doubts, why)
	}
}

// parseNested parses text that a command runs as shell code.
func (f *finder) parseNested(text, via string, at place) {
	at = at.belowWrapper(via)
	at.stdin = nil
	f.budget -= len(text)
	if at.nest > maxDepth || f.budget < 0 {
		f.addIndirect(reason.New(reason.TextNested))
		return
	}
	if problem := f.parseText(text, at); problem != "" {
		f.addIndirect(reason.Reason{Code: reason.GivenUnparsed, Args: []string{via}, Detail: problem})
		f.readRoughly(text, at)
	}
}

// parseText walks one text and returns why it cannot be parsed; "" if it can.
func (f *finder) parseText(text string, at place) (problem string) {
	err := parseFor(text, func(file *syntax.File) {
		w := walker{finder: f, src: text, at: at, frames: make([]frame, 0, 16), tokens: make([]token, 0, 4+len(text)/8)}
		syntax.Walk(file, w.visitNode)
		if w.compareWithPlain() {
			f.readAgain(text, at)
		}
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// parsers are idle parsers of bash.
var parsers = sync.Pool{
	New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)) },
}

// parseFor parses a text for use. A panic, which the parser has of its own, is an error.
func parseFor(text string, use func(*syntax.File)) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the shell parser gave up")
		}
	}()
	parser := parsers.Get().(*syntax.Parser) //nolint:forcetypeassert // nothing else is put there
	file, err := parser.Parse(strings.NewReader(text), "")
	if err == nil {
		use(file)
	}
	parsers.Put(parser)
	return err
}

// readAgain adds what a rough reading finds in addition to the parser, for text that bash may read differently.
func (f *finder) readAgain(text string, at place) {
	n := len(f.out.Commands)
	f.readRoughly(text, at)
	if strings.Contains(text, "\\\n") && strings.Contains(text, "#") {
		// A comment may end at the backslash before the newline.
		f.readRoughly(strings.ReplaceAll(text, "\\\n", "\n"), at)
	}
	known := make(map[string]bool, len(f.out.Commands))
	kept := f.out.Commands[:0]
	for i, c := range f.out.Commands {
		if i < n || !known[c.Text] {
			kept = append(kept, c)
		}
		known[c.Text] = true
	}
	f.out.Commands = kept
}

// readRoughly finds commands in text that cannot be parsed, or that bash may read differently, so that blocked names
// are still found. It drops quotes and backslashes, and every separator starts a command.
func (f *finder) readRoughly(text string, at place) {
	text = strings.NewReplacer(`"`, "", `'`, "", "\\\n", "", `\`, "", "$(", "\n", "`", "\n", "<&-", "\n", ">&-",
		"\n").Replace(text)
	for segment := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return strings.ContainsRune("\n\r;|&(){}", r) }) {
		var words []word
		target := false
		for field := range strings.FieldsSeq(segment) {
			operator := strings.TrimLeft(field, "0123456789")
			redirects := operator != "" && (operator[0] == '<' || operator[0] == '>')
			if len(words) == 0 && (redirects || target || isAssignment(field)) {
				target = redirects && strings.Trim(operator, "<>") == ""
				continue
			}
			words = append(words, word{text: field})
		}
		if len(words) > 0 {
			f.recordCommand(words, at)
		}
	}
}
