package filter

import "strings"

// opening says which kind of block a line opens.
type opening uint8

const (
	opensNothing opening = iota
	opensShort           // a message: up to the next blank line
	opensLong            // the report of a test, or a trace: up to the next passing line
	opensBoth            // Go's --- FAIL: also what is above it
)

// openingOf returns which kind of block of a failure a line opens.
func openingOf(s string) opening {
	t := trimBlanks(s)
	if len(t) < 3 {
		return opensNothing
	}
	switch {
	case strings.HasPrefix(t, "--- FAIL"):
		return opensBoth
	case strings.HasPrefix(t, "panic:"), strings.HasPrefix(t, "fatal error:"), strings.HasPrefix(t, "Traceback"),
		strings.HasPrefix(t, "not ok"),
		strings.HasPrefix(t, "●"), strings.HasPrefix(t, "✕"), strings.HasPrefix(t, "✗"), strings.HasPrefix(t, "✖"),
		strings.HasPrefix(t, "⨯"),
		strings.HasPrefix(t, "FAIL"), strings.HasPrefix(t, "ERROR: "), strings.HasPrefix(t, "WARNING: DATA RACE"),
		strings.HasPrefix(t, "thread '") && strings.Contains(t, "panicked"), strings.HasPrefix(t, "Caused by"),
		strings.HasPrefix(t, "Exception"):
		return opensLong
	case strings.HasPrefix(t, "---- ") && strings.HasSuffix(t, " ----"),
		strings.HasPrefix(t, "___") && strings.HasSuffix(t, "___"),
		strings.HasPrefix(t, "TIMEOUT ["), strings.HasPrefix(t, "SIGABRT ["), strings.HasPrefix(t, "SIGSEGV ["),
		strings.HasPrefix(t, "stack backtrace"):
		return opensLong
	case isNumberedHead(t):
		return opensLong
	case strings.HasPrefix(t, "error"), strings.HasPrefix(t, "Error"), strings.HasPrefix(t, "[ERROR]"),
		strings.HasPrefix(t, "fatal:"),
		strings.HasPrefix(t, "E "), strings.Contains(t, "Error: "), strings.Contains(t, "Exception"),
		strings.Contains(t, ": error"), strings.Contains(t, ": fatal error"), strings.Contains(t, "CONFLICT"):
		return opensShort
	}
	return opensNothing
}

// isNumberedHead reports whether a line is the head of a failure in the form of mocha and rspec: " 1) name".
func isNumberedHead(t string) bool {
	i := 0
	for i < len(t) && t[i] >= '0' && t[i] <= '9' {
		i++
	}
	return i > 0 && i < 4 && strings.HasPrefix(t[i:], ") ")
}

// isShellNote reports whether the shell tool wrote a line around the output. Such lines are always kept.
func isShellNote(s string) bool {
	if s == "" || s[0] != '[' {
		return false
	}
	return strings.HasPrefix(s, "[exit code ") || strings.HasPrefix(s, "[killed by signal") ||
		strings.HasPrefix(s, "[warn]") || strings.HasPrefix(s, "[note]") || strings.HasPrefix(s, "[stopped after") ||
		strings.HasPrefix(s, "[error]") || strings.HasPrefix(s, "[… about ") || strings.HasPrefix(s, "[rolled back") ||
		strings.HasPrefix(s, "[snapshot") ||
		strings.HasPrefix(s, "[binary output")
}
