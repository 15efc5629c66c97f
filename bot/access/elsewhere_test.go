package access_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
)

// elsewhere is a message in a chat that the bot is not in itself.
func (h *house) elsewhere(surface, person, chat string) *bot.Message {
	m := h.message(person, "hello", chat)
	m.Place.Surface, m.Place.Group = surface, surface == bot.SurfaceGuest
	return m
}

// TestGuests: who is admitted is answered as a user, even an admin of the bot in a group that is listed; nobody else is,
// and nobody is told why.
func TestGuests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, person string
		off          bool
		want         bool
	}{
		{name: "a user", person: "8", want: true},
		{name: "an admin", person: "7", want: true},
		{name: "a stranger", person: "9"},
		{name: "off", person: "8", off: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, access.Options{
				Admins: []string{"7"}, Users: []string{"8"}, Chats: []string{"-1"}, Guests: !tt.off, SharedSession: true, AnyMessage: true,
				ByRole: map[access.Role][]string{access.User: {"read"}},
				ByChat: map[string]access.Chat{"-1": {System: "of another chat", AllowedTools: []string{"bash"}, Approvers: []string{"8"}}},
			})
			msg := h.elsewhere(bot.SurfaceGuest, tt.person, "-1")
			v, err := h.guard.Admit(t.Context(), msg)
			if err != nil || v.OK != tt.want || v.Admin || v.Reply != "" || len(v.Change.Send) > 0 || v.Payer != "" {
				t.Errorf("%+v, %v", v, err)
			}
			if v.OK && (!v.Allowed("read") || v.Allowed("bash")) {
				t.Error("not the tools of a user")
			}
			if r := h.guard.Rules(msg.Place); r.System != "" || r.SharedSession || r.AnyMessage || r.Allowed != nil {
				t.Errorf("rules of a chat with the same id: %+v", r)
			}
			if ok, err := h.guard.Reach(t.Context(), msg.Place, msg.Caller); ok || err != nil {
				t.Errorf("somebody can be asked there: %v", err)
			}
		})
	}
}

// connects has a person connect their business account, or change the connection; it returns what they are told.
func (h *house) connects(person, connection, state string) string {
	h.t.Helper()
	m := h.message(person, "", person)
	m.Kind, m.Target, m.Status = bot.Connection, connection, state
	v, err := h.guard.Admit(h.t.Context(), m)
	if err != nil || v.OK {
		h.t.Fatalf("%+v, %v", v, err)
	}
	if _, err := h.store.Apply(h.t.Context(), &v.Change); err != nil {
		h.t.Fatal(err)
	}
	return v.Reply
}

// TestBusinessAccounts: a message is answered while its account is connected, may be answered and belongs to somebody
// who is admitted. The owner pays, the sender has no tools.
func TestBusinessAccounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Users: []string{"8"}})
	surface, _ := bot.SurfaceBusiness("c1")
	customer := h.elsewhere(surface, "99", "99")
	answered := func() bool {
		t.Helper()
		v, err := h.guard.Admit(t.Context(), customer)
		if err != nil || v.Reply != "" || v.Admin || len(v.Change.Send) > 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		if v.OK && (v.Payer != "telegram:8" || v.Allowed("read")) {
			t.Errorf("%s pays, or the customer has tools", v.Payer)
		}
		return v.OK
	}
	if answered() {
		t.Error("answered before anybody connected")
	}
	told := []string{}
	for _, step := range []struct {
		state string
		want  bool
	}{{"connected", true}, {"mute", false}, {"connected", true}, {"disconnected", false}} {
		told = append(told, h.connects("8", "c1", step.state))
		h.another()
		if answered() != step.want {
			t.Errorf("%s: answered is %v", step.state, !step.want)
		}
	}
	if slices.Sort(told); len(slices.Compact(told)) != 3 || told[0] == "" {
		t.Errorf("told %q", told)
	}
	h.connects("8", "c1", "connected")
	h.opts.Users = nil
	h.another()
	if answered() {
		t.Error("answered although the owner is not admitted any more")
	}
}

// TestBusinessAccountsAreAskedFor: an account that was connected before the bot knew of such is asked for once, and a
// failure to ask is tried again.
func TestBusinessAccountsAreAskedFor(t *testing.T) {
	t.Parallel()
	asked, away := 0, true
	h := newHouse(t, access.Options{Users: []string{"8"}, Connection: func(_ context.Context, id string) (string, string, error) {
		if asked++; away {
			return "", "", errors.New("away")
		}
		return map[string]string{"c1": "8"}[id], map[string]string{"c1": "connected"}[id], nil
	}})
	surface, _ := bot.SurfaceBusiness("c1")
	if _, err := h.guard.Admit(t.Context(), h.elsewhere(surface, "99", "99")); err == nil {
		t.Error("decided without an answer")
	}
	away = false
	for range 2 {
		if v, err := h.guard.Admit(t.Context(), h.elsewhere(surface, "99", "99")); err != nil || !v.OK {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	unknown, _ := bot.SurfaceBusiness("c2")
	if v, err := h.guard.Admit(t.Context(), h.elsewhere(unknown, "99", "99")); err != nil || v.OK {
		t.Errorf("%+v, %v", v, err)
	}
}
