// Package filter shortens the output of shell commands for the model. Declarative rules (seed 003, "Output
// Filter Pipeline"), selected by the command, drop noise and keep what matters.
//
// Three laws hold for every rule, including those of a user's file. The engine enforces them whatever a strategy does:
//
//  1. A failure is never hidden. When the exit code is not zero, is unknown, or says nothing about the command (a pipe,
//     "|| true"), every line that looks like a failure is kept with its block (failures), and the text does not look
//     like success.
//  2. The output is never larger than the sanitised input, in bytes, characters and lines; otherwise the result is the
//     sanitised input. A warning about credentials is added to that.
//  3. Nothing is lost silently: Output.Dropped tells the caller to keep the raw text.
//
// Several matching rules run one after the other, in the order of the file, each on the result of the previous one. A
// rule that finds nothing to do does not affect the confidence. Among the others, the lowest confidence counts; if no
// rule did anything, it is Fallback.
package filter

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/redact"
)

// Options configure an Engine. The zero value uses the built-in rules and no credential scan.
type Options struct {
	// Rules replace the built-in rules; nil = built-in. See Load.
	Rules *Rules
	// Disabled turns off all rules and the sanitising.
	Disabled bool
	// Credentials counts the credentials in a text; nil = only those that were already masked are counted.
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

// compiled is a set of compiled rules. It is immutable.
type compiled struct {
	rules    []rule
	commands *automaton // words of the rules' expressions, by index; nil = every rule has to be tried
	always   uint64     // bits of rules without words
	failures *failures
	security *security
}

// Output is a filtered text with information about it.
type Output struct {
	// Text is the filtered text. Dropped security lines and the warning about credentials are at its end.
	Text string
	// Rules lists the rules that matched, in order; empty = the text is only sanitised.
	Rules []string
	// Level is None when no rule matched.
	Level Confidence
	// LinesIn and CharsIn measure the original text, LinesOut and CharsOut the filtered one without the warning about
	// credentials. Chars are Unicode code points.
	LinesIn, LinesOut, CharsIn, CharsOut int
	// Dropped reports that Text lacks parts of the text other than terminal sequences and blank lines. The caller has
	// to keep the raw text then.
	Dropped bool
	// Credentials is the number of credentials in the text, including masked ones.
	Credentials int
}

// NewEngine returns an engine. The built-in rules are compiled for the first text, because that takes milliseconds and
// more than a megabyte, which a service without commands never needs. A test detects errors in them.
func NewEngine(o Options) *Engine {
	return &Engine{
		compiled: sync.OnceValue(func() *compiled { return compileRules(o.Rules) }),
		disabled: o.Disabled, quiet: o.Quiet, credentials: o.Credentials,
	}
}

// compileRules compiles rules; nil = the built-in ones.
func compileRules(rules *Rules) *compiled {
	if rules == nil {
		rules, _ = builtIn()
	}
	sec := newSecurity()
	commands, always := commandWords(rules.list)
	return &compiled{
		rules: rules.list, commands: commands, always: always, failures: newFailures(sec.patternWords()),
		security: sec,
	}
}

// Filter shortens the output of a command. A nil exit code (a signal, a time limit) counts as failure.
func (e *Engine) Filter(command string, exit *int, text string) Output {
	out := Output{LinesIn: lineCount(text), CharsIn: countCharacters(text)}
	if e.disabled {
		out.Text = text
	} else {
		e.condenseText(command, exit, text, &out)
	}
	out.LinesOut, out.CharsOut = lineCount(out.Text), out.CharsIn
	if out.Text != text {
		out.CharsOut = countCharacters(out.Text)
	}
	e.warnCredentials(text, &out)
	return out
}

// Stats returns a line for the person who watches; "" when no lines were removed (seed 003). The percentage refers to
// lines.
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

// condenseText sanitises the text and runs the rules.
func (e *Engine) condenseText(command string, exit *int, text string, out *Output) {
	r := readCommand(command)
	rules, limited := e.compiled().selectRules(r)
	j := &job{exit: exit, doubt: (r.masked || r.opaque) && r.speaks, failures: e.compiled().failures, limited: limited}
	hidden := j.failures.isFailureText
	if !j.isGuarded() {
		hidden = func(piece string) bool { return j.failures.isCertain(&line{text: piece}) }
	}
	c := sanitizeText(text, blanksOf(rules), hidden)
	out.Dropped = c.frames
	if len(rules) == 0 {
		out.Text = text
		if !c.whole {
			out.Text = joinLines(c.lines)
		}
		return
	}
	for i := range rules {
		out.Rules = append(out.Rules, rules[i].name)
	}
	j.lines, j.total = c.lines, len(c.lines)
	e.guardLines(j, r)
	lines, level := j.runRules(rules)
	if level == Fallback {
		if out.Text, out.Level = text, Fallback; !c.whole {
			out.Text = joinLines(c.lines)
		}
		return
	}
	lines, level = e.restoreGuarded(j, c.lines, lines, level)
	out.Text, out.Level = joinLines(lines), level
	if strings.TrimSpace(out.Text) == "" { // an empty text would look as if the command had printed nothing
		out.Text = fmt.Sprintf("(%d noise lines removed)", len(c.lines))
	}
	sane := text
	if !c.whole {
		sane = joinLines(c.lines)
	}
	if isLarger(out.Text, sane) {
		out.Text, out.Level = sane, Fallback
	} else {
		out.Dropped = true
	}
}

// blanksOf returns how blank lines are treated. They are kept when no rule knows more about the output than its
// progress. In a diff, runs of them are kept because they are lines of a file.
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

// isLarger reports whether a is larger than b in bytes, lines or characters.
func isLarger(a, b string) bool {
	if len(a) > len(b) || strings.Count(a, "\n") > strings.Count(b, "\n") {
		return true
	}
	// a character has at most UTFMax bytes
	return len(a) > len(b)/utf8.UTFMax && countCharacters(a) > countCharacters(b)
}

// countCharacters is utf8.RuneCountInString, but faster for text that is mostly ASCII: it reads eight bytes at a time.
func countCharacters(s string) int {
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

// guardLines marks the lines that must be kept.
func (e *Engine) guardLines(j *job, r reading) {
	failed := j.runFailed()
	if !j.isGuarded() {
		j.named, j.doubt = j.failures.watchPassed(j.lines, r)
	}
	if j.isGuarded() {
		j.named = j.failures.protectLines(j.lines)
	}
	markAnswers(j.lines, failed)
	if r.printsTables() {
		j.named += markStates(j.lines)
	}
	for i := range j.lines {
		body := j.lines[i].bodyText()
		if isShellNote(body) {
			j.lines[i].keep = true
		}
		for _, echo := range r.echoes {
			if strings.HasPrefix(body, echo) {
				j.lines[i].keep = true
			}
		}
	}
}

// restoreGuarded restores lines that must be kept and were dropped, states that a run failed if nothing else does, and
// appends dropped security lines.
func (e *Engine) restoreGuarded(j *job, in, lines []line, level Confidence) ([]line, Confidence) {
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
	lines = e.compiled().security.restoreMissing(j.failures, in, lines, there)
	if j.runFailed() && !j.failures.statesFailure(lines) {
		lines = append(lines, writtenLine(j.failureVerdict()))
	}
	return lines, level
}

// putBack merges lost lines into the others, by their position in the input.
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

// warnCredentials counts credentials and adds a warning that contains no value.
func (e *Engine) warnCredentials(text string, out *Output) {
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
