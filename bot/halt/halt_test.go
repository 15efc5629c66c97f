package halt_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/halt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const asker = "telegram:1"

var team = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "-5", Group: true}

// desk is a button below the answer of a turn in progress, and the store that knows the turn.
func desk(t *testing.T, rights approval.Rights, err error) (halt.Button, *bottest.Store, string) {
	t.Helper()
	store := bottest.New()
	session := team.SessionKey("1")
	at, running, name, caller := time.Now(), bot.Running, "telegram-7-44", asker
	_, failed := store.Apply(t.Context(), &bot.Change{
		Claim: &bot.Claim{Session: session, Place: team, Owner: "a", Now: at, Until: at.Add(time.Minute)},
		Lanes: []bot.LaneUpdate{{Session: session, State: &running, Turn: &name, Caller: &caller}},
	})
	if failed != nil {
		t.Fatal(failed)
	}
	d := halt.Button{Store: store, Words: texts.Words{}, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
		return rights, err
	}}
	buttons := d.Buttons("en", name)
	if len(buttons) != 1 || buttons[0][0].Label != "Stop" || len(buttons[0][0].Data) > 64 {
		t.Fatalf("buttons: %+v", buttons)
	}
	return d, store, buttons[0][0].Data
}

func press(person, data string, admin bool) *turn.Call {
	return &turn.Call{Admin: admin, Session: team.SessionKey(person), Message: &bot.Message{
		Kind: bot.Press, Place: team, Caller: person, Data: data, Query: "q",
	}}
}

func TestWhoMayStop(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		call   func(data string) *turn.Call
		rights approval.Rights
		stops  bool
		toast  string
		alert  bool
	}{
		"who asked":             {func(d string) *turn.Call { return press(asker, d, false) }, approval.Rights{}, true, "Stopping.", false},
		"an admin":              {func(d string) *turn.Call { return press("telegram:2", d, true) }, approval.Rights{}, true, "Stopping.", false},
		"an approver":           {func(d string) *turn.Call { return press("telegram:3", d, false) }, approval.Rights{Approvers: []string{"telegram:3"}}, true, "Stopping.", false},
		"an admin of the chat":  {func(d string) *turn.Call { return press("telegram:3", d, false) }, approval.Rights{Admins: []string{"telegram:3"}}, true, "Stopping.", false},
		"somebody else":         {func(d string) *turn.Call { return press("telegram:4", d, false) }, approval.Rights{Approvers: []string{"telegram:3"}}, false, "Only the person who asked", true},
		"nobody":                {func(d string) *turn.Call { return press("", d, false) }, approval.Rights{Approvers: []string{""}}, false, "Only the person who asked", true},
		"a turn that has ended": {func(d string) *turn.Call { return press(asker, d[:len(d)-1]+"x", true) }, approval.Rights{}, false, "This has ended already.", false},
		"no button of ours":     {func(string) *turn.Call { return press(asker, "s1", true) }, approval.Rights{}, false, "This has ended already.", false},
		"another chat": {func(d string) *turn.Call {
			c := press(asker, d, true)
			c.Message.Place.Chat = "-6"
			return c
		}, approval.Rights{}, false, "This has ended already.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, store, data := desk(t, row.rights, nil)
			e, err := d.Press(t.Context(), row.call(data))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Apply(t.Context(), &e.Change); err != nil {
				t.Fatal(err)
			}
			lane, err := store.Lane(t.Context(), team.SessionKey("1"))
			if err != nil || (lane.Stop == lane.Turn) != row.stops || (len(e.Stop) == 1) != row.stops {
				t.Errorf("stopped: %q of %q, %v (%v)", lane.Stop, lane.Turn, e.Stop, err)
			}
			toast := e.Change.Send[0]
			if toast.Purpose != bot.Toast || toast.Query != "q" || toast.Alert != row.alert || !strings.HasPrefix(toast.Content.Text, row.toast) {
				t.Errorf("toast: %+v", toast)
			}
		})
	}
}

func TestRightsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d, _, data := desk(t, approval.Rights{}, errors.New("down"))
	if e, err := d.Press(t.Context(), press("telegram:3", data, false)); err == nil || len(e.Stop) > 0 {
		t.Errorf("stopped without rights: %+v, %v", e, err)
	}
}
