package texts

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
)

// Clock is how a person reads times of day.
type Clock string

// The clocks.
const (
	ClockAuto   Clock = "" // that of the language and its region
	ClockTwelve Clock = "12"
	ClockFull   Clock = "24"
)

// clockBook is how a clock of twelve hours says the two halves of a day.
type clockBook struct {
	Before, After string // time of day
}

// twelveList says who reads a clock of twelve hours; the file says where that is from.
//
//go:embed clock.txt
var twelveList string

// twelveHours returns the regions and locales of twelveList.
var twelveHours = sync.OnceValue(func() []string {
	var list []string
	for line := range strings.Lines(twelveList) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, strings.Fields(line)...)
		}
	}
	return list
})

// worldwide are the languages of both clocks that Telegram mostly sends without a region: "en" is what somebody in
// Berlin has as well as somebody in Boston. Their region is that of the reader's time zone; where that is not known
// either, times are said as everybody can read them, from 00:00 to 23:59.
var worldwide = []string{"en", "es"}

// readsTwelve reports whether a reader reads a clock of twelve hours. tag is an IETF tag, and zone that of the reader;
// nil = not known.
func readsTwelve(tag string, zone *time.Location) bool {
	parsed, err := language.Parse(tag)
	if err != nil {
		return false
	}
	base, _ := parsed.Base()
	name := regionOf(parsed, zone)
	locale := base.String() + "-" + name
	if slices.Contains(twelveHours(), "-"+locale) {
		return false
	}
	return slices.Contains(twelveHours(), name) || slices.Contains(twelveHours(), locale)
}

// local returns a moment in the zone of the readers, and what follows its time of day: nothing, or that it is UTC.
func (w Words) local(t time.Time) (at time.Time, mark string) {
	if w.Zone == nil {
		return t.UTC(), " UTC"
	}
	if at = t.In(w.Zone); w.Zone.String() == "UTC" {
		mark = " UTC"
	}
	return at, mark
}

// hour says a time of day as it is, on the clock of the readers.
func (w Words) hour(lang string, at time.Time) string {
	if lang == "" {
		lang = w.Language
	}
	if w.Clock == ClockFull || w.Clock == ClockAuto && !readsTwelve(lang, w.Zone) {
		return at.Format("15:04")
	}
	b, form := &w.in(lang).Clock, at.Format("3:04")
	if at.Hour() < 12 {
		return fmt.Sprintf(b.Before, form)
	}
	return fmt.Sprintf(b.After, form)
}

// clock says a time of day, in the zone of the readers.
func (w Words) clock(lang string, t time.Time) string {
	at, mark := w.local(t)
	return w.hour(lang, at) + mark
}
