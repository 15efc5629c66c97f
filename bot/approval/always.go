package approval

// A question can be answered with a standing approval, which is shown exactly before it is stored.

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// Choices of the buttons that store a standing approval: show the offers, show one rule (with its number), store it
// (with its number), also for some calls only, return to the question.
const (
	showRule  = "a"
	storeRule = "A"
	storeFew  = "l"
	hideRule  = "b"
	wholeTool = "t" // approve every call of the tool, or what goes to the host, in this conversation
)

// How far back a rule is tested, on how many questions, and how many of them are shown.
const (
	pastDays     = 7
	pastMost     = 500
	pastExamples = 3
	pastLength   = 80 // of an example, in UTF-16 units
)

// RuleEvent is a standing approval that was stored or revoked, for the record.
type RuleEvent struct {
	Verb    string // store, keep, revoke
	Grant   Grant
	Chat    string
	Session bot.SessionKey
	Place   bot.Place
	By      string
	ID      string // of the arrival that did it
}

// ruleChoice parses the choice of a button about rules; i is the number of the offer, -1 if it has none.
func ruleChoice(data string, offers int) (choice string, i int, ok bool) {
	if data == "" {
		return "", 0, false
	}
	choice, number := data[:1], data[1:]
	if number == "" {
		return choice, -1, choice == showRule || choice == hideRule
	}
	i, err := strconv.Atoi(number)
	return choice, i, err == nil && number == strconv.Itoa(i) && i >= 0 && i < offers &&
		(choice == showRule || choice == storeRule || choice == storeFew)
}

// guideToRule guides an admin through storing a rule: it shows the offers, then the exact
// rule, which has to be confirmed.
func (b *Broker) guideToRule(
	ctx context.Context, a *bot.Approval, msg *bot.Message, data string, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	w, to := b.deps.Words, b.readerFor(a, msg)
	info, err := readGrant(a)
	if err != nil {
		return turn.Effect{}, err
	}
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return turn.Effect{}, err
	}
	choice, i, ok := ruleChoice(data, len(info.Question.Offers))
	switch {
	case !slices.Contains(rights.Admins, msg.Caller):
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(w.AdminsStore(msg.Language), true)}}}, nil
	case a.State != bot.Open || !a.Expires.After(b.deps.Now()):
		return b.decideQuestion(ctx, a, msg, bot.Denied, bot.Once, say) // the row says that the question is decided
	case !ok || len(info.Question.Offers) == 0:
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(w.UnknownQuestion(msg.Language), true)}}}, nil
	case choice == storeRule:
		return b.approveWithRules(ctx, a, msg, info, info.Question.Offers[i], 0, say)
	case choice == storeFew:
		return b.approveWithRules(ctx, a, msg, info, info.Question.Offers[i], fewUses, say)
	}
	var card bot.Content
	switch {
	case choice == hideRule:
		card, _, err = b.questionCard(a, to)
	case i < 0 && len(info.Question.Offers) > 1:
		card = to.above(chooseCard(a, &info, to))
	default:
		card, err = b.ruleCard(ctx, a, &info, max(i, 0), to)
		card = to.above(card)
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{say("", false), b.editCard(a, card)}}}, err
}

// approveWithRules approves the call and stores the rules of an offer, for so many later calls; 0 = for any.
func (b *Broker) approveWithRules(
	ctx context.Context, a *bot.Approval, msg *bot.Message, info body, o policy.Offer, most int,
	say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	e, err := b.decideQuestion(ctx, a, msg, bot.Approved, bot.StoredRule(most, b.ruleEnd()), say)
	if err != nil || len(e.Change.Decide) == 0 || e.Change.Decide[0].State != bot.Approved {
		return e, err // only one of several approvals: nothing is stored yet
	}
	var events []RuleEvent
	for _, g := range o.Grants {
		if err := b.addGrant(a, msg, info, g, most, &e.Change, &events); err != nil {
			return e, err
		}
	}
	b.recordEvents(&e, events)
	return e, nil
}

// approveForSession approves the call, and in this conversation every later one of its tool, or what goes to its host.
func (b *Broker) approveForSession(
	ctx context.Context, a *bot.Approval, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	info, err := readGrant(a)
	if err != nil {
		return turn.Effect{}, err
	}
	if info.Question.Whole == nil || a.Needed > 1 {
		return b.refuseButton(msg), nil
	}
	scope := bot.Tool
	if info.Question.Whole.Kind == policy.GrantHost {
		scope = bot.Host
	}
	e, err := b.decideQuestion(ctx, a, msg, bot.Approved, scope, say)
	if err != nil || len(e.Change.Decide) == 0 || e.Change.Decide[0].State != bot.Approved {
		return e, err
	}
	var events []RuleEvent
	if err := b.addGrant(a, msg, info, *info.Question.Whole, 0, &e.Change, &events); err != nil {
		return e, err
	}
	b.recordEvents(&e, events)
	return e, nil
}

// addGrant adds a standing approval to a change.
func (b *Broker) addGrant(
	a *bot.Approval, msg *bot.Message, info body, g policy.Grant, most int, change *bot.Change, events *[]RuleEvent,
) error {
	stored := Grant{
		Grant: g, Root: info.Question.Dir, By: msg.Caller, Name: signerName(a, msg), At: b.deps.Now().UTC(),
		Language: msg.Language, Most: most,
	}
	if g.Session == "" { // one for a conversation ends with it
		stored.Until = b.ruleEnd()
	}
	f, err := grantFact(a.Place.ChatKey(), stored)
	if err != nil {
		return err
	}
	change.Facts = append(change.Facts, f)
	*events = append(*events, RuleEvent{
		Verb: "store", Grant: stored, Chat: a.Place.ChatKey(), Session: a.Session, Place: a.Place, By: msg.Caller,
		ID: msg.ID,
	})
	return nil
}

// recordEvents stores the events with the change, and has them recorded once it is stored.
func (b *Broker) recordEvents(e *turn.Effect, events []RuleEvent) {
	if b.deps.Line == nil || len(events) == 0 {
		return
	}
	for i := range events {
		e.Change.Facts = append(e.Change.Facts, b.deps.Line(events[i])...)
	}
	if b.deps.Record == nil {
		return
	}
	then := e.Then
	e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		b.deps.Record(ctx)
		if then == nil {
			return turn.Effect{}, nil
		}
		return then(ctx, applied)
	}
}

// chooseCard shows the offers.
func chooseCard(a *bot.Approval, info *body, to reader) bot.Content {
	w, lang, offers := to.words, to.language, info.Question.Offers
	lines := make([]string, len(offers))
	for i, o := range offers {
		lines[i] = strconv.Itoa(i+1) + ". " + w.Offer(lang, o, info.Question.Dir)
	}
	content := frameCode(w.ChooseHead(lang), render.Cut(strings.Join(lines, "\n"), cardLength), w.ChooseFoot(lang), "")
	for i, o := range offers {
		label := strconv.Itoa(i+1) + ". " + w.OfferLabel(lang, o, info.Question.Dir)
		content.Buttons = append(content.Buttons, []bot.Button{{Label: label, Data: ruleData(a, showRule, i)}})
	}
	_, back := w.StoreButtons(lang)
	content.Buttons = append(content.Buttons, []bot.Button{{Label: back, Data: "a1:" + a.ID + ":" + hideRule}})
	return content
}

func ruleData(a *bot.Approval, choice string, i int) string {
	return "a1:" + a.ID + ":" + choice + strconv.Itoa(i)
}

// ruleCard shows exactly what would be stored, and which recent questions it would have covered.
func (b *Broker) ruleCard(
	ctx context.Context, a *bot.Approval, info *body, i int, to reader,
) (bot.Content, error) {
	w, lang, offer := to.words, to.language, info.Question.Offers[i]
	store, back := w.StoreButtons(lang)
	var rules, foot []string
	for j := range offer.Grants {
		rule, limits := w.Rule(lang, &offer.Grants[j], info.Question.Dir, func(text string) string {
			text, _ = w.Visible(lang).Text(text)
			return text
		})
		rules = append(rules, rule)
		for _, limit := range limits {
			if !slices.Contains(foot, limit) {
				foot = append(foot, render.Cut(limit, noteLength))
			}
		}
	}
	if b.deps.Personal != nil && b.deps.Personal(a, &info.Question, offer.Grants) {
		foot = append(foot, w.Personal(lang, info.Name))
	}
	n, examples, err := b.testOnPast(ctx, a, lang, offer.Grants)
	if err != nil {
		return bot.Content{}, err
	}
	if b.deps.Covers != nil {
		foot = append(foot, w.Past(lang, n, examples))
	}
	foot = append(foot, w.RuleEnds(lang, b.ruleEnd()), w.StoreFoot(lang))
	content := frameCode(w.StoreHead(lang, len(rules)), render.Cut(strings.Join(rules, "\n"), cardLength), strings.Join(foot, "\n"),
		"")
	behind := hideRule
	if len(info.Question.Offers) > 1 {
		behind = showRule
	}
	content.Buttons = [][]bot.Button{
		{
			{Label: store, Data: ruleData(a, storeRule, i), Style: "success"},
			{Label: w.FewButton(lang, fewUses), Data: ruleData(a, storeFew, i)},
		},
		{{Label: back, Data: "a1:" + a.ID + ":" + behind}},
	}
	return content, nil
}

// testOnPast tests grants on the recent questions of this bot: it returns how many of them they would have
// answered, and the newest of those.
func (b *Broker) testOnPast(
	ctx context.Context, a *bot.Approval, lang string, grants []policy.Grant,
) (n int, examples []string, err error) {
	w := b.deps.Words
	if b.deps.Covers == nil {
		return 0, nil, nil
	}
	since := b.deps.Now().Add(-pastDays * 24 * time.Hour)
	list, err := b.deps.Store.AskedSince(ctx, a.Place.Channel, a.Place.Bot, a.Tool, since, pastMost)
	if err != nil {
		return 0, nil, err
	}
	for i := range list {
		var before body
		if list[i].ID == a.ID || json.Unmarshal(list[i].Body, &before) != nil ||
			!b.deps.Covers(&list[i], &before.Question, grants) {
			continue
		}
		if n++; len(examples) < pastExamples {
			line, _ := w.Visible(lang).Line(exampleCall(before.Question))
			examples = append(examples, line)
		}
	}
	return n, examples, nil
}

// exampleCall returns a call in one line. Of another chat's questions, only those that a rule of
// this chat covers are ever shown.
func exampleCall(q tools.Question) string {
	line, _, _ := strings.Cut(shownCall(q), "\n")
	return render.Cut(line, pastLength)
}
