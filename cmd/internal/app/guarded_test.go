package app_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/audit"
)

// publicNames answers every name with one public address.
type publicNames struct{}

func (publicNames) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// badModel tries to get at what it must not have, four ways, and then says how it went.
const badModel = `
on "go": call read {"path":"/etc/shadow"}
then expect "policy_blocked"
and call bash {"command":"echo $(rm -rf /)"}
then expect "policy_blocked"
and call fetch {"url":"https://docs.example.com/start"}
then expect "policy_blocked"
and call bash {"command":"cat /etc/shadow"}
then say I could do none of it.
`

// TestGuarded: a model that tries to read /etc/shadow, to hide rm -rf in a substitution and to reach 169.254.169.254
// through a redirect fails each time, and the audit tells the story.
func TestGuarded(t *testing.T) {
	t.Parallel()
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusFound)
	}))
	defer site.Close()
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	dialed := make(chan string, 16)
	w := begin(t, badModel, app.Internet{
		Resolver: publicNames{}, Roots: roots,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed <- address
			return (&net.Dialer{}).DialContext(ctx, network, site.Listener.Addr().String())
		},
	})
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "go"})
	// The last command is asked for: a person who approves it is still protected by the kernel, where there is one.
	w.wait("the question", func(m telegramtest.Shown) bool {
		return strings.Contains(m.Text, "cat /etc/shadow") && len(m.Keyboard) > 0
	})
	w.press("Deny")
	w.wait("the answer", func(m telegramtest.Shown) bool { return m.Text == "I could do none of it." })
	w.end()
	close(dialed)
	for address := range dialed {
		if !strings.HasPrefix(address, "93.184.216.34:") {
			t.Errorf("dialled %s", address)
		}
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, "data", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(nil, audit.File{Reader: bytes.NewReader(raw)})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("audit: %v %v", err, report.Problems)
	}
	story := []string{
		`"tool":"read"`, `"tool":"bash"`, `"kind":"egress"`, `"block_reason":"ssrf"`, `"tool":"fetch"`, `"tool":"bash"`,
	}
	rest := string(raw)
	for _, part := range story {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Fatalf("the audit does not tell of %s in its place:\n%s", part, raw)
		}
		rest = rest[i+len(part):]
	}
	if n := strings.Count(string(raw), `"type":"blocked"`); n != 4 || strings.Contains(string(raw), `"type":"success"`) {
		t.Errorf("%d calls were blocked:\n%s", n, raw)
	}
	if !strings.Contains(string(raw), `"caller_id":"telegram:1001"`) {
		t.Error("the audit does not say for whom")
	}
}

// world is the service at work for one test.
type world struct {
	t    *testing.T
	dir  string
	fake *telegramtest.Server
	opts app.Options
	stop context.CancelFunc
	done chan error
}

func begin(t *testing.T, script string, internet app.Internet, env ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), fake: telegramtest.New(telegramtest.Options{}), done: make(chan error, 1)}
	url, err := w.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	w.fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	w.fake.AddPrivate(1001)
	model, err := llmtest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{WorkDir: w.dir, Home: w.dir, Env: append([]string{
		"ZEPH_DATA_DIR=" + filepath.Join(w.dir, "data"), "ZEPH_TELEGRAM_TOKEN=" + w.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + url, "ZEPH_TELEGRAM_ADMINS=1001",
	}, env...)})
	if err != nil {
		t.Fatal(err)
	}
	w.opts = app.Options{Config: cfg, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: w.dir, Provider: model, Internet: internet}
	w.serve()
	return w
}

// serve starts the service on the state that there is.
func (w *world) serve() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop = cancel
	go func() { w.done <- app.Serve(ctx, w.opts) }()
}

// again stops the service and starts it anew.
func (w *world) again() {
	w.t.Helper()
	w.stop()
	if err := <-w.done; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	w.serve()
}

// wait waits for a message of the bot.
func (w *world) wait(what string, ok func(telegramtest.Shown) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 90*time.Second)
	defer cancel()
	err := w.fake.WaitFor(ctx, func() bool {
		for _, m := range w.fake.Chat(1001) {
			if m.FromBot && ok(m) {
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
		w.t.Fatalf("waited in vain for %s:\n%s", what, b.String())
	}
}

// press presses the newest button with a label.
func (w *world) press(label string) {
	w.t.Helper()
	messages := w.fake.Chat(1001)
	for _, message := range slices.Backward(messages) {
		if len(message.Keyboard) > 0 {
			if _, err := w.fake.PressButton(1001, 1001, message.MessageID, label); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatal("no button")
}

func (w *world) end() {
	w.t.Helper()
	w.stop()
	if err := <-w.done; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
	w.fake.Close()
}
