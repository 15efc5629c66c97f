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
	// lastTries is how often a write is tried after the end was asked for, and lastWait the time between.
	lastTries = 5
	lastWait  = 100 * time.Millisecond
)

// verdict is what follows from an attempt.
type verdict struct {
	update  bot.RowUpdate
	move    *bot.Move
	outcome string
	told    []lost // what the message told the loss of
}

// errNothingToChange is the outcome of an edit that only takes a keyboard away from a message that is not there any
// more.
var errNothingToChange = &bot.SendError{Outcome: bot.Missing, Err: errors.New("the message is not there any more, and nothing of it is left to say")}

// deliver makes one attempt at a row of a chat and stores what became of it. held is the place in the budget that the
// row has waited for.
func (o *Outbox) deliver(ctx context.Context, c *chat, it *item, held func()) {
	out := o.outgoing(c, it, held)
	if it.row.Edit != "" {
		message, err := o.edit(ctx, out)
		if !o.sentAfresh(out, err) {
			o.settle(ctx, c, it, o.judge(out, bot.Pending, message, err))
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
		o.log(&it.row).Warn().Err(err).Str("form", out.form.String()).Msg("message refused; tried in another form")
		message, err = o.send(ctx, out)
	}
	it.form, it.noTopic = out.form, out.noTopic
	o.settle(ctx, c, it, o.judge(out, bot.Sending, message, err))
}

// edit makes one attempt at an edit, which is repeatable and needs no state of its own.
func (o *Outbox) edit(ctx context.Context, out *outgoing) (message string, err error) {
	message, err = o.send(ctx, out)
	if refused(err) && out.row.Vital() && len(out.row.Content.Entities) > 0 {
		out.row.Content.Entities = nil
		message, err = o.send(ctx, out)
	}
	return message, err
}

// sentAfresh says whether a new message takes the place of an edit that failed. What only takes a keyboard away has
// nothing to say of its own.
func (o *Outbox) sentAfresh(out *outgoing, err error) bool {
	if err == nil || (out.row.Content.Text == "" && out.row.Content.File == nil) {
		return false
	}
	return bot.OutcomeOf(err) == bot.Missing || (refused(err) && out.row.Vital())
}

func refused(err error) bool { return err != nil && bot.OutcomeOf(err) == bot.Refused }

// claim stores that the one request is about to be made that cannot be repeated; false when the row is not ours to send
// or the end came.
func (o *Outbox) claim(ctx context.Context, c *chat, it *item) bool {
	change := &bot.Change{Rows: []bot.RowUpdate{{
		ID: it.row.ID, From: []bot.RowState{bot.Pending}, To: bot.Sending, NotBefore: it.row.NotBefore, Problem: it.row.Problem,
	}}}
	for n := 0; ; n++ {
		applied, err := o.apply(ctx, change)
		switch {
		case err == nil && applied.Moved[0]:
			return true
		case err == nil, hopeless(err):
			o.log(&it.row).Warn().AnErr("store", err).Msg("row is no longer ours to send")
			o.drop(c, it)
			return false
		case ctx.Err() != nil:
			return false
		}
		o.log(&it.row).Warn().Err(err).Msg("row not taken; tried again")
		// The write that failed may have happened all the same.
		change.Rows[0].From = []bot.RowState{bot.Pending, bot.Sending}
		sleep(ctx, o.backoff(n))
		if ctx.Err() != nil {
			return false
		}
	}
}

// request makes one request. The end of ctx does not cut it off at once: it has its own time limit, and Options.Grace
// from the end on.
func (o *Outbox) request(outer context.Context, row *bot.Row) (message string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(outer), o.opts.Request)
	defer cancel()
	stop := context.AfterFunc(outer, func() { time.AfterFunc(o.opts.Grace, cancel) })
	defer stop()
	defer func() {
		if r := recover(); r != nil {
			o.log(row).Error().Any("panic", r).Bytes("stack", debug.Stack()).Msg("sending panicked")
			err = &bot.SendError{Outcome: panicked, Err: fmt.Errorf("sending panicked: %v", r)}
		}
	}()
	return o.deps.Sender.Send(ctx, row)
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
	return o.request(ctx, &row)
}

// judge says what follows from an attempt that began in state from: Sending for a new message, Pending for what may be
// repeated.
func (o *Outbox) judge(out *outgoing, from bot.RowState, message string, err error) verdict {
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
			ID: row.ID, From: []bot.RowState{from}, To: bot.Pending, Attempts: 1, NotBefore: o.deps.Now().Add(wait), Problem: problem(err),
		}}
	}
	switch failed.Outcome {
	case bot.NotSent:
		o.log(row).Info().Err(err).Msg("not sent; tried again")
		return later(o.backoff(row.Attempts))
	case bot.Throttled:
		wait := max(failed.RetryAfter, leastFreeze)
		o.deps.Pacer.Freeze(row.Place, wait)
		o.log(row).Warn().Dur("wait", wait).Msg("sending too fast; the chat waits")
		return later(wait)
	case bot.Moved:
		if to := failed.MovedTo; to != "" && to != row.Place.Chat {
			v := later(o.afterMove(row))
			v.move = &bot.Move{Channel: row.Place.Channel, Bot: row.Place.Bot, From: row.Place.Chat, To: to}
			return v
		}
	case bot.Vague:
		return o.vague(row, from, err)
	case bot.Missing:
		if row.Edit != "" && !o.sentAfresh(out, err) {
			return o.over(row, from, errNothingToChange)
		}
	case bot.Refused, bot.Gone, bot.NoTopic:
	default: // panicked
	}
	return o.over(row, from, err)
}

// afterMove is the wait before the new chat is tried: none the first time.
func (o *Outbox) afterMove(row *bot.Row) time.Duration {
	if row.Attempts < 2 {
		return 0
	}
	return o.backoff(row.Attempts)
}

// vague decides about a request of which nobody knows whether it was executed: what somebody waits for, and an edit, is
// repeated for as long as Options.GiveUp. The waits grow with the time that has passed, so that an outage delays an
// answer by no more than its own length again, and what the server executes without ever saying so is not there a
// hundred times.
func (o *Outbox) vague(row *bot.Row, from bot.RowState, err error) verdict {
	now := o.deps.Now()
	since := row.Doubt
	if since.IsZero() {
		since = now
	}
	lasting := now.Sub(since)
	if lasting >= o.opts.GiveUp || (from == bot.Sending && !row.Vital()) {
		return o.over(row, from, err)
	}
	o.log(row).Warn().Err(err).Msg("nobody knows whether this arrived; repeated")
	wait := min(max(lasting, o.opts.Backoff), o.opts.MaxDoubt)
	return verdict{outcome: string(bot.Vague), update: bot.RowUpdate{
		ID: row.ID, From: []bot.RowState{from}, To: bot.Pending, Attempts: 1, Doubt: since, NotBefore: now.Add(wait), Problem: problem(err),
	}}
}

// over ends a row that did not arrive for sure. Where somebody waits for it they are told with the next message to
// them; until then it is unknown.
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

// settle stores a verdict and brings the memory in line with it.
func (o *Outbox) settle(ctx context.Context, c *chat, it *item, v verdict) {
	err := o.persist(ctx, &bot.Change{Rows: []bot.RowUpdate{v.update}, Move: v.move})
	o.deps.Observe(it.row, v.outcome)
	switch {
	case err != nil && !hopeless(err): // the end has come; the next process finds the row as it is
		return
	case v.move != nil && err == nil:
		o.log(&it.row).Info().Str("to", v.move.To).Msg("the group has a new id")
		o.dropAll(c)
		o.renameLost(c.key, v.move)
		o.nudge()
	case err == nil && v.update.To == bot.Pending:
		o.mu.Lock()
		it.row.Attempts += v.update.Attempts
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
		// a row that waits for the message of this one is due now
		if it.row.Purpose == bot.Placeholder || it.row.Purpose == bot.Question {
			o.nudge()
		}
		o.settleTold(ctx, c.key, v.told)
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

// persist makes a Change however long the store is away. After the end was asked for it tries a little longer, then
// leaves it.
func (o *Outbox) persist(ctx context.Context, change *bot.Change) error {
	last := 0
	for n := 0; ; n++ {
		_, err := o.apply(ctx, change)
		if err == nil {
			return nil
		}
		id := change.Rows[0].ID
		if hopeless(err) {
			o.deps.Log.Error().Err(err).Int64("row", id).Msg("outcome cannot be stored")
			return err
		}
		o.deps.Log.Warn().Err(err).Int64("row", id).Msg("outcome not stored; tried again")
		if !sleep(ctx, o.backoff(n)) {
			if last++; last >= lastTries {
				o.deps.Log.Error().Err(err).Int64("row", id).Msg("outcome not stored before the end")
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

// hopeless says that trying a Change again does not help.
func hopeless(err error) bool {
	return errors.Is(err, bot.ErrNotFound) || errors.Is(err, bot.ErrInvalid)
}
