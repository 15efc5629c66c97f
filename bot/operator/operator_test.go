package operator_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/turn"
)

// TestALinkWorksOnce: on any process, within its time, for an admin, and nobody finds the code in the store.
func TestALinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.open(nil), w.open(nil)
	code := one.link("telegram:42")
	facts, err := w.store.FactsOf(t.Context(), "operator_code", "", w.clock())
	if err != nil || len(facts) != 1 || strings.Contains(facts[0].Key+facts[0].Value, code) {
		t.Fatalf("stored: %v %v", facts, err)
	}
	two.signIn(code, http.StatusOK)
	one.signIn(code, http.StatusUnauthorized)
	if status, _ := two.get("me", nil); status != http.StatusOK {
		t.Errorf("signed in: %d", status)
	}
	if status, _ := one.get("me", nil); status != http.StatusUnauthorized {
		t.Errorf("not signed in: %d", status)
	}
	late := one.link("telegram:42")
	w.pass(operator.LinkFor + time.Second)
	one.signIn(late, http.StatusUnauthorized)
	fallen := one.link("telegram:42")
	w.admin("telegram:42", false)
	one.signIn(fallen, http.StatusUnauthorized)
	if log := w.logged(); strings.Count(log, "admin_signin") != 1 || !strings.HasPrefix(log, "telegram:42 admin_signin") {
		t.Errorf("audit log:\n%s", log)
	}
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(o *office){
		"after eight idle hours": func(o *office) { o.pass(8*time.Hour + time.Minute) },
		"with the role":          func(o *office) { o.admin("telegram:42", false) },
		"by signing out": func(o *office) {
			if status, raw := o.post("signout", struct{}{}, nil); status != http.StatusOK {
				o.t.Errorf("sign out: %d %s", status, raw)
			}
		},
	} {
		o := newWorld(t).open(nil)
		o.signIn(o.link("telegram:42"), http.StatusOK)
		for range 3 { // it goes on as long as somebody looks
			o.pass(7 * time.Hour)
			if status, raw := o.get("me", nil); status != http.StatusOK {
				t.Fatalf("%s: %d %s", name, status, raw)
			}
		}
		end(o)
		if status, _ := o.get("me", nil); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, status)
		}
		o.admin("telegram:42", true)
		if status, _ := o.get("me", nil); status != http.StatusUnauthorized {
			t.Errorf("%s, once more an admin: %d", name, status)
		}
	}
}

func TestWrongCodesAreLimited(t *testing.T) {
	t.Parallel()
	o := newWorld(t).open(nil)
	for range 10 {
		o.signIn("nonsense", http.StatusUnauthorized)
	}
	o.signIn("nonsense", http.StatusTooManyRequests)
	// Behind a proxy, everybody has the same address: a link works all the same.
	o.signIn(strings.Repeat("A", 26), http.StatusUnauthorized)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	o.pass(11 * time.Minute)
	o.signIn("nonsense", http.StatusUnauthorized)
}

// TestAQuestionIsRetriedAgain: a question is sent again as the same row, and one that fails once more can be decided
// once more.
func TestAQuestionIsRetriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	apply := func(change *bot.Change) *bot.Applied {
		t.Helper()
		applied, err := w.store.Apply(t.Context(), change)
		if err != nil {
			t.Fatal(err)
		}
		return applied
	}
	place, _ := annChat.Place()
	apply(&bot.Change{Send: []bot.Row{{Session: annChat, Place: place, Purpose: bot.Question, Content: bot.Content{Text: "May I?"}}}})
	rows, err := w.store.RowsIn(t.Context(), "telegram", "1", bot.Pending, 0, 0)
	if err != nil || len(rows) == 0 || rows[0].Purpose != bot.Question {
		t.Fatalf("%+v %v", rows, err)
	}
	for range 2 {
		apply(&bot.Change{Rows: []bot.RowUpdate{{ID: rows[0].ID, From: []bot.RowState{bot.Pending}, To: bot.Dead, Attempts: 1, Problem: "no"}}})
		var letters struct{ Rows []operator.Row }
		o.get("letters", &letters)
		if len(letters.Rows) != 1 {
			t.Fatalf("letters: %+v", letters)
		}
		for _, want := range []int{http.StatusOK, http.StatusConflict} {
			status, raw := o.post("letter", map[string]any{"kind": "row", "id": rows[0].ID, "do": "retry"}, nil)
			if status != want {
				t.Errorf("%d %s, want %d", status, raw, want)
			}
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := func(o *office, group bool) string {
		e, err := o.page.Command(t.Context(), &turn.Call{Admin: true, Message: &bot.Message{Place: bot.Place{Channel: "telegram", Bot: "1", Chat: "1", Group: group}, Caller: "telegram:42"}})
		if err != nil {
			t.Fatal(err)
		}
		if group && len(e.Change.Facts) != 0 {
			t.Error("a link was made in a group")
		}
		return e.Change.Send[0].Content.Text
	}
	if text := ask(w.open(nil), false); !strings.Contains(text, "\nhttp://127.0.0.1:9090/admin/#") || !strings.Contains(text, "ssh -L 9090:") {
		t.Errorf("on this machine: %q", text)
	}
	public := w.open(func(d *operator.Deps) { d.Public = "https://zeph.example.org/" })
	if text := ask(public, false); !strings.Contains(text, "\nhttps://zeph.example.org/admin/#") || strings.Contains(text, "ssh -L") {
		t.Errorf("with a public address: %q", text)
	}
	if text := ask(public, true); !strings.Contains(text, "only in our private chat") {
		t.Errorf("in a group: %q", text)
	}
	if text := ask(w.open(func(d *operator.Deps) { d.Listen = "" }), false); !strings.Contains(text, "There is no operator's page") {
		t.Errorf("without a listener: %q", text)
	}
}

func TestForeignRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.open(func(d *operator.Deps) { d.Public = "https://zeph.example.org" })
	o.signIn(o.link("telegram:42"), http.StatusOK)
	drop := map[string]any{"kind": "row", "id": 999, "do": "drop"}
	token := map[string]string{"X-Zephbot-Token": o.csrf}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{token, more} {
			maps.Copy(all, m)
		}
		return all
	}
	for _, tc := range []struct {
		name, method, path string
		body               any
		header             map[string]string
		want               int
	}{
		{"own page", "POST", "/admin/api/letter", drop, with(map[string]string{"Origin": o.url, "Sec-Fetch-Site": "same-origin"}), 404},
		{"without the token", "POST", "/admin/api/letter", drop, nil, 403},
		{"wrong token", "POST", "/admin/api/letter", drop, map[string]string{"X-Zephbot-Token": "x"}, 403},
		{"foreign origin", "POST", "/admin/api/letter", drop, with(map[string]string{"Origin": "https://evil.example"}), 403},
		{"another local page", "POST", "/admin/api/letter", drop, with(map[string]string{"Origin": "http://127.0.0.1:1"}), 403},
		{"cross-site", "GET", "/admin/api/me", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"rebound name", "GET", "/admin/api/me", nil, map[string]string{"Host": "evil.example"}, 421},
		{"rebound name, page", "GET", "/admin/", nil, map[string]string{"Host": "evil.example:9090"}, 421},
		{"a tunnel's port", "GET", "/admin/", nil, map[string]string{"Host": "localhost:1234"}, 200},
		{"the public name", "GET", "/admin/", nil, map[string]string{"Host": "zeph.example.org"}, 200},
		{"link to the page", "GET", "/admin/", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"a decision without the token", "POST", "/admin/api/question", map[string]string{"question": "q1", "do": "approve", "seen": "h1"}, nil, 403},
		{"a limit without the token", "POST", "/admin/api/limit", map[string]string{"level": "user/telegram:42", "unit": "turns", "window": "day", "limit": "1"}, nil, 403},
		{"form", "POST", "/admin/api/letter", drop, with(map[string]string{"Content-Type": "text/plain"}), 415},
		{"get that writes", "GET", "/admin/api/letter", nil, nil, 405},
		{"listing", "GET", "/admin/page/", nil, nil, 404},
		{"without slash", "GET", "/admin", nil, nil, 303},
		{"unknown", "GET", "/admin/api/tokens", nil, nil, 404},
	} {
		if status, raw := o.request(tc.method, tc.path, tc.body, tc.header, nil); status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, status, raw, tc.want)
		}
	}
	stranger := w.open(nil)
	for _, path := range []string{"me", "sessions", "session?key=" + string(annChat), "queue", "letters", "approvals", "servers", "quotas", "audit", "costs"} {
		if status, _ := stranger.get(path, nil); status != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d", path, status)
		}
	}
}

// TestGroupsHaveTitles: a session and what is sent name their group, and the title finds it.
func TestGroupsHaveTitles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	var got struct {
		Sessions []operator.Session `json:"sessions"`
	}
	o.get("sessions?text=team", &got)
	if len(got.Sessions) != 1 || got.Sessions[0].Chat != "-100" || got.Sessions[0].Title != "Team" {
		t.Errorf("%+v", got.Sessions)
	}
	o.get("sessions", &got)
	for _, s := range got.Sessions {
		if !s.Group && s.Title != "" || s.Group && s.Title == "" {
			t.Errorf("%+v", s)
		}
	}
}

// TestCookie: it is Secure where the page is reached by https, and never readable for scripts.
func TestCookie(t *testing.T) {
	t.Parallel()
	o := newWorld(t).open(func(d *operator.Deps) { d.Public = "https://zeph.example.org" })
	for host, secure := range map[string]bool{"zeph.example.org": true, "127.0.0.1:9090": false} {
		code := o.link("telegram:42")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.url+"/admin/api/signin", strings.NewReader(`{"code":"`+code+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		resp, err := o.own.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := resp.Header.Get("Set-Cookie")
		for _, part := range []string{"Path=/admin", "HttpOnly", "SameSite=Strict"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: cookie %q lacks %s", host, got, part)
			}
		}
		if strings.Contains(got, "Secure") != secure {
			t.Errorf("%s: cookie %q, want Secure %v", host, got, secure)
		}
	}
}

// TestNoSecretsNoTexts: no answer has a credential, and none but the one that is put on record has what people said.
func TestNoSecretsNoTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	for _, path := range []string{"me", "sessions", "session?key=" + string(annChat), "queue", "letters", "approvals", "servers", "quotas", "audit", "costs"} {
		status, raw := o.get(path, nil)
		for _, bad := range []string{secret, "temp files", "files are gone", "find . -name", "make deploy", "Here it is."} {
			if strings.Contains(string(raw), bad) {
				t.Errorf("%s shows %q:\n%s", path, bad, raw)
			}
		}
		if status != http.StatusOK || len(raw) < 10 {
			t.Errorf("%s: %d %s", path, status, raw)
		}
	}
	status, raw := o.post("texts", map[string]any{"session": annChat}, nil)
	if text := string(raw); status != http.StatusOK || !strings.Contains(text, "delete the temp files") || strings.Contains(text, secret) || !strings.Contains(text, "[redacted]") {
		t.Errorf("texts: %d %s", status, raw)
	}
	if log := w.logged(); !strings.Contains(log, `telegram:42 admin_texts {"session":"telegram/1/bot/42/0/42"}`) {
		t.Errorf("audit log:\n%s", log)
	}
	if status, _ := o.post("texts", map[string]any{"session": "telegram/2/bot/42/0/42"}, nil); status != http.StatusNotFound {
		t.Errorf("texts of another bot: %d", status)
	}
}

// TestDeadLetters: each is decided once, by whatever process, and is on record exactly if it was.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	var woken []bot.SessionKey
	var sent []string
	one := w.open(func(d *operator.Deps) {
		d.Wake = func(s bot.SessionKey) { woken = append(woken, s) }
		d.Deliver = func(p bot.Place) { sent = append(sent, p.Chat) }
	})
	two := w.open(nil)
	for _, o := range []*office{one, two} {
		o.signIn(o.link("telegram:42"), http.StatusOK)
	}
	var letters struct {
		Arrivals []operator.Arrival
		Rows     []operator.Row
	}
	one.get("letters", &letters)
	if len(letters.Arrivals) != 2 || len(letters.Rows) != 2 {
		t.Fatalf("letters: %+v", letters)
	}
	do := func(o *office, kind string, id int64, what string, want int) string {
		t.Helper()
		status, raw := o.post("letter", map[string]any{"kind": kind, "id": id, "do": what}, nil)
		if status != want {
			t.Errorf("%s %s %d: %d %s, want %d", what, kind, id, status, raw, want)
		}
		return string(raw)
	}
	again, gone := letters.Arrivals[0].Seq, letters.Arrivals[1].Seq
	do(one, "arrival", again, "retry", 200)
	if said := do(two, "arrival", again, "drop", 409); !strings.Contains(said, "Ann has retried this already") {
		t.Errorf("told: %s", said)
	}
	do(two, "arrival", gone, "drop", 200)
	do(one, "arrival", gone, "retry", 409)
	waiting, err := w.store.Next(t.Context(), annChat, 0)
	if err != nil || len(waiting) != 1 || string(waiting[0].Raw) != `{"update_id":901}` || waiting[0].Attempts != 0 || waiting[0].ID == "901" {
		t.Errorf("waiting: %+v %v", waiting, err)
	}
	unknown, dead := letters.Rows[0].ID, letters.Rows[1].ID
	do(one, "row", unknown, "retry", 200)
	do(two, "row", unknown, "retry", 409)
	do(two, "row", dead, "drop", 200)
	do(one, "row", dead, "drop", 409)
	do(one, "row", 999, "drop", 404)
	do(one, "row", dead, "erase", 400)
	do(one, "letter", dead, "drop", 400)
	pending, err := w.store.RowsIn(t.Context(), "telegram", "1", bot.Pending, 0, 0)
	if err != nil || len(pending) == 0 || pending[0].Content.Text != "Three files are gone." {
		t.Errorf("to be sent: %+v %v", pending, err)
	}
	one.get("letters", &letters)
	if len(letters.Arrivals)+len(letters.Rows) != 0 {
		t.Errorf("left: %+v", letters)
	}
	if len(woken) != 1 || woken[0] != annChat || len(sent) != 1 || sent[0] != "42" {
		t.Errorf("woken %v, sent %v", woken, sent)
	}
	log := w.logged()
	for what, n := range map[string]int{"admin_retry": 2, "admin_drop": 2} {
		if got := strings.Count(log, what); got < n {
			t.Errorf("%s is in the log %d times, want %d:\n%s", what, got, n, log)
		}
	}
}

// TestPages: lists are bounded, and searched.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range operator.PageSize + 5 {
		chat := string(rune('a'+n%26)) + string(rune('a'+n/26))
		session := bot.SessionKey("telegram/1/bot/" + chat + "/0/7")
		at := w.now.Add(time.Duration(n) * time.Minute)
		w.do(&bot.Change{
			Claim:  &bot.Claim{Session: session, Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: chat}, Owner: "x", Now: at, Until: at.Add(time.Hour)},
			Lanes:  []bot.LaneUpdate{{Session: session, Since: &at}},
			Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: chat, Session: session, Raw: []byte("x")}},
		})
	}
	o := w.open(nil)
	o.signIn(o.link("telegram:42"), http.StatusOK)
	var list struct {
		Sessions []operator.Session
		Arrivals []operator.Arrival
		All      int
		More     bool
	}
	o.get("sessions", &list)
	if len(list.Sessions) != operator.PageSize || list.All != operator.PageSize+5 || !list.More || list.Sessions[0].Chat != "cc" {
		t.Errorf("first page: %d of %d, more %v, first %s", len(list.Sessions), list.All, list.More, list.Sessions[0].Chat)
	}
	o.get("sessions?page=1", &list)
	if len(list.Sessions) != 5 || list.More {
		t.Errorf("second page: %d, more %v", len(list.Sessions), list.More)
	}
	o.get("sessions?text=CC", &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Chat != "cc" {
		t.Errorf("searched: %+v", list.Sessions)
	}
	o.get("queue", &list)
	if len(list.Arrivals) != operator.PageSize || !list.More {
		t.Errorf("queue: %d, more %v", len(list.Arrivals), list.More)
	}
	if status, raw := o.get("sessions?page=x", nil); status != http.StatusBadRequest {
		t.Errorf("page x: %d %s", status, raw)
	}
}
