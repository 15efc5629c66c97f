package sign

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/zephbot/zephbot/bot"
)

// runRound brings the signs of a session in line with its inbox.
func (d *Reactions) runRound(ctx context.Context, key bot.SessionKey, s *session, taken []settled) {
	for i := range taken {
		_ = d.requestReaction(ctx, taken[i].place, taken[i].message, taken[i].sign) // logged there; without it nothing is lost
	}
	err := d.compareSigns(ctx, key, s.marks, taken)
	d.reportError(ctx, err, "signs on waiting messages not shown")
	d.mu.Lock()
	defer d.mu.Unlock()
	s.busy = false
	d.restSession(s)
}

// restSession sets when a session with signs is looked at again. d.mu must be held.
func (d *Reactions) restSession(s *session) {
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

// compareSigns shows and removes signs according to what waits in the session now.
// Messages in taken have their own sign.
func (d *Reactions) compareSigns(
	ctx context.Context, key bot.SessionKey, marks map[int64]*mark, taken []settled,
) error {
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
			d.removeSign(ctx, key, marks, seq, slices.ContainsFunc(taken, func(t settled) bool {
				return t.message == m.Message
			}))
		}
	}
	if lane.Turn == "" {
		return nil
	}
	return d.showSign(ctx, key, marks, slices.DeleteFunc(waiting, func(a bot.Arrival) bool {
		return a.Seq == lane.Arrival || marks[a.Seq] != nil
	}))
}

// showSign shows a sign on waiting messages.
func (d *Reactions) showSign(
	ctx context.Context, key bot.SessionKey, marks map[int64]*mark, waiting []bot.Arrival,
) error {
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
		f := signFact(key, seq, string(value))
		f.Expires = d.deps.Now().Add(keep)
		change.Facts = append(change.Facts, f)
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := d.applyChange(ctx, change); err != nil {
		return err
	}
	for _, seq := range order {
		m := fresh[seq]
		marks[seq] = m
		if err := d.requestReaction(ctx, m.Place, m.Message, Seen); err != nil && isUseless(err) {
			d.forgetSign(ctx, key, marks, seq)
		}
	}
	return nil
}

// markOf returns the sign for a waiting message; commands and what has no message in the chat get none.
func (d *Reactions) markOf(key bot.SessionKey, a *bot.Arrival) (*mark, bool) {
	decoder := d.deps.Decoders[sourceOf(a)]
	if decoder == nil {
		return nil, false
	}
	msg, err := decoder.Decode(a.Raw)
	if err != nil || msg.Kind != bot.Text || msg.Command != "" ||
		msg.Message == "" || msg.FromBot || !msg.Place.Ordinary() ||
		!key.InChat(msg.Place.ChatKey()) || d.isSilenced(msg.Place) {
		return nil, false
	}
	return &mark{Place: msg.Place, Message: msg.Message}, true
}

func sourceOf(a *bot.Arrival) bot.Source {
	if a.Source != "" {
		return a.Source
	}
	return bot.Source(a.Channel)
}

// removeSign removes a sign whose message waits no more, unless another sign has replaced it, and forgets it.
func (d *Reactions) removeSign(
	ctx context.Context, key bot.SessionKey, marks map[int64]*mark, seq int64, replaced bool,
) {
	m := marks[seq]
	if !replaced {
		if m.next.After(d.deps.Now()) {
			return
		}
		err := d.requestReaction(ctx, m.Place, m.Message, "")
		if m.tries++; err != nil && !isUseless(err) && m.tries < tries {
			m.next = d.deps.Now().Add(again << min(m.tries, 5))
			return
		}
	}
	d.forgetSign(ctx, key, marks, seq)
}

// forgetSign deletes a sign from the store.
func (d *Reactions) forgetSign(ctx context.Context, key bot.SessionKey, marks map[int64]*mark, seq int64) {
	if err := d.applyChange(ctx, &bot.Change{Facts: []bot.Fact{signFact(key, seq, "")}}); err != nil {
		d.reportError(ctx, err, "sign not forgotten; it is tried again")
		return
	}
	delete(marks, seq)
}

func signFact(key bot.SessionKey, seq int64, value string) bot.Fact {
	return bot.Fact{Bucket: Bucket, Key: string(key) + "/" + strconv.FormatInt(seq, 10), Value: value}
}

func (d *Reactions) applyChange(ctx context.Context, change *bot.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	_, err := d.deps.Store.Apply(ctx, change)
	return err
}

// requestReaction makes one request. A chat that takes no reactions is left alone for a while.
func (d *Reactions) requestReaction(ctx context.Context, place bot.Place, message, emoji string) error {
	if message == "" || d.isSilenced(place) {
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

// isUseless reports whether repeating a request is useless.
func isUseless(err error) bool {
	switch bot.OutcomeOf(err) {
	case bot.Refused, bot.Gone, bot.Moved, bot.Missing, bot.NoTopic:
		return true
	case bot.NotSent, bot.Throttled, bot.Vague:
	}
	return false
}

// isSilenced reports whether a chat takes no reactions.
func (d *Reactions) isSilenced(place bot.Place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.muted[place.ChatKey()].After(d.deps.Now())
}

func (d *Reactions) reportError(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		d.deps.Log.Warn().Err(err).Msg(what)
	}
}
