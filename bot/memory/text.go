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

// wrongText is why a text cannot be remembered.
type wrongText string

// The reasons.
const (
	wrongEmpty   wrongText = "empty"
	wrongLong    wrongText = "long"
	wrongControl wrongText = "control" // characters that are not text
	wrongSecret  wrongText = "secret"  // it contains a credential
	wrongFull    wrongText = "full"    // the scope has as many memories as it may have
	wrongGone    wrongText = "gone"    // there is no such memory
)

// sentence says it to the model.
func (w wrongText) sentence(what string, size, limit int) string {
	switch w {
	case wrongEmpty:
		return what + " is empty: say in a sentence what is to be remembered"
	case wrongLong:
		return fmt.Sprintf(
			"%s has %d bytes, at most %d are kept: sum it up, or save several facts one by one", what, size, limit,
		)
	case wrongControl:
		return what + " contains control characters, or is not valid UTF-8: use plain text"
	case wrongSecret:
		return what + " contains a credential (a password, token or key), which is never remembered: leave it out"
	case wrongFull:
		return fmt.Sprintf("%d of %d memories are in use: ask the person which can be forgotten (/memory)", size, limit)
	default:
		return what + " is not remembered here"
	}
}

// cleanText returns a text as it is stored: trimmed, with plain line breaks and without invisible characters.
func (s *Store) cleanText(text string, limit int) (string, wrongText) {
	size := len(text)
	if size > max(limit, 0)+1024 { // not worth a look
		return "", wrongLong
	}
	if !utf8.ValidString(text) {
		return "", wrongControl
	}
	text = scan.Visible(strings.ReplaceAll(text, "\r\n", "\n"))
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) { // a person is to read what the model reads, in the same order
			return -1
		}
		return r
	}, text))
	switch {
	case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }):
		return "", wrongEmpty
	case len(text) > limit:
		return "", wrongLong
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		return "", wrongControl
	case s.deps.Secret != nil && s.deps.Secret(text):
		return "", wrongSecret
	}
	return text, ""
}

// comparedSubject returns what a memory is about as it is compared: on one line, in lower case.
func comparedSubject(key string) string {
	return strings.ToLower(strings.Join(strings.Fields(key), " "))
}

// sameText reports whether two texts say the same, letter by letter, apart from case and spaces.
func sameText(a, b string) bool { return comparedSubject(a) == comparedSubject(b) }

// persons are the words by which a memory names the person whom it is about.
var persons = []string{"user", "person", "they", "nutzer", "nutzerin", "usuario", "usuaria", "пользователь"}

// plain are words that a sentence needs and that say nothing of their own. A negation is none.
var plain = strings.Fields(
	`the a an of to is are am was were be been has have had do does did i my me mine you your they
their them he his him she her it its we our us s that this as at in on for by with from and`,
)

// isOwnWords reports whether a text consists of the words of what a person has said: nothing in it
// comes from elsewhere. Its words have to be near each other there, since of a long text that somebody
// pastes anything could be made.
func isOwnWords(said string, texts ...string) bool {
	const most = 64 << 10
	if len(said) > most {
		said = said[:most]
	}
	wanted := map[string]int{} // where it was said last, by stem; -1 = not yet
	for _, word := range wordsOf(strings.Join(texts, " ")) {
		if !slices.Contains(persons, word) && !slices.Contains(plain, word) {
			wanted[wordStem(word)] = -1
		}
	}
	missing := len(wanted)
	if missing == 0 {
		return false
	}
	reach := 3*missing + 10
	for i, word := range wordsOf(said) {
		key := wordStem(word)
		last, ok := wanted[key]
		if !ok {
			continue
		}
		if last < 0 {
			missing--
		}
		wanted[key] = i
		if missing > 0 {
			continue
		}
		first := i
		for _, at := range wanted {
			first = min(first, at)
		}
		if i-first < reach {
			return true
		}
	}
	return false
}

// wordsOf splits a text into its words in lower case. A sign that is no punctuation, such as an emoji, is a word.
func wordsOf(text string) []string {
	var list []string
	begin := -1
	text = strings.ToLower(text)
	for i, r := range text {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if !letter && begin >= 0 {
			list, begin = append(list, text[begin:i]), -1
		}
		switch {
		case letter && begin < 0:
			begin = i
		case !letter && !unicode.IsSpace(r) && !unicode.IsPunct(r):
			list = append(list, string(r))
		}
	}
	if begin >= 0 {
		list = append(list, text[begin:])
	}
	return list
}

// wordStem is the form in which words are compared.
func wordStem(word string) string {
	if list := catalog.Stems(word); len(list) == 1 {
		return list[0]
	}
	return word
}
