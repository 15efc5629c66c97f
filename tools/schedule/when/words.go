package when

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed words.txt
var wordList string

// meanings are what the words of wordList mean.
var meanings = sync.OnceValue(func() map[string]string {
	list := map[string]string{}
	for line := range strings.Lines(wordList) {
		meaning, words, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for word := range strings.FieldsSeq(words) {
			list[word] = meaning
		}
	}
	return list
})

// phrases are said with several words.
var phrases = strings.NewReplacer(
	"day after tomorrow", "overmorrow", "pasado mañana", "overmorrow", "pasado manana", "overmorrow", "dentro de", "in",
)

var (
	// behindDay is a time of day behind words for a day: 9:30, at 9, um 9 Uhr, a las 9, в 9, 3pm.
	behindDay = regexp.MustCompile(`(?i)^(.*?\S)(?:,?\s+|,)(?:(?:at|um|a las?|в|@)\s+(\d{1,2})` +
		`|(?:(?:at|um|a las?|в|@)\s+)?(\d{1,2}(?::\d{2}(?::\d{2})?|\s?h\s?(?:\d{2})?|\s?uhr(?:\s\d{2})?|(?::\d{2})?\s?[ap]\.?\s?m\.?)))$`)
	ordinal = regexp.MustCompile(`^(\d{1,2})(?:st|nd|rd|th|\.|-?го|º)?$`)
	year    = regexp.MustCompile(`^\d{4}$`)
)

// wordedDay reads a day that is said with words of one of the languages, such as "next friday", "in zwei Wochen", "5 de
// diciembre" or "послезавтра". today is a moment of the present day in its zone, as the result is of the day that is
// meant.
func wordedDay(text string, today time.Time) (day time.Time, ok bool) {
	var said []string // meanings and numbers
	text = phrases.Replace(strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), " ")))
	for word := range strings.FieldsSeq(text) {
		meaning, known := meanings()[strings.TrimRight(word, ".!?")]
		switch {
		case meaning == "dropped":
		case known:
			said = append(said, meaning)
		case ordinal.MatchString(word):
			said = append(said, ordinal.FindStringSubmatch(word)[1])
		case year.MatchString(word):
			said = append(said, word)
		default:
			return day, false
		}
	}
	midday := time.Date(today.Year(), today.Month(), today.Day(), 12, 0, 0, 0, time.UTC)
	return saidDay(said, midday)
}

// saidDay returns the day that meanings say.
func saidDay(said []string, today time.Time) (day time.Time, ok bool) {
	if len(said) > 1 && weekdayOf(said[0]) >= 0 { // Friday, December 5
		if day, ok := calendarDay(said[1:], today); ok {
			return day, true
		}
	}
	switch {
	case len(said) == 1 && weekdayOf(said[0]) >= 0:
		ahead := (weekdayOf(said[0]) - int(today.Weekday()) + 7) % 7
		if ahead == 0 {
			ahead = 7
		}
		return today.AddDate(0, 0, ahead), true
	case len(said) == 2 && said[0] == "next" && weekdayOf(said[1]) >= 0:
		monday := today.AddDate(0, 0, 7-(int(today.Weekday())+6)%7)
		return monday.AddDate(0, 0, (weekdayOf(said[1])+6)%7), true
	case len(said) == 1:
		days, relative := map[string]int{"today": 0, "tomorrow": 1, "overmorrow": 2, "yesterday": -1}[said[0]]
		return today.AddDate(0, 0, days), relative
	case said == nil:
		return day, false
	case said[0] == "in" && len(said) == 2: // через неделю
		return afterDays(1, said[1], today)
	case said[0] == "in" && len(said) == 3:
		n, err := strconv.Atoi(said[1])
		if err != nil {
			return day, false
		}
		return afterDays(n, said[2], today)
	}
	return calendarDay(said, today)
}

// weekdayOf returns the number of a day of the week from Sunday; -1 = it is none.
func weekdayOf(meaning string) int {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String(), meaning) {
			return int(d)
		}
	}
	return -1
}

// afterDays returns the day after so many days, weeks or months. A month ends no later than its last day.
func afterDays(n int, unit string, today time.Time) (day time.Time, ok bool) {
	switch unit {
	case "days":
		return today.AddDate(0, 0, n), true
	case "weeks":
		return today.AddDate(0, 0, 7*n), true
	case "months":
		day = today.AddDate(0, n, 0)
		if day.Day() != today.Day() {
			day = day.AddDate(0, 0, -day.Day())
		}
		return day, true
	}
	return day, false
}

// calendarDay reads a day and a month in either order, and perhaps a year; without one it is the next such day.
func calendarDay(said []string, today time.Time) (day time.Time, ok bool) {
	if len(said) < 2 || len(said) > 3 {
		return day, false
	}
	number, month := said[0], said[1]
	if monthOf(month) == 0 {
		number, month = month, number
	}
	n, err := strconv.Atoi(number)
	m := monthOf(month)
	if err != nil || m == 0 || n < 1 || n > 31 {
		return day, false
	}
	years := []int{today.Year()}
	if len(said) == 3 {
		if years[0], err = strconv.Atoi(said[2]); err != nil || !year.MatchString(said[2]) {
			return day, false
		}
	} else {
		for next := range 8 { // the 29th of February can be eight years away
			years = append(years, today.Year()+next+1)
		}
	}
	for _, y := range years {
		day = time.Date(y, m, n, 12, 0, 0, 0, time.UTC)
		if day.Day() == n && (len(said) == 3 || !day.Before(today)) {
			return day, true
		}
	}
	return day, false
}

// monthOf returns the month that a meaning names; 0 = it is none.
func monthOf(meaning string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(m.String(), meaning) {
			return m
		}
	}
	return 0
}

// wordedPoint reads words for a day with a time of day behind them; ok is false if the text is something else.
func wordedPoint(text string, now time.Time, zone *time.Location) (at time.Time, ok bool, err error) {
	m := behindDay.FindStringSubmatch(text)
	if m == nil {
		return at, false, nil
	}
	day, known := wordedDay(m[1], now.In(zone))
	if !known {
		return at, false, nil
	}
	clock := m[3]
	if m[2] != "" {
		clock = m[2] + ":00"
	}
	at, err = point(day.Format(time.DateOnly)+" "+clock, now, zone)
	return at, true, err
}
