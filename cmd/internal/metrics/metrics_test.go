package metrics_test

import (
	"context"
	"errors"
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
	m := metrics.New()
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
	h := metrics.New().Handler(metrics.Health{
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
	h := metrics.New().Handler(metrics.Health{Alive: func() {}}, metrics.Mount{Pattern: "/pages/", Handler: page})
	for path, want := range map[string]string{"/pages/one": "a page", "/healthz": "ok\n", "/other": "404 page not found\n"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: %q, want %q", path, w.Body, want)
		}
	}
}
