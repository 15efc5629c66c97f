// Package command reads bash text and says which commands it would run, without running anything.
//
// It parses with mvdan.cc/sh, resolves quotes and escapes, and follows wrappers (env, timeout, xargs, find -exec …),
// interpreters (sh -c …) and eval into what they run. What cannot be known from the text alone is said in words
// (Script.Indirect), so that the caller can ask a person. The package is pure: no I/O, no clock, no goroutine.
// It is analysis, not enforcement: the kernel sandbox stands behind it.
package command

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of one Parse. Over any of them the script is not Certain.
const (
	// MaxText is the longest text in bytes that is parsed.
	MaxText = 64 << 10
	// maxNested is how many bytes of nested text (sh -c, eval, here-documents …) are parsed in all.
	maxNested = 256 << 10
	// maxDepth is how deep texts and wrappers may be nested in each other.
	maxDepth = 24
	// maxBrackets is how deep brackets may be open, counted without regard to quotes.
	maxBrackets = 400
	// maxReasons is how many reasons Indirect holds.
	maxReasons = 16
)

// Script is what one bash text would run.
type Script struct {
	// Text is the text as it was given.
	Text string
	// Commands are all simple commands at any depth, an outer one before those it runs.
	Commands []Command
	// Redirects are all redirections at any depth.
	Redirects []Redirect
	// Indirect says in words why it cannot be known for sure what runs; empty when it can.
	Indirect []string
	// Problem says why the text cannot be parsed; "" when it can. Commands then holds what a rough reading found.
	Problem string
	// RunsDownload is true when an interpreter gets its program from a network command ("curl … | bash").
	RunsDownload bool
}

// Command is one simple command.
type Command struct {
	// Name is the base name of the first word, in the spelling of the text.
	Name string
	// Words are the words with quotes and escapes undone. A word with an expansion keeps its source text.
	Words []string
	// Marks says for each word what the shell would still do with it; nil when nothing for all of them.
	Marks []Mark
	// Dynamic is true when a word has an expansion, or words are added when it runs (xargs).
	Dynamic bool
	// Text is Words joined by one space; permission rules are matched against it.
	Text string
	// Depth counts the subshells, substitutions, functions, wrappers and interpreters around the command.
	Depth int
	// Via names the wrappers and interpreters it was found through, outermost first: "sudo", "sh -c", "find -exec".
	Via []string
}

// Mark is a set of what the shell does with a word before the command sees it.
type Mark uint8

// The bits of a Mark.
const (
	// MarkExpansion: the word's value is not known before it runs.
	MarkExpansion Mark = 1 << iota
	// MarkPattern: an unquoted * ? or [ may become file names.
	MarkPattern
	// MarkTilde: an unquoted ~ may become a home directory.
	MarkTilde
)

// Redirect is one redirection.
type Redirect struct {
	// Op is the operator, such as ">", ">>", "<", ">&", "<<", "<<<".
	Op string
	// Target is the file, descriptor or here-string; "" for a here-document.
	Target string
	// Dynamic is true when Target has an expansion; it is then the source text.
	Dynamic bool
	// Writes is true when a file may be created or changed; false for /dev/null and for copied descriptors.
	Writes bool
}

// Parse reads text as bash would. It never panics and its work is bounded: text over MaxText bytes is a Problem.
func Parse(text string) Script {
	f := &finder{budget: maxNested}
	f.out.Text = text
	f.out.Problem = unreadable(text)
	if f.out.Problem == "" {
		if utf8.ValidString(text) {
			if strings.Contains(text, "\r") {
				f.indirect("the text contains a carriage return")
			}
		} else {
			f.indirect("the text is not valid UTF-8")
		}
		f.out.Problem = f.parse(text, place{})
	}
	if f.out.Problem != "" {
		f.rough(text, place{})
	}
	if f.arrays && f.values {
		f.indirect("the value that a declaration gives to an array may be run as code")
	}
	return f.out
}

// Certain reports whether everything that would run is known.
func (s Script) Certain() bool {
	return s.Problem == "" && len(s.Indirect) == 0
}

// unreadable says why a text is not even given to the parser, or "".
func unreadable(text string) string {
	if len(text) > MaxText {
		return "the command is longer than 64 KiB"
	}
	open := 0
	for i := range len(text) {
		switch text[i] {
		case 0:
			return "the command contains a NUL byte"
		case '(', '{', '[':
			if open++; open > maxBrackets {
				return "the command has too many nested brackets"
			}
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return ""
}

// place is where in the script a command stands.
type place struct {
	depth int
	via   []string
	nest  int    // texts and wrappers around it
	stdin *stdin // what a here-document or here-string feeds it
}

// stdin is the standard input of a command as far as the text tells it.
type stdin struct {
	text  string
	known bool
	here  bool // a here-string: always indirect for an interpreter
}

// below returns the place of what a wrapper at p runs.
func (p place) below(via string) place {
	p.depth++
	p.nest++
	p.via = append(slices.Clip(p.via), via)
	return p
}

// finder collects what one Parse finds.
type finder struct {
	out          Script
	budget       int    // bytes of nested text that may still be parsed
	declared     bool   // the command being read is a declaration by grammar, whose values are not split
	arrays       bool   // a variable is made an array
	values       bool   // a declaration has a value that is not known
	written      string // the source of the command that is noted next, whose text it often is
	lastDownload int    // 1 + index of the last command that fetches from the network
	lastTake     int    // 1 + index of the last command that runs a program nobody can see
}

// indirect notes a reason once.
func (f *finder) indirect(reason string) {
	if len(f.out.Indirect) < maxReasons && !slices.Contains(f.out.Indirect, reason) {
		f.out.Indirect = append(f.out.Indirect, reason)
	}
}

// nested reads text that a command runs as shell code.
func (f *finder) nested(text, via string, at place) {
	at = at.below(via)
	at.stdin = nil
	f.budget -= len(text)
	if at.nest > maxDepth || f.budget < 0 {
		f.indirect("commands are nested too deeply to follow")
		return
	}
	if problem := f.parse(text, at); problem != "" {
		f.indirect("the text given to " + via + " cannot be parsed: " + problem)
		f.rough(text, at)
	}
}

// parse walks one text and says why it cannot be parsed, or "".
func (f *finder) parse(text string, at place) (problem string) {
	defer func() {
		if recover() != nil {
			problem = "the shell parser gave up"
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return err.Error()
	}
	w := walker{finder: f, src: text, at: at, frames: make([]frame, 0, 16), tokens: make([]token, 0, 4+len(text)/8)}
	syntax.Walk(file, w.visit)
	if w.agree() {
		f.again(text, at)
	}
	return ""
}

// again adds what a rough reading finds and the parser did not, in text that bash may read differently.
func (f *finder) again(text string, at place) {
	n := len(f.out.Commands)
	f.rough(text, at)
	if strings.Contains(text, "\\\n") && strings.Contains(text, "#") {
		// A comment may end at the backslash before the newline.
		f.rough(strings.ReplaceAll(text, "\\\n", "\n"), at)
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

// rough finds commands in text that does not parse, or that bash may read differently, so that a blocked name is still
// seen. Quotes and backslashes are dropped, and every separator starts a command.
func (f *finder) rough(text string, at place) {
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
			f.command(words, at)
		}
	}
}
