package texts

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// Words are the bot's sentences in the reader's language. The zero value is ready; methods are safe for concurrent use.
// language is an IETF tag as sent by the client ("de-CH"); an unknown one means English. The Bot API does not tell a
// reader's time zone: the times in sentences are in Zone, or in the one that the readers of a place have set (At).
type Words struct {
	Zone     *time.Location // nil = UTC
	Language string         // an IETF tag for readers whose language is unknown; "" = English
	// ZoneAt returns the zone that the readers of a place have set; nil = none, and a nil func knows none. It must not
	// block.
	ZoneAt func(place bot.Place) *time.Location
	// Clock is how the readers read times of day, and ClockAt how those of a place do; nil = as their language says.
	Clock   Clock
	ClockAt func(place bot.Place) Clock
	// LanguageAt returns the language that the person of a private chat is known to read; "" = not known, as in a group.
	LanguageAt func(place bot.Place) string
	// Owner: the readers run this service themselves, at a terminal or in an editor; they are not sent to an operator.
	Owner bool
	// Patience is how long a model may be unavailable before a turn is given up; 0 = 10 minutes. Only an owner is told.
	Patience time.Duration
	// failure is why the model does not answer; nil = nobody knows (Failing).
	failure *llm.Error
	// OtherModels: /model offers models that are not asked by themselves if one fails.
	OtherModels bool
}

// At returns the sentences for the readers of a place, with times in the zone that they have set. Where the language is
// not given, it is the one that they are known to read.
func (w Words) At(place bot.Place) Words {
	if w.ZoneAt != nil {
		if zone := w.ZoneAt(place); zone != nil {
			w.Zone = zone
		}
	}
	if w.ClockAt != nil {
		w.Clock = w.ClockAt(place)
	}
	w.Language = w.Read(place, w.Language)
	return w
}

// Read returns the language that the readers of a place are known to read, or else the one that was told.
func (w Words) Read(place bot.Place, told string) string {
	if w.LanguageAt == nil {
		return told
	}
	return cmp.Or(w.LanguageAt(place), told)
}

// in returns the book for a language.
func (w Words) in(language string) *book {
	if language == "" {
		language = w.Language
	}
	return in(language)
}

// Ended says why a turn ended without an answer.
func (w Words) Ended(language, reason, text string, stats journal.Stats, request string) string {
	b := w.in(language)
	text = strings.TrimSpace(text)
	switch reason {
	case journal.ReasonStopped:
		if text == "" {
			return b.Ended.StoppedNothing
		}
		return text + "\n\n" + b.Ended.Stopped
	case journal.ReasonOvertaken:
		return strings.TrimPrefix(text+"\n\n"+b.Edits.Overtaken, "\n\n")
	case journal.ReasonGone:
		return b.Ended.Gone
	case journal.ReasonLimit:
		return b.Ended.Limit.say(stats.Steps)
	case journal.ReasonLoop:
		if text == "" {
			return b.Ended.LoopMute
		}
		return fmt.Sprintf(b.Ended.Loop, "\n"+quoted(text))
	case journal.ReasonContext:
		return b.Ended.Context
	case journal.ReasonBudget:
		return text
	case journal.ReasonEmpty:
		return b.Ended.Empty
	case journal.ReasonRefusal:
		return b.Ended.Refusal
	case journal.ReasonBusy, journal.ReasonGivenUp:
		own := b.Ended.Owner
		if why := w.unreached(language); why != "" {
			return why + " " + fmt.Sprintf(own.Unreached, request)
		}
		if w.Owner && reason == journal.ReasonBusy {
			return fmt.Sprintf(own.Busy, w.patience(language), request)
		} else if w.Owner {
			return fmt.Sprintf(own.GivenUp, w.patience(language), request)
		}
		return fmt.Sprintf(b.failed(reason, false), request)
	case journal.ReasonModel, journal.ReasonKey, journal.ReasonCredit, journal.ReasonNoModel, journal.ReasonRegion,
		journal.ReasonAddress:
		if w.Owner {
			return fmt.Sprintf(b.failed(reason, true), w.server(), request)
		}
	}
	return fmt.Sprintf(b.failed(reason, w.Owner), request)
}

// Failing returns the sentences about a model that does not answer because of err, and is tried for patience. Only an
// owner is told which server it is.
func (w Words) Failing(err error, patience time.Duration) Words {
	w.failure, _ = errors.AsType[*llm.Error](err)
	w.Patience = patience
	return w
}

// server names what an owner has configured and does not work.
func (w Words) server() string {
	if w.failure == nil {
		return configuredProviders
	}
	return visible.Name(cmp.Or(w.failure.Server, w.failure.Provider, configuredProviders))
}

// configuredProviders is where the servers of models are configured.
const configuredProviders = "llm.providers"

// unreached says why the model's server cannot be reached; "" = it is not that.
func (w Words) unreached(language string) string {
	if !w.Owner || w.failure == nil || w.failure.Unreached == "" {
		return ""
	}
	b := w.in(language).Notices.Owner
	return fmt.Sprintf(b.Unreached, w.server(), b.UnreachedBecause[string(w.failure.Unreached)])
}

// OtherModel says that /model helps, under the sentence of a turn that ended because of the model's provider; "" = it
// does not. It is for readers who may choose.
func (w Words) OtherModel(language, reason string) string {
	if !w.OtherModels {
		return ""
	}
	switch reason {
	case journal.ReasonKey, journal.ReasonCredit, journal.ReasonNoModel, journal.ReasonRegion, journal.ReasonAddress:
		return w.in(language).Ended.OtherModel
	default:
		return ""
	}
}

// failed returns the sentence for a turn that failed; it contains the id of the request.
func (b *book) failed(reason string, owner bool) string {
	of := func(others, own string) string {
		if owner {
			return own
		}
		return others
	}
	e, own := &b.Ended, &b.Ended.Owner
	switch reason {
	case journal.ReasonModel:
		return of(e.ModelRefused, own.ModelRefused)
	case journal.ReasonKey:
		return of(e.Key, own.Key)
	case journal.ReasonCredit:
		return of(e.Credit, own.Credit)
	case journal.ReasonNoModel:
		return of(e.NoModel, own.NoModel)
	case journal.ReasonRegion:
		return of(e.Region, own.Region)
	case journal.ReasonAddress:
		return of(e.Address, own.Address)
	case journal.ReasonBusy:
		return e.Busy
	case journal.ReasonOvertime:
		return b.Ended.Overtime
	case journal.ReasonOversize:
		return b.Ended.Oversize
	case journal.ReasonGivenUp:
		return b.Ended.GivenUp
	default:
		return of(e.Internal, own.Internal)
	}
}

// maxQuoted limits foreign output in a message, in UTF-16 units. The channel collapses what is long.
const maxQuoted = 2000

// quoted shows foreign output as code, shortened to what fits a chat.
func quoted(text string) string {
	return "```\n" + strings.ReplaceAll(render.Cut(text, maxQuoted), "```", "'''") + "\n```"
}

// Cut is added under an answer that the token limit cut.
func (w Words) Cut(language string) string { return w.in(language).Notices.Cut }

// Filtered is added under an answer that a filter of the model's provider broke off.
func (w Words) Filtered(language string) string { return w.in(language).Notices.Filtered }

// Unstored says that a message cannot be stored now and is not lost.
func (w Words) Unstored(language string) string { return w.in(language).Notices.Unstored }

// OutOfOrder tells an admin why nothing can be stored, and what to do.
func (w Words) OutOfOrder(language string, advice reason.Reason) string {
	return fmt.Sprintf(w.in(language).Notices.OutOfOrder, w.Said(language, advice))
}

// Away says that the model does not answer and that the message is kept.
func (w Words) Away(language, request string) string {
	if why := w.unreached(language); why != "" {
		return why + " " + fmt.Sprintf(w.in(language).Notices.Owner.KeepTrying, w.patience(language), request)
	}
	if w.Owner {
		return fmt.Sprintf(w.in(language).Notices.Owner.Away, w.patience(language), request)
	}
	return fmt.Sprintf(w.in(language).Notices.Away, request)
}

// Busy says that the model is overloaded and that the message is kept.
func (w Words) Busy(language, request string) string {
	if w.Owner {
		return fmt.Sprintf(w.in(language).Notices.Owner.Busy, w.patience(language), request)
	}
	return fmt.Sprintf(w.in(language).Notices.Busy, request)
}

// patience says how long a model may be unavailable.
func (w Words) patience(language string) string {
	return w.Duration(language, cmp.Or(w.Patience, 10*time.Minute))
}

// Behind says that a message waits behind a decision.
func (w Words) Behind(language string) string { return w.in(language).Notices.Behind }

// Crowded says that many are asking, and roughly how long somebody has to wait: in tens of seconds, then in minutes.
func (w Words) Crowded(language string, wait time.Duration) string {
	const grain = 10 * time.Second
	b := w.in(language)
	wait = max(grain, (wait+grain-1)/grain*grain)
	if wait > 100*time.Second {
		wait = min(2*time.Hour-time.Minute, (wait+time.Minute-1)/time.Minute*time.Minute)
	}
	return fmt.Sprintf(b.Notices.Crowded, w.Duration(language, wait))
}

// Nothing replies to a message that contains nothing to work on.
func (w Words) Nothing(language string) string { return w.in(language).Notices.Nothing }

// Placeholder is the first text of a message that will grow.
func (w Words) Placeholder(language string) string { return w.in(language).Notices.Placeholder }

// Broken says that a message could not be handled because of an internal error.
func (w Words) Broken(language, request string) string {
	if w.Owner {
		return fmt.Sprintf(w.in(language).Ended.Owner.Internal, request)
	}
	return fmt.Sprintf(w.in(language).Notices.Broken, request)
}

// Resent marks an answer that was sent again after its first sending had an unknown outcome.
func (w Words) Resent(language string) string { return w.in(language).Notices.Resent }

// Lost says below a message that n earlier ones may not have arrived.
func (w Words) Lost(language string, n int) string { return w.in(language).Notices.Lost.say(n) }

// NoTopic says below a message why it is not in its topic.
func (w Words) NoTopic(language string) string { return w.in(language).Notices.NoTopic }

// AsFile is the caption of an answer that Telegram refuses as a text.
func (w Words) AsFile(language string) string { return w.in(language).Notices.AsFile }

// NotKept says that a file which a tool made could not be kept.
func (w Words) NotKept(language, tool, name string) string {
	return fmt.Sprintf(w.in(language).Notices.NotKept, tool, name)
}

// Beginning says at the head of a long answer that only its beginning follows, and a file with all of it, of so many
// bytes.
func (w Words) Beginning(language string, size int64) string {
	return fmt.Sprintf(w.in(language).Notices.Beginning, w.Bytes(language, size))
}

// WholeAnswer is the caption of the file with a long answer, of so many bytes.
func (w Words) WholeAnswer(language string, size int64) string {
	return fmt.Sprintf(w.in(language).Notices.WholeAnswer, w.Bytes(language, size))
}

// NoRest replaces that file in a chat that takes none.
func (w Words) NoRest(language string) string { return w.in(language).Notices.NoRest }

// Unsendable replaces what Telegram refuses in every form.
func (w Words) Unsendable(language string) string { return w.in(language).Notices.Unsendable }

// Thinking is the progress line before the first tool.
func (w Words) Thinking(language string) string { return w.in(language).Progress.Thinking }

// Silent is the progress line when the model has said nothing for so long.
func (w Words) Silent(language string, lasting time.Duration) string {
	b := w.in(language).Progress
	if lasting >= time.Minute {
		return fmt.Sprintf(b.Stuck, w.Duration(language, lasting))
	}
	return fmt.Sprintf(b.Silent, w.Duration(language, lasting))
}

// Line is the progress line while tools run: what a tool does to what (without a verb, show is the name of the tool),
// how many steps are done, for how long.
func (w Words) Line(language string, does act.Verb, show string, done, total int, took time.Duration) string {
	b := w.in(language)
	verb, ok := b.Progress.Verbs[string(does)]
	if !ok {
		verb = b.Progress.Verbs["other"]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(show), "\n")
	first = visible.Name(first)
	if first == "" {
		first = "…"
	}
	parts := []string{fmt.Sprintf(b.Progress.Working, fmt.Sprintf(verb, render.Cut(first, 60)))}
	if total > 1 {
		parts = append(parts, fmt.Sprintf(b.Progress.Step, min(done+1, total), total))
	}
	return strings.Join(append(parts, fmt.Sprintf(b.Progress.Short, int(took.Seconds()))), " · ")
}

// Duration says how long something has lasted, roughly.
func (w Words) Duration(language string, d time.Duration) string {
	b := w.in(language)
	n, unit := int(d.Seconds()), b.Progress.Seconds
	switch {
	case d >= 2*time.Hour:
		n, unit = int(d.Hours()), b.Progress.Hours
	case d >= 2*time.Minute:
		n, unit = int(d.Minutes()), b.Progress.Minutes
	}
	return unit.say(n)
}

// Stranger tells somebody who is not on the list how to get there.
func (w Words) Stranger(language, id string) string {
	return fmt.Sprintf(w.in(language).Notices.Stranger, id)
}

// StrangerRefused tells a person that they are not admitted, where no admin is asked about them.
func (w Words) StrangerRefused(language string) string { return w.in(language).People.StrangerRefused }

// StrangerAsked tells a person that admins were asked to admit them; admins are their names as far as they are known.
func (w Words) StrangerAsked(language string, admins []string) string {
	b := w.in(language).People
	return fmt.Sprintf(b.StrangerAsked, b.nameAdmins(admins))
}

// Unlisted tells a group that it is not on the list, where there is no admin to ask.
func (w Words) Unlisted(language, id string) string {
	return fmt.Sprintf(w.in(language).Notices.GroupUnlisted, id)
}

// Unclaimed tells a group that it is asked about once somebody has become the first admin by a code.
func (w Words) Unclaimed(language string) string { return w.in(language).Notices.GroupUnclaimed }
