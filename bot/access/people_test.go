package access_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// house is a bot with its people: what a Guard and Admissions decide is stored, as the dispatcher does it.
type house struct {
	t     *testing.T
	store *bottest.Store
	opts  access.Options
	guard *access.Guard
	desk  *access.Admissions
	now   time.Time
	sent  []bot.Row
	lines []string // of the record
	n     int
}

func newHouse(t *testing.T, o access.Options) *house {
	t.Helper()
	h := &house{t: t, store: bottest.New(), now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	h.store.Now = func() time.Time { return h.now }
	o.Channel, o.Bot = "telegram", "1"
	o.Private = func(person string) bot.Place {
		return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: person}
	}
	o.Line = func(e access.Event) []bot.Fact {
		h.lines = append(h.lines, e.Verb+" "+e.Entry.ID+" "+string(e.Entry.Role)+" by "+e.By)
		return []bot.Fact{{Bucket: "audit_due", Key: fmt.Sprint(len(h.lines)), Value: "x"}}
	}
	h.opts = o
	h.another()
	return h
}

// another is a second process on the same store, which becomes the one that is asked.
func (h *house) another() {
	h.guard = access.New(h.opts, h.store, texts.Words{}, func() time.Time { return h.now })
	h.desk = access.NewAdmissions(h.guard, h.store, "zephbot")
	if err := h.guard.Follow(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// apply stores an Effect with what follows from it, and keeps what was sent.
func (h *house) apply(e turn.Effect, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	h.sent = e.Change.Send
	applied, err := h.store.Apply(h.t.Context(), &e.Change)
	if err != nil {
		h.t.Fatal(err)
	}
	if e.Then == nil {
		return
	}
	next, err := e.Then(h.t.Context(), applied)
	if err != nil {
		h.t.Fatal(err)
	}
	h.sent = append(h.sent, next.Change.Send...)
	if _, err := h.store.Apply(h.t.Context(), &next.Change); err != nil {
		h.t.Fatal(err)
	}
}

// message is one of a person, in private or in a group.
func (h *house) message(person, text, chat string) *bot.Message {
	h.n++
	m := from(person, "", chat, bot.Text)
	m.ID, m.Name, m.Text, m.Addressed, m.Title = fmt.Sprint(h.n), "P"+person, text, true, "Team"
	if rest, ok := strings.CutPrefix(text, "/"); ok {
		m.Command, m.Args, _ = strings.Cut(rest, " ")
	}
	return m
}

// says has a person write; the verdict, with what is stored with a refusal.
func (h *house) says(person, text, chat string) turn.Verdict {
	h.t.Helper()
	v, err := h.guard.Admit(h.t.Context(), h.message(person, text, chat))
	if err != nil {
		h.t.Fatal(err)
	}
	if !v.OK {
		h.apply(turn.Effect{Change: v.Change}, nil)
	}
	return v
}

// welcome has an admin write for the first time.
func (h *house) welcome(admin string) {
	h.t.Helper()
	msg := h.message(admin, "/start", "")
	if v, err := h.guard.Admit(h.t.Context(), msg); err != nil || !v.Admin {
		h.t.Fatalf("%+v, %v", v, err)
	}
	e, ok, err := h.guard.Welcome(h.t.Context(), &turn.Call{Message: msg, Session: "s", Admin: true})
	if h.apply(e, err); !ok {
		h.t.Fatal("an admin is not greeted")
	}
}

// command has an admin use a command, and returns the answer.
func (h *house) command(person, text, chat string) string {
	h.t.Helper()
	call := &turn.Call{Message: h.message(person, text, chat), Session: "s", Admin: true}
	work := map[string]func(context.Context, *turn.Call) (turn.Effect, error){"people": h.desk.People, "admit": h.desk.Admit, "remove": h.desk.Remove}
	h.apply(work[call.Message.Command](h.t.Context(), call))
	return h.sent[0].Content.Text
}

// press has a person press a button, and returns what the message became, else what popped up.
func (h *house) press(person, data string) string {
	h.t.Helper()
	m := h.message(person, "", "")
	m.Kind, m.Data, m.Query, m.Message = bot.Press, data, "q", "5"
	h.apply(h.desk.Press(h.t.Context(), &turn.Call{Message: m}))
	if len(h.sent) == 0 || h.sent[0].Purpose != bot.Toast {
		h.t.Fatalf("the press is not answered first: %+v", h.sent)
	}
	for _, row := range h.sent {
		if row.Edit != "" {
			return row.Content.Text
		}
	}
	return h.sent[0].Content.Text
}

func want(t *testing.T, what, got, begin string) {
	t.Helper()
	if !strings.HasPrefix(got, begin) || begin == "" && got != "" {
		t.Errorf("%s: %q, want %q", what, got, begin)
	}
}

// TestFirstAdmin: the code makes one person admin, once, and wrong codes are counted.
func TestFirstAdmin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Users: []string{"42"}, ByRole: map[access.Role][]string{access.User: {"read"}}})
	code, err := h.guard.Offer(t.Context(), "p1", "")
	if err != nil || !access.IsCode(code) {
		t.Fatalf("%q, %v", code, err)
	}
	facts, err := h.store.FactsOf(t.Context(), "first_admin", "", h.now)
	if err != nil || len(facts) != 1 || strings.Contains(facts[0].Value, code) {
		t.Fatalf("the code itself is stored: %+v, %v", facts, err)
	}
	want(t, "not tried yet", h.says("9", "hi", "").Reply, "I only talk to people on my list. If you are the person who runs me,")
	for i := range 4 {
		v := h.says("9", "/start WRONG", "")
		want(t, "wrong", v.Reply, "That is not the code. You have "+fmt.Sprint(4-i)+" tr")
	}
	want(t, "the last try", h.says("9", "/start WRONG", "").Reply, "Too many wrong codes.")
	want(t, "the bare word", h.says("9", "/start", "").Reply, "Too many wrong codes.")
	want(t, "no try left", h.says("9", "/start "+code, "").Reply, "Too many wrong codes.")
	want(t, "in a group", h.says("9", "/start "+code, "-5").Reply, "I have no admin yet: the code")
	v := h.says("42", "/start "+strings.ToLower(code), "")
	if !v.OK || !v.Admin || v.Allowed != nil {
		t.Fatalf("the right code: %+v", v)
	}
	if v := h.says("42", "hi", ""); !v.Admin || v.Allowed != nil {
		t.Errorf("the admin writes: %+v", v)
	}
	want(t, "used", h.says("8", "/start "+code, "").Reply, "This link or code is not valid any more")
	h.now = h.now.Add(61 * time.Minute)
	want(t, "an hour later", h.says("9", "/start "+code, "").Reply, "This link or code is not valid any more")
	h.another()
	if v := h.says("42", "hi", ""); !v.Admin {
		t.Errorf("after a restart: %+v", v)
	}
	if again, err := h.guard.Offer(t.Context(), "p1", ""); err != nil || again != "" {
		t.Errorf("a code although there is an admin: %q, %v", again, err)
	}
	if !slices.Equal(h.lines, []string{"admit 42 admin by telegram:42"}) {
		t.Errorf("the record: %q", h.lines)
	}
}

// TestShownCode: a code that somebody was shown before the process began is as good as the process's own, once.
func TestShownCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Living: func(context.Context) (func(string) bool, error) {
		return func(owner string) bool { return owner == "p2" }, nil
	}})
	early := access.NewCode()
	for _, owner := range []string{"p1", "p2"} { // the first one ends, the second one is shown the same code
		if _, err := h.guard.Offer(t.Context(), owner, access.CodeHash(early)); err != nil {
			t.Fatal(err)
		}
	}
	facts, err := h.store.FactsOf(t.Context(), "first_admin", "", h.now)
	if err != nil || len(facts) != 2 {
		t.Fatalf("codes: %+v, %v", facts, err)
	}
	if v := h.says("7", "/start "+strings.ToLower(early), ""); !v.OK || !v.Admin {
		t.Fatalf("the code that was shown before: %+v", v)
	}
	want(t, "used", h.says("8", "/start "+early, "").Reply, "This link or code is not valid any more")
	if facts, err := h.store.FactsOf(t.Context(), "first_admin", "", h.now); err != nil || len(facts) != 0 {
		t.Errorf("codes are left: %+v, %v", facts, err)
	}
}

// TestCodesEnd: a restart ends the code before it, a process that is gone has none, and an admin in the configuration
// ends them all.
func TestCodesEnd(t *testing.T) {
	t.Parallel()
	living := map[string]bool{"p1": true, "p2": true, "p3": true}
	h := newHouse(t, access.Options{Living: func(context.Context) (func(string) bool, error) {
		return func(owner string) bool { return living[owner] }, nil
	}})
	offer := func(owner string) string {
		code, err := h.guard.Offer(t.Context(), owner, "")
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	old := offer("p1")
	other, gone := offer("p2"), offer("p3")
	fresh := offer("p1")
	if old == fresh {
		t.Fatal("the same code twice")
	}
	living["p3"] = false
	for i, code := range []string{old, gone} {
		want(t, "ended", h.says(fmt.Sprint(90+i), "/start "+code, "").Reply, "That is not the code.")
	}
	if v := h.says("7", "/start "+other, ""); !v.Admin {
		t.Errorf("the other process's code: %+v", v)
	}
	want(t, "the second code", h.says("8", "/start "+fresh, "").Reply, "This link or code is not valid any more")

	h = newHouse(t, access.Options{})
	code := offer("p1")
	h.opts.Admins = []string{"7"}
	h.another()
	if none := offer("p1"); none != "" {
		t.Errorf("a code although the configuration has an admin: %q", none)
	}
	want(t, "configured since", h.says("8", "/start "+code, "").Reply, "This link or code is not valid any more")
}

// TestOneFirstAdmin: of many who send the code at once, in two processes, one is admin.
func TestOneFirstAdmin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{})
	h.opts.Line = nil
	h.another()
	code, err := h.guard.Offer(t.Context(), "p1", "")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ok := make([]bool, 8)
	for i := range ok {
		guard := access.New(h.opts, h.store, texts.Words{}, time.Now)
		m := h.message(fmt.Sprint(100+i), "/start "+code, "")
		wg.Go(func() {
			v, err := guard.Admit(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			ok[i] = v.Admin
		})
	}
	wg.Wait()
	n := 0
	for _, admin := range ok {
		if admin {
			n++
		}
	}
	if people, err := h.guard.People(t.Context(), h.opts.Private("")); n != 1 || len(people) != 1 || err != nil {
		t.Errorf("%d were told that they are admin, %+v are, %v", n, people, err)
	}
}

// TestStrangerIsAdmitted walks through a stranger's admission and removal, in one process and another.
func TestStrangerIsAdmitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Users: []string{"42"}})
	want(t, "stranger", h.says("9", "hello, press this: https://evil.example", "").Reply, "I only talk to people on my list. I have asked an admin whether to let you in;")
	if len(h.sent) != 1 || h.sent[0].Place.Chat != "7" || h.sent[0].Content.Text != "Somebody new would like to talk to me and waits for your answer:\nP9\nhello, press this: https://evil.example\nTheir id: 9" {
		t.Fatalf("the admin is told: %+v", h.sent)
	}
	button := h.sent[0].Content.Buttons[0][0]
	if h.says("9", "again", ""); len(h.sent) != 0 {
		t.Errorf("told twice a day: %+v", h.sent)
	}
	for _, person := range []string{"9", "42"} {
		want(t, "press of "+person, h.press(person, button.Data), "That is for admins of this bot (7).")
	}
	want(t, "pressed", h.press("7", button.Data), "✅ Admitted: P9 – user, by P7, 4 Mar 2026, 12:00 UTC")
	if last := h.sent[len(h.sent)-1]; last.Place.Chat != "9" || !strings.HasPrefix(last.Content.Text, "You may talk to me now.") {
		t.Errorf("the person is told: %+v", last)
	}
	want(t, "pressed again", h.press("7", button.Data), "Already admitted: P9 – user, by P7")
	elsewhere := access.New(h.opts, h.store, texts.Words{}, func() time.Time { return h.now }) // has read nothing yet
	if v, err := elsewhere.Admit(t.Context(), h.message("9", "hi", "")); err != nil || !v.OK || v.Admin {
		t.Errorf("another process: %+v, %v", v, err)
	}
	want(t, "more", h.command("7", "/admit 9 admin", ""), "✅ Admitted: P9 – admin")
	if v := h.says("9", "hi", ""); !v.Admin {
		t.Errorf("as admin: %+v", v)
	}
	want(t, "removed", h.command("7", "/remove 9", ""), "⛔ Removed: P9. Whatever is running for them is stopped.")
	if v, err := elsewhere.Admit(t.Context(), h.message("9", "hi", "")); err != nil || v.OK {
		t.Errorf("removed, in another process: %+v, %v", v, err)
	}
	if v := h.says("9", "hi", ""); v.OK {
		t.Errorf("removed: %+v", v)
	}
	want(t, "a press of the removed", h.press("9", button.Data), "That is for admins")
}

// TestConfigurationWins: what the file gives cannot be taken in the chat, and what the chat gives beyond it can.
func TestConfigurationWins(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Approvers: []string{"8"}, Users: []string{"42", "8", "@cy"}, Chats: []string{"-100"}})
	if v, err := h.guard.Admit(t.Context(), from("43", "cy", "", bot.Text)); err != nil || !v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	for command, answer := range map[string]string{
		"/remove 7":               "7 is admin by the configuration (telegram.admins).",
		"/remove 8":               "8 is approver by the configuration (telegram.approvers).",
		"/remove 42":              "42 is user by the configuration (telegram.allowed_users).",
		"/remove 43":              "43 is user by the configuration (telegram.allowed_users).",
		"/remove -100":            "The group -100 is admitted by the configuration (telegram.allowed_chats).",
		"/remove 99":              "99 was not admitted in the chat.",
		"/remove -99":             "-99 was not admitted in the chat.",
		"/remove":                 "/remove NAME removes a person",
		"/remove @ann":            "I know nobody called @ann.",
		"/admit 42":               "42 is user by the configuration",
		"/admit 8 approver":       "8 is approver by the configuration",
		"/admit -100":             "The group -100 is admitted by the configuration",
		"/admit":                  "/admit ID admits a person",
		"/admit ann":              "I know nobody called ann.",
		"/admit @ann":             "I know nobody called @ann.",
		"/admit 0":                "/admit ID admits a person",
		"/admit 007":              "/admit ID admits a person",
		"/admit 5 king":           "/admit ID admits a person",
		"/admit 5 user now":       "/admit ID admits a person",
		"/admit 9007199254740993": "/admit ID admits a person",
	} {
		want(t, command, h.command("7", command, ""), answer)
	}
	want(t, "more than the file", h.command("7", "/admit 42 admin", ""), "✅ Admitted: 42 – admin")
	if v := h.says("42", "hi", ""); !v.Admin {
		t.Errorf("promoted: %+v", v)
	}
	want(t, "back to the file", h.command("7", "/remove 42", ""), "⛔ Removed: 42. 42 is user by the configuration")
	if v := h.says("42", "hi", ""); !v.OK || v.Admin {
		t.Errorf("back: %+v", v)
	}
}

// TestLastAdmin: nobody can leave the bot without an admin.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{})
	code, err := h.guard.Offer(t.Context(), "p1", "")
	if err != nil {
		t.Fatal(err)
	}
	h.says("7", "/start "+code, "")
	want(t, "themselves", h.command("7", "/remove 7", ""), "That is the last admin.")
	want(t, "to less", h.command("7", "/admit 7 user", ""), "That is the last admin.")
	want(t, "by a button", h.press("7", "p1:r:7:0"), "That is the last admin.")
	want(t, "another", h.command("7", "/admit 8 admin", ""), "✅ Admitted: 8 – admin")
	want(t, "now", h.command("7", "/remove 7", ""), "⛔ Removed: P7.")
	want(t, "and the other", h.command("8", "/remove 8", ""), "That is the last admin.")
	want(t, "admins by name", fmt.Sprint(h.guard.Admins()), "[8]")
}

// TestMostStrangers: admins hear of so many strangers a day and no more, and the next day of others again.
func TestMostStrangers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	told := 0
	for i := range 2 * access.MostStrangers {
		h.says(fmt.Sprint(1000+i), "hi", "")
		told += len(h.sent)
	}
	if told != access.MostStrangers {
		t.Errorf("admins were told %d times", told)
	}
	h.now = h.now.Add(24*time.Hour + time.Second)
	if h.says("1000", "hi", ""); len(h.sent) != 1 {
		t.Errorf("the next day: %+v", h.sent)
	}
}

// TestStrangersAtOnce: of strangers who write at once, admins hear of as many as are left, whichever process reads first.
func TestStrangersAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	admit := func(person string) bot.Change {
		t.Helper()
		v, err := h.guard.Admit(t.Context(), h.message(person, "hi", ""))
		if err != nil {
			t.Fatal(err)
		}
		return v.Change
	}
	told := map[int64]bool{}
	for round := range access.MostStrangers {
		var changes []bot.Change
		people := []string{fmt.Sprint(1000 + 2*round), fmt.Sprint(1001 + 2*round)}
		for _, person := range people { // both are computed before either is stored
			changes = append(changes, admit(person))
		}
		for i, person := range people {
			applied, err := h.store.Apply(t.Context(), &changes[i])
			if errors.Is(err, bot.ErrConflict) {
				change := admit(person)
				applied, err = h.store.Apply(t.Context(), &change)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range applied.Rows {
				told[id] = true
			}
		}
	}
	if len(told) != access.MostStrangers {
		t.Errorf("told of %d, want %d", len(told), access.MostStrangers)
	}
}

// TestMessagesAtOnceTellOnce: two messages of a group that are looked at before either is stored tell an admin once.
func TestMessagesAtOnceTellOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	for day := range 2 {
		rows := map[int64]bool{}
		var changes []bot.Change
		for _, person := range []string{"8", "9"} {
			v, err := h.guard.Admit(t.Context(), h.message(person, "hi", "-200"))
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, v.Change)
			h.now = h.now.Add(2 * time.Second)
		}
		for i := range changes {
			applied, err := h.store.Apply(t.Context(), &changes[i])
			if (i > 0) != errors.Is(err, bot.ErrConflict) {
				t.Fatalf("message %d: %v", i, err)
			}
			if err == nil {
				for _, id := range applied.Rows {
					rows[id] = true
				}
			}
		}
		if v, err := h.guard.Admit(t.Context(), h.message("9", "hi", "-200")); err != nil || len(v.Change.Send) > 0 {
			t.Errorf("computed again: %+v, %v", v.Change, err)
		}
		if len(rows) != 1 {
			t.Errorf("day %d: told %d times", day, len(rows))
		}
		h.now = h.now.Add(25 * time.Hour)
	}
}

// TestGroupIsAdmitted: a group gets in by a button, keeps that with a new id, and lets nobody in by itself.
func TestGroupIsAdmitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	quiet := h.message("9", "nothing for the bot", "-200")
	quiet.Addressed = false
	if v, err := h.guard.Admit(t.Context(), quiet); err != nil || v.OK || len(v.Change.Send) > 0 {
		t.Errorf("not addressed: %+v, %v", v, err)
	}
	v := h.says("9", "hi", "-200")
	want(t, "the group", v.Reply, "I am not set up for this group yet. I have asked an admin about it;")
	if v.OK || len(h.sent) != 1 || h.sent[0].Content.Text != "P9 wants me in the group Team (-200), which I am not set up for." {
		t.Fatalf("%+v, %+v", v, h.sent)
	}
	button := h.sent[0].Content.Buttons[0][0].Data
	if h.says("7", "hi", "-200"); len(h.sent) != 0 {
		t.Errorf("told twice a day: %+v", h.sent)
	}
	want(t, "press", h.press("7", button), "✅ Admitted: the group Team, by P7")
	if v := h.says("7", "hi", "-200"); !v.OK {
		t.Errorf("the admin in the group: %+v", v)
	}
	if v := h.says("9", "hi", "-200"); v.OK {
		t.Errorf("a stranger in the group: %+v", v)
	}
	if _, err := h.store.Apply(t.Context(), &bot.Change{
		Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/-300", Value: "-200"}},
	}); err != nil {
		t.Fatal(err)
	}
	if v := h.says("7", "hi", "-300"); !v.OK {
		t.Errorf("before the move is carried out: %+v", v)
	}
	if _, err := h.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-200", To: "-300"}}); err != nil {
		t.Fatal(err)
	}
	for _, chat := range []string{"-300"} {
		if v := h.says("7", "hi", chat); !v.OK {
			t.Errorf("in %s: %+v", chat, v)
		}
	}
	want(t, "removed", h.command("7", "/remove -300", ""), "⛔ Removed: Team.")
	if v := h.says("7", "hi", "-300"); v.OK {
		t.Errorf("removed: %+v", v)
	}
}

// TestSummaryOfAdmitted: the line about who may talk names who was admitted in the chat, groups too, and not who is blocked.
func TestSummaryOfAdmitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	summary := func() string {
		t.Helper()
		text, err := h.guard.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	want(t, "nobody yet", summary(), "1 admin, no group")
	h.says("9", "hello", "")
	h.press("7", "p1:a:9")
	want(t, "a person", summary(), "1 admin, no group; admitted in the chat: 1 person")
	h.says("9", "hello", "-200")
	h.press("7", "p1:g:-200")
	want(t, "a group", summary(), "1 admin; admitted in the chat: 1 person, 1 group")
	h.says("11", "hello", "")
	h.press("7", "p1:b:11")
	h.says("9", "hello", "-300")
	h.press("7", "p1:b:-300")
	want(t, "blocked", summary(), "1 admin; admitted in the chat: 1 person, 1 group")
}

// TestAdminsAtOnce: of two admins who decide about a person or a group at the same moment, in any order, the second one is
// computed again, and nobody is told the contrary of what holds.
func TestAdminsAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ chat, id, first, second, then string }{
		{"", "9", "p1:a:9", "p1:d:9", "Already admitted: P9"},
		{"", "9", "p1:a:9", "p1:b:9", "Already admitted: P9"},
		{"", "9", "p1:b:9", "p1:a:9", "✅ Admitted: P9"},
		{"", "9", "p1:b:9", "p1:d:9", "⛔ Blocked: P9"},
		{"-200", "-200", "p1:a:-200", "p1:d:-200", "Already admitted: Team"},
		{"-200", "-200", "p1:a:-200", "p1:b:-200", "Already admitted: Team"},
		{"-200", "-200", "p1:g:-200", "p1:a:-200", "Already admitted: Team"},
		{"-200", "-200", "p1:b:-200", "p1:a:-200", "✅ Admitted: the group Team"},
		{"-200", "-200", "p1:b:-200", "p1:d:-200", "⛔ Blocked: the group Team"},
	} {
		t.Run(row.first+" "+row.second, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, access.Options{Admins: []string{"7", "8"}})
			h.opts.Line = nil
			h.another()
			h.says("9", "hello", row.chat)
			var effects []turn.Effect
			for i, data := range []string{row.first, row.second} { // both are computed before either is stored
				m := h.message([]string{"7", "8"}[i], "", "")
				m.Kind, m.Data, m.Query, m.Message = bot.Press, data, "q", "5"
				e, err := h.desk.Press(t.Context(), &turn.Call{Message: m})
				if err != nil {
					t.Fatal(err)
				}
				effects = append(effects, e)
			}
			if _, err := h.store.Apply(t.Context(), &effects[0].Change); err != nil {
				t.Fatal(err)
			}
			if _, err := h.store.Apply(t.Context(), &effects[1].Change); !errors.Is(err, bot.ErrConflict) {
				t.Fatalf("the second one: %v", err)
			}
			want(t, "computed again", h.press("8", row.second), row.then)
			admits := strings.Contains(row.then, "dmitted")
			if v := h.says("7", "hi", "-200"); row.chat != "" && v.OK != admits {
				t.Errorf("in the group: %+v", v)
			}
			if v := h.says("9", "hi", ""); row.chat == "" && v.OK != admits {
				t.Errorf("the person: %+v", v)
			}
		})
	}
}

// TestGroupWaitsForInvitation: while there is a link for groups, a group that was just joined is not told yet that it is not
// admitted; and not at all once it is.
func TestGroupWaitsForInvitation(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	joins := func() turn.Verdict {
		t.Helper()
		m := h.message("9", "", "-200")
		m.Kind, m.Status = bot.Member, "joined"
		v, err := h.guard.Admit(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	h.invites("")
	if v := joins(); v.Wait != 0 || v.Reply == "" {
		t.Errorf("without a link for groups: %+v", v)
	}
	code := h.invites("group")
	held := joins()
	if held.Wait == 0 || held.Reply == "" {
		t.Errorf("with a link for groups: %+v", held)
	}
	if v := h.says("9", "/start "+code, "-200"); !v.OK {
		t.Errorf("the code: %+v", v)
	}
	if _, err := h.store.Apply(t.Context(), &held.Change); !errors.Is(err, bot.ErrConflict) {
		t.Errorf("the refusal of before: %v", err)
	}
	if v := joins(); !v.OK {
		t.Errorf("afterwards: %+v", v)
	}
}

// TestRemovalEndsWork: what runs for somebody who is removed is stopped, and nothing else.
func TestRemovalEndsWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	h.command("7", "/admit 9", "")
	for _, lane := range []struct{ person, turn, chat string }{{"9", "t1", "9"}, {"9", "", "-5"}, {"7", "t2", "7"}, {"9", "t3", "-6"}} {
		place := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: lane.chat}
		caller := "telegram:" + lane.person
		change := &bot.Change{Lanes: []bot.LaneUpdate{{Session: place.SessionKey(lane.person), Place: &place, Turn: &lane.turn, Caller: &caller}}}
		if _, err := h.store.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	call := &turn.Call{Message: h.message("7", "/remove 9", ""), Session: "s"}
	e, err := h.desk.Remove(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var stopped []string
	for _, s := range e.Stop {
		stopped = append(stopped, s.Chat())
	}
	slices.Sort(stopped)
	if !slices.Equal(stopped, []string{"-6", "9"}) || len(e.Change.Lanes) != 2 {
		t.Errorf("stopped %v: %+v", stopped, e.Change.Lanes)
	}
}

// TestPeopleList: the list says who, by whom and when, in pages with buttons, and not to a group.
func TestPeopleList(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Approvers: []string{"8"}, Users: []string{"8", "@cy", "*"}, Chats: []string{"-1", "*"}})
	h.opts.Users, h.opts.Chats = []string{"8", "@cy"}, nil
	h.another()
	if v, err := h.guard.Admit(t.Context(), from("43", "cy", "", bot.Text)); err != nil || !v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	h.command("7", "/admit -55", "")
	h.opts.Users, h.opts.Chats = []string{"8", "@cy", "*"}, []string{"-1", "*"}
	h.another()
	want(t, "group", h.command("7", "/people", "-1"), "That list names people.")
	want(t, "empty", h.command("7", "/people", ""), "By the configuration:\n• 7 – admin\n• 8 – approver\n• @cy – user\n• everyone\n• -1 – group\n• every group\n\nAdmitted in the chat:\n1. -55 – group, by P7, ")
	for i := range 10 {
		h.command("7", "/admit "+fmt.Sprint(100+i)+" approver", "")
	}
	text := h.command("7", "/people", "")
	if !strings.Contains(text, "1. 100 – approver, by P7, 4 Mar 2026, 12:00 UTC\n") || !strings.HasSuffix(text, "1 to 8 of 11.") {
		t.Errorf("the first page: %q", text)
	}
	if buttons := h.sent[0].Content.Buttons; len(buttons) != 9 || buttons[0][0].Label != "Remove 1: 100" || buttons[0][0].Data != "p1:r:100:0" || buttons[8][0].Data != "p1:n:1" {
		t.Errorf("buttons: %+v", buttons)
	}
	want(t, "second page", h.press("7", "p1:n:1"), "Admitted in the chat:\n9. 108")
	want(t, "far away", h.press("7", "p1:n:99"), "Admitted in the chat:\n9. 108")
	text = h.press("7", "p1:r:100:0")
	if strings.Contains(text, "100 –") || !strings.HasSuffix(text, "⛔ Removed: 100. Whatever is running for them is stopped.") {
		t.Errorf("after a removal: %q", text)
	}
	want(t, "removed already", h.press("7", "p1:r:100:0"), "100 was not admitted in the chat.")
	for _, forged := range []string{"p1", "p1:", "p1:r", "p1:r:x:0", "p1:r:101:x", "p1:r:101:-1", "p1:n:x", "p1:a:", "p1:a:x", "p1:z:1", "p1:a:1:2", "p1:g:0"} {
		want(t, forged, h.press("7", forged), "This question is no longer open.")
	}
}

// TestRoleTools: a role is narrowed to its tools, the highest one counts.
func TestRoleTools(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{
		Admins: []string{"7"}, Approvers: []string{"8"}, Users: []string{"8", "42"},
		ByRole: map[access.Role][]string{access.User: {"read"}, access.Approver: {"read", "grep"}},
	})
	h.command("7", "/admit 9", "")
	for person, tools := range map[string]string{"7": "read grep bash", "8": "read grep", "42": "read", "9": "read"} {
		var got []string
		v := h.says(person, "hi", "")
		for _, tool := range []string{"read", "grep", "bash"} {
			if v.Allowed == nil || v.Allowed(tool) {
				got = append(got, tool)
			}
		}
		if strings.Join(got, " ") != tools {
			t.Errorf("%s has %v, want %s", person, got, tools)
		}
	}
}

// TestGivenRights: approvers and admins of the chat decide like those of the configuration, and reach counts them.
func TestGivenRights(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, ApprovalsRequired: 2, Users: []string{"42"}})
	reach := func() bool {
		ok, err := h.guard.Reach(t.Context(), h.opts.Private("42"), "telegram:42")
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if reach() {
		t.Error("two are needed and one is there")
	}
	h.command("7", "/admit 9 approver", "")
	h.command("7", "/admit 10 user", "")
	r, err := h.guard.Rights(t.Context(), h.opts.Private("42"), "bash")
	if err != nil || !slices.Equal(r.Approvers, []string{"telegram:7", "telegram:9"}) || !slices.Equal(r.Admins, []string{"telegram:7"}) || !reach() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNamesAreTold: admins learn whom a configured name means.
func TestNamesAreTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Users: []string{"@ann"}})
	if v, err := h.guard.Admit(t.Context(), from("1", "Ann", "", bot.Text)); err != nil || !v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	rows, err := h.store.Rows(t.Context(), h.opts.Private("7").SessionKey(""), 10)
	if err != nil || len(rows) != 1 || rows[0].Content.Text != "@ann of telegram.allowed_users is now Somebody (1), who used it first. Anybody else who takes over the name is refused." {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestAdminOfAnotherProcess: a stranger who writes to a process that has not heard yet of an admin is told whom it asks,
// and the card is in the language of that admin.
func TestAdminOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		admin access.Options
		come  func(h *house)
	}{
		{"of the configuration", access.Options{Admins: []string{"7"}}, func(*house) {}},
		{"of the chat", access.Options{Admins: []string{"6"}}, func(h *house) { h.command("6", "/admit 7 admin", "") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, test.admin)
			other := access.New(h.opts, h.store, texts.Words{}, func() time.Time { return h.now })
			if err := other.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.come(h)
			hello := h.message("7", "hello", "")
			hello.Message, hello.Language = "1", "de"
			if v, err := h.guard.Admit(t.Context(), hello); err != nil || !v.OK {
				t.Fatalf("%+v, %v", v, err)
			}
			h.guard = other
			if v := h.says("9", "bread, please", ""); !strings.Contains(v.Reply, "P7") {
				t.Errorf("the stranger reads %q", v.Reply)
			}
			i := slices.IndexFunc(h.sent, func(r bot.Row) bool { return r.Place.Chat == "7" })
			if i < 0 || h.sent[i].Content.Language != "de" {
				t.Errorf("the admin gets %+v", h.sent)
			}
		})
	}
}

// TestUnreadable: what cannot be read admits nobody.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	if _, err := h.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{
		{Bucket: "person", Key: "telegram/1/9", Value: "{"}, {Bucket: "person", Key: "telegram/1/10", Value: `{"role":"emperor"}`},
	}}); err != nil {
		t.Fatal(err)
	}
	if v, err := h.guard.Admit(t.Context(), h.message("9", "hi", "")); err == nil || v.OK {
		t.Errorf("no JSON: %+v, %v", v, err)
	}
	h.store.Hooks.BeforeApply = func(*bot.Change) error { return errStore }
	if _, err := h.guard.Offer(t.Context(), "p", ""); errors.Is(err, errStore) {
		t.Error("an admin is configured: nothing is written")
	}
	h.store.Hooks.BeforeApply = nil
	if _, err := h.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "person", Key: "telegram/1/9"}}}); err != nil {
		t.Fatal(err)
	}
	if v, err := h.guard.Admit(t.Context(), h.message("10", "hi", "")); err != nil || v.OK {
		t.Errorf("a role of another version: %+v, %v", v, err)
	}
}

// TestGroupAsksMeanwhile: a group that asks in the moment in which somebody becomes the first admin is not told that there
// is none, and the admin gets its card.
func TestGroupAsksMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{})
	code, err := h.guard.Offer(t.Context(), "p1", "")
	if err != nil {
		t.Fatal(err)
	}
	ask := h.message("9", "@zephbot hello", "-100")
	before, err := h.guard.Admit(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "before", before.Reply, "I have no admin yet: the code")
	if v, err := h.guard.Admit(t.Context(), h.message("7", "/start "+code, "")); err != nil || !v.Admin {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := h.store.Apply(t.Context(), &before.Change); !errors.Is(err, bot.ErrConflict) {
		t.Fatalf("the group is told that there is no admin: %v", err)
	}
	after, err := h.guard.Admit(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "after", after.Reply, "I am not set up for this group yet. I have asked P7")
	card := func(r bot.Row) bool { return r.Place.Chat == "7" && len(r.Content.Buttons) > 0 }
	if !slices.ContainsFunc(after.Change.Send, card) {
		t.Errorf("no card: %+v", after.Change.Send)
	}
}

// TestNamesThatAreTyped: a name, its first word or the @name means somebody; several are listed with their names.
func TestNamesThatAreTyped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	for id, called := range map[string][2]string{"8": {"Ben Braun", "benb"}, "9": {"Ben Adler", ""}, "10": {"Eve", "ben2"}} {
		msg := h.message(id, "may I?", "")
		msg.Name, msg.Username = called[0], called[1]
		v, err := h.guard.Admit(t.Context(), msg)
		h.apply(turn.Effect{Change: v.Change}, err)
	}
	const card = "Somebody new would like to talk to me"
	for typed, answer := range map[string]string{
		"benb": card, "@BENB": card, "ben adler": card, "@ben2": card, "@eve": "I know nobody", "@": "I know nobody",
		"Braun": "I know nobody",
		"ben":   "Anybody can take a name, so give the id of the one you mean. ben: Ben Braun (8), Ben Adler (9)",
	} {
		want(t, typed, h.command("7", "/admit "+typed, ""), answer)
	}
	want(t, "not admitted", h.command("7", "/remove @benb", ""), "Ben Braun (8) was not admitted in the chat.")
	h.command("7", "/admit 8", "")
	want(t, "admitted already", h.command("7", "/admit benb", ""), "Already admitted: Ben Braun")
	want(t, "removed", h.command("7", "/remove @benb", ""), "⛔ Removed: Ben Braun.")
}

// TestStrangersOfGroupsAreBounded: of those who write in a group that is not admitted only so much is kept.
func TestStrangersOfGroupsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	for n := range 2 * access.MostStrangers {
		for range 4 {
			h.says(fmt.Sprint(100+n), "hello", "-200")
		}
	}
	kept, err := h.store.FactsOf(t.Context(), "stranger_said", "", h.now)
	if err != nil || len(kept) == 0 || len(kept) > 5*access.MostStrangers {
		t.Errorf("%d are kept, %v", len(kept), err)
	}
}

// TestCardAgainNamesWhoAsked: the card about a group names who wanted the bot there, and that about a person the group in
// which they asked, however often and to whom it is shown.
func TestCardAgainNamesWhoAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}, Chats: []string{"-300"}})
	h.says("9", "hi", "-200")
	h.says("8", "hi", "-200")
	h.says("10", "hi", "-300")
	h.another()
	want(t, "group", h.command("7", "/admit team", ""), "P9 wants me in the group Team (-200), which I am not set up for.")
	if got := h.command("7", "/admit P10", ""); !strings.Contains(got, "in the group Team") {
		t.Errorf("a person: %q", got)
	}
}

// TestGreetedBeforeAsked: the card about a stranger whose message came with the first words of an admin comes after the
// greeting.
func TestGreetedBeforeAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7", "8"}})
	h.welcome("8")
	h.says("9", "may I?", "")
	early := map[string]bool{}
	for _, row := range h.sent {
		early[row.Place.Chat] = !row.NotBefore.After(h.now)
	}
	if early["7"] || !early["8"] {
		t.Errorf("whose card is sent at once: %v", early)
	}
	h.welcome("7")
	if len(h.sent) != 2 {
		t.Fatalf("%+v", h.sent)
	}
	want(t, "first", h.sent[0].Content.Text, "Hello P7.")
	want(t, "then", h.sent[1].Content.Text, "Somebody new would like to talk to me")
	rows, err := h.store.Due(t.Context(), "telegram", "1", h.now.Add(time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	cards := 0
	for _, row := range rows {
		if row.Place.Chat == "7" && len(row.Content.Buttons) > 0 {
			cards++
		}
	}
	if cards != 1 {
		t.Errorf("%d cards are sent", cards)
	}
}

// TestLinkPromisesNoQuestion: who was declined does not read in front of a used link that an admin is asked.
func TestLinkPromisesNoQuestion(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{Admins: []string{"7"}})
	const used = "/start ABCDEFGH23456777"
	if got := h.says("9", used, "").Reply; !strings.HasSuffix(got, "I will ask an admin.") {
		t.Errorf("a stranger: %q", got)
	}
	h.says("9", "may I?", "")
	h.press("7", "p1:d:9")
	if got := h.says("9", used, "").Reply; !strings.HasSuffix(got, "was used, has expired or was revoked.") {
		t.Errorf("who was declined: %q", got)
	}
}

// TestPrivateBeforeAdmin: who wrote in private before there was an admin is put to the first one after the welcome, with
// what they wrote first; the admin's own first words ask nobody.
func TestPrivateBeforeAdmin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Options{})
	code, err := h.guard.Offer(t.Context(), "p1", "")
	if err != nil {
		t.Fatal(err)
	}
	h.says("7", "anybody?", "")
	h.says("9", "/start", "")
	h.says("9", "may I?", "")
	msg := h.message("7", "/start "+code, "")
	if v, err := h.guard.Admit(t.Context(), msg); err != nil || !v.Admin {
		t.Fatalf("%+v, %v", v, err)
	}
	e, ok, err := h.guard.Welcome(t.Context(), &turn.Call{Message: msg, Session: "s", Admin: true})
	if h.apply(e, err); !ok || len(h.sent) != 3 {
		t.Fatalf("%v, %+v", ok, h.sent)
	}
	want(t, "first", h.sent[0].Content.Text, "Hello P7")
	want(t, "card", h.sent[1].Content.Text, "Somebody new would like to talk to me and waits for your answer:\nP9\nmay I?\n")
	want(t, "the stranger", h.sent[2].Content.Text, "I only talk to people on my list. I have asked P7")
	h.press("7", "p1:a:9")
	if got := h.waiting("9"); len(got) != 1 || got[0] != "may I?" {
		t.Errorf("answered: %q", got)
	}
}
