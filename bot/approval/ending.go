package approval

// Standing approvals end: a chat is told before, and an admin can keep one longer.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/clock"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// remindBefore is how long before its end a chat is told of a standing approval, and from when it can be kept
	// longer.
	remindBefore = 7 * 24 * time.Hour
	// remindEvery is how often those that end soon are looked for.
	remindEvery = time.Hour
	// keepRules begins the data of the buttons that keep a rule longer: "g2:<id>:<page>" of the list.
	keepRules = "g2"
)

// remindedBucket holds, by the key of a standing approval, the end of which its chat was told.
const remindedBucket = "grant-reminded"

// ruleEnd is when a standing approval that is stored now ends; zero = it does not.
func (b *Broker) ruleEnd() time.Time {
	if b.deps.RuleDays <= 0 {
		return time.Time{}
	}
	return b.deps.Now().UTC().AddDate(0, 0, b.deps.RuleDays)
}

// endsSoon reports whether a standing approval can be kept longer now.
func (b *Broker) endsSoon(g *Grant) bool {
	return !g.Until.IsZero() && g.Until.Sub(b.deps.Now()) <= remindBefore
}

// keepRule lets one rule end later and shows the list again once that is stored.
func (b *Broker) keepRule(msg *bot.Message, h *held, page int, answer bot.Row) (turn.Effect, error) {
	chat := h.chat().ChatKey()
	again := b.endsSoon(&h.Grant) || h.usedUp() // a second press finds it kept
	if again {
		h.Until = b.ruleEnd()
	}
	if h.usedUp() {
		h.Uses = 0
	}
	kept, err := grantFact(chat, h.Grant)
	if err != nil {
		return turn.Effect{}, err
	}
	kept.Key, kept.Was = h.key, &h.raw // one that was revoked meanwhile stays so
	rule := b.shownRule(h, msg.Place)
	e := turn.Effect{Change: bot.Change{Send: []bot.Row{answer}, Facts: []bot.Fact{kept}}}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		content, err := b.rulesList(ctx, msg, page, b.deps.Words.RuleKept(msg.Language, rule))
		return turn.Effect{Change: bot.Change{Send: b.redrawList(msg, bot.Row{}, content)}}, err
	}
	if again {
		b.recordEvents(&e, []RuleEvent{{
			Verb: "keep", Grant: h.Grant, Chat: chat, Place: msg.Place, By: msg.Caller, ID: msg.ID,
		}})
	}
	return e, nil
}

// RemindOfEnds tells chats of their standing approvals that end soon, each once, until ctx ends. report gets what could
// not be done now; it is tried again. sent is told the places of new messages.
func (b *Broker) RemindOfEnds(
	ctx context.Context, store bot.Writer, report func(err error), sent func(place bot.Place),
) error {
	for {
		if err := b.remindOnce(ctx, store, sent); err != nil && ctx.Err() == nil {
			report(err)
		}
		if !clock.Until(ctx, b.deps.Now, b.deps.Now().Add(remindEvery), 0, nil) {
			return nil
		}
	}
}

// remindOnce tells each chat of its rules that end soon. That it was told is stored with the message.
func (b *Broker) remindOnce(ctx context.Context, store bot.Writer, sent func(place bot.Place)) error {
	list, err := grantsOf(ctx, b.deps.Store, "", b.deps.Now())
	if err != nil {
		return err
	}
	for i := range list {
		h := &list[i]
		if !b.endsSoon(&h.Grant) {
			continue
		}
		end := h.Until.Format(time.RFC3339)
		told, err := b.deps.Store.Fact(ctx, remindedBucket, h.key, b.deps.Now())
		if err != nil {
			return fmt.Errorf("read what was said of standing approvals: %w", err)
		}
		if told == end {
			continue
		}
		_, err = store.Apply(ctx, &bot.Change{
			Facts: []bot.Fact{{Bucket: remindedBucket, Key: h.key, Value: end, Expires: h.Until, Was: &told}},
			Send:  []bot.Row{b.reminder(h, end)},
		})
		switch {
		case err == nil:
			sent(h.chat())
		case !errors.Is(err, bot.ErrConflict): // another process has told it
			return fmt.Errorf("tell of a standing approval that ends: %w", err)
		}
	}
	return nil
}

// reminder tells a chat that a rule ends, with buttons for its admins.
func (b *Broker) reminder(h *held, end string) bot.Row {
	place := h.chat()
	w := b.deps.Words.At(place)
	language := w.Read(place, h.Language)
	content := bot.Content{
		Text: w.RuleEndsSoon(language, b.shownRule(h, place)), Language: language,
		Buttons: [][]bot.Button{{
			{Label: w.KeepButton(language), Data: keepRules + ":" + h.id() + ":0"},
			{Label: w.EndButton(language), Data: pressRules + ":" + h.id() + ":0", Style: "danger"},
		}},
	}
	content.Entities = render.Inert(content.Text) // the words of others must not become links, mentions or commands
	return bot.Row{
		Place: place, Purpose: bot.Notice, Content: content, Key: "rule-ends/" + h.id() + "/" + end,
	}
}
