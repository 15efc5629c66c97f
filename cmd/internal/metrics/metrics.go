// Package metrics provides the Prometheus metrics of the service (contract: prefix zephbot_) and the HTTP handler for
// them and for health checks. docs/observability.md lists them.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const namespace = "zephbot"

// Metrics counts events. Its methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	names    *names // of tools
	turnMetrics
	toolMetrics
	wireMetrics
}

// turnMetrics are about conversations.
type turnMetrics struct {
	updates   *prometheus.CounterVec
	turns     *prometheus.CounterVec
	ended     *prometheus.CounterVec
	turnTime  *prometheus.HistogramVec
	approvals *prometheus.CounterVec
	denied    *prometheus.CounterVec
	hookCalls *prometheus.CounterVec
}

// toolMetrics are about calls of tools and what the stages of the chain do with them.
type toolMetrics struct {
	calls     *prometheus.CounterVec
	callTime  *prometheus.HistogramVec
	chars     *prometheus.CounterVec
	levels    *prometheus.CounterVec
	cached    *prometheus.CounterVec
	utility   *prometheus.CounterVec
	retries   *prometheus.CounterVec
	anomalies *prometheus.CounterVec
}

// wireMetrics are about other services, and about the database.
type wireMetrics struct {
	models    *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	cost      *prometheus.CounterVec
	requests  *prometheus.CounterVec
	throttled prometheus.Counter
	commits   prometheus.Histogram
	sweeps    *prometheus.CounterVec
	spans     *prometheus.CounterVec
}

// New returns the metrics. version is that of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), names: newNames(mostTools),
		turnMetrics: newTurnMetrics(), toolMetrics: newToolMetrics(), wireMetrics: newWireMetrics(),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   namespace,
		Name:        "build_info",
		Help:        "1; the label is the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		build, m.updates, m.turns, m.ended, m.turnTime, m.approvals, m.denied, m.hookCalls,
		m.calls, m.callTime, m.chars, m.levels, m.cached, m.utility, m.retries, m.anomalies,
		m.models, m.tokens, m.cost, m.requests, m.throttled, m.commits, m.sweeps, m.spans,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.zeros()
	return m
}

// zeros creates what alerts look at: an increase of a counter that did not exist before is none.
func (m *Metrics) zeros() {
	for _, outcome := range []string{"answered", "ended"} {
		m.turns.WithLabelValues(outcome)
	}
	for _, decision := range []string{"approved", "denied", "expired"} {
		m.approvals.WithLabelValues(decision)
	}
	for _, result := range []string{"begun", "repeated", "ignored", "refused", "invalid", "busy", "off", "failed"} {
		m.hookCalls.WithLabelValues(result)
	}
	for _, outcome := range []string{"ok", "error"} {
		m.sweeps.WithLabelValues(outcome)
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// duration returns a histogram from 1 ms to 150 s.
func duration(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
	}, labels)
}

func newTurnMetrics() turnMetrics {
	return turnMetrics{
		updates: counter("updates_total", "Accepted updates by kind.", "kind"),
		turns: counter(
			"turns_total",
			"Runs of turns by outcome: answered, ended, parked (a person is asked), later (the model is away), quota.",
			"outcome",
		),
		ended: counter("turns_ended_total", "Turns that ended without an answer, by reason.", "reason"),
		turnTime: duration(
			"turn_duration_seconds",
			"How long a turn spends in each phase: queue, context, model, tools, deliver.",
			"phase",
		),
		approvals: counter("approvals_total", "Decided approvals by decision.", "decision"),
		hookCalls: counter("hook_calls_total", "Calls of hooks by what became of them.", "result"),
		denied:    counter("quota_denied_total", "Refusals by quota scope.", "scope"),
	}
}

func newToolMetrics() toolMetrics {
	return toolMetrics{
		calls: counter(
			"tool_calls_total", "Tool calls by tool and error category (ok = none).", "tool", "category",
		),
		callTime: duration("tool_duration_seconds", "How long tools run.", "tool"),
		chars: counter(
			"filter_chars_total", "Characters of command output before (raw) and after (filtered) the filter.", "stage",
		),
		levels: counter(
			"filter_confidence_total", "Filtered outputs by confidence: full, partial, fallback.", "level",
		),
		cached:    counter("cache_requests_total", "Look-ups in the result cache: hit, miss, bypass.", "result"),
		utility:   counter("utility_decisions_total", "Decisions of the utility gate.", "decision"),
		retries:   counter("tool_retries_total", "Repetitions of tool calls that failed for a passing reason.", "tool"),
		anomalies: counter("tool_anomalies_total", "Tools that failed too often: warning, critical.", "tool", "level"),
	}
}

func newWireMetrics() wireMetrics {
	return wireMetrics{
		models: counter(
			"llm_requests_total",
			"Requests to models by provider and result: ok, or the kind of error.",
			"provider",
			"result",
		),
		tokens: counter(
			"llm_tokens_total",
			"Tokens by provider and kind: input, cached (part of input), output.",
			"provider",
			"kind",
		),
		cost: counter("llm_cost_usd_total", "Cost of model calls in USD.", "provider"),
		requests: counter(
			"telegram_requests_total",
			"Bot API requests by method and HTTP status (0 = no answer).",
			"method",
			"status",
		),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "telegram_throttled_seconds_total",
			Help:      "Seconds the Bot API told us to wait.",
		}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace,
			Name:      "database_commit_seconds",
			Help:      "How long the database takes to make a commit durable.",
			Buckets:   prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		sweeps: counter(
			"retention_sweeps_total", "Sweeps of what retention forgets, by outcome: ok, error.", "outcome",
		),
		spans: counter("trace_spans_total", "Spans by what became of them: exported, failed, dropped.", "outcome"),
	}
}

// Update counts an accepted update.
func (m *Metrics) Update(kind string) { m.updates.WithLabelValues(kind).Inc() }

// Turn counts a run of a turn.
func (m *Metrics) Turn(outcome string) { m.turns.WithLabelValues(outcome).Inc() }

// Ended counts a turn that ended without an answer.
func (m *Metrics) Ended(reason string) { m.ended.WithLabelValues(reason).Inc() }

// Phase observes how long a phase of a turn took.
func (m *Metrics) Phase(phase string, took time.Duration) {
	m.turnTime.WithLabelValues(phase).Observe(took.Seconds())
}

// Call counts a tool call; category "" is "ok".
func (m *Metrics) Call(tool, category string, took time.Duration) {
	if category == "" {
		category = "ok"
	}
	tool = m.names.of(tool)
	m.calls.WithLabelValues(tool, category).Inc()
	m.callTime.WithLabelValues(tool).Observe(took.Seconds())
}

// Approval counts a decision.
func (m *Metrics) Approval(decision string) { m.approvals.WithLabelValues(decision).Inc() }

// HookCall counts a call of a hook.
func (m *Metrics) HookCall(result string) { m.hookCalls.WithLabelValues(result).Inc() }

// Denied counts a refusal by a quota.
func (m *Metrics) Denied(scope string) { m.denied.WithLabelValues(scope).Inc() }

// Asked counts a request to a model; kind is that of its error, "" = it succeeded.
func (m *Metrics) Asked(provider, kind string) {
	if kind == "" {
		kind = "ok"
	}
	m.models.WithLabelValues(provider, kind).Inc()
}

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
func (m *Metrics) Retried(tool string) { m.retries.WithLabelValues(m.names.of(tool)).Inc() }

// Anomaly counts a tool that failed too often.
func (m *Metrics) Anomaly(tool, level string) {
	m.anomalies.WithLabelValues(m.names.of(tool), level).Inc()
}

// Committed observes how long a commit took.
func (m *Metrics) Committed(took time.Duration) { m.commits.Observe(took.Seconds()) }

// Swept counts a sweep of expired data.
func (m *Metrics) Swept(ok bool) {
	outcome := "ok"
	if !ok {
		outcome = "error"
	}
	m.sweeps.WithLabelValues(outcome).Inc()
}

// Spans counts spans by what became of them.
func (m *Metrics) Spans(outcome string, n int) {
	m.spans.WithLabelValues(outcome).Add(float64(n))
}

// Request counts a Bot API request.
func (m *Metrics) Request(method string, status int) {
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
}

// Throttled counts the delays that the Bot API requested.
func (m *Metrics) Throttled(wait time.Duration) { m.throttled.Add(wait.Seconds()) }
