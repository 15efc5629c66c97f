package simulator_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/bot/simulator"
)

// botMode is the environment variable that turns the test binary into the bot.
const botMode = "ZEPH_SIMULATOR_TEST_BOT"

func TestMain(m *testing.M) {
	switch os.Getenv(botMode) {
	case "bot":
		os.Exit(runBot())
	case "hang":
		os.Exit(hang(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

// epoch is when the tests take place.
var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// site is a running simulator.
type site struct {
	t      *testing.T
	sim    *simulator.Simulator
	url    string
	client *http.Client
	stop   func() // ends Run and waits
	stderr *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// testBot is the command that runs the test binary as the bot.
func testBot(t *testing.T) func(apiURL, token string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(apiURL, token string) *exec.Cmd {
		cmd := exec.Command(self) //nolint:noctx // the simulator ends it
		cmd.Env = append(os.Environ(), botMode+"=bot", "API_URL="+apiURL, "API_TOKEN="+token)
		return cmd
	}
}

// waitForFile runs the command only once the file exists; before, the bot does not start.
func waitForFile(t *testing.T, command func(apiURL, token string) *exec.Cmd, file string) func(apiURL, token string) *exec.Cmd {
	t.Helper()
	return func(apiURL, token string) *exec.Cmd {
		if _, err := os.Stat(file); err != nil {
			return exec.Command(file) //nolint:noctx // the simulator ends it
		}
		return command(apiURL, token)
	}
}

// launch runs a simulator with the test bot until the test ends.
func launch(t *testing.T, change func(*simulator.Options)) *site {
	t.Helper()
	s := &site{t: t, stderr: &lockedBuffer{}}
	out, in := io.Pipe()
	// Time goes on by a microsecond a look, so that nothing runs out while a slow machine thinks.
	var looks atomic.Int64
	opt := simulator.Options{Command: testBot(t), Stdout: in, Stderr: s.stderr, Pause: 10 * time.Millisecond}
	opt.Fake.Now = func() time.Time { return epoch.Add(time.Duration(looks.Add(1)) * time.Microsecond) }
	if change != nil {
		change(&opt)
	}
	sim, err := simulator.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sim.Run(ctx) }()
	transport := &http.Transport{}
	s.sim, s.client = sim, &http.Client{Transport: transport}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		transport.CloseIdleConnections()
	})
	t.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSuffix(strings.TrimPrefix(line, "simulator: "), "\n")
	if s.url != sim.URL() || !strings.HasPrefix(s.url, "http://127.0.0.1:") {
		t.Fatalf("stdout %q, URL %q", line, sim.URL())
	}
	return s
}

// p is a JSON object.
type p map[string]any

// request sends one and returns status and body.
func (s *site) request(method, path string, body any, header map[string]string) (int, http.Header, []byte) {
	s.t.Helper()
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, raw
}

// post posts and wants success; the answer goes into into when it is not nil.
func (s *site) post(path string, body, into any) {
	s.t.Helper()
	status, _, raw := s.request(http.MethodPost, "/api/"+path, body, nil)
	if status != http.StatusOK {
		s.t.Fatalf("%s %v: %d %s", path, body, status, raw)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		s.t.Fatal(err)
	}
}

// refused posts and wants this refusal.
func (s *site) refused(path string, body any, want string) {
	s.t.Helper()
	status, _, raw := s.request(http.MethodPost, "/api/"+path, body, nil)
	if status != http.StatusBadRequest || !strings.Contains(string(raw), want) {
		s.t.Errorf("%s %v: %d %s, want 400 with %q", path, body, status, raw, want)
	}
}

func (s *site) get(path string, into any) {
	s.t.Helper()
	status, _, raw := s.request(http.MethodGet, "/api/"+path, nil, nil)
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, status, raw)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		s.t.Fatal(err)
	}
}

// say writes a message and returns its id.
func (s *site) say(me, chat int64, thread int, text string) int {
	s.t.Helper()
	var out struct{ Message int }
	s.post("say", p{"me": me, "chat": chat, "thread": thread, "text": text}, &out)
	return out.Message
}

func (s *site) view(me, chat int64, thread int) *simulator.View {
	s.t.Helper()
	var out simulator.View
	s.get(fmt.Sprintf("view?me=%d&chat=%d&thread=%d", me, chat, thread), &out)
	return &out
}

// await looks at the view after every event until done says true, and returns it.
func (s *site) await(me, chat int64, thread int, done func(*simulator.View) bool) *simulator.View {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/api/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data: ") {
			continue
		}
		if v := s.view(me, chat, thread); done(v) {
			return v
		}
	}
	s.t.Fatalf("the events ended before it happened: %v", lines.Err())
	return nil
}

// awaitText waits for a message with this text.
func (s *site) awaitText(me, chat int64, thread int, text string) simulator.ViewMessage {
	s.t.Helper()
	var found simulator.ViewMessage
	s.await(me, chat, thread, func(v *simulator.View) bool {
		for _, m := range v.Messages {
			if m.Text == text {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// awaitBot waits for a state of the bot process.
func (s *site) awaitBot(state string) simulator.BotStatus {
	s.t.Helper()
	return s.await(simulator.Ann, simulator.Ann, 0, func(v *simulator.View) bool { return v.Bot.State == state }).Bot
}

// awaitStart waits until the bot process was started so often and runs.
func (s *site) awaitStart(n int) {
	s.t.Helper()
	s.await(simulator.Ann, simulator.Ann, 0, func(v *simulator.View) bool { return v.Bot.State == "running" && v.Bot.Starts == n })
}

func texts(v *simulator.View) []string {
	var out []string
	for _, m := range v.Messages {
		out = append(out, m.Name+": "+m.Text)
	}
	return out
}
