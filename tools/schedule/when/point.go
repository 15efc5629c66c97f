package when

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// farthest is how far ahead a point in time may be.
const farthest = 10 * 366 * 24 * time.Hour

// forms is what a point in time can be written as, for the sentences that refuse one.
const forms = `write "+2m", "+1h30m", "in 5 minutes", "15:00", "3pm", "tomorrow 09:30" or "2026-12-24T18:00"`

// ErrPast means that a point in time is over; errors.Is works on it.
var ErrPast = errors.New("is in the past")

var (
	plusPattern = lazyregexp.New(`(?i)^\+\s*((?:\d{1,6}\s*[wdhms]\s*)+)$`)
	partPattern = lazyregexp.New(`(?i)(\d{1,6})\s*([wdhms])`)
	inPattern   = lazyregexp.New(
		`(?i)^in\s+(an?|\d{1,6})\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)$`,
	)
	// a day, and a time of it: 15:00, 15:00:30, 15h, 15h30, 15 Uhr, 3pm, 3:30 p.m.
	dayPattern = lazyregexp.New(`(?i)^(?:(today|tomorrow|\d{4}-\d{2}-\d{2})\s+)?(?:at\s+)?` +
		`(\d{1,2})(?:(?::|\s?h\s?|\s?uhr\s)(\d{2}))?(?::(\d{2}))?\s*(h|uhr|([ap])\.?\s?m\.?)?$`)
	clockPattern = lazyregexp.New(`^(\d{4})-(\d{2})-(\d{2})(?:[Tt]|` +
		`\s+)(\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?\s*([Zz]|[+-]\d{2}(?::?\d{2})?)?$`)
)

// Point reads a point in time: ISO 8601 with an offset, or without one by the clock of zone; a distance from now
// ("+1h30m", "in 5 minutes"); a day in words with a time ("next friday at 9", "morgen um 9 Uhr"); or a time of day, as people of both clocks write it ("today 14:00", "tomorrow 3pm", "15h30"),
// which without a day is the next one. It has to be in the future, and
// within ten years. The error says what was wrong and what to write; it wraps ErrPast if the time is over.
func Point(text string, now time.Time, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	at, err := point(text, now, zone)
	switch {
	case err != nil:
		return time.Time{}, err
	case !at.After(now):
		return time.Time{}, fmt.Errorf(
			"%q %w: it is %s now; %s", text, ErrPast, now.In(zone).Format("2006-01-02 15:04 MST"), forms,
		)
	case at.Sub(now) > farthest:
		return time.Time{}, fmt.Errorf("%q is more than ten years ahead", text)
	}
	return at.Truncate(time.Second), nil
}

func point(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if m := plusPattern().FindStringSubmatch(text); m != nil {
		return ahead(now, m[1])
	}
	if m := inPattern().FindStringSubmatch(text); m != nil {
		count := m[1]
		if strings.HasPrefix(strings.ToLower(count), "a") {
			count = "1"
		}
		return ahead(now, count+m[2][:1])
	}
	if m := clockPattern().FindStringSubmatch(text); m != nil {
		return stamp(text, m, zone)
	}
	if m := dayPattern().FindStringSubmatch(text); m != nil && m[3]+m[5] != "" { // a number alone is no time
		return onDay(text, m, now, zone)
	}
	if at, ok, err := wordedPoint(text, now, zone); ok {
		return at, err
	}
	if text == "" {
		return time.Time{}, errors.New("no time is given: " + forms)
	}
	return time.Time{}, fmt.Errorf("%q is not a time: %s", shorten(text), forms)
}

// shorten limits what a sentence repeats.
func shorten(text string) string {
	const most = 60
	if list := []rune(text); len(list) > most {
		return string(list[:most]) + "…"
	}
	return text
}

// ahead adds distances such as 1h30m to now.
func ahead(now time.Time, text string) (time.Time, error) {
	sum := time.Duration(0)
	for _, m := range partPattern().FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a number", m[1])
		}
		unit := map[string]time.Duration{
			"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
		}[strings.ToLower(m[2])]
		if time.Duration(n) > farthest/unit {
			return time.Time{}, fmt.Errorf("%q is more than ten years ahead", strings.TrimSpace(text))
		}
		sum += time.Duration(n) * unit
	}
	return now.Add(sum), nil
}

// onDay reads a time of day that dayPattern has split. Without a day it is the next one.
func onDay(text string, m []string, now time.Time, zone *time.Location) (time.Time, error) {
	clock := slices.Clone(m[2:5])
	if half := strings.ToLower(m[6]); half != "" {
		hour, _ := strconv.Atoi(clock[0]) // digits
		if hour < 1 || hour > 12 {
			return time.Time{}, fmt.Errorf("%q: there is no such time of day; am and pm go from 1 to 12", text)
		}
		if hour %= 12; half == "p" {
			hour += 12
		}
		clock[0] = strconv.Itoa(hour)
	}
	day := face(now.In(zone))
	on := func(day time.Time) (time.Time, error) {
		return local(text, day.Year(), int(day.Month()), day.Day(), clock, zone)
	}
	switch named := strings.ToLower(m[1]); named {
	case "today":
		return on(day)
	case "tomorrow":
		return on(day.AddDate(0, 0, 1))
	case "":
		at, err := on(day)
		if err != nil || at.After(now) {
			return at, err
		}
		return on(day.AddDate(0, 0, 1))
	default:
		date, err := time.Parse(time.DateOnly, named)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q: there is no such date", text)
		}
		return on(date)
	}
}

// stamp reads an ISO 8601 time that clockPattern has split.
func stamp(text string, m []string, zone *time.Location) (time.Time, error) {
	date := make([]int, 3)
	for i := range date {
		date[i], _ = strconv.Atoi(m[i+1]) // digits
	}
	if m[7] == "" {
		return local(text, date[0], date[1], date[2], m[4:7], zone)
	}
	offset, err := offsetOf(m[7])
	if err != nil {
		return time.Time{}, fmt.Errorf("%q: %w", text, err)
	}
	return local(text, date[0], date[1], date[2], m[4:7], time.FixedZone("", offset))
}

// offsetOf reads Z, +02, +0200 or +02:00 in seconds.
func offsetOf(text string) (int, error) {
	if text == "Z" || text == "z" {
		return 0, nil
	}
	digits := strings.ReplaceAll(text[1:], ":", "") + "00"
	hours, _ := strconv.Atoi(digits[:2])
	minutes, _ := strconv.Atoi(digits[2:4])
	if hours > 14 || minutes > 59 {
		return 0, fmt.Errorf("there is no offset %s", text)
	}
	seconds := (hours*60 + minutes) * 60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, nil
}

// local returns when the clock of a zone shows a date and a time of day (hour, minute, second or "").
func local(text string, year, month, day int, clock []string, zone *time.Location) (time.Time, error) {
	var hms [3]int
	for i, part := range clock {
		hms[i], _ = strconv.Atoi(part) // digits, or nothing
	}
	if hms[0] > 23 || hms[1] > 59 || hms[2] > 59 {
		return time.Time{}, fmt.Errorf("%q: there is no such time of day; it goes from 00:00 to 23:59", text)
	}
	face := time.Date(year, time.Month(month), day, hms[0], hms[1], hms[2], 0, time.UTC)
	if month < 1 || month > 12 || face.Day() != day || day == 0 {
		return time.Time{}, fmt.Errorf("%q: there is no such date", text)
	}
	return instant(face, zone), nil
}

// Stamp reads a point in time that does not depend on the present one: ISO 8601, with an offset or without one by the
// clock of zone. It may be over.
func Stamp(text string, zone *time.Location) (time.Time, error) {
	m := clockPattern().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return time.Time{}, fmt.Errorf("%q is not a time: write it like \"2026-12-24T18:00\"", shorten(text))
	}
	return stamp(text, m, zone)
}
