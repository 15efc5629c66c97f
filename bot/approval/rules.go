package approval

import (
	"context"
	"slices"
	"strconv"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

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
		content.Buttons = append(content.Buttons, []bot.Button{{
			Label: w.RevokeButton(lang, from+i+1), Data: pressRules + ":" + part[i].id() + ":" + strconv.Itoa(page),
			Style: "danger",
		}})
	}
	content.Text = w.Rules(lang, shown, from+1, len(list), note)
	content.Entities = render.Inert(content.Text) // the words of others must not become links, mentions or commands
	newer, older := w.PageButtons(lang)
	var turn []bot.Button
	if page > 0 {
		turn = append(turn, bot.Button{Label: newer, Data: pressRules + "::" + strconv.Itoa(page-1)})
	}
	if from+rulesPage < len(list) {
		turn = append(turn, bot.Button{Label: older, Data: pressRules + "::" + strconv.Itoa(page+1)})
	}
	if len(turn) > 0 {
		content.Buttons = append(content.Buttons, turn)
	}
	return content, nil
}

// shownRule returns a standing approval as it is listed in a place.
func (b *Broker) shownRule(h *held, place bot.Place) texts.StoredRule {
	r := texts.StoredRule{Grant: h.Grant.Grant, Root: h.Root, By: h.Name, At: h.At, Old: h.Kind == ""}
	if r.By == "" {
		r.By = h.By
	}
	if r.Old {
		r.Grant.Input, r.Grant.Kind = h.Pattern, "exact"
	}
	r.Ended = b.deps.Alive != nil && h.Server != "" && !b.deps.Alive(h.Grant.Grant)
	if chat := h.chat(); chat.ChatKey() != place.ChatKey() {
		r.Chat = chat.Chat
	}
	return r
}

// pressRule revokes a standing approval, or shows another page. Only an admin may; a second press finds that the rule
// is gone.
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
	return b.revokeRule(ctx, msg, &list[i], page, say("", false))
}

// revokeRule ends one rule and shows the list again once that is stored.
func (b *Broker) revokeRule(_ context.Context, msg *bot.Message, h *held, page int, answer bot.Row) (turn.Effect, error) {
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
