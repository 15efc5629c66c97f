package deliver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

const (
	// panicked is the outcome of a Sender that panicked.
	panicked bot.SendOutcome = "panic"
	// lastTries is how often a write is attempted after ctx has ended, and lastWait the time between attempts.
	lastTries = 5
	lastWait  = 100 * time.Millisecond
)

// verdict is the consequence of an attempt.
type verdict struct {
	update  bot.RowUpdate
	move    *bot.Move
	outcome string
	asked   time.Time  // when the request began; zero = none was made
	told    []lost     // the losses that the message reported
	more    bot.Change // what is stored with it: Send and Cards
}

// errNothingToChange is the outcome of an edit that only removes a keyboard, if its message no longer exists.
var errNothingToChange = &bot.SendError{
	Outcome: bot.Missing, Err: errors.New("the message is not there any more, and nothing of it is left to say"),
}

// deliver makes one attempt at a row of a chat and stores the outcome. held is the place in the budget that was
// reserved for the row.
func (o *Outbox) deliver(ctx context.Context, c *chat, it *item, held func()) {
	out := o.outgoing(c, it, held)
	if it.row.Edit != "" {
		message, err := o.edit(ctx, out)
		if !o.sentAfresh(out, err) {
			o.settle(ctx, c, it, o.judge(ctx, out, bot.Pending, message, err))
			return
		}
		o.log(&it.row).Info().Err(err).Msg("message cannot be edited; sent as a new one")
		out.row.Edit, it.row.Edit = "", ""
	}
	if !it.claimed && !o.claim(ctx, c, it) {
		return
	}
	it.claimed = false
	message, err := o.send(ctx, out)
	for err != nil && out.row.Vital() && out.lessen(o.deps.Words, err) {
		o.log(&it.row).Warn().Err(err).Str("form", out.form.String()).Msg("message refused; retrying in another form")
		message, err = o.send(ctx, out)
	}
	it.form, it.noTopic = out.form, out.noTopic
	if refused(err) && len(out.row.Content.More) > 0 {
		o.settle(ctx, c, it, o.apart(&it.row, err))
		return
	}
	o.settle(ctx, c, it, o.judge(ctx, out, bot.Sending, message, err))
}

// edit makes one attempt at an edit, which may be repeated and needs no state of its own.
func (o *Outbox) edit(ctx context.Context, out *outgoing) (message string, err error) {
	message, err = o.send(ctx, out)
	if refused(err) && out.row.Vital() && len(out.row.Content.Entities) > 0 {
		out.row.Content.Entities = nil
		message, err = o.send(ctx, out)
	}
	return message, err
}

// sentAfresh reports whether a new message replaces an edit that failed. An edit that only removes a keyboard has
// nothing to send.
func (o *Outbox) sentAfresh(out *outgoing, err error) bool {
	if err == nil || (out.row.Content.Text == "" && out.row.Content.File == nil) {
		return false
	}
	return bot.OutcomeOf(err) == bot.Missing || (refused(err) && out.row.Vital())
}

func refused(err error) bool { return err != nil && bot.OutcomeOf(err) == bot.Refused }

// claim stores that the one request that cannot be repeated is about to be made. It returns false if the row may not be
// sent by this process, or ctx has ended.
func (o *Outbox) claim(ctx context.Context, c *chat, it *item) bool {
	change := &bot.Change{Rows: []bot.RowUpdate{{
		ID: it.row.ID, From: []bot.RowState{bot.Pending}, To: bot.Sending, NotBefore: it.row.NotBefore,
		Problem: it.row.Problem,
	}}}
	for n := 0; ; n++ {
		applied, err := o.apply(ctx, change)
		switch {
		case err == nil && applied.Moved[0]:
			return true
		case err == nil, hopeless(err):
			o.log(&it.row).Warn().AnErr("store", err).Msg("row belongs to another process")
			o.drop(c, it)
			return false
		case ctx.Err() != nil:
			return false
		}
		o.log(&it.row).Warn().Err(err).Msg("row not claimed; retrying")
		// The failed write may have been executed nevertheless.
		change.Rows[0].From = []bot.RowState{bot.Pending, bot.Sending}
		sleep(ctx, o.backoff(n))
		if ctx.Err() != nil {
			return false
		}
	}
}

// request makes one request. The end of ctx does not cancel it at once: it has its own time limit, which grows with the
// file it sends, and Options.Grace after ctx has ended.
func (o *Outbox) request(outer context.Context, row *bot.Row) (message string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(outer), o.opts.Request+bot.UploadTime(row.Content.Bytes()))
	defer cancel()
	stop := context.AfterFunc(outer, func() { time.AfterFunc(o.opts.Grace, cancel) })
	defer stop()
	defer func() {
		if r := recover(); r != nil {
			o.log(row).Error().Any("panic", r).Bytes("stack", debug.Stack()).Msg("sending panicked")
			err = &bot.SendError{Outcome: panicked, Err: fmt.Errorf("sending panicked: %v", r)}
		}
	}()
	return o.deps.Sender.Send(ctx, o.replying(ctx, row))
}

// replying returns a row with the id of the message that it replies to. If that was not sent, the row is no reply.
func (o *Outbox) replying(ctx context.Context, row *bot.Row) *bot.Row {
	id, ok := bot.RepliedRow(row.ReplyTo)
	if !ok {
		return row
	}
	first, err := o.deps.Store.Row(ctx, id)
	if err != nil {
		o.log(row).Warn().Err(err).Msg("sent without being a reply")
	}
	now := *row
	now.ReplyTo = first.Message
	return &now
}

// send makes a request within the budget.
func (o *Outbox) send(ctx context.Context, out *outgoing) (string, error) {
	over := out.held
	if out.held = nil; over == nil {
		var err error
		if over, err = o.deps.Pacer.Wait(ctx, out.row.Place, priority(out.row.Purpose)); err != nil {
			return "", &bot.SendError{Outcome: bot.NotSent, Err: err}
		}
	}
	defer over()
	row := out.dressed(o.deps.Words)
	out.asked = o.deps.Now()
	begun := o.way.begin()
	message, err := o.request(ctx, &row)
	switch {
	case err == nil:
		o.way.back(begun)
	case bot.OutcomeOf(err) == bot.Vague:
		o.way.lost()
	}
	return message, err
}

// judge returns the consequence of an attempt that began in state from: Sending for a new message, Pending for what may
// be repeated.
func (o *Outbox) judge(ctx context.Context, out *outgoing, from bot.RowState, message string, err error) verdict {
	v := o.consequence(ctx, out, from, message, err)
	v.asked = out.asked
	return v
}

func (o *Outbox) consequence(ctx context.Context, out *outgoing, from bot.RowState, message string, err error) verdict {
	row := &out.row
	if err == nil {
		return verdict{outcome: "sent", told: out.owed, update: bot.RowUpdate{
			ID: row.ID, From: []bot.RowState{from}, To: bot.Sent, Message: message, Attempts: 1, Problem: out.lacking(),
		}}
	}
	var failed *bot.SendError
	if !errors.As(err, &failed) {
		failed = &bot.SendError{Outcome: bot.Vague, Err: err}
	}
	later := func(wait time.Duration) verdict {
		return verdict{outcome: string(failed.Outcome), update: bot.RowUpdate{
			ID: row.ID, From: []bot.RowState{from}, To: bot.Pending, Attempts: 1, NotBefore: o.deps.Now().Add(wait),
			Problem: problem(err),
		}}
	}
	switch failed.Outcome {
	case bot.NotSent:
		o.log(row).Info().Err(err).Msg("not sent; retrying")
		return later(o.backoff(row.Attempts))
	case bot.Throttled:
		wait := max(failed.RetryAfter, leastFreeze)
		o.deps.Pacer.Freeze(row.Place, wait)
		o.log(row).Warn().Dur("wait", wait).Msg("rate limited; the chat waits")
		return later(wait)
	case bot.Moved:
		if to := failed.MovedTo; to != "" && to != row.Place.Chat {
			v := later(o.afterMove(row))
			v.move = &bot.Move{Channel: row.Place.Channel, Bot: row.Place.Bot, From: row.Place.Chat, To: to}
			return v
		}
	case bot.Vague:
		return o.vague(ctx, row, from, err)
	case bot.Missing:
		if row.Edit != "" && !o.sentAfresh(out, err) {
			return o.over(row, from, errNothingToChange)
		}
	case bot.Refused, bot.Gone, bot.NoTopic:
	default: // panicked
	}
	return o.over(row, from, err)
}

// afterMove returns the delay before the new chat is tried: none the first time.
func (o *Outbox) afterMove(row *bot.Row) time.Duration {
	if row.Attempts < 2 {
		return 0
	}
	return o.backoff(row.Attempts)
}

// vague decides about a request whose outcome is unknown. What somebody waits for is repeated, at most Options.Repeats
// times, once answers come back again (Deps.Probe), so that an outage uses up none of them. An edit does no harm when
// it is repeated: it is for as long as Options.GiveUp, after delays that grow with the time that has passed.
func (o *Outbox) vague(ctx context.Context, row *bot.Row, from bot.RowState, err error) verdict {
	now := o.deps.Now()
	since := row.Doubt
	if since.IsZero() {
		since = now
	}
	lasting := now.Sub(since)
	wait, over := max(lasting, o.opts.Backoff), lasting >= o.opts.GiveUp
	unconfirmed := 0
	if from == bot.Sending {
		wait = o.opts.Backoff << min(3*row.Unconfirmed, 16)
		over = !row.Vital() || row.Unconfirmed >= o.opts.Repeats
		unconfirmed = 1
	}
	if over {
		v := o.over(row, from, err)
		v.update.Unconfirmed = unconfirmed
		o.askAgain(ctx, row, since, &v)
		return v
	}
	o.log(row).Warn().Err(err).Int("unconfirmed", row.Unconfirmed+unconfirmed).Msg("outcome unknown; repeating")
	return verdict{outcome: string(bot.Vague), update: bot.RowUpdate{
		ID: row.ID, From: []bot.RowState{from}, To: bot.Pending, Attempts: 1, Unconfirmed: unconfirmed, Doubt: since,
		NotBefore: now.Add(min(wait, o.opts.MaxDoubt)), Problem: problem(err),
	}}
}

// askAgain adds to the end of a question that may not have arrived one more row, which says so: nothing else of the
// turn would, since it waits for the decision. That row is as doubtful as the first, so that it is sent once answers
// come back, and so that every copy is decided by.
func (o *Outbox) askAgain(ctx context.Context, row *bot.Row, since time.Time, v *verdict) {
	if row.Purpose != bot.Question || o.deps.Again == nil {
		return
	}
	var again bot.Change
	if err := o.deps.Again(ctx, row, &again); err != nil {
		o.log(row).Error().Err(err).Msg("question not asked again; its loss is told with the next answer")
		return
	}
	for i := range again.Send {
		again.Send[i].Doubt = since
	}
	if len(again.Send) > 0 {
		v.more, v.update.To = again, bot.Dead
	}
}

// over ends a row that may not have arrived. If somebody waits for it, they are told with their next message; until
// then the row is unknown.
func (o *Outbox) over(row *bot.Row, from bot.RowState, err error) verdict {
	level, to := zerolog.WarnLevel, bot.Dead
	if row.Vital() {
		to = bot.Unknown
		if bot.OutcomeOf(err) != bot.Gone {
			level = zerolog.ErrorLevel
		}
	}
	if errors.Is(err, errNothingToChange) {
		level = zerolog.DebugLevel
	}
	o.log(row).WithLevel(level).Err(err).Str("state", string(to)).Msg("message given up")
	return verdict{outcome: string(bot.OutcomeOf(err)), update: bot.RowUpdate{
		ID: row.ID, From: []bot.RowState{from}, To: to, Attempts: 1, Problem: problem(err),
	}}
}

// settle stores a verdict and updates the memory accordingly.
func (o *Outbox) settle(ctx context.Context, c *chat, it *item, v verdict) {
	change := v.more
	change.Rows, change.Move = []bot.RowUpdate{v.update}, v.move
	err := o.persist(ctx, &change)
	o.deps.Observe(it.row, v.outcome, v.asked)
	switch {
	case err != nil && !hopeless(err): // ctx has ended; the next process finds the row as it is
		return
	case v.move != nil && err == nil:
		o.log(&it.row).Info().Str("to", v.move.To).Msg("the group has a new id")
		o.dropAll(c)
		o.renameLost(c.key, v.move)
		o.nudge()
	case err == nil && v.update.To == bot.Pending:
		o.mu.Lock()
		it.row.Attempts += v.update.Attempts
		it.row.Unconfirmed += v.update.Unconfirmed
		if it.row.Doubt.IsZero() {
			it.row.Doubt = v.update.Doubt
		}
		it.row.NotBefore, it.row.Problem, it.stored = v.update.NotBefore, v.update.Problem, v.update.NotBefore
		o.mu.Unlock()
	default:
		if err == nil {
			o.lose(c.key, &it.row, v.update)
		}
		o.drop(c, it)
		// A row that waits for the message of this one is due now.
		if it.row.Purpose == bot.Placeholder || it.row.Purpose == bot.Question {
			o.nudge()
		}
		o.settleTold(ctx, c.key, v.told)
		if len(v.more.Send) > 0 {
			o.Wake(it.row.Place)
		}
	}
}

func (o *Outbox) drop(c *chat, it *item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.remove(it)
	o.forget(it.row.ID)
}

func (o *Outbox) dropAll(c *chat) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range c.items {
		o.forget(it.row.ID)
	}
	c.items = nil
}

// persist makes a Change and retries while the store is unavailable. After ctx has ended, it makes a few more attempts
// and then gives up.
func (o *Outbox) persist(ctx context.Context, change *bot.Change) error {
	last := 0
	for n := 0; ; n++ {
		_, err := o.apply(ctx, change)
		if err == nil {
			return nil
		}
		id := change.Rows[0].ID
		if hopeless(err) {
			o.deps.Log.Error().Err(err).Int64("row", id).Msg("cannot store the outcome")
			return err
		}
		o.deps.Log.Warn().Err(err).Int64("row", id).Msg("outcome not stored; retrying")
		if !sleep(ctx, o.backoff(n)) {
			if last++; last >= lastTries {
				o.deps.Log.Error().Err(err).Int64("row", id).Msg("outcome not stored before shutdown")
				return err
			}
			sleep(context.WithoutCancel(ctx), lastWait)
		}
	}
}

// apply makes a Change with its own time limit.
func (o *Outbox) apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.opts.Commit)
	defer cancel()
	return o.deps.Store.Apply(ctx, change)
}

// hopeless reports whether retrying a Change is useless.
func hopeless(err error) bool {
	return errors.Is(err, bot.ErrNotFound) || errors.Is(err, bot.ErrInvalid)
}
