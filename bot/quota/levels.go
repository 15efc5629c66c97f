package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// Bar is how much of one limit is used.
type Bar struct {
	Level  string       // name of its counters and charges: user/…, chat/… or bot/…
	Scope  texts.Scope  // person, chat or bot
	Unit   string       // turns, tokens or millionths of a dollar
	Window texts.Window // day or month
	Used   int64
	Limit  int64     // 0 = none
	Fresh  time.Time // when it starts afresh
	By     string    // caller id of the admin who set the limit in the chat; "" = it is configured
	Name   string    // of the admin
	At     time.Time // when the admin set it
}

// Bars lists the use of all levels that have used anything since the month began or for which an admin has set a limit;
// those that are nearest to their ends come first. sums are the charges since the month began (MonthBegan).
func (m *Meter) Bars(ctx context.Context, facts bot.Facts, sums []bot.Charge) ([]Bar, error) {
	set, err := settings(ctx, facts, m.now())
	if err != nil {
		return nil, err
	}
	levels := map[string]bool{}
	for _, c := range sums {
		levels[c.Scope] = true
	}
	for k := range set {
		levels[k.level] = true
	}
	var list []Bar
	now := m.now()
	for name := range levels {
		l, ok := m.named(name)
		if !ok {
			continue
		}
		for _, unit := range []string{Turns, Tokens, USD} {
			for _, kind := range []texts.Window{Day, Month} {
				w := m.window(kind, now)
				b := Bar{
					Level:  name,
					Scope:  l.scope,
					Unit:   unit,
					Window: kind,
					Limit:  max(0, l.limits[Of{unit, kind}]),
					Fresh:  w.fresh,
					Used:   used(sums, name, unit, w.days),
				}
				if s, ok := set[setKey{name, Of{unit, kind}}]; ok {
					b.Limit, b.By, b.Name, b.At = s.Limit, s.By, s.Name, s.At
				}
				if b.Limit > 0 || b.Used > 0 {
					list = append(list, b)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Bar) int {
		return cmp.Or(
			cmp.Compare(b.share(), a.share()),
			cmp.Compare(a.Level, b.Level),
			cmp.Compare(a.Unit, b.Unit),
			cmp.Compare(a.Window, b.Window),
		)
	})
	return list, nil
}

// share is the part of the limit that is used; without a limit it is below all that have one.
func (b *Bar) share() float64 {
	if b.Limit == 0 {
		return -1
	}
	return float64(b.Used) / float64(b.Limit)
}

// MonthBegan is the first day of the month, as charges are labelled.
func (m *Meter) MonthBegan() string { return m.window(Month, m.now()).days[0] }

func used(sums []bot.Charge, scope, unit string, days []string) (n int64) {
	for _, c := range sums {
		if c.Scope == scope && c.Unit == unit && slices.Contains(days, c.Day) {
			n += c.N
		}
	}
	return n
}

type setKey struct {
	level string
	of    Of
}

// settings reads the limits that admins have set.
func settings(ctx context.Context, facts bot.Facts, now time.Time) (map[setKey]stored, error) {
	list, err := facts.FactsOf(ctx, Bucket, "", now)
	if err != nil {
		return nil, fmt.Errorf("read quotas that were set: %w", err)
	}
	set := map[setKey]stored{}
	for _, f := range list {
		if s, ok := parse(f); ok {
			set[setKey{s.level, s.of}] = s.stored
		}
	}
	return set, nil
}

// named finds the configured limits of a level by its name.
func (m *Meter) named(name string) (level, bool) {
	kind, rest, _ := strings.Cut(name, "/")
	switch kind {
	case "user":
		return m.level(texts.User, name, m.opts.Limits.User), true
	case "bot":
		return m.level(texts.Bot, name, m.opts.Limits.Bot), true
	case "chat":
		place, topic, ok := bot.CutChat(rest)
		if !ok {
			return level{}, false
		}
		limits, own := m.opts.ByChat[place.Chat+topic]
		if !own {
			limits = m.opts.Limits.Chat
		}
		return m.level(texts.Chat, name, limits), true
	}
	return level{}, false
}
