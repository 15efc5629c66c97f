package approval

// Decisions: by a button or a command, of one or several people, or by the end of the time.

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/approve"
)

// Command decides by /approve and /deny: the second road, for when a press can no longer arrive.
func (b *Broker) Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error) {
	msg := call.Message
	say := func(text string, refused bool) bot.Row {
		row := bot.Row{Place: msg.Place, Purpose: bot.Reply, Content: bot.Content{Text: text}}
		if msg.Place.Group {
			row.ReplyTo = msg.Message
		}
		if refused {
			row = row.Aside(msg)
		}
		return row
	}
	open, err := b.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return turn.Effect{}, err
	}
	wanted := strings.ToLower(strings.TrimSpace(msg.Args))
	var found []bot.Approval
	var names []string
	first := map[string]bool{} // whose cards have to be shown first
	for _, a := range open {
		here, show, err := b.concerns(ctx, &a, msg)
		if err != nil {
			return turn.Effect{}, err
		}
		if !here || Asks(&a) {
			continue
		}
		first[a.ID] = show && state == bot.Approved
		if names = append(names, a.Short); wanted == "" || wanted == a.Short {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 1 && first[found[0].ID]:
		return b.showFirst(ctx, &found[0], msg, say)
	case len(found) == 1:
		e, err := b.decideQuestion(ctx, &found[0], msg, state, bot.Once, say)
		return b.spreadEffect(ctx, &found[0], msg, e, err)
	case len(names) == 1:
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.OneQuestion(msg.Language, names[0]),
			true)}}}, nil
	case len(names) == 0:
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.NoQuestion(msg.Language), true)}}}, nil
	default:
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.WhichQuestion(msg.Language, names),
			true)}}}, nil
	}
}

// openNames returns the short names of the open questions of a chat.
func (b *Broker) openNames(ctx context.Context, place bot.Place) (map[string]bool, error) {
	open, err := b.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, a := range open {
		if a.Place.ChatKey() == place.ChatKey() {
			taken[a.Short] = true
		}
	}
	return taken, nil
}

// decideQuestion checks who decides and returns the Effect; say replies to the person who pressed or wrote.
func (b *Broker) decideQuestion(
	ctx context.Context,
	a *bot.Approval,
	msg *bot.Message,
	state bot.ApprovalState,
	scope string,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	w, now := b.deps.Words, b.deps.Now()
	no := func(text string) (turn.Effect, error) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(text, true)}}}, nil
	}
	info, err := readGrant(a)
	if err != nil {
		return turn.Effect{}, err
	}
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return turn.Effect{}, err
	}
	own, approver := msg.Caller == a.Caller, slices.Contains(rights.Approvers, msg.Caller)
	switch {
	case !own && !approver && state == bot.Approved && (a.Needed > 1 || !rights.Requester):
		return no(w.NotYoursEither(msg.Language))
	case msg.Caller == "" || (!own && !approver):
		return no(w.NotYours(msg.Language, info.Name))
	case a.State != bot.Open:
		return no(w.At(msg.Place).Already(msg.Language, b.signedBy(a)))
	case !a.Expires.After(now):
		e := b.expireQuestion(a)
		late := questionAfter(a, e.Change.Decide[0])
		e.Change.Send = append([]bot.Row{say(w.At(msg.Place).Already(msg.Language, b.signedBy(late)), true)}, e.Change.Send...)
		return e, nil
	case state == bot.Expired:
		return b.expireQuestion(a), nil
	}
	if own && state == bot.Approved {
		if a.Needed > 1 {
			return no(w.VoteOthers(msg.Language))
		}
		if !rights.Requester {
			return no(w.NotYourself(msg.Language))
		}
	}
	return b.countDecision(ctx, a,
		bot.Decision{
			ID: a.ID, State: state, Scope: scope, By: msg.Caller, ByName: signerName(a, msg), At: now, Votes: a.Votes,
		}, msg, say)
}

// countDecision returns the Effect of a decision by somebody who may decide: one vote, or the last one.
func (b *Broker) countDecision(
	ctx context.Context, a *bot.Approval, d bot.Decision, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	if d.State == bot.Approved {
		if !slices.Contains(d.Votes, msg.Caller) {
			d.Votes = append(slices.Clone(d.Votes), msg.Caller)
		}
		if missing := a.Needed - len(d.Votes); missing > 0 {
			return b.countVote(a, d, say(b.deps.Words.Noted(msg.Language, missing), false))
		}
	}
	e := b.decisionEffect(a, d)
	if d.State == bot.Denied && b.offerWhy(ctx, a, msg, &e.Change) {
		to := b.readerFor(a, msg)
		hint := to.words.WhyOffer(to.language, d.At.Add(WhyFor))
		e.Change.Send[0].Content = b.decidedCard(questionAfter(a, d), to, hint)
	}
	e.Change.Send = append([]bot.Row{say(b.deps.Words.Noted(msg.Language, 0), false)}, e.Change.Send...)
	if d.State != bot.Approved {
		return e, nil
	}
	info, err := readGrant(a)
	if err != nil {
		return e, err
	}
	return e, rememberFiles(a.Session, &info.Question, d.At, &e.Change)
}

// signerName returns how a decision about a question is signed: with the id where the person who asked has the same name.
func signerName(a *bot.Approval, msg *bot.Message) string {
	if info, err := readGrant(a); err == nil && msg.Caller != a.Caller && msg.Called == "" &&
		texts.SameName(info.Name, msg.Name) {
		return texts.Exactly(msg.Name, msg.Person)
	}
	return msg.Signature()
}

// signedBy returns a question for display: one that several people have approved is signed by all of them.
func (b *Broker) signedBy(a *bot.Approval) bot.Approval {
	signed := *a
	if a.State != bot.Approved || len(a.Votes) < 2 || b.deps.Called == nil {
		return signed
	}
	called := b.deps.Called()
	names := make([]string, len(a.Votes))
	for i, caller := range a.Votes {
		if names[i] = cmp.Or(called[caller], caller); caller == a.By {
			names[i] = a.ByName
		}
	}
	signed.ByName = strings.Join(names, ", ")
	return signed
}

// countVote counts one of several approvals and shows it on the card. Somebody else may vote at the same moment on
// another replica: if the store finds that the votes are complete, the card becomes the record and the turn continues.
func (b *Broker) countVote(a *bot.Approval, d bot.Decision, answer bot.Row) (turn.Effect, error) {
	d.State = bot.Open
	voted := *a
	voted.Votes = d.Votes
	card, _, err := b.questionCard(&voted, b.readerFor(a, nil))
	if err != nil {
		return turn.Effect{}, err
	}
	return turn.Effect{
		Change: bot.Change{Decide: []bot.Decision{d}, Send: []bot.Row{answer, b.editCard(a, card)}},
		Then: func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
			if len(applied.Decided) == 0 || applied.Decided[0] == bot.Open {
				return turn.Effect{}, nil
			}
			e := turn.Effect{Decided: []bot.SessionKey{a.Session}}
			now, err := b.deps.Store.Approval(ctx, a.ID)
			if err == nil {
				e.Change.Send = []bot.Row{b.editCard(&now, b.decidedCard(&now, b.readerFor(&now, nil), ""))}
				err = b.spread(ctx, &now, &now, nil, &e.Change)
			}
			return e, err
		},
	}, nil
}

// questionAfter returns a question as a decision leaves it.
func questionAfter(a *bot.Approval, d bot.Decision) *bot.Approval {
	next := *a
	next.State, next.Scope = d.State, d.Scope
	next.By, next.ByName = d.By, d.ByName
	next.Decided, next.Votes = d.At, d.Votes
	return &next
}

// decisionEffect returns the Effect of a decision: the row, the card that becomes its
// record, and the turn that continues.
func (b *Broker) decisionEffect(a *bot.Approval, d bot.Decision) turn.Effect {
	after := questionAfter(a, d)
	return turn.Effect{
		Change: bot.Change{
			Decide: []bot.Decision{d},
			Send:   []bot.Row{b.editCard(a, b.decidedCard(after, b.readerFor(after, nil), ""))},
		},
		Decided: []bot.SessionKey{a.Session},
	}
}

func (b *Broker) editCard(a *bot.Approval, content bot.Content) bot.Row {
	return bot.Row{
		Session: a.Session, Turn: a.Turn, Place: a.Place, Purpose: bot.Record, EditRow: a.Row, Content: content,
	}
}

func (b *Broker) expireQuestion(a *bot.Approval) turn.Effect {
	return b.decisionEffect(a, bot.Decision{ID: a.ID, State: bot.Expired, At: b.deps.Now(), Votes: a.Votes})
}

// Expired decides the questions that nobody decided in time.
func (b *Broker) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	open, err := b.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, err
	}
	var effects []turn.Effect
	for i := range open {
		if !open[i].Expires.After(now) {
			e, err := b.spreadEffect(ctx, &open[i], nil, b.expireQuestion(&open[i]), nil)
			if err != nil {
				return nil, err
			}
			effects = append(effects, e)
		}
	}
	return effects, nil
}

// Withdraw adds the withdrawal of a turn's open questions to change.
func (b *Broker) Withdraw(ctx context.Context, session bot.SessionKey, turn, by string, change *bot.Change) error {
	open, err := b.deps.Store.OpenApprovals(ctx, session)
	if err != nil {
		return err
	}
	now := b.deps.Now()
	for i := range open {
		if open[i].Turn != turn {
			continue
		}
		gone := open[i]
		gone.State, gone.Decided = bot.Withdrawn, now
		change.Send = append(change.Send, b.editCard(&open[i], b.decidedCard(&gone, b.readerFor(&gone, nil), "")))
		change.Cancel = &bot.Cancel{Session: session, Turn: turn, By: by, At: now}
		if err := b.spread(ctx, &open[i], &gone, nil, change); err != nil {
			return err
		}
	}
	return nil
}

var (
	_ turn.Approvals    = (*Broker)(nil)
	_ turn.Explanations = (*Broker)(nil)
	_ approve.Lookup    = (*Broker)(nil)
)

// clearMark is the choice of the button *Not an order: clear the mark*.
const clearMark = "c"

// approveFlagged approves a call that is asked about only because a text was flagged, and clears the mark of the
// source that the card names: what it says is no order. Only admins may, because it counts for everybody in the
// conversation. The mark is cleared by the journal entry of the call's result (journal.Entry.Cleared), so a turn
// that is stopped before keeps it.
func (b *Broker) approveFlagged(
	ctx context.Context, a *bot.Approval, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return turn.Effect{}, err
	}
	if !slices.Contains(rights.Admins, msg.Caller) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.AdminsClear(msg.Language), true)}}}, nil
	}
	return b.decideQuestion(ctx, a, msg, bot.Approved, bot.Cleared, say)
}
