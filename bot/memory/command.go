package memory

import (
	"context"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// Prefix begins the data of the Handler's buttons: "k1:VERB:ID:PAGE".
const Prefix = "k1"

// Verbs of the buttons.
const (
	pressPage   = "p" // shows a page
	pressAsk    = "d" // asks whether to delete a memory
	pressDelete = "y" // deletes it
	pressEdit   = "e" // says how to change it
	pressAll    = "a" // asks whether to delete all
	pressClear  = "c" // deletes all
)

// listPage is how many memories a page of /memory shows.
const listPage = 5

// Handler answers /memory and its buttons. It shows a person's own memories in their private chat, and those of a group
// in the group, where everybody may change single ones and admins delete all. Safe for concurrent use.
type Handler struct {
	Memory *Store
	Words  texts.Words
	Admins func() []string // names or ids, for refusals
}

// Feature returns /memory, with what other processes have had remembered.
func (d Handler) Feature() feature.Feature {
	return feature.Feature{
		Name:     "memory",
		Off:      d.Memory == nil,
		Commands: []feature.Command{{Name: "memory", Run: d.Command, OffText: d.Words.MemoryOff}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Follow:   d.Memory.Follow,
		Moved:    d.Memory.Reload,
	}
}

// reader is who looks at which memories.
type reader struct {
	call  *turn.Call
	scope Scope
}

// origin is where a command or a press comes from, for the audit log.
func (r *reader) origin() tools.Origin {
	msg := r.call.Message
	return tools.Origin{
		Channel: msg.Place.Channel,
		Session: string(r.call.Session),
		Chat:    msg.Place.ChatKey(),
		Caller:  msg.Caller,
		Name:    msg.Signature(),
		Admin:   r.call.Admin,
		Private: !r.scope.shared,
	}
}

// mayDeleteAll reports whether the reader may delete everything.
func (r *reader) mayDeleteAll() bool { return !r.scope.shared || r.call.Admin }

// Command answers /memory, and /memory change ID TEXT.
func (d Handler) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.Words
	scope, ok := scopeOf(msg)
	if !ok {
		return d.reply(call, bot.Content{Text: w.MemoryNowhere(msg.Language)}), nil
	}
	r := &reader{call, scope}
	verb, rest, _ := strings.Cut(strings.TrimSpace(msg.Args), " ")
	switch {
	case verb == "":
		list, err := d.Memory.listMemories(ctx, scope)
		return d.reply(call, d.memoryPage(r, list, 0, "")), err
	case strings.EqualFold(verb, "change"):
		id, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return d.editMemory(ctx, r, id, text)
	default:
		return d.reply(call, bot.Content{Text: w.MemoryHelp(msg.Language)}), nil
	}
}

// editMemory changes the text of a memory.
func (d Handler) editMemory(ctx context.Context, r *reader, id, text string) (turn.Effect, error) {
	msg, w, s := r.call.Message, d.Words, d.Memory
	draft, err := s.draftScope(ctx, r.scope)
	if err != nil {
		return turn.Effect{}, err
	}
	m, ok := draft.findMemory(strings.ToLower(id))
	if !ok {
		return d.reply(r.call, bot.Content{Text: w.MemoryGone(msg.Language)}), nil
	}
	size := len(text)
	text, bad := s.cleanText(text, s.deps.Limits.Bytes)
	if bad != "" {
		return d.reply(r.call, bot.Content{
			Text: w.MemoryRefused(msg.Language, string(bad), size, s.deps.Limits.Bytes),
		}), nil
	}
	m.Text, m.By, m.Name, m.At = text, msg.Caller, msg.Signature(), s.deps.Now().UTC()
	draft.putMemory(m)
	draft.event = append(draft.event, Event{What: Edited, IDs: []string{m.ID}, Origin: r.origin()})
	e := d.reply(r.call, bot.Content{Text: w.MemoryEdited(msg.Language, d.memoryEntry(&m, 0)), Language: msg.Language})
	return d.withChange(draft, e), nil
}

// withChange adds a Change of memories to an answer.
func (d Handler) withChange(draft *draft, e turn.Effect) turn.Effect {
	e.Change.Facts = d.Memory.changeOf(draft).Facts
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		d.Memory.followStored(ctx, draft)
		return turn.Effect{}, nil
	}
	return e
}

// Press implements turn.Presser. Whose memories a button is about depends on where it was pressed and by whom, never on
// its data.
func (d Handler) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.Words
	scope, ok := scopeOf(msg)
	parts := strings.Split(msg.Data, ":")
	if !ok || len(parts) != 4 {
		return toastReply(msg, w.UnknownQuestion(msg.Language)), nil
	}
	page, err := strconv.Atoi(parts[3])
	if err != nil || page < 0 {
		return toastReply(msg, w.UnknownQuestion(msg.Language)), nil
	}
	r := &reader{call, scope}
	draft, err := d.Memory.draftScope(ctx, scope)
	if err != nil {
		return turn.Effect{}, err
	}
	switch verb := parts[1]; verb {
	case pressPage:
		return redrawMessage(msg, d.memoryPage(r, draft.list, page, "")), nil
	case pressAll, pressClear:
		if !r.mayDeleteAll() {
			return toastReply(msg, w.AdminsOnly(msg.Language, d.Admins())), nil
		}
		if verb == pressAll {
			return redrawMessage(msg, d.askAll(r, len(draft.list))), nil
		}
		n := draft.clearMemories(r.origin())
		return d.withChange(draft, redrawMessage(msg, d.memoryPage(r, nil, 0, w.MemoryCleared(msg.Language, n)))), nil
	case pressAsk, pressDelete, pressEdit:
		return d.pressMemory(r, draft, verb, parts[2], page), nil
	default:
		return toastReply(msg, w.UnknownQuestion(msg.Language)), nil
	}
}

// pressMemory is a button of one memory.
func (d Handler) pressMemory(r *reader, draft *draft, verb, id string, page int) turn.Effect {
	msg, w := r.call.Message, d.Words
	m, ok := draft.findMemory(id)
	switch {
	case !ok:
		e := redrawMessage(msg, d.memoryPage(r, draft.list, page, ""))
		e.Change.Send[0] = toastReply(msg, w.MemoryGone(msg.Language)).Change.Send[0]
		return e
	case verb == pressAsk:
		return redrawMessage(msg, d.askToDelete(msg.Language, &m, page))
	case verb == pressEdit:
		return redrawMessage(msg, d.tellHowToChange(msg.Language, &m, page))
	}
	draft.dropMemory(&m)
	draft.event = append(draft.event, Event{What: Deleted, IDs: []string{m.ID}, Origin: r.origin()})
	left := make([]Memory, 0, len(draft.list))
	for _, other := range draft.list {
		if other.ID != m.ID {
			left = append(left, other)
		}
	}
	return d.withChange(draft, redrawMessage(msg, d.memoryPage(r, left, page, w.MemoryDeleted(msg.Language))))
}

// memoryPage shows a page of memories. note is said below it.
func (d Handler) memoryPage(r *reader, list []Memory, page int, note string) bot.Content {
	w, lang := d.Words, r.call.Message.Language
	page = min(page, max(0, len(list)-1)/listPage)
	from := page * listPage
	part := list[from:min(from+listPage, len(list))]
	shown := texts.Memories{Shared: r.scope.shared, From: from + 1, All: len(list), Note: note}
	content := bot.Content{Language: lang}
	labels := w.MemoryLabels(lang)
	for i := range part {
		shown.Page = append(shown.Page, d.memoryEntry(&part[i], from+i+1))
		n := strconv.Itoa(from + i + 1)
		content.Buttons = append(content.Buttons, []bot.Button{
			{Label: labels.Change + " " + n, Data: buttonData(pressEdit, part[i].ID, page)},
			{Label: labels.Delete + " " + n, Data: buttonData(pressAsk, part[i].ID, page), Style: "danger"},
		})
	}
	newer, older := w.PageButtons(lang)
	content.AddPages(newer, older, page, from+listPage < len(list), func(n int) string { return buttonData(pressPage, "", n) })
	if len(list) > 1 && r.mayDeleteAll() {
		content.Buttons = append(content.Buttons, []bot.Button{{
			Label: labels.All,
			Data:  buttonData(pressAll, "", page),
			Style: "danger",
		}})
	}
	return inertContent(content, w.Memories(lang, shown))
}

// memoryEntry is a memory as people see it.
func (d Handler) memoryEntry(m *Memory, n int) texts.Memory {
	return texts.Memory{N: n, Key: m.Key, Text: m.Text, Name: m.Name, At: m.At}
}

// askToDelete asks whether to delete a memory.
func (d Handler) askToDelete(lang string, m *Memory, page int) bot.Content {
	labels := d.Words.MemoryLabels(lang)
	return inertContent(bot.Content{Language: lang, Buttons: [][]bot.Button{{
		{Label: labels.Yes, Data: buttonData(pressDelete, m.ID, page), Style: "danger"},
		{Label: labels.Back, Data: buttonData(pressPage, "", page)},
	}}}, d.Words.MemoryAsk(lang, d.memoryEntry(m, 0)))
}

// tellHowToChange says how to change a memory: by a command that can be copied.
func (d Handler) tellHowToChange(lang string, m *Memory, page int) bot.Content {
	labels := d.Words.MemoryLabels(lang)
	return inertContent(bot.Content{Language: lang, Buttons: [][]bot.Button{{
		{Label: labels.Back, Data: buttonData(pressPage, "", page)},
	}}}, d.Words.MemoryHow(lang, d.memoryEntry(m, 0), m.ID))
}

// askAll asks whether to delete everything.
func (d Handler) askAll(r *reader, n int) bot.Content {
	lang := r.call.Message.Language
	labels := d.Words.MemoryLabels(lang)
	return inertContent(bot.Content{Language: lang, Buttons: [][]bot.Button{{
		{Label: labels.YesAll, Data: buttonData(pressClear, "", 0), Style: "danger"},
		{Label: labels.Back, Data: buttonData(pressPage, "", 0)},
	}}}, d.Words.MemoryAskAll(lang, n, r.scope.shared))
}

// buttonData is what a button carries; at most 64 bytes (Bot API).
func buttonData(verb, id string, page int) string {
	return strings.Join([]string{Prefix, verb, id, strconv.Itoa(page)}, ":")
}

// inertContent gives content a text in which nothing can be clicked.
func inertContent(content bot.Content, text string) bot.Content {
	content.Text, content.Entities = text, render.Inert(text)
	return content
}

// reply answers a command. What is remembered in a group is nobody's secret there.
func (d Handler) reply(call *turn.Call, content bot.Content) turn.Effect {
	if content.Entities == nil {
		content = inertContent(content, content.Text)
	}
	return call.Reply(content)
}

func toastReply(msg *bot.Message, text string) turn.Effect {
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: text != "", Content: bot.Content{Text: text},
	}}}}
}

// redrawMessage answers a press and puts content into the message of its button.
func redrawMessage(msg *bot.Message, content bot.Content) turn.Effect {
	e := toastReply(msg, "")
	if msg.Message != "" {
		e.Change.Send = append(e.Change.Send, bot.Row{
			Place:   msg.Place,
			Purpose: bot.Record,
			Edit:    msg.Message,
			Content: content,
		})
	}
	return e
}

var _ turn.Presser = Handler{}
