package when

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The forms of a day: as in ISO 8601, or day, month and perhaps year with dots.
var (
	isoDay    = regexp.MustCompile(`^(\d{4})-(\d{1,2})-(\d{1,2})$`)
	dottedDay = regexp.MustCompile(`^(\d{1,2})\.\s?(\d{1,2})(?:\.|\.\s?(\d{4}))?$`)
)

// Day reads a day, or a point in time, past or future: what Point and Stamp read; words for a day in any of our languages
// ("next friday", "in zwei Wochen", "5 de diciembre"); 2026-12-24; and 24.12.2026, or 24.12. for the next such day. hour says that a time was given too; without one, the result is the
// beginning of the day in zone.
func Day(text string, now time.Time, zone *time.Location) (at time.Time, hour bool, err error) {
	text = strings.TrimSpace(text)
	today := now.In(zone)
	if day, ok := wordedDay(text, today); ok {
		return midnight(day.Year(), day.Month(), day.Day(), zone), false, nil
	}
	if m := isoDay.FindStringSubmatch(text); m != nil {
		at, err = existing(text, m[1], m[2], m[3], zone)
		return at, false, err
	}
	if m := dottedDay.FindStringSubmatch(text); m != nil {
		if m[3] != "" {
			at, err = existing(text, m[3], m[2], m[1], zone)
			return at, false, err
		}
		begun := midnight(today.Year(), today.Month(), today.Day(), zone)
		for year := range 9 { // the 29th of February can be eight years away
			at, err = existing(text, strconv.Itoa(today.Year()+year), m[2], m[1], zone)
			if err == nil && !at.Before(begun) {
				break
			}
		}
		return at, false, err
	}
	if at, err = Stamp(text, zone); err == nil {
		return at, true, nil
	}
	at, err = Point(text, now, zone)
	return at, err == nil, err
}

// midnight returns the beginning of a day, which in some zones is not 00:00.
func midnight(year int, month time.Month, day int, zone *time.Location) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, zone)
}

// existing returns the beginning of a day of the calendar.
func existing(text, year, month, day string, zone *time.Location) (time.Time, error) {
	y, _ := strconv.Atoi(year) // digits
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(day)
	at := time.Date(y, time.Month(m), d, 12, 0, 0, 0, time.UTC)
	if at.Day() != d || int(at.Month()) != m || y == 0 {
		return time.Time{}, fmt.Errorf("%q: there is no such date", shorten(text))
	}
	return midnight(y, time.Month(m), d, zone), nil
}
