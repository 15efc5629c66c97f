package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Counters may lose what they held: embedded ones forget everything with their process, a server without persistence
// with its own. So a process fills each counter from the mirror before it first relies on it, and once a day. A number
// beside the counters of a day, drawn by the first process that finds none, tells that they are still the ones that
// were filled: it is lost with them. It is read in the same step that takes a turn. A server that restarts from an old
// snapshot, or a replica that takes over, has that number and counters that are too low: Renewals tells of those.

// tries bounds how often something is taken again because the counters were lost meanwhile.
const tries = 5

var errUnsteady = errors.New("the counters were lost repeatedly")

// epochs are below this: Redis counts exactly up to 2^53.
const epochs = 1 << 53

// today is the day of the number beside the counters.
func today(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func mark(day string) string { return "quota/epoch/" + day }

// markEnd is when that number may go.
func markEnd(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(72 * time.Hour) }

// steady does something with the counters of slots that are filled, in one step when this process knows them. What is
// done gets the counter of the mark besides and answers what that is; lost undoes what was done on counters that are
// others by then.
func (m *Meter) steady(
	ctx context.Context, slots []slot, do func(mark Take) (epoch int64, err error), lost func(mark Take) error,
) error {
	for range tries {
		now := m.now()
		state, err := m.fill(ctx, today(now), slots)
		if err != nil {
			return err
		}
		mark := Take{Key: mark(today(now)), Expire: markEnd(now)}
		epoch, err := do(mark)
		if err != nil {
			return err
		}
		if m.still(state, epoch) {
			return nil
		}
		m.Forget()
		if err := lost(mark); err != nil {
			return err
		}
	}
	return errUnsteady
}

// take charges a turn to its levels.
func (m *Meter) take(ctx context.Context, turn string, slots []slot) (counts []int64, denied int, err error) {
	list := takes(slots)
	n := len(list)
	err = m.steady(ctx, slots, func(mark Take) (int64, error) {
		counts, denied, err = m.counter.Take(ctx, turn, append(list, mark), mark.Expire)
		if err != nil {
			return 0, err
		}
		return counts[n], nil
	}, func(mark Take) error {
		return m.counter.Return(ctx, turn, append(list, mark))
	})
	if err != nil {
		return nil, -1, err
	}
	return counts[:n], denied, nil
}

// Undo implements turn.Meter. What is given back belongs to the windows in which it was taken.
func (m *Meter) Undo(ctx context.Context, charges []bot.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	m.suspect(charges)
	var list []Take
	for _, c := range charges {
		month, _, ok := cutDay(c.Day)
		if !ok {
			return fmt.Errorf("undo charge %q: its day is %q", c.Key, c.Day)
		}
		// the month's counts no more turns than its charges, where it has no limit
		list = append(list, Take{Key: key(c.Unit, c.Day, c.Scope), N: c.N}, Take{
			Key: key(c.Unit, month, c.Scope),
			N:   c.N,
		})
	}
	turn, ok := strings.CutSuffix(charges[0].Key, "/"+Turns+"/"+charges[0].Scope)
	if !ok {
		return fmt.Errorf("undo charge %q: it was not made by a meter of turns", charges[0].Key)
	}
	return m.counter.Return(ctx, turn, list)
}

// cutDay splits the label of a day into that of its month and the rest.
func cutDay(day string) (month, rest string, ok bool) {
	i := strings.LastIndexByte(day, '-')
	if i < 0 {
		return "", "", false
	}
	return day[:i], day[i+1:], true
}

// state identifies the counters that were filled.
type state struct {
	epoch, renewals int64
}

// still reports whether counters with this epoch are those of a state.
func (m *Meter) still(s state, epoch int64) bool {
	return epoch == s.epoch && m.counter.Renewals() == s.renewals
}

// fill raises the counters of slots to what the mirror says, those that this process has not filled since they were
// last lost, and gives the state in which it found them. Several may fill the same at once: a counter is only ever
// raised.
func (m *Meter) fill(ctx context.Context, today string, slots []slot) (s state, err error) {
	now, s, missing := m.missing(today, slots)
	if s.epoch == 0 {
		if s.epoch, err = m.epoch(ctx, today); err != nil {
			return s, err
		}
		// Read before anything is raised: counters that are renewed from here on are filled again.
		s.renewals = m.counter.Renewals()
	}
	for _, l := range missing {
		used, err := m.mirror.Used(ctx, l.name, l.unit, l.days...)
		if err != nil {
			return s, fmt.Errorf("read charges: %w", err)
		}
		if used <= 0 {
			continue
		}
		if err := m.counter.Restore(ctx, l.key(), used, l.expire()); err != nil {
			return s, fmt.Errorf("restore %s: %w", l.name, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// Otherwise it was forgotten in the meantime, or another day began.
	if m.known == now && (now.epoch == 0 || now.state == s) {
		now.state = s
		for _, l := range missing {
			now.filled[l.key()] = true
		}
	}
	return s, nil
}

// missing lists the slots that this process has not filled.
func (m *Meter) missing(today string, slots []slot) (now *known, s state, missing []slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known.day != today || (m.known.epoch != 0 && m.known.renewals != m.counter.Renewals()) {
		m.known = &known{day: today, filled: map[string]bool{}}
	}
	for i := range slots {
		if !m.known.filled[slots[i].key()] {
			missing = append(missing, slots[i])
		}
	}
	return m.known, m.known.state, missing
}

// epoch returns the epoch of the counters of a day, and writes one if there is none.
func (m *Meter) epoch(ctx context.Context, today string) (int64, error) {
	for range tries {
		found, err := m.counter.Read(ctx, []string{mark(today)})
		if err != nil {
			return 0, fmt.Errorf("look for the counters: %w", err)
		}
		if found[0] > 0 {
			return found[0], nil
		}
		if err := m.counter.Restore(ctx, mark(today), 1+rand.Int64N(epochs-1), markEnd(m.now())); err != nil {
			return 0, fmt.Errorf("mark the counters: %w", err)
		}
	}
	return 0, errUnsteady
}
