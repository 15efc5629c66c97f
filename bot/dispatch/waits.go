package dispatch

// People are told that they have to wait.

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// This file tells people that they have to wait because many are asking. What is said is shown and not stored: it may
// be lost, and it is said again without harm, by the next process too.

const (
	// longWait is how long the last of those who wait would wait if nothing has to be said.
	longWait = 10 * time.Second
	// shortWait is how long somebody has waited at least to whom it is said, and soonTurn what is not worth saying.
	shortWait, soonTurn = 500 * time.Millisecond, 2 * time.Second
	// tellEvery is how often it is looked whom to tell; tellLeast is how many are told each time at least. More are
	// told only if turns have begun meanwhile, four for each, so that telling takes a part of what turns take.
	tellEvery, tellLeast = 500 * time.Millisecond, 100
	// tellAgain is when a draft is shown again, with a new estimate; it disappears after about 30 s.
	tellAgain = 22 * time.Second
	// tellAtOnce limits the requests at once, tellTime one of them, and tellReads how many messages are read each time
	// that another process has stored.
	tellAtOnce, tellTime, tellReads = 8, 5 * time.Second, 16
)

// waiter is a session in the queue. Guarded by Dispatcher.mu; asker is not changed once it is set.
type waiter struct {
	n       int64 // in the order in which they came
	since   time.Time
	asker   *asker // whose message waits; nil = it was not read yet
	told    time.Time
	tried   int           // how often nothing could be shown
	sign    bool          // it has a sign that stays
	telling chan struct{} // closed when the latest request to show something has ended; nil = there was none
}

// asker is who waits for an answer.
type asker struct {
	place                     bot.Place
	person, message, language string
	turn                      string
	arrival                   int64
}

// askerOf returns who waits for the answer to a message; nil for what nobody is told about.
func (d *Dispatcher) askerOf(msg *bot.Message, a *bot.Arrival) *asker {
	if msg.Kind != bot.Text || msg.Command != "" || msg.FromBot || msg.Message == "" || !msg.Place.Ordinary() {
		return nil
	}
	return &asker{
		place:    msg.Place,
		person:   cmp.Or(msg.Person, msg.Caller),
		message:  msg.Message,
		language: msg.Language,
		turn:     d.turnID(a),
		arrival:  a.Seq,
	}
}

// waitsFor says whose message a queued session begins with, if it is not known yet.
func (d *Dispatcher) waitsFor(session bot.SessionKey, who *asker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.queued[session]; w != nil && w.asker == nil {
		w.asker = who
	}
}

// tellLoop tells people that they have to wait, until ctx ends.
func (d *Dispatcher) tellLoop(ctx context.Context) {
	if d.parts.Waits == nil && d.parts.Signs == nil {
		return
	}
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			d.tellWaiting(ctx)
		}
	}
}

// notice is what one session is told.
type notice struct {
	session bot.SessionKey
	waiter  *waiter
	asker   *asker
	wait    time.Duration
	again   bool
	done    chan struct{}
}

// tellWaiting shows who has to wait for how long. It returns when all requests have ended.
func (d *Dispatcher) tellWaiting(ctx context.Context) {
	notices, unread := d.toTell(d.parts.Now())
	for _, session := range unread {
		d.readAsker(ctx, session)
	}
	places, wg := make(chan struct{}, tellAtOnce), sync.WaitGroup{}
	for i := range notices {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			d.tellOne(ctx, &notices[i])
		})
	}
	wg.Wait()
}

// toTell returns who is to be told now, the first first, and sessions whose messages have to be read before.
func (d *Dispatcher) toTell(now time.Time) (notices []notice, unread []bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	budget := max(tellLeast, 4*d.turnout.sum(now, tellEvery))
	if d.turnout.wait(now, len(d.queued)) <= longWait {
		return nil, nil
	}
	var list []notice
	for session, w := range d.queued {
		list = append(list, notice{session: session, waiter: w, asker: w.asker})
	}
	slices.SortFunc(list, func(a, b notice) int { return cmp.Compare(a.waiter.n, b.waiter.n) })
	told := map[string]bool{}
	for i := range list {
		if w := list[i].waiter; w.asker != nil && !w.told.IsZero() {
			told[w.asker.person] = true
		}
	}
	var again []notice
	for i := range list {
		n, w := list[i], list[i].waiter
		n.wait = d.turnout.wait(now, i+1)
		switch {
		case now.Sub(w.since) < shortWait || n.wait < soonTurn:
		case w.asker == nil:
			if len(unread) < tellReads {
				unread = append(unread, n.session)
			}
		case w.told.IsZero() && !told[w.asker.person] && w.asker.message != "":
			told[w.asker.person] = true // once for all that somebody waits for
			notices = append(notices, n)
		case !w.told.IsZero() && !w.sign && now.Sub(w.told) >= tellAgain:
			n.again = true
			again = append(again, n)
		}
	}
	// what could not be shown comes after the others, or those that never can be would keep them back
	slices.SortStableFunc(notices, func(a, b notice) int { return cmp.Compare(a.waiter.tried, b.waiter.tried) })
	notices = append(notices, again...)
	notices = notices[:min(budget, len(notices))]
	for i := range notices {
		notices[i].done = make(chan struct{})
		notices[i].waiter.told = now
	}
	return notices, unread
}

// readAsker reads the message that a session waits with: another process has stored it, or an earlier one.
func (d *Dispatcher) readAsker(ctx context.Context, session bot.SessionKey) {
	next, err := d.parts.Store.Next(ctx, session, 1)
	if err != nil {
		d.report(ctx, err, "read who waits")
		return
	}
	who := &asker{} // nobody to tell
	if len(next) > 0 {
		if msg, err := d.decodeArrival(&next[0]); err == nil {
			relocateMessage(&msg, session)
			who = cmp.Or(d.askerOf(&msg, &next[0]), who)
		}
	}
	d.waitsFor(session, who)
}

// tellOne shows one notice: as a draft where there are drafts, which the answer replaces,
// else as a sign on the message.
func (d *Dispatcher) tellOne(ctx context.Context, n *notice) {
	defer close(n.done)
	d.mu.Lock()
	waits := d.queued[n.session] == n.waiter
	if waits { // only now: an answer must not wait for a request that has not begun
		n.waiter.telling = n.done
	}
	d.mu.Unlock()
	if !waits {
		return
	}
	shown, able := false, false
	if d.parts.Waits != nil {
		ctx, cancel := context.WithTimeout(ctx, tellTime)
		shown, able = d.parts.Waits(
			ctx, n.asker.place, draftOf(n.asker.turn), d.parts.Words.Crowded(n.asker.language, n.wait),
		)
		cancel()
	}
	if !able && d.parts.Signs != nil {
		d.parts.Signs.Crowded(n.session, n.asker.arrival, n.asker.place, n.asker.message)
		shown = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.waiter.sign = !able; !shown && !n.again { // no budget was left: it is tried again
		n.waiter.told = time.Time{}
		n.waiter.tried++
	}
}

// untold waits until nothing is being shown any more that says that the message of a turn waits. Otherwise it could
// appear after the answer.
func (d *Dispatcher) untold(session bot.SessionKey) {
	d.mu.Lock()
	var telling <-chan struct{}
	if j := d.jobs[session]; j != nil {
		telling = j.told
	}
	d.mu.Unlock()
	if telling != nil {
		<-telling // a request ends within tellTime
	}
}

// draftOf returns the id of the draft of a turn.
func draftOf(turn string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn)) // a hash never fails
	return int64(h.Sum32()&0x3fffffff) + 1
}

// turnout counts the sessions that leave the queue, to say how long others have to wait. Guarded by Dispatcher.mu; the
// zero value is ready.
type turnout struct {
	since time.Time // since when there was always one in the queue
	slots [2 * int(longTurnout/turnoutSlot)]turnoutCount
}

type turnoutCount struct {
	slot int64
	n    int
}

const (
	turnoutSlot = 500 * time.Millisecond
	// shortTurnout is the time over which they are counted, longTurnout that where fewer than fewTurnout left in it.
	shortTurnout, longTurnout = 10 * time.Second, time.Minute
	fewTurnout                = 10
)

// note counts one.
func (t *turnout) note(now time.Time) {
	slot := now.UnixNano() / int64(turnoutSlot)
	c := &t.slots[int(slot%int64(len(t.slots)))]
	if c.slot != slot {
		*c = turnoutCount{slot: slot}
	}
	c.n++
}

// sum returns how many have left within the latest time.
func (t *turnout) sum(now time.Time, d time.Duration) (n int) {
	from, to := now.Add(-d).UnixNano()/int64(turnoutSlot), now.UnixNano()/int64(turnoutSlot)
	for _, c := range t.slots {
		if c.slot > from && c.slot <= to {
			n += c.n
		}
	}
	return n
}

// wait estimates how long the session at a place of the queue, from 1 on, has to wait until it leaves it; 0 = the queue
// is too young to say.
func (t *turnout) wait(now time.Time, place int) time.Duration {
	young := now.Sub(t.since)
	if place == 0 || young < shortWait {
		return 0
	}
	span := min(shortTurnout, young)
	n := t.sum(now, span)
	if n < fewTurnout {
		span = min(longTurnout, young)
		n = t.sum(now, span)
	}
	return time.Duration(place) * span / time.Duration(max(1, n))
}

// queuedBehind reports a message that was stored for a session that a worker is busy with.
func (d *Dispatcher) queuedBehind(session bot.SessionKey) {
	d.mu.Lock()
	j := d.jobs[session]
	if j != nil {
		j.followed = true
	}
	d.mu.Unlock()
	if j != nil && d.parts.Signs != nil {
		d.parts.Signs.Waits(session)
	}
}

// behindTurn reports what waits behind the turn of a lane, wherever that runs.
func (d *Dispatcher) behindTurn(lane *bot.Lane, waiting []bot.Arrival) {
	if d.parts.Signs == nil {
		return
	}
	if slices.ContainsFunc(waiting, func(a bot.Arrival) bool { return a.Seq != lane.Arrival }) {
		d.parts.Signs.Waits(lane.Session)
	}
}

// over reports that the turn has ended.
func (w *work) over() {
	d := w.d
	if now := d.parts.Now(); w.crowded() {
		d.mu.Lock()
		d.line.over[w.lane.Session] = now
		d.mu.Unlock()
	}
	if d.parts.Signs != nil {
		d.parts.Signs.Ended(w.lane.Session)
	}
}

// merged reports what a turn has taken along with its first message. The messages of an album need no sign: a client
// shows them as one.
func (d *Dispatcher) merged(session bot.SessionKey, t *task) {
	if d.parts.Signs == nil || len(t.rest) == 0 {
		return
	}
	var list []bot.Message
	album := ""
	for i := range t.waiting {
		a := &t.waiting[i]
		first := a.Seq == t.arrival.Seq
		if !first && !slices.Contains(t.rest, a.Seq) {
			continue
		}
		msg, err := d.decodeArrival(a)
		if err != nil {
			continue // it was decoded when it was gathered
		}
		relocateMessage(&msg, a.Session)
		own := msg.Album()
		if !first && msg.Message != "" && (own == "" || own != album) {
			list = append(list, msg)
		}
		album = own
	}
	d.parts.Signs.Merged(session, list)
}
