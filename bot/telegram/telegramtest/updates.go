package telegramtest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-telegram/bot/models"
)

const (
	maxHold    = 50 * time.Second // the server's cap on getUpdates timeout
	maxBatch   = 100
	updateLife = 24 * time.Hour
)

// updateQueue is what Telegram keeps for the bot until it is confirmed.
type updateQueue struct {
	next    int64
	items   []*queued
	past    map[int64]*queued // for Redeliver
	order   []int64           // of past
	allowed []string          // nil: all but the three that must be asked for
	held    *poll
	wake    chan struct{} // closed and replaced at every arrival
}

type queued struct {
	id       int64
	raw      json.RawMessage
	expires  time.Time
	lane     string // webhook deliveries of one lane are in order
	again    bool   // a duplicate: served once whatever the offset
	attempts int
	chat     int64 // of the message that it brings; 0 = none
	message  int
}

// poll is a getUpdates being held.
type poll struct {
	kicked chan struct{}
	why    string // set before kicked is closed
}

func newUpdateQueue(first int64) updateQueue {
	return updateQueue{next: first, past: map[int64]*queued{}, wake: make(chan struct{})}
}

// mustAsk are the kinds an empty allowed_updates leaves out.
func mustAsk(kind string) bool {
	switch kind {
	case models.AllowedUpdateChatMember, models.AllowedUpdateMessageReaction, models.AllowedUpdateMessageReactionCount:
		return true
	}
	return false
}

func (q *updateQueue) allows(kind string) bool {
	if len(q.allowed) == 0 {
		return !mustAsk(kind)
	}
	return slices.Contains(q.allowed, kind)
}

// push queues an update when the bot asked for its kind, and returns its id, or 0. The lock is held.
func (s *Server) push(kind, lane string, life time.Duration, u *models.Update) int64 {
	if !s.queue.allows(kind) {
		s.touch()
		return 0
	}
	u.ID = s.queue.next
	raw, fail := encode(u)
	if fail != nil {
		s.problems = append(s.problems, fail.text)
		return 0
	}
	s.queue.next++
	item := &queued{id: u.ID, raw: raw, expires: s.opt.Now().Add(life), lane: lane}
	if u.Message != nil {
		item.chat, item.message = u.Message.Chat.ID, u.Message.ID
	}
	s.enqueue(item)
	return u.ID
}

// enqueue appends, remembers and wakes the goroutine that delivers. The lock is held.
func (s *Server) enqueue(item *queued) {
	q := &s.queue
	q.items = append(q.items, item)
	if _, known := q.past[item.id]; !known {
		q.past[item.id] = item
		q.order = append(q.order, item.id)
		if len(q.order) >= 2*s.opt.KeepCalls {
			cut := len(q.order) - s.opt.KeepCalls
			for _, id := range q.order[:cut] {
				delete(q.past, id)
			}
			q.order = slices.Clone(q.order[cut:])
		}
	}
	close(q.wake)
	q.wake = make(chan struct{})
	s.touch()
	s.deliver()
}

// expire forgets updates that nobody fetched in time.
func (q *updateQueue) expire(now time.Time) {
	q.items = slices.DeleteFunc(q.items, func(u *queued) bool { return !now.Before(u.expires) })
}

// confirm forgets what lies before offset. A negative offset keeps that many from the end. An offset beyond the next id
// confirms nothing: after a week of silence ids start again, possibly lower.
func (q *updateQueue) confirm(offset int64) {
	switch {
	case offset < 0:
		keep := int(min(-offset, int64(len(q.items))))
		q.items = slices.Clone(q.items[len(q.items)-keep:])
		return
	case offset > q.next:
		return
	}
	q.items = slices.DeleteFunc(q.items, func(u *queued) bool { return !u.again && u.id < offset })
}

// take returns the next batch; duplicates leave the queue with it.
func (q *updateQueue) take(limit int) []json.RawMessage {
	out := make([]json.RawMessage, 0, min(limit, len(q.items)))
	kept := q.items[:0]
	for _, u := range q.items {
		if len(out) == limit {
			kept = append(kept, u)
			continue
		}
		out = append(out, u.raw)
		if !u.again {
			kept = append(kept, u)
		}
	}
	clear(q.items[len(kept):])
	q.items = kept
	return out
}

// getUpdates confirms, serves, and holds the poll while there is nothing to serve.
func getUpdates(ctx context.Context, s *Server, r *request) (any, *apiError) {
	s.mu.Lock()
	p, batch, fail := s.openPoll(r)
	if fail != nil {
		s.mu.Unlock()
		pause(ctx, s.opt.ConflictDelay)
		return nil, fail
	}
	timer := time.NewTimer(holdTime(r))
	defer timer.Stop()
	limit := batchLimit(r)
	for len(batch) == 0 {
		wake := s.queue.wake
		s.mu.Unlock()
		over := false
		select {
		case <-wake:
		case <-timer.C:
			over = true
		case <-p.kicked:
			pause(ctx, s.opt.ConflictDelay)
			return nil, conflict(p.why)
		case <-ctx.Done():
			over = true
		}
		s.mu.Lock()
		if s.queue.held != p {
			continue // kicked meanwhile: the next round says so
		}
		s.queue.expire(s.opt.Now())
		if ctx.Err() == nil {
			batch = s.queue.take(limit)
		}
		if over {
			break
		}
	}
	if s.queue.held == p {
		s.queue.held = nil
	}
	r.returned = len(batch)
	s.touch()
	s.mu.Unlock()
	return batch, nil
}

// openPoll does what a poll does at once: settings, confirmation, ending an older poll, a first batch. The lock is
// held.
func (s *Server) openPoll(r *request) (*poll, []json.RawMessage, *apiError) {
	q := &s.queue
	if s.loggedOut {
		return nil, nil, badRequest("Logged out")
	}
	if s.hook.url != "" {
		return nil, nil, conflict(webhookIsSet)
	}
	var allowed []string
	if set, fail := r.decode("allowed_updates", &allowed); fail != nil {
		return nil, nil, fail
	} else if set {
		q.allowed = allowed
	}
	s.kickPoll(otherPoller)
	q.expire(s.opt.Now())
	offset, err := r.integer("offset")
	if err != nil {
		offset = 0
	}
	q.confirm(offset)
	p := &poll{kicked: make(chan struct{})}
	q.held = p
	s.touch()
	return p, q.take(batchLimit(r)), nil
}

// kickPoll ends the held poll with a 409. The lock is held.
func (s *Server) kickPoll(why string) {
	if old := s.queue.held; old != nil {
		old.why = why
		close(old.kicked)
		s.queue.held = nil
	}
}

func batchLimit(r *request) int {
	n := r.number("limit")
	if n <= 0 {
		return maxBatch
	}
	return min(n, maxBatch)
}

func holdTime(r *request) time.Duration {
	return min(time.Duration(max(r.number("timeout"), 0))*time.Second, maxHold)
}

// PendingUpdates is the number of updates the bot has not confirmed.
func (s *Server) PendingUpdates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.expire(s.opt.Now())
	return len(s.queue.items)
}

// Unfetched lists the messages of a chat that the bot has not confirmed.
func (s *Server) Unfetched(chat int64) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.expire(s.opt.Now())
	var list []int
	for _, item := range s.queue.items {
		if item.message != 0 && item.chat == chat {
			list = append(list, item.message)
		}
	}
	return list
}

// RawUpdate queues an update as it is, whatever allowed_updates says: oddities, unknown kinds, broken unions. An
// update_id is added when it has none; one it has is kept. It must be a JSON object.
func (s *Server) RawUpdate(update []byte) (int64, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(update, &fields); err != nil {
		return 0, misusef("raw update: want a JSON object: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.queue.next
	if raw, has := fields["update_id"]; has {
		if err := json.Unmarshal(raw, &id); err != nil {
			return 0, misusef("raw update: update_id: %w", err)
		}
	}
	fields["update_id"], _ = json.Marshal(id)
	raw, err := json.Marshal(fields)
	if err != nil {
		return 0, misusef("raw update: %w", err)
	}
	s.queue.next = max(s.queue.next, id+1)
	item := &queued{id: id, raw: raw, expires: s.opt.Now().Add(updateLife), lane: "raw"}
	var brings struct {
		ID   int `json:"message_id"`
		Chat struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	}
	if json.Unmarshal(fields["message"], &brings) == nil { // any oddity may be there
		item.chat, item.message = brings.Chat.ID, brings.ID
	}
	s.enqueue(item)
	return id, nil
}

// Redeliver hands out an update a second time, confirmed or not: once in the next poll, or through the webhook.
func (s *Server) Redeliver(updateID int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.queue.past[updateID]
	if old == nil {
		return misusef("redeliver: no update %d among the last %d", updateID, s.opt.KeepCalls)
	}
	s.enqueue(&queued{
		id:      old.id,
		raw:     old.raw,
		chat:    old.chat,
		message: old.message,
		expires: s.opt.Now().Add(updateLife),
		lane:    old.lane,
		again:   true,
	})
	return nil
}

// JumpID makes next the id of the next update, as happens after a week of silence. It may be lower than ids already
// used. Telegram only does it with an empty queue, so there must be none pending.
func (s *Server) JumpID(next int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.expire(s.opt.Now())
	if n := len(s.queue.items); n > 0 {
		return misusef("jump to update id %d: %d updates are not confirmed yet", next, n)
	}
	s.queue.next = next
	return nil
}
