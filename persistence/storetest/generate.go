package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// generator makes random Changes in a small set of sessions, so that they often affect the same rows.
type generator struct {
	r        *rapid.T
	bot      string // no other generator uses it
	sessions []bot.SessionKey
	seqs     []int64
	rows     []int64
	asked    []string
}

func newGenerator(r *rapid.T, botID string) *generator {
	g := &generator{r: r, bot: botID}
	for _, rest := range []string{"-1/0/42", "-1/0/43", "-2/0/42"} {
		g.sessions = append(g.sessions, bot.SessionKey(channel+"/"+botID+"/bot/"+rest))
	}
	return g
}

func pick[T any](g *generator, what string, from ...T) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(g.r, what)]
}

// known returns one of some values, or an unknown one.
func known[T any](g *generator, what string, values []T, unknown T) T {
	if len(values) == 0 || pick(g, what+" unknown", false, false, false, false, false, true) {
		return unknown
	}
	return pick(g, what, values...)
}

func (g *generator) session() bot.SessionKey { return pick(g, "session", g.sessions...) }

func (g *generator) place(session bot.SessionKey) bot.Place {
	chat := "-1"
	if session == g.sessions[2] {
		chat = "-2"
	}
	return bot.Place{Channel: channel, Bot: g.bot, Surface: "bot", Chat: chat, Group: true}
}

func (g *generator) time() time.Time {
	return pick(g, "time", time.Time{}, start, start.Add(time.Minute), farFuture)
}

func (g *generator) name(what string) string {
	return fmt.Sprintf("%s-%s%d", g.bot, what, rapid.IntRange(1, 4).Draw(g.r, what))
}

// change returns a Change of some parts.
func (g *generator) change(ctx context.Context, s bot.Store) *bot.Change {
	var c bot.Change
	parts := []func(context.Context, bot.Store, *bot.Change){
		g.claim, g.lease, g.arrive, g.arrive, g.finish, g.append, g.lane, g.lane, g.ask, g.ask, g.decide, g.cancel,
		g.send, g.send, g.update, g.facts, g.charge, g.move, g.replace,
	}
	for range rapid.IntRange(1, 4).Draw(g.r, "parts") {
		pick(g, "part", parts...)(ctx, s, &c)
	}
	return &c
}

// learn remembers the result of a Change.
func (g *generator) learn(applied *bot.Applied) {
	if applied == nil {
		return
	}
	for _, seq := range applied.Seqs {
		if seq != 0 {
			g.seqs = append(g.seqs, seq)
		}
	}
	for _, id := range applied.Rows {
		if !slices.Contains(g.rows, id) {
			g.rows = append(g.rows, id)
		}
	}
}

func (g *generator) read(ctx context.Context, s bot.Store, session bot.SessionKey) bot.Lane {
	lane, err := s.Lane(ctx, session)
	if err != nil {
		g.r.Fatal(err)
	}
	return lane
}

func (g *generator) claim(ctx context.Context, s bot.Store, c *bot.Change) {
	session := g.session()
	fence := g.read(ctx, s, session).Fence - int64(pick(g, "stale", 0, 0, 0, 1))
	c.Claim = &bot.Claim{
		Session:   session,
		Fence:     fence,
		Owner:     "w",
		Now:       g.time(),
		Until:     g.time(),
		Workspace: pick(g, "workspace", "", "w1", "w2"),
	}
	if pick(g, "placed", true, true, false) {
		c.Claim.Place = g.place(session)
	}
	switch pick(g, "begins", "", "", "waits", "arrives") {
	case "waits":
		c.Claim.Arrival = known(g, "arrival", g.seqs, 1<<40)
	case "arrives":
		c.Claim.Arrives = true
		g.arrive(ctx, s, c)
		c.Arrive[len(c.Arrive)-1].Session, c.Arrive[len(c.Arrive)-1].Express = session, false
	}
}

func (g *generator) lease(ctx context.Context, s bot.Store, c *bot.Change) {
	session := g.session()
	c.Lease = &bot.Lease{Session: session, Fence: g.read(ctx, s, session).Fence}
}

func (g *generator) arrive(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Arrive = append(c.Arrive, bot.Arrival{
		Channel: channel,
		Bot:     g.bot,
		ID:      g.name("id"),
		Source:  pick(g, "source", "", bot.FromTelegram),
		Session: pick(g, "of", append([]bot.SessionKey{""}, g.sessions...)...),
		Express: pick(g, "express", false, false, true),
		Raw:     []byte(pick(g, "raw", "", "{}")),
		At:      g.time(),
	})
}

func (g *generator) finish(_ context.Context, _ bot.Store, c *bot.Change) {
	seq := known(g, "arrival", g.seqs, -1)
	if pick(g, "unbegun", false, true) {
		c.Unbegun = g.session()
	}
	switch letter := (bot.DeadLetter{Seq: seq, Problem: g.name("problem")}); pick(g, "end", "handled", "done", "retry", "dead") {
	case "handled":
		c.Handles = seq
	case "done":
		c.Done = append(c.Done, seq)
	case "retry":
		c.Retry = append(c.Retry, letter)
	default:
		c.Dead = append(c.Dead, letter)
	}
}

func (g *generator) replace(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Replace = append(c.Replace, bot.Replacement{
		Seq:     known(g, "replaced", g.seqs, 1<<40),
		Session: g.session(),
		Source:  bot.FromTelegram,
		Raw:     []byte(pick(g, "new raw", "{1}", "{2}")),
	})
}

func (g *generator) append(ctx context.Context, s bot.Store, c *bot.Change) {
	session := g.session()
	c.Append = &bot.Append{Session: session, After: g.read(ctx, s, session).Last + int64(pick(g, "off", 0, 0, 0, 1))}
	for range rapid.IntRange(0, 3).Draw(g.r, "entries") {
		c.Append.Entries = append(c.Append.Entries, g.entry(c.Append.After+int64(len(c.Append.Entries))+1))
	}
}

// entry returns a journal entry for number n: possibly one that ends a turn and carries a
// ConversationState, or a summary.
func (g *generator) entry(n int64) journal.Entry {
	e := journal.Entry{
		Turn: pick(g, "of turn", "t1", "t2"),
		Kind: journal.UserEntry,
		At:   g.time(),
		Text: rapid.String().Draw(g.r, "text"),
	}
	soFar := &journal.ConversationState{
		N:       n + int64(pick(g, "wrong", 0, 0, 1)),
		Batches: rapid.IntRange(0, 9).Draw(g.r, "batches"),
	}
	soFar.By = pick(g, "by", nil, []journal.Count{{Caller: "telegram:1", Batches: 1, Calls: 2}})
	switch e.Kind = pick(
		g,
		"kind",
		journal.UserEntry,
		journal.AnswerEntry,
		journal.AnswerEntry,
		journal.SummaryEntry,
		journal.ResetEntry,
	); e.Kind {
	case journal.AnswerEntry:
		e.State = pick(g, "standing", nil, soFar)
	case journal.SummaryEntry:
		e.State, e.Text = pick(g, "standing", nil, soFar), pick(g, "sum", "", "what was")
	}
	return e
}

func (g *generator) lane(_ context.Context, _ bot.Store, c *bot.Change) {
	session := g.session()
	u := bot.LaneUpdate{Session: session, Release: pick(g, "release", false, false, true)}
	place := g.place(session)
	u.Place = pick(g, "place", nil, &place)
	state := pick(g, "state", bot.Idle, bot.Running, bot.Parked, bot.Waiting)
	u.State = pick(g, "set state", nil, &state)
	turn := pick(g, "turn", "", "t1", "t2")
	u.Turn = pick(g, "set turn", nil, &turn)
	arrival := known(g, "arrival", g.seqs, 0)
	u.Arrival = pick(g, "set arrival", nil, &arrival)
	at := g.time()
	u.NotBefore = pick(g, "set time", nil, &at)
	u.Until = pick(g, "set until", nil, &at)
	u.Failing = pick(g, "set failing", nil, &at)
	stop := pick(g, "stop", "", "t1")
	u.Stop = pick(g, "set stop", nil, &stop)
	c.Lanes = append(c.Lanes, u)
}

func (g *generator) ask(_ context.Context, _ bot.Store, c *bot.Change) {
	session := g.session()
	a := bot.Approval{
		ID:      g.name("q"),
		Short:   pick(g, "short", "", "x", "y"),
		Session: session,
		Turn:    pick(g, "turn", "t1", "t2"),
		Call:    pick(g, "call", "c1", "c2"),
		Hash:    "h",
		Place:   g.place(session),
		Needed:  rapid.IntRange(0, 2).Draw(g.r, "needed"),
		Created: g.time(),
	}
	c.Ask = append(c.Ask, a)
	g.asked = append(g.asked, a.ID)
	if len(c.Send) > 0 {
		c.Cards = append(c.Cards, bot.Card{Approval: a.ID, Send: len(c.Send) - 1})
	}
}

func (g *generator) decide(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Decide = append(c.Decide, bot.Decision{
		ID:    known(g, "question", g.asked, "none"),
		State: pick(g, "decision", bot.Open, bot.Open, bot.Approved, bot.Denied, bot.Expired),
		Scope: pick(g, "scope", "", bot.Session),
		By:    g.name("by"),
		Votes: pick(g, "votes", nil, []string{"v"}),
		At:    g.time(),
	})
}

func (g *generator) cancel(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Cancel = &bot.Cancel{Session: g.session(), Turn: pick(g, "turn", "", "t1"), By: "u", At: g.time()}
}

func (g *generator) send(_ context.Context, _ bot.Store, c *bot.Change) {
	session := g.session()
	c.Send = append(c.Send, bot.Row{
		Session:     session,
		Place:       g.place(session),
		Purpose:     bot.Final,
		Key:         pick(g, "key", "", g.name("key")),
		NotBefore:   g.time(),
		EditRow:     known(g, "edit row", g.rows, 0),
		Edit:        pick(g, "edit", "", "5"),
		State:       pick(g, "row state", "", bot.Pending, bot.Sent),
		Content:     bot.Content{Text: rapid.String().Draw(g.r, "content")},
		Created:     start,
		Doubt:       pick(g, "doubt", time.Time{}, start),
		Unconfirmed: pick(g, "unconfirmed before", 0, 2),
	})
	c.PlaceholderOf = pick(g, "placeholder", "", session)
}

func (g *generator) update(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Rows = append(c.Rows, bot.RowUpdate{
		ID:          known(g, "row", g.rows, -1),
		From:        []bot.RowState{pick(g, "from", bot.Pending, bot.Sending), bot.Unknown},
		To:          pick(g, "to", bot.Pending, bot.Sending, bot.Sent, bot.Unknown, bot.Dead),
		Message:     pick(g, "message", "", "9"),
		NotBefore:   g.time(),
		Attempts:    pick(g, "attempts", 0, 1),
		Unconfirmed: pick(g, "unconfirmed", 0, 1),
		Doubt:       g.time(),
	})
}

func (g *generator) facts(_ context.Context, _ bot.Store, c *bot.Change) {
	fact := bot.Fact{
		Bucket: g.bot, Key: pick(g, "fact", "k", channel+"/"+g.bot+"/bot/-1", string(g.session())),
		Value: pick(g, "value", "1", "2"), Expires: pick(g, "expires", time.Time{}, longAgo, farFuture),
	}
	if pick(g, "if", true, false) {
		c.FactsIf = append(c.FactsIf, fact)
		return
	}
	fact.Value = pick(g, "set value", "", fact.Value)
	c.Facts = append(c.Facts, fact)
}

func (g *generator) charge(_ context.Context, _ bot.Store, c *bot.Change) {
	c.Charges = append(c.Charges, bot.Charge{
		Key: g.name("charge"), Scope: pick(g, "scope", "chat/"+channel+"/"+g.bot+"/bot/-1", "user/u"), Unit: "turns",
		Day: pick(g, "day", "2026-03-01", "2026-03-02"), N: int64(rapid.IntRange(-5, 5).Draw(g.r, "n")),
	})
}

func (g *generator) move(_ context.Context, _ bot.Store, c *bot.Change) {
	if pick(g, "moves", true, false) {
		c.Move = &bot.Move{Channel: channel, Bot: g.bot, From: "-1", To: "-2"}
	}
}
