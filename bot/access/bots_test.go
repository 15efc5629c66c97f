package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
)

// robot is a message of another bot in a group.
func (h *house) robot(id, username, chat string) *bot.Message {
	m := h.message(id, "hello", chat)
	m.FromBot, m.Username = true, username
	return m
}

// answered says whether a message of a bot is answered; what its verdict stores is stored.
func (h *house) answered(m *bot.Message) bool {
	h.t.Helper()
	v, err := h.guard.Admit(h.t.Context(), m)
	if err != nil {
		h.t.Fatal(err)
	}
	if v.Reply != "" || v.Admin {
		h.t.Errorf("a bot is told something, or is an admin: %+v", v)
	}
	if _, err := h.store.Apply(h.t.Context(), &v.Change); err != nil {
		h.t.Fatal(err)
	}
	return v.OK
}

// TestBotsAreListed: other bots are answered where that is switched on, by id or name, in groups that are admitted.
func TestBotsAreListed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		bots access.Bots
		chat string
		want bool
	}{
		{"off", access.Bots{Depth: 3}, "-1", false},
		{"off, and listed", access.Bots{Depth: 3, Allowed: []string{"555"}}, "-1", false},
		{"all", access.Bots{On: true, Depth: 3}, "-1", true},
		{"everyone", access.Bots{On: true, Depth: 3, Allowed: []string{"*"}}, "-1", true},
		{"by id", access.Bots{On: true, Depth: 3, Allowed: []string{"555"}}, "-1", true},
		{"by name", access.Bots{On: true, Depth: 3, Allowed: []string{"@ROBO_bot"}}, "-1", true},
		{"another", access.Bots{On: true, Depth: 3, Allowed: []string{"556", "@other"}}, "-1", false},
		{"another group", access.Bots{On: true, Depth: 3}, "-2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, access.Options{Admins: []string{"7", "555"}, Users: []string{"*"}, Chats: []string{"-1"}, Bots: tt.bots})
			if got := h.answered(h.robot("555", "robo_bot", tt.chat)); got != tt.want {
				t.Errorf("answered: %v, want %v", got, tt.want)
			}
		})
	}
}

// TestBotsInARow: bots are answered so often in a row, together, in a chat; a person's word begins a new row.
func TestBotsInARow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Users: []string{"42"}, Chats: []string{"*"}, Bots: access.Bots{On: true, Depth: 3}})
	again := h.robot("555", "", "-1")
	for i, want := range []bool{true, true, true, false, false} {
		m := h.robot(fmt.Sprint(555+i%2), "", "-1")
		if i == 0 {
			m = again
		}
		if got := h.answered(m); got != want {
			t.Errorf("message %d: %v, want %v", i, got, want)
		}
	}
	if !h.answered(again) {
		t.Error("a message that is read again has lost its place")
	}
	if !h.answered(h.robot("555", "", "-2")) {
		t.Error("another chat counts with this one")
	}
	if v := h.says("42", "stop that", "-1"); !v.OK {
		t.Fatalf("%+v", v)
	}
	if !h.answered(h.robot("555", "", "-1")) {
		t.Error("a person said something, and the bot is not answered")
	}
}

// TestBotsLoop: one bot in one chat is answered 20 times a minute, then not for a minute, whichever process is asked.
func TestBotsLoop(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Chats: []string{"*"}, Bots: access.Bots{On: true, Depth: 1000}})
	n := 0
	for i := range 30 {
		if i%2 == 0 {
			h.another()
		}
		if h.answered(h.robot("555", "", "-1")) {
			n++
		}
		h.now = h.now.Add(time.Second)
	}
	if n != 20 {
		t.Errorf("answered %d of 30 in half a minute, want 20", n)
	}
	if !h.answered(h.robot("556", "", "-1")) {
		t.Error("another bot pays for this one")
	}
	h.now = h.now.Add(45 * time.Second) // the first of the 20 are a minute old, the silence is not over
	if h.answered(h.robot("555", "", "-1")) {
		t.Error("answered in the minute of silence")
	}
	h.now = h.now.Add(30 * time.Second)
	if !h.answered(h.robot("555", "", "-1")) {
		t.Error("not answered after the minute of silence")
	}
}
