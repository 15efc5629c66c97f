// Package approval asks people the questions of a turn and handles decisions. A decision is a compare-and-set on a
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

// Gone is the choice used by a channel whose only person has left: the question ends as if nobody had decided in time.
// Everybody who may deny may choose it.
const Gone = "g"

// Rights say who decides in a place.
type Rights struct {
	Approvers []string // caller ids that may decide in addition to the person who asked
	Admins    []string // caller ids that may store standing approvals
	Required  int      // approvals needed; 0 = 1
	Requester bool     // the person who asked may approve, if one approval is enough
}

// Everybody reports whether all people may decide what they asked for themselves.
func (r Rights) Everybody() bool { return r.Requester && r.Required <= 1 }

// Decides reports whether a person may decide anything.
func (r Rights) Decides(caller string) bool {
	return r.Everybody() || slices.Contains(r.Approvers, caller)
}

// Reach reports whether enough people could approve what caller asks for.
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
type Store interface { //nolint:interfacebloat // reads of what one question touches
	bot.Approvals
	bot.Facts
	Row(ctx context.Context, id int64) (bot.Row, error)
	RowOf(ctx context.Context, key string) (bot.Row, error)
	Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error)
	InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error)
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
}

// Deps are the dependencies of a Broker.
type Deps struct {
	Store  Store
	Rights func(ctx context.Context, place bot.Place, tool string) (Rights, error)
	// Reach reports whether enough people could approve what a person asks for in a place; nil = Rights say it.
	Reach func(ctx context.Context, place bot.Place, caller string) (bool, error)
	// Called returns what people and groups are called, by caller id; nil = nobody knows.
	Called func() map[string]string
	Words  texts.Words
	Now    func() time.Time
	// Replies: a card can be replied to, so that the person who denies can say why in a reply. Elsewhere the channel
	// hands in the reason (Why).
	Replies bool
	// Names returns the keys that a session has had, with the present one, as its group got new ids; nil = only this.
	Names func(session bot.SessionKey) []bot.SessionKey
	// Blobs keeps long commands that are sent as files; nil = they are kept in the rows.
	Blobs blob.Store
	// Covers returns whether grants would have answered an earlier question; nil = unknown.
	Covers func(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool
	// Personal reports whether grants of a group count only where the bot works for the person who asked; nil = never.
	Personal func(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool
	// Alive reports whether the server of a grant is still the one that the grant was stored for; nil = it is.
	Alive func(policy.Grant) bool
	// Line returns the facts that record a standing approval that is stored or revoked; they are stored with it. nil =
	// there is no record.
	Line func(e RuleEvent) []bot.Fact
	// RuleDays is for how many days a standing approval is stored (telegram.approval_rule_days); 0 = it does not end.
	RuleDays int
	// Inquiries show and take what calls ask their person; nil = no call does.
	Inquiries Inquiries
	// Hides reports whether the people of a group do not see its questions; nil = they do.
	Hides func(place bot.Place) bool
	// Apply stores how often standing approvals are used; nil = that is not counted.
	Apply func(ctx context.Context, change *bot.Change) (*bot.Applied, error)
	// Redact removes credentials from what standing approvals have covered; nil = nothing is removed.
	Redact func(text string) string
	// Record writes the record from the facts of Line, once they are stored; may be nil.
	Record func(ctx context.Context)
}

// Broker asks questions and handles decisions. Safe for concurrent use.
type Broker struct {
	deps    Deps
	timeout time.Duration
	reasons waiting
}

// New returns a Broker. A question that nobody decides within timeout is denied (telegram.approval_timeout).
func New(deps Deps, timeout time.Duration) *Broker { return &Broker{deps: deps, timeout: timeout} }

// body is what is kept of a question, so that its card can be shown again.
type body struct {
	Question tools.Question `json:"question"`
	Steps    int            `json:"steps"`
	USD      float64        `json:"usd,omitempty"`
	Language string         `json:"language,omitempty"`
	Name     string         `json:"name,omitempty"`  // of the person who asked
	Title    string         `json:"title,omitempty"` // of the group
	Admin    bool           `json:"admin,omitempty"` // the person who asked may store standing approvals
	// Clears: the card offers admins to clear the mark because of which the question is asked.
	Clears bool `json:"clears,omitempty"`
	// Hidden: the group does not see it. Copies are the caller ids of those who were asked in private.
	Hidden bool     `json:"hidden,omitempty"`
	Copies []string `json:"copies,omitempty"`
}

func readGrant(a *bot.Approval) (body, error) {
	var b body
	if err := json.Unmarshal(a.Body, &b); err != nil {
		return b, fmt.Errorf("question %s: %w", a.ID, err)
	}
	return b, nil
}

// AskerName returns what the person who asked was called then; "" = nobody knows.
func AskerName(a *bot.Approval) string {
	info, err := readGrant(a)
	if err != nil {
		return ""
	}
	return info.Name
}

// Ask adds to change what was not asked yet: approvals, their cards and, for long commands, files.
func (b *Broker) Ask(ctx context.Context, asked turn.Asked, change *bot.Change) error {
	taken, err := b.openNames(ctx, asked.Place)
	if err != nil {
		return err
	}
	for _, q := range asked.Questions {
		known, err := b.deps.Store.ApprovalOf(ctx, asked.Session, q.Call)
		// Asked before, and perhaps even decided since.
		if err == nil && known.Hash == q.Hash && !q.Again {
			continue
		}
		if err != nil && !errors.Is(err, bot.ErrNotFound) {
			return err
		}
		// The call has changed: the earlier question is not about what would run now.
		if err == nil && known.State == bot.Open {
			if err := b.replaceQuestion(ctx, &known, change); err != nil {
				return err
			}
		}
		if q.Changed, err = b.changedSince(ctx, asked.Session, &q); err != nil {
			return err
		}
		if err := b.askOne(ctx, asked, q, taken, change); err != nil {
			return err
		}
	}
	return nil
}

// replaceQuestion withdraws a question that is replaced by another one.
func (b *Broker) replaceQuestion(ctx context.Context, a *bot.Approval, change *bot.Change) error {
	d := bot.Decision{ID: a.ID, State: bot.Withdrawn, At: b.deps.Now()}
	after := questionAfter(a, d)
	change.Decide = append(change.Decide, d)
	change.Send = append(change.Send, b.editCard(a, b.decidedCard(after, b.readerFor(after, nil), "")))
	return b.spread(ctx, a, after, nil, change)
}

func (b *Broker) askOne(
	ctx context.Context, asked turn.Asked, q tools.Question, taken map[string]bool, change *bot.Change,
) error {
	rights, err := b.deps.Rights(ctx, asked.Place, q.Tool)
	if err != nil {
		return err
	}
	info := body{
		Question: q, Steps: asked.Stats.Steps, USD: asked.Stats.USD, Language: asked.Language, Name: asked.Name,
		Title: asked.Title, Admin: slices.Contains(rights.Admins, asked.Caller),
		Clears: q.Marked && rights.Required <= 1 && len(rights.Admins) > 0,
	}
	raw, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	now := b.deps.Now()
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return fmt.Errorf("question id: %w", err)
	}
	a := bot.Approval{
		ID:      base64.RawURLEncoding.EncodeToString(id),
		Short:   speakableName(id, taken),
		Session: asked.Session,
		Turn:    asked.Turn,
		Call:    q.Call,
		Place:   asked.Place,
		Caller:  asked.Caller,
		Tool:    q.Tool,
		Hash:    q.Hash,
		Body:    raw,
		State:   bot.Open,
		Needed:  max(1, rights.Required),
		Created: now,
		Expires: now.Add(b.timeout),
	}
	if q.Form != nil {
		a.Needed = 1
	}
	base := bot.Row{
		Session: asked.Session, Turn: asked.Turn, Place: asked.Place, Purpose: bot.Question, ReplyTo: asked.ReplyTo,
	}
	if q.Form == nil && asked.Place.Group && asked.Place.Ordinary() && b.deps.Hides != nil && b.deps.Hides(asked.Place) {
		return b.hide(ctx, &a, &info, rights, base, change)
	}
	key := askKey + a.ID
	card, file, err := b.openCard(ctx, &a)
	if err != nil {
		return err
	}
	if file != nil {
		row := base
		row.Content, row.Key = bot.Content{Text: file.Name, File: b.keepFile(ctx, asked.Session, file)}, key+fileKey
		change.Send = append(change.Send, row)
	}
	base.Content, base.Key = card, key
	change.Ask = append(change.Ask, a)
	change.Cards = append(change.Cards, bot.Card{Approval: a.ID, Send: len(change.Send)})
	change.Send = append(change.Send, base)
	return nil
}

// speakableName returns a name that can be spoken and typed: consonants and vowels alternate, and it
// is extended until it is unused.
func speakableName(id []byte, taken map[string]bool) string {
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

// Of the keys of a question's rows: askKey, its id, and fileKey for the file before the card. What is sent once more in
// place of one of them ends with againKey.
const (
	askKey   = "ask/"
	fileKey  = "/file"
	againKey = "/again"
)

// Again adds to a Change the card or the file of an open question once more, in place of a row that may not have
// arrived (deliver.Deps.Again). It says so, and is not repeated itself.
func (b *Broker) Again(ctx context.Context, lost *bot.Row, change *bot.Change) error {
	key, ok := strings.CutPrefix(lost.Key, askKey)
	id, part, _ := strings.Cut(key, "/")
	if !ok || strings.HasSuffix(key, againKey) {
		return nil
	}
	a, err := b.deps.Store.Approval(ctx, id)
	if errors.Is(err, bot.ErrNotFound) || err == nil && a.State != bot.Open {
		return nil
	}
	if err != nil {
		return err
	}
	row := bot.Row{
		Session: a.Session,
		Turn:    a.Turn,
		Place:   a.Place,
		Purpose: bot.Question,
		ReplyTo: lost.ReplyTo,
		Content: lost.Content,
		Key:     lost.Key + againKey,
	}
	info, err := readGrant(&a)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix("/"+part, copyKey): // the card of one person
		row.Session, row.Turn, row.Place = lost.Session, lost.Turn, lost.Place
	case part == "": // as it would be asked now
		if info.Hidden {
			row.Content = b.waitingCard(&a, &info)
		} else if row.Content, _, err = b.openCard(ctx, &a); err != nil {
			return err
		}
		change.Cards = append(change.Cards, bot.Card{Approval: a.ID, Send: len(change.Send)})
	}
	row.Content.Text += "\n\n" + b.deps.Words.At(row.Place).Resent(row.Content.Language)
	change.Send = append(change.Send, row)
	return nil
}

// keepFile stores the content of a file apart from the row that sends it. If that fails, the row keeps
// it: the question has to be asked.
func (b *Broker) keepFile(ctx context.Context, session bot.SessionKey, file *bot.File) *bot.File {
	if b.deps.Blobs == nil {
		return file
	}
	ref, err := b.deps.Blobs.Put(ctx, string(session), bytes.NewReader(file.Data))
	if err != nil {
		return file
	}
	return &bot.File{Name: file.Name, Type: "text/plain", Hash: ref.Hash, Size: ref.Size}
}

// Reachable reports whether anybody could approve what a person asks for in a place.
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
		found := approve.Approval{State: approve.State(a.State), By: deciderNames(a), Hash: a.Hash, Scope: a.Scope}
		if a.State == bot.Open || a.State == bot.Withdrawn {
			return found, nil
		}
		info, err := readGrant(&a)
		if err != nil {
			return approve.Approval{}, err
		}
		if q, ok := inquiryOf(&a, &info); ok && b.deps.Inquiries != nil {
			found.Reply, err = b.deps.Inquiries.Reply(ctx, q)
			return found, err
		}
		if a.State != bot.Approved {
			return found, nil
		}
		if a.Scope == bot.Cleared {
			found.Cleared = info.Question.Suspicious
		}
		found.States, found.Deed, found.Again = info.Question.States, info.Question.Deed, info.Question.Again
		if e := info.Question.Effect; e != nil {
			found.Layer = e.Layer
		}
		return found, nil
	}
	if err != nil && !errors.Is(err, bot.ErrNotFound) {
		return approve.Approval{}, err
	}
	granted, ok, err := b.deps.Store.GrantedInSession(ctx, bot.SessionKey(session), hash)
	if err != nil || !ok {
		return approve.Approval{}, err
	}
	// "For this session" is valid until the conversation is reset.
	if over, err := beganSince(ctx, b.deps.Store, bot.SessionKey(session), granted.Decided, b.deps.Now()); over ||
		err != nil {
		return approve.Approval{}, err
	}
	return approve.Approval{
		State: approve.Approved,
		By:    deciderNames(granted),
		Hash:  granted.Hash,
		Scope: bot.Session,
	}, nil
}

// deciderNames names everybody who approved, for the record.
func deciderNames(a bot.Approval) string {
	if a.State == bot.Approved && len(a.Votes) > 1 {
		return strings.Join(a.Votes, ", ")
	}
	return a.By
}

// PressData is the data of the button with which the card of a question is approved once, or denied.
func PressData(id string, approve bool) string {
	if approve {
		return "a1:" + id + ":y"
	}
	return "a1:" + id + ":n"
}

// Card returns what the card of a question says now, and the file that it refers to if the command is too long for it.
func (b *Broker) Card(a *bot.Approval) (text, file string, err error) {
	content, exact, err := b.questionCard(a, b.readerFor(a, nil))
	if exact != nil {
		file = string(exact.Data)
	}
	return content.Text, file, err
}

// Press handles a press of a button. Data is "a1:<id>:<choice>"; anybody with a client of their own can send anything,
// on any message. A press that does not belong to a button of this card changes nothing and only gets a reply. The
// buttons of a message go if one of them was really pressed and nobody knows it any more.
func (b *Broker) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	parts := strings.Split(msg.Data, ":")
	if len(parts) == 3 && (parts[0] == pressRules || parts[0] == keepRules && parts[1] != "") {
		return b.pressRule(ctx, msg, parts)
	}
	say := func(text string, alert bool) bot.Row {
		return bot.Row{
			Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: alert, Content: bot.Content{Text: text},
		}
	}
	if IsInquiry(msg.Data) {
		return b.pressInquiry(ctx, msg, say)
	}
	a, choice, err := b.pressedQuestion(ctx, msg)
	if err != nil {
		return turn.Effect{}, err
	}
	e, err := b.chooseButton(ctx, &a, msg, choice, say)
	return b.spreadEffect(ctx, &a, msg, e, err)
}

// Locate implements turn.Approvals.
func (b *Broker) Locate(ctx context.Context, msg *bot.Message) (bool, error) {
	parts := strings.Split(msg.Data, ":")
	if len(parts) != 3 || parts[0] != "a1" && parts[0] != inquiryPrefix {
		return false, nil
	}
	a, err := b.deps.Store.Approval(ctx, parts[1])
	if errors.Is(err, bot.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the question of a button: %w", err)
	}
	msg.Unplaced = false
	if !IsHidden(&a) { // one that is hidden is in the person's own chat
		msg.Place = a.Place
	}
	return true, nil
}

// chooseButton does what a button of a card stands for.
func (b *Broker) chooseButton(
	ctx context.Context, a *bot.Approval, msg *bot.Message, choice string, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	switch choice {
	case "y":
		return b.decideQuestion(ctx, a, msg, bot.Approved, bot.Once, say)
	case "s":
		return b.decideQuestion(ctx, a, msg, bot.Approved, bot.Session, say)
	case "n":
		return b.decideQuestion(ctx, a, msg, bot.Denied, bot.Once, say)
	case Gone:
		return b.decideQuestion(ctx, a, msg, bot.Expired, bot.Once, say)
	case showDiff:
		return b.showChanges(ctx, a, msg, say)
	case Why:
		return b.explainDenial(ctx, a, msg, b.deps.Now(), say)
	case wholeTool:
		return b.approveForSession(ctx, a, msg, say)
	case clearMark:
		return b.approveFlagged(ctx, a, msg, say)
	}
	if strings.HasPrefix(choice, showRule) || strings.HasPrefix(choice, storeRule) ||
		strings.HasPrefix(choice, storeFew) || choice == hideRule {
		return b.guideToRule(ctx, a, msg, choice, say)
	}
	e := b.refuseButton(msg)
	if a.ID == "" && msg.Shown && msg.Message != "" {
		e.Change.Send[0].Content.Text = b.deps.Words.UnknownButton(msg.Language)
		e.Change.Send = append(e.Change.Send, bot.Row{Place: msg.Place, Purpose: bot.Record, Edit: msg.Message})
	}
	return e, nil
}

// pressedQuestion returns the question whose button was pressed; an empty choice means that there is no such button.
func (b *Broker) pressedQuestion(ctx context.Context, msg *bot.Message) (a bot.Approval, choice string, err error) {
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
	if on, err := b.onCard(ctx, &a, msg); err != nil || !on || Asks(&a) {
		return a, "", err
	}
	choice = parts[2]
	switch choice {
	case "y", "n", Gone:
		return a, choice, nil
	case Why: // there is no such button: a channel without replies hands in the words
		if b.deps.Replies {
			choice = ""
		}
		return a, choice, nil
	}
	// several people decide about one call, and nobody decides about more in their name
	if a.Needed > 1 && choice != showDiff {
		return a, "", nil
	}
	if on, err := offersMore(&a, choice); err != nil || !on {
		return a, "", err
	}
	return a, choice, nil
}

// offersMore reports whether the card has a button for more than this one call.
func offersMore(a *bot.Approval, choice string) (bool, error) {
	info, err := readGrant(a)
	if err != nil {
		return false, err
	}
	switch q := info.Question; choice {
	case "s":
		return q.Whole == nil || q.Whole.Kind != policy.GrantHost, nil
	case wholeTool:
		return q.Whole != nil, nil
	case showDiff:
		_, diff := deedOf(&q)
		return diff != "" && q.Effect != nil, nil
	case clearMark:
		return info.Clears, nil
	default:
		_, _, ok := ruleChoice(choice, len(q.Offers))
		return ok && len(q.Offers) > 0, nil
	}
}

// onCard reports whether a button was pressed on the card of the question. A card that had to be sent again exists
// twice, and only one of them is known here.
func (b *Broker) onCard(ctx context.Context, a *bot.Approval, msg *bot.Message) (bool, error) {
	if IsHidden(a) {
		return b.onCopy(ctx, a, msg)
	}
	if a.Place.ChatKey() != msg.Place.ChatKey() {
		return false, nil
	}
	row, err := b.deps.Store.Row(ctx, a.Row)
	if errors.Is(err, bot.ErrNotFound) {
		return true, nil // it was tidied up; the question is decided in that case
	}
	if err != nil {
		return false, err
	}
	return msg.Message == "" || row.Message == "" || !row.Doubt.IsZero() || row.Message == msg.Message, nil
}

// refuseButton replies to a button of an old version or a forged one.
func (b *Broker) refuseButton(msg *bot.Message) turn.Effect {
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true,
		Content: bot.Content{Text: b.deps.Words.UnknownQuestion(msg.Language)},
	}}}}
}
