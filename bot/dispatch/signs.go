package dispatch

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
)

// queuedBehind reports a message that was stored for a session that a worker is busy with.
func (d *Dispatcher) queuedBehind(session bot.SessionKey) {
	if d.parts.Signs == nil {
		return
	}
	d.mu.Lock()
	busy := d.jobs[session] != nil
	d.mu.Unlock()
	if busy {
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

// ended reports that the turn of a session is over.
func (d *Dispatcher) ended(session bot.SessionKey) {
	if d.parts.Signs != nil {
		d.parts.Signs.Ended(session)
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
