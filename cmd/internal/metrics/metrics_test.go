package metrics_test

import (
	"context"
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
	m.Gauge("sessions_active", "Sessions.", func() float64 { return 3 })
	w := httptest.NewRecorder()
	m.Handler(func(context.Context) error { return nil }).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`zephbot_filter_chars_total{stage="raw"} 100`, `zephbot_filter_chars_total{stage="filtered"} 20`, `zephbot_filter_confidence_total{level="full"} 1`,
		`zephbot_cache_requests_total{result="hit"} 1`, `zephbot_utility_decisions_total{decision="run"} 1`, `zephbot_tool_retries_total{tool="fetch"} 1`,
		`zephbot_tool_anomalies_total{level="critical",tool="fetch"} 1`, `zephbot_tool_calls_total{category="ok",tool="bash"} 1`,
		`zephbot_llm_tokens_total{kind="cached",provider="main"} 4`, `zephbot_mcp_servers{state="connected"} 2`, `zephbot_sessions_active 3`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}
