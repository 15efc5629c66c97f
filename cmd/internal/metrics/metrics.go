// Package metrics provides the Prometheus metrics of the service (contract: prefix zephbot_) and the HTTP handler for
// them and for health checks.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts events. Its methods are safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	updates   *prometheus.CounterVec
	turns     *prometheus.CounterVec
	turnTime  *prometheus.HistogramVec
	calls     *prometheus.CounterVec
	callTime  *prometheus.HistogramVec
	approvals *prometheus.CounterVec
	denied    *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	cost      *prometheus.CounterVec
	requests  *prometheus.CounterVec
	throttled prometheus.Counter
	chars     *prometheus.CounterVec
	levels    *prometheus.CounterVec
	cached    *prometheus.CounterVec
	utility   *prometheus.CounterVec
	retries   *prometheus.CounterVec
	anomalies *prometheus.CounterVec
	sweeps    *prometheus.CounterVec
}

// New returns the metrics.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "zephbot", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "zephbot", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}, labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		updates:  counter("updates_total", "Accepted updates by kind.", "kind"),
		turns:    counter("turns_total", "Turns by outcome.", "outcome"),
		turnTime: histogram("turn_duration_seconds", "How long a turn spends in each phase.", "phase"),
		calls: counter("tool_calls_total", "Tool calls by tool and error category (ok = none).", "tool",
			"category"),
		callTime:  histogram("tool_duration_seconds", "How long tools run.", "tool"),
		approvals: counter("approvals_total", "Decided approvals by decision.", "decision"),
		denied:    counter("quota_denied_total", "Refusals by quota scope.", "scope"),
		tokens:    counter("llm_tokens_total", "Tokens by provider and kind.", "provider", "kind"),
		cost:      counter("llm_cost_usd_total", "Cost of model calls in USD.", "provider"),
		requests: counter("telegram_requests_total", "Bot API requests by method and HTTP status (0 = no answer).",
			"method", "status"),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "zephbot", Name: "telegram_throttled_seconds_total",
			Help: "Seconds the Bot API told us to wait.",
		}),
	}
	m.chars = counter("filter_chars_total",
		"Characters of command output before (raw) and after (filtered) the filter.", "stage")
	m.levels = counter("filter_confidence_total", "Filtered outputs by confidence: full, partial, fallback.", "level")
	m.cached = counter("cache_requests_total", "Look-ups in the result cache: hit, miss, bypass.", "result")
	m.utility = counter("utility_decisions_total", "Decisions of the utility gate.", "decision")
	m.retries = counter("tool_retries_total", "Repetitions of tool calls that failed for a passing reason.", "tool")
	m.anomalies = counter("tool_anomalies_total", "Tools that failed too often: warning, critical.", "tool", "level")
	m.sweeps = counter("retention_sweeps_total", "Sweeps of what retention forgets, by outcome: ok, error.", "outcome")
	m.registry.MustRegister(
		m.sweeps, m.chars, m.levels, m.cached, m.utility, m.retries, m.anomalies, m.updates, m.turns, m.turnTime,
		m.calls, m.callTime, m.approvals, m.denied, m.tokens, m.cost, m.requests, m.throttled,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Gauge registers a gauge that is read at each scrape: sessions_active, queue_depth.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "zephbot", Name: name, Help: help},
		read))
}

// Update counts an accepted update.
func (m *Metrics) Update(kind string) { m.updates.WithLabelValues(kind).Inc() }

// Turn counts a run of a turn.
func (m *Metrics) Turn(outcome string) { m.turns.WithLabelValues(outcome).Inc() }

// Phase observes how long a phase of a turn took.
func (m *Metrics) Phase(phase string, took time.Duration) {
	m.turnTime.WithLabelValues(phase).Observe(took.Seconds())
}

// Call counts a tool call; category "" is "ok".
func (m *Metrics) Call(tool, category string, took time.Duration) {
	if category == "" {
		category = "ok"
	}
	m.calls.WithLabelValues(tool, category).Inc()
	m.callTime.WithLabelValues(tool).Observe(took.Seconds())
}

// Approval counts a decision.
func (m *Metrics) Approval(decision string) { m.approvals.WithLabelValues(decision).Inc() }

// Denied counts a refusal by a quota.
func (m *Metrics) Denied(scope string) { m.denied.WithLabelValues(scope).Inc() }

// Model counts tokens and cost of a model call.
func (m *Metrics) Model(provider string, input, cached, output int, usd float64) {
	m.tokens.WithLabelValues(provider, "input").Add(float64(input))
	m.tokens.WithLabelValues(provider, "cached").Add(float64(cached))
	m.tokens.WithLabelValues(provider, "output").Add(float64(output))
	m.cost.WithLabelValues(provider).Add(usd)
}

// Filtered counts what the output filter did: level is full, partial or fallback.
func (m *Metrics) Filtered(raw, filtered int, level string) {
	m.chars.WithLabelValues("raw").Add(float64(raw))
	m.chars.WithLabelValues("filtered").Add(float64(filtered))
	m.levels.WithLabelValues(level).Inc()
}

// Cached counts a look-up in the result cache.
func (m *Metrics) Cached(result string) { m.cached.WithLabelValues(result).Inc() }

// Utility counts a decision of the utility gate.
func (m *Metrics) Utility(decision string) { m.utility.WithLabelValues(decision).Inc() }

// Retried counts a retry of a tool call.
func (m *Metrics) Retried(tool string) { m.retries.WithLabelValues(tool).Inc() }

// Anomaly counts a tool that failed too often.
func (m *Metrics) Anomaly(tool, level string) { m.anomalies.WithLabelValues(tool, level).Inc() }

// Swept counts a sweep of expired data.
func (m *Metrics) Swept(ok bool) {
	outcome := "ok"
	if !ok {
		outcome = "error"
	}
	m.sweeps.WithLabelValues(outcome).Inc()
}

// GaugesBy registers gauges with one label that are read at each scrape: mcp_servers by state.
func (m *Metrics) GaugesBy(name, help, label string, read func() map[string]float64) {
	m.registry.MustRegister(collector{
		desc: prometheus.NewDesc("zephbot_"+name, help, []string{label}, nil), read: read,
	})
}

// collector reads its values at each scrape.
type collector struct {
	desc *prometheus.Desc
	read func() map[string]float64
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for value, n := range c.read() {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, n, value)
	}
}

// Request counts a Bot API request.
func (m *Metrics) Request(method string, status int) {
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
}

// Throttled counts the delays that the Bot API requested.
func (m *Metrics) Throttled(wait time.Duration) { m.throttled.Add(wait.Seconds()) }

// Health answers health probes.
type Health struct {
	// Alive returns once the process has shown that it makes progress. If it does not return, the probe times out and
	// the process should be restarted.
	Alive func()
	// Ready returns why the process cannot do its job; nil = it can.
	Ready func(ctx context.Context) error
}

// Mount is a handler that shares the listener with the metrics.
type Mount struct {
	Pattern string // of http.ServeMux, such as "GET /debug/"
	Handler http.Handler
}

// Handler serves /metrics, /healthz (the process makes progress), /readyz (it can do its job, or 503 with the reason
// why not), and what is mounted. It panics if a mount has the pattern of another one.
func (m *Metrics) Handler(health Health, mounts ...Mount) http.Handler {
	mux := http.NewServeMux()
	for _, mount := range mounts {
		mux.Handle(mount.Pattern, mount.Handler)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		health.Alive()
		_, _ = w.Write([]byte("ok\n")) // the prober has gone: the error concerns nobody
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		if err := health.Ready(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n")) // as above
	})
	return mux
}
