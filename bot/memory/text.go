package memory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/policy/scan"
)

// keyBytes limits what a memory is about.
const keyBytes = 64

// Wrong is why a text cannot be remembered.
type Wrong string

// The reasons.
const (
	Empty   Wrong = "empty"
	Long    Wrong = "long"
	Control Wrong = "control" // characters that are not text
	Secret  Wrong = "secret"  // it contains a credential
	Full    Wrong = "full"    // the scope has as many memories as it may have
	Gone    Wrong = "gone"    // there is no such memory
)

// sentence says it to the model.
func (w Wrong) sentence(what string, size, limit int) string {
	switch w {
	case Empty:
		return what + " is empty: say in a sentence what is to be remembered"
	case Long:
		return fmt.Sprintf("%s has %d bytes, at most %d are kept: sum it up, or save several facts one by one", what, size, limit)
	case Control:
		return what + " contains control characters, or is not valid UTF-8: use plain text"
	case Secret:
		return what + " contains a credential (a password, token or key), which is never remembered: leave it out"
	case Full:
		return fmt.Sprintf("%d of %d memories are in use: ask the person which can be forgotten (/memory)", size, limit)
	default:
		return what + " is not remembered here"
	}
}

// clean returns a text as it is stored: trimmed, with plain line breaks and without invisible characters.
func (s *Store) clean(text string, limit int) (string, Wrong) {
	size := len(text)
	if size > max(limit, 0)+1024 { // not worth a look
		return "", Long
	}
	if !utf8.ValidString(text) {
		return "", Control
	}
	text = strings.TrimSpace(scan.Visible(strings.ReplaceAll(text, "\r\n", "\n")))
	switch {
	case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }):
		return "", Empty
	case len(text) > limit:
		return "", Long
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		return "", Control
	case s.deps.Secret != nil && s.deps.Secret(text):
		return "", Secret
	}
	return text, ""
}

// subject returns what a memory is about as it is compared: on one line, in lower case.
func subject(key string) string { return strings.ToLower(strings.Join(strings.Fields(key), " ")) }

// same reports whether two texts say the same, letter by letter, apart from case and spaces.
func same(a, b string) bool { return subject(a) == subject(b) }

// persons are the words by which a memory names the person whom it is about.
var persons = []string{"user", "person", "they", "nutzer", "nutzerin", "usuario", "usuaria", "пользователь"}

// own reports whether a text consists of the words of what a person has said: nothing in it comes from elsewhere.
func own(said string, texts ...string) bool {
	words := catalog.Stems(said)
	for _, text := range texts {
		for _, word := range catalog.Stems(text) {
			if !slices.Contains(words, word) && !slices.Contains(persons, word) {
				return false
			}
		}
	}
	return len(catalog.Stems(strings.Join(texts, " "))) > 0
}
