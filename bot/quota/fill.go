package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Counters may lose what they held: embedded ones forget everything with their process, a server without persistence
// with its own. So a process fills each counter from the mirror before it first relies on it. A number beside the
// counters of a day, drawn by whoever first finds none, tells that they are still the ones that were filled: it is lost
// with them. It is read in the same step that takes a turn. A server that restarts from an old snapshot, or a replica
// that takes over, has that number and counters that are too low: Renewals tells of those.

// tries bounds how often a turn is taken again because the counters were lost meanwhile.
const tries = 5

var errUnsteady = errors.New("the counters are lost again and again")

// epochs are drawn below this: Redis counts exactly up to 2^53.
const epochs = 1 << 53

func mark(day string) string { return "quota/epoch/" + day }

// take charges a turn to its levels, in one step when this process knows the counters.
func (m *Meter) take(ctx context.Context, turn, today string, levels []level) (counts []int64, denied int, err error) {
	takes := make([]Take, len(levels), len(levels)+1)
	for i, l := range levels {
		takes[i] = Take{Key: key(l.name, today), N: 1, Limit: l.limit}
	}
	takes = append(takes, Take{Key: mark(today)})
	for range tries {
		state, err := m.fill(ctx, today, levels)
		if err != nil {
			return nil, -1, err
		}
		counts, denied, err := m.counter.Take(ctx, turn, takes, endOf(m.now()))
		if err != nil {
			return nil, -1, err
		}
		if m.still(state, counts[len(levels)]) {
			return counts[:len(levels)], denied, nil
		}
		m.Forget()
		if err := m.counter.Return(ctx, turn, takes); err != nil {
			return nil, -1, err
		}
	}
	return nil, -1, errUnsteady
}

// read gives the present counts of levels.
func (m *Meter) read(ctx context.Context, today string, levels []level) ([]int64, error) {
	keys := make([]string, len(levels), len(levels)+1)
	for i, l := range levels {
		keys[i] = key(l.name, today)
	}
	keys = append(keys, mark(today))
	for range tries {
		state, err := m.fill(ctx, today, levels)
		if err != nil {
			return nil, err
		}
		counts, err := m.counter.Read(ctx, keys)
		if err != nil {
			return nil, fmt.Errorf("read quota: %w", err)
		}
		if m.still(state, counts[len(levels)]) {
			return counts[:len(levels)], nil
		}
		m.Forget()
	}
	return nil, errUnsteady
}

// state names the counters that were filled.
type state struct {
	epoch, renewals int64
}

// still says whether counters that have this epoch are those of a state.
func (m *Meter) still(s state, epoch int64) bool {
	return epoch == s.epoch && m.counter.Renewals() == s.renewals
}

// fill raises the counters of levels to what the mirror says, those that this process has not filled since they were
// last lost, and gives the state in which it found them. Several may fill the same at once: a counter is only ever
// raised.
func (m *Meter) fill(ctx context.Context, today string, levels []level) (s state, err error) {
	now, s, missing := m.missing(today, levels)
	if s.epoch == 0 {
		if s.epoch, err = m.epoch(ctx, today); err != nil {
			return s, err
		}
		// before anything is raised: counters that are renewed from here on are filled again
		s.renewals = m.counter.Renewals()
	}
	for _, l := range missing {
		used, err := m.mirror.Used(ctx, l.name, Turns, today)
		if err != nil {
			return s, fmt.Errorf("read charges: %w", err)
		}
		if used <= 0 {
			continue
		}
		if err := m.counter.Restore(ctx, key(l.name, today), used, endOf(m.now())); err != nil {
			return s, fmt.Errorf("restore %s: %w", l.name, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == now && (now.epoch == 0 || now.state == s) { // else it was forgotten meanwhile, or another day began
		now.state = s
		for _, l := range missing {
			now.filled[l.name] = true
		}
	}
	return s, nil
}

// missing lists the levels that this process has not filled.
func (m *Meter) missing(today string, levels []level) (now *known, s state, missing []level) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known.day != today || (m.known.epoch != 0 && m.known.renewals != m.counter.Renewals()) {
		m.known = &known{day: today, filled: map[string]bool{}}
	}
	for _, l := range levels {
		if !m.known.filled[l.name] {
			missing = append(missing, l)
		}
	}
	return m.known, m.known.state, missing
}

// epoch reads the number beside the counters of a day, and draws one where there is none.
func (m *Meter) epoch(ctx context.Context, today string) (int64, error) {
	for range tries {
		found, err := m.counter.Read(ctx, []string{mark(today)})
		if err != nil {
			return 0, fmt.Errorf("look for the counters: %w", err)
		}
		if found[0] > 0 {
			return found[0], nil
		}
		if err := m.counter.Restore(ctx, mark(today), 1+rand.Int64N(epochs-1), endOf(m.now())); err != nil {
			return 0, fmt.Errorf("mark the counters: %w", err)
		}
	}
	return 0, errUnsteady
}
