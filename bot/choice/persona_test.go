package choice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

var personas = []choice.Persona{
	{Name: "Chef Anna", Instructions: "You cook.", Tools: []string{"read"}, Model: models[1]},
	{Name: "mute", Tools: []string{}},
	{Name: "tutor", Voice: "nova"},
}

// lobby is a process with personas, and the store that it shares.
type lobby struct {
	*desk
	p *choice.Personas
}

func openLobby(t *testing.T, store *bottest.Store, offered []choice.Persona) *lobby {
	t.Helper()
	l := &lobby{p: choice.NewPersonas(choice.PersonaDeps{Store: store, Offered: offered, Words: texts.Words{}, Now: time.Now})}
	l.desk = open(t, store, func(deps *choice.Deps) { deps.Personas = l.p })
	if err := l.p.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// choose presses the button of a persona on the card that the caller sees, and returns what is shown.
func (l *lobby) choose(call *turn.Call, label string) []bot.Row {
	l.t.Helper()
	call.Message.Kind, call.Message.Query = bot.Press, "q"
	press := func(data string) []bot.Row {
		call.Message.Data = data
		return l.apply(l.p.Press(l.t.Context(), call))
	}
	card := press(choice.PersonaPrefix + ":")
	labels, data := buttons(&card[len(card)-1])
	if at := slices.IndexFunc(labels, func(have string) bool { return strings.TrimPrefix(have, "✓ ") == label }); at >= 0 {
		return press(data[at])
	}
	return card
}

func (l *lobby) nameOf(call *turn.Call) string {
	persona, _ := l.p.Of(call.Session)
	return persona.Name
}

// A private chat's persona is chosen by its person, that of a group and of its topics by admins; a topic without a
// choice has that of its group, in every process.
func TestWhereAPersonaHolds(t *testing.T) {
	t.Parallel()
	l := openLobby(t, bottest.New(), personas)
	there := openLobby(t, l.store, personas)
	in := func(thread string, admin bool) *turn.Call {
		c := call("-5", "2", admin)
		c.Message.Place.Thread = thread
		c.Session = c.Message.Place.SessionKey("2")
		return c
	}
	ann := call("1", "1", false)
	l.choose(ann, "tutor")
	if rows := l.choose(in("", false), "tutor"); len(rows) != 1 || !rows[0].Alert {
		t.Errorf("a member chose: %+v", rows)
	}
	l.choose(in("", true), "tutor")
	l.choose(in("7", true), "Chef Anna")
	l.choose(in("8", true), "none")
	want := map[*turn.Call]string{ann: "tutor", in("", false): "tutor", in("7", false): "Chef Anna", in("8", false): "", in("9", false): "tutor", call("2", "2", false): ""}
	if err := there.p.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*lobby{l, there} {
		for c, name := range want {
			if got := l.nameOf(c); got != name {
				t.Errorf("%s has %q, want %q", c.Session, got, name)
			}
		}
	}
	rows := l.choose(in("7", true), "that of the group")
	labels, data := buttons(&rows[len(rows)-1])
	if diff := cmp.Diff([]string{"✓ that of the group", "none", "Chef Anna", "mute", "tutor", "Back"}, labels); diff != "" || l.nameOf(in("7", false)) != "tutor" {
		t.Errorf("%s; it has %q", diff, l.nameOf(in("7", false)))
	}
	for _, d := range data {
		if len(d) > 64 {
			t.Errorf("%q is longer than 64 bytes", d)
		}
	}
	l.choose(ann, "none")
	if left, err := l.store.FactsOf(t.Context(), "persona", "", time.Now()); err != nil || len(left) != 2 || l.nameOf(ann) != "" {
		t.Errorf("%v, %v", left, err)
	}
}

// A persona takes tools away, those that the turn adds too, and says why; it gives none back.
func TestPersonaNarrows(t *testing.T) {
	t.Parallel()
	l := openLobby(t, bottest.New(), personas)
	ann := call("1", "1", false)
	if m := l.p.Manner(ann.Session); m.Narrow != nil || m.Persona.Name != "" {
		t.Errorf("without a persona: %+v", m)
	}
	forbidden := tools.Only(func(tool string) bool { return tool != "read" })
	for name, want := range map[string]struct{ read, bash bool }{"Chef Anna": {bash: true}, "mute": {read: true, bash: true}} {
		l.choose(ann, name)
		o := l.p.Manner(ann.Session).Narrow(nil)
		if o.Takes("read") != want.read || o.Takes("bash") != want.bash || o.Why("bash").Code != reason.ToolNotOfPersona {
			t.Errorf("%s: takes read %t, bash %t: %v", name, o.Takes("read"), o.Takes("bash"), o.Why("bash"))
		}
		if o := l.p.Manner(ann.Session).Narrow(forbidden); !o.Takes("read") || !o.Takes("bash") {
			t.Errorf("%s gives a tool back", name)
		}
	}
	l.choose(ann, "tutor")
	if m := l.p.Manner(ann.Session); m.Narrow != nil || m.Persona.Name != "tutor" {
		t.Errorf("with all tools: %+v", m)
	}
}

// A persona that is no longer configured is said to be gone once, whatever process finds out, and counts when it is back.
func TestMissingPersona(t *testing.T) {
	t.Parallel()
	l := openLobby(t, bottest.New(), personas)
	ann := call("1", "1", false)
	l.choose(ann, "tutor")
	said := func(l *lobby) string {
		t.Helper()
		var m turn.Manner
		if err := l.p.Missing(t.Context(), ann.Session, "en", &m); err != nil {
			t.Fatal(err)
		}
		if m.Notice == nil {
			return ""
		}
		if _, err := l.store.Apply(t.Context(), &bot.Change{Facts: m.Facts}); err != nil {
			t.Fatal(err)
		}
		return m.Notice.Text
	}
	if text := said(l); text != "" {
		t.Errorf("it is there: %q", text)
	}
	one, two := openLobby(t, l.store, personas[:1]), openLobby(t, l.store, personas[:1])
	if text := said(one); !strings.HasPrefix(text, "The persona tutor is not set up any more.") || one.nameOf(ann) != "" {
		t.Errorf("%q", text)
	}
	for _, l := range []*lobby{one, two, openLobby(t, l.store, nil)} {
		if text := said(l); text != "" {
			t.Errorf("said again: %q", text)
		}
	}
	if back := openLobby(t, l.store, personas); back.nameOf(ann) != "tutor" {
		t.Errorf("back it is %q", back.nameOf(ann))
	}
}

// A persona with a model decides it: /model says so, and offers nothing.
func TestModelOfPersona(t *testing.T) {
	t.Parallel()
	l := openLobby(t, bottest.New(), personas)
	ann := call("1", "1", true)
	l.command(ann, "own")
	l.choose(ann, "Chef Anna")
	const want = "The model is large · gpt-large here, because the persona Chef Anna has one of its own. Another persona is chosen in /settings."
	for _, args := range []string{"", "main"} {
		rows := l.command(ann, args)
		if labels, _ := buttons(&rows[0]); rows[0].Content.Text != want || len(labels) != 0 || l.c.Of(ann.Session) != "large" {
			t.Errorf("%q: %q, %v, %q", args, rows[0].Content.Text, labels, l.c.Of(ann.Session))
		}
	}
	l.choose(ann, "tutor")
	if got := l.c.Of(ann.Session); got != "own" {
		t.Errorf("without it the model is %q", got)
	}
}

// Buttons that somebody made up choose nothing, and a group keeps its persona under a new id.
func TestPersonaButtonsAndMoves(t *testing.T) {
	t.Parallel()
	l := openLobby(t, bottest.New(), personas)
	group := call("-5", "3", true)
	for _, data := range []string{"pe", "pe:x", "pe:" + strings.Repeat("A", 16), "st:"} {
		group.Message.Data, group.Message.Kind = data, bot.Press
		if rows := l.apply(l.p.Press(t.Context(), group)); len(rows) != 1 || !rows[0].Alert || l.nameOf(group) != "" {
			t.Errorf("%q: %+v", data, rows)
		}
	}
	l.choose(group, "tutor")
	if _, err := l.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "7", From: "-5", To: "-1005"}}); err != nil {
		t.Fatal(err)
	}
	l.p.Forget()
	if err := l.p.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.nameOf(call("-1005", "4", false)); got != "tutor" {
		t.Errorf("%q", got)
	}
}
