package cli_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// thinking is a model that answers each request when it is told to.
type thinking struct {
	asked  chan struct{}
	answer chan string
}

// ServeHTTP implements http.Handler.
func (m *thinking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a service that is stopped goes away in the middle
	m.asked <- struct{}{}
	var text string
	select {
	case text = <-m.answer:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
}

// served is the service as a process, between a fake Telegram and a model that thinks.
type served struct {
	*heard
	t     *testing.T
	fake  *telegramtest.Server
	model *thinking
	http  string
	hook  string   // where updates are delivered, in a service of several processes that has a webhook
	done  chan int // its exit code
	term  func()
	// signal sends any other signal; of processes of a service of several.
	signal func(syscall.Signal)
}

func serve(t *testing.T, before func(*telegramtest.Server)) *served {
	t.Helper()
	s := &served{heard: newHeard(), t: t, fake: telegramtest.New(telegramtest.Options{}), done: make(chan int, 1)}
	s.model = &thinking{asked: make(chan struct{}, 8), answer: make(chan string)}
	vendor := httptest.NewServer(s.model)
	api, err := s.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	s.fake.AddPrivate(1001)
	if before != nil {
		before(s.fake)
	}
	s.http = "127.0.0.1:" + freePort(t)
	dir := t.TempDir()
	cmd := zephbot(t, dir, []string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, "state"), "ZEPH_TELEGRAM_TOKEN=" + s.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + api, "ZEPH_TELEGRAM_ALLOWED_USERS=1001",
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_WIRE=chat", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + vendor.URL + "/v1",
		"ZEPH_METRICS_LISTEN=" + s.http,
	}, "serve")
	cmd.Stdout, cmd.Stderr = s.heard, s.heard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = cmd.Wait() // the exit code says it
		s.done <- cmd.ProcessState.ExitCode()
	})
	s.term = func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, or the test has failed
		wg.Wait()
		s.fake.Close()
		vendor.Close()
	})
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// probe is what a path answers: the status and the text. Nobody there is status 0.
func (s *served) probe(path string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.http+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

// until waits until a path answers so.
func (s *served) until(path string, status int, text string) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		got, said := s.probe(path)
		if got == status && strings.Contains(said, text) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("%s answers %d %q, want %d %q; printed: %s", path, got, said, status, text, s)
		}
	}
}

// exit waits for the end of the process.
func (s *served) exit() int {
	s.t.Helper()
	select {
	case code := <-s.done:
		return code
	case <-time.After(patience):
		s.t.Fatalf("the process does not end; printed: %s", s)
		return -1
	}
}

func (s *served) said(text string) int {
	n := 0
	for _, m := range s.fake.Chat(1001) {
		if m.FromBot && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// TestDrain: SIGTERM takes a process out of service at once, and what a person waits for is finished and delivered
// before it ends.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.until("/readyz", http.StatusOK, "ready")
	s.fake.Say(1001, 1001, telegramtest.Message{Text: "a long question"})
	select {
	case <-s.model.asked:
	case <-time.After(patience):
		t.Fatalf("the model was not asked; printed: %s", s)
	}
	s.term()
	s.until("/readyz", http.StatusServiceUnavailable, "stopping")
	if status, text := s.probe("/healthz"); status != http.StatusOK || text != "ok" {
		t.Errorf("/healthz while stopping: %d %q; whoever restarts it now loses the answer", status, text)
	}
	select {
	case code := <-s.done:
		t.Fatalf("ended with %d while a turn runs", code)
	default:
	}
	began := time.Now()
	s.model.answer <- "the whole answer"
	if code := s.exit(); code != 0 {
		t.Errorf("exit %d; printed: %s", code, s)
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the end took %s", took)
	}
	if n := s.said("the whole answer"); n != 1 {
		t.Errorf("the answer is there %d times: %v", n, s.fake.Chat(1001))
	}
	if status, _ := s.probe("/healthz"); status != 0 {
		t.Errorf("/healthz after the end: %d", status)
	}
}

// TestReadyMeansConnected: a process that cannot reach Telegram lives, and is not ready; it stops at once.
func TestReadyMeansConnected(t *testing.T) {
	t.Parallel()
	s := serve(t, func(f *telegramtest.Server) {
		f.AddFault(telegramtest.Fault{Method: "getMe", Kind: telegramtest.Fault500})
	})
	s.until("/readyz", http.StatusServiceUnavailable, "telegram is not connected")
	if status, text := s.probe("/healthz"); status != http.StatusOK || text != "ok" {
		t.Errorf("/healthz: %d %q", status, text)
	}
	s.fake.ClearFaults()
	s.until("/readyz", http.StatusOK, "ready")
	s.term()
	if code := s.exit(); code != 0 {
		t.Errorf("exit %d; printed: %s", code, s)
	}
}
