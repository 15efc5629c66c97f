// Package when reads what people and models write about times: cron expressions, points in time in the words of a
// person, and names of time zones. It is pure: the present time and the zone are given to it.
//
// Local times are those of a zone's clock. One that does not exist, because the clock is put forward, means the first
// instant after the gap. One that exists twice, because the clock is put back, means the first of the two.
package when

import (
	"fmt"
	"slices"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/zephbot/zephbot/policy/lazyregexp"
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
// such as @daily, what never comes, and what comes more often than once a minute. Besides numbers, names, lists, ranges
// and steps, a day of month may be L (the last one), L-3, 15W (the nearest working day) or LW, and a day of week 5#2
// (the second Friday) or 5L (the last one; FRI#L is the same). The error says which field was wrong and what to write.
func ParseCron(text string) (Cron, error) {
	fields := strings.Fields(text)
	if i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(cronLetters, r) }); i >= 0 {
		return Cron{}, fmt.Errorf(
			"a cron expression has no %q: write five fields, such as \"0 9 * * 1-5\" for nine on working days;"+
				" it applies in the person's time zone",
			strings.ToValidUTF8(text[i:i+1], "?"),
		)
	}
	if len(fields) != 5 && len(fields) != 6 {
		return Cron{}, fmt.Errorf(
			"a cron expression has 5 fields (minute, hour, day of month, month, day of week), or 6 with the seconds"+
				" in front, not %d: \"0 9 * * *\" is every day at nine",
			len(fields),
		)
	}
	schedule, err := parser().Parse(written(fields))
	if err != nil {
		return Cron{}, misfit(fields)
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
			return Cron{}, fmt.Errorf(
				"%q comes more often than once a minute, which is the most", strings.Join(fields, " "),
			)
		}
		last = next
	}
	return c, nil
}

// lastWeekday is a last day of week as most programs write it.
var lastWeekday = lazyregexp.New(`(?i)^([0-7]|sun|mon|tue|wed|thu|fri|sat)L$`)

// written returns an expression as the parser reads it: it knows 5L as 5#L.
func written(fields []string) string {
	days := strings.Split(fields[len(fields)-1], ",")
	for i, day := range days {
		days[i] = lastWeekday().ReplaceAllString(day, "$1#L")
	}
	all := slices.Clone(fields)
	all[len(all)-1] = strings.Join(days, ",")
	return strings.Join(all, " ")
}

// cronFields are the fields of an expression with seconds, and what each may be.
var cronFields = [...]struct{ name, takes string }{
	{"second", "0 to 59"},
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of month", "1 to 31, L (the last day), L-3 (three days before it), 15W (the working day nearest to the " +
		"15th) or LW (the last working day)"},
	{"month", "1 to 12 or JAN to DEC"},
	{"day of week", "0 to 7 (0 and 7 are Sunday) or SUN to SAT, 5#2 (the second Friday) or 5L (the last Friday)"},
}

// misfit says which field of an expression that the parser refuses is at fault, and what it may be. It tries the fields
// one by one, because the parser speaks to programmers.
func misfit(fields []string) error {
	const common = "; lists (1,15), ranges (1-5), steps (*/10) and * too"
	names := cronFields[len(cronFields)-len(fields):]
	for i, field := range fields {
		alone := strings.Split("0 "+strings.Repeat("* ", len(fields)-1), " ")[:len(fields)]
		alone[i] = field
		if _, err := parser().Parse(written(alone)); err != nil {
			return fmt.Errorf(
				"the %s %q of the cron expression is not possible: it may be %s%s",
				names[i].name, field, names[i].takes, common,
			)
		}
	}
	return fmt.Errorf(
		"%q is no cron expression: its fields do not go together; \"0 9 * * 1-5\" is nine on working days",
		strings.Join(fields, " "),
	)
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
