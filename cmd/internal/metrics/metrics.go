// Package metrics holds the Prometheus metrics of the service (contract: prefix zephbot_) and the HTTP handler for them and for health checks.
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

// Metrics counts. Its methods are safe for concurrent use.
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
}

// New makes the metrics.
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
		registry:  prometheus.NewRegistry(),
		updates:   counter("updates_total", "Accepted updates by kind.", "kind"),
		turns:     counter("turns_total", "Turns by outcome.", "outcome"),
		turnTime:  histogram("turn_duration_seconds", "How long a turn spends in each phase.", "phase"),
		calls:     counter("tool_calls_total", "Tool calls by tool and error category (ok = none).", "tool", "category"),
		callTime:  histogram("tool_duration_seconds", "How long tools run.", "tool"),
		approvals: counter("approvals_total", "Decided approvals by decision.", "decision"),
		denied:    counter("quota_denied_total", "Refusals by quota scope.", "scope"),
		tokens:    counter("llm_tokens_total", "Tokens by provider and kind.", "provider", "kind"),
		cost:      counter("llm_cost_usd_total", "Cost of model calls in USD.", "provider"),
		requests:  counter("telegram_requests_total", "Bot API requests by method and HTTP status (0 = no answer).", "method", "status"),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "zephbot", Name: "telegram_throttled_seconds_total", Help: "Seconds the Bot API told us to wait.",
		}),
	}
	m.registry.MustRegister(
		m.updates, m.turns, m.turnTime, m.calls, m.callTime, m.approvals, m.denied, m.tokens, m.cost, m.requests, m.throttled,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Gauge registers a gauge that is read when somebody asks: sessions_active, queue_depth.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "zephbot", Name: name, Help: help}, read))
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

// Request counts a Bot API request.
func (m *Metrics) Request(method string, status int) {
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
}

// Throttled counts how long the Bot API told us to wait.
func (m *Metrics) Throttled(wait time.Duration) { m.throttled.Add(wait.Seconds()) }

// Handler serves /metrics, /healthz (the process works) and /readyz (it can do its job; ready says why not).
func (m *Metrics) Handler(ready func(ctx context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // the prober went away: nobody to tell
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		if err := ready(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n")) // as above
	})
	return mux
}
