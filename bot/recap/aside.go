package recap

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/job"
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

// answerAside asks the model, which reads the newest part of the conversation, the running turn included.
func (d *Handler) answerAside(ctx context.Context, j *job.Job) (string, error) {
	tail, err := d.deps.Journals.Tail(ctx, j.Session, room)
	if err != nil {
		return "", fmt.Errorf("read a conversation: %w", err)
	}
	talk := selectTalk(tail.Entries, asideMessages)
	talk.Caller, talk.Session = j.Message.Caller, j.Session
	bounded, cancel := context.WithTimeout(ctx, asideTime)
	defer cancel()
	return d.deps.Answer(bounded, talk, &j.Message)
}
