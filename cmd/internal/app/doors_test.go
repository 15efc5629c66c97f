package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// doors are the webhooks of processes; updates go to the one that the test has opened.
type doors struct {
	transport *http.Transport

	mu        sync.Mutex
	open      string            // name of a process
	addresses map[string]string // by process
}

// RoundTrip implements http.RoundTripper.
func (d *doors) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	to := d.addresses[d.open]
	d.mu.Unlock()
	if to == "" {
		return nil, errors.New("that process does not listen yet")
	}
	r = r.Clone(r.Context())
	r.URL.Host = to
	return d.transport.RoundTrip(r)
}

// CloseIdleConnections is what http.Client asks of its transport.
func (d *doors) CloseIdleConnections() { d.transport.CloseIdleConnections() }

func (d *doors) listen(ctx context.Context, name string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.addresses[name] = l.Addr().String()
	}
	return l, err
}

// newDoors makes processes by whose doors updates come in.
func newDoors(t *testing.T, answers ...string) *replicas {
	t.Helper()
	d := &doors{transport: &http.Transport{}, addresses: map[string]string{}}
	w := replicasOf(t, telegramtest.New(telegramtest.Options{
		Local: true, WebhookClient: &http.Client{Transport: d, Timeout: time.Minute},
		WebhookPause: func(int) time.Duration { return 20 * time.Millisecond },
	}), answers...)
	w.doors = d
	return w
}

// to says which process the next updates reach.
func (w *replicas) to(name string) *replicas {
	w.doors.mu.Lock()
	defer w.doors.mu.Unlock()
	w.doors.open = name
	return w
}

// TestSignInInAnyProcess: a sign-in that waits in one process takes the address from a chat that another process
// serves, which says what is wrong with a wrong one; the other begins no second one. Then both are signed in.
func TestSignInInAnyProcess(t *testing.T) {
	t.Parallel()
	server := guardedServer(t)
	w := newDoors(t)
	w.more = "[[mcp.servers]]\nid = \"guarded\"\nurl = \"" + server.URL + "/mcp\"\ntrust_level = \"trusted\"\n" +
		"[mcp.servers.oauth]\nenabled = true\nclient_id = \"known\"\n"
	w.join("one")
	w.join("two")
	w.to("two").until("/mcp list", `guarded · `)
	w.to("one").until("/mcp list", `guarded · `)
	w.say("/mcp signin guarded")
	link := ""
	for line := range strings.Lines(w.await("/authorize?").Text) {
		if strings.Contains(line, "/authorize?") {
			link = strings.TrimSpace(line)
		}
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	w.to("two").say("/mcp signin guarded")
	w.await("is waiting already")
	back := u.Query().Get("redirect_uri") + "?"
	w.say("/mcp signin guarded " + back + url.Values{"code": {"c"}, "state": {"another"}}.Encode())
	w.await("this address does not belong to the sign-in that is waiting")
	w.say("/mcp signin guarded " + back + url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}.Encode())
	w.await("guarded: connected, 1 tool.")
	w.until("/mcp list", `guarded · connected`)
	w.to("one").until("/mcp list", `guarded · connected`)
	n, err := w.cluster.Numbers(t.Context(), w.name,
		`SELECT count(*) FROM fact WHERE bucket IN ('mcp_signin_at', 'mcp_job')`)
	if err != nil || n[0] != 0 {
		t.Errorf("%v left behind, %v", n, err)
	}
}

// TestServerInAnyProcess: a server that is added in one process and approved in another is connected in both; a command
// about it holds in both, whichever process it reaches, and is answered once.
func TestServerInAnyProcess(t *testing.T) {
	t.Parallel()
	w := newDoors(t)
	w.more = "[mcp]\nchat_commands = true\nallowed_commands = [\"" + kindServer + "\"]\n[tools.shell]\nsandbox = \"off\"\n"
	w.join("one")
	w.join("two")
	w.to("one").say("/mcp add kind " + kindServer + " " + string(mcptest.Plain) + " " + t.TempDir())
	card := w.await("Add the MCP server kind")
	w.to("two").approve(card)
	w.await("kind: connected")
	for _, name := range []string{"one", "two"} {
		w.to(name).until("/mcp list", `kind · connected`)
	}
	w.to("one").say("/mcp restart kind")
	w.await("kind: connected")
	// Until the other process is ready again, the command is refused with a request to repeat it.
	w.to("two").until("/mcp remove kind", `^kind: removed, with`)
	for _, name := range []string{"one", "two"} {
		w.to(name).until("/mcp list", `^No MCP server`)
	}
	answers := 0
	for _, m := range w.fake.Chat(1001) {
		if m.FromBot && strings.HasPrefix(m.Text, "kind: connected") {
			answers++
		}
	}
	if answers != 2 {
		t.Errorf("%d answers about connecting, want one for add and one for restart", answers)
	}
}
