package operator_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/quota"
)

type p = map[string]string

// TestQuestions: a question is decided once, by who may decide it in the chat, after it was shown; both are on record.
func TestQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	refused := func(body p, status int, want string) {
		t.Helper()
		if got, raw := o.post("question", body, nil); got != status || !strings.Contains(string(raw), want) {
			t.Errorf("%v: %d %s, want %d %q", body, got, raw, status, want)
		}
	}
	refused(p{"question": "q1", "do": "dance"}, http.StatusBadRequest, "want show, approve or deny")
	refused(p{"question": "q9", "do": "show"}, http.StatusNotFound, "not there")
	refused(p{"question": "q1", "do": "approve"}, http.StatusConflict, "look at it again")
	refused(p{"question": "q1", "do": "approve", "seen": "h0"}, http.StatusConflict, "look at it again")
	var shown struct{ Question, Seen, Text string }
	if status, raw := o.post("question", p{"question": "q1", "do": "show"}, &shown); status != http.StatusOK || shown.Seen != "h1" ||
		!strings.Contains(shown.Text, "make deploy [redacted]") {
		t.Fatalf("shown: %d %s", status, raw)
	}
	// Ann has approved already: a second time is not a second vote.
	if status, raw := o.post("question", p{"question": "q1", "do": "approve", "seen": "h1"}, nil); status != http.StatusOK {
		t.Errorf("approve again: %d %s", status, raw)
	}
	if a, err := w.store.Approval(t.Context(), "q1"); err != nil || a.State != bot.Open {
		t.Errorf("with one of two votes: %+v, %v", a, err)
	}
	w.admin("telegram:44", true)
	second := w.open(nil)
	second.signIn(second.link("telegram:44"), http.StatusOK)
	if status, raw := second.post("question", p{"question": "q1", "do": "approve", "seen": "h1"}, nil); status != http.StatusOK {
		t.Errorf("the second vote: %d %s", status, raw)
	}
	if a, err := w.store.Approval(t.Context(), "q1"); err != nil || a.State != bot.Approved || a.By != "telegram:44" || !slices.Contains(w.continued, team) {
		t.Errorf("approved: %+v, %v; %v goes on", a, err, w.continued)
	}
	refused(p{"question": "q1", "do": "deny"}, http.StatusConflict, "pproved")
	log := w.logged()
	for _, want := range []string{`telegram:42 admin_texts {"question":"akun"`, `telegram:44 admin_approve {"question":"akun"`} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is missing in the audit log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "admin_deny") {
		t.Errorf("what was refused is on record as done:\n%s", log)
	}
}

// TestQuestionsOfOthers: an admin of the bot who approves nothing in the chat approves nothing here, and nothing of
// another bot is shown.
func TestQuestionsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	w.approvers = nil
	at := w.clock()
	w.do(&bot.Change{Ask: []bot.Approval{{
		ID: "q2", Short: "bela", Session: "telegram/2/bot/42/0/42", Place: bot.Place{Channel: "telegram", Bot: "2", Surface: "bot", Chat: "42"}, Call: "c2", Tool: "bash",
		Caller: "telegram:42", State: bot.Open, Needed: 1, Hash: "h2", Body: []byte(`{}`), Created: at, Expires: at.Add(time.Hour),
	}}})
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	if status, raw := o.post("question", p{"question": "q1", "do": "deny"}, nil); status != http.StatusConflict || !strings.Contains(string(raw), "can decide this") {
		t.Errorf("no approver: %d %s", status, raw)
	}
	if status, _ := o.post("question", p{"question": "q2", "do": "show"}, nil); status != http.StatusNotFound {
		t.Errorf("another bot's: %d", status)
	}
	if a, err := w.store.Approval(t.Context(), "q1"); err != nil || a.State != bot.Open {
		t.Errorf("%+v, %v", a, err)
	}
	if log := w.logged(); strings.Contains(log, "admin_deny") {
		t.Errorf("audit log:\n%s", log)
	}
	only := w.open(func(d *operator.Deps) { d.Decisions = operator.Decisions{} })
	only.signIn(only.link("telegram:42"), http.StatusOK)
	if status, raw := only.post("question", p{"question": "q1", "do": "deny"}, nil); status != http.StatusNotFound || !strings.Contains(string(raw), "in the chat only") {
		t.Errorf("without decisions: %d %s", status, raw)
	}
}

// TestLimits: a limit is set and taken back as /quota does it, and those of the bot are left to the configuration.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	set := func(level, unit, limit string, status int) {
		t.Helper()
		if got, raw := o.post("limit", p{"level": level, "unit": unit, "window": "day", "limit": limit}, nil); got != status {
			t.Errorf("%s %s %s: %d %s", level, unit, limit, got, raw)
		}
	}
	set("user/telegram:43", quota.Turns, "30", http.StatusOK)
	set("chat/telegram/1/bot/-100", quota.USD, "2.5", http.StatusOK)
	for _, bad := range []string{"bot/telegram/1", "user/terminal:43", "user/telegram:x", "chat/telegram/2/bot/-100", "chat/telegram/1/bot/42"} {
		set(bad, quota.Turns, "30", http.StatusBadRequest)
	}
	set("user/telegram:43", quota.Turns, "many", http.StatusBadRequest)
	set("user/telegram:43", "hours", "3", http.StatusBadRequest)
	facts, err := w.store.FactsOf(t.Context(), quota.Bucket, "", w.clock())
	limits := map[string]int64{}
	for _, s := range quota.SetLimits(facts) {
		limits[s.Level+" "+s.Of.Unit] = s.Limit
	}
	if err != nil || len(limits) != 2 || limits["user/telegram:43 turns"] != 30 || limits["chat/telegram/1/bot/-100 "+quota.USD] != 2_500_000 {
		t.Errorf("limits %v, %v", limits, err)
	}
	set("user/telegram:43", quota.Turns, "", http.StatusOK)
	set("user/telegram:43", quota.Turns, "", http.StatusBadRequest) // there is none any more
	if log := w.logged(); strings.Count(log, "telegram:42 quota_set") != 3 || !strings.Contains(log, `"limit":"30"`) {
		t.Errorf("audit log:\n%s", log)
	}
}
