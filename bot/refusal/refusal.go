// Package refusal explains to people why calls of tools were refused: which rule, level or limit it was, and what would
// allow them, or who denied them. What it tells is in the journal; the model never sees it.
package refusal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// Prefix begins the data of a button below an answer: PREFIX:TURN, where TURN is a hash of the turn's id.
const Prefix = "w1"

// Limits of an explanation: how far back the journal is read, in bytes, and how many refusals are told.
const (
	room     = 256 << 10
	mostTold = 5
)

// Store is what explanations are read from.
type Store interface {
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
	ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error)
}

// Explainer answers /why and the button. Safe for concurrent use.
type Explainer struct {
	Store Store
	Words texts.Words
}

// Feature returns /why and the button that says the same.
func (d Explainer) Feature() feature.Feature {
	return feature.Feature{
		Name:     "refusal",
		Commands: []feature.Command{{Name: "why", Shows: true, Run: d.Why}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Below:    d.Buttons,
	}
}

// Buttons are those below the answer of a turn; none when nothing was refused in it.
func (d Explainer) Buttons(a turn.Answer) []bot.Button {
	if a.Stats.Refused == 0 {
		return nil
	}
	return []bot.Button{{Label: d.Words.WhyButton(a.Language), Data: Prefix + ":" + turnHash(a.Turn)}}
}

func turnHash(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:8])
}

// Press implements turn.Presser: it explains the refusals of the turn, to those who are in its conversation.
func (d Explainer) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	wanted, ok := strings.CutPrefix(msg.Data, Prefix+":")
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	text := ""
	if ok {
		var err error
		if text, err = d.explainTurn(ctx, call, func(turn string) bool {
			return turnHash(turn) == wanted
		}); err != nil {
			return turn.Effect{}, err
		}
	}
	if text == "" {
		toast.Alert, toast.Content.Text = true, d.Words.WhyNothing(msg.Language)
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	return turn.Effect{Change: bot.Change{Send: append([]bot.Row{toast}, replyInert(call, text).Change.Send...)}}, nil
}

// Why answers /why: it explains what was refused last.
func (d Explainer) Why(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	text, err := d.explainTurn(ctx, call, nil)
	if err != nil {
		return turn.Effect{}, err
	}
	if text == "" {
		text = d.Words.WhyNothing(call.Message.Language)
	}
	return replyInert(call, text), nil
}

// replyInert answers in the chat; the words of others in it make no links, mentions or commands.
func replyInert(call *turn.Call, text string) turn.Effect {
	text, entities := render.Quoted(text)
	return call.Reply(bot.Content{Text: text, Entities: entities})
}

// explainTurn tells of the refusals of the turn that is wanted, nil = of the last turn
// that has any; "" = there are none.
func (d Explainer) explainTurn(ctx context.Context, call *turn.Call, wanted func(turn string) bool) (string, error) {
	tail, err := d.Store.Tail(ctx, call.Session, room)
	if err != nil {
		return "", err
	}
	uses := map[string]journal.Use{}
	for _, e := range tail.Entries {
		for _, u := range e.Uses {
			uses[e.Turn+"/"+u.Call] = u
		}
	}
	var list []texts.Refusal
	last := ""
	for _, e := range slices.Backward(tail.Entries) {
		if last != "" && e.Turn != last || wanted != nil && !wanted(e.Turn) || len(list) == mostTold {
			continue
		}
		told := texts.Refusal{Tool: e.Tool, Args: string(uses[e.Turn+"/"+e.Call].Args)}
		if e.Refusal != nil {
			told.Reason, told.Rule = e.Refusal.Why(), e.Refusal.Rule
		} else if told.Asked, err = d.declined(ctx, call.Session, &e); err != nil {
			return "", err
		} else if told.Asked.ID == "" {
			continue
		}
		last, list = e.Turn, append(list, told)
	}
	slices.Reverse(list)
	if len(list) == 0 {
		return "", nil
	}
	return d.Words.At(call.Message.Place).Why(call.Message.Language, call.Admin, list), nil
}

// declined returns the question about a call that a person denied, or nobody answered; one without ID if there is none.
func (d Explainer) declined(
	ctx context.Context, session bot.SessionKey, e *journal.Entry,
) (bot.Approval, error) {
	if e.Kind != journal.ResultEntry || e.Ran || e.Category != string(tools.PolicyBlocked) {
		return bot.Approval{}, nil
	}
	a, err := d.Store.ApprovalOf(ctx, session, e.Call)
	switch {
	case errors.Is(err, bot.ErrNotFound): // it was tidied up
		return bot.Approval{}, nil
	case err != nil:
		return bot.Approval{}, fmt.Errorf("read the question of a call: %w", err)
	case a.Turn != e.Turn || a.State != bot.Denied && a.State != bot.Expired:
		return bot.Approval{}, nil
	}
	return a, nil
}

var _ turn.Presser = Explainer{}
