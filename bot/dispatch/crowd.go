package dispatch

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/zephbot/zephbot/bot"
)

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
		quote:  excerpt(t.first),
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

// excerpt returns the beginning of a message to be quoted, cut between words; "" = nothing that can be quoted.
func excerpt(msg *bot.Message) string {
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
