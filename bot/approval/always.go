package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/render"
)

// Choices of the buttons that store a standing approval: show the rule first, then store it, or go back to the question.
const (
	showRule  = "a"
	storeRule = "A"
	hideRule  = "b"
)

// GrantBucket holds standing approvals as facts: the key begins with the chat's, the value is a Grant.
const GrantBucket = "grant"

// Grant is a standing approval ("Always"): it turns ask into allow for one tool and one pattern in one chat, stands after every configured denial, and
// never covers what the policy cannot be sure of.
type Grant struct {
	Tool    string    `json:"tool"`
	Pattern string    `json:"pattern"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// Grants lists the standing approvals of a chat.
func Grants(ctx context.Context, facts bot.Facts, chat string, now time.Time) ([]Grant, error) {
	list, err := facts.FactsOf(ctx, GrantBucket, chat+"/", now)
	if err != nil {
		return nil, fmt.Errorf("read standing approvals: %w", err)
	}
	grants := make([]Grant, 0, len(list))
	for _, f := range list {
		var g Grant
		if err := json.Unmarshal([]byte(f.Value), &g); err != nil {
			return nil, fmt.Errorf("standing approval %s: %w", f.Key, err)
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// standing walks an admin through storing a rule: what would be stored is shown exactly, and asked for once more.
func (b *Broker) standing(ctx context.Context, a *bot.Approval, msg *bot.Message, choice string, say func(text string, alert bool) bot.Row) (dispatch.Effect, error) {
	w, rights := b.deps.Words, b.deps.Rights(a.Place, a.Tool)
	info, err := read(a)
	if err != nil {
		return dispatch.Effect{}, err
	}
	switch {
	case !slices.Contains(rights.Admins, msg.Caller):
		return dispatch.Effect{Change: bot.Change{Send: []bot.Row{say(w.AdminsStore(msg.Language), true)}}}, nil
	case a.State != bot.Open || !a.Expires.After(b.deps.Now()), len(info.Question.Always) == 0:
		return b.decide(ctx, a, msg, bot.Denied, bot.Once, say) // says what has become of it
	}
	switch choice {
	case showRule:
		return dispatch.Effect{Change: bot.Change{Send: []bot.Row{say("", false), b.edit(a, b.ruleCard(a, info))}}}, nil
	case hideRule:
		card, _, err := b.card(a)
		return dispatch.Effect{Change: bot.Change{Send: []bot.Row{say("", false), b.edit(a, card)}}}, err
	}
	e, err := b.decide(ctx, a, msg, bot.Approved, bot.Always, say)
	if err != nil || len(e.Change.Decide) == 0 || e.Change.Decide[0].State != bot.Approved {
		return e, err // one of several approvals so far: nothing stands yet
	}
	for _, pattern := range info.Question.Always {
		value, err := json.Marshal(Grant{Tool: info.Question.Tool, Pattern: pattern, By: msg.Caller, At: b.deps.Now()})
		if err != nil {
			return e, fmt.Errorf("standing approval: %w", err)
		}
		sum := sha256.Sum256([]byte(pattern))
		key := strings.Join([]string{a.Place.ChatKey(), info.Question.Tool, hex.EncodeToString(sum[:8])}, "/")
		e.Change.Facts = append(e.Change.Facts, bot.Fact{Bucket: GrantBucket, Key: key, Value: string(value)})
	}
	return e, nil
}

// ruleCard shows exactly what would be stored.
func (b *Broker) ruleCard(a *bot.Approval, info body) bot.Content {
	w, lang := b.deps.Words, info.Language
	store, back := w.StoreButtons(lang)
	rules := make([]string, len(info.Question.Always))
	for i, pattern := range info.Question.Always {
		rules[i], _ = w.Visible(lang).Text(info.Question.Tool + ": " + pattern)
	}
	content := framed(w.StoreHead(lang), render.Cut(strings.Join(rules, "\n"), cardLength), w.StoreFoot(lang), "")
	data := func(choice string) string { return "a1:" + a.ID + ":" + choice }
	content.Buttons = [][]bot.Button{{{Label: store, Data: data(storeRule), Style: "success"}, {Label: back, Data: data(hideRule)}}}
	return content
}
