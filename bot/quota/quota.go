// Package quota counts what people, chats and the bot may use a day: reserved in one atomic step over all levels before
// anything is spent, mirrored in the durable store, closed when the counters are away.
package quota

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Turns is the unit of turns.
const Turns = "turns"

// Take asks for N of one counter.
type Take struct {
	Key   string // names scope, unit and window
	N     int64
	Limit int64 // 0 = counted, never refused
}

// Counter counts. All methods are atomic over all keys and safe for concurrent use by many processes.
type Counter interface {
	// Take adds to all keys, or to none when one would pass its limit: then denied is its index, else -1. A repeated id
	// changes nothing and answers as the first time. counts are the values after, or the present ones when denied. Keys
	// and ids live until expire.
	Take(ctx context.Context, id string, takes []Take, expire time.Time) (counts []int64, denied int, err error)
	// Return takes back what the id took; unknown ids change nothing.
	Return(ctx context.Context, id string, takes []Take) error
	// Read gives the present values.
	Read(ctx context.Context, keys []string) ([]int64, error)
	// Restore sets a counter to at least n.
	Restore(ctx context.Context, key string, n int64, expire time.Time) error
	// Renewals counts how often the counters may have become older ones, as those of a replica that took over are. It
	// asks nobody.
	Renewals() int64
}

// Limits are turns per day; 0 = no limit.
type Limits struct {
	User, Chat, Bot int64
}

// Options configure a Meter.
type Options struct {
	Limits Limits
	// turns per day of single chats ("-100") and topics ("-100/7") instead of Limits.Chat; one above 0 holds whoever
	// pays
	ByChat      map[string]int64
	Payer       string // in groups: user, chat, both (quotas.payer); default user
	AllowOnDown bool   // quotas.on_redis_down = "allow"
}

// Words are the sentences about quotas.
type Words interface {
	TurnsUsedUp(language string, scope texts.Scope, limit int64, fresh time.Time) string
	TurnsNear(language string, used, limit int64, fresh time.Time) string
	TurnsNearChat(language string, used, limit int64, fresh time.Time) string
	QuotaAway(language string) string
}

// Meter implements turn.Meter. Safe for concurrent use.
type Meter struct {
	opts    Options
	counter Counter
	mirror  Mirror
	words   Words
	now     func() time.Time
	denied  func(scope string)

	mu    sync.Mutex // never held while the counters or the mirror are asked
	known *known
}

// known is what this process knows of the counters: in which state of theirs it filled which of them.
type known struct {
	day    string
	state  // epoch 0 = nobody looked
	filled map[string]bool
}

// Mirror is the durable copy of what was charged.
type Mirror interface {
	// Used adds up the charges of a scope on one day.
	Used(ctx context.Context, scope, unit, day string) (int64, error)
}

// New makes a Meter. Denied is told each refusal's scope, for metrics, by any goroutine; may be nil.
func New(opts Options, counter Counter, mirror Mirror, words Words, now func() time.Time, denied func(scope string)) *Meter {
	if denied == nil {
		denied = func(string) {}
	}
	return &Meter{opts: opts, counter: counter, mirror: mirror, words: words, now: now, denied: denied, known: &known{}}
}

// Forget makes the next admission fill the counters again from the charges: for a counter that was restarted, and for a
// group whose charges have moved to its new id.
func (m *Meter) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = &known{}
}

// fresh is when the next day begins whose quotas count.
func fresh(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// endOf is when a day's counters may go: two days later, so that late returns find them.
func endOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(72 * time.Hour) }

func key(scope, day string) string { return "quota/" + Turns + "/" + day + "/" + scope }

// level is one counter that a turn is charged to.
type level struct {
	scope texts.Scope
	name  string
	limit int64
}

// levels are the counters of a message: who pays in a group is configured. A limit that stands at a single chat or
// topic holds there whoever pays.
func (m *Meter) levels(msg *bot.Message) []level {
	p := msg.Place
	var list []level
	if payer := m.opts.Payer; !p.Group || payer != "chat" {
		list = append(list, level{texts.User, "user/" + msg.Caller, m.opts.Limits.User})
	}
	limit, own := m.opts.ByChat[p.Chat]
	if !own {
		limit = m.opts.Limits.Chat
	}
	pays := p.Group && (m.opts.Payer == "chat" || m.opts.Payer == "both")
	if pays || (own && limit > 0) {
		list = append(list, level{texts.Chat, "chat/" + p.ChatKey(), limit})
	}
	if limit := m.opts.ByChat[p.Chat+"/"+p.Thread]; p.Thread != "" && limit > 0 {
		list = append(list, level{texts.Chat, "chat/" + p.ChatKey() + "/" + p.Thread, limit})
	}
	return append(list, level{texts.Bot, "bot/" + p.Channel + "/" + p.Bot, m.opts.Limits.Bot})
}

// Admit implements turn.Meter.
func (m *Meter) Admit(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error) {
	levels, today := m.levels(msg), day(m.now())
	var a turn.Admission
	for _, l := range levels {
		a.Charges = append(a.Charges, bot.Charge{Key: id + "/" + Turns + "/" + l.name, Scope: l.name, Unit: Turns, Day: today, N: 1})
	}
	counts, denied, err := m.take(ctx, id, today, levels)
	if err != nil {
		m.Forget()
		return m.away(ctx, msg, a, err)
	}
	if denied >= 0 {
		return m.refuse(msg, levels[denied], today), nil
	}
	for i, l := range levels {
		if a.Notice = m.near(msg.Language, l, counts[i]); a.Notice != "" {
			a.NoticeKey = "near/" + l.name + "/" + today
			break
		}
	}
	return a, nil
}

// refuse says which limit is reached. In a group only once a day and person; alone with the bot a person gets an answer
// to everything.
func (m *Meter) refuse(msg *bot.Message, l level, today string) turn.Admission {
	m.denied(string(l.scope))
	a := turn.Admission{Refusal: m.words.TurnsUsedUp(msg.Language, l.scope, l.limit, fresh(m.now()))}
	if msg.Place.Group {
		a.Once = "used-up/" + l.name + "/" + msg.Caller + "/" + today
	}
	return a
}

// near warns at nine tenths of a limit, where that leaves something to warn of.
func (m *Meter) near(language string, l level, count int64) string {
	if l.limit < 5 || count != (l.limit*9+9)/10 || count >= l.limit {
		return ""
	}
	switch l.scope {
	case texts.User:
		return m.words.TurnsNear(language, count, l.limit, fresh(m.now()))
	case texts.Chat:
		return m.words.TurnsNearChat(language, count, l.limit, fresh(m.now()))
	default: // the operator's concern
		return ""
	}
}

// away decides for when the counters cannot be reached: closed, unless configured otherwise.
func (m *Meter) away(ctx context.Context, msg *bot.Message, a turn.Admission, cause error) (turn.Admission, error) {
	if ctx.Err() != nil {
		return turn.Admission{}, cause
	}
	zerolog.Ctx(ctx).Error().Err(cause).Bool("allowed", m.opts.AllowOnDown).Msg("quota counters are away")
	if m.opts.AllowOnDown {
		return a, nil
	}
	m.denied("down")
	refusal := turn.Admission{Refusal: m.words.QuotaAway(msg.Language)}
	if msg.Place.Group {
		refusal.Once = "away/" + msg.Place.ChatKey() + "/" + msg.Caller + "/" + m.now().UTC().Truncate(10*time.Minute).Format("2006-01-02T15:04")
	}
	return refusal, nil
}

// Undo implements turn.Meter.
func (m *Meter) Undo(ctx context.Context, charges []bot.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	takes := make([]Take, len(charges))
	for i, c := range charges {
		takes[i] = Take{Key: key(c.Scope, c.Day), N: c.N}
	}
	turn, ok := strings.CutSuffix(charges[0].Key, "/"+Turns+"/"+charges[0].Scope)
	if !ok {
		return fmt.Errorf("undo charge %q: it was not made by a meter of turns", charges[0].Key)
	}
	return m.counter.Return(ctx, turn, takes)
}

// Usage is what /quota shows.
func (m *Meter) Usage(ctx context.Context, msg *bot.Message) ([]texts.Usage, error) {
	levels, today := m.levels(msg), day(m.now())
	counts, err := m.read(ctx, today, levels)
	if err != nil {
		m.Forget()
		return nil, err
	}
	var usage []texts.Usage
	for i, l := range levels {
		if l.scope != texts.Bot || l.limit > 0 {
			usage = append(usage, texts.Usage{Scope: l.scope, Used: counts[i], Limit: l.limit})
		}
	}
	return usage, nil
}

var _ turn.Meter = (*Meter)(nil)
