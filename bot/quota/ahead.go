package quota

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// What a call may cost has to be set aside in the store before it leaves. The Changes that a turn makes anyway set it
// aside for the call that follows, as far as there is room; only a call for which that is not enough needs a Change.

const (
	maxSizes = 4096            // conversations whose size is remembered
	idleTime = 3 * time.Second // after which what no call has used is given back, so that others need not wait for it
)

// forecast is what is known of what a turn will need. Guarded by purse.mu.
type forecast struct {
	session string   // of the turn; "" = unknown
	ahead   hold     // what is set aside for what follows, if there is room
	tools   bool     // its tools run
	side    [2]int64 // what calls of other models have asked for since the last call of the turn's model
	most    [2]int64 // what the last call of the turn's model might have cost
	input   int      // the size of its request, in tokens
}

// sizes remember how large the requests of conversations are, in tokens, to guess the next ones. Guarded by Meter.mu.
type sizes struct {
	of     map[string]int
	last   int // of any conversation
	output int // the longest answer that was asked for
	side   [2]int64
}

// size guesses the size of the next request of a conversation; 0 = nobody knows.
func (m *Meter) size(session string) (input, output int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.sizes.of[session]; ok {
		return n, m.sizes.output
	}
	return m.sizes.last, m.sizes.output
}

// learnSize notes the size of a request, with the answer once there is one.
func (m *Meter) learnSize(session string, input, output, answered int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sizes.of == nil || len(m.sizes.of) >= maxSizes {
		m.sizes.of = map[string]int{}
	}
	m.sizes.last = input
	if session != "" {
		m.sizes.of[session] = input + answered
	}
	if output > 0 {
		m.sizes.output = output
	}
}

// learnSide notes what calls of other models have needed while tools ran. What is seldom needed is forgotten.
func (m *Meter) learnSide(need [2]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range need {
		m.sizes.side[i] = max(n, m.sizes.side[i]-m.sizes.side[i]/64-1, 0)
	}
}

// side is what calls of other models need while tools run.
func (m *Meter) side() [2]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sizes.side
}

// expect decides what is set aside for what follows. Called with store held.
func (p *purse) expect(next turn.Next) {
	var ahead hold
	if h := p.limited(); len(h.slots) > 0 && !p.closing() && !p.meter.older() {
		switch {
		case next.Call:
			if input, output := p.meter.size(p.session()); input > 0 {
				most := p.meter.most(cost.Amount{
					Tokens: llm.Usage{Input: input + next.Tokens, Output: output},
					USD:    cost.UnknownUSD,
				})
				ahead = h
				ahead.ns = [2]int64{withSlack(int64(most.Tokens.Total())), withSlack(Micro(most.USD))}
			}
		case next.Tools:
			ahead = h
			ahead.ns = p.meter.side()
		}
	}
	p.mu.Lock()
	side, learn := p.next.side, p.next.tools
	if p.next.tools = next.Tools; next.Call {
		p.next.side = [2]int64{}
	} else {
		for i := range ahead.ns { // more than a small call has a Change of its own
			ahead.ns[i] = min(ahead.ns[i], p.next.most[i]/4)
		}
	}
	p.next.ahead = ahead
	p.mu.Unlock()
	if next.Call && learn {
		p.meter.learnSide(side)
	}
}

// withSlack adds an eighth for what a guess has missed.
func withSlack(n int64) int64 { return n + n/8 }

// limited is what a call would ask for now, without amounts; it has no slots if nothing is limited.
func (p *purse) limited() hold {
	m := p.meter
	h := hold{at: m.now(), levels: p.levels()}
	h.day = m.window(Day, h.at).label
	h.slots = m.slots(h.levels, h.at, false, Tokens, USD)
	return h
}

func (p *purse) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next.session
}

func (p *purse) closing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Begin implements turn.Budget.
func (p *purse) Begin(admitted *bot.Ledger, session string, tokens int) turn.Spent {
	p.store.Lock()
	p.mu.Lock()
	p.next.session = session
	p.mu.Unlock()
	p.expect(turn.Next{Call: true, Tokens: tokens})
	s := p.spent()
	switch {
	case admitted == nil:
	case s.Ledger == nil:
		s.Ledger = admitted
	default:
		s.Ledger.Checked = admitted.Checked
		s.Ledger.Asides = append(slices.Clone(admitted.Asides), s.Ledger.Asides...)
	}
	return s
}

// idle reports whether something is set aside that no call has needed for some time.
func (p *purse) idle(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) > 0 || now.Sub(p.used) < idleTime {
		return false
	}
	for _, n := range p.kept {
		if n > 0 {
			return true
		}
	}
	return false
}

// GiveBack gives back what is set aside and that no call has needed for 3 s. Run calls it.
func (m *Meter) GiveBack(ctx context.Context) {
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.purses))
	m.mu.Unlock()
	bounded, done := context.WithTimeout(ctx, lateEvery)
	defer done()
	for _, p := range list {
		if p.idle(m.now()) && p.Flush(bounded) != nil {
			return // it is tried again
		}
	}
}

// older reports whether a process lives that knows nothing of the ledger.
func (m *Meter) older() bool { return m.opts.Older != nil && m.opts.Older() }

// ofModel reports whether a key is that of a call of the turn's own model, and not of a sub-agent's.
func ofModel(t *agent.Turn, key string) bool {
	step, ok := strings.CutPrefix(key, t.ID+"/")
	return ok && !strings.Contains(step, "/")
}
