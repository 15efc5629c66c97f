package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// vendor is an OpenAI-compatible server that gives the answers of a list, one a request, and keeps what it was sent.
type vendor struct {
	mu      sync.Mutex
	answers []string // events of a stream, without [DONE], or something else as it stands
	bodies  [][]byte
}

// ServeHTTP implements http.Handler.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if listed(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.bodies)
	v.bodies = append(v.bodies, body)
	if err != nil || n >= len(v.answers) || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":{"message":"nothing more to say"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	answer := v.answers[n]
	if answer == "" || strings.HasPrefix(answer, "data: ") {
		answer += "data: [DONE]\n\n"
	}
	_, _ = io.WriteString(w, answer) // a service that is stopped goes away in the middle
}

// listed answers a request for the list of models, of which a server without one says that it is not there.
func listed(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	http.NotFound(w, r)
	return true
}

// sent is a request as it came.
type sent struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

func (v *vendor) requests(t *testing.T) []sent {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]sent, len(v.bodies))
	for i, body := range v.bodies {
		if err := json.Unmarshal(body, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// spoken is an answer in words.
func spoken(text string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n"+`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n", text)
}

// called is an answer that calls a tool.
func called(id, tool, args string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}}]}`+"\n\n"+
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\n", id, tool, args)
}

// wired is the service with a real provider before it.
type wired struct {
	t      *testing.T
	dir    string
	fake   *telegramtest.Server
	vendor *vendor
	cfg    *config.Config
	now    func() time.Time
	seen   map[int]bool
	stop   context.CancelFunc
	done   chan error
	opened chan string // addresses that the service listens on
	log    zerolog.Logger
}

// newWired starts the service; provider are further keys of [[llm.providers]], extra is appended to the configuration.
func newWired(t *testing.T, provider, extra string, answers ...string) *wired {
	t.Helper()
	return wireOn(t, time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), provider, extra, answers...)
}

// wireOn does so on a day.
func wireOn(t *testing.T, day time.Time, provider, extra string, answers ...string) *wired {
	t.Helper()
	return wireTo(t, zerolog.Nop(), day, provider, extra, answers...)
}

// wireTo does so and logs.
func wireTo(t *testing.T, log zerolog.Logger, day time.Time, provider, extra string, answers ...string) *wired {
	t.Helper()
	v := &vendor{answers: answers}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	provider = fmt.Sprintf("[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nwire = \"chat\"\nbase_url = %q\n%s\n", server.URL+"/v1", provider)
	w := wireWith(t, log, day, provider, extra)
	w.vendor = v
	return w
}

// wireWith starts the service with a provider as it is configured.
func wireWith(t *testing.T, log zerolog.Logger, day time.Time, provider, extra string) *wired {
	t.Helper()
	// The day stands in the system prompt: the clock begins at noon, so that it does not change in the middle of a
	// test.
	noon, began := day.Add(12*time.Hour), time.Now()
	w := &wired{t: t, dir: t.TempDir(), seen: map[int]bool{}, opened: make(chan string, 8), log: log, now: func() time.Time { return noon.Add(time.Since(began)) }}
	w.fake = telegramtest.New(telegramtest.Options{Now: w.now})
	url, err := w.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	w.fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	w.fake.AddPrivate(1001)
	file := filepath.Join(w.dir, "zephbot.toml")
	if !strings.Contains(extra, "[quotas]") {
		extra += "\n[quotas]\non_redis_down = \"allow\"\n"
	}
	text := fmt.Sprintf("data_dir = %q\n[telegram]\ntoken = %q\napi_url = %q\nadmins = [1001]\n%s\n%s\n",
		filepath.Join(w.dir, "data"), w.fake.Token(), url, provider, extra)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.cfg, err = config.Load(config.Source{File: file, WorkDir: w.dir, Home: w.dir}); err != nil {
		t.Fatal(err)
	}
	w.serve()
	t.Cleanup(func() {
		w.end()
		w.fake.Close()
	})
	return w
}

func (w *wired) serve() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop, w.done = cancel, make(chan error, 1)
	opts := app.Options{Config: w.cfg, Version: "test", Log: w.log, WorkDir: w.dir, Now: w.now, Listen: w.listen}
	go func() { w.done <- app.Serve(ctx, opts) }()
}

// listen opens an address and tells which one it became.
func (w *wired) listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		w.opened <- l.Addr().String()
	}
	return l, err
}

func (w *wired) end() {
	w.t.Helper()
	w.stop()
	if err := <-w.done; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
}

func (w *wired) say(text string) { w.fake.Say(1001, 1001, telegramtest.Message{Text: text}) }

// await waits for a message of the bot that it was not told of yet and that holds the text.
func (w *wired) await(text string) telegramtest.Shown {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 90*time.Second)
	defer cancel()
	var found telegramtest.Shown
	err := w.fake.WaitFor(ctx, func() bool {
		for _, m := range w.fake.Chat(1001) {
			if m.FromBot && !w.seen[m.MessageID] && strings.Contains(m.Text, text) {
				found = m
				return true
			}
		}
		return false
	})
	if err != nil {
		var b strings.Builder
		for _, m := range w.fake.Chat(1001) {
			fmt.Fprintf(&b, "%s: %s\n", m.Name, m.Text)
		}
		w.t.Fatalf("waited in vain for %q:\n%s", text, b.String())
	}
	w.seen[found.MessageID] = true
	return found
}

func (w *wired) approve(card telegramtest.Shown) {
	w.t.Helper()
	if _, err := w.fake.PressButton(1001, 1001, card.MessageID, "Approve once"); err != nil {
		w.t.Fatal(err)
	}
}

// TestFencedThroughApproval: a model without tool calls of its own writes a bash block. It is asked about like any
// other call, runs, and the model reads what came of it; the vendor gets text alone.
func TestFencedThroughApproval(t *testing.T) {
	t.Parallel()
	w := newWired(t, "tool_use = false", "", spoken("I will make it.\n\n```bash\necho made > it.txt && cat it.txt\n```\n"), spoken("It is there."))
	w.say("make the file")
	card := w.await("echo made > it.txt")
	w.approve(card)
	w.await("It is there.")
	for _, m := range w.fake.Chat(1001) {
		if strings.Contains(m.Text, "```") {
			t.Errorf("a fence reached the chat: %s", m.Text)
		}
	}
	requests := w.vendor.requests(t)
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, r := range requests {
		if len(r.Tools) > 0 {
			t.Errorf("request %d offers tools through the API", i+1)
		}
		if !bytes.Contains(r.Messages[0], []byte(`\u003ctools\u003e`)) && !bytes.Contains(r.Messages[0], []byte("<tools>")) {
			t.Errorf("request %d has no catalog:\n%s", i+1, r.Messages[0])
		}
		if native, _, _ := strings.Cut(strings.TrimSpace(prompt.Native), "."); bytes.Contains(r.Messages[0], []byte(native)) {
			t.Errorf("request %d has the sentence for models with tool calls of their own", i+1)
		}
		for _, m := range r.Messages {
			if bytes.Contains(m, []byte(`"tool_calls"`)) || bytes.Contains(m, []byte(`"role":"tool"`)) {
				t.Errorf("request %d: %s", i+1, m)
			}
		}
	}
	if last := requests[1].Messages[len(requests[1].Messages)-1]; !bytes.Contains(last, []byte("made")) {
		t.Errorf("the model did not read the output: %s", last)
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, "data", "audit.jsonl"))
	if err != nil || !bytes.Contains(raw, []byte(`"tool":"bash"`)) || !bytes.Contains(raw, []byte(`"approved_by"`)) {
		t.Errorf("the audit: %v\n%s", err, raw)
	}
}

// TestFencedDenied: nothing that is written into a fence goes around the policy.
func TestFencedDenied(t *testing.T) {
	t.Parallel()
	w := newWired(t, "tool_use = false", "", spoken("```bash\nsudo rm -rf /\n```\n```tool\n{\"name\":\"read\",\"arguments\":{\"path\":\"/etc/shadow\"}}\n```\n"), spoken("I may not."))
	w.say("break it")
	w.await("I may not.")
	requests := w.vendor.requests(t)
	last := requests[len(requests)-1]
	if n := bytes.Count(join(last.Messages), []byte("category: policy_blocked")); n != 2 {
		t.Errorf("%d calls were blocked:\n%s", n, join(last.Messages[1:]))
	}
}

// TestSamePrefix: what was sent in one request is sent in the next one byte for byte, with more behind it: system
// prompt, tools and history. So a vendor's prompt cache hits at every step, also after a question, a restart and in the
// next turn.
func TestSamePrefix(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, extra string
		grows       bool // the list of tools may get longer during a turn
	}{
		{name: "all tools"},
		{
			name: "chosen tools", grows: true,
			extra: "[agent.tool_filter]\nenabled = true\ntop_k = 3\n[tools.tafc]\nenabled = true\ncomplexity_threshold = 0.2\n" +
				"[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.copy_path]\nrequires = [\"grep\"]\n[tools.overflow]\nthreshold = 300\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWired(t, "", tt.extra,
				called("a", "list_directory", `{"path":"."}`),
				called("b", "grep", `{"pattern":"nothing"}`),
				called("c", "read", `{"file":"wrong.txt"}`),
				called("d", "bash", `{"command":"for i in 1 2 3 4 5 6 7 8 9; do echo a line that is repeated $i times, so that it becomes long; done | tee it.txt"}`),
				called("e", "read", `{"path":"it.txt"}`),
				spoken("All looked at."), spoken("Gladly."),
			)
			w.say("Find what files are in this directory, copy the path of what you grep")
			card := w.await("a line that is repeated")
			w.end() // the rest of the turn is worked on by another process
			w.serve()
			w.approve(card)
			w.await("All looked at.")
			w.say("thank you")
			w.await("Gladly.")
			samePrefix(t, w.vendor.requests(t), tt.grows)
		})
	}
}

// samePrefix compares each request with the one before it.
func samePrefix(t *testing.T, requests []sent, grows bool) {
	t.Helper()
	if len(requests) != 7 {
		t.Fatalf("%d requests", len(requests))
	}
	same := 0
	for i := 1; i < len(requests); i++ {
		before, after := requests[i-1], requests[i]
		if len(before.Tools) == 0 {
			t.Fatalf("request %d offers no tools", i)
		}
		sameTurn := i < 6
		switch {
		case len(before.Tools) == len(after.Tools) && begins(after.Tools, before.Tools):
			same++
		case !grows:
			t.Errorf("request %d offers other tools than the one before", i+1)
		case sameTurn && !begins(after.Tools, before.Tools):
			t.Errorf("request %d: the tools of the one before do not come first", i+1)
		}
		if !begins(after.Messages, before.Messages) {
			t.Errorf("request %d does not begin with the one before:\n%s\n--- before ---\n%s", i+1, join(after.Messages), join(before.Messages))
		}
		if len(after.Messages) <= len(before.Messages) {
			t.Errorf("request %d has nothing new", i+1)
		}
	}
	if same < 3 {
		t.Errorf("the tools stayed the same only %d times", same)
	}
}

// begins says whether a list begins with another one, byte for byte.
func begins(list, first []json.RawMessage) bool {
	if len(list) < len(first) {
		return false
	}
	for i := range first {
		if !bytes.Equal(list[i], first[i]) {
			return false
		}
	}
	return true
}

// join writes a list, one entry a line.
func join(list []json.RawMessage) []byte {
	var b bytes.Buffer
	for _, one := range list {
		b.Write(one)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
