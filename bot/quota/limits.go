package quota

import (
	"maps"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
)

// The units that are counted.
const (
	Turns  = texts.Turns
	Tokens = texts.Tokens
	USD    = texts.USD // millionths of a dollar
)

// The windows in which they are.
const (
	Day   = texts.Day
	Month = texts.Month
)

// Of names one limit: how much of what in which time.
type Of struct {
	Unit   string
	Window texts.Window
}

// Limits are how much may be used; one that is absent or 0 is none.
type Limits map[Of]int64

// TurnsADay limits turns a day; 0 = no limit.
func TurnsADay(n int64) Limits { return Limits{{Turns, Day}: n} }

// any says whether there is a limit among them.
func (l Limits) any() bool {
	for _, n := range l {
		if n > 0 {
			return true
		}
	}
	return false
}

// with gives these limits, those of others in their place where others say something.
func (l Limits) with(others Limits) Limits {
	if len(others) == 0 {
		return l
	}
	all := maps.Clone(l)
	if all == nil {
		all = Limits{}
	}
	maps.Copy(all, others)
	return all
}

// smallest is a limit below which nobody is warned before its end.
func smallest(unit string) int64 {
	if unit == Turns {
		return 5
	}
	return 1
}

// window is a day or a month.
type window struct {
	label string    // of a day as in the charges
	fresh time.Time // when the next one begins
	days  []string  // those of the charges that belong to it, as far as it has come
}

// window is the one that a moment is in, as the people's clocks show it.
func (m *Meter) window(kind texts.Window, t time.Time) window {
	t = t.In(m.opts.Zone)
	year, month, day := t.Date()
	if kind == Day {
		label := t.Format(time.DateOnly)
		return window{
			label: label,
			fresh: time.Date(year, month, day+1, 0, 0, 0, 0, m.opts.Zone),
			days:  []string{label},
		}
	}
	w := window{label: t.Format("2006-01"), fresh: time.Date(year, month+1, 1, 0, 0, 0, 0, m.opts.Zone)}
	for d := 1; d <= day; d++ {
		w.days = append(w.days, time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
	}
	return w
}

// slot is one counter: what a level has used of a unit in a window.
type slot struct {
	level
	window
	unit  string
	kind  texts.Window
	limit int64
	n     int64 // what is asked for
}

// key names the counter.
func (s *slot) key() string { return key(s.unit, s.label, s.name) }

func key(unit, label, name string) string { return "quota/" + unit + "/" + label + "/" + name }

// about names the window and the limit, for what is said once.
func (s *slot) about() string { return s.name + "/" + s.unit + "/" + s.label }

// expire is when the counter may go: late settlements still find it.
func (s *slot) expire() time.Time { return s.fresh.Add(48 * time.Hour) }

// usage is what people are told of it.
func (s *slot) usage(used int64) texts.Usage {
	return texts.Usage{Scope: s.scope, Unit: s.unit, Window: s.kind, Used: used, Limit: s.limit, Fresh: s.fresh}
}

// slots are the counters of some units at some levels: those that have a limit, and the days of all when all is set.
func (m *Meter) slots(levels []level, now time.Time, all bool, units ...string) []slot {
	windows := map[texts.Window]window{Day: m.window(Day, now), Month: m.window(Month, now)}
	var list []slot
	for _, unit := range units {
		for _, l := range levels {
			for _, kind := range []texts.Window{Day, Month} {
				limit := l.limits[Of{unit, kind}]
				if limit > 0 || (all && kind == Day) {
					list = append(list, slot{
						level:  l,
						window: windows[kind],
						unit:   unit,
						kind:   kind,
						limit:  max(0, limit),
					})
				}
			}
		}
	}
	return list
}

// takes are what is asked of the counter.
func takes(slots []slot) []Take {
	list := make([]Take, len(slots), len(slots)+1)
	for i := range slots {
		s := &slots[i]
		list[i] = Take{Key: s.key(), N: s.n, Limit: s.limit, Expire: s.expire()}
	}
	return list
}
