package dispatch

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
)

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
		msg, err := d.decode(a)
		if err != nil {
			continue // it was decoded when it was gathered
		}
		relocate(&msg, a.Session)
		own := msg.Album()
		if !first && msg.Message != "" && (own == "" || own != album) {
			list = append(list, msg)
		}
		album = own
	}
	d.parts.Signs.Merged(session, list)
}
