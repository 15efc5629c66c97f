package guard

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/scan"
)

// rounds bounds how often a text is looked at again: what a match leaves behind may be one with its new neighbours.
const rounds = 8

// maxLooked bounds how much of a text is looked at, in bytes, where little of it will be shown: a server must not cost
// us seconds by long texts.
const maxLooked = 16 << 10

// cut shortens s to at most limit bytes, at the border of a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Text makes a server's text fit for a model: matches of the patterns become [sanitized], invisible characters and
// controls but tab and newline go, and what is longer than limit bytes is cut. rules are the patterns that matched,
// each once. Text of its own result is the same.
func Text(text string, limit int) (clean string, rules []string) { return mend(text, limit, "") }

// Line is Text on one line: for names, titles, log lines.
func Line(text string, limit int) string {
	clean, _ := Text(strings.Join(strings.Fields(text), " "), limit)
	return strings.TrimRight(strings.Join(strings.Fields(clean), " "), " ")
}

// mend is Text; tail stands at the end of what was cut.
func mend(text string, limit int, tail string) (clean string, rules []string) {
	text = strings.ToValidUTF8(cut(text, max(4*limit, maxLooked)), "\uFFFD")
	for range rounds {
		stripped, found := scan.Clean(text)
		for _, r := range found {
			if !slices.Contains(rules, r) {
				rules = append(rules, r)
			}
		}
		if len(stripped) > limit {
			if len(tail) < limit {
				stripped = cut(stripped, limit-len(tail)) + tail
			} else {
				stripped = cut(stripped, limit)
			}
		}
		if stripped == text {
			return text, rules
		}
		text = stripped
	}
	if len(scan.Find(text)) > 0 { // it was made to match again and again
		return cut(scan.Sanitized, limit), rules
	}
	return text, rules
}
