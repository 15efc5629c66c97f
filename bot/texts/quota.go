package texts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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
	turns, tokens      count
	pair               string           // used, limit
	of                 map[Scope]string // whose they are, after an amount
	are, is            string           // after what is used up
	usedUp             map[Scope]string // what, when it starts afresh
	near, nearChat     string           // of which amounts, window, when it starts afresh
	in, limitFor       map[Window]string
	at                 map[Window]string // when it starts afresh: time or date
	away, unread, busy string
	list               quotaList
	manage             quotaManage
}

// quotaList is what /quota shows.
type quotaList struct {
	title, bar, none string
	names            map[Scope]string
}

// quotaManage is what is said of limits that admins set.
type quotaManage struct {
	each                         map[Window]string
	noLimit                      string
	set, unset, notSet           string
	settings, noSetting, setting string
	help, who, price             string
	person, chat                 string
}

// amount says how much of a unit.
func (b *book) amount(n int64, unit string) string {
	switch unit {
	case USD:
		return Money(float64(n) / 1e6)
	case Tokens:
		return b.quota.tokens.say(clip(n))
	default:
		return b.quota.turns.say(clip(n))
	}
}

func clip(n int64) int { return int(min(n, math.MaxInt32)) }

// amounts says how much of how much.
func (b *book) amounts(pattern string, u Usage) string {
	if u.Unit == USD {
		return fmt.Sprintf(pattern, Money(float64(u.Used)/1e6), Money(float64(u.Limit)/1e6))
	}
	return fmt.Sprintf(pattern, strconv.FormatInt(u.Used, 10), b.amount(u.Limit, u.Unit))
}

// starts says when the next window begins.
func (w Words) starts(b *book, u Usage) string {
	if u.Window == Month {
		at, _ := w.local(u.Fresh)
		return fmt.Sprintf(b.quota.at[Month], at.Format(time.DateOnly))
	}
	return fmt.Sprintf(b.quota.at[Day], w.clock(u.Fresh))
}

// UsedUp says that a quota is used up until the next window begins.
func (w Words) UsedUp(language string, u Usage) string {
	b := w.in(language)
	q := &b.quota
	verb := q.are
	if u.Unit == USD || u.Limit == 1 {
		verb = q.is
	}
	what := b.amount(u.Limit, u.Unit) + q.of[u.Scope] + " " + q.limitFor[u.Window] + " " + verb
	return fmt.Sprintf(q.usedUp[u.Scope], what, w.starts(b, u))
}

// Near warns that a quota is nearly used up.
func (w Words) Near(language string, u Usage) string {
	b := w.in(language)
	pattern := b.quota.near
	if u.Scope != User {
		pattern = b.quota.nearChat
	}
	return fmt.Sprintf(pattern, b.amounts(b.quota.pair, u), b.quota.in[u.Window], w.starts(b, u))
}

// QuotaUnread answers /quota while the counters cannot be read.
func (w Words) QuotaUnread(language string) string { return w.in(language).quota.unread }

// QuotaAway says that quotas cannot be checked.
func (w Words) QuotaAway(language string) string { return w.in(language).quota.away }

// QuotaBusy says that what is left of a quota is set aside for answers under way.
func (w Words) QuotaBusy(language string) string { return w.in(language).quota.busy }

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
				lines, title = append(lines, w.quotaTitle(b, u)), true
			}
			name := b.quota.list.names[u.Scope]
			if u.Limit <= 0 {
				lines = append(lines, fmt.Sprintf(b.quota.list.none, name, b.amount(u.Used, u.Unit)))
				continue
			}
			lines = append(lines, fmt.Sprintf(b.quota.list.bar, name, Bar(u.Used, u.Limit), b.amounts("%s / %s", u)))
		}
	}
	return lined(lines)
}

func (w Words) quotaTitle(b *book, u Usage) string {
	window := b.quota.in[u.Window]
	return fmt.Sprintf(b.quota.list.title, strings.ToUpper(window[:1])+window[1:], w.starts(b, u))
}

// Level names a person or a chat whose limits are set; id is that of the channel.
func (w Words) Level(language string, scope Scope, id string) string {
	b := w.in(language)
	if scope == User {
		return fmt.Sprintf(b.quota.manage.person, id)
	}
	return fmt.Sprintf(b.quota.manage.chat, id)
}

// allowance says a limit and its window.
func (b *book) allowance(s Setting) string {
	amount := b.quota.manage.noLimit
	if s.Limit > 0 {
		amount = b.amount(s.Limit, s.Unit)
	} else if s.Unit != USD {
		amount += " (" + s.Unit + ")"
	} else {
		amount += " (USD)"
	}
	return fmt.Sprintf(b.quota.manage.each[s.Window], amount)
}

// QuotaSet says that a limit was set.
func (w Words) QuotaSet(language string, s Setting) string {
	b := w.in(language)
	return fmt.Sprintf(b.quota.manage.set, s.Level, b.allowance(s))
}

// QuotaUnset says that a limit is the configured one again.
func (w Words) QuotaUnset(language string, s Setting) string {
	return fmt.Sprintf(w.in(language).quota.manage.unset, s.Level, s.Unit+"/"+string(s.Window))
}

// QuotaNotSet says that nothing was set there.
func (w Words) QuotaNotSet(language string) string { return w.in(language).quota.manage.notSet }

// QuotaSettings lists what admins have set.
func (w Words) QuotaSettings(language string, list []Setting) string {
	b := w.in(language)
	if len(list) == 0 {
		return b.quota.manage.noSetting
	}
	lines := []string{b.quota.manage.settings}
	for _, s := range list {
		lines = append(lines, fmt.Sprintf(b.quota.manage.setting, s.Level, b.allowance(s), s.By, w.moment(s.At)))
	}
	return lined(lines)
}

// QuotaHelp says how limits are set.
func (w Words) QuotaHelp(language string) string { return w.in(language).quota.manage.help }

// QuotaWho says that nobody is named whose limit could be set.
func (w Words) QuotaWho(language string) string { return w.in(language).quota.manage.who }

// QuotaPrice says that a limit of money needs the prices of all models.
func (w Words) QuotaPrice(language, models string) string {
	return fmt.Sprintf(w.in(language).quota.manage.price, models)
}

// Bar draws a part of a whole in ten steps.
func Bar(used, limit int64) string {
	full := 0
	if limit > 0 {
		full = int(min(10, (max(0, used)*10+limit-1)/limit))
	}
	return strings.Repeat("▓", full) + strings.Repeat("░", 10-full)
}

func englishQuotas() quotaBook {
	return quotaBook{
		turns: count{"%d turn", "%d turns"}, tokens: count{"%d token", "%d tokens"}, pair: "%s of %s",
		of: map[Scope]string{Chat: " of this chat"}, are: "are", is: "is",
		usedUp: map[Scope]string{
			User: "Your %s used up. It starts afresh %s. /quota shows the details; an admin can raise them.",
			Chat: "The %s used up. It starts afresh %s. /quota shows the details; an admin can raise them.",
			Bot:  "My %s used up. It starts afresh %s.",
		},
		near: "You have used %s %s; it starts afresh %s.", nearChat: "This chat has used %s %s; it starts afresh %s.",
		in: map[Window]string{Day: "today", Month: "this month"}, limitFor: map[Window]string{Day: "for today", Month: "for this month"},
		at: map[Window]string{Day: "at %s", Month: "on %s"},
		list: quotaList{
			title: "%s (starts afresh %s)", bar: "%s %s %s", none: "%s: %s, no limit",
			names: map[Scope]string{User: "You", Chat: "This chat", Bot: "The bot"},
		},
		unread: "I cannot read the quotas right now. Please ask again in a few minutes.",
		away:   "I cannot check quotas right now, so I do not start anything new. Please send this again in a few minutes.",
		busy:   "What is left of the quota is set aside for answers that are being written. Please send this again in a minute.",
		manage: quotaManage{
			each: map[Window]string{Day: "%s a day", Month: "%s a month"}, noLimit: "no limit",
			set: "The limit of %s is %s from now on. /quota list shows what is set; /quota unset takes it back.", unset: "The limit of %s is the configured one again: %s.",
			notSet: "Nothing is set there. /quota list shows what is.", settings: "Limits that were set in the chat:", noSetting: "No limits were set in the chat; those of the configuration hold.",
			setting: "• %s: %s (%s, %s)",
			help: "/quota set WHO UNIT/WINDOW LIMIT sets a limit, such as /quota set 4711 usd/day 2.50 or /quota set chat turns/month 500; /quota unset WHO UNIT/WINDOW takes it back; /quota list shows them. " +
				"WHO is the id of a person or a group, or chat for this one. UNIT is turns, tokens or usd, WINDOW day or month. LIMIT off means no limit.",
			who:    "I do not know whose limit that is. Give the id of a person or a group, or chat for this one.",
			price:  "A limit in USD needs to know what every model costs, and it is not known of: %s. Set input_usd_per_mtok and output_usd_per_mtok of its provider first.",
			person: "person %s", chat: "chat %s",
		},
	}
}

func germanQuotas() quotaBook {
	return quotaBook{
		turns: count{"%d Anfrage", "%d Anfragen"}, tokens: count{"%d Token", "%d Tokens"}, pair: "%s von %s",
		of: map[Scope]string{Chat: " dieses Chats"}, are: "sind", is: "ist",
		usedUp: map[Scope]string{
			User: "Deine %s verbraucht. %s beginnt es neu. /quota zeigt mehr; ein Admin kann sie erhöhen.",
			Chat: "Die %s verbraucht. %s beginnt es neu. /quota zeigt mehr; ein Admin kann sie erhöhen.",
			Bot:  "Meine %s verbraucht. %s beginnt es neu.",
		},
		near: "Du hast %[2]s %[1]s verbraucht. %[3]s beginnt es neu.", nearChat: "Dieser Chat hat %[2]s %[1]s verbraucht. %[3]s beginnt es neu.",
		in: map[Window]string{Day: "heute", Month: "diesen Monat"}, limitFor: map[Window]string{Day: "für heute", Month: "für diesen Monat"},
		at: map[Window]string{Day: "Um %s", Month: "Am %s"},
		list: quotaList{
			title: "%s. %s beginnt es neu", bar: "%s %s %s", none: "%s: %s, keine Grenze",
			names: map[Scope]string{User: "Du", Chat: "Dieser Chat", Bot: "Der Bot"},
		},
		unread: "Ich kann die Kontingente gerade nicht lesen. Bitte in ein paar Minuten noch einmal fragen.",
		away:   "Ich kann die Kontingente gerade nicht prüfen und fange darum nichts Neues an. Bitte in ein paar Minuten noch einmal senden.",
		busy:   "Was vom Kontingent übrig ist, ist für Antworten zurückgelegt, die gerade entstehen. Bitte in einer Minute noch einmal senden.",
		manage: quotaManage{
			each: map[Window]string{Day: "%s am Tag", Month: "%s im Monat"}, noLimit: "keine Grenze",
			set: "Die Grenze für %s ist ab jetzt %s. /quota list zeigt, was gesetzt ist; /quota unset nimmt es zurück.", unset: "Für %s gilt wieder die Grenze der Konfiguration: %s.",
			notSet: "Dort ist nichts gesetzt. /quota list zeigt, was es gibt.", settings: "Im Chat gesetzte Grenzen:", noSetting: "Im Chat wurden keine Grenzen gesetzt; es gelten die der Konfiguration.",
			setting: "• %s: %s (%s, %s)",
			help: "/quota set WER EINHEIT/FENSTER GRENZE setzt eine Grenze, etwa /quota set 4711 usd/day 2.50 oder /quota set chat turns/month 500; /quota unset WER EINHEIT/FENSTER nimmt sie zurück; /quota list zeigt alle. " +
				"WER ist die Nummer einer Person oder Gruppe, oder chat für diesen Chat. EINHEIT ist turns, tokens oder usd, FENSTER day oder month. Mit off gibt es keine Grenze.",
			who:    "Ich weiß nicht, wessen Grenze das ist. Nenne die Nummer einer Person oder Gruppe, oder chat für diesen Chat.",
			price:  "Eine Grenze in USD setzt voraus, dass der Preis jedes Modells bekannt ist. Unbekannt ist er bei: %s. Setze zuerst input_usd_per_mtok und output_usd_per_mtok des Anbieters.",
			person: "Person %s", chat: "Chat %s",
		},
	}
}
