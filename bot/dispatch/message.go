package dispatch

// What one turn works on: the messages that a person sent at once, and their files.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// gathered is what one turn works on: the messages at the head of a session's inbox that belong together.
type gathered struct {
	msg  bot.Message // of all of them
	rest []int64     // the arrivals behind the first
	due  time.Time   // more may come until then; zero = the turn may begin
}

// gatherMessages takes the messages together that a person sent at once: an album, several forwarded messages, the
// parts of a long text, and what was written within Options.Merge of the message before it and had arrived when the
// turn begins. It decides from what is stored, so every process, and the next one after a crash, finds the same
// messages. first is the first arrival, decoded.
func (d *Dispatcher) gatherMessages(waiting []bot.Arrival, first bot.Message) gathered {
	first.Heard = heardOf(&first, waiting[0].ID)
	g := gathered{msg: first}
	if !d.mayGather(&first) || waiting[0].Source.Unsent() {
		return g
	}
	last, n := first, 1
	for ; n < len(waiting); n++ {
		next, err := d.decodeArrival(&waiting[n])
		if err != nil || waiting[n].Source.Unsent() ||
			!d.followsMessage(&last, &next, waiting[n].At.Sub(waiting[n-1].At)) {
			return g
		}
		relocateMessage(&next, waiting[n].Session)
		next.Heard = heardOf(&next, waiting[n].ID)
		g.add(&next, waiting[n].Seq)
		last = next
	}
	if n == lookAhead {
		return g
	}
	if wait := d.awaitTime(&last); wait > 0 {
		g.due = d.due(waiting[0].Session, waiting[n-1].Seq, wait)
	}
	return g
}

// albumWait is how long the next message of an album may take. A client sends the messages of an album one after the
// other, and the Bot API does not say how many there are.
const albumWait = 800 * time.Millisecond

// splitPaste is the length in characters from which on a message may be one part of a text that a client split: clients
// cut at 4096, at a boundary of words.
const splitPaste = 4000

// dateGrain is the grain of Message.At: the Bot API tells whole seconds.
const dateGrain = time.Second

// due returns until when more may follow an arrival, or zero once that is over. It counts from when this process first
// looked at it: the time stored with it can be of another process, whose clock is wrong.
func (d *Dispatcher) due(session bot.SessionKey, seq int64, wait time.Duration) time.Time {
	now := d.parts.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	l, known := d.awaited[session]
	if !known || l.seq != seq {
		d.forgetLookouts(now)
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

// forgetLookouts forgets lookouts that nobody came back to. mu is held.
func (d *Dispatcher) forgetLookouts(now time.Time) {
	if len(d.awaited) >= manyAwaited {
		maps.DeleteFunc(d.awaited, func(_ bot.SessionKey, l lookout) bool { return now.Sub(l.due) > time.Minute })
	}
}

// mayGather says whether a message may be worked on together with the next one.
func (d *Dispatcher) mayGather(msg *bot.Message) bool {
	if msg.Place.Guest() { // each question has to be answered
		return false
	}
	return msg.Kind == bot.Text && msg.Command == "" && (msg.Album() != "" || d.opts.Merge > 0 && msg.Reply == nil)
}

// followsMessage says whether a message belongs to the one before it, which arrived so long before. After an outage
// many messages arrive together that were written one by one: their dates tell them apart.
func (d *Dispatcher) followsMessage(last, next *bot.Message, gap time.Duration) bool {
	if next.Person != last.Person || !d.mayGather(next) {
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

// awaitTime is how long the next message may take that belongs to this one; 0 = none is to be expected, so that nobody
// waits after an ordinary message.
func (d *Dispatcher) awaitTime(msg *bot.Message) time.Duration {
	switch {
	case msg.Album() != "":
		return albumWait
	case d.mayGather(msg) && (msg.Forwarded || utf8.RuneCountInString(msg.Text) >= splitPaste):
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

// lookout is an arrival that more may follow until due.
type lookout struct {
	seq int64
	due time.Time
}

// pauseSession has a session looked at again when it is due. No worker waits for it.
func (d *Dispatcher) pauseSession(session bot.SessionKey, due time.Time) {
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

// task is an arrival that a worker handles.
type task struct {
	arrival   *bot.Arrival
	msg       *bot.Message // in the chat that its session is in now
	verdict   turn.Verdict
	rules     turn.Rules
	reachable bool          // somebody could approve what the person asks for
	waiting   []bot.Arrival // waiting arrivals of its session, as far as they were read
	rest      []int64       // further arrivals that the turn works on
	// what became of its files; nil = nobody has read them
	received *turn.Received
	first    *bot.Message // the message of arrival alone
	manner   turn.Manner
	reminder
	talk turn.Talk
}

// task decodes an arrival. Access and rules are those of the chat where the message was written; the answer is sent to
// the chat that its session is in now.
func (d *Dispatcher) task(ctx context.Context, a *bot.Arrival) (*task, error) {
	msg, err := d.decodeArrival(a)
	if err != nil {
		return nil, err
	}
	return d.taskOf(ctx, a, msg)
}

// taskOf is task for an arrival that has been decoded.
func (d *Dispatcher) taskOf(ctx context.Context, a *bot.Arrival, msg bot.Message) (*task, error) {
	verdict, err := d.parts.Guard.Admit(ctx, &msg)
	if err != nil {
		return nil, fmt.Errorf("check who may talk: %w", err)
	}
	if verdict.Payer != "" {
		msg.Caller = verdict.Payer
	}
	rules := d.parts.Guard.Rules(msg.Place)
	relocateMessage(&msg, a.Session)
	first := msg
	t := &task{arrival: a, msg: &msg, first: &first, verdict: verdict, rules: rules}
	if verdict.OK {
		caller := msg.Caller
		if msg.FromBot { // it presses no buttons
			caller = ""
		}
		if t.reachable, err = d.parts.Approvals.Reachable(ctx, msg.Place, caller); err != nil {
			return nil, fmt.Errorf("check who may approve: %w", err)
		}
	}
	return t, nil
}

// intersectTools says which tools two allow-lists have; nil = all.
func intersectTools(a, b func(tool string) bool) func(tool string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return func(tool string) bool { return a(tool) && b(tool) }
	}
}

// toolOverlay returns how the tools of a turn differ from all tools. Added tools that are unsound are left out.
func (d *Dispatcher) toolOverlay(allowed func(tool string) bool, added []tools.Tool) *tools.Overlay {
	if len(added) == 0 {
		return tools.Only(allowed)
	}
	var takes func(tool string) bool
	if allowed != nil {
		takes = func(tool string) bool { return !allowed(tool) }
	}
	o, err := tools.NewOverlay(takes, added...)
	if err != nil {
		d.parts.Log.Error().Err(err).Msg("tools of a channel cannot be used")
		return tools.Only(allowed)
	}
	return o
}

// isPrivate reports whether nobody but the writer of a message reads its chat.
func isPrivate(msg *bot.Message) bool {
	return !msg.Place.Group && msg.Place.Ordinary() && msg.Caller != "" && !msg.FromBot
}

// readManner finds out how a turn is to be answered. What cannot be read is left out.
func (d *Dispatcher) readManner(ctx context.Context, session bot.SessionKey, t *task) {
	if d.parts.Manner == nil {
		return
	}
	var err error
	t.manner, err = d.parts.Manner(ctx, session, t.msg)
	d.report(ctx, err, "read how a person wants to be answered")
}

// turnOf returns what the Runner needs to know about a turn.
func (d *Dispatcher) turnOf(lane *bot.Lane, t *task) *agent.Turn {
	place, manner := t.msg.Place, &t.manner
	overlay := d.toolOverlay(intersectTools(t.rules.Allowed, t.verdict.Allowed), t.rules.Added)
	if manner.Narrow != nil {
		overlay = manner.Narrow(overlay)
	}
	return &agent.Turn{
		Model: manner.Model, Persona: manner.Persona, Own: manner.Own,
		ID: lane.Turn, Request: requestID(lane.Turn), System: t.rules.System,
		Tools: overlay, Group: place.Group, Shared: place.Group && t.rules.SharedSession,
		Origin: tools.Origin{
			Channel: place.Channel, Session: string(lane.Session), Workspace: lane.Workspace, Chat: place.ChatKey(),
			Turn:   lane.Turn,
			Caller: t.msg.Caller, Name: t.msg.Signature(), Admin: t.verdict.Admin,
			Private: isPrivate(t.msg),
			Alone:   !t.reachable,
			Unattended: d.opts.Unattended || t.arrival.Source.Unsent() || t.msg.FromBot ||
				!place.Ordinary(),
		},
	}
}

// typingEvery is how often it is shown that something is being done: a client shows it for some 5 s.
const typingEvery = 4 * time.Second

// errEnds ends the reading of files because the service ends: nothing of it is stored, so nobody waits for it.
var errEnds = errors.New("the service ends")

// errReplaced ends the reading of files because their message was edited: it is read again as it is now.
var errReplaced = errors.New("the message was edited")

// receiveFiles reads the files of a message before its turn begins. Nothing of the turn is stored yet: a process that
// dies meanwhile leaves a message that waits, whose files are read again. False: the turn does not begin; more says
// whether to look at the session again.
func (d *Dispatcher) receiveFiles(
	ctx context.Context, lane *bot.Lane, t *task, j *job, payer cost.Payer, charges []bot.Charge,
) (more, ok bool) {
	if !t.msg.HasFiles() || d.parts.Attachments == nil {
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
	stop := d.showTyping(reading, t.msg.Place)
	got, err := d.parts.Attachments.Receive(cost.WithPayer(reading, payer), &turn.Sent{
		Message:   t.msg,
		Session:   lane.Session,
		Workspace: d.laneClaim(lane, t.msg.Place).Workspace,
		Turn:      d.turnID(t.arrival),
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
		return d.countFailure(ctx, lane.Session, t.arrival, fmt.Errorf("read what came along: %w", err)), false
	}
}

// showTyping shows that something is being done until stop is called.
func (d *Dispatcher) showTyping(ctx context.Context, place bot.Place) (stop func()) {
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

// unreadParts are the files of a message, and of the one that it replies to, as parts whose content nobody has read.
func unreadParts(msg *bot.Message) (parts []llm.Part) {
	add := func(files []bot.Attachment, quoted bool) {
		for i := range files {
			f := &files[i]
			parts = append(parts, llm.Part{
				Kind: f.Part(), Type: f.MIME, Name: f.Name, Size: f.Size, Label: f.Kind, Text: f.Note, Quoted: quoted,
			})
		}
	}
	if msg.Reply != nil {
		add(msg.Reply.Files, true)
	}
	add(msg.Files, false)
	return parts
}

// firstEntry is the journal's first line of a turn.
func (d *Dispatcher) firstEntry(t *task, turn string, news turn.News, now time.Time) journal.Entry {
	msg := t.msg
	e := journal.Entry{
		Turn:    turn,
		Kind:    journal.UserEntry,
		At:      now,
		Text:    strings.TrimSpace(msg.Text),
		Speaker: msg.Name,
		Caller:  msg.Caller,
		News:    news.Text,
	}
	e.Heard, e.Scheduled = heardOf(msg, t.arrival.ID), t.arrival.Source == bot.FromSchedule
	if t.received == nil {
		e.Parts = unreadParts(msg)
	} else {
		e.Parts, e.USD = t.received.Parts, t.received.USD
	}
	e.Recalled, e.Talk = t.recalled, t.talk.Said
	switch {
	case msg.Hook != "":
		e.Foreign = source.Hook(msg.Hook)
	case msg.Forwarded:
		e.Foreign = source.Forwarded
	}
	if msg.Reply != nil {
		e.Quote = &journal.Quote{
			Author:    msg.Reply.Author,
			Caller:    msg.Reply.Caller,
			Own:       msg.Reply.Own,
			Text:      msg.Reply.Text,
			Elsewhere: msg.Reply.Elsewhere,
			Chat:      msg.Reply.Chat,
		}
	}
	if e.Source = flaggedSource(&e, t, news.Flagged); e.Source != source.None {
		e.Flagged = true
	}
	return e
}

// flaggedSource returns the source of what comes with a message and tries to give instructions; None = nothing does.
func flaggedSource(e *journal.Entry, t *task, news bool) source.Source {
	switch {
	case news:
		return source.Background
	case t.received != nil && t.received.Flagged:
		return cmp.Or(t.received.Source, source.Attached)
	case t.flagged:
		return source.Memory
	case e.Foreign != source.None && len(scan.From(e.Foreign, prompt.Unquoted(e.Text))) > 0:
		return e.Foreign
	case e.Quote != nil && !e.Quote.Own && len(scan.From(source.Quoted, e.Quote.Author+"\n"+e.Quote.Chat+"\n"+e.Quote.Text)) > 0:
		return source.Quoted
	}
	for i := range e.Talk {
		if r := &e.Talk[i]; len(scan.From(source.Talk, r.Name+"\n"+r.Text)) > 0 {
			return source.Talk
		}
	}
	for i := range e.Parts {
		p := &e.Parts[i]
		if from := source.Item(p.Label); p.Label != "" && !p.Own && len(scan.From(from, p.Name+"\n"+p.Text)) > 0 {
			return from
		}
	}
	return source.None
}
