package access_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
)

var payload = regexp.MustCompile(`\?start(?:group)?=([A-Za-z0-9_-]{1,64})\n`)

// invites has an admin make a link, and returns what it brings.
func (h *house) invites(args string) string {
	h.t.Helper()
	h.apply(h.desk.Invite(h.t.Context(), &turn.Call{Message: h.message("7", "/invite "+args, ""), Session: "s", Admin: true}))
	m := payload.FindStringSubmatch(h.sent[0].Content.Text)
	if m == nil {
		h.t.Fatalf("/invite %s: %q", args, h.sent[0].Content.Text)
	}
	return m[1]
}

// TestInvitationRace: of many people who follow a link at the same moment in two processes, exactly as many are admitted
// as it has uses, whatever is tried again.
func TestInvitationRace(t *testing.T) {
	t.Parallel()
	const people, uses = 12, 3
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	h.opts.Line = nil // it is not safe for concurrent use here
	h.another()
	first := h.guard
	h.another()
	guards := []*access.Guard{first, h.guard}
	code := h.invites(fmt.Sprintf("%dx", uses))
	var admitted atomic.Int32
	var all sync.WaitGroup
	for n := range people {
		msg := h.message(fmt.Sprint(100+n), "/start "+code, "")
		all.Go(func() {
			for try := range 3 { // the update is delivered again, to any process
				v, err := guards[(n+try)%2].Admit(t.Context(), msg)
				if err != nil {
					t.Error(err)
					return
				}
				if v.OK && try == 0 {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	entries, err := h.guard.People(t.Context(), h.opts.Private(""))
	if err != nil || len(entries) != uses || admitted.Load() != uses {
		t.Errorf("%d entries, %d were let in, %v; want %d", len(entries), admitted.Load(), err, uses)
	}
}

// TestInvitationEnds: a link is of no use to who was blocked or removed, after the admin who made it lost their rights,
// in the wrong kind of chat, and after its time.
func TestInvitationEnds(t *testing.T) {
	t.Parallel()
	gone := "This link or code is not valid any more"
	for name, row := range map[string]struct {
		args, person, chat string
		meanwhile          func(h *house)
		want               string
	}{
		"a link of a group, in private": {args: "group", person: "9", want: gone},
		"one of a person, in a group":   {person: "9", chat: "-5", want: "I am not set up for this group yet."},
		"expired":                       {args: "1d", person: "9", meanwhile: func(h *house) { h.now = h.now.Add(25 * time.Hour) }, want: gone},
		"blocked": {person: "9", meanwhile: func(h *house) {
			h.says("9", "hello", "")
			h.press("7", "p1:b:9")
		}},
		"the admin is none any more": {person: "9", meanwhile: func(h *house) {
			h.opts.Admins = []string{"8"}
			h.another()
		}, want: gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, access.Options{Admins: []string{"7"}})
			code := h.invites(row.args)
			if row.meanwhile != nil {
				row.meanwhile(h)
			}
			v := h.says(row.person, "/start "+code, row.chat)
			if v.OK {
				t.Errorf("admitted: %+v", v)
			}
			want(t, "refused", v.Reply, row.want)
		})
	}
}

// TestInvitationGives: what is admitted is what the link says, and no more than the syntax allows.
func TestInvitationGives(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Allowance: quota.Allowance})
	v := h.says("9", "/start "+h.invites("approver turns/day=20 2x"), "")
	e, ok := h.entry("9")
	if !v.OK || v.Admin || !ok || e.Role != access.Approver || e.By != "telegram:7" || e.ByName != "P7" {
		t.Errorf("%+v, %+v", v, e)
	}
	limits, err := h.store.FactsOf(t.Context(), quota.Bucket, "user/telegram:9/", h.now)
	if err != nil || len(limits) != 1 || !strings.Contains(limits[0].Value, `"limit":20`) {
		t.Errorf("%+v, %v", limits, err)
	}
	v = h.says("10", "/start "+h.invites("group"), "-5")
	if _, ok := h.entry("10"); !v.OK || !ok {
		t.Errorf("by a group: %+v", v)
	}
	if v := h.says("11", "hi", "-5"); v.OK {
		t.Errorf("others in the group: %+v", v)
	}
	for _, args := range []string{"admin", "0x", "101x", "0d", "31d", "x", "5", "usd/day=5", "turns/day=0", "turns/day=-1", "turns/year=3", "group team"} {
		h.apply(h.desk.Invite(t.Context(), &turn.Call{Message: h.message("7", "/invite "+args, ""), Session: "s", Admin: true}))
		if text := h.sent[0].Content.Text; !strings.HasPrefix(text, "I do not know what ") || !strings.Contains(text, " means here.\n/invite makes") {
			t.Errorf("/invite %s: %q", args, text)
		}
	}
	for range 50 - 1 { // one use of the first is left
		h.invites("")
	}
	h.apply(h.desk.Invite(t.Context(), &turn.Call{Message: h.message("7", "/invite", ""), Session: "s", Admin: true}))
	want(t, "too many", h.sent[0].Content.Text, "There are 50 valid links")
}
