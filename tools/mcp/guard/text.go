package guard

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/scan"
)

// rounds limits how often a text is scanned again: removing a match can create a new one.
const rounds = 8

// maxLooked limits, in bytes, how much is scanned of a text of which little will be shown. Without it, a server could
// cost us seconds with long texts.
const maxLooked = 16 << 10

// cut shortens s to at most limit bytes, at the end of a character.
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

// Text makes a server's text safe for a model: it replaces matches of the patterns by [sanitized], drops invisible and
// control characters except tab and newline, and cuts the text at limit bytes. rules are the patterns that matched,
// each once. Text is idempotent.
func Text(text string, limit int) (clean string, rules []string) { return mend(text, limit, "") }

// Line is Text on one line: for names, titles, log lines.
func Line(text string, limit int) string {
	clean, _ := Text(strings.Join(strings.Fields(text), " "), limit)
	return strings.TrimRight(strings.Join(strings.Fields(clean), " "), " ")
}

// mend implements Text. tail marks the end of a text that was cut.
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
	if len(scan.Find(text)) > 0 { // it was constructed to match again and again
		return cut(scan.Sanitized, limit), rules
	}
	return text, rules
}
