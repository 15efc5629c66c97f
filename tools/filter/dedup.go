package filter

import (
	"bytes"
	"fmt"
	"strings"
)

// dedup merges successive lines that differ only in time stamps and UUIDs (seed 003), or in what further patterns
// match.
type dedup struct {
	replace []replacement
}

// replacement is a pattern whose matches are ignored when lines are compared.
type replacement struct {
	pattern pattern
	with    string
}

func (dedup) isNaming() bool { return true } // the remaining line represents the merged ones

func (d dedup) applyTo(j *job) ([]line, Confidence) {
	if len(j.lines) < 3 {
		return nil, Fallback
	}
	out := make([]line, 0, len(j.lines))
	var last, next []byte
	same := 1
	finish := func() {
		if n := len(out); same > 1 {
			out[n-1].text, out[n-1].bits = fmt.Sprintf("%s (x%d)", out[n-1].text, same), 0
		}
		same = 1
	}
	for i := range j.lines {
		l := &j.lines[i]
		next = d.appendNormal(next[:0], l.bodyText())
		if n := len(out); n > 0 && l.src >= 0 && bytes.Equal(last, next) && d.isMergeable(j, i, same) {
			same++
			j.coverSource(l.src)
			continue
		}
		finish()
		out = append(out, *l)
		last, next = next, last
	}
	finish()
	if len(out) == len(j.lines) {
		return nil, Fallback
	}
	return out, Full
}

// isMergeable reports whether line i can be dropped because it repeats the lines before it. A line that must be kept
// has to be the same text, apart from its time stamp if the run succeeded. Blank lines are not worth a count.
func (dedup) isMergeable(j *job, i, same int) bool {
	l, first := &j.lines[i], &j.lines[i-same]
	if l.off != first.off || isBlank(l.bodyText()) {
		return false
	}
	if !l.keep && !first.keep || l.text == first.text {
		return true
	}
	return !j.isGuarded() &&
		string(dedup{}.appendNormal(nil, l.bodyText())) == string(dedup{}.appendNormal(nil, first.bodyText()))
}

// appendNormal appends s without the parts that are ignored.
func (d dedup) appendNormal(buf []byte, s string) []byte {
	if len(d.replace) > 0 {
		for _, r := range d.replace {
			s = r.pattern.re.ReplaceAllString(s, r.with)
		}
	}
	for i := 0; i < len(s); {
		if !digitOrHex(s[i]) || i > 0 && wordByte(s[i-1]) {
			buf = append(buf, s[i])
			i++
			continue
		}
		switch n := stampLength(s[i:]); {
		case n > 0:
			buf = append(buf, "<TS>"...)
			i += n
		case isUUID(s[i:]):
			buf = append(buf, "<UUID>"...)
			i += 36
		default:
			buf = append(buf, s[i])
			i++
		}
	}
	return cutSyslogDate(buf)
}

func digitOrHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '.'
}

// stampLength returns the length of a time stamp at the start of s: 2026-01-02T03:04:05.678Z and similar forms,
// 03:04:05, 02/Jan/2026:03:04:05 +0000; 0 = none.
func stampLength(s string) int {
	n := shapeLength(s, "dddd-dd-dd")
	if n == 0 {
		n = shapeLength(s, "dddd/dd/dd")
	}
	if n > 0 {
		if len(s) <= n || s[n] != 'T' && s[n] != ' ' {
			return 0 // a date without a time is a value
		}
		n++
	} else {
		n = shapeLength(s, "dd/aaa/dddd:")
	}
	clock := shapeLength(s[n:], "dd:dd:dd")
	if clock == 0 {
		return 0
	}
	n += clock
	if n < len(s) && (s[n] == '.' || s[n] == ',') && n+1 < len(s) && isDigit(s[n+1]) {
		for n++; n < len(s) && isDigit(s[n]); n++ {
		}
	}
	return n + zoneLength(s[n:])
}

// zoneLength returns the length of a time zone at the start of s.
func zoneLength(s string) int {
	if strings.HasPrefix(s, "Z") {
		return 1
	}
	for _, form := range []string{"+dd:dd", "-dd:dd", "+dddd", "-dddd", " +dddd", " -dddd"} {
		if n := shapeLength(s, form); n > 0 {
			return n
		}
	}
	return 0
}

// shapeLength returns the length of form if s begins with it, else 0. In form, d stands for a digit, a for a letter,
// and other bytes for themselves.
func shapeLength(s, form string) int {
	if len(s) < len(form) {
		return 0
	}
	for i := range len(form) {
		switch b := s[i]; form[i] {
		case 'd':
			if !isDigit(b) {
				return 0
			}
		case 'a':
			if low := lowerByte(b); low < 'a' || low > 'z' {
				return 0
			}
		default:
			if b != form[i] {
				return 0
			}
		}
	}
	return len(form)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isUUID(s string) bool {
	if len(s) < 36 || len(s) > 36 && wordByte(s[36]) {
		return false
	}
	for i := range 36 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !digitOrHex(s[i]) {
			return false
		}
	}
	return true
}

// cutSyslogDate takes the date off a line that begins with "Jan  2 <TS>".
func cutSyslogDate(buf []byte) []byte {
	if len(buf) < 11 || buf[3] != ' ' || buf[6] != ' ' ||
		!bytes.HasPrefix(buf[7:], []byte("<TS>")) || !isDigit(buf[5]) {
		return buf
	}
	if strings.Contains("JanFebMarAprMayJunJulAugSepOctNovDec", string(buf[:3])) {
		return buf[:copy(buf, buf[7:])]
	}
	return buf
}
