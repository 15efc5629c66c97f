package inquiry

import (
	"regexp"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// clockTime finds a time of day behind a word for a day: "morgen um 9:30", "mañana a las 9:30".
var clockTime = regexp.MustCompile(`^\D*(\d{1,2}):(\d{2})\D*$`)

// readDay reads a day that a person has written, by the clock of their zone and in the words of their language or in
// English.
func (d *Desk) readDay(q approval.Inquiry, text, language string) (answer tools.FormAnswer, problem string) {
	labels := d.deps.Words.InquiryButtons(language)
	zone := d.zoneOf(q)
	wanted := strings.TrimSpace(text)
	for word, english := range map[string]string{labels.Today: "today", labels.Tomorrow: "tomorrow"} {
		rest, ok := cutWord(wanted, word)
		if m := clockTime.FindStringSubmatch(rest); ok && m != nil {
			wanted = english + " " + m[1] + ":" + m[2]
			break
		} else if ok && rest == "" {
			wanted = english
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
