//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
	"github.com/zephbot/zephbot/persistence"
)

// The money of a machine is that of ledgertest. Everybody has limits that nobody reaches, so that everything is set aside
// and counted; the last private chats have limits that are soon used up. Besides what ledgertest says:
//
//   - what is charged and set aside is never more than a limit, at any time;
//   - who is refused has used up what there is, but for less than a call may cost;
//   - at the end nothing is set aside.
const (
	poorInTurns, poorInUSD = 3, 3 // chats, the last ones
	turnsOfThePoor         = 4    // a day
	microOfThePoor         = 1_200_000
	// plenty is a limit that nobody reaches.
	plenty = "turns_per_day = 1000000\ntokens_per_day = 1000000000000\nusd_per_day = 1000000\n"
	// longestAnswer is max_tokens.
	longestAnswer = 200
	// dearestCall is more than any call sets aside: the longest answer and a long conversation.
	dearestCall = longestAnswer*1000 + 100_000
	// provesLimits is from how many questions on somebody must have used up a limit.
	provesLimits = 400
	// bookedWithin is how long what a call has cost may wait to be stored, with a process that lives.
	bookedWithin = 20 * time.Second
)

// purse is what the machine knows of money.
type purse struct {
	ledgertest.Book
	mu      sync.Mutex
	refused int // people who were told that something is used up
	busy    int // … or set aside for others
	checked int // comparisons with the limits while faults happened
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

// isPoor reports whether a talker can use up what there is.
func (p *talker) isPoor() bool {
	unit, _ := p.poor()
	return unit != ""
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

// judgeMoney compares what is charged with what the model was asked for.
func (m *machine) judgeMoney() {
	m.withinLimits()
	if left, err := m.sums(`SELECT COUNT(*) FROM hold`); err != nil || left > 0 {
		m.fail("%d amounts are still set aside: %v", left, err)
	}
	// What a process that died has locked was freed by whoever buried it, and the last one gave back what it had.
	locks, err := m.sums(`SELECT COUNT(*) FROM fact WHERE bucket = $1`, bot.LeaderBucket)
	if err != nil || locks > 0 {
		m.fail("%d locks are still held: %v", locks, err)
	}
	if asked := len(m.questions); asked > provesLimits && m.money.refused == 0 && slices.ContainsFunc(m.talkers, (*talker).isPoor) {
		m.fail("nobody was refused for money in %d questions: this proves nothing about limits", asked)
	}
	var charges []bot.Charge
	err = m.read(m.t.Context(), func(db persistence.Reader) (err error) {
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
	m.money.Unheard = m.lossy
	v := m.money.Judge(charges, m.mayBeMissing)
	for _, wrong := range v.Wrong {
		m.fail("%s", wrong)
	}
	m.tally.money = fmt.Sprintf("%s; refused %d, busy %d; compared with limits %d times", v, m.money.refused, m.money.busy, m.money.checked)
}

// mayBeMissing reports whether a request may be charged otherwise than with its cost: somebody stopped the turn, or its
// process died or was taken for dead before it could store it.
func (m *machine) mayBeMissing(r *ledgertest.Request) bool {
	if m.lossy {
		return true
	}
	var n int
	if _, err := fmt.Sscanf(r.About, "q%dq", &n); err != nil || m.questions[n].excused && !m.questions[n].lost {
		return true
	}
	m.diary.mu.Lock()
	defer m.diary.mu.Unlock()
	for _, s := range m.diary.silences {
		if s.life.String() == r.By && s.from.Before(r.Over.Add(bookedWithin)) && (s.to.IsZero() || s.to.After(r.At.Add(-time.Second))) {
			return true
		}
	}
	return false
}
