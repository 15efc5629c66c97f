package texts

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot/visible"
)

// Scope says whose quota is meant.
type Scope string

// The scopes of a quota.
const (
	User Scope = "user"
	Chat Scope = "chat"
	Bot  Scope = "bot"
)

// The units of quotas, as they are in charges.
const (
	Turns  = "turns"
	Tokens = "tokens"
	USD    = "microusd" // millionths of a dollar
)

// Window is the time in which a quota counts.
type Window string

// The windows.
const (
	Day   Window = "day"
	Month Window = "month"
)

// Usage is what was used of a quota.
type Usage struct {
	Scope  Scope
	Unit   string
	Window Window
	Used   int64
	Limit  int64     // 0 = none
	Fresh  time.Time // when the next window begins
}

// Setting is a limit that an admin has set in the chat.
type Setting struct {
	Level  string // whose: as Level says it
	Unit   string
	Window Window
	Limit  int64 // 0 = none
	By     string
	At     time.Time
}

// quotaBook is what is said of quotas in one language.
type quotaBook struct {
	Turns, Tokens  count
	Pair           string          // used, limit
	UsedUp         map[Scope]count // amount, window, when it starts afresh
	Near, NearChat string          // of which amounts, window, when it starts afresh
	In, LimitFor   map[Window]string
	At             map[Window]string // when it starts afresh: time or date
	Unread, Busy   string
	Unpriced       string // model
	UnpricedAdmin  string // model
	List           quotaList
	Manage         quotaManage
}

// quotaList is what /quota shows.
type quotaList struct {
	Title, Bar, None string
	Names            map[Scope]string
}

// quotaManage is what is said of limits that admins set.
type quotaManage struct {
	Each                         map[Window]string
	NoLimit                      map[string]string // by unit
	Set, Unset, NotSet           string
	Settings, NoSetting, Setting string
	Help, Who, Price             string
	Person, Chat                 string
}

// amount says how much of a unit.
func (w Words) amount(language string, n int64, unit string) string {
	b := w.in(language)
	switch unit {
	case USD:
		return w.Money(language, float64(n)/1e6)
	case Tokens:
		return b.Quota.Tokens.say(clip(n))
	default:
		return b.Quota.Turns.say(clip(n))
	}
}

func clip(n int64) int { return int(min(n, math.MaxInt32)) }

// amounts says how much of how much.
func (w Words) amounts(language, pattern string, u Usage) string {
	used := w.number(language, u.Used)
	if u.Unit == USD {
		used = w.amount(language, u.Used, u.Unit)
	}
	return fmt.Sprintf(pattern, used, w.amount(language, u.Limit, u.Unit))
}

// starts says when the next window begins.
func (w Words) starts(language string, u Usage) string {
	b := w.in(language)
	if u.Window == Month {
		at, _ := w.local(u.Fresh)
		when := w.date(language, at)
		if at.Hour() != 0 || at.Minute() != 0 { // midnight in the zone of the bot is another time for this reader
			when = w.Moment(language, u.Fresh)
		}
		return fmt.Sprintf(b.Quota.At[Month], when)
	}
	return fmt.Sprintf(b.Quota.At[Day], w.clock(language, u.Fresh))
}

// UsedUp says that a quota is used up until the next window begins.
func (w Words) UsedUp(language string, u Usage) string {
	b := w.in(language)
	n := clip(u.Limit)
	if u.Unit == USD {
		n = 1 // an amount of money is one thing
	}
	return b.Quota.UsedUp[u.Scope].with(n, w.amount(language, u.Limit, u.Unit), b.Quota.LimitFor[u.Window], w.starts(language, u))
}

// Near warns that a quota is nearly used up.
func (w Words) Near(language string, u Usage) string {
	b := w.in(language)
	pattern := b.Quota.Near
	if u.Scope != User {
		pattern = b.Quota.NearChat
	}
	return fmt.Sprintf(pattern, w.amounts(language, b.Quota.Pair, u), b.Quota.In[u.Window], w.starts(language, u))
}

// QuotaUnread answers /quota while the counters cannot be read.
func (w Words) QuotaUnread(language string) string { return w.in(language).Quota.Unread }

// QuotaBusy says that what is left of a quota is set aside for answers under way.
func (w Words) QuotaBusy(language string) string { return w.in(language).Quota.Busy }

// Quota is the answer to /quota.
func (w Words) Quota(language string, usage []Usage) string {
	b := w.in(language)
	var lines []string
	for _, window := range []Window{Day, Month} {
		title := false
		for _, u := range usage {
			if u.Window != window {
				continue
			}
			if !title {
				lines, title = append(lines, w.quotaTitle(language, u)), true
			}
			name := b.Quota.List.Names[u.Scope]
			if u.Limit <= 0 {
				lines = append(lines, fmt.Sprintf(b.Quota.List.None, name, w.amount(language, u.Used, u.Unit)))
				continue
			}
			lines = append(lines, fmt.Sprintf(b.Quota.List.Bar, name, Bar(u.Used, u.Limit), w.amounts(language, "%s / %s", u)))
		}
	}
	return strings.Join(lines, "\n")
}

func (w Words) quotaTitle(language string, u Usage) string {
	b := w.in(language)
	window := b.Quota.In[u.Window]
	return fmt.Sprintf(b.Quota.List.Title, capital(window), w.starts(language, u))
}

// capital begins a text with a capital letter.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Level names a person or a chat whose limits are set; id is that of the channel, by which admins name it, and name what
// it is called ("" = nobody knows).
func (w Words) Level(language string, scope Scope, id, name string) string {
	b := w.in(language)
	if name != "" {
		return Named(name) + " (" + visible.Name(id) + ")"
	}
	if scope == User {
		return fmt.Sprintf(b.Quota.Manage.Person, visible.Name(id))
	}
	return fmt.Sprintf(b.Quota.Manage.Chat, visible.Name(id))
}

// allowance says a limit and its window.
func (w Words) allowance(language string, s Setting) string {
	b := w.in(language)
	amount := b.Quota.Manage.NoLimit[s.Unit]
	if s.Limit > 0 {
		amount = w.amount(language, s.Limit, s.Unit)
	}
	return fmt.Sprintf(b.Quota.Manage.Each[s.Window], amount)
}

// QuotaSet says that a limit was set.
func (w Words) QuotaSet(language string, s Setting) string {
	b := w.in(language)
	return fmt.Sprintf(b.Quota.Manage.Set, s.Level, w.allowance(language, s))
}

// QuotaUnset says that a limit is the configured one again.
func (w Words) QuotaUnset(language string, s Setting) string {
	return fmt.Sprintf(w.in(language).Quota.Manage.Unset, s.Level, w.allowance(language, s))
}

// QuotaNotSet says that nothing was set there.
func (w Words) QuotaNotSet(language string) string { return w.in(language).Quota.Manage.NotSet }

// QuotaSettings lists what admins have set.
func (w Words) QuotaSettings(language string, list []Setting) string {
	b := w.in(language)
	if len(list) == 0 {
		return b.Quota.Manage.NoSetting
	}
	lines := []string{b.Quota.Manage.Settings}
	for _, s := range list {
		lines = append(lines, fmt.Sprintf(
			b.Quota.Manage.Setting, s.Level, w.allowance(language, s), visible.Name(s.By), w.Moment(language, s.At),
		))
	}
	return strings.Join(lines, "\n")
}

// QuotaHelp says how limits are set.
func (w Words) QuotaHelp(language string) string { return w.in(language).Quota.Manage.Help }

// QuotaWho says that nobody is named whose limit could be set.
func (w Words) QuotaWho(language string) string { return w.in(language).Quota.Manage.Who }

// QuotaUnpriced says that USD are limited and nobody knows what a model costs. An admin is told what to do about it.
func (w Words) QuotaUnpriced(language, model string, admin bool) string {
	q := &w.in(language).Quota
	if admin {
		return fmt.Sprintf(q.UnpricedAdmin, model)
	}
	return fmt.Sprintf(q.Unpriced, model)
}

// QuotaPrice says that a limit of money needs the prices of all models.
func (w Words) QuotaPrice(language, models string) string {
	return fmt.Sprintf(w.in(language).Quota.Manage.Price, models)
}

// Bar draws a part of a whole in ten steps.
func Bar(used, limit int64) string {
	full := 0
	if limit > 0 {
		full = int(min(10, (max(0, used)*10+limit-1)/limit))
	}
	return strings.Repeat("▓", full) + strings.Repeat("░", 10-full)
}
