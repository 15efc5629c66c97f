package reformat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/policy/redact"
)

// checkRearranged checks that every value of the corrected arguments occurs in the original ones, in whatever spelling:
// a text or a number by its letters and digits, a boolean or null by the name of its field. A model that was told not
// to invent values does it all the same, and an invented path or flag would be run.
func checkRearranged(written, corrected json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(corrected))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	w := source{string(written)}
	var tree any
	read := json.NewDecoder(bytes.NewReader(written))
	read.UseNumber()
	if read.Decode(&tree) == nil { // with its escapes resolved too
		w = append(w, flattenTree(tree))
	}
	if !w.holdsValue("", v) {
		return ErrInvented
	}
	return nil
}

// source is the original arguments, as written and as parsed.
type source []string

func (s source) hasText(text string) bool {
	text = essenceOf(text)
	return slices.ContainsFunc(s, func(w string) bool { return strings.Contains(essenceOf(w), text) })
}

// hasNumber looks for all digits of a number, not for part of a longer one.
func (s source) hasNumber(n string) bool {
	digit := func(text string, at int) bool { return at >= 0 && at < len(text) && text[at] >= '0' && text[at] <= '9' }
	for _, w := range s {
		for at := 0; at+len(n) <= len(w); at++ {
			if strings.HasPrefix(w[at:], n) && !digit(w, at-1) && !digit(w, at+len(n)) && (at == 0 || w[at-1] != '.') {
				return true
			}
		}
	}
	return false
}

// holdsValue checks every value. field is the name of the nearest enclosing field.
func (s source) holdsValue(field string, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if !s.holdsValue(name, value) {
				return false
			}
		}
		return true
	case []any:
		for _, value := range v {
			if !s.holdsValue(field, value) {
				return false
			}
		}
		return true
	case string:
		return !strings.Contains(v, redact.Mask) && s.hasText(v)
	case json.Number:
		return s.hasNumber(v.String())
	default:
		return s.hasText(field)
	}
}

// essenceOf is a text without everything that quoting, escaping and spacing can change.
func essenceOf(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), strings.ContainsRune("\"'`\\,:{}[]", r):
			return -1
		default:
			return unicode.ToLower(r)
		}
	}, text)
}

// flattenTree writes all names and values of a tree in sequence.
func flattenTree(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var b strings.Builder
		for name, value := range v {
			b.WriteString(name + " \x00 " + flattenTree(value) + " \x00 ")
		}
		return b.String()
	case []any:
		var b strings.Builder
		for _, value := range v {
			b.WriteString(flattenTree(value) + " \x00 ")
		}
		return b.String()
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}
