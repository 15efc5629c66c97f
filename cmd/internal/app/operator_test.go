package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// signIn leads Ann to the operator's page by a link of the bot. The function that it returns asks the page; no answer may
// show the secrets, or refuse.
func (w *wired) signIn(secrets ...string) (ask func(method, path string, body any) string) {
	w.t.Helper()
	base := "http://" + <-w.opened
	w.say("/admin")
	code := regexp.MustCompile(`/admin/#([A-Z0-9]+)`).FindStringSubmatch(w.await("/admin/#").Text)[1]
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	token := ""
	ask = func(method, path string, body any) string {
		w.t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(w.t.Context(), method, base+"/admin/api/"+path, bytes.NewReader(raw))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Zephbot-Token", token)
		resp, err := client.Do(req)
		if err != nil {
			w.t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			w.t.Errorf("%s: %d %s %v", path, resp.StatusCode, answer, err)
		}
		for _, bad := range append(secrets, w.fake.Token()) {
			if bytes.Contains(answer, []byte(bad)) {
				w.t.Errorf("%s shows %s:\n%s", path, bad, answer)
			}
		}
		return string(answer)
	}
	var me operator.Whoami
	if err := json.Unmarshal([]byte(ask(http.MethodPost, "signin", map[string]string{"code": code})), &me); err != nil || me.Caller != "telegram:1001" {
		w.t.Fatalf("signed in as %+v: %v", me, err)
	}
	token = me.Token
	return ask
}

// TestOperatorDecides: a question that is approved on the page goes on in the chat, where its card becomes the record; a
// limit that is set there holds for the next message. Both are in the audit log.
func TestOperatorDecides(t *testing.T) {
	t.Parallel()
	w := newWired(t, "", "[metrics]\nlisten = \"127.0.0.1:0\"\n", called("c1", "write", `{"path":"a.txt","content":"milk"}`), spoken("It is written."))
	w.say("write it")
	w.await("a.txt")
	ask := w.signIn()
	var open struct {
		Approvals []struct{ Question, Tool string }
	}
	if err := json.Unmarshal([]byte(ask(http.MethodGet, "approvals", nil)), &open); err != nil || len(open.Approvals) != 1 || open.Approvals[0].Tool != "write" {
		t.Fatalf("approvals: %+v %v", open, err)
	}
	var shown struct{ Question, Seen, Text string }
	raw := ask(http.MethodPost, "question", map[string]string{"question": open.Approvals[0].Question, "do": "show"})
	if err := json.Unmarshal([]byte(raw), &shown); err != nil || !strings.Contains(shown.Text, "milk") {
		t.Fatalf("shown: %s %v", raw, err)
	}
	ask(http.MethodPost, "question", map[string]string{"question": shown.Question, "do": "approve", "seen": shown.Seen})
	w.await("It is written.")
	if !slices.ContainsFunc(w.fake.Chat(1001), func(m telegramtest.Shown) bool { return strings.Contains(m.Text, "Approved once by Ann") }) {
		t.Error("the card has not become the record")
	}
	ask(http.MethodPost, "limit", map[string]string{"level": "user/telegram:1001", "unit": "turns", "window": "day", "limit": "1"})
	w.say("and again")
	w.await("/quota")
	log := ask(http.MethodGet, "audit?person=1001", nil)
	for _, want := range []string{"admin_texts", "admin_approve", "quota_set"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s: %s", want, log)
		}
	}
}

// TestOperatorPage: the service sends an admin a link by which they see, on the listener of the metrics, what it did. No
// answer has a credential, and what was said is shown on request only, which the audit log has.
func TestOperatorPage(t *testing.T) {
	t.Parallel()
	const key = "sk-planted-7d1c0a55e2f94b38"
	w := newWired(t, "api_key = \""+key+"\"\n", "[metrics]\nlisten = \"127.0.0.1:0\"\n", spoken("The key is "+key+", and the weather is fine."))
	w.say("what is the weather?")
	w.await("the weather is fine")
	ask := w.signIn(key)
	var list struct{ Sessions []operator.Session }
	if err := json.Unmarshal([]byte(ask(http.MethodGet, "sessions", nil)), &list); err != nil || len(list.Sessions) != 1 || list.Sessions[0].Person != "1001" {
		t.Fatalf("sessions: %+v %v", list, err)
	}
	session := list.Sessions[0].Key
	if hushed := ask(http.MethodGet, "session?key="+string(session), nil); strings.Contains(hushed, "weather") || !strings.Contains(hushed, `"answer"`) {
		t.Errorf("without texts: %s", hushed)
	}
	for _, path := range []string{"me", "queue", "letters", "approvals", "servers", "quotas", "costs"} {
		ask(http.MethodGet, path, nil)
	}
	if texts := ask(http.MethodPost, "texts", map[string]any{"session": session}); !strings.Contains(texts, "the weather is fine") {
		t.Errorf("with texts: %s", texts)
	}
	log := ask(http.MethodGet, "audit?person=1001", nil)
	for _, want := range []string{"admin_signin", "admin_texts"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s: %s", want, log)
		}
	}
	if strings.Contains(log, `"args"`) {
		t.Errorf("arguments of calls are shown: %s", log)
	}
}
