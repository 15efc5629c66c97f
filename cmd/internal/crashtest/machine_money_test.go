//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/persistence"
)

// The money of a machine. Everybody has limits that nobody reaches, so that everything is set aside and counted; the
// last private chats have limits that are soon used up. Every request to the model has a cost of its own, from which
// its number follows, so that each charge can be told from every other:
//
//   - a request is charged once or not at all;
//   - a request that was answered is charged with its cost, unless its process died or somebody sent /stop;
//   - what a dead process had set aside is charged, and pays for what the process could not store;
//   - a charge that is neither is an estimate of an answer that broke off;
//   - what is charged and set aside is never more than a limit, at any time;
//   - who is refused has used up what there is, but for less than a call may cost;
//   - at the end nothing is set aside.
const (
	poorInTurns, poorInUSD = 3, 3 // chats, the last ones
	turnsOfThePoor         = 8    // a day
	microOfThePoor         = 2_500_000
	// plenty is a limit that nobody reaches.
	plenty = "turns_per_day = 1000000\ntokens_per_day = 1000000000000\nusd_per_day = 1000000\n"
	// longestAnswer is max_tokens. A token that is read costs a millionth of a USD, one that is written a thousandth.
	longestAnswer = 200
	leastWritten  = 100
	inputs        = 1000 // … numbers of requests, until one token more is written
	// dearestCall is more than any call sets aside: the longest answer and a long conversation.
	dearestCall = longestAnswer*1000 + 100_000
	// bookedWithin is how long what a call has cost may wait to be stored, with a process that lives.
	bookedWithin = 20 * time.Second
)

// sum is what a call has cost.
type sum struct{ tokens, micro int64 }

// price is the usage of the nth request to the model, and what it costs. No two cost the same.
func price(n int) (llm.Usage, sum) {
	u := llm.Usage{Input: 1 + n%inputs, Output: leastWritten + n/inputs}
	return u, sum{int64(u.Input + u.Output), int64(u.Input + 1000*u.Output)}
}

// asking is a request to the model.
type asking struct {
	life
	question int
	at, over time.Time
	whole    bool // it was answered as a whole
}

// purse is what the machine knows of money.
type purse struct {
	mu      sync.Mutex
	asked   []*asking
	refused int // people who were told that something is used up
	busy    int // … or set aside for others
	checked int // comparisons with the limits while faults happened
}

// ask numbers a request.
func (p *purse) ask(by life, question int) (a *asking, u llm.Usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a = &asking{life: by, question: question, at: time.Now()}
	p.asked = append(p.asked, a)
	u, _ = price(len(p.asked) - 1)
	return a, u
}

func (p *purse) answered(a *asking) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.whole, a.over = true, time.Now()
}

// poor reports what a talker's chat is limited in: a unit and its limit; "" = nothing that could be used up.
func (p *talker) poor() (unit string, limit int64) {
	switch first := privateChats - poorInTurns - poorInUSD; {
	case p.chat < 0 || p.index < first:
		return "", 0
	case p.index < first+poorInTurns:
		return quota.Turns, turnsOfThePoor
	default:
		return quota.USD, microOfThePoor
	}
}

// purse is the name of a chat's sums.
func (p *talker) purse() string {
	place := bot.Place{Channel: channel, Bot: fmt.Sprint(p.m.fake.BotID()), Surface: "bot", Chat: fmt.Sprint(p.chat)}
	return quota.ChatLevel(place.ChatKey())
}

// limits is the part of a process's configuration about money.
func (m *machine) limits() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[quotas.user]\n%s[quotas.bot]\n%s", plenty, plenty)
	for _, p := range m.talkers {
		switch unit, limit := p.poor(); unit {
		case quota.Turns:
			fmt.Fprintf(&b, "[telegram.chats.\"%d\".quota]\nturns_per_day = %d\n", p.chat, limit)
		case quota.USD:
			fmt.Fprintf(&b, "[telegram.chats.\"%d\".quota]\nusd_per_day = %.2f\n", p.chat, float64(limit)/1e6)
		}
	}
	return b.String()
}

var (
	usedUp = regexp.MustCompile(`of this chat for today (?:is|are) used up`)
	busy   = regexp.MustCompile(`What is left of the quota is set aside for answers`)
)

// refused notes that a chat was told that it has nothing left, and compares that with what is stored. It reports
// whether the text says so. It is called with mu held.
func (m *machine) refused(chat int64, text string) bool {
	full := usedUp.MatchString(text)
	if !full && !busy.MatchString(text) {
		return false
	}
	for _, p := range m.talkers {
		if p.chat != chat {
			continue
		}
		for _, q := range m.questions {
			if q.talker == p && !q.heard {
				q.heard, q.excused = true, true
			}
		}
		m.money.mu.Lock()
		if full {
			m.money.refused++
		} else {
			m.money.busy++
		}
		m.money.mu.Unlock()
		if full {
			m.pressing.Go(func() { m.isUsedUp(p) })
		}
	}
	return true
}

// isUsedUp checks that what is left does not cover what was refused.
func (m *machine) isUsedUp(p *talker) {
	unit, limit := p.poor()
	if unit == "" {
		m.fail("chat %d was told that something is used up that nobody can use up", p.chat)
		return
	}
	least := limit
	if unit == quota.USD {
		least = limit - dearestCall + 1
	}
	taken, err := m.sums(`SELECT CAST(COALESCE(SUM(n), 0) AS bigint) FROM charge WHERE scope = $1 AND unit = $2`, p.purse(), unit)
	if err == nil && taken < least {
		m.fail("chat %d was refused with %d of %d %s", p.chat, taken, limit, unit)
	}
}

// sums asks the store for one number. Reading fails while the disk is full or the server restarts.
func (m *machine) sums(query string, args ...any) (n int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.Context()), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if n, err = m.store.number(ctx, m, query, args...); err == nil {
			return n, nil
		}
		pause(ctx, 200*time.Millisecond)
	}
	return 0, err
}

// withinLimits checks that no limit is passed by what is charged and set aside at this moment.
func (m *machine) withinLimits() {
	const both = `SELECT CAST(COALESCE(SUM(n), 0) AS bigint) FROM
(SELECT n FROM charge WHERE scope = $1 AND unit = $2 UNION ALL SELECT n FROM hold WHERE scope = $1 AND unit = $2) AS all_of_it`
	for _, p := range m.talkers {
		unit, limit := p.poor()
		if unit == "" {
			continue
		}
		n, err := m.sums(both, p.purse(), unit)
		if err != nil {
			continue // the next look will tell
		}
		m.money.mu.Lock()
		m.money.checked++
		m.money.mu.Unlock()
		if n > limit {
			m.fail("chat %d has used and set aside %d of %d %s", p.chat, n, limit, unit)
		}
	}
}

// booked is what the store has of one call, by the kind of the scope that pays.
type booked map[string]sum

// judgeMoney compares what is charged with what the model was asked for.
func (m *machine) judgeMoney() {
	m.withinLimits()
	if left, err := m.sums(`SELECT COUNT(*) FROM hold`); err != nil || left > 0 {
		m.fail("%d amounts are still set aside: %v", left, err)
	}
	var charges []bot.Charge
	err := m.read(m.t.Context(), func(db persistence.Reader) (err error) {
		charges, err = db.Charges(m.t.Context(), "2000-01-01")
		return err
	})
	if err != nil {
		m.fail("charges: %v", err)
		return
	}
	m.judgeCharges(charges)
}

// judgeCharges checks the charges of a whole run.
func (m *machine) judgeCharges(charges []bot.Charge) {
	calls, lost := callsOf(charges)
	numbers := map[sum]int{}
	for i := range m.money.asked {
		_, costs := price(i)
		numbers[costs] = i
	}
	times, estimates := make([]int, len(m.money.asked)), 0
	for name, c := range calls {
		user, chat, own := c["user"], c["chat"], c["bot"]
		if user != own || chat != (sum{}) && chat != own {
			m.fail("%s is charged %+v to the person, %+v to the chat and %+v to the bot", name, user, chat, own)
		}
		switch n, exact := numbers[own]; {
		case exact:
			times[n]++
		case own.tokens > 0 || own.micro > 0:
			estimates++
		}
	}
	whole, missing := 0, 0
	for i, a := range m.money.asked {
		if a.whole {
			whole++
		}
		switch {
		case times[i] > 1:
			m.fail("request %d, about q%dq, is charged %d times", i, a.question, times[i])
		case times[i] == 0 && a.whole && !m.steady: // a line that is cut loses answers
			missing++
			if !m.mayBeMissing(a) {
				m.fail("request %d of process %d-%d, about q%dq at %.1f s, is charged nowhere", i, a.process, a.number, a.question, a.at.Sub(m.began).Seconds())
			}
		}
	}
	broken := len(m.money.asked) - whole
	if missing > lost+estimates {
		m.fail("%d requests are not charged, and only %d estimates and %d lost reservations are", missing, estimates, lost)
	}
	if estimates > broken+missing {
		m.fail("%d estimates are charged, and only %d answers broke off", estimates, broken+missing)
	}
	m.tally.money = fmt.Sprintf("money: %d requests, %d answered, %d of them charged as lost or estimated; %d estimates, %d lost reservations; "+
		"refused %d, busy %d; compared with limits %d times", len(m.money.asked), whole, missing, estimates, lost, m.money.refused, m.money.busy, m.money.checked)
}

// callsOf groups charges by calls, and counts the reservations that were lost.
func callsOf(charges []bot.Charge) (calls map[string]booked, lost int) {
	calls = map[string]booked{}
	for _, c := range charges {
		kind, _, _ := strings.Cut(c.Scope, "/")
		if strings.HasPrefix(c.Key, bot.Lost) {
			if kind == "bot" && c.Unit == quota.USD {
				lost++
			}
			continue
		}
		name, is := strings.CutSuffix(c.Key, "/"+c.Unit+"/"+c.Scope)
		if !is || c.Unit == quota.Turns {
			continue
		}
		b := calls[name]
		if b == nil {
			b = booked{}
			calls[name] = b
		}
		s := b[kind]
		if c.Unit == quota.USD {
			s.micro += c.N
		} else {
			s.tokens += c.N
		}
		b[kind] = s
	}
	return calls, lost
}

// mayBeMissing reports whether a request may be charged otherwise than with its cost: somebody stopped the turn, or its
// process died or was taken for dead before it could store it.
func (m *machine) mayBeMissing(a *asking) bool {
	if m.questions[a.question].excused {
		return true
	}
	m.diary.mu.Lock()
	defer m.diary.mu.Unlock()
	for _, s := range m.diary.silences {
		if s.life == a.life && s.from.After(a.at.Add(-time.Second)) && s.from.Before(a.over.Add(bookedWithin)) {
			return true
		}
	}
	return false
}
