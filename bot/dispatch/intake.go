package dispatch

// Updates are stored before their channel hears that they were accepted. Those that come at the same time are stored
// by one Change, and a message that finds its session idle may begin its turn with it.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// incoming is an update that is being stored.
type incoming struct {
	raw       turn.Raw
	arrival   bot.Arrival
	msg       bot.Message // zero if it cannot be decoded
	moved     *bot.Fact
	talk      []bot.Fact // keeps it, of what people say to each other
	interrupt bool       // a command that may stop the turn in progress
	overtakes bool       // a command that does not wait for the turn in progress
	plain     bool       // a message that begins a turn if its session is idle
	first     *first
}

// Accept stores updates. When it returns nil, each is stored durably exactly once and will be answered even if this
// process dies; only then may the channel confirm them. If it returns an error, no update may be confirmed, and the
// same updates may be accepted again.
func (d *Dispatcher) Accept(ctx context.Context, raws []turn.Raw) error {
	if len(raws) == 0 {
		return nil
	}
	now := d.parts.Now()
	batch := make([]incoming, len(raws))
	for i, raw := range raws {
		batch[i] = d.classifyUpdate(raw, now)
	}
	if err := d.explanations(ctx, batch, now); err != nil {
		d.unstored(ctx, raws, err)
		return fmt.Errorf("look at %d updates: %w", len(raws), err)
	}
	if err := d.overhear(ctx, batch); err != nil {
		d.unstored(ctx, raws, err)
		return fmt.Errorf("look at %d updates: %w", len(raws), err)
	}
	d.recent.note(batch)
	d.expectLife(batch, now)
	d.awaitBeginnings(ctx, batch)
	d.beginFirsts(batch)
	err := d.keepAll(ctx, batch, func(in *incoming) bool { return in.first == nil })
	awaitFirsts(batch)
	if err == nil {
		err = d.keepAll(ctx, batch, func(in *incoming) bool { return in.first != nil && !in.first.begun })
	}
	if err != nil {
		d.unstored(ctx, raws, err)
		return fmt.Errorf("store %d updates: %w", len(raws), err)
	}
	d.outage.over()
	return nil
}

// awaitBeginnings waits, for the commands of a batch that overtake what waits, until the turns that this process begins
// in their sessions are stored. Otherwise a /stop that came to another connection of a webhook would be stored before
// the message that it stops.
func (d *Dispatcher) awaitBeginnings(ctx context.Context, batch []incoming) {
	for i := range batch {
		if batch[i].overtakes {
			d.awaitBeginning(ctx, d.session(&batch[i].msg))
		}
	}
}

// beginningTime is how long a command waits for a turn that begins. The store is in trouble if that is not enough, and
// other commands wait behind this one.
const beginningTime = 5 * time.Second

// awaitBeginning waits until a turn that this process begins in a session is stored, or refused. For its person it runs
// already: a command must not find its message still waiting, or nothing at all.
func (d *Dispatcher) awaitBeginning(ctx context.Context, session bot.SessionKey) {
	d.mu.Lock()
	j := d.jobs[session]
	var begun <-chan struct{}
	if j != nil && j.cancel != nil && !j.held {
		begun = j.beginning
	}
	d.mu.Unlock()
	if begun == nil {
		return
	}
	timer := time.NewTimer(beginningTime)
	defer timer.Stop()
	select {
	case <-begun:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// keepAll stores the updates of a batch that are chosen, as one Change, and announces them.
func (d *Dispatcher) keepAll(ctx context.Context, batch []incoming, chosen func(*incoming) bool) error {
	change := &bot.Change{}
	var list []*incoming
	together := true // with what other requests bring
	for i := range batch {
		if !chosen(&batch[i]) {
			continue
		}
		list = append(list, &batch[i])
		change.Arrive = append(change.Arrive, batch[i].arrival)
		change.Facts = append(change.Facts, batch[i].talk...)
		if batch[i].moved != nil {
			change.Facts = append(change.Facts, *batch[i].moved)
			together = false
		}
	}
	if len(change.Arrive) == 0 {
		return nil
	}
	seqs, err := d.storeArrivals(ctx, change, together)
	if err != nil {
		return err
	}
	for i, in := range list {
		in.arrival.Seq = seqs[i]
	}
	d.announceStored(list)
	return nil
}

// storeArrivals stores arrivals and returns their numbers.
func (d *Dispatcher) storeArrivals(ctx context.Context, change *bot.Change, together bool) ([]int64, error) {
	if together {
		return d.arrivals.store(ctx, d.parts.Store, change)
	}
	applied, err := d.parts.Store.Apply(ctx, change)
	if err != nil {
		return nil, err
	}
	return applied.Seqs, nil
}

// arrivals stores arrivals. Those that come while others are being stored wait until that is done, and are then stored
// together, so that a flood of messages costs the store few Changes. The zero value is ready. Safe for concurrent use.
type arrivals struct {
	mu   sync.Mutex
	busy bool  // a load is being stored
	next *load // comes after it; nil = nothing waits
}

// load are arrivals that are stored together.
type load struct {
	list    []bot.Arrival
	facts   []bot.Fact
	begin   chan struct{} // closed when the load before is done
	done    chan struct{} // closed when this one is
	applied *bot.Applied
	err     error
}

// mostTogether is how many arrivals are stored by one Change.
const mostTogether = 256

// store stores the arrivals and facts of a Change and returns the numbers of the arrivals, 0 for those that were stored
// before.
func (s *arrivals) store(ctx context.Context, to bot.Writer, change *bot.Change) ([]int64, error) {
	list := change.Arrive
	s.mu.Lock()
	l, leads := s.next, false
	switch {
	case !s.busy:
		s.busy, leads = true, true
		l = &load{}
	case l == nil:
		leads = true
		l = &load{begin: make(chan struct{}), done: make(chan struct{})}
		s.next = l
	case len(l.list)+len(list) > mostTogether:
		s.mu.Unlock()
		return storeAlone(ctx, to, change)
	}
	at := len(l.list)
	l.list = append(l.list, list...)
	l.facts = append(l.facts, change.Facts...)
	s.mu.Unlock()
	if !leads {
		<-l.done
	} else {
		s.lead(ctx, to, l)
	}
	switch {
	case l.err == nil:
		return l.applied.Seqs[at : at+len(list)], nil
	case len(l.list) == len(list):
		return nil, l.err
	default: // what is wrong may be another's
		return storeAlone(ctx, to, change)
	}
}

// lead stores a load when it is its turn, and lets the next one begin.
func (s *arrivals) lead(ctx context.Context, to bot.Writer, l *load) {
	if l.begin != nil {
		<-l.begin
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.done != nil {
			close(l.done)
		}
		if s.busy = s.next != nil; s.busy {
			close(s.next.begin)
			s.next = nil
		}
	}()
	l.applied, l.err = to.Apply(ctx, &bot.Change{Arrive: l.list, Facts: l.facts})
}

func storeAlone(ctx context.Context, to bot.Writer, change *bot.Change) ([]int64, error) {
	applied, err := to.Apply(ctx, change)
	if err != nil {
		return nil, err
	}
	return applied.Seqs, nil
}

// announceStored announces what was stored; without it, the sweep would find it a little later. Repeated updates are
// announced again, because the store's reply to the first attempt may have been lost.
func (d *Dispatcher) announceStored(list []*incoming) {
	express := false
	for _, in := range list {
		if in.arrival.Express {
			express = true
			continue
		}
		if in.interrupt {
			express = true
			d.mu.Lock()
			d.breaks[in.arrival.Session] = true
			d.mu.Unlock()
		}
		d.enqueueFor(in.arrival.Session, in.msg.Person)
		if who := d.askerOf(&in.msg, &in.arrival); who != nil && who.arrival != 0 {
			d.waitsFor(in.arrival.Session, who)
		}
		d.queuedBehind(in.arrival.Session)
	}
	if express {
		d.nudge(d.express)
	}
}

// recentIDs is how many updates are remembered; it exceeds what a channel delivers at once.
const recentIDs = 1024

// recent remembers which updates this process accepted lately. Safe for concurrent use; the zero value is ready.
type recent struct {
	mu    sync.Mutex
	known map[string]bool
	ring  []string // the ids in known, in order of arrival, from next on
	next  int
}

// note remembers the updates of a batch.
func (r *recent) note(batch []incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known, r.ring = map[string]bool{}, make([]string, recentIDs)
	}
	for i := range batch {
		id := batch[i].raw.ID
		if r.known[id] {
			continue
		}
		delete(r.known, r.ring[r.next])
		r.known[id], r.ring[r.next] = true, id
		r.next = (r.next + 1) % recentIDs
	}
}

// has reports whether this process accepted an update recently.
func (r *recent) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// arrivalFor returns the arrival for an update.
func (d *Dispatcher) arrivalFor(raw turn.Raw) bot.Arrival {
	return bot.Arrival{
		Channel: d.opts.Channel, Bot: d.opts.Bot, ID: raw.ID, Source: cmp.Or(raw.Source, bot.Source(d.opts.Channel)),
		Raw: raw.Body,
	}
}

// classifyUpdate decides how an update is handled. It must not fail: what cannot be decoded is handled as an express
// arrival and becomes a dead letter.
func (d *Dispatcher) classifyUpdate(raw turn.Raw, now time.Time) incoming {
	in := incoming{raw: raw, arrival: d.arrivalFor(raw)}
	in.arrival.At, in.arrival.Express = now, true
	msg, err := d.decodeArrival(&in.arrival)
	if err != nil {
		d.observe(Observation{What: "update", Kind: "undecodable"})
		return in
	}
	in.msg = msg
	d.observe(Observation{What: "update", Kind: string(msg.Kind)})
	if msg.Kind == bot.Migrated && msg.Target != "" {
		// The move is recorded before anything that was written in the new chat is handled.
		in.moved = &bot.Fact{Bucket: bot.MovedBucket, Key: d.opts.Channel + "/" + msg.Target, Value: msg.Place.Chat}
		return in
	}
	if msg.Kind == bot.Text && !d.addressed(&msg) {
		d.dropContent(&in)
		return in
	}
	if msg.Kind != bot.Text || msg.Caller == "" {
		return in
	}
	class := d.class(&msg)
	if class == turn.Overtakes {
		in.overtakes = true
		return in
	}
	in.arrival.Session, in.arrival.Express = d.session(&msg), false
	in.interrupt = class == turn.Interrupts || d.busy(msg.Caller) == Interrupt
	// what has files is stored before they are read, and what more may belong to before that comes
	in.plain = msg.Command == "" && !msg.HasFiles() && d.awaitTime(&msg) == 0
	return in
}

// dropContent has a message that is not for the bot stored without who said what: its id suffices to tell a repeated
// one. What a group wants kept of it is kept otherwise (overhear).
func (d *Dispatcher) dropContent(in *incoming) {
	raw, err := bot.EncodeMessage(&bot.Message{ID: in.msg.ID, Kind: bot.Text, Place: in.msg.Place})
	if err == nil {
		in.arrival.Source, in.arrival.Raw = bot.FromUnheard, raw
	}
}

// explanations has replies to cards that were just denied handled at once, beside the lane of their sender: they say
// why, and begin no turn. So it has the answers to questions that a turn waits with.
func (d *Dispatcher) explanations(ctx context.Context, batch []incoming, at time.Time) error {
	for i := range batch {
		in := &batch[i]
		if in.arrival.Express {
			continue
		}
		explains, err := d.parts.Explanations.Explains(ctx, &in.msg, at)
		if err != nil {
			return err
		}
		if explains {
			in.arrival.Express, in.arrival.Session = true, ""
			in.interrupt, in.plain = false, false
		}
	}
	return nil
}

// overhear has those messages kept that people say to each other, where their group wants it: those of people whom the
// bot would answer there.
func (d *Dispatcher) overhear(ctx context.Context, batch []incoming) error {
	if d.parts.Talk == nil {
		return nil
	}
	followed := !d.opts.Shared
	for i := range batch {
		in := &batch[i]
		if !followed && in.msg.Place.Group && d.isUnheard(&in.msg) {
			if err := d.parts.Talk.Follow(ctx); err != nil {
				return err
			}
			followed = true
		}
		if !d.isTalk(&in.msg) {
			continue
		}
		verdict, err := d.parts.Guard.Admit(ctx, &in.msg)
		if err != nil {
			return err
		}
		if !verdict.OK {
			continue
		}
		if in.talk, err = d.parts.Talk.Keep(ctx, &in.msg); err != nil {
			return err
		}
	}
	return nil
}

// isTalk reports whether a message is kept as what people say to each other. An edit may have put the bot's name into
// one that was; it replaces what is kept, and nothing else.
func (d *Dispatcher) isTalk(msg *bot.Message) bool {
	return d.parts.Talk != nil && d.isUnheard(msg) && d.parts.Talk.Wants(msg)
}

// isUnheard reports whether a message is not for the bot, or changes one that may not have been.
func (d *Dispatcher) isUnheard(msg *bot.Message) bool {
	return msg.Kind == bot.Edited || msg.Kind == bot.Text && !d.addressed(msg)
}

func (d *Dispatcher) class(msg *bot.Message) turn.Class {
	if msg.Command == "" {
		return turn.Unknown
	}
	return d.parts.Commands.Class(msg.Command)
}

// addressed reports whether a message is meant for the bot.
func (d *Dispatcher) addressed(msg *bot.Message) bool {
	return !msg.Place.Group || msg.Addressed || !msg.FromBot && d.parts.Guard.Rules(msg.Place).AnyMessage
}

// session returns the key of the conversation that a message belongs to.
func (d *Dispatcher) session(msg *bot.Message) bot.SessionKey {
	person := ""
	if msg.Place.Group && !d.parts.Guard.Rules(msg.Place).SharedSession {
		person = msg.Person
	}
	return msg.Place.SessionKey(person)
}

// decodeArrival decodes an arrival with the decoder of its source. It returns bot.ErrForeign if this version of the
// program has no such decoder: if processes of two versions share a store, one of the other version may. Any other
// error is poison. A panic of the decoder becomes an error.
func (d *Dispatcher) decodeArrival(a *bot.Arrival) (msg bot.Message, err error) {
	source := cmp.Or(a.Source, bot.Source(a.Channel))
	decoder := d.parts.Decoders[source]
	if decoder == nil {
		return msg, fmt.Errorf("arrival from the unknown source %q: %w", source, bot.ErrForeign)
	}
	defer func() {
		if p := recover(); p != nil {
			err = poison{fmt.Errorf("decoder panicked: %v", p)}
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("update not decodable")
		}
	}()
	if msg, err = decoder.Decode(a.Raw); err != nil && !errors.Is(err, bot.ErrForeign) {
		err = poison{err}
	}
	if d.parts.Personal != nil && msg.Caller != "" {
		if chosen := d.parts.Personal.Language(msg.Caller, msg.Language); chosen != msg.Language {
			msg.Language, msg.Told = chosen, msg.Language
		}
	}
	return msg, err
}

// relocateMessage gives a message the chat that its session is in now, which differs if the group got a new id since
// the message was written. Message ids of the old chat are not valid in the new one.
func relocateMessage(msg *bot.Message, session bot.SessionKey) {
	if chat := session.Chat(); chat != "" && chat != msg.Place.Chat {
		msg.Place.Chat, msg.Message = chat, ""
	}
}

func ptr[T any](v T) *T { return new(v) }

// empty reports whether a message contains nothing to work on.
func empty(msg *bot.Message) bool {
	return strings.TrimSpace(msg.Text) == "" && len(msg.Files) == 0 && msg.Reply == nil
}
