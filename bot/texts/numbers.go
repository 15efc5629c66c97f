package texts

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"github.com/zephbot/zephbot/bot/texts/languages"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// numberBook is how amounts are written; the marks in numbers are those of Unicode CLDR (golang.org/x/text).
type numberBook struct {
	Money string // an amount in dollars
	Less  string // an amount that is too small to be said
	Units string // bytes, and thousands and millions of them
}

// dateBook is how days are written, by the medium forms of Unicode CLDR.
type dateBook struct {
	Day      string // day of the month, month, year
	American string // the same in the United States and Canada
	Months   string // their names, short
}

// locale returns the language of the sentences for readers of a language, with the region of the readers if it is
// known: from their tag or, for the languages of the world, from their zone.
func (w Words) locale(lang string) language.Tag {
	if lang == "" {
		lang = w.Language
	}
	tag, err := language.Parse(lang)
	base, _ := tag.Base()
	if err != nil || !slices.Contains(languages.Tags(), base.String()) {
		return language.English
	}
	if name := regionOf(tag, w.Zone); name != "" {
		if region, err := language.ParseRegion(name); err == nil {
			base := language.Make(base.String())
			if tag, err := language.Compose(base, region); err == nil {
				return tag
			}
		}
	}
	return language.Make(base.String())
}

// regionOf returns the region of readers: the one in their tag, else the usual one of their language. For a language of
// the world it is that of their zone, "" = not known.
func regionOf(tag language.Tag, zone *time.Location) string {
	base, _ := tag.Base()
	region, confidence := tag.Region()
	if confidence == language.Exact || !slices.Contains(worldwide, base.String()) {
		return region.String()
	}
	if zone != nil {
		return when.Country(zone.String())
	}
	return ""
}

// decimal writes a number with so many decimals, as the readers do.
func (w Words) decimal(lang string, x float64, decimals int) string {
	tag := w.locale(lang)
	options := []number.Option{number.Scale(decimals)}
	switch base, _ := tag.Base(); {
	case base.String() == languages.Standard: // CLDR has commas for en-DE, which look like mistakes in English
		tag = language.English
	case base.String() == "es" && math.Abs(x) < 10_000:
		options = append(options, number.NoSeparator()) // CLDR: four digits have no mark
	}
	return message.NewPrinter(tag).Sprint(number.Decimal(x, options...))
}

// number writes a whole number as the readers do.
func (w Words) number(lang string, n int64) string { return w.decimal(lang, float64(n), 0) }

// Money says an amount with two significant digits; what is smaller than a hundredth of a cent is said to be that.
func (w Words) Money(language string, usd float64) string {
	b := w.in(language).Numbers
	form := b.Money
	if strings.HasPrefix(w.decimal(language, 0.5, 1), "0.") { // as in Mexico: who writes 0.5 writes $0.5
		form = library().books[languages.Standard].Numbers.Money
	}
	amount := func(x float64, decimals int) string { return fmt.Sprintf(form, w.decimal(language, x, decimals)) }
	switch {
	case usd <= 0:
		return amount(0, 0)
	case usd < 0.0001:
		return fmt.Sprintf(b.Less, amount(0.0001, 4))
	case usd < 0.995:
		return amount(usd, 1-int(math.Floor(math.Log10(usd))))
	case usd < 9.995:
		return amount(usd, 2)
	default:
		return amount(usd, 0)
	}
}

// Bytes says a size.
func (w Words) Bytes(language string, n int64) string {
	units := strings.Fields(w.in(language).Numbers.Units)
	switch {
	case n < 1000:
		return w.number(language, n) + " " + units[0]
	case n < 999_950: // above, it would round to 1000.0 kB
		return w.decimal(language, float64(n)/1000, 1) + " " + units[1]
	default:
		return w.decimal(language, float64(n)/1e6, 1) + " " + units[2]
	}
}

// American regions.
var (
	us     = language.MustParseRegion("US")
	canada = language.MustParseRegion("CA")
)

// exactly: a tag names its region.
const exactly = language.Exact

// date says the day of a moment as it is in its zone.
func (w Words) date(language string, at time.Time) string {
	b := w.in(language).Dates
	form := b.Day
	if region, sure := w.locale(language).Region(); sure == exactly && (region == us || region == canada) {
		form = b.American
	}
	return fmt.Sprintf(form, at.Day(), strings.Fields(b.Months)[at.Month()-1], at.Year())
}

// Day says a day, in the zone of the readers.
func (w Words) Day(language string, t time.Time) string {
	at, _ := w.local(t)
	return w.date(language, at)
}

// Moment says a day and a time of day, in the zone of the readers.
func (w Words) Moment(language string, t time.Time) string {
	at, mark := w.local(t)
	return w.dateTime(language, at) + mark
}

// dateTime says a day and a time of day as they are in the zone of at.
func (w Words) dateTime(language string, at time.Time) string {
	return w.date(language, at) + ", " + w.hour(language, at)
}
