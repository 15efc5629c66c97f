package file

import (
	"bytes"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
)

// matcher finds lines that match an expression. It is immutable.
type matcher struct {
	re     *regexp.Regexp
	buffer bool     // re can run over several lines at once without missing a match
	ends   bool     // the expression contains an end of line, where \r may occur
	fold   bool     // literals are in lower case and are searched ignoring case
	exotic bool     // a literal contains k or s, to which non-ASCII letters fold too
	whole  bool     // the expression consists only of its literal
	wide   bool     // the expression has characters beyond ASCII, which other encodings write otherwise
	lits   [][]byte // every matching line contains one of these; none = unknown
	size   int      // instructions of the compiled expression; each may be executed for each byte of a text
}

// newMatcher compiles an expression in Go's syntax (RE2).
func newMatcher(pattern string, caseSensitive bool) (*matcher, error) {
	if pattern == "" {
		return nil, argumentError("", "pattern is empty")
	}
	if len(pattern) > maxPattern {
		return nil, argumentError("", "pattern has %d bytes; at most %d are possible", len(pattern), maxPattern)
	}
	if strings.Contains(pattern, "\n") {
		return nil, argumentError("Search for a part that stands on one line.",
			"pattern holds a line break; lines are searched one by one")
	}
	flags := "(?m)"
	if !caseSensitive {
		flags = "(?mi)"
	}
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
		e := argumentError("Escape special characters with a backslash, for example \\( or \\[.",
			"pattern is not a valid regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		e.Err = err
		return nil, e
	}
	text := flags + "(?:" + pattern + ")"
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, &tools.Error{Category: tools.InvalidParameters, Message: "pattern is too large", Err: err}
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, &tools.Error{Category: tools.InvalidParameters, Message: "pattern is too large", Err: err}
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, &tools.Error{Category: tools.InvalidParameters, Message: "pattern is too large", Err: err}
	}
	m := &matcher{
		re: re, buffer: !hasOp(tree, syntax.OpBeginText, syntax.OpEndText), ends: hasOp(tree, syntax.OpEndLine),
		wide: strings.ContainsFunc(pattern, func(r rune) bool { return r >= utf8.RuneSelf }),
		size: len(program.Inst),
	}
	m.setLiterals(tree)
	return m, nil
}

func hasOp(re *syntax.Regexp, ops ...syntax.Op) bool {
	if slices.Contains(ops, re.Op) {
		return true
	}
	for _, sub := range re.Sub {
		if hasOp(sub, ops...) {
			return true
		}
	}
	return false
}

// setLiterals determines what a matching line must contain.
func (m *matcher) setLiterals(tree *syntax.Regexp) {
	need := neededLiterals(tree)
	if len(need.best) == 0 {
		return
	}
	m.fold = need.fold
	m.whole = tree.Op == syntax.OpLiteral && need.complete
	for _, l := range need.best {
		if m.fold {
			l = string(lowerASCII(nil, []byte(l)))
			m.exotic = m.exotic || strings.ContainsAny(l, "ks")
		}
		m.lits = append(m.lits, []byte(l))
	}
}

// hit is a matching line: its bounds in the buffer and the start of the match.
type hit struct{ start, end, at int }

// lineMatcher applies a matcher and stops when the time is over. It belongs to one goroutine.
type lineMatcher struct {
	*matcher
	late  func() bool // asked about every 10 ms of work
	steps int         // an upper limit of what was executed since late was asked
	over  bool        // the time is over: what was found last does not count
}

// maxSteps is how many instructions of an expression are executed, at most, before the time is looked at: about 10 ms.
const maxSteps = 1 << 20

// spendSteps counts work and reports whether it may go on.
func (m *lineMatcher) spendSteps(steps int) bool {
	if m.steps += steps; m.steps >= maxSteps && !m.over {
		m.steps, m.over = 0, m.late()
	}
	return !m.over
}

// findMatch returns where the expression matches text; nil if it does not, or if the time is over. An expression of n
// instructions takes up to n steps for each byte, and nothing ends it early except the end of its text.
func (m *lineMatcher) findMatch(text []byte) []int {
	if len(text) <= maxSteps/m.size {
		if !m.spendSteps((len(text) + 1) * m.size) {
			return nil
		}
		return m.re.FindIndex(text)
	}
	loc := m.re.FindReaderIndex(&runes{m: m, text: text})
	if m.over {
		return nil
	}
	return loc
}

// runes gives a text to an expression until the time is over.
type runes struct {
	m    *lineMatcher
	text []byte
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (c rune, size int, err error) {
	if len(r.text) == 0 || !r.m.spendSteps(r.m.size) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// nextHit returns the first matching line at or after from, which must be the start of a line. low is the buffer
// in lower case if m.fold is set.
func (m *lineMatcher) nextHit(buf, low []byte, from int, useLits bool) (hit, bool) {
	switch {
	case useLits:
		return m.byLiteral(buf, low, from)
	case m.buffer && !(m.ends && bytes.Contains(buf[from:], crlfEnd)):
		return m.byBuffer(buf, from)
	default:
		return m.byLine(buf, from)
	}
}

var crlfEnd = []byte("\r\n")

// literalsUsable reports whether the literals are valid for a buffer. Letters such as the Kelvin sign fold
// to k but have different bytes.
func (m *matcher) literalsUsable(buf []byte) bool {
	if len(m.lits) == 0 {
		return false
	}
	return !m.fold || !m.exotic || (!bytes.Contains(buf, []byte("\u212a")) && !bytes.Contains(buf, []byte("\u017f")))
}

func (m *lineMatcher) byLiteral(buf, low []byte, from int) (hit, bool) {
	text := buf
	if m.fold {
		text = low
	}
	next := make([]int, len(m.lits)) // next position of each literal; -1 = none
	for i, l := range m.lits {
		next[i] = indexFrom(text, l, from)
	}
	for {
		at := -1
		for i, l := range m.lits {
			if next[i] >= 0 && next[i] < from {
				next[i] = indexFrom(text, l, from)
			}
			if next[i] >= 0 && (at < 0 || next[i] < at) {
				at = next[i]
			}
		}
		if at < 0 {
			return hit{}, false
		}
		h := lineAround(buf, at)
		if m.whole || m.checkLine(buf, &h) {
			return h, true
		}
		from = h.end + 1
		if from >= len(buf) || m.over {
			return hit{}, false
		}
	}
}

func indexFrom(text, l []byte, from int) int {
	if i := bytes.Index(text[from:], l); i >= 0 {
		return from + i
	}
	return -1
}

// byBuffer runs the expression over the whole buffer: there is no matching line before its first match. If that match
// continues on the next line, the rest is searched line by line, because each attempt could read the whole buffer.
func (m *lineMatcher) byBuffer(buf []byte, from int) (hit, bool) {
	loc := m.findMatch(buf[from:])
	if loc == nil {
		return hit{}, false
	}
	at := from + loc[0]
	if at == len(buf) && buf[at-1] == '\n' { // it matches the empty text after the last line
		return hit{}, false
	}
	return m.byLine(buf, lineAround(buf, at).start)
}

func (m *lineMatcher) byLine(buf []byte, from int) (hit, bool) {
	for from < len(buf) && !m.over {
		h := lineAround(buf, from)
		if m.checkLine(buf, &h) {
			return h, true
		}
		from = h.end + 1
	}
	return hit{}, false
}

// checkLine runs the expression over one line.
func (m *lineMatcher) checkLine(buf []byte, h *hit) bool {
	loc := m.findMatch(bytes.TrimSuffix(buf[h.start:h.end], []byte("\r")))
	if loc == nil {
		return false
	}
	h.at = h.start + loc[0]
	return true
}

// lineAround returns the line that contains a position, without its end.
func lineAround(buf []byte, at int) hit {
	start := bytes.LastIndexByte(buf[:at], '\n') + 1
	end := len(buf)
	if n := bytes.IndexByte(buf[at:], '\n'); n >= 0 {
		end = at + n
	}
	return hit{start: start, end: end, at: at}
}

// lowerASCII writes src to dst with ASCII letters in lower case. It grows dst if necessary.
func lowerASCII(dst, src []byte) []byte {
	if cap(dst) < len(src) {
		dst = make([]byte, len(src), max(len(src), 64<<10))
	}
	dst = dst[:len(src)]
	for i, c := range src {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
	return dst
}
