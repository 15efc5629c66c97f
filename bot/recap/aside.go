package recap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	asideName     = "btw"
	asideTime     = time.Minute // that the model has
	asideMessages = 20          // most messages of the conversation that it reads
)

// askAside answers /btw QUESTION: in the background, beside the turn that may be running. It counts as a turn of the
// person's quota, since it is as much of an answer.
func (d *Handler) askAside(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	if strings.TrimSpace(msg.Args) == "" {
		return call.ReplyText(d.deps.Words.AsideHelp(msg.Language)), nil
	}
	admission, err := d.deps.Admit(ctx, msg, asideKey(msg))
	if err != nil {
		return turn.Effect{}, fmt.Errorf("charge a side question: %w", err)
	}
	if admission.Refusal != "" {
		e := call.ReplyText(admission.Refusal)
		if msg.Place.Group {
			e.Change.Send[0].Content.Only = msg.Person
		}
		return e, nil
	}
	e, err := d.noteJob(call)
	e.Change.Charges, e.Change.Ledger = admission.Charges, admission.Ledger
	return e, err
}

// asideKey is the id under which a side question is paid and answered.
func asideKey(msg *bot.Message) string { return asideName + "/" + msg.ID }

// giveAside answers a side question, once, however often it is begun.
func (d *Handler) giveAside(ctx context.Context, j *job) {
	msg, key := &j.Message, asideKey(&j.Message)
	text, err := d.answerAside(d.payingContext(ctx, msg, key), j)
	if ctx.Err() != nil {
		return
	}
	denied, refused := errors.AsType[*cost.Denied](err)
	var contents []bot.Content
	switch {
	case refused:
		contents = []bot.Content{{Text: denied.Text}}
	case err != nil:
		d.deps.Log.Warn().Err(err).Str("session", string(j.Session)).Msg("no answer to a side question")
		contents = []bot.Content{{Text: d.deps.Words.AsideFailed(msg.Language)}}
	default:
		contents = d.deps.Composer.Compose(text, msg.Place, msg.Language)
	}
	change := &bot.Change{Facts: []bot.Fact{{Bucket: bucket, Key: msg.ID}}}
	d.sendRecap(ctx, change, msg, bot.Reply, key, contents)
}

// answerAside asks the model, which reads the newest part of the conversation, the running turn included.
func (d *Handler) answerAside(ctx context.Context, j *job) (string, error) {
	tail, err := d.deps.Store.Tail(ctx, j.Session, room)
	if err != nil {
		return "", fmt.Errorf("read a conversation: %w", err)
	}
	talk := selectTalk(tail.Entries, asideMessages)
	talk.Caller, talk.Session = j.Message.Caller, j.Session
	bounded, cancel := context.WithTimeout(ctx, asideTime)
	defer cancel()
	return d.deps.Answer(bounded, talk, &j.Message)
}
