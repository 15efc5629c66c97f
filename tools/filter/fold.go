package filter

import (
	"fmt"
	"strings"
)

// leastFold is the number of lines that differ only in numbers from which a run is folded.
const leastFold = 4

// fold replaces a run of lines that differ only in counters, times, percentages, sizes, durations and digests by its
// first line, a count, and its last line.
type fold struct {
	// fold only lines that report progress: with a percentage, a part of a whole, a size or a duration
	progress bool
}

func (fold) isNaming() bool { return true } // the remaining lines represent the dropped ones

func (f fold) applyTo(j *job) ([]line, Confidence) {
	out := make([]line, 0, len(j.lines))
	var last, next []byte
	for i := 0; i < len(j.lines); {
		end := i
		if f.isFoldable(&j.lines[i]) {
			last = appendNumberless(last[:0], j.lines[i].bodyText())
			for end = i + 1; end < len(j.lines) && f.isFoldable(&j.lines[end]) &&
				j.lines[end].off == j.lines[i].off; end++ {
				if next = appendNumberless(next[:0], j.lines[end].bodyText()); string(next) != string(last) {
					break
				}
			}
		}
		if end-i < leastFold {
			end = max(end, i+1)
			out = append(out, j.lines[i:end]...)
			i = end
			continue
		}
		out = append(
			out,
			j.lines[i],
			writtenLine(fmt.Sprintf("(%d lines omitted that differ in numbers only)", end-i-2)),
			j.lines[end-1],
		)
		i = end
	}
	if len(out) == len(j.lines) {
		return nil, Fallback
	}
	return out, Partial
}

// isFoldable reports whether a line may become part of a run. One that reports a failure may not.
func (f fold) isFoldable(l *line) bool {
	body := l.bodyText()
	if l.keep || l.src < 0 || !numberAndWord(body) {
		return false
	}
	// passed tests have a summary of their own
	return !f.progress || tellsProgress(body) && !isPassing(l.wordHints(), body)
}

// numberAndWord reports whether a line contains a digit and also something other than numbers. Without a word it is
// data.
func numberAndWord(s string) bool {
	at := 0
	for at < len(s) && !isDigit(s[at]) {
		at++
	}
	if at == len(s) {
		return false
	}
	for i := range len(s) {
		if b := lowerByte(s[i]); b > '|' || b >= 'a' && b <= 'z' && b != 'e' ||
			!isDigit(b) && strings.IndexByte(" \t.,:;+-%/|()[]e", b) < 0 {
			return true
		}
	}
	return false
}

// appendNumberless appends s with every number and digest replaced by one sign. What belongs to a number is part of it:
// 1.5, 12:30:01, 0x1f, 3e-4, 7ms.
func appendNumberless(buf []byte, s string) []byte {
	for i := 0; i < len(s); {
		if end := numberEnd(s, i); end > i {
			buf = append(buf, '#')
			i = end
			continue
		}
		b := s[i]
		if b == '\t' {
			b = ' '
		}
		if b != ' ' || len(buf) == 0 || buf[len(buf)-1] != ' ' { // the width of columns changes with the numbers
			buf = append(buf, b)
		}
		i++
	}
	return buf
}

// numberEnd returns the end of the number or digest that begins at i; i if there is none.
func numberEnd(s string, i int) int {
	if !digitOrHex(s[i]) {
		return i
	}
	if i > 0 && isLetter(s[i-1]) { // v12, worker3: only the digits
		return i + len(s[i:]) - len(strings.TrimLeft(s[i:], "0123456789"))
	}
	end, digits := i, false
	for end < len(s) && (digitOrHex(s[end]) || digits && strings.IndexByte(".,:_-xTZ", s[end]) >= 0 &&
		digitOrHex(byteAt(s, end+1))) {
		digits = digits || isDigit(s[end])
		end++
	}
	if !digits || !isDigit(s[i]) && (isLetter(byteAt(s, end)) || end-i < 6) {
		return i
	}
	return unitEnd(s, end)
}

// unitEnd returns the end of a unit of time or size after a number: 999ms and 1.1s compare as equal.
func unitEnd(s string, at int) int {
	end := at
	for end < len(s) && isLetter(s[end]) {
		end++
	}
	switch s[at:end] {
	case "ns", "us", "ms", "s", "m", "h", "d", "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "K", "M",
		"G", "k":
		return end
	}
	return at
}

func isLetter(b byte) bool { return lowerByte(b) >= 'a' && lowerByte(b) <= 'z' || b >= 0x80 }

// tellsProgress reports whether a line reports progress: 10%, 3/40, 3 of 40, 12 MB, 5 seconds, (1.2s).
func tellsProgress(s string) bool {
	for i := 1; i < len(s); i++ {
		if !isDigit(s[i-1]) || isDigit(s[i]) || s[i] == '.' {
			continue
		}
		rest := strings.TrimPrefix(s[i:], " ")
		if beginsWith(rest, "%", "of ", "seconds", "sec ", "KB", "MB", "GB", "KiB", "MiB", "GiB", "kB") ||
			rest != "" && rest[0] == '/' && isDigit(byteAt(rest, 1)) ||
			isLetter(s[i]) && unitEnd(s, i) > i {
			return true
		}
	}
	return false
}
