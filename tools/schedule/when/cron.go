// Package when reads what people and models write about times: cron expressions, points in time in the words of a
// person, and names of time zones. It is pure: the present time and the zone are given to it.
//
// Local times are those of a zone's clock. One that does not exist, because the clock is put forward, means the first
// instant after the gap. One that exists twice, because the clock is put back, means the first of the two.
package when

import (
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// mostOften is the shortest time between two runs of a Cron.
const mostOften = time.Minute

// looks is how many runs of a Cron are compared with mostOften: those of an hour, and some more.
const looks = 100

// Cron is a repeated time: a cron expression. The zero value is not valid; make one with ParseCron. It is immutable.
type Cron struct {
	schedule cron.Schedule
	hourly   bool // in every hour: it means a distance between runs rather than times of day
}

// parser reads the fields. It is given no zone and no descriptor (ParseCron).
func parser() cron.Parser {
	return cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
		cron.DowOrDom | cron.DowNth | cron.DowLast | cron.DomL | cron.DomW)
}

// ParseCron reads a cron expression of five fields (minute, hour, day of month, month, day of week), or of six with the
// seconds in front. Where both days are restricted, either is sufficient. It refuses zones within the expression, names
// such as @daily, what never comes, and what comes more often than once a minute. The error says what was wrong and
// what to write.
func ParseCron(text string) (Cron, error) {
	fields := strings.Fields(text)
	if i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(cronLetters, r) }); i >= 0 {
		return Cron{}, fmt.Errorf("a cron expression has no %q: write five fields, such as \"0 9 * * 1-5\" for nine on working days;"+
			" it applies in the person's time zone", strings.ToValidUTF8(text[i:i+1], "?"))
	}
	if len(fields) != 5 && len(fields) != 6 {
		return Cron{}, fmt.Errorf("a cron expression has 5 fields (minute, hour, day of month, month, day of week), or 6 with the seconds"+
			" in front, not %d: \"0 9 * * *\" is every day at nine", len(fields))
	}
	schedule, err := parser().Parse(strings.Join(fields, " "))
	if err != nil {
		return Cron{}, fmt.Errorf("not a cron expression: %w", err)
	}
	c := Cron{schedule: schedule, hourly: fields[len(fields)-4] == "*"}
	last := c.schedule.Next(epoch)
	if last.IsZero() {
		return Cron{}, fmt.Errorf("%q never comes: no such date exists", strings.Join(fields, " "))
	}
	for range looks {
		next := c.schedule.Next(last)
		if next.IsZero() {
			break
		}
		if next.Sub(last) < mostOften {
			return Cron{}, fmt.Errorf("%q comes more often than once a minute, which is the most", strings.Join(fields, " "))
		}
		last = next
	}
	return c, nil
}

// cronLetters are the characters of cron expressions.
const cronLetters = "0123456789*/,-#? \tABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// epoch is where the search for the runs of an expression begins that is only being checked.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Next returns the first run after a time, by the clock of a zone; zero = there is none within five years. A Cron of
// certain hours runs once for each local time, also on the days when the clock is changed. One that runs in every hour
// keeps its distance on those days.
func (c Cron) Next(after time.Time, zone *time.Location) time.Time {
	if c.hourly {
		return c.nextHourly(after, zone)
	}
	for local := face(after.In(zone)); ; {
		if local = c.schedule.Next(local); local.IsZero() {
			return time.Time{}
		}
		if at := instant(local, zone); at.After(after) {
			return at
		}
	}
}

// nextHourly is Next for a Cron that runs in every hour: the clock between two changes is continuous, and the time
// before the change is as good as that after it.
func (c Cron) nextHourly(after time.Time, zone *time.Location) time.Time {
	for at := after.In(zone); ; {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		local := c.schedule.Next(face(at))
		if local.IsZero() {
			return time.Time{}
		}
		next := local.Add(-time.Duration(offset) * time.Second).In(zone)
		if end.IsZero() || next.Before(end) {
			return next
		}
		// The moment before the change, as the clock after it would show it.
		_, offset = end.Zone()
		first := c.schedule.Next(face(end).Add(-time.Nanosecond))
		if first.IsZero() {
			return time.Time{}
		}
		if _, later := end.ZoneBounds(); later.IsZero() || first.Add(-time.Duration(offset)*time.Second).Before(later) {
			return first.Add(-time.Duration(offset) * time.Second).In(zone)
		}
		at = end
	}
}

// face returns what the clock of a time's zone shows, as a time in UTC.
func face(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instant returns when the clock of a zone shows a local time, which is given as a time in UTC.
func instant(local time.Time, zone *time.Location) time.Time {
	const farEnough = 30 * time.Hour // beyond any offset, and any change of the clock that could matter
	before, after := offsetAt(local.Add(-farEnough), zone), offsetAt(local.Add(farEnough), zone)
	var found time.Time
	for _, offset := range []time.Duration{before, offsetAt(local, zone), after} {
		at := local.Add(-offset).In(zone)
		if face(at).Equal(local) && (found.IsZero() || at.Before(found)) {
			found = at
		}
	}
	if !found.IsZero() {
		return found
	}
	change, _ := local.Add(-before).In(zone).ZoneBounds()
	return change
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, offset := t.In(zone).Zone()
	return time.Duration(offset) * time.Second
}
