package texts

import (
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/reason"
)

// Reason says why a call needs approval or is refused; "" if there is no reason, or one
// that this version does not know.
func (w Words) Reason(language string, why reason.Reason) string {
	text := w.Said(language, why)
	if text == "" || why.Code == "" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Said is what a part of the program says about its state, about a call or about a mistake; "" if it says nothing, or
// what this version does not know.
func (w Words) Said(language string, what reason.Reason) string {
	return what.In(w.in(language).Reason)
}

// Source says where a text comes from, a source.Source; "" = nowhere.
func (w Words) Source(language, from string) string {
	return w.Said(language, reason.From(from))
}
