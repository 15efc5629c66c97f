package access_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/turn"
)

// waiting lists what waits to be answered in a private chat.
func (h *house) waiting(person string) (texts []string) {
	h.t.Helper()
	list, err := h.store.Next(h.t.Context(), h.opts.Private(person).SessionKey(""), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range list {
		msg, err := bot.MessageDecoder{}.Decode(a.Raw)
		if err != nil || a.Source != bot.FromStranger {
			h.t.Fatalf("%+v, %v", a, err)
		}
		texts = append(texts, msg.Text)
	}
	return texts
}

// TestSaidIsBounded: of a stranger a few messages are kept, none that is too large, no command, and for a week.
func TestSaidIsBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	h.says("9", "old", "")
	h.now = h.now.Add(8 * 24 * time.Hour)
	for _, text := range []string{"one", strings.Repeat("x", 9<<10), "/help", "two", "three", "four", "five", "six"} {
		h.says("9", text, "")
	}
	h.says("9", "in a group", "-5")
	if got := h.waiting("9"); got != nil {
		t.Errorf("answered before they are admitted: %q", got)
	}
	h.another()
	want(t, "admitted", h.command("7", "/admit 9", ""), "✅ Admitted")
	if got := strings.Join(h.waiting("9"), " "); got != "one two three four five" {
		t.Errorf("answered: %q", got)
	}
	if facts, err := h.store.FactsOf(t.Context(), "stranger_said", "", h.now); err != nil || len(facts) != 0 {
		t.Errorf("still kept: %+v, %v", facts, err)
	}
}

// TestSaidOnce: of two admins who press at once in two processes, one admits; what was written is answered once, and
// nothing of it after a refusal.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		h := newHouse(t, access.Options{Admins: []string{"7", "8"}})
		h.says("9", "hello", "")
		presses := make([]*bot.Message, 2)
		for i, verb := range []string{"a", "d"} {
			presses[i] = h.message([]string{"7", "8"}[i], "", "")
			presses[i].Kind, presses[i].Data, presses[i].Query = bot.Press, "p1:"+verb+":9", "q"
		}
		var all sync.WaitGroup
		for _, msg := range presses {
			all.Go(func() {
				for range 4 { // as the dispatcher does
					desk := access.NewAdmissions(h.guard, h.store, "zephbot")
					e, err := desk.Press(t.Context(), &turn.Call{Message: msg})
					if err != nil {
						t.Error(err)
						return
					}
					if _, err = h.store.Apply(t.Context(), &e.Change); err == nil {
						return
					}
				}
			})
		}
		all.Wait()
		_, ok := h.entry("9")
		if got := len(h.waiting("9")); ok && got > 1 || !ok && got != 0 {
			t.Fatalf("admitted %v, and %d messages are answered", ok, got)
		}
	}
}

// entry returns what was given to a person.
func (h *house) entry(id string) (access.Entry, bool) {
	h.t.Helper()
	people, err := h.guard.People(h.t.Context(), h.opts.Private(""))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range people {
		if e.ID == id {
			return e, true
		}
	}
	return access.Entry{}, false
}

// TestBlocked: nobody hears of whoever is blocked, until an admin takes that back.
func TestBlocked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	h.says("9", "hello", "")
	want(t, "blocked", h.press("7", "p1:b:9"), "⛔ Blocked: P9")
	want(t, "declined as well", h.press("7", "p1:d:9"), "⛔ Blocked: P9")
	h.now = h.now.Add(48 * time.Hour)
	v := h.says("9", "hello", "")
	if v.OK || v.Reply != "" || len(h.sent) != 0 || v.Reason != "blocked by an admin" {
		t.Errorf("%+v, %+v", v, h.sent)
	}
	want(t, "admitted all the same", h.command("7", "/admit 9", ""), "✅ Admitted: P9")
	if v := h.says("9", "hello", ""); !v.OK || v.Admin {
		t.Errorf("%+v", v)
	}
	want(t, "blocked once admitted", h.press("7", "p1:b:9"), "Already admitted: P9")
	if toast := h.sent[0].Content.Text; toast != "" {
		t.Errorf("what is not done is called noted: %q", toast)
	}
	if got := strings.Join(h.lines, "; "); got != "block 9 blocked by telegram:7; admit 9 user by telegram:7" {
		t.Errorf("recorded: %s", got)
	}
}

// TestSaidMeanwhile: a message that came while an admin pressed is not lost: it is looked at again.
func TestSaidMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	h.says("9", "hello", "")
	msg := h.message("9", "one more", "")
	v, err := h.guard.Admit(t.Context(), msg)
	if err != nil || v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	want(t, "admitted", h.press("7", "p1:a:9"), "✅ Admitted")
	if _, err := h.store.Apply(t.Context(), &v.Change); !errors.Is(err, bot.ErrConflict) {
		t.Errorf("kept after the admission: %v", err)
	}
	if v, err := h.guard.Admit(t.Context(), msg); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestStrangerInGroup: whoever addresses the bot in an admitted group is asked for once, and what they wrote there is
// answered there, by the id that the group has then.
func TestStrangerInGroup(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Chats: []string{"-5"}})
	for _, text := range []string{"not for the bot", "/roll"} {
		msg := h.message("9", text, "-5")
		msg.Addressed = msg.Command != ""
		if v, err := h.guard.Admit(t.Context(), msg); err != nil || v.OK || v.Reply != "" || len(v.Change.Send) > 0 {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
	v := h.says("9", "hello", "-5")
	want(t, "asked", v.Reply, "I only talk to people on my list. I have asked an admin")
	if len(h.sent) != 1 || v.Once != "stranger/telegram/1/bot/-5/telegram:9" {
		t.Fatalf("%+v, %+v", v, h.sent)
	}
	if h.says("9", "/help@zephbot", "-5"); len(h.sent) != 0 {
		t.Errorf("told twice: %+v", h.sent)
	}
	if _, err := h.store.Apply(t.Context(), &bot.Change{
		Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/-6", Value: "-5"}},
	}); err != nil {
		t.Fatal(err)
	}
	want(t, "admitted", h.press("7", "p1:a:9"), "✅ Admitted")
	if last := h.sent[len(h.sent)-1]; last.Place.Chat != "-6" || last.ReplyTo != "" {
		t.Errorf("told in %+v", last)
	}
	list, err := h.store.Next(t.Context(), bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "-6", Group: true}.SessionKey("9"), 0)
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if v := newHouse(t, access.Options{Chats: []string{"-5"}}).says("9", "hello", "-5"); v.Reply != "" {
		t.Errorf("without an admin: %+v", v)
	}
}
