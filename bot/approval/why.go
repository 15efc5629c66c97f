package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// Why is the choice by which a channel hands in, as the text of a press, why its person has denied.
const Why = "w"

// WhyFor is how long after a denial its person can say why.
const WhyFor = 5 * time.Minute

const (
	// whyBucket holds the questions that were denied, by chat and message of their cards: a reply to one of them is
	// looked up here.
	whyBucket = "why"
	// whyKept is longer than WhyFor, because a reply that came in time may be handled after a restart.
	whyKept = 24 * time.Hour
	// reasonBucket holds what was said and no model has read, by session, time and arrival.
	reasonBucket = "why_said"
	reasonKept   = 30 * 24 * time.Hour
	// quotedLength is how much of a command the model is reminded of, in UTF-16 units.
	quotedLength = 200
)

// offerWhy adds to the Change of a denial that its person can say why, by replying to the card. It reports whether they
// can: not where there are no replies, or nothing to reply to, and not if no model would read it.
func (b *Broker) offerWhy(ctx context.Context, a *bot.Approval, msg *bot.Message, change *bot.Change) (offered bool) {
	if !b.deps.Replies || a.Turn == "" || a.Turn == string(a.Session) { // the last: a job, not a conversation
		return false
	}
	cards := map[string]bool{}
	if msg.Kind == bot.Press {
		cards[msg.Message] = true
	}
	place := a.Place
	if IsHidden(a) { // the card is where it was denied
		place = msg.Place
	} else if row, err := b.deps.Store.Row(ctx, a.Row); err == nil {
		cards[row.Message] = true
	}
	delete(cards, "")
	for _, message := range slices.Sorted(maps.Keys(cards)) {
		change.Facts = append(change.Facts, bot.Fact{
			Bucket: whyBucket, Key: whyKey(place, message), Value: a.ID, Expires: b.deps.Now().Add(whyKept),
		})
	}
	return len(cards) > 0
}

func whyKey(place bot.Place, message string) string { return place.ChatKey() + "/" + message }

// mayExplain reports whether a person can say at a time why a question was denied: the one who denied it, for a while.
func mayExplain(a *bot.Approval, caller string, at time.Time) bool {
	return a.State == bot.Denied && a.By != "" && a.By == caller && !at.After(a.Decided.Add(WhyFor))
}

// Explains implements turn.Explanations.
func (b *Broker) Explains(ctx context.Context, msg *bot.Message, at time.Time) (bool, error) {
	a, err := b.explainedQuestion(ctx, msg)
	if err != nil || a != nil && mayExplain(a, msg.Caller, at) {
		return err == nil, err
	}
	if b.deps.Inquiries == nil {
		return false, nil
	}
	asked, err := b.deps.Inquiries.Awaits(ctx, msg, at)
	return asked != nil, err
}

// explainedQuestion returns the denied question whose card a message replies to with nothing
// but words; nil = there is none.
func (b *Broker) explainedQuestion(ctx context.Context, msg *bot.Message) (*bot.Approval, error) {
	reply := msg.Kind == bot.Text && msg.Reply != nil && msg.Reply.Own && msg.Reply.ID != ""
	if !reply || msg.Command != "" || msg.Forwarded || msg.FromBot ||
		msg.Caller == "" || len(msg.Files) > 0 || strings.TrimSpace(msg.Text) == "" {
		return nil, nil
	}
	id, err := b.deps.Store.Fact(ctx, whyBucket, whyKey(msg.Place, msg.Reply.ID), b.deps.Now())
	if err != nil || id == "" {
		return nil, err
	}
	a, err := b.deps.Store.Approval(ctx, id)
	if errors.Is(err, bot.ErrNotFound) { // it was tidied up
		return nil, nil
	}
	return &a, err
}

// Explain implements turn.Explanations.
func (b *Broker) Explain(ctx context.Context, msg *bot.Message, at time.Time) (turn.Effect, error) {
	reply := func(text string) bot.Row {
		row := bot.Row{Place: msg.Place, Purpose: bot.Reply, Content: bot.Content{Text: text, Language: msg.Language}}
		if msg.Place.Group {
			row.ReplyTo = msg.Message
		}
		return row.Aside(msg)
	}
	a, err := b.explainedQuestion(ctx, msg)
	if err != nil {
		return turn.Effect{}, err
	}
	say := func(text string, _ bool) bot.Row { return reply(text) }
	if a == nil && b.deps.Inquiries != nil {
		return b.answerInquiry(ctx, msg, at, say)
	}
	return b.explainDenial(ctx, a, msg, at, say)
}

// explainDenial hands a reason to the model: to the turn, if it goes on, otherwise to the next one of the conversation.
func (b *Broker) explainDenial(
	ctx context.Context, a *bot.Approval, msg *bot.Message, at time.Time,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	text := strings.TrimSpace(msg.Text)
	if a == nil || text == "" || !mayExplain(a, msg.Caller, at) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.WhyLate(msg.Language), true)}}}, nil
	}
	info, err := readGrant(a)
	if err != nil {
		return turn.Effect{}, err
	}
	lane, err := b.deps.Store.Lane(ctx, a.Session)
	if err != nil && !errors.Is(err, bot.ErrNotFound) {
		return turn.Effect{}, err
	}
	raw, err := json.Marshal(denial{
		Call:   a.Call,
		Tool:   a.Tool,
		About:  render.Cut(shownCall(info.Question), quotedLength),
		Text:   text,
		Name:   signerName(a, msg),
		Caller: msg.Caller,
		At:     at,
	})
	if err != nil {
		return turn.Effect{}, fmt.Errorf("reason: %w", err)
	}
	return turn.Effect{
		Change: bot.Change{
			Facts: []bot.Fact{{
				Bucket:  reasonBucket,
				Key:     fmt.Sprintf("%s/%020d/%s", a.Session, at.UnixNano(), msg.ID),
				Value:   string(raw),
				Expires: b.deps.Now().Add(reasonKept),
			}},
			Send: []bot.Row{say(b.deps.Words.WhyNoted(msg.Language, lane.Turn != ""), false)},
		},
		Then: func(context.Context, *bot.Applied) (turn.Effect, error) {
			b.reasons.noteSession(a.Session)
			return turn.Effect{}, nil
		},
	}, nil
}

// denial is what somebody has said about their denial, until the model has read it.
type denial struct {
	Call   string    `json:"call"`
	Tool   string    `json:"tool"`
	About  string    `json:"about"` // the beginning of what was denied
	Text   string    `json:"text"`
	Name   string    `json:"name"`
	Caller string    `json:"caller"`
	At     time.Time `json:"at"`
}

// waiting remembers which sessions may have reasons that no model has read. Safe for concurrent use.
type waiting struct {
	mu       sync.Mutex
	loaded   bool
	sessions map[bot.SessionKey]bool
}

func (w *waiting) noteSession(session bot.SessionKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions == nil {
		w.sessions = map[bot.SessionKey]bool{}
	}
	w.sessions[session] = true
}

// mayHaveReasons reports whether a session may have reasons. The store is read once.
func (w *waiting) mayHaveReasons(
	ctx context.Context, store bot.Facts, now time.Time, session bot.SessionKey,
) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.loaded {
		facts, err := store.FactsOf(ctx, reasonBucket, "", now)
		if err != nil {
			return false, fmt.Errorf("read reasons: %w", err)
		}
		if w.loaded = true; w.sessions == nil {
			w.sessions = map[bot.SessionKey]bool{}
		}
		for _, f := range facts {
			key := f.Key
			for range 2 { // the id and the time
				key = key[:max(0, strings.LastIndexByte(key, '/'))]
			}
			w.sessions[bot.SessionKey(key)] = true
		}
	}
	return w.sessions[session], nil
}

func (w *waiting) forgetSession(session bot.SessionKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, session)
}

// Reasons implements turn.Explanations.
func (b *Broker) Reasons(ctx context.Context, session bot.SessionKey, look bool) ([]journal.Entry, []bot.Fact, error) {
	now := b.deps.Now()
	names := []bot.SessionKey{session}
	if b.deps.Names != nil {
		names = b.deps.Names(session)
	}
	var entries []journal.Entry
	var told []bot.Fact
	for _, name := range names {
		may, err := b.reasons.mayHaveReasons(ctx, b.deps.Store, now, name)
		if err != nil {
			return nil, nil, err
		}
		if !may && !look {
			continue
		}
		b.reasons.forgetSession(name)
		facts, err := b.deps.Store.FactsOf(ctx, reasonBucket, string(name)+"/", now)
		if err != nil || len(facts) > 0 {
			b.reasons.noteSession(name) // until they are read, and deleted with that
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read reasons: %w", err)
		}
		for _, f := range facts {
			var r denial
			if err := json.Unmarshal([]byte(f.Value), &r); err == nil {
				entries = append(entries, r.entry())
			}
			told = append(told, bot.Fact{Bucket: f.Bucket, Key: f.Key})
		}
	}
	return entries, told, nil
}

// entry is the reason as the model reads it: the words of a person, as a reply to the question. What was asked is a
// quotation, and no part of what the person has said.
func (r *denial) entry() journal.Entry {
	return journal.Entry{
		Kind:    journal.UserEntry,
		At:      r.At,
		Text:    r.Text,
		Speaker: r.Name,
		Caller:  r.Caller,
		Joins:   journal.Declined,
		Call:    r.Call,
		Tool:    r.Tool,
		Quote:   &journal.Quote{Own: true, Text: r.Tool + ": " + r.About},
	}
}
