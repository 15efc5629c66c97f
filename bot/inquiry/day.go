package inquiry

import (
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// readDay reads a day that a person has written, by the clock of their zone and in the words of any language that we
// speak.
func (d *Desk) readDay(q approval.Inquiry, text, language string) (answer tools.FormAnswer, problem string) {
	labels := d.deps.Words.InquiryButtons(language)
	zone := d.zoneOf(q)
	wanted := strings.TrimSpace(text)
	for word, english := range map[string]string{labels.Today: "today", labels.Tomorrow: "tomorrow"} {
		if rest, ok := cutWord(wanted, word); ok { // of a language that package when does not know
			wanted = strings.TrimSpace(english + " " + rest)
			break
		}
	}
	at, hour, err := when.Day(wanted, d.deps.Now(), zone)
	switch {
	case err != nil:
		return answer, d.deps.Words.InquiryNoDay(language)
	case hour:
		return tools.FormAnswer{Day: at.In(zone).Format(time.RFC3339)}, ""
	}
	return tools.FormAnswer{Day: at.Format(time.DateOnly)}, ""
}

// cutWord returns what follows a word at the beginning of a text, in small or capital letters.
func cutWord(text, word string) (rest string, ok bool) {
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return "", false
	}
	return strings.TrimSpace(text[len(word):]), true
}
