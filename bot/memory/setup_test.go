package memory_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// process is a process with a store that it may share with others.
type process struct {
	t      testing.TB
	store  *bottest.Store
	moves  *moves.Map
	events []memory.Event
	calls  int
	*memory.Store
	tools map[string]tools.Tool
	desk  memory.Handler
}

func open(t testing.TB, store *bottest.Store, change func(*memory.Deps)) *process {
	t.Helper()
	p := &process{t: t, store: store, moves: &moves.Map{}, tools: map[string]tools.Tool{}}
	deps := memory.Deps{
		Store: store, Moves: p.moves, Shared: true, Limits: memory.Limits{Entries: 100, Bytes: 4096, Results: 5}, Now: time.Now, Log: zerolog.Nop(),
		Secret:  func(text string) bool { return strings.Contains(text, "hunter2") },
		Flagged: func(text string) bool { return strings.Contains(text, "ignore all") },
		Record: func(e memory.Event) []bot.Fact {
			p.events = append(p.events, e)
			return nil
		},
	}
	if change != nil {
		change(&deps)
	}
	p.Store = memory.New(deps)
	list, err := p.Tools()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		p.tools[tool.Definition.Name] = tool
	}
	p.desk = memory.Handler{Memory: p.Store, Words: texts.Words{}, Admins: func() []string { return []string{"Ann"} }}
	p.follow()
	return p
}

func (p *process) follow() {
	p.t.Helper()
	if err := p.moves.Load(p.t.Context(), p.store, time.Now()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.Follow(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// place is a private chat of a person, or a group.
func place(chat string) bot.Place {
	return bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: chat, Group: strings.HasPrefix(chat, "-")}
}

// origin is where a call of a person in a chat comes from.
func origin(person, chat string) tools.Origin {
	at := place(chat)
	return tools.Origin{
		Channel: "telegram", Session: string(at.SessionKey("")), Chat: at.ChatKey(), Turn: "turn", Caller: "telegram:" + person, Name: "P" + person,
		Private: !at.Group,
	}
}

// message is what a person writes in a chat.
func message(person, chat, text string) *bot.Message {
	return &bot.Message{
		Kind: bot.Text, Place: place(chat), Caller: "telegram:" + person, Person: person, Name: "P" + person, Language: "en", Text: text, Message: "9",
	}
}

// call calls a tool; every call has an id of its own.
func (p *process) call(o tools.Origin, tool string, args map[string]any) (*tools.Result, error) {
	p.t.Helper()
	p.calls++
	return p.again(o, tool, args, "c"+time.Now().Format(time.RFC3339Nano)+string(rune('a'+p.calls%26)))
}

func (p *process) again(o tools.Origin, tool string, args map[string]any, id string) (*tools.Result, error) {
	p.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	call := &tools.Call{ID: id, Tool: tool, Args: raw, Origin: o, Trail: &tools.Trail{}}
	return p.tools[tool].Run(p.t.Context(), call)
}

// save has a text remembered and returns what the model reads.
func (p *process) save(o tools.Origin, text, subject string) string {
	p.t.Helper()
	res, err := p.call(o, "memory_save", map[string]any{"content": text, "subject": subject})
	if err != nil {
		p.t.Fatal(err)
	}
	return res.Text
}

// search returns what a search finds.
func (p *process) search(o tools.Origin, query string) string {
	p.t.Helper()
	res, err := p.call(o, "memory_search", map[string]any{"query": query, "limit": 20})
	if err != nil {
		p.t.Fatal(err)
	}
	return res.Text
}

// recall returns what a message reminds of; "" = nothing.
func (p *process) recall(msg *bot.Message, known ...string) string {
	if !p.Has(msg) {
		return ""
	}
	r, _ := p.Recall(p.t.Context(), &turn.Reminder{Message: msg, Known: known})
	if r == nil {
		return ""
	}
	return r.Text
}

// apply stores an effect like the dispatcher, again if something came in between, and returns its rows.
func (p *process) apply(work func(ctx context.Context) (turn.Effect, error)) []bot.Row {
	p.t.Helper()
	e, err := work(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	applied, err := p.store.Apply(p.t.Context(), &e.Change)
	if err != nil {
		p.t.Fatal(err)
	}
	if e.Then != nil {
		if _, err := e.Then(p.t.Context(), applied); err != nil {
			p.t.Fatal(err)
		}
	}
	return e.Change.Send
}

// command gives /memory and returns the answer.
func (p *process) command(msg *bot.Message, args string, admin bool) bot.Content {
	p.t.Helper()
	msg.Args = args
	rows := p.apply(func(ctx context.Context) (turn.Effect, error) {
		return p.desk.Command(ctx, &turn.Call{Message: msg, Session: msg.Place.SessionKey(""), Admin: admin})
	})
	return rows[0].Content
}

// press presses a button and returns what is said, and the message as it reads then.
func (p *process) press(msg *bot.Message, data string, admin bool) (toast string, shown bot.Content) {
	p.t.Helper()
	msg.Kind, msg.Data, msg.Query = bot.Press, data, "q"
	rows := p.apply(func(ctx context.Context) (turn.Effect, error) {
		return p.desk.Press(ctx, &turn.Call{Message: msg, Session: msg.Place.SessionKey(""), Admin: admin})
	})
	if len(rows) > 1 {
		shown = rows[1].Content
	}
	return rows[0].Content.Text, shown
}

// button returns the data of a button by its label.
func button(t testing.TB, c bot.Content, label string) string {
	t.Helper()
	for _, line := range c.Buttons {
		for _, b := range line {
			if len(b.Data) > 64 {
				t.Errorf("%d bytes in a button", len(b.Data))
			}
			if b.Label == label {
				return b.Data
			}
		}
	}
	t.Fatalf("no button %q below %q: %+v", label, c.Text, c.Buttons)
	return ""
}

func reminder(msg *bot.Message) *turn.Reminder { return &turn.Reminder{Message: msg} }
