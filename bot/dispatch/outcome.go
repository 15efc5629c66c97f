package dispatch

// The outcome of a run, and the answer: stored as one Change, as a reply to its message where several are open.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// commitTries is how often storing the result of a run is attempted: the work is done and should not be lost to a short
// failure of the store.
const commitTries = 4

// commitOutcome stores the outcome of a run, with everything that follows from it, as one Change. It makes a few
// attempts; ErrLost after an attempt whose reply may have been lost means that the Change was committed.
func (w *work) commitOutcome(ctx context.Context, out agent.Outcome) error {
	var failed error
	for try := range commitTries {
		if try > 0 && !pause(ctx, time.Duration(try)*commitPause) {
			return failed
		}
		w.beside = func() {}
		change, err := w.outcomeChange(ctx, out)
		if err == nil {
			w.noteShortened(change, out)
			w.noteRetold(change, out)
			err = w.applyOutcome(ctx, change)
		}
		switch {
		case err == nil:
			w.keep(out)
			w.d.runEnded(w.arrival)
			w.beside()
			w.observeEnd(change, out)
			return nil
		case isTaken(err) && failed != nil: // it was stored, and the reply was lost
			w.observeEnd(change, out)
			return nil
		case isTaken(err), hopeless(err):
			return err
		}
		failed = err
	}
	return failed
}

// observeEnd reports a turn that a Change has ended. One that had ended before was reported then.
func (w *work) observeEnd(change *bot.Change, out agent.Outcome) {
	if change.Append == nil || len(change.Append.Entries) == 0 {
		return
	}
	o := Observation{
		What: "end", Turn: w.turn.ID, Session: string(w.lane.Session), Stats: out.Stats,
		Duration: w.d.parts.Now().Sub(w.arrival.At),
	}
	switch last := change.Append.Entries[len(change.Append.Entries)-1]; last.Kind {
	case journal.AnswerEntry:
		o.Kind = string(agent.Answered)
	case journal.EndEntry:
		o.Kind, o.Reason = string(agent.Ended), last.Reason
	default:
		return
	}
	w.d.observe(o)
}

func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// outcomeChange returns the Change that follows from an outcome.
func (w *work) outcomeChange(ctx context.Context, out agent.Outcome) (*bot.Change, error) {
	change := &bot.Change{Lease: &w.lease}
	var err error
	switch out.Kind {
	case agent.Answered:
		err = w.answered(ctx, change, out)
	case agent.Ended:
		err = w.ended(ctx, change, out)
	case agent.Parked:
		err = w.parkTurn(ctx, change, out)
	case agent.Later:
		err = w.postponeTurn(ctx, change, out)
	default:
		err = fmt.Errorf("outcome %q: %w", out.Kind, bot.ErrInvalid)
	}
	if err == nil {
		w.runConcludes(ctx, change, out)
		err = w.placeholderNow(ctx, change)
	}
	return change, err
}

// applyOutcome stores a Change with what the run has spent, and what the person is to be told of it.
func (w *work) applyOutcome(ctx context.Context, change *bot.Change) error {
	spent := w.purse.Spend(turn.Next{})
	spent.In(change)
	if !w.quiet() {
		for _, n := range w.purse.Notices() {
			change.Send = append(change.Send, w.row(bot.Notice, bot.Content{Text: n.Text}, "quota/"+n.Key))
		}
	}
	applied, err := w.d.parts.Store.Apply(ctx, change)
	w.purse.Stored(&spent, applied)
	return err
}

// noteShortened tells the person, once in a conversation, that the model does not read its oldest messages any more.
func (w *work) noteShortened(change *bot.Change, out agent.Outcome) {
	if out.LeftOut && !w.quiet() {
		content := bot.Content{Text: w.d.parts.Words.LeftOut(w.msg.Language)}
		change.Send = append(change.Send, w.row(bot.Notice, content, w.once("left-out")))
	}
}

// noteRetold tells the person, once in a conversation, that the model's server took what was
// said before as plain text only.
func (w *work) noteRetold(change *bot.Change, out agent.Outcome) {
	if out.Retold && !w.quiet() {
		content := bot.Content{Text: w.d.parts.Words.Retold(w.msg.Language)}
		change.Send = append(change.Send, w.row(bot.Notice, content, w.once("retold")))
	}
}

// placeholderNow turns the first final row into an edit of the placeholder, if there is one.
func (w *work) placeholderNow(ctx context.Context, change *bot.Change) error {
	if w.unsure {
		lane, err := w.d.parts.Store.Lane(ctx, w.lane.Session)
		if err != nil {
			return err
		}
		w.live, w.unsure = lane.Live, false
	}
	for i := range change.Send {
		if w.live != 0 && change.Send[i].Purpose == bot.Final {
			change.Send[i].EditRow = w.live
			break
		}
	}
	return nil
}

// composed returns the messages of a text for the turn's person.
func (w *work) composed(text string) []bot.Content {
	return w.d.parts.Composer.Compose(text, w.msg.Place, w.msg.Language)
}

// finalRows returns the rows of an answer.
func (w *work) finalRows(contents []bot.Content) []bot.Row {
	contents = w.only(contents)
	rows := make([]bot.Row, len(contents))
	for i, c := range contents {
		rows[i] = w.row(bot.Final, c, "final/"+w.turn.ID+"/"+strconv.Itoa(i))
		if i > 0 {
			rows[i].ReplyTo = ""
			continue
		}
		w.addressed(&rows[i])
	}
	return rows
}

func (w *work) finishTurn(change *bot.Change, entries []journal.Entry) {
	if len(entries) > 0 {
		change.Append = &bot.Append{Session: w.lane.Session, After: w.journal.last, Entries: entries}
	}
	change.Done = append(change.Done, w.arrival.Seq)
	change.Lanes = append(change.Lanes, isIdle(w.lane.Session))
}

func (w *work) answered(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	text := out.Text
	switch out.Reason {
	case journal.ReasonLength:
		text += "\n\n" + w.d.parts.Words.Cut(w.msg.Language)
	case journal.ReasonFiltered:
		text += "\n\n" + w.d.parts.Words.Filtered(w.msg.Language)
	}
	contents := w.composed(text)
	if len(contents) == 0 { // nothing visible
		contents = []bot.Content{{
			Text: w.d.parts.Words.Ended(w.msg.Language, journal.ReasonEmpty, "", out.Stats, w.turn.Request),
		}}
	}
	change.Send = w.finalRows(w.addButtons(contents, out))
	if err := w.addFollowing(ctx, change, out); err != nil {
		return err
	}
	w.addBeside(change, out)
	w.finishTurn(change, out.Entries)
	return w.withdrawQuestions(ctx, change)
}

// addBeside adds what is done beside the answer, where there are buttons below it.
func (w *work) addBeside(change *bot.Change, out agent.Outcome) {
	if w.d.parts.Beside == nil || w.quiet() {
		return
	}
	answer := w.answer(out)
	answer.Text = out.Text
	beside := w.d.parts.Beside(answer)
	change.Facts = append(change.Facts, beside.Facts...)
	if beside.Then != nil {
		w.beside = beside.Then
	}
}

// addButtons puts the buttons below the last content. Where the bot is a guest, or answers in somebody's name, there
// are none: who reads the answer there has no say in the turn.
func (w *work) addButtons(contents []bot.Content, out agent.Outcome) []bot.Content {
	if w.d.parts.Below == nil || len(contents) == 0 || w.quiet() {
		return contents
	}
	contents[len(contents)-1].Buttons = w.d.parts.Below(w.answer(out))
	return contents
}

// addFollowing adds the messages that follow the answer, where there are buttons below it.
func (w *work) addFollowing(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	if w.d.parts.After == nil || len(change.Send) == 0 || w.quiet() {
		return nil
	}
	contents, err := w.d.parts.After(ctx, w.answer(out))
	if err != nil {
		return err
	}
	for i := range contents {
		row := w.row(bot.Final, contents[i], "after/"+w.turn.ID+"/"+strconv.Itoa(i))
		row.ReplyTo = ""
		change.Send = append(change.Send, row)
	}
	return nil
}

func (w *work) answer(out agent.Outcome) turn.Answer {
	return turn.Answer{
		Language: w.msg.Language, Place: w.msg.Place, Caller: w.turn.Origin.Caller, Session: w.lane.Session,
		Turn: w.turn.ID, Stats: out.Stats, Entries: out.Entries, Message: w.msg,
	}
}

// withdrawQuestions adds the withdrawal of the questions that people have not decided.
func (w *work) withdrawQuestions(ctx context.Context, change *bot.Change) error {
	if w.fresh {
		return nil
	}
	return w.d.parts.Approvals.Withdraw(ctx, w.lane.Session, w.turn.ID, w.turn.Origin.Caller, change)
}

func (w *work) ended(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	text := out.Text
	if len(out.Entries) > 0 { // none: the turn had ended before, and its text has been sent
		words := w.d.parts.Words.Failing(out.Err, w.d.opts.giveUp(out.Err))
		text = words.Ended(w.msg.Language, out.Reason, out.Text, out.Stats, w.turn.Request)
		if !w.msg.Place.Group { // there, only admins may choose
			text = strings.TrimSpace(text + " " + w.d.parts.Words.OtherModel(w.msg.Language, out.Reason))
		}
		out.Entries[len(out.Entries)-1].Text = text
	}
	// Nobody could receive it, or it would be said in the name of the owner of a business account.
	if out.Reason != journal.ReasonGone && w.msg.Place.Business() == "" {
		change.Send = w.finalRows(w.addButtons(w.composed(text), out))
		if err := w.addFollowing(ctx, change, out); err != nil {
			return err
		}
	}
	w.finishTurn(change, out.Entries)
	return w.withdrawQuestions(ctx, change)
}

func (w *work) parkTurn(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	now := w.d.parts.Now()
	change.Lanes = []bot.LaneUpdate{{
		Session: w.lane.Session, State: ptr(bot.Parked), Since: &now, Failing: &zeroTime, Release: true,
	}}
	return w.d.parts.Approvals.Ask(ctx, w.asked(out.Questions, out.Stats), change)
}

// postponeTurn keeps the turn while the model is unavailable, tells the person once, and gives up in the end.
func (w *work) postponeTurn(ctx context.Context, change *bot.Change, out agent.Outcome) error {
	now := w.d.parts.Now()
	since, giveUp := w.failingSince(), w.d.opts.giveUp(out.Err)
	if now.Sub(since) >= giveUp {
		reason := journal.ReasonGivenUp
		if overloaded(out.Err) {
			reason = journal.ReasonBusy
		}
		entry := journal.Entry{Turn: w.turn.ID, Kind: journal.EndEntry, At: now, Reason: reason}
		return w.ended(ctx, change, agent.Outcome{
			Kind: agent.Ended, Reason: reason, Entries: []journal.Entry{entry}, Stats: out.Stats, Err: out.Err,
		})
	}
	wait := min(max(out.RetryAfter, backoffTime(now.Sub(since))), giveUp-now.Sub(since))
	due := now.Add(wait)
	zerolog.Ctx(ctx).Warn().Err(out.Err).Str("wait", wait.Round(time.Millisecond).String()).
		Msg("the model is unavailable; the turn waits")
	change.Lanes = []bot.LaneUpdate{{
		Session: w.lane.Session, State: ptr(bot.Waiting), Failing: &since, NotBefore: &due, Release: true,
	}}
	if w.quiet() {
		return nil
	}
	words := w.d.parts.Words.Failing(out.Err, giveUp)
	text := words.Away
	if overloaded(out.Err) {
		text = words.Busy
	}
	change.Send = []bot.Row{
		w.row(bot.Notice, bot.Content{Text: text(w.msg.Language, w.turn.Request)}, "away/"+w.turn.ID),
	}
	return nil
}

// giveUp returns how long a model may fail like this.
func (o *Options) giveUp(err error) time.Duration {
	if e, ok := errors.AsType[*llm.Error](err); ok && e.Unreached != "" && o.GiveUpUnreached > 0 {
		return min(o.GiveUp, o.GiveUpUnreached)
	}
	return o.GiveUp
}

// overloaded reports whether a model has said that it is asked too much, by all or by us, rather than not answered.
func overloaded(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && (e.Kind == llm.RateLimited || e.Kind == llm.Unavailable &&
		(e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable || e.Status == 529))
}

// backoffTime returns a third of the time that has passed, at least 2 s and at most a minute.
func backoffTime(since time.Duration) time.Duration {
	return min(max(since/3, 2*time.Second), time.Minute)
}

// maxExcerpt is how much of a message its answer quotes, in UTF-16 units; Telegram allows 1024.
const maxExcerpt = 200

// waitedLong is how long a message waits at least that is said to have waited, if this process did not see behind what.
const waitedLong = 3 * time.Second

// quick is how long a turn takes at most that is not asked about: nobody thinks that a message waits behind it.
const quick = 500 * time.Millisecond

// crowd says whether a turn's message is one of several, so that its answer has to say what it answers.
type crowd struct {
	behind bool   // it waited behind another turn
	others bool   // others waited when the turn began, or was resumed
	quote  string // the beginning of the message, exactly as it was written
}

// crowdOf looks at the message of a turn that begins. stored says whether it was stored before.
func (d *Dispatcher) crowdOf(ctx context.Context, t *task, session bot.SessionKey, stored bool) crowd {
	d.mu.Lock()
	over, several := d.line.over[session]
	delete(d.line.over, session)
	d.mu.Unlock()
	at := t.arrival.At
	behind := stored && (several && !at.After(over) || d.parts.Now().Sub(at) > waitedLong+d.opts.Merge)
	if stored && !behind && d.opts.Shared && d.parts.Signs != nil { // it may have waited behind another process's turn
		behind = d.parts.Signs.Shown(ctx, session, t.arrival.Seq)
	}
	return crowd{
		behind: behind,
		others: len(t.waiting) > 1+len(t.rest),
		quote:  excerptOfMessage(t.first),
	}
}

// lookAround finds messages that other processes have accepted while the turn ran. It reads nothing if the turn was
// quick, or if there are no other processes.
func (w *work) lookAround(ctx context.Context, took time.Duration) {
	if !w.d.opts.Shared || took < quick || w.crowded() {
		return
	}
	waiting, err := w.d.parts.Store.Tickets(ctx, string(w.lane.Session))
	w.others = len(waiting) > 1
	w.d.report(ctx, err, "look for messages that wait")
}

// crowded reports whether the answer has to say which message it answers, as far as this process knows.
func (w *work) crowded() bool {
	if w.behind || w.others {
		return true
	}
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	j := w.d.jobs[w.lane.Session]
	return j != nil && j.followed
}

// addressed makes an answer a reply to its message, with the beginning of it as a quotation, if there are several.
func (w *work) addressed(row *bot.Row) {
	if row.Edit != "" || w.msg.Message == "" || !w.crowded() {
		return
	}
	row.ReplyTo, row.Content.Quote = w.msg.Message, w.quote
}

// excerptOfMessage returns the beginning of a message to be quoted, cut between words; "" = nothing that can be quoted.
func excerptOfMessage(msg *bot.Message) string {
	if msg == nil || msg.Forwarded { // the text of a forwarded one does not begin as it was written
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(msg.Text), "\n")
	units, space := 0, 0
	for i, r := range text {
		if units++; r > 0xFFFF {
			units++
		}
		if units > maxExcerpt {
			if space == 0 {
				space = i
			}
			return strings.TrimSpace(text[:space])
		}
		if unicode.IsSpace(r) {
			space = i
		}
	}
	return strings.TrimSpace(text)
}
