package filter

import (
	"strings"
)

// blockLines is how many lines below the head of a failure are kept with it.
const blockLines = 50

// failureWords returns the words of a failure, in any case. A line of a failed run is kept when it contains one of
// them, names a location in a file (a/b.go:12:5), or is in the block of a failure (see opens). Lines that say that
// something passed (passes) are the exception.
func failureWords() [][]string {
	return [][]string{
		// 0, 1: unless every one of them is counted as none ("0 errors", "failed: 0").
		{"error"},
		{"fail"},
		{ // 2: always
			"panic", "fatal", "traceback", "exception", "assert", "undefined", "undeclared", "unresolved", "cannot",
			"can't", "can not", "could not", "couldn't", "unable to", "not found", "no such", "does not exist",
			"doesn't exist", "not exist", "denied", "refused", "rejected", "forbidden", "unauthorized", "timed out",
			"timeout", "exit status", "exit code", "exited with", "returned non-zero", "non-zero", "err!", " err ",
			"errno", "enoent", "eacces", "segmentation fault", "sigsegv", "sigkill", "sigabrt", "core dumped", "abort",
			"signal:", "killed", "out of memory", "oom", "no space left", "data race", "deadlock", "not ok", "mismatch",
			"conflict", "corrupt", "invalid", "illegal", "unexpected", "unknown", "unrecognized", "unsupported",
			"not supported", "not allowed", "not permitted", "missing", "required", "expected", "actual", "caused by",
			"violat", "crash", "broken", "incompatible", "duplicate", "unreachable", "overflow", "underflow",
			"critical", "emerg", "alert", "severe", "***", "===>", ", line ", "backoff", "evicted", "insufficient",
			"unhealthy", "notready", "usage:", "bad ", "wrong", "nil pointer", "not a ", "must ", "want ", "got:",
			"got =", "got ", "left:", "right:", "problem", "expired", "unterminated", "too many", "too few", "✗", "✕",
			"✘", "✖", "❌", "❯", "×", "●", "⨯", "☓", "↯",
		},
		sureWords(), // 3: regardless of the exit code
		// Hints: a line without one of these words needs no closer look.
		{": warning: ", ": note: "}, // 4: warns, explains
		{"from ", ": in function ", ": in instantiation of ", ": at top level:"}, // 5: leads
		{" ... ", ".py", "%]"}, // 6: namedOK
	}
}

// failures recognises lines of failures. It is immutable.
type failures struct{ look *automaton }

const (
	failureKinds = 4                   // kinds of words of a failure
	sureBit      = 1 << 3              // of sureWords
	failureBits  = 1<<failureKinds - 1 // their bits
	warnHint     = 1 << 4
	leadHint     = 1 << 5
	namedHint    = 1 << 6
	wordKinds    = 7          // including the hints; the bits of further words follow
	noHints      = ^uint64(0) // the line was not scanned: anything may occur in it
	looked       = 1 << 31    // in line.bits: the line was scanned
)

// newFailures searches further words in the same pass, for other users: words[i] sets bit wordKinds+i.
func newFailures(words [][]string) *failures {
	return &failures{look: newAutomaton(append(failureWords(), words...))}
}

// scanLine returns the bits of the words in a line. It scans a line only once.
func (f *failures) scanLine(l *line) uint64 {
	if l.bits == 0 {
		l.bits = uint32(f.look.scanWords(l.bodyText())) | looked
	}
	return uint64(l.bits &^ looked)
}

// lookAll scans all lines, two at a time: the table look-ups of one do not wait for those of the other.
func (f *failures) lookAll(lines []line) {
	for len(lines) > 1 {
		a, b := &lines[0], &lines[1]
		lines = lines[2:]
		if a.bits != 0 && b.bits != 0 {
			continue
		}
		one, two := f.look.scanTwo(a.bodyText(), b.bodyText())
		a.bits, b.bits = uint32(one)|looked, uint32(two)|looked
	}
}

// wordHints returns the words of a line if it was scanned, else noHints.
func (l *line) wordHints() uint64 {
	if l.bits == 0 {
		return noHints
	}
	return uint64(l.bits &^ looked)
}

// isFailureText reports whether a text looks like a failure.
func (f *failures) isFailureText(body string) bool { return f.judgeText(f.look.scanWords(body), body) }

// isFailureLine reports whether a line looks like a failure.
func (f *failures) isFailureLine(l *line) bool { return f.judgeText(f.scanLine(l), l.bodyText()) }

// judgeText reports whether a text that contains these words looks like a failure.
func (f *failures) judgeText(bits uint64, body string) bool {
	hints := bits
	bits &= failureBits
	if bits != 0 && isExplanation(hints, body) {
		return false
	}
	if bits == 0 && (!isLocation(body) || isWarning(hints, body) || leadsToDiagnostic(hints, body)) &&
		!isFailureShape(body) {
		return false
	}
	if bits&4 == 0 && bits != 0 && noneCounted(f.look, body) && !isLocation(body) && !isFailureShape(body) {
		return false
	}
	return !isPassing(hints, body)
}

// trimBlanks removes leading blanks and tabs.
func trimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// isWarning reports whether a compiler marks its line as a warning or a note.
func isWarning(hints uint64, body string) bool {
	return hints&warnHint != 0 && (strings.Contains(body, ": warning: ") || strings.Contains(body, ": note: "))
}

// isExplanation reports whether a line belongs to a compiler's diagnostic without being one: a note, or the
// files by which it was included.
func isExplanation(hints uint64, body string) bool {
	return hints&warnHint != 0 && strings.Contains(body, ": note: ") && parseDiagnostic(body).severity == aNote ||
		strings.HasPrefix(body, "In file included from ")
}

// noneCounted reports whether every word of failure in a line is counted as none.
func noneCounted(look *automaton, body string) bool {
	all := true
	look.scanAt(body, func(bits uint64, end int) {
		if bits&failureBits == 0 {
			return
		}
		size := len("error")
		if bits&1 == 0 {
			size = len("fail")
		}
		before := strings.TrimRight(body[:end-size], " \t")
		after := strings.TrimLeft(body[end:], "abcdefghijklmnopqrstuvwxyz()")
		after = trimBlanks(after)
		none := endsInWord(before, "0") || endsInWord(before, "no") || endsInWord(before, "No") ||
			endsInWord(before, "without") || endsInWord(before, "zero") ||
			startsNone(after)
		all = all && none
	})
	return all
}

func endsInWord(s, word string) bool {
	rest, ok := strings.CutSuffix(s, word)
	if !ok || rest == "" {
		return ok
	}
	last := rest[len(rest)-1]
	return last == ' ' || last == '\t' || last == '(' || last == '[' || last == ',' || last == ':' || last == '|'
}

// startsNone matches "= 0", ": 0" and "=0," after a word.
func startsNone(s string) bool {
	if s == "" || s[0] != '=' && s[0] != ':' {
		return false
	}
	s = trimBlanks(s[1:])
	return s != "" && s[0] == '0' && (len(s) == 1 || (s[1] < '0' || s[1] > '9') && s[1] != '.')
}

// isLocation reports whether a line names a location in a file, as compilers do: path.ext:12,
// path.ext:12:5, path.ext(12,5).
func isLocation(s string) bool {
	for i := 1; i < len(s)-1; {
		at := strings.IndexByte(s[i:], ':')
		if at < 0 {
			return false
		}
		i += at
		end := i + 1
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if end > i+1 && (end == len(s) || strings.IndexByte(": ,)]'\"\t-", s[end]) >= 0) && fileEndsAt(s[:i]) {
			return true
		}
		i = end
	}
	return false
}

// fileEndsAt reports whether s ends in something like a file name: with a dot or a slash, and a letter.
func fileEndsAt(s string) bool {
	dot, letter := false, false
	for i := len(s) - 1; i >= 0 && i >= len(s)-200; i-- {
		switch b := s[i]; b {
		case '.', '/':
			dot = true
		case ' ', '\t', '(', '[', '"', '\'', '=':
			return dot && letter
		default:
			letter = letter || lowerByte(b) >= 'a' // or not ASCII
		}
	}
	return dot && letter
}

// isFailureShape reports whether a line has the shape of a part of a failure: pytest's "E " and
// "> " lines, a frame of a stack.
func isFailureShape(s string) bool {
	if len(s) < 2 {
		return false
	}
	if (s[0] == 'E' || s[0] == '>') && (s[1] == ' ' || s[1] == '\t') {
		return true
	}
	t := trimBlanks(s)
	return strings.HasPrefix(t, "--> ") || len(t) < len(s) && strings.HasPrefix(t, "at ") ||
		strings.HasPrefix(t, "goroutine ") ||
		len(t) < len(s) && (strings.HasPrefix(t, "+ ") || strings.HasPrefix(t, "- "))
}

// statesFailure reports whether a line of the input states that the run failed.
func (f *failures) statesFailure(lines []line) bool {
	for i := range lines {
		if l := &lines[i]; l.src >= 0 && (isShellNote(l.bodyText()) || f.scanLine(l)&3 != 0 && f.isFailureLine(l)) {
			return true
		}
	}
	return false
}

// protectLines marks the lines that no strategy may drop because they look like a failure or belong to one. It
// returns how many look like one.
func (f *failures) protectLines(lines []line) int {
	n := 0
	left, short := 0, false
	f.lookAll(lines)
	warning := false // in the excerpt of a warning, words are source code
	for i := range lines {
		body := lines[i].bodyText()
		shown := warning && isExcerpt(body)
		if warning = shown || isWarning(f.scanLine(&lines[i]), body); shown {
			continue
		}
		looks := f.isFailureLine(&lines[i])
		if looks {
			lines[i].keep = true
			n++
		}
		switch kind := openedBlock(body, looks); {
		case kind != opensNothing:
			left, short = blockLines, kind == opensShort && (left == 0 || short)
			lines[i].keep = true
			if kind == opensBoth {
				f.protectAbove(lines[:i])
			}
		case strings.HasPrefix(body, "--- PASS: "):
			left = 0
			n -= f.releasePassing(lines, i)
		case left == 0:
		case endsBlock(&lines[i], short):
			left = 0
		default:
			lines[i].keep = true
			left--
		}
	}
	return n
}

// openedBlock returns what a line opens.
func openedBlock(body string, looks bool) opening {
	// heads without a word of failure: "____ test_x ____"
	if looks || body != "" && (body[0] == '_' || body[0] == '-') {
		return openingOf(body)
	}
	return opensNothing
}

// endsBlock reports whether a line ends the block of a failure. The block of a short message
// also ends at the next message.
func endsBlock(l *line, short bool) bool {
	return isBoundary(l) || short && (isBlank(l.bodyText()) ||
		isWarning(l.wordHints(), l.bodyText()) || leadsToDiagnostic(l.wordHints(), l.bodyText()))
}

// releasePassing releases what the passing Go test of line i logged: t.Log prints a file and a line, like a compiler.
// Lines with a word of failure are kept.
func (f *failures) releasePassing(lines []line, i int) int {
	n := 0
	for at := logOf(lines, i); at < i; at++ {
		if l := &lines[at]; l.keep && f.scanLine(l)&failureBits == 0 {
			l.keep = false
			n++
		}
	}
	return n
}

// isBoundary reports whether a line ends the block of a failure.
func isBoundary(l *line) bool {
	s := l.bodyText()
	return isPassing(l.wordHints(), s) || strings.HasPrefix(s, "test result: ok") ||
		strings.HasPrefix(trimBlanks(s), "# Subtest: ")
}

// protectAbove protects what a Go test printed before the line that says that it failed.
func (f *failures) protectAbove(lines []line) {
	for n := 1; n <= min(blockLines, len(lines)); n++ {
		l := &lines[len(lines)-n]
		if l.keep && strings.Contains(l.bodyText(), "--- FAIL") {
			return
		}
		if isBoundary(l) {
			return
		}
		l.keep = true
	}
}
