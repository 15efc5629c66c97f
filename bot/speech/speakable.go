package speech

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot/render"
)

// mostSpoken is how much of an answer is spoken, in characters: about two minutes. Servers take 4096 (OpenAI's
// audio/speech), and nobody listens to as much.
const mostSpoken = 1800

// fewestSpoken is where a cut is looked for at the earliest: a first sentence that is longer is cut between words.
const fewestSpoken = mostSpoken / 2

var (
	address    = regexp.MustCompile(`https?://[^\s<>()]*[^\s<>().,;:!?]`)
	blankLines = regexp.MustCompile(`\s*\n\s*\n\s*`)
	decoration = regexp.MustCompile(`(?m)^[\s─━═—_*·•|-]+$`)
)

// speakableText returns what of an answer in Markdown can be spoken: its text without code and tables, which nobody
// understands by ear, and addresses as the names of their hosts. whole is false if something was left out.
func speakableText(markdown string) (text string, whole bool) {
	m := render.Whole(markdown)
	units, whole := utf16.Encode([]rune(m.Text)), true
	var kept []uint16
	at := 0
	for _, e := range m.Entities {
		if e.Type != "pre" || e.Offset < at {
			continue
		}
		kept, at, whole = append(kept, units[at:e.Offset]...), e.Offset+e.Length, false
	}
	text = string(utf16.Decode(append(kept, units[at:]...)))
	text = address.ReplaceAllStringFunc(text, func(found string) string {
		u, err := url.Parse(found)
		if err != nil || u.Hostname() == "" {
			return ""
		}
		return strings.TrimPrefix(u.Hostname(), "www.")
	})
	text = decoration.ReplaceAllString(text, "")
	text = strings.TrimSpace(blankLines.ReplaceAllString(text, "\n\n"))
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return "", whole
	}
	cut, shortened := cutSpeech(text)
	return cut, whole && !shortened
}

// cutSpeech shortens a text to what is spoken, after a sentence if there is one to end with.
func cutSpeech(text string) (cut string, shortened bool) {
	letters := []rune(text)
	if len(letters) <= mostSpoken {
		return text, false
	}
	letters = letters[:mostSpoken]
	word := mostSpoken
	for i := mostSpoken - 1; i >= fewestSpoken; i-- {
		switch {
		case letters[i] == '\n', strings.ContainsRune("。！？", letters[i]):
			return strings.TrimSpace(string(letters[:i+1])), true
		case strings.ContainsRune(".!?…", letters[i]) && i+1 < len(letters) && unicode.IsSpace(letters[i+1]):
			return string(letters[:i+1]), true
		case word == mostSpoken && unicode.IsSpace(letters[i]):
			word = i
		}
	}
	return strings.TrimSpace(string(letters[:word])) + "…", true
}
