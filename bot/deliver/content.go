package deliver

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

const (
	// maxCaption is the longest caption of a document (Bot API sendDocument), in UTF-16 units.
	maxCaption = 1024
	// maxProblem limits what is kept of an error, in bytes.
	maxProblem = 500
)

// marked adds a line below a content, or as an inactive button if the text leaves no room for it: an answer is never
// cut for a mark.
func marked(content bot.Content, line string) bot.Content {
	switch {
	case line == "":
	case content.Text == "":
		content.Text = line
	case fits(content, line):
		content.Rich = nil // it does not have the line
		content.Text += "\n\n" + line
	case len(content.More) > 0: // an album has no buttons
		content.Text = render.Cut(content.Text, room(content)-render.Length(line)-2) + "\n\n" + line
		content.Entities = nil
	default:
		content.Buttons = append(slices.Clip(content.Buttons), []bot.Button{{Label: line, Gray: true}})
	}
	return content
}

// room returns the maximum length of the text of a content.
func room(content bot.Content) int {
	if content.File != nil {
		return maxCaption
	}
	return render.MaxLength
}

// problem returns an error as it is stored with a row.
func problem(err error) string {
	text := err.Error()
	if len(text) <= maxProblem {
		return text
	}
	end := maxProblem
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// log returns a logger that names the row.
func (o *Outbox) log(row *bot.Row) *zerolog.Logger {
	log := o.deps.Log.With().Int64("row", row.ID).Str("purpose", string(row.Purpose)).Str("chat", row.Place.ChatKey()).
		Str("session", string(row.Session)).Str("turn", row.Turn).Logger()
	return &log
}

// toast replies to a press at once, because that is useful only for seconds.
func (o *Outbox) toast(ctx context.Context, row bot.Row) {
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.forget(row.ID)
	}()
	select {
	case <-ctx.Done():
		return
	case o.quick <- struct{}{}:
	}
	defer func() { <-o.quick }()
	if ctx.Err() != nil {
		return
	}
	o.begin()
	defer o.end()
	v := verdict{outcome: "expired", update: bot.RowUpdate{
		ID: row.ID, From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: "too old",
	}}
	if now := o.deps.Now(); !o.stale(&row, now) {
		v = o.judgeToast(ctx, &row, now)
	}
	// Nothing is lost if the outcome is not stored: the reply is repeated, or too old by then.
	_ = o.persist(ctx, &bot.Change{Rows: []bot.RowUpdate{v.update}})
	o.deps.Observe(row, v.outcome, v.asked)
}

// judgeToast sends a toast and returns the consequence: it is repeated while it is useful. A second reply to a press
// does no harm.
func (o *Outbox) judgeToast(ctx context.Context, row *bot.Row, now time.Time) verdict {
	message, err := o.request(ctx, row)
	outcome := bot.OutcomeOf(err)
	v := verdict{
		outcome: string(outcome),
		update:  bot.RowUpdate{ID: row.ID, From: []bot.RowState{bot.Pending}, To: bot.Dead, Attempts: 1},
	}
	switch {
	case err == nil:
		v.outcome, v.update.To, v.update.Message = "sent", bot.Sent, message
		return v
	case outcome == bot.NotSent || outcome == bot.Throttled || outcome == bot.Vague:
		again := o.judge(ctx, &outgoing{row: *row}, bot.Pending, message, err)
		if !o.stale(row, again.update.NotBefore) {
			return again
		}
	}
	v.update.Problem = problem(err)
	o.log(row).Debug().Err(err).Time("at", now).Msg("reply to a press dropped")
	return v
}

func (o *Outbox) stale(row *bot.Row, now time.Time) bool {
	return !row.Created.IsZero() && now.Sub(row.Created) > o.opts.ToastAge
}
