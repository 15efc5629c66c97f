// Package approval puts a turn's questions to people and takes their decisions. A decision is a compare-and-set on a
// stored row: it survives restarts, may be made on any replica, and is made once however often somebody presses.
package approval

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
)

// Gone is the choice of a channel whose only person has gone: the question ends as if nobody had decided in time.
// Whoever may deny may do that.
const Gone = "g"

// Rights say who decides in a place.
type Rights struct {
	Approvers []string // caller ids that may decide besides the person who asked
	Admins    []string // caller ids that may store standing approvals
	Required  int      // approvals needed; 0 = 1
	Requester bool     // the person who asked may approve, if one approval is enough
}

// Reach says whether enough people could approve what caller asks for.
func (r Rights) Reach(caller string) bool {
	people := map[string]bool{}
	for _, id := range r.Approvers {
		people[id] = true
	}
	needed := max(1, r.Required)
	people[caller] = caller != "" && needed == 1 && r.Requester
	if !people[caller] {
		delete(people, caller)
	}
	return len(people) >= needed
}

// Store is the part of the bot's store that questions need.
type Store interface {
	bot.Approvals
	bot.Facts
	Row(ctx context.Context, id int64) (bot.Row, error)
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
}

// Deps are what a Broker works with.
type Deps struct {
	Store  Store
	Rights func(ctx context.Context, place bot.Place, tool string) (Rights, error)
	// Reach says whether enough people could approve what a person asks for in a place; nil = Rights say it.
	Reach func(ctx context.Context, place bot.Place, caller string) (bool, error)
	Words texts.Words
	Now   func() time.Time
	// Blobs keeps the long commands that go out as files; nil = the rows keep them.
	Blobs blob.Store
	// Covers says whether grants would have answered a question that was asked before; nil = nobody knows.
	Covers func(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool
	// Alive says whether the server of a grant is still the one that it was stored for; nil = it is.
	Alive func(policy.Grant) bool
	// Line makes facts of a standing approval that is stored or revoked, which are stored with it, for the record; nil
	// = there is none.
	Line func(e RuleEvent) []bot.Fact
	// Record writes down what Line has made facts of, once they are stored; nil = nobody does.
	Record func(ctx context.Context)
}

// Broker asks and decides. Safe for concurrent use.
type Broker struct {
	deps    Deps
	timeout time.Duration
}

// New makes a Broker. A question that nobody decides within timeout is denied (telegram.approval_timeout).
func New(deps Deps, timeout time.Duration) *Broker { return &Broker{deps: deps, timeout: timeout} }

// body is what is kept of a question to show its card again.
type body struct {
	Question tools.Question `json:"question"`
	Steps    int            `json:"steps"`
	USD      float64        `json:"usd,omitempty"`
	Language string         `json:"language,omitempty"`
	Name     string         `json:"name,omitempty"`  // of who asked
	Admin    bool           `json:"admin,omitempty"` // who asked may store standing approvals
}

func read(a *bot.Approval) (body, error) {
	var b body
	if err := json.Unmarshal(a.Body, &b); err != nil {
		return b, fmt.Errorf("question %s: %w", a.ID, err)
	}
	return b, nil
}

// Ask adds what is not asked yet to change: approvals, their cards and, for long commands, files.
func (b *Broker) Ask(ctx context.Context, asked turn.Asked, change *bot.Change) error {
	taken, err := b.shorts(ctx, asked.Place)
	if err != nil {
		return err
	}
	for _, q := range asked.Questions {
		known, err := b.deps.Store.ApprovalOf(ctx, asked.Session, q.Call)
		// asked before; perhaps even decided, while this turn was on its way to ask
		if err == nil && known.Hash == q.Hash {
			continue
		}
		if err != nil && !errors.Is(err, bot.ErrNotFound) {
			return err
		}
		// the call has changed: what was asked before is no longer what would run
		if err == nil && known.State == bot.Open {
			b.replace(&known, change)
		}
		if q.Changed, err = b.changedSince(ctx, asked.Session, &q); err != nil {
			return err
		}
		if err := b.ask(ctx, asked, q, taken, change); err != nil {
			return err
		}
	}
	return nil
}

// replace withdraws a question that another one takes the place of.
func (b *Broker) replace(a *bot.Approval, change *bot.Change) {
	d := bot.Decision{ID: a.ID, State: bot.Withdrawn, At: b.deps.Now()}
	change.Decide = append(change.Decide, d)
	change.Send = append(change.Send, b.edit(a, b.record(after(a, d))))
}

func (b *Broker) ask(ctx context.Context, asked turn.Asked, q tools.Question, taken map[string]bool, change *bot.Change) error {
	rights, err := b.deps.Rights(ctx, asked.Place, q.Tool)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body{
		Question: q, Steps: asked.Stats.Steps, USD: asked.Stats.USD, Language: asked.Language, Name: asked.Name,
		Admin: slices.Contains(rights.Admins, asked.Caller),
	})
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	now := b.deps.Now()
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return fmt.Errorf("question id: %w", err)
	}
	a := bot.Approval{
		ID: base64.RawURLEncoding.EncodeToString(id), Short: short(id, taken), Session: asked.Session, Turn: asked.Turn, Call: q.Call,
		Place: asked.Place, Caller: asked.Caller, Tool: q.Tool, Hash: q.Hash, Body: raw, State: bot.Open,
		Needed: max(1, rights.Required), Created: now, Expires: now.Add(b.timeout),
	}
	key := "ask/" + a.ID
	card, file, err := b.card(&a)
	if err != nil {
		return err
	}
	base := bot.Row{Session: asked.Session, Turn: asked.Turn, Place: asked.Place, Purpose: bot.Question, ReplyTo: asked.ReplyTo}
	if file != nil {
		row := base
		row.Content, row.Key = bot.Content{Text: file.Name, File: b.kept(ctx, asked.Session, file)}, key+"/file"
		change.Send = append(change.Send, row)
	}
	base.Content, base.Key = card, key
	change.Ask = append(change.Ask, a)
	change.Cards = append(change.Cards, bot.Card{Approval: a.ID, Send: len(change.Send)})
	change.Send = append(change.Send, base)
	return nil
}

// kept has the content of a file kept beside the row that sends it. Where that fails the row keeps it: the question has
// to be asked.
func (b *Broker) kept(ctx context.Context, session bot.SessionKey, file *bot.File) *bot.File {
	if b.deps.Blobs == nil {
		return file
	}
	ref, err := b.deps.Blobs.Put(ctx, string(session), bytes.NewReader(file.Data))
	if err != nil {
		return file
	}
	return &bot.File{Name: file.Name, Type: "text/plain", Hash: ref.Hash, Size: ref.Size}
}

// shorts are the short names in use among the open questions of a chat.
func (b *Broker) shorts(ctx context.Context, place bot.Place) (map[string]bool, error) {
	open, err := b.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, a := range open {
		if a.Place.ChatKey() == place.ChatKey() {
			taken[a.Short] = true
		}
	}
	return taken, nil
}

// short makes a name that can be said and typed: consonant and vowel in turn, lengthened until it is free.
func short(id []byte, taken map[string]bool) string {
	const vowels, consonants = "aeiou", "bdfgklmnprstvz"
	for n := 5; ; n++ {
		var s strings.Builder
		for i := range n {
			set := consonants
			if i%2 == 1 {
				set = vowels
			}
			s.WriteByte(set[int(id[i%len(id)])%len(set)])
		}
		if name := s.String(); !taken[name] || n >= len(id) {
			taken[name] = true
			return name
		}
	}
}

// Reachable says whether anybody could approve what a person asks for in a place.
func (b *Broker) Reachable(ctx context.Context, place bot.Place, caller string) (bool, error) {
	if b.deps.Reach != nil {
		return b.deps.Reach(ctx, place, caller)
	}
	rights, err := b.deps.Rights(ctx, place, "")
	return err == nil && rights.Reach(caller), err
}

// Approval implements approve.Lookup.
func (b *Broker) Approval(ctx context.Context, session, call, hash string) (approve.Approval, error) {
	a, err := b.deps.Store.ApprovalOf(ctx, bot.SessionKey(session), call)
	if err == nil && (a.State != bot.Open || a.Hash == hash) {
		return approve.Approval{State: approve.State(a.State), By: deciders(a), Hash: a.Hash, Scope: a.Scope}, nil
	}
	if err != nil && !errors.Is(err, bot.ErrNotFound) {
		return approve.Approval{}, err
	}
	granted, ok, err := b.deps.Store.GrantedInSession(ctx, bot.SessionKey(session), hash)
	if err != nil || !ok {
		return approve.Approval{}, err
	}
	// "For this session" ends with the conversation.
	if over, err := beganSince(ctx, b.deps.Store, bot.SessionKey(session), granted.Decided, b.deps.Now()); over || err != nil {
		return approve.Approval{}, err
	}
	return approve.Approval{State: approve.Approved, By: deciders(granted), Hash: granted.Hash, Scope: bot.Session}, nil
}

// deciders names everybody who approved, for the record: several where several were needed.
func deciders(a bot.Approval) string {
	if a.State == bot.Approved && len(a.Votes) > 1 {
		return strings.Join(a.Votes, ", ")
	}
	return a.By
}

// Press decides by a button. Data is "a1:<id>:<choice>"; whoever has a client of their own can send anything, on any
// message. What is not a button of this very card changes nothing and removes nothing: it is only answered.
func (b *Broker) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	if parts := strings.Split(msg.Data, ":"); len(parts) == 3 && parts[0] == pressRules {
		return b.pressRule(ctx, msg, parts)
	}
	a, choice, err := b.pressed(ctx, msg)
	if err != nil {
		return turn.Effect{}, err
	}
	say := func(text string, alert bool) bot.Row {
		return bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: alert, Content: bot.Content{Text: text}}
	}
	return b.choose(ctx, &a, msg, choice, say)
}

// choose does what a button of a card says.
func (b *Broker) choose(ctx context.Context, a *bot.Approval, msg *bot.Message, choice string, say func(text string, alert bool) bot.Row) (turn.Effect, error) {
	switch choice {
	case "y":
		return b.decide(ctx, a, msg, bot.Approved, bot.Once, say)
	case "s":
		return b.decide(ctx, a, msg, bot.Approved, bot.Session, say)
	case "n":
		return b.decide(ctx, a, msg, bot.Denied, bot.Once, say)
	case Gone:
		return b.decide(ctx, a, msg, bot.Expired, bot.Once, say)
	case wholeTool:
		return b.whole(ctx, a, msg, say)
	}
	if strings.HasPrefix(choice, showRule) || strings.HasPrefix(choice, storeRule) || choice == hideRule {
		return b.standing(ctx, a, msg, choice, say)
	}
	return b.unknown(msg), nil
}

// pressed finds the question whose button was pressed; no choice means that there is no such button.
func (b *Broker) pressed(ctx context.Context, msg *bot.Message) (a bot.Approval, choice string, err error) {
	parts := strings.Split(msg.Data, ":")
	if len(parts) != 3 || parts[0] != "a1" {
		return a, "", nil
	}
	a, err = b.deps.Store.Approval(ctx, parts[1])
	if errors.Is(err, bot.ErrNotFound) {
		return a, "", nil
	}
	if err != nil {
		return a, "", err
	}
	if on, err := b.onCard(ctx, &a, msg); err != nil || !on {
		return a, "", err
	}
	choice = parts[2]
	switch choice {
	case "y", "n", Gone:
		return a, choice, nil
	}
	if a.Needed > 1 { // several people decide about one call, and nobody about more in their name
		return a, "", nil
	}
	if on, err := offered(&a, choice); err != nil || !on {
		return a, "", err
	}
	return a, choice, nil
}

// offered says whether the card has a button for more than this one call.
func offered(a *bot.Approval, choice string) (bool, error) {
	info, err := read(a)
	if err != nil {
		return false, err
	}
	switch q := info.Question; choice {
	case "s":
		return true, nil
	case wholeTool:
		return q.Whole != nil, nil
	default:
		_, _, ok := ruleChoice(choice, len(q.Offers))
		return ok && len(q.Offers) > 0, nil
	}
}

// onCard says whether a button was pressed on the card of the question. A card that had to be sent again is there
// twice, and we know only one of them.
func (b *Broker) onCard(ctx context.Context, a *bot.Approval, msg *bot.Message) (bool, error) {
	if a.Place.ChatKey() != msg.Place.ChatKey() {
		return false, nil
	}
	row, err := b.deps.Store.Row(ctx, a.Row)
	if errors.Is(err, bot.ErrNotFound) {
		return true, nil // tidied up; the question is decided then
	}
	if err != nil {
		return false, err
	}
	return msg.Message == "" || row.Message == "" || !row.Doubt.IsZero() || row.Message == msg.Message, nil
}

// unknown answers a button of an old deploy or a forged one.
func (b *Broker) unknown(msg *bot.Message) turn.Effect {
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true,
		Content: bot.Content{Text: b.deps.Words.UnknownQuestion(msg.Language)},
	}}}}
}
