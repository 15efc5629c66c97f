package simulator_test

import (
	"bytes"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/simulator"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page/app.js": "text/javascript; charset=utf-8", "/page/page.css": "text/css; charset=utf-8",
		"/page/icon.svg": "image/svg+xml", "/api/view?me=1001&chat=1001": "application/json", "/api/log": "application/json",
	} {
		status, head, _ := s.request(http.MethodGet, path, nil, nil)
		if status != http.StatusOK || head.Get("Content-Type") != kind {
			t.Errorf("%s: %d %q", path, status, head.Get("Content-Type"))
		}
		csp := head.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'self'", "object-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if !strings.Contains(head.Get("Permissions-Policy"), "camera=()") {
			t.Errorf("%s: the page may use %q", path, head.Get("Permissions-Policy"))
		}
		if strings.Contains(csp, "unsafe") || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", path, head)
		}
	}
}

func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	for _, path := range []string{
		"/", "/page/app.js", "/page/bar.js", "/page/list.js", "/page/messages.js", "/page/composer.js", "/page/inspector.js",
		"/page/render.js", "/page/dom.js", "/page/api.js", "/page/media.js", "/page/menu.js", "/page/search.js", "/page/highlight.js", "/page/languages.js", "/page/files.js", "/page/voice.js", "/page/page.css",
	} {
		status, _, body := s.request(http.MethodGet, path, nil, nil)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://", "//cdn", "@import", "onclick=", " style="} {
			if bytes.Contains(body, []byte(bad)) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
	}
}

func TestForeignRequests(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	host := strings.TrimPrefix(s.url, "http://")
	_, port, _ := strings.Cut(host, ":")
	say := p{"me": ann, "chat": ann, "text": "x"}
	for _, tc := range []struct {
		name   string
		method string
		path   string
		body   any
		header map[string]string
		want   int
	}{
		{"own page", "POST", "/api/say", say, map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"}, 200},
		{"no browser", "POST", "/api/say", say, nil, 200},
		{"localhost", "POST", "/api/say", say, map[string]string{"Host": "localhost:" + port, "Origin": "http://localhost:" + port}, 200},
		{"link to the page", "GET", "/", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"rebound name", "GET", "/api/view?me=1001&chat=1001", nil, map[string]string{"Host": "evil.example:" + port}, 421},
		{"rebound name, page", "GET", "/", nil, map[string]string{"Host": "evil.example"}, 421},
		{"other port", "POST", "/api/say", say, map[string]string{"Host": "127.0.0.1:1"}, 421},
		{"foreign origin", "POST", "/api/say", say, map[string]string{"Origin": "https://evil.example"}, 403},
		{"foreign origin reads", "GET", "/api/view?me=1001&chat=1001", nil, map[string]string{"Origin": "https://evil.example"}, 403},
		{"opaque origin", "POST", "/api/say", say, map[string]string{"Origin": "null"}, 403},
		{"other local page", "POST", "/api/bot", p{"do": "kill"}, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"cross-site fetch", "POST", "/api/bot", p{"do": "kill"}, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"cross-site image", "GET", "/api/view?me=1001&chat=1001", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"form", "POST", "/api/say", say, map[string]string{"Content-Type": "text/plain"}, 415},
		{"get that writes", "GET", "/api/say", nil, nil, 405},
		{"listing", "GET", "/page/", nil, nil, 404},
		{"outside", "GET", "/page/../api.go", nil, nil, 404},
		{"unknown", "GET", "/favicon.ico", nil, nil, 404},
	} {
		if status, _, raw := s.request(tc.method, tc.path, tc.body, tc.header); status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, status, raw, tc.want)
		}
	}
	if diff := cmp.Diff(3, len(s.sim.Fake().Chat(ann))-countBot(s)); diff != "" {
		t.Errorf("messages that got through (-want +got):\n%s", diff)
	}
}

func countBot(s *site) int {
	n := 0
	for _, m := range s.sim.Fake().Chat(ann) {
		if m.FromBot {
			n++
		}
	}
	return n
}

func TestOptions(t *testing.T) {
	t.Parallel()
	command := func(string, string) *exec.Cmd { return exec.Command("true") } //nolint:noctx // the simulator ends it
	for _, tc := range []struct {
		name string
		opt  simulator.Options
		want string
	}{
		{"no command", simulator.Options{}, "Command is missing"},
		{"everybody", simulator.Options{Command: command, Listen: "0.0.0.0:0"}, "not a loopback address"},
		{"no host", simulator.Options{Command: command, Listen: ":8080"}, "not a loopback address"},
		{"name", simulator.Options{Command: command, Listen: "example.org:1"}, "not a loopback address"},
		{"no port", simulator.Options{Command: command, Listen: "127.0.0.1"}, "want HOST:PORT"},
		{"bad port", simulator.Options{Command: command, Listen: "127.0.0.1:x"}, "listen for the page"},
	} {
		if _, err := simulator.New(tc.opt); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	var listed, admins []int64
	for _, p := range simulator.People() {
		if p.Listed {
			listed = append(listed, p.ID)
		}
		if p.Admin {
			admins = append(admins, p.ID)
		}
	}
	if diff := cmp.Diff([][]int64{listed, admins, {team}}, [][]int64{simulator.AllowedUsers(), simulator.Admins(), simulator.AllowedChats()}); diff != "" {
		t.Error(diff)
	}
}
