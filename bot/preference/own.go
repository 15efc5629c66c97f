package preference

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// People say in their own words how they want to be answered. The text is the person's, as their messages are: a turn
// of theirs reads it, and it allows nothing.

const (
	// ownBucket holds the texts, by caller id. They are long, so they are not remembered like choices: ownSet is.
	ownBucket = "own_instructions"
	// ownSet is the name under which a choice says that somebody has a text.
	ownSet = "instructions"
	// ownAsked is the name under which a choice says in which chat the next message of somebody is their text.
	ownAsked = "instructions_asked"

	// recordTool is what the audit log calls that somebody writes a text, or, with 0 characters, removes it.
	recordTool = "instructions_set"

	mostOwn = 500 // characters
	ownWait = 10 * time.Minute
)

// settingOwn is the setting, behind Prefix in buttons. ownForgotten removes the text.
const (
	settingOwn   texts.SettingName = ownSet
	ownForgotten                   = "-"
)

// ownChanges are the people whose text was asked for, given or removed in this process a moment ago: what is remembered
// of them may be out of date, so the store is read. Safe for concurrent use.
type ownChanges struct {
	mu    sync.Mutex
	until map[string]time.Time // by caller
}

// note says that something is about to change.
func (o *ownChanges) note(caller string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.until == nil {
		o.until = map[string]time.Time{}
	}
	maps.DeleteFunc(o.until, func(_ string, until time.Time) bool { return now.After(until) })
	o.until[caller] = now.Add(aheadFor)
}

func (o *ownChanges) recent(caller string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	until, ok := o.until[caller]
	return ok && now.Before(until)
}

// aheadFor is how long it takes at most until a process remembers what it has stored.
const aheadFor = 5 * time.Second

// OwnInstructions returns what a person has written about how they want to be answered; "" = nothing. The store is read
// only if there may be something.
func (p *Preferences) OwnInstructions(ctx context.Context, caller string) (string, error) {
	set := p.chosen.Value()[factKey(caller, ownSet)] != ""
	if caller == "" || !set && !p.own.recent(caller, p.deps.Now()) {
		return "", nil
	}
	text, err := p.deps.Store.Fact(ctx, ownBucket, caller, p.deps.Now())
	if err != nil {
		return "", fmt.Errorf("read the instructions of a person: %w", err)
	}
	return text, nil
}

// askOwn shows the text of a person, and takes their next message as another one.
func (s Settings) askOwn(ctx context.Context, call *turn.Call, toast bot.Row) (turn.Effect, error) {
	msg := call.Message
	now, err := s.OwnInstructions(ctx, msg.Caller)
	if err != nil {
		return turn.Effect{}, err
	}
	w := s.deps.Words.At(msg.Place)
	e := call.ShowCard(toast, s.ownCard(msg.Language, w.OwnAsk(msg.Language, now, mostOwn, ownWait), now != ""))
	until := s.deps.Now().Add(ownWait)
	s.own.note(msg.Caller, s.deps.Now())
	e.Change.Facts = []bot.Fact{{
		Bucket: bucket, Key: factKey(msg.Caller, ownAsked), Expires: until,
		Value: chatOf(msg.Place),
	}, s.chosen.Revised()}
	e.Then = s.followed
	return e, nil
}

// forgetOwn removes the text of a person.
func (s Settings) forgetOwn(call *turn.Call, toast bot.Row) turn.Effect {
	toast.Content.Text = s.deps.Words.SettingDone(call.Message.Language)
	e := call.ShowCard(toast, s.settingsCard(call, map[texts.SettingName]string{settingOwn: ""}))
	e.Change.Facts = s.ownFacts(call.Message.Caller, "")
	e.Then = s.followed
	return s.recordOwn(e, call, "")
}

// recordOwn adds to an effect a line of the audit log: that somebody has written a text or removed it, and not the text.
func (p *Preferences) recordOwn(e turn.Effect, call *turn.Call, text string) turn.Effect {
	return p.deps.Audit.Record(e, call, recordTool, map[string]int{"characters": utf8.RuneCountInString(text)})
}

// ownFacts stores a text, "" = none, and says that it is no longer waited for.
func (p *Preferences) ownFacts(caller, text string) []bot.Fact {
	p.own.note(caller, p.deps.Now())
	set := ""
	if text != "" {
		set = "1"
	}
	return []bot.Fact{
		{Bucket: ownBucket, Key: caller, Value: text},
		{Bucket: bucket, Key: factKey(caller, ownSet), Value: set},
		{Bucket: bucket, Key: factKey(caller, ownAsked)},
		p.chosen.Revised(),
	}
}

// followed reads what was just stored.
func (p *Preferences) followed(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
	return turn.Effect{}, p.Follow(ctx)
}

// stopAsking adds to an effect that the next message of somebody is an ordinary one again.
func (s Settings) stopAsking(e turn.Effect, caller string) turn.Effect {
	key := factKey(caller, ownAsked)
	if s.chosen.Value()[key] == "" && !s.own.recent(caller, s.deps.Now()) {
		return e
	}
	s.own.note(caller, s.deps.Now())
	e.Change.Facts = append(e.Change.Facts, bot.Fact{Bucket: bucket, Key: key}, s.chosen.Revised())
	if e.Then == nil {
		e.Then = s.followed
	}
	return e
}

// ownCard is a card about the text of a person.
func (p *Preferences) ownCard(language, text string, set bool) bot.Content {
	w := p.deps.Words
	content := bot.Content{Language: language, Text: text}
	content.Entities = render.Inert(text)
	if set {
		content.Buttons = append(content.Buttons, []bot.Button{{
			Label: w.OwnRemove(language), Data: Prefix + ":" + string(settingOwn) + ":" + ownForgotten,
		}})
	}
	content.Buttons = append(content.Buttons, []bot.Button{{Label: w.SettingBack(language), Data: Prefix + ":"}})
	return content
}

// awaitsOwn reports whether a message is the text that somebody was asked for: nothing but words, and no reply.
func (p *Preferences) awaitsOwn(ctx context.Context, msg *bot.Message, at time.Time) (bool, error) {
	if msg.Kind != bot.Text || msg.Command != "" || msg.Forwarded || msg.FromBot || msg.Caller == "" ||
		msg.Place.Group || msg.Reply != nil || len(msg.Files) > 0 || strings.TrimSpace(msg.Text) == "" {
		return false, nil
	}
	key := factKey(msg.Caller, ownAsked)
	if p.chosen.Value()[key] == "" && !p.own.recent(msg.Caller, p.deps.Now()) {
		return false, nil
	}
	asked, err := p.deps.Store.Fact(ctx, bucket, key, at) // it may have been answered or taken back a moment ago
	if err != nil {
		return false, fmt.Errorf("read whether a person was asked for instructions: %w", err)
	}
	return asked == chatOf(msg.Place), nil
}

func chatOf(place bot.Place) string { return place.ChatKey() + "/" + place.Thread }

// takeOwn stores the text that somebody was asked for, without credentials.
func (p *Preferences) takeOwn(msg *bot.Message) turn.Effect {
	w, text := p.deps.Words, strings.TrimSpace(p.deps.Redact(msg.Text))
	call := &turn.Call{Message: msg, Session: msg.Place.SessionKey("")}
	if utf8.RuneCountInString(text) > mostOwn {
		return call.ReplyText(w.OwnLong(msg.Language, mostOwn))
	}
	e := call.Reply(p.ownCard(msg.Language, w.OwnNoted(msg.Language, text), true))
	e.Change.Facts = p.ownFacts(msg.Caller, text)
	e.Then = p.followed
	return p.recordOwn(e, call, text)
}

// Listening returns explanations that also take the texts that people were asked for.
func (p *Preferences) Listening(next turn.Explanations) turn.Explanations { return listening{next, p} }

// listening implements turn.Explanations.
type listening struct {
	turn.Explanations
	own *Preferences
}

// Explains implements turn.Explanations.
func (l listening) Explains(ctx context.Context, msg *bot.Message, at time.Time) (bool, error) {
	if explains, err := l.Explanations.Explains(ctx, msg, at); explains || err != nil {
		return explains, err
	}
	return l.own.awaitsOwn(ctx, msg, at)
}

// Explain implements turn.Explanations.
func (l listening) Explain(ctx context.Context, msg *bot.Message, at time.Time) (turn.Effect, error) {
	if explains, err := l.Explanations.Explains(ctx, msg, at); explains || err != nil {
		return l.Explanations.Explain(ctx, msg, at)
	}
	if awaits, err := l.own.awaitsOwn(ctx, msg, at); !awaits || err != nil {
		return l.Explanations.Explain(ctx, msg, at)
	}
	return l.own.takeOwn(msg), nil
}
