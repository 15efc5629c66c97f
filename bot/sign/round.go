package sign

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/zephbot/zephbot/bot"
)

// round brings the signs of a session in line with its inbox.
func (d *Reactions) round(ctx context.Context, key bot.SessionKey, s *session, taken []bot.Message) {
	for i := range taken {
		_ = d.react(ctx, taken[i].Place, taken[i].Message, Taken) // logged there; without it nothing is lost
	}
	err := d.compare(ctx, key, s.marks, taken)
	d.report(ctx, err, "signs on waiting messages not shown")
	d.mu.Lock()
	defer d.mu.Unlock()
	s.busy = false
	d.rest(s)
}

// rest sets when a session with signs is looked at again. d.mu must be held.
func (d *Reactions) rest(s *session) {
	wait := again
	if s.crowd {
		wait = others
	}
	next := d.deps.Now().Add(wait)
	if len(s.marks) > 0 && (s.due.IsZero() || s.due.After(next)) {
		s.due = next
	}
	d.nudge()
}

// compare shows and removes signs according to what waits in the session now. Messages in taken have their own sign.
func (d *Reactions) compare(ctx context.Context, key bot.SessionKey, marks map[int64]*mark, taken []bot.Message) error {
	lane, err := d.deps.Store.Lane(ctx, key)
	if err != nil {
		return err
	}
	waiting, err := d.deps.Store.Next(ctx, key, lookAhead)
	if err != nil {
		return err
	}
	for seq, m := range marks {
		waits := slices.ContainsFunc(waiting, func(a bot.Arrival) bool { return a.Seq == seq })
		if !waits && (len(waiting) < lookAhead || seq < waiting[lookAhead-1].Seq) {
			d.remove(ctx, key, marks, seq, slices.ContainsFunc(taken, func(t bot.Message) bool {
				return t.Message == m.Message
			}))
		}
	}
	if lane.Turn == "" {
		return nil
	}
	return d.show(ctx, key, marks, slices.DeleteFunc(waiting, func(a bot.Arrival) bool {
		return a.Seq == lane.Arrival || marks[a.Seq] != nil
	}))
}

// show shows a sign on waiting messages.
func (d *Reactions) show(ctx context.Context, key bot.SessionKey, marks map[int64]*mark, waiting []bot.Arrival) error {
	change, fresh := &bot.Change{}, map[int64]*mark{}
	var order []int64
	for i := range waiting {
		m, ok := d.markOf(key, &waiting[i])
		if !ok || len(marks)+len(fresh) >= most {
			continue
		}
		value, err := json.Marshal(m)
		if err != nil {
			return err
		}
		seq := waiting[i].Seq
		fresh[seq], order = m, append(order, seq)
		f := fact(key, seq, string(value))
		f.Expires = d.deps.Now().Add(keep)
		change.Facts = append(change.Facts, f)
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := d.apply(ctx, change); err != nil {
		return err
	}
	for _, seq := range order {
		m := fresh[seq]
		marks[seq] = m
		if err := d.react(ctx, m.Place, m.Message, Seen); err != nil && never(err) {
			d.forget(ctx, key, marks, seq)
		}
	}
	return nil
}

// markOf returns the sign for a waiting message; commands and what has no message in the chat get none.
func (d *Reactions) markOf(key bot.SessionKey, a *bot.Arrival) (*mark, bool) {
	decoder := d.deps.Decoders[source(a)]
	if decoder == nil {
		return nil, false
	}
	msg, err := decoder.Decode(a.Raw)
	if err != nil || msg.Kind != bot.Text || msg.Command != "" || msg.Message == "" || msg.FromBot || !msg.Place.Ordinary() ||
		!key.InChat(msg.Place.ChatKey()) || d.silenced(msg.Place) {
		return nil, false
	}
	return &mark{Place: msg.Place, Message: msg.Message}, true
}

func source(a *bot.Arrival) bot.Source {
	if a.Source != "" {
		return a.Source
	}
	return bot.Source(a.Channel)
}

// remove removes a sign whose message waits no more, unless another sign has replaced it, and forgets it.
func (d *Reactions) remove(ctx context.Context, key bot.SessionKey, marks map[int64]*mark, seq int64, replaced bool) {
	m := marks[seq]
	if !replaced {
		if m.next.After(d.deps.Now()) {
			return
		}
		err := d.react(ctx, m.Place, m.Message, "")
		if m.tries++; err != nil && !never(err) && m.tries < tries {
			m.next = d.deps.Now().Add(again << min(m.tries, 5))
			return
		}
	}
	d.forget(ctx, key, marks, seq)
}

// forget deletes a sign from the store.
func (d *Reactions) forget(ctx context.Context, key bot.SessionKey, marks map[int64]*mark, seq int64) {
	if err := d.apply(ctx, &bot.Change{Facts: []bot.Fact{fact(key, seq, "")}}); err != nil {
		d.report(ctx, err, "sign not forgotten; it is tried again")
		return
	}
	delete(marks, seq)
}

func fact(key bot.SessionKey, seq int64, value string) bot.Fact {
	return bot.Fact{Bucket: Bucket, Key: string(key) + "/" + strconv.FormatInt(seq, 10), Value: value}
}

func (d *Reactions) apply(ctx context.Context, change *bot.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	_, err := d.deps.Store.Apply(ctx, change)
	return err
}

// react makes one request. A chat that takes no reactions is left alone for a while.
func (d *Reactions) react(ctx context.Context, place bot.Place, message, emoji string) error {
	if message == "" || d.silenced(place) {
		return &bot.SendError{Outcome: bot.Refused, Err: errors.New("no reactions here")}
	}
	if d.deps.Pacer != nil && d.deps.Pacer.Frozen(place) {
		return &bot.SendError{Outcome: bot.Throttled, Err: errors.New("the chat has to wait")}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	err := d.deps.Reactor.React(ctx, place, message, emoji)
	if err == nil {
		return nil
	}
	d.deps.Log.Debug().Err(err).Str("chat", place.ChatKey()).Msg("sign not shown")
	failed, _ := errors.AsType[*bot.SendError](err)
	switch {
	case failed == nil:
	case failed.Outcome == bot.Throttled && d.deps.Pacer != nil:
		d.deps.Pacer.Freeze(place, failed.RetryAfter)
	case failed.Outcome == bot.Refused || failed.Outcome == bot.Gone:
		d.mu.Lock()
		d.muted[place.ChatKey()] = d.deps.Now().Add(mute)
		d.mu.Unlock()
	}
	return err
}

// never reports whether repeating a request is useless.
func never(err error) bool {
	switch bot.OutcomeOf(err) {
	case bot.Refused, bot.Gone, bot.Moved, bot.Missing, bot.NoTopic:
		return true
	case bot.NotSent, bot.Throttled, bot.Vague:
	}
	return false
}

// silenced reports whether a chat takes no reactions.
func (d *Reactions) silenced(place bot.Place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.muted[place.ChatKey()].After(d.deps.Now())
}

func (d *Reactions) report(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		d.deps.Log.Warn().Err(err).Msg(what)
	}
}
