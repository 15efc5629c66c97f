package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a text that is split into terms.
const (
	maxTermText  = 8 << 10 // bytes
	maxTerms     = 512
	maxTermRunes = 40 // longer words are cut
)

// splitTerms splits a text into lower-case stems, at everything but letters and digits, and within identifiers
// (camelCase, snake_case, HTTPServer2). Scripts without spaces yield pairs of characters. Stop words are left out;
// stops counts those that show that the text is English.
func splitTerms(text string) (list []string, stops int) {
	if len(text) > maxTermText {
		text = text[:maxTermText]
	}
	var word []rune
	end := func() {
		switch w := strings.ToLower(string(word)); {
		case len(word) == 0 || len(list) >= maxTerms:
		case isDense(word[0]):
			list = append(list, runePairs(word)...)
		case englishStop(w):
			stops++
		case ambiguousStop(w), goOn(w):
		default:
			list = append(list, stemWord(w))
		}
		word = word[:0]
	}
	for i, r := range text {
		switch {
		case !isSpelling(r):
			end()
			continue
		case len(word) > 0 && isBoundary(word[len(word)-1], r, text[i:]):
			end()
		}
		if len(word) == maxTermRunes && isDense(r) { // not a word, only a long line
			end()
		}
		if len(word) < maxTermRunes {
			word = append(word, r)
		}
	}
	end()
	return list[:min(len(list), maxTerms)], stops
}

// isSpelling reports whether a character is part of a word. Invalid UTF-8 is not.
func isSpelling(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// isBoundary reports whether a new word begins with r, the first character of rest.
func isBoundary(before, r rune, rest string) bool {
	switch {
	case isDense(before) != isDense(r):
		return true
	case unicode.IsUpper(r) && !unicode.IsUpper(before):
		return true
	case unicode.IsUpper(r): // the S of HTTPServer
		after, _ := utf8.DecodeRuneInString(rest[utf8.RuneLen(r):])
		return unicode.IsLower(after)
	default:
		return unicode.IsDigit(r) && !unicode.IsDigit(before)
	}
}

// isDense reports whether a script writes words without spaces.
func isDense(r rune) bool {
	return r > 0x0e00 && unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// runePairs lists the overlapping pairs of characters.
func runePairs(run []rune) []string {
	if len(run) == 1 {
		return []string{string(run)}
	}
	list := make([]string, 0, len(run)-1)
	for i := range len(run) - 1 {
		list = append(list, string(run[i:i+2]))
	}
	return list
}

// stemWord removes the most common English endings, so that "files", "deleting" and "created" match "file", "delete"
// and "create". It is simple on purpose: both sides are stemmed, so a wrong stem costs little.
func stemWord(w string) string {
	if len(w) < 4 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"),
		strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") &&
		!strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed"} {
		if rest, ok := strings.CutSuffix(w, ending); ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") {
			w = undoubleEnd(rest)
			break
		}
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// undoubleEnd removes the second of two equal consonants at the end: "runn" becomes "run". Consonants that
// English doubles anyway are kept.
func undoubleEnd(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiouls", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// englishStop lists English function words that say nothing about a tool and do not occur in the other languages that
// people are likely to use.
func englishStop(w string) bool {
	switch w {
	case "about", "all", "and", "any", "are", "at", "be", "because", "been", "but", "by", "can", "could",
		"did", "does", "doing", "done", "don", "each", "for", "from", "give", "had", "has", "have", "he",
		"her", "here", "him", "his", "how", "if", "into", "is", "it", "its", "just", "let", "ll", "many",
		"may", "might", "more", "most", "much", "must", "my", "need", "not", "now", "of", "off", "one", "only",
		"or", "other", "our", "out", "please", "shall", "she", "should", "some", "such", "tell", "than",
		"that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "use",
		"used", "uses", "using", "ve", "very", "want", "we", "were", "what", "when", "where", "which", "while",
		"who", "why", "will", "with", "would", "you", "your":
		return true
	}
	return false
}

// ambiguousStop lists English function words that exist in other languages too ("was", "in"), and the remains of "I'm"
// and "don't".
func ambiguousStop(w string) bool {
	switch w {
	case "a", "also", "am", "an", "as", "d", "do", "i", "in", "m", "me", "no", "on", "re", "s", "so", "t",
		"us", "was":
		return true
	}
	return false
}

// goOn lists the words of messages that only agree, greet or thank, in English and German.
func goOn(w string) bool {
	switch w {
	case "yes", "yep", "yeah", "ok", "okay", "sure", "fine", "good", "great", "nice", "cool", "thanks",
		"thank", "thx", "hello", "hi", "hey", "again", "go", "ahead", "continue", "proceed", "right",
		"correct", "exactly", "well", "ja", "jo", "genau", "nein", "bitte", "danke", "hallo", "weiter",
		"gerne", "nochmal", "klar", "gut", "mach", "das", "los", "mal":
		return true
	}
	return false
}
