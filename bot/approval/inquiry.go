package approval

// Questions that their person answers, instead of approving a call: asked, decided and ended like the others, with a
// card and buttons of their own (bot/inquiry).

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// inquiryPrefix begins the data of the buttons of an inquiry: "q1:<id>:<choice>".
const inquiryPrefix = "q1"

// The choices of an inquiry that a channel without messages hands in as a press with a text: there are no such buttons.
const (
	Typed  = "t" // what the person has written, to the current question
	Filled = "f" // all answers at once: a JSON list of texts for each question
	// Declined is the choice of who does not want to answer. It has a button.
	Declined = "x"
)

// InquiryData is the data of a button of an inquiry.
func InquiryData(id, choice string) string { return inquiryPrefix + ":" + id + ":" + choice }

// IsInquiry reports whether the data of a button belongs to an inquiry.
func IsInquiry(data string) bool { return strings.HasPrefix(data, inquiryPrefix+":") }

// Inquiry is a question that its person answers.
type Inquiry struct {
	*bot.Approval
	Form       *tools.Form
	Language   string
	Name       string // of the person who answers
	Suspicious string // flagged source in the conversation; "" = none
}

// Inquiries show inquiries and take answers (bot/inquiry).
type Inquiries interface { //nolint:interfacebloat // the life of one card
	// Card returns the card of an open inquiry.
	Card(ctx context.Context, q Inquiry) (bot.Content, error)
	// Record returns what the card of one that has ended without an answer becomes.
	Record(q Inquiry) bot.Content
	// Reply returns what came of one that has ended.
	Reply(ctx context.Context, q Inquiry) (*tools.FormReply, error)
	// Press handles a button that the person of an open inquiry has pressed; say replies to it.
	Press(
		ctx context.Context, q Inquiry, msg *bot.Message, choice string, say func(text string, alert bool) bot.Row,
	) (turn.Effect, error)
	// Awaits returns the open inquiry of which a message is the answer, in the words of its person; nil = of none.
	Awaits(ctx context.Context, msg *bot.Message, at time.Time) (*bot.Approval, error)
	// Answer handles that message; say replies to it. A nil question means that it is not open any more.
	Answer(
		ctx context.Context, q *Inquiry, msg *bot.Message, say func(text string, alert bool) bot.Row,
	) (turn.Effect, error)
}

// inquiryOf returns a question as an inquiry; ok is false if it is about a call.
func inquiryOf(a *bot.Approval, info *body) (q Inquiry, ok bool) {
	return Inquiry{
		Approval: a, Form: info.Question.Form, Language: info.Language, Name: info.Name,
		Suspicious: info.Question.Suspicious,
	}, info.Question.Form != nil
}

// Asks reports whether a question is one that its person answers: nobody else decides it.
func Asks(a *bot.Approval) bool {
	info, err := readGrant(a)
	return err == nil && info.Question.Form != nil
}

// readInquiry returns a question as an inquiry.
func readInquiry(a *bot.Approval) (q Inquiry, ok bool, err error) {
	info, err := readGrant(a)
	if err != nil {
		return q, false, err
	}
	q, ok = inquiryOf(a, &info)
	return q, ok, nil
}

// openCard returns the card of an open question as it is now.
func (b *Broker) openCard(ctx context.Context, a *bot.Approval) (bot.Content, *bot.File, error) {
	q, ok, err := readInquiry(a)
	if err != nil || !ok {
		return b.questionCard(a, b.readerFor(a, nil))
	}
	content, err := b.deps.Inquiries.Card(ctx, q)
	return content, nil, err
}

// pressInquiry handles the button of an inquiry. Others than its person see it, and cannot answer.
func (b *Broker) pressInquiry(
	ctx context.Context, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	parts := strings.Split(msg.Data, ":")
	a, err := bot.Approval{}, bot.ErrNotFound
	if len(parts) == 3 && b.deps.Inquiries != nil {
		a, err = b.deps.Store.Approval(ctx, parts[1])
	}
	if errors.Is(err, bot.ErrNotFound) {
		return b.refuseButton(msg), nil
	}
	if err != nil {
		return turn.Effect{}, err
	}
	on, err := b.onCard(ctx, &a, msg)
	if err != nil {
		return turn.Effect{}, err
	}
	q, ok, err := readInquiry(&a)
	switch now := b.deps.Now(); {
	case err != nil:
		return turn.Effect{}, err
	case !on || !ok:
		return b.refuseButton(msg), nil
	case msg.Caller == "" || msg.Caller != a.Caller:
		return turn.Effect{Change: bot.Change{Send: []bot.Row{
			say(b.deps.Words.InquiryNotYours(msg.Language, q.Name), true),
		}}}, nil
	case a.State != bot.Open:
		text := b.deps.Words.At(msg.Place).InquiryOver(msg.Language, a)
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(text, true)}}}, nil
	case !a.Expires.After(now) || parts[2] == Gone:
		e := b.expireQuestion(&a)
		late := questionAfter(&a, e.Change.Decide[0])
		e.Change.Send = append([]bot.Row{
			say(b.deps.Words.At(msg.Place).InquiryOver(msg.Language, *late), true),
		}, e.Change.Send...)
		return e, nil
	}
	return b.deps.Inquiries.Press(ctx, q, msg, parts[2], say)
}

// answerInquiry handles a message that was the answer to an inquiry when it arrived; handled is false if it is none.
func (b *Broker) answerInquiry(
	ctx context.Context, msg *bot.Message, at time.Time, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	a, err := b.deps.Inquiries.Awaits(ctx, msg, at)
	if err != nil {
		return turn.Effect{}, err
	}
	if a == nil {
		return b.deps.Inquiries.Answer(ctx, nil, msg, say)
	}
	q, ok, err := readInquiry(a)
	if err != nil || !ok {
		return turn.Effect{}, err
	}
	return b.deps.Inquiries.Answer(ctx, &q, msg, say)
}
