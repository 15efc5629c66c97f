package hook

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Prefix begins the data of the buttons: "hk:VERB:NAME:PAGE".
const Prefix = "hk"

// The verbs of buttons. Those that change something are the words of the command.
const (
	pressList      = "list"
	pressShow      = "show"
	pressAskRenew  = "renew?"
	pressAskRemove = "remove?"
)

// pageSize is how many hooks a page of the list has.
const pageSize = 10

func buttonData(verb, name string, page int) string {
	return strings.Join([]string{Prefix, verb, name, strconv.Itoa(page)}, ":")
}

// shownHook is a hook with what people see of it.
type shownHook struct {
	*hook
	texts.Hook
}

// visibleHooks returns the hooks that a list shows: in a private chat those of its person, in a group those that run
// there.
func (h *Hooks) visibleHooks(ctx context.Context, call *turn.Call) ([]shownHook, error) {
	msg := call.Message
	last, err := h.deps.Store.FactsOf(ctx, lastBucket, "", h.deps.Now())
	if err != nil {
		return nil, err
	}
	var list []shownHook
	add := func(session bot.SessionKey, k *hook, shown texts.Hook) {
		own := k.owner.Caller == msg.Caller
		if msg.Place.Group && !session.InChat(msg.Place.ChatKey()) || !msg.Place.Group && !own {
			return
		}
		key := string(session) + "/" + k.name
		if i := slices.IndexFunc(last, func(f bot.Fact) bool { return f.Key == key }); i >= 0 {
			shown.Last, _ = time.Parse(time.RFC3339, last[i].Value) // zero if another version wrote it
		}
		shown.Name, shown.Owner = k.name, k.owner.name()
		if own {
			shown.Prompt = k.prompt.source
			for _, c := range k.when {
				shown.When = strings.TrimSpace(shown.When + " " + c.String())
			}
		}
		list = append(list, shownHook{k, shown})
	}
	for i := range h.opts.Config {
		k, err := h.withName(ctx, h.find(h.opts.Config[i].Name))
		if err != nil {
			return nil, err
		}
		if k.owner.Caller == msg.Caller {
			k.owner.Name = cmp.Or(k.owner.Name, msg.Name)
		}
		add(h.sessionOf(k.message("", "", time.Time{})), k, texts.Hook{Config: true})
	}
	for _, k := range h.made.Value() {
		add(k.session(), h.hookOf(k), texts.Hook{Paused: k.Paused, Left: k.Left != ""})
	}
	slices.SortFunc(list, func(a, b shownHook) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// listPage is a page of the list, with a button for each hook.
func (h *Hooks) listPage(call *turn.Call, list []shownHook, page int) bot.Content {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	pages := (len(list) + pageSize - 1) / pageSize
	page = max(0, min(page, pages-1))
	list = list[page*pageSize : min((page+1)*pageSize, len(list))]
	content := bot.Content{Language: msg.Language}
	shown := make([]texts.Hook, len(list))
	for i := range list {
		shown[i] = list[i].Hook
		button := bot.Button{Label: shown[i].Name, Data: buttonData(pressShow, shown[i].Name, page)}
		if i%2 == 1 {
			content.Buttons[i/2] = append(content.Buttons[i/2], button)
		} else {
			content.Buttons = append(content.Buttons, []bot.Button{button})
		}
	}
	newer, older := w.PageButtons(msg.Language)
	content.AddPages(newer, older, page, page+1 < pages, func(n int) string { return buttonData(pressList, "", n) })
	content.Text = w.HookList(msg.Language, shown, msg.Place.Group)
	content.Entities = render.Inert(content.Text)
	return content
}

// hookCard shows one hook with what its reader can do; asks is the verb that is asked about, "" = none.
func (h *Hooks) hookCard(call *turn.Call, k *shownHook, page int, asks string) bot.Content {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	content := bot.Content{Language: msg.Language, Text: w.HookCard(msg.Language, &k.Hook, msg.Place.Group)}
	pause, resume, _, remove, yes, back := w.ScheduleButtons(msg.Language)
	test, renew := w.HookButtons(msg.Language)
	button := func(label, verb, style string) bot.Button {
		return bot.Button{Label: label, Data: buttonData(verb, k.Name, page), Style: style}
	}
	own, changes := k.owner.Caller == msg.Caller, k.stored != nil
	var first, second []bot.Button
	switch asks {
	case pressAskRemove:
		content.Text += "\n\n" + w.HookAsksRemove(msg.Language, k.Name)
		second = []bot.Button{button(yes, "remove", "danger"), button(back, pressShow, "")}
	case pressAskRenew:
		content.Text += "\n\n" + w.HookAsksRenew(msg.Language, k.Name)
		second = []bot.Button{button(renew, "secret", "danger"), button(back, pressShow, "")}
	default:
		if changes && !k.off {
			first = append(first, button(pause, "pause", ""))
		}
		if changes && k.off && own {
			first = append(first, button(resume, "resume", ""))
		}
		if own {
			first = append(first, button(test, "test", ""))
		}
		if changes && own {
			first = append(first, button(renew, pressAskRenew, ""))
		}
		if changes {
			second = append(second, button(remove, pressAskRemove, "danger"))
		}
		second = append(second, button(back, pressList, ""))
	}
	if len(first) > 0 {
		content.Buttons = append(content.Buttons, first)
	}
	content.Buttons = append(content.Buttons, second)
	content.Entities = render.Inert(content.Text)
	return content
}

// Press implements turn.Presser. A hook's owner may do everything with it. An admin of the bot may look at that of
// somebody else without its prompt, pause and remove it, but not make it run in their name.
func (h *Hooks) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := h.made.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	parts := strings.Split(msg.Data, ":")
	if len(parts) != 4 {
		return call.PopUp(w.HookGone(msg.Language, "")), nil
	}
	verb, name := parts[1], parts[2]
	page, err := strconv.Atoi(parts[3])
	if err != nil {
		page = 0
	}
	list, err := h.visibleHooks(ctx, call)
	if err != nil {
		return turn.Effect{}, err
	}
	if verb == pressList {
		return call.ShowCard(call.Toast(""), h.listPage(call, list, page)), nil
	}
	i := slices.IndexFunc(list, func(k shownHook) bool { return k.Name == name })
	if i < 0 {
		return call.PopUp(w.HookGone(msg.Language, name)), nil
	}
	return h.pressHook(call, &list[i], verb, page)
}

// pressHook does what a button about a hook says.
func (h *Hooks) pressHook(call *turn.Call, k *shownHook, verb string, page int) (turn.Effect, error) {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	runs := slices.Contains([]string{"test", "resume", pressAskRenew, "secret"}, verb)
	shows := slices.Contains([]string{pressShow, pressAskRenew, pressAskRemove}, verb)
	switch own := k.owner.Caller == msg.Caller; {
	case !own && runs:
		return call.PopUp(w.HookNotYours(msg.Language, k.Owner)), nil
	case !own && !call.Admin:
		return call.PopUp(w.ScheduleNotYours(msg.Language, k.Owner, false)), nil
	case k.stored == nil && verb != pressShow && verb != "test":
		return call.PopUp(w.HookOfConfig(msg.Language, k.Name)), nil
	case shows:
		return call.ShowCard(call.Toast(""), h.hookCard(call, k, page, verb)), nil
	case verb == "test":
		return h.withTest(call, k.hook, turn.Effect{Change: bot.Change{Send: []bot.Row{
			call.Toast(w.HookTested(msg.Language, k.Name)),
		}}})
	case !slices.Contains([]string{"pause", "resume", "secret", "remove"}, verb):
		return call.PopUp(w.HookGone(msg.Language, k.Name)), nil
	}
	changed, text := h.changed(h.made.Value()[k.Name], verb, msg.Language)
	e := call.ShowCard(call.Toast(""), h.changedCard(call, k, changed, verb, text, page))
	if verb == "secret" {
		e.Change.Send[0] = call.Toast(w.HookSent(msg.Language))
		e.Change.Send = append(e.Change.Send, h.inPrivate(call, text+"\n\n"+h.secretText(call, changed)))
	}
	return h.store(call, changed, verb, e)
}

// changedCard shows a hook once it is changed, or that it is gone.
func (h *Hooks) changedCard(
	call *turn.Call, k *shownHook, changed *stored, verb, text string, page int,
) bot.Content {
	if verb == "remove" {
		content := bot.Content{Language: call.Message.Language, Text: text}
		content.Entities = render.Inert(text)
		return content
	}
	shown := shownHook{h.hookOf(changed), k.Hook}
	shown.Paused, shown.Left = changed.Paused, changed.Left != ""
	return h.hookCard(call, &shown, page, "")
}

var _ turn.Presser = (*Hooks)(nil)
