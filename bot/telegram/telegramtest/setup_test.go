package telegramtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	ann   int64 = 11
	bob   int64 = 12
	carol int64 = 13 // known, but never opened a chat
	group int64 = -500
	forum int64 = -1001234567890
)

// clock is a hand-wound clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type world struct {
	*telegramtest.Server
	clock *clock
	url   string
	t     *testing.T
}

func setup(t *testing.T, opt telegramtest.Options) *world {
	t.Helper()
	c := &clock{t: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
	opt.Now = c.now
	s := telegramtest.New(opt)
	t.Cleanup(s.Close)
	s.AddUser(telegramtest.User{ID: ann, FirstName: "Ann", LastName: "A", Username: "ann_a", Language: "en"})
	s.AddUser(telegramtest.User{ID: bob, FirstName: "Bob"})
	s.AddUser(telegramtest.User{ID: carol, FirstName: "Carol"})
	s.AddPrivate(ann)
	s.AddGroup(telegramtest.Group{ID: group, Title: "Basic", Members: []int64{ann, bob}})
	s.AddGroup(telegramtest.Group{
		ID: forum, Title: "Forum", Forum: true, Topics: []telegramtest.Topic{{ID: 7, Name: "Seven"}},
		Members: []int64{bob}, Admins: []int64{ann, s.BotID()},
	})
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	return &world{Server: s, clock: c, url: url, t: t}
}

type reply struct {
	status     int
	OK         bool            `json:"ok"`
	Result     json.RawMessage `json:"result"`
	Code       int             `json:"error_code"`
	Text       string          `json:"description"`
	Parameters struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	err error
	raw string
}

// p are the parameters of a call.
type p map[string]any

// call calls a method with a JSON body.
func (w *world) call(method string, params p) reply {
	w.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(method, "application/json", raw)
}

func (w *world) post(method, kind string, body []byte) reply {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/bot"+w.Token()+"/"+method, bytes.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", kind)
	return do(req)
}

func do(req *http.Request) reply {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	out := reply{status: resp.StatusCode, err: err, raw: string(raw)}
	if err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		out.err = json.Unmarshal(raw, &out)
	}
	return out
}

// must calls and wants success; the result goes into into when it is not nil.
func (w *world) must(method string, params p, into any) {
	w.t.Helper()
	r := w.call(method, params)
	if r.err != nil || !r.OK {
		w.t.Fatalf("%s %v: %v %d %q", method, params, r.err, r.Code, r.Text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(r.Result, into); err != nil {
		w.t.Fatalf("%s: %v in %s", method, err, r.Result)
	}
}

// refused calls and wants exactly this refusal.
func (w *world) refused(method string, params p, code int, text string) reply {
	w.t.Helper()
	r := w.call(method, params)
	if r.err != nil || r.OK || r.Code != code || r.status != code || r.Text != text {
		w.t.Errorf("%s %v: got %v %d %d %q, want %d %q", method, params, r.err, r.status, r.Code, r.Text, code, text)
	}
	return r
}

type sent struct {
	ID     int `json:"message_id"`
	Thread int `json:"message_thread_id"`
	Date   int `json:"date"`
}

func (w *world) send(chat int64, text string, more ...p) int {
	w.t.Helper()
	params := p{"chat_id": chat, "text": text}
	for _, m := range more {
		maps.Copy(params, m)
	}
	var m sent
	w.must("sendMessage", params, &m)
	return m.ID
}

type update struct {
	ID       int64          `json:"update_id"`
	Message  map[string]any `json:"message"`
	Edited   map[string]any `json:"edited_message"`
	Callback map[string]any `json:"callback_query"`
	Member   map[string]any `json:"my_chat_member"`
	Stopped  map[string]any `json:"stopped_message_generation"`
	Reaction map[string]any `json:"message_reaction"`
}

func (w *world) poll(params p) []update {
	w.t.Helper()
	var out []update
	w.must("getUpdates", params, &out)
	return out
}

func keyboard(buttons ...p) p {
	return p{"reply_markup": p{"inline_keyboard": [][]p{buttons}}}
}
