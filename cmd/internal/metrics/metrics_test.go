package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/metrics"
)

// TestNames pins names and labels: dashboards and alarms are made of them.
func TestNames(t *testing.T) {
	t.Parallel()
	m := metrics.New("test")
	m.Filtered(100, 20, "full")
	m.Cached("hit")
	m.Utility("run")
	m.Retried("fetch")
	m.Anomaly("fetch", "critical")
	m.Call("bash", "", time.Second)
	m.Model("main", 10, 4, 2, 0.5)
	m.GaugesBy("mcp_servers", "MCP servers by state.", "state", func() map[string]float64 { return map[string]float64{"connected": 2} })
	m.Swept(true)
	m.Swept(false)
	m.Gauge("sessions_active", "Sessions.", func() float64 { return 3 })
	if spent := m.Spent(); spent["main"] != 0.5 || len(spent) != 1 {
		t.Errorf("spent: %v", spent)
	}
	w := httptest.NewRecorder()
	m.Handler(metrics.Health{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090/metrics", nil))
	for _, want := range []string{
		`zephbot_filter_chars_total{stage="raw"} 100`, `zephbot_filter_chars_total{stage="filtered"} 20`, `zephbot_filter_confidence_total{level="full"} 1`,
		`zephbot_cache_requests_total{result="hit"} 1`, `zephbot_utility_decisions_total{decision="run"} 1`, `zephbot_tool_retries_total{tool="fetch"} 1`,
		`zephbot_tool_anomalies_total{level="critical",tool="fetch"} 1`, `zephbot_tool_calls_total{category="ok",tool="bash"} 1`,
		`zephbot_llm_tokens_total{kind="cached",provider="main"} 4`, `zephbot_mcp_servers{state="connected"} 2`, `zephbot_sessions_active 3`,
		`zephbot_retention_sweeps_total{outcome="ok"} 1`, `zephbot_retention_sweeps_total{outcome="error"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}

// TestHealth: a process that moves no more does not answer, so that whoever asks gives up on it; one that cannot do its
// job says why.
func TestHealth(t *testing.T) {
	t.Parallel()
	stuck, reason := make(chan struct{}), errors.New("the database does not answer")
	var alive func()
	var broken bool
	h := metrics.New("test").Handler(metrics.Health{
		Alive: func() { alive() },
		Ready: func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("a question without a limit")
			}
			if broken {
				return reason
			}
			return nil
		},
	}, nil)
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090"+path, nil))
		return w
	}
	alive = func() {}
	if w := ask("/healthz"); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("/healthz: %d %q", w.Code, w.Body)
	}
	if w := ask("/readyz"); w.Code != http.StatusOK {
		t.Errorf("/readyz: %d %q", w.Code, w.Body)
	}
	broken = true
	if w := ask("/readyz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), reason.Error()) {
		t.Errorf("/readyz: %d %q", w.Code, w.Body)
	}
	alive = func() { <-stuck }
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		ask("/healthz")
	}()
	select {
	case <-answered:
		t.Error("a process that is stuck is called healthy")
	case <-time.After(50 * time.Millisecond):
	}
	close(stuck)
	<-answered
}

// TestMounts: what shares the listener leaves metrics and health checks as they are.
func TestMounts(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
	h := metrics.New("test").Handler(metrics.Health{Alive: func() {}}, nil, metrics.Mount{Pattern: "/pages/", Handler: page})
	for path, want := range map[string]string{"/pages/one": "a page", "/healthz": "ok\n", "/other": "404 page not found\n"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090"+path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: %q, want %q", path, w.Body, want)
		}
	}
}

// TestToolNamesAreBounded: a server that renames its tools all the time does not fill the memory of whoever scrapes.
// TestAttackForeignHost: a web page cannot read what is served on this machine by a name of its own, nor start profiles
// from elsewhere. Probes are answered under any name, without a reason.
func TestAttackForeignHost(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
	health := metrics.Health{Alive: func() {}, Ready: func(context.Context) error { return errors.New("secret reason") }}
	names := []string{":9090", "Metrics.Example.org:9090", "https://zeph.example.org/", "box.example.net"}
	h := metrics.New("test").Handler(health, names, metrics.Profiles(), metrics.Mount{Pattern: "/admin/", Handler: page})
	ask := func(host, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090"+path, nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, host := range []string{
		"127.0.0.1:9090", "[::1]:9090", "10.1.2.3", "[fe80::1%25eth0]:9090", "[fdaa::1]", "localhost", "LOCALHOST:1", "zephbot:9090", "metrics.example.org:9090", "zeph.example.org", "zeph.example.org.:80", "box.example.net",
		"zephbot.default.svc", "zephbot.default.svc.cluster.local:9090", "nas.local", "zephbot.internal", "",
	} {
		for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/admin/": 200, "/readyz": 503} {
			if w := ask(host, path); w.Code != want {
				t.Errorf("%s at %q: %d", path, host, w.Code)
			}
		}
	}
	for _, host := range []string{
		"evil.example.com", "evil.example.com:9090", "127.0.0.1.evil.example", "localhost.evil.example", "xlocal.example", "zeph.example.org.evil.example", "evil.svc.example", "svc.evil.example:9090", "a.cluster.local.evil.example",
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/admin/", "/other"} {
			if w := ask(host, path); w.Code != http.StatusMisdirectedRequest || strings.Contains(w.Body.String(), "go_") {
				t.Errorf("%s at %q: %d %.80q", path, host, w.Code, w.Body)
			}
		}
		if w := ask(host, "/healthz"); w.Code != http.StatusOK {
			t.Errorf("/healthz at %q: %d", host, w.Code)
		}
		if w := ask(host, "/readyz"); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("/readyz at %q: %d %q", host, w.Code, w.Body)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if w := ask("localhost", "/metrics", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "no-cors"); w.Code != http.StatusForbidden {
			t.Errorf("a %s request: %d", site, w.Code)
		}
		if w := ask("localhost", "/debug/pprof/profile", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate"); w.Code != http.StatusForbidden {
			t.Errorf("a profile for a %s page: %d", site, w.Code)
		}
		if w := ask("localhost", "/metrics", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate"); w.Code != http.StatusOK {
			t.Errorf("a link of a %s page: %d", site, w.Code)
		}
	}
}

func TestToolNamesAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New("test")
	for i := range 1000 {
		m.Call(fmt.Sprintf("server:tool%d", i), "", time.Millisecond)
	}
	m.Call("server:tool0", "", time.Millisecond)
	w := httptest.NewRecorder()
	m.Handler(metrics.Health{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090/metrics", nil))
	said := w.Body.String()
	if n := strings.Count(said, "zephbot_tool_duration_seconds_count{"); n != 101 {
		t.Errorf("%d names", n)
	}
	for _, want := range []string{`{category="ok",tool="server:tool0"} 2`, `{category="ok",tool="other"} 900`} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestProfiles: profiles can be read by go tool pprof, are only there if mounted, and add nothing to the default mux.
func TestProfiles(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(metrics.New("test").Handler(metrics.Health{}, nil, metrics.Profiles()))
	t.Cleanup(server.Close)
	for path, want := range map[string]int{
		"": 200, "heap": 200, "goroutine?debug=1": 200, "profile?seconds=0.01": 200, "trace?seconds=0.01": 200,
		"nothing": 404, "profile?seconds=x": 400, "profile?seconds=900": 400, "trace?seconds=-1": 400, "cmdline": 404,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/debug/pprof/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != want || len(body) == 0 {
			t.Errorf("%s: %d, %v, %d bytes", path, resp.StatusCode, err, len(body))
		}
	}
	without := httptest.NewRecorder()
	metrics.New("test").Handler(metrics.Health{}, nil).ServeHTTP(without, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090/debug/pprof/heap", nil))
	if without.Code != http.StatusNotFound {
		t.Errorf("profiles that nobody asked for: %d", without.Code)
	}
	if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9090/debug/pprof/heap", nil)); pattern != "" {
		t.Errorf("the default mux serves %s", pattern)
	}
}
