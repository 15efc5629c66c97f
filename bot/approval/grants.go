package approval

// Standing approvals as they are stored, listed by /policy rules, and revoked.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/tools"
)

// GrantBucket holds standing approvals as facts: the key begins with the chat's, the value is a Grant.
const GrantBucket = "grant"

// allowedBucket holds, by conversation and call, the state of the files when somebody last approved the call.
const allowedBucket = "allowed"

// allowedFor is how long that state is kept.
const allowedFor = 30 * 24 * time.Hour

// Grant is a standing approval as it is stored.
type Grant struct {
	policy.Grant
	// Working directory of the conversation that it was stored in, from which its paths are shown.
	Root string    `json:"root,omitempty"`
	By   string    `json:"by"`
	Name string    `json:"name,omitempty"` // of the person who stored it
	At   time.Time `json:"at"`
	// Until is when it ends; zero = it does not.
	Until    time.Time `json:"until,omitzero"`
	Language string    `json:"language,omitempty"` // of the person who stored it
	// Pattern is a glob over the text, which old versions stored instead of words. It is too imprecise to cover
	// anything now; the rule is listed, and the calls need approval.
	Pattern string `json:"pattern,omitempty"`
	// Most is how many calls it allows; 0 = any number.
	Most int `json:"most,omitempty"`
	// Uses is how many calls it has allowed, and Last are the newest of them, the newest first.
	Uses int   `json:"uses,omitempty"`
	Last []Use `json:"last,omitempty"`
}

// held is a Grant as it is stored, with its key.
type held struct {
	Grant
	key, raw string
}

// id returns the id of a stored grant in callback data.
func (h *held) id() string { return shortHash(h.key) }

// chat returns the chat that it was stored in.
func (h *held) chat() bot.Place {
	place, _, _ := bot.CutChat(h.key)
	return place
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Grants lists the standing approvals that are valid for a call in a conversation of a chat: not those that are used up,
// unless this call was the last one.
func Grants(
	ctx context.Context, facts bot.Facts, chat string, session bot.SessionKey, call string, now time.Time,
) ([]policy.Grant, error) {
	list, err := grantsOf(ctx, facts, chat+"/", now)
	if err != nil {
		return nil, err
	}
	var out []policy.Grant
	for i := range list {
		g := &list[i]
		if (g.Session == "" || g.Session == string(session)) && (!g.usedUp() || g.counts(useID(session, call))) {
			out = append(out, g.Grant.Grant)
		}
	}
	return out, nil
}

// grantsOf lists what is stored under a key. An approval for a conversation is only valid until its next reset.
func grantsOf(ctx context.Context, facts bot.Facts, prefix string, now time.Time) ([]held, error) {
	list, err := facts.FactsOf(ctx, GrantBucket, prefix, now)
	if err != nil {
		return nil, fmt.Errorf("read standing approvals: %w", err)
	}
	grants := make([]held, 0, len(list))
	for _, f := range list {
		h := held{key: f.Key, raw: f.Value}
		if err := json.Unmarshal([]byte(f.Value), &h.Grant); err != nil {
			return nil, fmt.Errorf("standing approval %s: %w", f.Key, err)
		}
		if h.Session != "" {
			over, err := beganSince(ctx, facts, bot.SessionKey(h.Session), h.At, now)
			if err != nil {
				return nil, err
			}
			if over {
				continue
			}
		}
		grants = append(grants, h)
	}
	return grants, nil
}

// beganSince reports whether a conversation was reset at or after a time.
func beganSince(ctx context.Context, facts bot.Facts, session bot.SessionKey, at, now time.Time) (bool, error) {
	began, err := facts.Fact(ctx, bot.ResetBucket, string(session), now)
	if err != nil {
		return false, fmt.Errorf("read the beginning of the conversation: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, began)
	return err == nil && !at.After(t), nil //nolint:nilerr // it was never reset
}

// grantFact returns a standing approval of a chat as it is stored. The same rule has the same key.
func grantFact(chat string, g Grant) (bot.Fact, error) {
	rule, err := json.Marshal(g.Grant)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("standing approval: %w", err)
	}
	value, err := json.Marshal(g)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("standing approval: %w", err)
	}
	return bot.Fact{
		Bucket: GrantBucket, Key: chat + "/" + g.Tool + "/" + shortHash(string(rule)), Value: string(value),
		Expires: g.Until,
	}, nil
}

// EndServer returns the facts that end the standing approvals of a server's tools, in every chat.
func EndServer(ctx context.Context, facts bot.Facts, server string, now time.Time) ([]bot.Fact, error) {
	list, err := grantsOf(ctx, facts, "", now)
	if err != nil {
		return nil, err
	}
	var out []bot.Fact
	for _, h := range list {
		if strings.HasPrefix(h.Tool, server+":") {
			out = append(out, bot.Fact{Bucket: GrantBucket, Key: h.key})
		}
	}
	return out, nil
}

// sortNewest sorts standing approvals, the newest first.
func sortNewest(list []held) {
	slices.SortStableFunc(list, func(a, b held) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.key, b.key)) })
}

// allowedKey identifies a call, whatever the content of its files.
func allowedKey(session bot.SessionKey, q *tools.Question) string {
	return string(session) + "/" + shortHash(fmt.Sprintf("%d:%s%d:%s%s", len(q.Tool), q.Tool, len(q.Caller), q.Caller,
		q.Args))
}

// rememberFiles records the files of an approved call, so that the next question can say which of them changed.
func rememberFiles(session bot.SessionKey, q *tools.Question, now time.Time, change *bot.Change) error {
	if len(q.Files) == 0 {
		return nil
	}
	value, err := json.Marshal(grant.Relative(q.Files))
	if err != nil {
		return fmt.Errorf("files of an approved call: %w", err)
	}
	change.Facts = append(change.Facts, bot.Fact{
		Bucket: allowedBucket, Key: allowedKey(session, q), Value: string(value), Expires: now.Add(allowedFor),
	})
	return nil
}

// changedSince returns the files of a call that have changed since it was last approved in this conversation.
func (b *Broker) changedSince(ctx context.Context, session bot.SessionKey, q *tools.Question) ([]string, error) {
	if len(q.Files) == 0 || len(q.Changed) > 0 {
		return q.Changed, nil
	}
	value, err := b.deps.Store.Fact(ctx, allowedBucket, allowedKey(session, q), b.deps.Now())
	if err != nil || value == "" {
		return nil, err
	}
	var before []policy.File
	if err := json.Unmarshal([]byte(value), &before); err != nil {
		return nil, fmt.Errorf("files of an approved call: %w", err)
	}
	return grant.ChangedFiles(before, grant.Relative(q.Files)), nil
}

// rulesPage is how many standing approvals one message lists.
const rulesPage = 5

// pressRules begins the data of the buttons of /policy rules: "g1:<id>:<page>" revokes a rule, "g1::<page>" shows
// another page.
const pressRules = "g1"

// Rules replies to /policy rules. The caller is an admin.
func (b *Broker) Rules(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	content, err := b.rulesList(ctx, msg, 0, "")
	if err != nil {
		return turn.Effect{}, err
	}
	return call.Reply(content), nil
}

// visibleRules returns the standing approvals that may be seen in a place: in a group its own, in a private chat those
// of all chats of the bot.
func (b *Broker) visibleRules(ctx context.Context, place bot.Place) ([]held, error) {
	prefix := place.Channel + "/" + place.Bot + "/"
	if place.Group {
		prefix = place.ChatKey() + "/"
	}
	list, err := grantsOf(ctx, b.deps.Store, prefix, b.deps.Now())
	sortNewest(list)
	return list, err
}

// rulesList returns one page of the list.
func (b *Broker) rulesList(ctx context.Context, msg *bot.Message, page int, note string) (bot.Content, error) {
	list, err := b.visibleRules(ctx, msg.Place)
	if err != nil {
		return bot.Content{}, err
	}
	w, lang := b.deps.Words.At(msg.Place), msg.Language
	page = max(0, min(page, (len(list)-1)/rulesPage))
	from := page * rulesPage
	part := list[from:min(from+rulesPage, len(list))]
	content := bot.Content{Language: lang}
	shown := make([]texts.StoredRule, len(part))
	for i := range part {
		shown[i] = b.shownRule(&part[i], msg.Place)
		row := []bot.Button{{
			Label: w.RevokeButton(lang, from+i+1), Data: pressRules + ":" + part[i].id() + ":" + strconv.Itoa(page),
			Style: "danger",
		}}
		if b.endsSoon(&part[i].Grant) || part[i].usedUp() {
			row = append(row, bot.Button{
				Label: w.KeepRuleButton(lang, from+i+1), Data: keepRules + ":" + part[i].id() + ":" + strconv.Itoa(page),
			})
		}
		content.Buttons = append(content.Buttons, row)
	}
	content.Text = w.Rules(lang, shown, from+1, len(list), note)
	content.Entities = render.Inert(content.Text) // the words of others must not become links, mentions or commands
	newer, older := w.PageButtons(lang)
	content.AddPages(newer, older, page, from+rulesPage < len(list), func(n int) string { return pressRules + "::" + strconv.Itoa(n) })
	return content, nil
}

// shownRule returns a standing approval as it is listed in a place.
func (b *Broker) shownRule(h *held, place bot.Place) texts.StoredRule {
	r := texts.StoredRule{
		Grant: h.Grant.Grant, Root: h.Root, By: h.Name, At: h.At, Until: h.Until, Old: h.Kind == "",
		Counted: h.Session == "" && h.Kind != "", Uses: h.Uses, Most: h.Most,
	}
	if len(h.Last) > 0 {
		r.Used = h.Last[0].At
	}
	for _, u := range h.Last {
		if !place.Group && u.Covered != "" { // others read in a group
			r.Covered = append(r.Covered, u.Covered)
		}
	}
	if r.By == "" {
		r.By = h.By
	}
	if r.Old {
		r.Grant.Input, r.Grant.Kind = h.Pattern, "exact"
	}
	r.Ended = b.deps.Alive != nil && h.Server != "" && !b.deps.Alive(h.Grant.Grant)
	if chat := h.chat(); chat.ChatKey() != place.ChatKey() {
		r.Chat = chat.Chat
		if b.deps.Called != nil {
			r.Chat = cmp.Or(b.deps.Called()[chat.Channel+":"+chat.Chat], r.Chat)
		}
	}
	return r
}

// pressRule revokes a standing approval, keeps it longer, or shows another page. Only an admin may; a second press finds
// that the rule is gone.
func (b *Broker) pressRule(ctx context.Context, msg *bot.Message, parts []string) (turn.Effect, error) {
	w := b.deps.Words
	say := func(text string, alert bool) bot.Row {
		return bot.Row{
			Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: alert, Content: bot.Content{Text: text},
		}
	}
	rights, err := b.deps.Rights(ctx, msg.Place, "")
	if err != nil {
		return turn.Effect{}, err
	}
	if !slices.Contains(rights.Admins, msg.Caller) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(w.AdminsStore(msg.Language), true)}}}, nil
	}
	page, err := strconv.Atoi(parts[2])
	if err != nil || page < 0 {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(w.UnknownQuestion(msg.Language), true)}}}, nil
	}
	if parts[1] == "" {
		content, err := b.rulesList(ctx, msg, page, "")
		return turn.Effect{Change: bot.Change{Send: b.redrawList(msg, say("", false), content)}}, err
	}
	list, err := b.visibleRules(ctx, msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	i := slices.IndexFunc(list, func(h held) bool { return h.id() == parts[1] })
	if i < 0 {
		content, err := b.rulesList(ctx, msg, page, "")
		rows := b.redrawList(msg, say(w.RevokedAlready(msg.Language), false), content)
		return turn.Effect{Change: bot.Change{Send: rows}}, err
	}
	if parts[0] == keepRules {
		return b.keepRule(msg, &list[i], page, say("", false))
	}
	return b.revokeRule(ctx, msg, &list[i], page, say("", false))
}

// revokeRule ends one rule and shows the list again once that is stored.
func (b *Broker) revokeRule(
	_ context.Context, msg *bot.Message, h *held, page int, answer bot.Row,
) (turn.Effect, error) {
	rule := b.shownRule(h, msg.Place)
	e := turn.Effect{Change: bot.Change{Send: []bot.Row{answer}, Facts: []bot.Fact{{Bucket: GrantBucket, Key: h.key}}}}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		content, err := b.rulesList(ctx, msg, page, b.deps.Words.Revoked(msg.Language, rule))
		return turn.Effect{Change: bot.Change{Send: b.redrawList(msg, bot.Row{}, content)}}, err
	}
	b.recordEvents(&e, []RuleEvent{{
		Verb: "revoke", Grant: h.Grant, Chat: h.chat().ChatKey(), Place: msg.Place, By: msg.Caller, ID: msg.ID,
	}})
	return e, nil
}

// redrawList returns the rows that reply to a press and put the list into its message.
func (b *Broker) redrawList(msg *bot.Message, answer bot.Row, content bot.Content) []bot.Row {
	var rows []bot.Row
	if answer.Purpose != "" {
		rows = append(rows, answer)
	}
	if msg.Message != "" {
		rows = append(rows, bot.Row{Place: msg.Place, Purpose: bot.Record, Edit: msg.Message, Content: content})
	}
	return rows
}
