package quota

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Bucket of facts holds the limits that admins have set in the chat. The key of a chat's begins with the chat's key, so
// that it moves with the chat.
const Bucket = "quota"

// stored is the value of such a fact.
type stored struct {
	Limit int64     `json:"limit"` // 0 = none
	By    string    `json:"by"`    // caller id
	Name  string    `json:"name,omitempty"`
	At    time.Time `json:"at"`
}

// setting is one limit that was set.
type setting struct {
	level string
	of    Of
	stored
}

func (s *setting) key() string {
	return strings.TrimPrefix(s.level, "chat/") + "/" + s.of.Unit + "/" + string(s.of.Window)
}

// parse reads a stored setting; a fact of a newer version that is not understood is left alone.
func parse(f bot.Fact) (s setting, ok bool) {
	rest, window, ok := cutLast(f.Key)
	if !ok {
		return s, false
	}
	s.level, s.of.Unit, ok = cutLast(rest)
	s.of.Window = texts.Window(window)
	if !ok || json.Unmarshal([]byte(f.Value), &s.stored) != nil || s.Limit < 0 {
		return s, false
	}
	if !strings.HasPrefix(s.level, "user/") {
		s.level = ChatLevel(s.level)
	}
	return s, true
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return "", "", false
	}
	return text[:i], text[i+1:], true
}

// Follow reads the limits that admins have set, in this process or another. One reads at a time: what was read before a
// limit was set must not replace what was read after it.
func (m *Meter) Follow(ctx context.Context, facts bot.Facts) error {
	select {
	case m.following <- struct{}{}:
		defer func() { <-m.following }()
	case <-ctx.Done():
		return fmt.Errorf("read quotas that were set: %w", context.Cause(ctx))
	}
	list, err := facts.FactsOf(ctx, Bucket, "", m.now())
	if err != nil {
		return fmt.Errorf("read quotas that were set: %w", err)
	}
	set := map[string]Limits{}
	for _, s := range SetLimits(list) {
		if set[s.Level] == nil {
			set[s.Level] = Limits{}
		}
		set[s.Level][s.Of] = s.Limit
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.EqualFunc(set, m.set, func(a, b Limits) bool { return maps.Equal(a, b) }) {
		m.set, m.known = set, &known{} // what had no limit was not counted
	}
	return nil
}

// SetLimit is a limit that an admin has set in the chat; 0 = there is no limit any more where one was configured.
type SetLimit struct {
	Level string // whose it is: user/ and a caller id, chat/ and the key of a chat, or bot/
	Of    Of
	Limit int64
}

// SetLimits reads the limits that admins have set from the facts of Bucket, in their order. What is not understood,
// such as one of a newer version, is left out.
func SetLimits(list []bot.Fact) []SetLimit {
	var set []SetLimit
	for _, f := range list {
		if s, ok := parse(f); ok {
			set = append(set, SetLimit{s.level, s.of, s.Limit})
		}
	}
	return set
}

// SetLimits returns the limits that admins have set, as far as Follow has read them, in the order of their levels.
func (m *Meter) SetLimits() []SetLimit {
	m.mu.Lock()
	defer m.mu.Unlock()
	var set []SetLimit
	for _, level := range slices.Sorted(maps.Keys(m.set)) {
		for of, limit := range m.set[level] {
			set = append(set, SetLimit{level, of, limit})
		}
	}
	return set
}

// doubtful is how long a limit that was just set is read for each admission. What is stored by then was followed too.
const doubtful = time.Minute

// doubt says where the limits are read until when, instead of believing what is remembered.
type doubt struct {
	facts bot.Facts
	until time.Time
}

// changing is told before a limit is stored: a person who reads that it holds may write a moment later, before Follow.
func (m *Meter) changing(facts bot.Facts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubt = doubt{facts, m.now().Add(doubtful)}
}

// settled reads the limits if one was set a moment ago.
func (m *Meter) settled(ctx context.Context) error {
	m.mu.Lock()
	facts, until := m.doubt.facts, m.doubt.until
	m.mu.Unlock()
	if facts == nil || !m.now().Before(until) {
		return nil
	}
	return m.Follow(ctx, facts)
}

// Manager carries out what admins say about quotas. Safe for concurrent use.
type Manager struct {
	Meter  *Meter
	Facts  bot.Facts
	Words  texts.Words
	Now    func() time.Time
	Admins func() []string
	// Names returns what people and groups are called, by caller id; nil = nobody knows.
	Names func() map[string]string
	// Priceless names the models whose price nobody knows.
	Priceless []string
	// Record gives the facts that put a change into the audit log; nil = there is none.
	Record func(call *turn.Call, args any) []bot.Fact
	// Recorded is told when such facts are stored; may be nil.
	Recorded func(ctx context.Context)
}

// Feature returns /quota, with the limits that other processes have stored.
func (g *Manager) Feature() feature.Feature {
	return feature.Feature{
		Name:     "quota",
		Commands: []feature.Command{{Name: "quota", Shows: true, Run: g.Command}},
		Follow:   func(ctx context.Context) error { return g.Meter.Follow(ctx, g.Facts) },
		Moved:    func() { g.Meter.Forget() },
	}
}

// Command answers /quota: how much is used, or what an admin says about limits.
func (g *Manager) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, g.Words
	if strings.TrimSpace(msg.Args) != "" {
		text, e, err := g.Manage(ctx, call)
		if err == nil {
			e.Change.Send = append(e.Change.Send, call.ReplyAside(bot.Content{Text: text}).Change.Send...)
		}
		return e, err
	}
	usage, err := g.Meter.Usage(ctx, msg)
	if err != nil {
		if ctx.Err() != nil {
			return turn.Effect{}, err
		}
		zerolog.Ctx(ctx).Error().Err(err).Msg("cannot read the quotas")
		return call.ReplyAside(bot.Content{Text: w.QuotaUnread(msg.Language)}), nil
	}
	return call.ReplyAside(bot.Content{Text: w.At(msg.Place).Quota(msg.Language, usage)}), nil
}

// Manage answers /quota with arguments. Everything but a question about one's own is for admins.
func (g *Manager) Manage(ctx context.Context, call *turn.Call) (string, turn.Effect, error) {
	msg := call.Message
	words := strings.Fields(msg.Args)
	if !call.Admin {
		return g.Words.AdminsOnly(msg.Language, g.Admins()), turn.Effect{}, nil
	}
	switch {
	case len(words) == 1 && words[0] == "list":
		text, err := g.list(ctx, msg)
		return text, turn.Effect{}, err
	case len(words) >= 4 && words[0] == "set":
		n := len(words) - 2
		return g.change(ctx, call, strings.Join(words[1:n], " "), words[n], words[n+1])
	case len(words) >= 3 && words[0] == "unset":
		n := len(words) - 1
		return g.change(ctx, call, strings.Join(words[1:n], " "), words[n], "")
	default:
		help := g.Words.QuotaHelp(msg.Language)
		return g.Words.Usage(msg.Language, msg.Args, []string{"list", "set", "unset"}, help), turn.Effect{}, nil
	}
}

// change sets a limit, or takes back what was set when none is given.
func (g *Manager) change(ctx context.Context, call *turn.Call, who, what, limit string) (string, turn.Effect, error) {
	msg, w := call.Message, g.Words
	s := setting{stored: stored{By: msg.Caller, Name: msg.Signature(), At: g.Now().UTC().Truncate(time.Second)}}
	var ok bool
	found := g.find(msg.Place, who)
	if len(found) > 1 {
		return w.NameUnknown(msg.Language, who, found), turn.Effect{}, nil
	}
	if len(found) == 1 {
		who = found[0]
	}
	if s.level, ok = levelOf(msg.Place, who); !ok {
		return w.QuotaWho(msg.Language), turn.Effect{}, nil
	}
	if s.of, ok = of(what); !ok {
		return w.QuotaHelp(msg.Language), turn.Effect{}, nil
	}
	var e turn.Effect
	answer, value := w.QuotaUnset, ""
	if limit == "" {
		was, err := g.Facts.Fact(ctx, Bucket, s.key(), g.Now())
		if err != nil || was == "" {
			return w.QuotaNotSet(msg.Language), e, err
		}
		s.Limit = g.Meter.configured(s.level)[s.of]
	} else {
		if s.Limit, ok = amount(limit, s.of.Unit); !ok {
			return w.QuotaHelp(msg.Language), e, nil
		}
		if s.of.Unit == USD && s.Limit > 0 && len(g.Priceless) > 0 {
			return w.QuotaPrice(msg.Language, strings.Join(g.Priceless, ", ")), e, nil
		}
		raw, err := json.Marshal(s.stored)
		if err != nil {
			return "", e, fmt.Errorf("store a quota: %w", err)
		}
		answer, value = w.QuotaSet, string(raw)
	}
	e.Change.Facts = []bot.Fact{{Bucket: Bucket, Key: s.key(), Value: value}}
	if g.Record != nil {
		e.Change.Facts = append(e.Change.Facts, g.Record(call, map[string]string{
			"who":   s.level,
			"quota": what,
			"limit": cmp.Or(limit, "configured"),
		})...)
	}
	g.Meter.changing(g.Facts)
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		err := g.Meter.Follow(ctx, g.Facts)
		if g.Recorded != nil {
			g.Recorded(ctx)
		}
		return turn.Effect{}, err
	}
	return answer(msg.Language, g.said(msg, s)), e, nil
}

// find returns the ids of the people and groups that are called so, or whose first name it is.
func (g *Manager) find(place bot.Place, name string) []string {
	if g.Names == nil {
		return nil
	}
	var ids []string
	for caller, called := range g.Names() {
		first, _, _ := strings.Cut(called, " ")
		if texts.SameName(called, name) || texts.SameName(first, name) {
			ids = append(ids, strings.TrimPrefix(caller, place.Channel+":"))
		}
	}
	slices.Sort(ids)
	return ids
}

// said is a setting as people are told of it.
func (g *Manager) said(msg *bot.Message, s setting) texts.Setting {
	scope, id := texts.User, s.level[strings.LastIndexAny(s.level, "/:")+1:]
	if !strings.HasPrefix(s.level, "user/") {
		scope = texts.Chat
	}
	name := ""
	if g.Names != nil {
		name = g.Names()[msg.Place.Channel+":"+id]
	}
	return texts.Setting{
		Level:  g.Words.Level(msg.Language, scope, id, name),
		Unit:   s.of.Unit,
		Window: s.of.Window,
		Limit:  s.Limit,
		By:     cmp.Or(s.Name, s.By),
		At:     s.At,
	}
}

func (g *Manager) list(ctx context.Context, msg *bot.Message) (string, error) {
	facts, err := g.Facts.FactsOf(ctx, Bucket, "", g.Now())
	if err != nil {
		return "", fmt.Errorf("read quotas that were set: %w", err)
	}
	var list []texts.Setting
	for _, f := range facts {
		if s, ok := parse(f); ok {
			list = append(list, g.said(msg, s))
		}
	}
	return g.Words.At(msg.Place).QuotaSettings(msg.Language, list), nil
}

// levelOf is the level of a person or a chat that is named by its id, or of the chat that the message is in.
func levelOf(place bot.Place, who string) (string, bool) {
	if who == "chat" {
		return ChatLevel(place.ChatKey()), true
	}
	id, err := strconv.ParseInt(who, 10, 64)
	switch {
	case err != nil || id == 0:
		return "", false
	case id < 0:
		place.Chat = strconv.FormatInt(id, 10)
		return ChatLevel(place.ChatKey()), true
	default:
		return UserLevel(place.Channel + ":" + strconv.FormatInt(id, 10)), true
	}
}

// of reads UNIT/WINDOW.
func of(text string) (Of, bool) {
	unit, window, ok := strings.Cut(strings.ToLower(text), "/")
	o := Of{Unit: unit, Window: texts.Window(window)}
	if unit == "usd" {
		o.Unit = USD
	}
	return o, ok && (o.Unit == Turns || o.Unit == Tokens || unit == "usd") && (o.Window == Day || o.Window == Month)
}

// amount reads a limit; off is none.
func amount(text, unit string) (int64, bool) {
	if text == "off" {
		return 0, true
	}
	if unit == USD {
		usd, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
		return Micro(usd), err == nil && usd > 0 && usd <= 1e6
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && n < math.MaxInt64/1000
}
