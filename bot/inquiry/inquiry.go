// Package inquiry puts questions to people: what a call asks them. They answer with buttons, or in their own words.
// The questions of a call follow one another on one card. What is answered so far is stored with each press, so that
// nothing of it is lost or counted twice, whatever happens to the process.
package inquiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

const (
	// bucket holds what was answered, by session and question.
	bucket = "inquiry"
	kept   = 30 * 24 * time.Hour
	// maxAnswer bounds an answer, in characters.
	maxAnswer = 2000
)

// Choices of buttons, behind the number of the question.
const (
	skips = "k"
	done  = "d"
	today = "0d"
	next  = "1d"
	week  = "w"
)

// Store is the part of the bot's store that inquiries need.
type Store interface {
	bot.Approvals
	bot.Facts
	Row(ctx context.Context, id int64) (bot.Row, error)
}

// Deps are the dependencies of a Desk.
type Deps struct {
	Store Store
	Words texts.Words
	Now   func() time.Time
	Zone  func(caller string) *time.Location // of a person
	// Messages: the next message of the person is their answer. Elsewhere the channel hands it in (approval.Typed,
	// approval.Filled).
	Messages bool
	Shared   bool // other processes use the same store
}

// Desk implements approval.Inquiries. Safe for concurrent use.
type Desk struct {
	deps Deps

	mu     sync.Mutex
	loaded bool
	chats  map[string]time.Time // where an inquiry may be open, by ChatKey, and since when
}

// opening is how long an inquiry that was shown may not be stored yet.
const opening = 5 * time.Minute

// New returns a Desk.
func New(deps Deps) *Desk { return &Desk{deps: deps, chats: map[string]time.Time{}} }

// Feature returns what the service does besides showing inquiries.
func (d *Desk) Feature() feature.Feature {
	return feature.Feature{Name: "inquiries", Moved: func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.loaded = false
	}}
}

// draft is what was answered so far.
type draft struct {
	Answers []tools.FormAnswer `json:"answers,omitempty"`
	Picked  []int              `json:"picked,omitempty"` // of the choices of the current question, if several can be taken

	stored string // as it is in the store
}

func factKey(a *bot.Approval) string { return string(a.Session) + "/" + a.ID }

func (d *Desk) readDraft(ctx context.Context, a *bot.Approval) (draft, error) {
	raw, err := d.deps.Store.Fact(ctx, bucket, factKey(a), d.deps.Now())
	if err != nil {
		return draft{}, fmt.Errorf("read answers: %w", err)
	}
	so := draft{stored: raw}
	if raw != "" {
		if err := json.Unmarshal([]byte(raw), &so); err != nil {
			return draft{}, fmt.Errorf("answers of %s: %w", a.ID, err)
		}
	}
	return so, nil
}

// Reply implements approval.Inquiries.
func (d *Desk) Reply(ctx context.Context, q approval.Inquiry) (*tools.FormReply, error) {
	so, err := d.readDraft(ctx, q.Approval)
	if err != nil {
		return nil, err
	}
	reply := &tools.FormReply{State: tools.FormExpired, Answers: so.Answers}
	switch q.State {
	case bot.Approved:
		reply.State = tools.FormAnswered
	case bot.Denied:
		reply.State = tools.FormDeclined
	}
	return reply, nil
}

// Press implements approval.Inquiries.
func (d *Desk) Press(
	ctx context.Context, q approval.Inquiry, msg *bot.Message, choice string,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	so, err := d.readDraft(ctx, q.Approval)
	if err != nil {
		return turn.Effect{}, err
	}
	w := d.deps.Words
	switch {
	case choice == approval.Declined:
		return d.endInquiry(q, msg, so, bot.Denied, say)
	case (choice == approval.Typed || choice == approval.Filled) && d.deps.Messages: // there is no such button
		return onlySay(say(w.UnknownQuestion(msg.Language), true)), nil
	case choice == approval.Filled:
		return d.fillAnswers(q, msg, so, say)
	case choice == approval.Typed:
		return d.takeWords(q, msg, so, msg.Text, say)
	}
	number, choice, _ := strings.Cut(choice, ".")
	at, err := strconv.Atoi(number)
	if err != nil || at < 0 || at >= len(q.Form.Questions) || len(so.Answers) >= len(q.Form.Questions) {
		return onlySay(say(w.UnknownQuestion(msg.Language), true)), nil //nolint:nilerr // a reply
	}
	if at != len(so.Answers) { // a second press, of a card that has gone on
		return onlySay(say(w.InquiryAnswered(msg.Language), false)), nil
	}
	answer, whole := d.pressedAnswer(q, so, choice)
	switch {
	case answer == nil && whole:
		return onlySay(say(w.UnknownQuestion(msg.Language), true)), nil
	case answer == nil:
		return d.toggleChoice(q, so, choice, msg, say)
	}
	return d.storeAnswer(q, msg, so, *answer, say)
}

// onlySay returns an Effect that only says something.
func onlySay(row bot.Row) turn.Effect { return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}} }

// pressedAnswer returns the answer that a button gives to the current question. Without one, whole says that there is no
// such button; otherwise it marks a choice.
func (d *Desk) pressedAnswer(q approval.Inquiry, so draft, choice string) (answer *tools.FormAnswer, whole bool) {
	asked := q.Form.Questions[len(so.Answers)]
	n, err := strconv.Atoi(choice)
	isChoice := err == nil && n >= 0 && n < len(asked.Choices)
	date := asked.Kind == tools.DateQuestion
	now := d.localTime(q)
	switch {
	case choice == skips && len(q.Form.Questions) > 1:
		return &tools.FormAnswer{}, false
	case choice == done && asked.Several && len(so.Picked) > 0:
		return &tools.FormAnswer{Chosen: pickedChoices(&asked, so.Picked)}, false
	case isChoice && asked.Several:
		return nil, false
	case isChoice:
		return &tools.FormAnswer{Chosen: []string{asked.Choices[n]}}, false
	case choice == today && date:
		return &tools.FormAnswer{Day: now.Format(time.DateOnly)}, false
	case choice == next && date:
		return &tools.FormAnswer{Day: now.AddDate(0, 0, 1).Format(time.DateOnly)}, false
	case choice == week && date:
		sunday := now.AddDate(0, 0, (7-int(now.Weekday()))%7)
		return &tools.FormAnswer{Day: now.Format(time.DateOnly), Until: sunday.Format(time.DateOnly)}, false
	}
	return nil, true
}

// localTime is the present in the zone of the person who answers.
func (d *Desk) localTime(q approval.Inquiry) time.Time { return d.deps.Now().In(d.zoneOf(q)) }

func (d *Desk) zoneOf(q approval.Inquiry) *time.Location {
	if d.deps.Zone != nil {
		if zone := d.deps.Zone(q.Caller); zone != nil {
			return zone
		}
	}
	return time.UTC
}

// pickedChoices returns the choices with some numbers, in the order of the question.
func pickedChoices(asked *tools.FormQuestion, numbers []int) []string {
	var list []string
	for i, choice := range asked.Choices {
		if slices.Contains(numbers, i) {
			list = append(list, choice)
		}
	}
	return list
}

// toggleChoice marks a choice of a question with several answers, or takes the mark away.
func (d *Desk) toggleChoice(
	q approval.Inquiry, so draft, choice string, msg *bot.Message,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	n, err := strconv.Atoi(choice)
	if err != nil {
		return turn.Effect{}, fmt.Errorf("choice %q: %w", choice, err)
	}
	before := so.stored
	if at := slices.Index(so.Picked, n); at >= 0 {
		so.Picked = slices.Delete(slices.Clone(so.Picked), at, at+1)
	} else {
		so.Picked = append(slices.Clone(so.Picked), n)
	}
	change := bot.Change{Send: []bot.Row{
		say(d.deps.Words.Noted(msg.Language, 0), false), d.editCard(q, d.questionCard(q, so)),
	}}
	return turn.Effect{Change: change}, d.keepDraft(q, so, before, &change)
}

// keepDraft adds to a Change that the answers so far are stored, if they are still what the Change was computed from.
func (d *Desk) keepDraft(q approval.Inquiry, so draft, before string, change *bot.Change) error {
	raw, err := json.Marshal(so)
	if err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	change.Facts = append(change.Facts, bot.Fact{
		Bucket: bucket, Key: factKey(q.Approval), Value: string(raw), Expires: d.deps.Now().Add(kept), Was: &before,
	})
	return nil
}

// editCard returns the row that shows something else on the card.
func (d *Desk) editCard(q approval.Inquiry, content bot.Content) bot.Row {
	return bot.Row{
		Session: q.Session, Turn: q.Turn, Place: q.Place, Purpose: bot.Record, EditRow: q.Row, Content: content,
	}
}

// storeAnswer stores an answer, and goes on with the next question, or with the turn.
func (d *Desk) storeAnswer(
	q approval.Inquiry, msg *bot.Message, so draft, answer tools.FormAnswer, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	before := so.stored
	so.Answers, so.Picked = append(slices.Clone(so.Answers), answer), nil
	if len(so.Answers) == len(q.Form.Questions) {
		return d.endInquiry(q, msg, so, bot.Approved, say)
	}
	change := bot.Change{Send: []bot.Row{d.editCard(q, d.questionCard(q, so))}}
	if msg.Kind == bot.Press {
		change.Send = append([]bot.Row{say(d.deps.Words.Noted(msg.Language, 0), false)}, change.Send...)
	}
	err := d.keepDraft(q, so, before, &change)
	return turn.Effect{Change: change}, err
}

// endInquiry ends an inquiry: with all answers, or because the person does not want to answer.
func (d *Desk) endInquiry(
	q approval.Inquiry, msg *bot.Message, so draft, state bot.ApprovalState,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	before := so.stored
	so.Picked = nil
	by := msg.Signature()
	ended := *q.Approval
	ended.State, ended.By, ended.ByName, ended.Decided = state, msg.Caller, by, d.deps.Now()
	q.Approval = &ended
	change := bot.Change{
		Decide: []bot.Decision{{
			ID: q.ID, State: state, Scope: bot.Once, By: msg.Caller, ByName: by, Votes: q.Votes, At: ended.Decided,
		}},
		Send: []bot.Row{d.editCard(q, d.recordCard(q, so))},
	}
	if msg.Kind == bot.Press {
		change.Send = append([]bot.Row{say(d.deps.Words.Noted(msg.Language, 0), false)}, change.Send...)
	}
	err := d.keepDraft(q, so, before, &change)
	return turn.Effect{Change: change, Decided: []bot.SessionKey{q.Session}}, err
}

// takeWords takes what a person has written as the answer to the current question.
func (d *Desk) takeWords(
	q approval.Inquiry, msg *bot.Message, so draft, text string, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	if len(so.Answers) >= len(q.Form.Questions) {
		return onlySay(say(d.deps.Words.InquiryAnswered(msg.Language), true)), nil
	}
	answer, problem := d.readAnswer(q, so, text, msg.Language)
	if problem != "" {
		return onlySay(say(problem, true)), nil
	}
	return d.storeAnswer(q, msg, so, answer, say)
}

// fillAnswers takes the answers to all questions at once.
func (d *Desk) fillAnswers(
	q approval.Inquiry, msg *bot.Message, so draft, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	var filled [][]string
	if err := json.Unmarshal([]byte(msg.Text), &filled); err != nil || len(filled) != len(q.Form.Questions) {
		//nolint:nilerr // a reply
		return onlySay(say(d.deps.Words.UnknownQuestion(msg.Language), true)), nil
	}
	for len(so.Answers) < len(q.Form.Questions) {
		var answer tools.FormAnswer
		for _, text := range filled[len(so.Answers)] {
			if strings.TrimSpace(text) == "" {
				continue
			}
			one, problem := d.readAnswer(q, so, text, msg.Language)
			if problem != "" { // nobody is asked again: the model may understand it
				one = tools.FormAnswer{Text: render.Cut(text, maxAnswer)}
			}
			answer = joinAnswers(answer, one)
		}
		so.Answers, so.Picked = append(slices.Clone(so.Answers), answer), nil
	}
	return d.endInquiry(q, msg, so, bot.Approved, say)
}

// joinAnswers adds an answer to another one to the same question.
func joinAnswers(a, more tools.FormAnswer) tools.FormAnswer {
	a.Chosen = append(a.Chosen, more.Chosen...)
	if a.Text != "" && more.Text != "" {
		more.Text = a.Text + "\n" + more.Text
	}
	if more.Text != "" {
		a.Text = more.Text
	}
	if more.Day != "" {
		a.Day, a.Until = more.Day, more.Until
	}
	return a
}

// readAnswer reads what a person has written in answer to the current question, or says what is wrong with it.
func (d *Desk) readAnswer(
	q approval.Inquiry, so draft, text, language string,
) (answer tools.FormAnswer, problem string) {
	text = strings.TrimSpace(text)
	asked := &q.Form.Questions[len(so.Answers)]
	if utf8.RuneCountInString(text) > maxAnswer {
		return answer, d.deps.Words.InquiryLong(language, maxAnswer)
	}
	if asked.Kind == tools.DateQuestion {
		return d.readDay(q, text, language)
	}
	if chosen := chosenBy(asked, text); chosen != nil {
		return tools.FormAnswer{Chosen: chosen}, ""
	}
	if asked.Several { // what is marked belongs to the answer too
		answer.Chosen = pickedChoices(asked, so.Picked)
	}
	answer.Text = text
	return answer, ""
}

// chosenBy returns the choices that a text names, by their words or numbers; nil = it says something else.
func chosenBy(asked *tools.FormQuestion, text string) []string {
	one := func(text string) string {
		text = strings.TrimSpace(text)
		for _, choice := range asked.Choices {
			if strings.EqualFold(choice, text) {
				return choice
			}
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(asked.Choices) {
			return asked.Choices[n-1]
		}
		return ""
	}
	if choice := one(text); choice != "" {
		return []string{choice}
	}
	if !asked.Several {
		return nil
	}
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		choice := one(part)
		if choice == "" {
			return nil
		}
		if !slices.Contains(list, choice) {
			list = append(list, choice)
		}
	}
	return list
}

// Awaits implements approval.Inquiries. A message is an answer if it is nothing but words, and no reply to something
// else.
func (d *Desk) Awaits(ctx context.Context, msg *bot.Message, _ time.Time) (*bot.Approval, error) {
	if !d.deps.Messages || msg.Kind != bot.Text || msg.Command != "" || msg.Forwarded || msg.FromBot ||
		msg.Caller == "" || len(msg.Files) > 0 || strings.TrimSpace(msg.Text) == "" {
		return nil, nil
	}
	may, err := d.mayBeOpen(ctx, msg.Place)
	if err != nil || !may {
		return nil, err
	}
	open, err := d.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	asking := false
	for i := range open {
		a := &open[i]
		if a.Place.ChatKey() != msg.Place.ChatKey() || !approval.Asks(a) {
			continue
		}
		asking = true
		if a.Place.Thread != msg.Place.Thread || a.Caller != msg.Caller || !a.Expires.After(d.deps.Now()) {
			continue
		}
		if on, err := d.onCard(ctx, a, msg.Reply); err != nil || on {
			return a, err
		}
	}
	if !asking {
		d.closedIn(msg.Place)
	}
	return nil, nil
}

// onCard reports whether a message that replies to another one can be an answer: it replies to the card, or to nothing.
func (d *Desk) onCard(ctx context.Context, a *bot.Approval, reply *bot.Quote) (bool, error) {
	if reply == nil {
		return true, nil
	}
	row, err := d.deps.Store.Row(ctx, a.Row)
	if errors.Is(err, bot.ErrNotFound) {
		return false, nil
	}
	return reply.Own && (row.Message == reply.ID || !row.Doubt.IsZero()), err
}

// mayBeOpen reports whether an inquiry may be open in a chat. Where no other process stores anything, that is known.
func (d *Desk) mayBeOpen(ctx context.Context, place bot.Place) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deps.Shared {
		return true, nil
	}
	if !d.loaded {
		open, err := d.deps.Store.OpenApprovals(ctx, "")
		if err != nil {
			return false, fmt.Errorf("read questions: %w", err)
		}
		for i := range open {
			d.chats[open[i].Place.ChatKey()] = open[i].Created
		}
		d.loaded = true
	}
	_, may := d.chats[place.ChatKey()]
	return may, nil
}

// openedIn remembers that an inquiry may be open in a chat.
func (d *Desk) openedIn(place bot.Place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chats[place.ChatKey()] = d.deps.Now()
}

// closedIn forgets that an inquiry may be open in a chat, unless one is just being stored.
func (d *Desk) closedIn(place bot.Place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deps.Now().Sub(d.chats[place.ChatKey()]) > opening {
		delete(d.chats, place.ChatKey())
	}
}

// Answer implements approval.Inquiries.
func (d *Desk) Answer(
	ctx context.Context, q *approval.Inquiry, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	if q == nil {
		return onlySay(say(d.deps.Words.InquiryClosed(msg.Language), true)), nil
	}
	so, err := d.readDraft(ctx, q.Approval)
	if err != nil {
		return turn.Effect{}, err
	}
	return d.takeWords(*q, msg, so, msg.Text, say)
}

var _ approval.Inquiries = (*Desk)(nil)
