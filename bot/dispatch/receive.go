package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/policy/source"
)

// typingEvery is how often it is shown that something is being done: a client shows it for some 5 s.
const typingEvery = 4 * time.Second

// errEnds ends the reading of files because the service ends: nothing of it is stored, so nobody waits for it.
var errEnds = errors.New("the service ends")

// errReplaced ends the reading of files because their message was edited: it is read again as it is now.
var errReplaced = errors.New("the message was edited")

// receive reads the files of a message before its turn begins. Nothing of the turn is stored yet: a process that dies
// meanwhile leaves a message that waits, whose files are read again. False: the turn does not begin; more says whether
// to look at the session again.
func (d *Dispatcher) receive(
	ctx context.Context, lane *bot.Lane, t *task, j *job, payer cost.Payer, charges []bot.Charge,
) (more, ok bool) {
	if len(t.msg.Files) == 0 || d.parts.Attachments == nil {
		return false, true
	}
	d.stepAside(j) // others may take long to give them
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.mu.Lock()
	j.reading, j.cancel = t.arrival.Seq, cancel
	if d.turns == nil {
		cancel(errEnds)
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		j.reading, j.cancel = 0, nil
		d.mu.Unlock()
	}()
	stop := d.typing(reading, t.msg.Place)
	got, err := d.parts.Attachments.Receive(cost.WithPayer(reading, payer), &turn.Sent{
		Message: t.msg, Session: lane.Session, Workspace: d.claim(lane, t.msg.Place).Workspace, Turn: d.turnID(t.arrival),
	})
	stop()
	switch {
	case err == nil:
		t.received = &got
		return false, true
	case ctx.Err() != nil, errors.Is(context.Cause(reading), errEnds): // the service ends: the next process reads them
		return false, false
	case errors.Is(context.Cause(reading), errReplaced): // the charge is the same
		return true, false
	case errors.Is(context.Cause(reading), agent.ErrStopped): // the message was dropped
		d.report(ctx, d.parts.Meter.Undo(context.WithoutCancel(ctx), charges), "give a charge back")
		return true, false
	default:
		return d.trouble(ctx, lane.Session, t.arrival, fmt.Errorf("read what came along: %w", err)), false
	}
}

// typing shows that something is being done until stop is called.
func (d *Dispatcher) typing(ctx context.Context, place bot.Place) (stop func()) {
	if d.parts.Typing == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	d.wg.Go(func() {
		defer close(done)
		for {
			d.parts.Typing(ctx, place)
			timer := time.NewTimer(typingEvery)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	})
	return func() {
		cancel()
		<-done
	}
}

// endReadings ends the reading of all files.
func (d *Dispatcher) endReadings() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jobs {
		if j.reading != 0 && j.cancel != nil {
			j.cancel(errEnds)
		}
	}
}

// endReading stops the reading of files whose message was dropped or edited.
func (d *Dispatcher) endReading(session bot.SessionKey, of []int64, cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[session]
	if j != nil && j.reading != 0 && j.cancel != nil && slices.Contains(of, j.reading) {
		j.cancel(cause)
	}
}

// attached are the files of a message as parts whose content nobody has read.
func attached(files []bot.Attachment) []llm.Part {
	if len(files) == 0 {
		return nil
	}
	parts := make([]llm.Part, len(files))
	for i, f := range files {
		parts[i] = llm.Part{Kind: f.Part(), Type: f.MIME, Name: f.Name, Size: f.Size, Label: f.Kind, Text: f.Note}
	}
	return parts
}

// entry is the journal's first line of a turn.
func (d *Dispatcher) entry(t *task, turn string, news turn.News, now time.Time) journal.Entry {
	msg := t.msg
	e := journal.Entry{Turn: turn, Kind: journal.UserEntry, At: now, Text: strings.TrimSpace(msg.Text), Speaker: msg.Name, Caller: msg.Caller, News: news.Text}
	e.Heard, e.Scheduled = heardOf(msg, t.arrival.ID), d.scheduled(t.arrival)
	if t.received == nil {
		e.Parts = attached(msg.Files)
	} else {
		e.Parts, e.USD = t.received.Parts, t.received.USD
	}
	e.Recalled = t.recalled
	if msg.Forwarded {
		e.Foreign = source.Forwarded
	}
	if msg.Reply != nil {
		e.Quote = &journal.Quote{Author: msg.Reply.Author, Caller: msg.Reply.Caller, Own: msg.Reply.Own, Text: msg.Reply.Text}
	}
	if e.Source = flagged(&e, t, news.Flagged); e.Source != source.None {
		e.Flagged = true
	}
	return e
}

// flagged returns the source of what comes with a message and tries to give instructions; None = nothing does.
func flagged(e *journal.Entry, t *task, news bool) source.Source {
	switch {
	case news:
		return source.Background
	case t.received != nil && t.received.Flagged:
		return cmp.Or(t.received.Source, source.Attached)
	case t.flagged:
		return source.Memory
	case e.Foreign != source.None && len(scan.From(e.Foreign, prompt.Unquoted(e.Text))) > 0:
		return e.Foreign
	case e.Quote != nil && !e.Quote.Own && len(scan.From(source.Quoted, e.Quote.Author+"\n"+e.Quote.Text)) > 0:
		return source.Quoted
	}
	for i := range e.Parts {
		p := &e.Parts[i]
		if from := source.Item(p.Label); p.Label != "" && !p.Own && len(scan.From(from, p.Name+"\n"+p.Text)) > 0 {
			return from
		}
	}
	return source.None
}
