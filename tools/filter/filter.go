// Package filter condenses what shell commands print before a model reads it: declarative rules (seed 003, "Output
// Filter Pipeline"), chosen by the command, drop noise and keep what matters.
//
// Three laws bind every rule, also those of a user's file; the engine enforces them whatever a strategy does:
//
//  1. A failure is never hidden. When the exit code is not zero, unknown, or says nothing about the command (a pipe,
//     "|| true"), every line that looks like a failure survives, with its block (failures), and the text does not read
//     as success.
//  2. The output is never larger than the sanitised input, in bytes, characters and lines; else the sanitised input is
//     given back. What is appended about credentials comes on top.
//  3. Nothing is lost without saying so: Output.Dropped tells the caller to keep the raw text.
//
// Several matching rules run one after the other, in the order of the file, each on what the one before left. A rule
// that finds nothing to do has no say in the confidence, so that it cannot spoil that of another one; among the others
// the worst counts; when none did anything it is Fallback.
package filter

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/redact"
)

// Options configure an Engine. The zero value is the built-in rules without a credential scan.
type Options struct {
	// Rules replace the built-in ones; nil = built-in. See Load.
	Rules *Rules
	// Disabled turns all rules and the sanitising off.
	Disabled bool
	// Credentials counts the credentials in a text; nil = only those that a redactor has masked are counted.
	Credentials func(text string) int
	// Quiet leaves out the warning about credentials.
	Quiet bool
}

// Engine applies rules. It is immutable and safe for concurrent use.
type Engine struct {
	compiled    func() *compiled
	disabled    bool
	quiet       bool
	credentials func(string) int
}

// compiled are rules that are ready to be used. Immutable.
type compiled struct {
	rules    []rule
	commands *automaton // words of the rules' expressions, by place in the list; nil = every rule has to be tried
	always   uint64     // bits of rules that have no words
	failures *failures
	security *security
}

// Output is a filtered text and what was done.
type Output struct {
	// Text is the filtered text, with security lines that were dropped and the warning about credentials at its end.
	Text string
	// Rules names the rules that matched, in order; empty = the text is sanitised only.
	Rules []string
	// Level is None when no rule matched.
	Level Confidence
	// LinesIn and CharsIn measure the text as it came, LinesOut and CharsOut what came of it, without the warning about
	// credentials. Chars are Unicode code points.
	LinesIn, LinesOut, CharsIn, CharsOut int
	// Dropped says that something of the text (besides terminal sequences and blank lines) is not in Text: keep the raw
	// text.
	Dropped bool
	// Credentials is how many credentials the text holds, masked ones included.
	Credentials int
}

// NewEngine makes an engine. The built-in rules are compiled at the first text, since that takes milliseconds and more
// than a megabyte which a service without commands never needs; a test finds what is wrong with them.
func NewEngine(o Options) *Engine {
	return &Engine{
		compiled: sync.OnceValue(func() *compiled { return compile(o.Rules) }),
		disabled: o.Disabled, quiet: o.Quiet, credentials: o.Credentials,
	}
}

// compile makes rules ready; nil = the built-in ones.
func compile(rules *Rules) *compiled {
	if rules == nil {
		rules, _ = builtIn()
	}
	sec := newSecurity()
	commands, always := commandWords(rules.list)
	return &compiled{
		rules: rules.list, commands: commands, always: always, failures: newFailures(sec.words()),
		security: sec,
	}
}

// Filter condenses what command printed. A nil exit code (a signal, a time limit) counts as failure.
func (e *Engine) Filter(command string, exit *int, text string) Output {
	out := Output{LinesIn: lineCount(text), CharsIn: characters(text)}
	if e.disabled {
		out.Text = text
	} else {
		e.condense(command, exit, text, &out)
	}
	out.LinesOut, out.CharsOut = lineCount(out.Text), out.CharsIn
	if out.Text != text {
		out.CharsOut = characters(out.Text)
	}
	e.warn(text, &out)
	return out
}

// Stats is the line for the person who watches, "" when no lines were removed (seed 003). The share is one of lines.
func (o Output) Stats() string {
	if o.LinesOut >= o.LinesIn {
		return ""
	}
	return fmt.Sprintf("[shell] %d lines -> %d lines, %.1f%% filtered", o.LinesIn, o.LinesOut,
		100*(1-float64(o.LinesOut)/float64(o.LinesIn)))
}

// lineCount counts lines as an editor does; "" has none.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// condense sanitises the text and runs the rules.
func (e *Engine) condense(command string, exit *int, text string, out *Output) {
	r := read(command)
	rules, limited := e.compiled().match(r)
	j := &job{exit: exit, doubt: (r.masked || r.opaque) && r.speaks, failures: e.compiled().failures, limited: limited}
	hidden := j.failures.is
	if !j.guarded() {
		hidden = func(piece string) bool { return j.failures.certain(&line{text: piece}) }
	}
	c := sanitize(text, blanksOf(rules), hidden)
	out.Dropped = c.frames
	if len(rules) == 0 {
		out.Text = text
		if !c.whole {
			out.Text = join(c.lines)
		}
		return
	}
	for i := range rules {
		out.Rules = append(out.Rules, rules[i].name)
	}
	j.lines, j.total = c.lines, len(c.lines)
	e.guard(j, r)
	lines, level := j.run(rules)
	if level == Fallback {
		if out.Text, out.Level = text, Fallback; !c.whole {
			out.Text = join(c.lines)
		}
		return
	}
	lines, level = e.enforce(j, c.lines, lines, level)
	out.Text, out.Level = join(lines), level
	if strings.TrimSpace(out.Text) == "" { // an empty text would read as a command that printed nothing
		out.Text = fmt.Sprintf("(%d noise lines removed)", len(c.lines))
	}
	sane := text
	if !c.whole {
		sane = join(c.lines)
	}
	if larger(out.Text, sane) {
		out.Text, out.Level = sane, Fallback
	} else {
		out.Dropped = true
	}
}

// blanksOf says what becomes of blank lines: nothing when no rule knows more of the output than its progress, and in a
// diff a run of them stays, since they are lines of a file.
func blanksOf(rules []*rule) blankLines {
	for i := range rules {
		if _, diff := rules[i].strategy.(gitDiff); diff {
			return blankEnd
		}
	}
	for i := range rules {
		if f, ok := rules[i].strategy.(fold); !ok || !f.progress {
			return blankRuns
		}
	}
	return blanksStay
}

// larger compares bytes, lines and characters.
func larger(a, b string) bool {
	if len(a) > len(b) || strings.Count(a, "\n") > strings.Count(b, "\n") {
		return true
	}
	return len(a) > len(b)/utf8.UTFMax && characters(a) > characters(b) // a character has so many bytes at most
}

// characters is utf8.RuneCountInString, faster for text that is mostly ASCII: eight bytes at a time.
func characters(s string) int {
	n := 0
	for len(s) >= 8 {
		if eight := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 |
			uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56; eight&0x8080808080808080 == 0 {
			s, n = s[8:], n+8
			continue
		}
		_, size := utf8.DecodeRuneInString(s)
		s, n = s[size:], n+1
	}
	return n + utf8.RuneCountInString(s)
}

// guard marks what has to survive.
func (e *Engine) guard(j *job, r reading) {
	failed := j.failed()
	if !j.guarded() {
		j.named, j.doubt = j.failures.watch(j.lines, r)
	}
	if j.guarded() {
		j.named = j.failures.protect(j.lines)
	}
	answers(j.lines, failed)
	if r.tables() {
		j.named += states(j.lines)
	}
	for i := range j.lines {
		body := j.lines[i].body()
		if note(body) {
			j.lines[i].keep = true
		}
		for _, echo := range r.echoes {
			if strings.HasPrefix(body, echo) {
				j.lines[i].keep = true
			}
		}
	}
}

// enforce puts back what had to survive and is gone, says that a run failed when nothing else does, and appends dropped
// security lines.
func (e *Engine) enforce(j *job, in, lines []line, level Confidence) ([]line, Confidence) {
	there := j.covered
	if there == nil {
		there = make([]bool, len(in))
	}
	for i := range lines {
		if lines[i].src >= 0 {
			there[lines[i].src] = true
		}
	}
	var lost []line
	for i := range in {
		if in[i].keep && !there[i] {
			lost = append(lost, in[i])
			there[i] = true
		}
	}
	if len(lost) > 0 {
		lines, level = putBack(lines, lost), level.Worst(Partial)
	}
	lines = e.compiled().security.restore(j.failures, in, lines, there)
	if j.failed() && !j.failures.told(lines) {
		lines = append(lines, written(j.verdict()))
	}
	return lines, level
}

// putBack merges lost lines into the others by their place in the input.
func putBack(lines, lost []line) []line {
	out := make([]line, 0, len(lines)+len(lost))
	for i := range lines {
		for len(lost) > 0 && lines[i].src > lost[0].src {
			out, lost = append(out, lost[0]), lost[1:]
		}
		out = append(out, lines[i])
	}
	return append(out, lost...)
}

// warn counts credentials and says so, without a value.
func (e *Engine) warn(text string, out *Output) {
	if e.quiet {
		return
	}
	hidden := strings.Count(text, redact.Mask) + strings.Count(text, strings.ToUpper(redact.Mask))
	open := 0
	if e.credentials != nil {
		open = e.credentials(text)
	}
	out.Credentials = hidden + open
	var said string
	switch {
	case open > 0:
		said = fmt.Sprintf("[security] this output holds %d credentials; do not repeat or store them", hidden+open)
		if hidden+open == 1 {
			said = "[security] this output holds 1 credential; do not repeat or store it"
		}
	case hidden > 0:
		said = redact.Warning(hidden)
	default:
		return
	}
	if out.Text != "" && !strings.HasSuffix(out.Text, "\n") {
		out.Text += "\n"
	}
	out.Text += said
}
