// Package quota counts what people, chats and the bot may use: turns, tokens and money, a day and a month. A turn is
// counted when it begins; what a call of the model may cost at most is set aside before it and replaced by what it did
// cost after it, each in one atomic step over all levels. The ledger in the durable store decides (bot.Ledger), in the
// Changes that these steps belong to. The counters, which can be in Redis, are fast: they say early that something is
// used up, which the ledger has to confirm, and how near a limit is. They may lose everything, or be away.
package quota

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Scopes are the limits of each person, each chat and the whole bot.
type Scopes struct {
	User, Chat, Bot Limits
}

// Options configure a Meter.
type Options struct {
	Limits Scopes
	// limits of single chats ("-100") and topics ("-100/7") instead of Limits.Chat; they hold no matter who pays
	ByChat map[string]Limits
	Payer  string         // in groups: user, chat, both (quotas.payer); default user
	Zone   *time.Location // in which days and months begin; nil = UTC
	// Price is the most that tokens may cost, in USD, of the models whose price is known; nil = nothing costs anything.
	Price func(llm.Usage) float64
	// Unpriced returns the name of the model that a turn is answered by, if nobody knows its price; "" = it is known.
	// prefer is the provider that the conversation has chosen, "" = the usual one. nil = all prices are known.
	Unpriced func(prefer string) string
	// Admin reports whether a person can set a price; nil = nobody is told how.
	Admin func(ctx context.Context, place bot.Place, caller string) bool
	// Most is the most that a call may cost, in USD, and the longest answer, in tokens. asked has the tokens of the
	// request, and as Output how long an answer it asks for; 0 = it does not say. nil = what is asked for, at Price.
	Most func(asked llm.Usage) (output int, usd float64)
	// Owner is this process, as the store knows it; "" = one without a name.
	Owner string
	// Older reports whether a process lives that knows nothing of the ledger and sets aside
	// on the counters; nil = none.
	Older func() bool
	// Hold is how long what is set aside on the counters for such a process is kept: longer than a call takes; default
	// 15 min.
	Hold time.Duration
	// Patience is how long a call of the model waits for what others have set aside; default 20 s.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Price == nil {
		o.Price = func(llm.Usage) float64 { return 0 }
	}
	if o.Most == nil {
		o.Most = func(asked llm.Usage) (int, float64) { return asked.Output, o.Price(asked) }
	}
	if o.Unpriced == nil {
		o.Unpriced = func(string) string { return "" }
	}
	if o.Admin == nil {
		o.Admin = func(context.Context, bot.Place, string) bool { return false }
	}
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	if o.Hold <= 0 {
		o.Hold = 15 * time.Minute
	}
	if o.Patience <= 0 {
		o.Patience = 20 * time.Second
	}
	return o
}

// Words are the sentences about quotas.
type Words interface {
	// At returns the sentences for the readers of a place, whose time zone may be another one than that of the quotas.
	At(place bot.Place) texts.Words
	QuotaBusy(language string) string
	QuotaUnpriced(language, model string, admin bool) string
}

// Meter implements turn.Meter and agent.Budget. Safe for concurrent use.
type Meter struct {
	opts    Options
	counter Counter
	mirror  Mirror
	words   Words
	now     func() time.Time
	denied  func(scope string)
	// id is part of the keys of reservations: two processes can begin the same turn at once, and the one that does not
	// get it must not give back what the other one has set aside.
	id string
	// following is held while the limits are read.
	following chan struct{}

	mu     sync.Mutex // never held while the counters or the mirror are asked
	known  *known
	set    map[string]Limits // by name of a level: what admins have set in the chat
	doubt  doubt             // whether that is what is stored
	purses map[string]*purse // by turn: those under way
	// unstored are purses of which something could not be stored.
	unstored map[*purse]struct{}
	sizes    sizes
	// suspects are levels whose counters may be too low, and until when.
	suspects map[string]time.Time
}

// known is what this process knows of the counters: which of them it filled, and in which state they were.
type known struct {
	day    string // in UTC: every day all is filled again
	state         // epoch 0 = nobody looked
	filled map[string]bool
}

// New makes a Meter. Denied is told each refusal's scope, for metrics, by any goroutine; may be nil.
func New(
	opts Options, counter Counter, mirror Mirror, words Words, now func() time.Time, denied func(scope string),
) *Meter {
	if denied == nil {
		denied = func(string) {}
	}
	return &Meter{
		opts:      opts.withDefaults(),
		counter:   counter,
		mirror:    mirror,
		words:     words,
		now:       now,
		denied:    denied,
		known:     &known{},
		purses:    map[string]*purse{},
		unstored:  map[*purse]struct{}{},
		suspects:  map[string]time.Time{},
		id:        rand.Text(),
		following: make(chan struct{}, 1),
	}
}

// Forget makes the next admission fill the counters again from the charges. It is needed when a counter was restarted,
// and when the charges of a group were moved to its new id.
func (m *Meter) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = &known{}
}

// level is one that a turn is charged to.
type level struct {
	scope  texts.Scope
	name   string // of its counters and charges
	limits Limits
}

// levels are those of a message: who pays in a group is configured. Limits that are set for a single chat or topic hold
// there no matter who pays.
func (m *Meter) levels(msg *bot.Message) []level {
	p := msg.Place
	if !p.Ordinary() { // who asks, or whose account it is, pays; the limits of a chat with the same id are not its own
		return []level{
			m.level(texts.User, UserLevel(msg.Caller), m.opts.Limits.User),
			m.level(texts.Bot, "bot/"+p.Channel+"/"+p.Bot, m.opts.Limits.Bot),
		}
	}
	var list []level
	if payer := m.opts.Payer; !p.Group || payer != "chat" {
		list = append(list, m.level(texts.User, UserLevel(msg.Caller), m.opts.Limits.User))
	}
	limits, own := m.opts.ByChat[p.Chat]
	if !own {
		limits = m.opts.Limits.Chat
	}
	chat := m.level(texts.Chat, ChatLevel(p.ChatKey()), limits)
	pays := p.Group && (m.opts.Payer == "chat" || m.opts.Payer == "both")
	if pays || (own && limits.any()) || m.isSet(chat.name) {
		list = append(list, chat)
	}
	if limits := m.opts.ByChat[p.Chat+"/"+p.Thread]; p.Thread != "" && limits.any() {
		list = append(list, m.level(texts.Chat, ChatLevel(p.ChatKey()+"/"+p.Thread), limits))
	}
	return append(list, m.botLevel(p))
}

// configured are the limits of a level in the configuration.
func (m *Meter) configured(level string) Limits {
	if strings.HasPrefix(level, "user/") {
		return m.opts.Limits.User
	}
	if own, ok := m.opts.ByChat[level[strings.LastIndexAny(level, "/:")+1:]]; ok {
		return own
	}
	return m.opts.Limits.Chat
}

// botLevel is that of a whole bot.
func (m *Meter) botLevel(p bot.Place) level {
	return m.level(texts.Bot, "bot/"+p.Channel+"/"+p.Bot, m.opts.Limits.Bot)
}

// level applies what admins have set to what is configured.
func (m *Meter) level(scope texts.Scope, name string, limits Limits) level {
	m.mu.Lock()
	defer m.mu.Unlock()
	return level{scope, name, limits.with(m.set[name])}
}

// Limited reports whether a limit applies to what a person uses, configured or set by an admin.
func (m *Meter) Limited(caller string) bool {
	return m.level(texts.User, UserLevel(caller), m.opts.Limits.User).limits.any()
}

func (m *Meter) isSet(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.set[name]) > 0
}

// UserLevel names the counters and charges of a person, by caller id.
func UserLevel(caller string) string { return "user/" + caller }

// ChatLevel names those of a chat, by its key.
func ChatLevel(key string) string { return "chat/" + key }

// Admit implements turn.Meter.
func (m *Meter) Admit(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error) {
	if err := m.settled(ctx); err != nil {
		return turn.Admission{}, err
	}
	levels, now := m.levels(msg), m.now()
	var a turn.Admission
	for _, l := range levels {
		a.Charges = append(a.Charges, bot.Charge{
			Key: id + "/" + Turns + "/" + l.name, Scope: l.name, Unit: Turns, Day: m.window(Day, now).label, N: 1,
		})
	}
	slots := m.slots(levels, now, false, Turns)
	if len(slots) == 0 {
		return a, nil
	}
	for i := range slots {
		slots[i].n = 1
	}
	counts, denied, err := m.take(ctx, id, slots)
	if err != nil { // the ledger decides
		m.Forget()
		zerolog.Ctx(ctx).Warn().Err(err).Msg("quota counters are away")
	}
	if denied >= 0 || m.suspected(levels) {
		for i := range slots {
			used, err := m.used(ctx, &slots[i])
			if err != nil {
				return turn.Admission{}, err
			}
			if used+1 > slots[i].limit {
				return m.refuse(msg, slots[i], used), nil
			}
		}
	}
	a.Ledger = &bot.Ledger{Holder: id, Turn: id, Checked: true}
	for _, l := range levels {
		day, month := max(0, l.limits[Of{Turns, Day}]), max(0, l.limits[Of{Turns, Month}])
		if day > 0 || month > 0 {
			a.Ledger.Asides = append(a.Ledger.Asides, bot.Aside{
				Scope:   l.name,
				Unit:    Turns,
				Day:     m.window(Day, now).label,
				OfDay:   day,
				OfMonth: month,
			})
		}
	}
	if err == nil && denied < 0 {
		if note, ok := m.near(msg, slots, counts); ok {
			a.Notice, a.NoticeKey = note.Text, note.Key
		}
	}
	return a, nil
}

// used reads what is charged to a counter.
func (m *Meter) used(ctx context.Context, s *slot) (int64, error) {
	used, err := m.mirror.Used(ctx, s.name, s.unit, s.days...)
	if err != nil {
		return 0, fmt.Errorf("read charges: %w", err)
	}
	return used, nil
}

// suspicious is how long the ledger is asked before a turn is admitted, after it has refused one.
const suspicious = time.Minute

// suspect notes that the ledger has refused a turn that the counters would have admitted,
// perhaps for one of these levels.
func (m *Meter) suspect(charges []bot.Charge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := m.now().Add(suspicious)
	for name, end := range m.suspects {
		if m.now().After(end) {
			delete(m.suspects, name)
		}
	}
	for _, c := range charges {
		m.suspects[c.Scope] = until
	}
}

func (m *Meter) suspected(levels []level) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(levels, func(l level) bool { return m.now().Before(m.suspects[l.name]) })
}

// refuse says which limit is reached. In a group only once a window, chat and person; alone with the bot a person gets an
// answer to everything.
func (m *Meter) refuse(msg *bot.Message, s slot, used int64) turn.Admission {
	m.denied(string(s.scope))
	a := turn.Admission{Refusal: m.words.At(msg.Place).UsedUp(msg.Language, s.usage(used))}
	if msg.Place.Group {
		a.Once = "used-up/" + s.about() + "/" + msg.Place.ChatKey() + "/" + msg.Caller
	}
	return a
}

// warnAt are the hundredths of a limit at which a person is warned.
var warnAt = [...]int64{90, 75} //nolint:gochecknoglobals // a constant list

// near warns, once a window, of the limit that is nearest to its end. Small limits are told of by their end alone, and
// the bot's are the operator's concern.
func (m *Meter) near(msg *bot.Message, slots []slot, counts []int64) (note turn.Notice, ok bool) {
	for _, percent := range warnAt {
		for i, s := range slots {
			if s.limit < smallest(s.unit) || s.scope == texts.Bot ||
				counts[i] >= s.limit || counts[i] < share(s.limit, percent) {
				continue
			}
			key := fmt.Sprintf("near/%s/%s/%d", s.about(), msg.Caller, percent)
			return turn.Notice{Text: m.words.At(msg.Place).Near(msg.Language, s.usage(counts[i])), Key: key}, true
		}
	}
	return turn.Notice{}, false
}

// share is a part of a limit in hundredths, rounded up.
func share(limit, percent int64) int64 { return limit/100*percent + (limit%100*percent+99)/100 }

var _ turn.Meter = (*Meter)(nil)
