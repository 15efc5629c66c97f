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
	m.Handler(metrics.Health{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
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
	})
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
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
	h := metrics.New("test").Handler(metrics.Health{Alive: func() {}}, metrics.Mount{Pattern: "/pages/", Handler: page})
	for path, want := range map[string]string{"/pages/one": "a page", "/healthz": "ok\n", "/other": "404 page not found\n"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: %q, want %q", path, w.Body, want)
		}
	}
}

// TestToolNamesAreBounded: a server that renames its tools all the time does not fill the memory of whoever scrapes.
func TestToolNamesAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New("test")
	for i := range 1000 {
		m.Call(fmt.Sprintf("server:tool%d", i), "", time.Millisecond)
	}
	m.Call("server:tool0", "", time.Millisecond)
	w := httptest.NewRecorder()
	m.Handler(metrics.Health{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
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
	server := httptest.NewServer(metrics.New("test").Handler(metrics.Health{}, metrics.Profiles()))
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
	metrics.New("test").Handler(metrics.Health{}).ServeHTTP(without, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/heap", nil))
	if without.Code != http.StatusNotFound {
		t.Errorf("profiles that nobody asked for: %d", without.Code)
	}
	if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/heap", nil)); pattern != "" {
		t.Errorf("the default mux serves %s", pattern)
	}
}
