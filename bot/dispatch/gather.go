package dispatch

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot"
)

// albumWait is how long the next message of an album may take. A client sends the messages of an album one after the
// other, and the Bot API does not say how many there are.
const albumWait = 800 * time.Millisecond

// splitPaste is the length in characters from which on a message may be one part of a text that a client split: clients
// cut at 4096, at a boundary of words.
const splitPaste = 4000

// dateGrain is the grain of Message.At: the Bot API tells whole seconds.
const dateGrain = time.Second

// gathered is what one turn works on: the messages at the head of a session's inbox that belong together.
type gathered struct {
	msg  bot.Message // of all of them
	rest []int64     // the arrivals behind the first
	due  time.Time   // more may come until then; zero = the turn may begin
}

// gather takes the messages together that a person sent at once: an album, several forwarded messages, the parts of a
// long text, and what was written within Options.Merge of the message before it and had arrived when the turn begins.
// It decides from what is stored, so every process, and the next one after a crash, finds the same messages. first is the
// first arrival, decoded.
func (d *Dispatcher) gather(waiting []bot.Arrival, first bot.Message) gathered {
	first.Heard = heardOf(&first, waiting[0].ID)
	g := gathered{msg: first}
	if !d.gathers(&first) || waiting[0].Source == bot.FromSchedule {
		return g
	}
	last, n := first, 1
	for ; n < len(waiting); n++ {
		next, err := d.decode(&waiting[n])
		if err != nil || waiting[n].Source == bot.FromSchedule || !d.follows(&last, &next, waiting[n].At.Sub(waiting[n-1].At)) {
			return g
		}
		relocate(&next, waiting[n].Session)
		next.Heard = heardOf(&next, waiting[n].ID)
		g.add(&next, waiting[n].Seq)
		last = next
	}
	if n == lookAhead {
		return g
	}
	if wait := d.awaits(&last); wait > 0 {
		g.due = d.due(waiting[0].Session, waiting[n-1].Seq, wait)
	}
	return g
}

// due returns until when more may follow an arrival, or zero once that is over. It counts from when this process first
// looked at it: the time stored with it can be of another process, whose clock is wrong.
func (d *Dispatcher) due(session bot.SessionKey, seq int64, wait time.Duration) time.Time {
	now := d.parts.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	l, known := d.awaited[session]
	if !known || l.seq != seq {
		d.tidy(now)
		l = lookout{seq: seq, due: now.Add(wait)}
		d.awaited[session] = l
	}
	if !l.due.After(now) {
		delete(d.awaited, session)
		return time.Time{}
	}
	return l.due
}

// manyAwaited is how many lookouts are kept before those are forgotten whose messages were dropped meanwhile.
const manyAwaited = 1024

// tidy forgets lookouts that nobody came back to. mu is held.
func (d *Dispatcher) tidy(now time.Time) {
	if len(d.awaited) >= manyAwaited {
		maps.DeleteFunc(d.awaited, func(_ bot.SessionKey, l lookout) bool { return now.Sub(l.due) > time.Minute })
	}
}

// gathers says whether a message may be worked on together with the next one.
func (d *Dispatcher) gathers(msg *bot.Message) bool {
	if msg.Place.Guest() { // each question has to be answered
		return false
	}
	return msg.Kind == bot.Text && msg.Command == "" && (msg.Album() != "" || d.opts.Merge > 0 && msg.Reply == nil)
}

// follows says whether a message belongs to the one before it, which arrived so long before. After an outage many
// messages arrive together that were written one by one: their dates tell them apart.
func (d *Dispatcher) follows(last, next *bot.Message, gap time.Duration) bool {
	if next.Person != last.Person || !d.gathers(next) {
		return false
	}
	if album := next.Album(); album != "" || last.Album() != "" {
		if album == last.Album() {
			return true
		}
	}
	return d.opts.Merge > 0 && last.Reply == nil && next.Reply == nil && d.atOnce(gap, next.At.Sub(last.At))
}

// atOnce reports whether two messages were written at once: by their dates, and by when they arrived, which is finer.
// Where arrival and dates disagree by more than the grain of dates, one was delayed on its way, or two processes with
// different clocks stored them; then the dates decide.
func (d *Dispatcher) atOnce(gap, dates time.Duration) bool {
	if dates > d.opts.Merge+dateGrain {
		return false
	}
	return gap <= d.opts.Merge || gap > dates+2*dateGrain
}

// awaits is how long the next message may take that belongs to this one; 0 = none is to be expected, so that nobody
// waits after an ordinary message.
func (d *Dispatcher) awaits(msg *bot.Message) time.Duration {
	switch {
	case msg.Album() != "":
		return albumWait
	case d.gathers(msg) && (msg.Forwarded || utf8.RuneCountInString(msg.Text) >= splitPaste):
		return d.opts.Merge
	default:
		return 0
	}
}

// add puts a message behind the others.
func (g *gathered) add(msg *bot.Message, seq int64) {
	texts := []string{g.msg.Text, msg.Text}
	if strings.TrimSpace(g.msg.Text) == "" || strings.TrimSpace(msg.Text) == "" {
		texts = []string{g.msg.Text + msg.Text}
	}
	g.msg.Text = strings.Join(texts, "\n")
	g.msg.Files = append(slices.Clip(g.msg.Files), msg.Files...)
	g.msg.Forwarded = g.msg.Forwarded || msg.Forwarded
	g.msg.Heard = append(slices.Clip(g.msg.Heard), msg.Heard...)
	g.rest = append(g.rest, seq)
}

// pauses are sessions that are looked at again at a certain time. Guarded by Dispatcher.mu.
type pauses struct {
	paused  map[bot.SessionKey]*time.Timer
	awaited map[bot.SessionKey]lookout // what may be followed by more
}

// lookout is an arrival that more may follow until due.
type lookout struct {
	seq int64
	due time.Time
}

// pause has a session looked at again when it is due. No worker waits for it.
func (d *Dispatcher) pause(session bot.SessionKey, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns == nil {
		return // the service ends: the next process begins the turn
	}
	if t := d.paused[session]; t != nil {
		t.Stop()
	}
	d.paused[session] = time.AfterFunc(due.Sub(d.parts.Now()), func() {
		d.mu.Lock()
		delete(d.paused, session)
		d.mu.Unlock()
		d.enqueue(session)
	})
}

// endPauses forgets all pauses.
func (d *Dispatcher) endPauses() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for session, t := range d.paused {
		t.Stop()
		delete(d.paused, session)
	}
}
