package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// listening is a model that answers each question when it is told to: what to say, by a word in the question.
type listening struct {
	asked   chan string
	answers map[string]chan string
}

// ServeHTTP implements http.Handler.
func (m *listening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // a service that is stopped goes away in the middle
	}
	for word, answer := range m.answers {
		if !strings.Contains(string(body), word) {
			continue
		}
		m.asked <- word
		select {
		case text := <-answer:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
		case <-r.Context().Done():
		}
		return
	}
}

// together is what the processes of one service share.
type together struct {
	*testing.T
	cluster *pgtest.Cluster
	name    string // of the database
	url     string
	redis   string
	cache   *redistest.Process
	files   string
	fake    *telegramtest.Server
	api     string
	model   *listening
	vendor  string
	settle  []string // further environment of the processes
}

func newTogether(t *testing.T) *together {
	t.Helper()
	return togetherOn(t, telegramtest.New(telegramtest.Options{}))
}

func togetherOn(t *testing.T, fake *telegramtest.Server) *together {
	t.Helper()
	g := &together{
		T: t, cluster: pgtest.Shared(t), files: t.TempDir(), fake: fake,
		model: &listening{asked: make(chan string, 8), answers: map[string]chan string{"apples": make(chan string), "bananas": make(chan string)}},
	}
	g.name = g.cluster.Database(t, "")
	g.cache = redistest.Run(t)
	g.url, g.redis = g.cluster.URL(g.name), g.cache.URL()
	vendor := httptest.NewServer(g.model)
	t.Cleanup(vendor.Close)
	api, err := g.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.fake.Close)
	g.vendor, g.api = vendor.URL, api
	g.settle = []string{
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_WIRE=chat", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m",
		"ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + g.vendor + "/v1",
	}
	for id, name := range map[int64]string{1001: "Ann", 1002: "Bob"} {
		g.fake.AddUser(telegramtest.User{ID: id, FirstName: name, Language: "en"})
		g.fake.AddPrivate(id)
	}
	return g
}

// start starts one process of the service.
func (g *together) start() *served {
	g.Helper()
	s := &served{heard: newHeard(), t: g.T, fake: g.fake, done: make(chan int, 1), http: "127.0.0.1:" + freePort(g.T)}
	dir := g.TempDir()
	s.hook = "127.0.0.1:" + freePort(g.T)
	cmd := zephbot(g.T, dir, append([]string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, "state"), "ZEPH_TELEGRAM_TOKEN=" + g.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + g.api, "ZEPH_TELEGRAM_ALLOWED_USERS=1001,1002",
		"ZEPH_TELEGRAM_WEBHOOK_LISTEN=" + s.hook,
		"ZEPH_METRICS_LISTEN=" + s.http, "ZEPH_DATABASE_URL=" + g.url, "ZEPH_REDIS_URL=" + g.redis,
		"ZEPH_WORKSPACES_SHARED=true", "ZEPH_WORKSPACES_DIR=" + g.files,
	}, g.settle...), "serve")
	cmd.Stdout, cmd.Stderr = s.heard, s.heard
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = cmd.Wait() // the exit code says it
		s.done <- cmd.ProcessState.ExitCode()
	})
	s.signal = func(signal syscall.Signal) {
		if err := cmd.Process.Signal(signal); err != nil {
			g.Error(err)
		}
	}
	s.term = func() { s.signal(syscall.SIGTERM) }
	g.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, or the test has failed
		wg.Wait()
	})
	s.until("/readyz", http.StatusOK, "ready")
	return s
}

// asked waits until the model is asked about something.
func (g *together) asked(word string, processes ...*served) {
	g.Helper()
	select {
	case got := <-g.model.asked:
		if got != word {
			g.Fatalf("the model is asked about %s, want %s", got, word)
		}
	case <-time.After(patience):
		for _, s := range processes {
			g.Logf("printed: %s", s)
		}
		g.Fatalf("the model is not asked about %s", word)
	}
}

// said counts the bot's messages with a text.
func (g *together) said(chat int64, text string) (n int) {
	for _, m := range g.fake.Chat(chat) {
		if m.FromBot && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// TestOneOfTwoDrains: of two processes the one that is told to end finishes the turn that it has begun, while the other
// one takes what comes meanwhile.
func TestOneOfTwoDrains(t *testing.T) {
	t.Parallel()
	g := newTogether(t)
	one, two := g.begun()
	one.term()
	one.until("/readyz", http.StatusServiceUnavailable, "stopping")
	if status, text := two.probe("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz of the other one: %d %q", status, text)
	}
	g.fake.Say(1002, 1002, telegramtest.Message{Text: "and how many bananas?"})
	g.asked("bananas", one, two) // by the second one: the first one's only turn is not over
	select {
	case code := <-one.done:
		t.Fatalf("ended with %d while a turn runs", code)
	default:
	}
	g.model.answers["bananas"] <- "Two bananas."
	g.model.answers["apples"] <- "Three apples."
	if code := one.exit(); code != cli.Fine {
		t.Errorf("exit %d; printed: %s", code, one)
	}
	eventually(t, func() bool { return g.said(1002, "Two bananas.") == 1 })
	if n := g.said(1001, "Three apples."); n != 1 {
		t.Errorf("the answer of the process that has ended is there %d times; printed: %s", n, one)
	}
	two.end()
}

// TestReadyMeansStored: a process that has lost its database lives and is not ready; back again, it is. One that was
// buried ends with an error.
func TestReadyMeansStored(t *testing.T) {
	t.Parallel()
	g := newTogether(t)
	proxy := pgtest.NewProxy(t, g.cluster)
	g.url = proxy.URL(g.name)
	s := g.start()
	proxy.Away(true)
	s.until("/readyz", http.StatusServiceUnavailable, "")
	if status, text := s.probe("/healthz"); status != http.StatusOK || text != "ok" {
		t.Errorf("/healthz without a database: %d %q; a restart would not bring it back", status, text)
	}
	proxy.Away(false)
	s.until("/readyz", http.StatusOK, "ready")
	if err := g.cluster.Exec(t.Context(), g.name, "DELETE FROM process"); err != nil {
		t.Fatal(err)
	}
	if code := s.exit(); code != cli.Failed {
		t.Errorf("buried, it ends with %d; printed: %s", code, s)
	}
	s.await(t, "declared this one dead", 0)
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it does not come")
		}
	}
}
