package refusal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/refusal"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

// conversation is a store with a session in which calls were refused in two turns, and a desk over it.
func conversation(t *testing.T) (refusal.Explainer, *turn.Call) {
	t.Helper()
	store, place := bottest.New(), bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "-5", Group: true}
	session := place.SessionKey("42")
	entry := func(turn, call, why, rule string) []journal.Entry {
		return []journal.Entry{
			{Turn: turn, Kind: journal.AssistantEntry, At: time.Now(), Uses: []journal.Use{{Call: call, Name: "bash", Args: json.RawMessage(`{"command":"rm ` + call + `"}`)}}},
			{Turn: turn, Kind: journal.ResultEntry, At: time.Now(), Call: call, Tool: "bash", Failed: true, Refusal: &journal.Refusal{Reason: reason.Plain(why), Rule: rule}},
		}
	}
	entries := entry("t1", "1.0", "A policy rule denies this.", "tools.policy.rules[0]")
	entries = append(entries, journal.Entry{Turn: "t1", Kind: journal.AnswerEntry, Text: "No."})
	for _, call := range []string{"2.0", "2.1", "2.2", "2.3", "2.4", "2.5"} {
		entries = append(entries, entry("t2", call, "Path outside.", "")...)
	}
	entries = append(entries, journal.Entry{Turn: "t3", Kind: journal.AnswerEntry, Text: "Nothing refused."})
	if _, err := store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: session, Entries: entries}}); err != nil {
		t.Fatal(err)
	}
	return refusal.Explainer{Store: store, Words: texts.Words{}}, &turn.Call{Admin: true, Session: session, Message: &bot.Message{Place: place, Message: "9", Query: "q"}}
}

// TestRefusal: the button explains its own turn, /why the last one that has refusals, nothing explains another's.
func TestRefusal(t *testing.T) {
	t.Parallel()
	desk, call := conversation(t)
	if b := desk.Buttons(turn.Answer{Language: "en", Turn: "t1", Stats: journal.Stats{Calls: 3}}); b != nil {
		t.Errorf("a button where nothing was refused: %+v", b)
	}
	buttons := desk.Buttons(turn.Answer{Language: "en", Turn: "t1", Stats: journal.Stats{Refused: 1}})
	if len(buttons) != 1 || buttons[0].Label != "Why?" || len(buttons[0].Data) > 64 {
		t.Fatalf("%+v", buttons)
	}
	call.Message.Data = buttons[0].Data
	e, err := desk.Press(t.Context(), call)
	if err != nil || len(e.Change.Send) != 2 || e.Change.Send[0].Purpose != bot.Toast {
		t.Fatalf("%+v, %v", e, err)
	}
	const want = "⛔ rm 1.0\nA policy rule denies this.\nRule: tools.policy.rules[0]\nWhat would allow it: an admin can change that rule in the configuration."
	if got := e.Change.Send[1]; !strings.HasPrefix(got.Content.Text, want) || got.ReplyTo != "9" {
		t.Errorf("%+v", got)
	}
	call.Admin = false
	e, err = desk.Press(t.Context(), call)
	const plain = "⛔ rm 1.0\nA policy rule denies this.\nWhat would allow it: an admin can change that rule in the configuration."
	if err != nil || len(e.Change.Send) != 2 || e.Change.Send[1].Content.Text != plain {
		t.Errorf("to somebody who is no admin: %+v, %v", e, err)
	}
	e, err = desk.Why(t.Context(), call)
	if err != nil || len(e.Change.Send) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	text := e.Change.Send[0].Content.Text
	if strings.Count(text, "⛔") != 5 || strings.Contains(text, "rm 2.0") || !strings.Contains(text, "rm 2.5") || strings.Contains(text, "Rule:") {
		t.Errorf("the newest five of the last turn: %q", text)
	}
	for _, data := range []string{"w1", "w1:", "w1:0000000000000000", buttons[0].Data + "0"} {
		call.Message.Data = data
		e, err := desk.Press(t.Context(), call)
		if err != nil || len(e.Change.Send) != 1 || !e.Change.Send[0].Alert || e.Change.Send[0].Content.Text != "Nothing was refused in this conversation lately." {
			t.Errorf("%s: %+v, %v", data, e, err)
		}
	}
	call.Session, call.Message.Data = call.Message.Place.SessionKey("43"), buttons[0].Data
	if e, err := desk.Press(t.Context(), call); err != nil || len(e.Change.Send) != 1 || !e.Change.Send[0].Alert {
		t.Errorf("somebody else of the group: %+v, %v", e, err)
	}
}
