// Package tracetest is a collector of OpenTelemetry traces for tests: it takes OTLP over HTTP and keeps everything.
package tracetest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was exported.
type Span struct {
	Name             string
	Trace, ID, Above string // ids in hex; Above "" = it is a root
	Failed           bool
	From, To         time.Time
	Attributes       map[string]string
}

// Collector is the handler of a collector. Its zero value is ready. Safe for concurrent use.
type Collector struct {
	Refuse bool // answers 503; set before it serves

	mu      sync.Mutex
	spans   []Span
	raw     []byte
	headers []http.Header
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.Refuse {
		http.Error(w, "no room", http.StatusServiceUnavailable)
		return
	}
	body, err := read(r)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	c.headers = append(c.headers, r.Header.Clone())
	for _, resource := range req.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}

func spanOf(s *otlp.Span) Span {
	out := Span{
		Name:       s.GetName(),
		Trace:      hex.EncodeToString(s.GetTraceId()),
		ID:         hex.EncodeToString(s.GetSpanId()),
		Above:      hex.EncodeToString(s.GetParentSpanId()),
		Failed:     s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR,
		From:       instant(s.GetStartTimeUnixNano()),
		To:         instant(s.GetEndTimeUnixNano()),
		Attributes: map[string]string{},
	}
	for _, a := range s.GetAttributes() {
		value := a.GetValue()
		out.Attributes[a.GetKey()] = value.GetStringValue()
		if text := value.String(); value.GetStringValue() == "" {
			out.Attributes[a.GetKey()] = text
		}
	}
	return out
}

func instant(ns uint64) time.Time {
	return time.Unix(0, int64(ns)) //nolint:gosec // no span ends after 2262
}

// Spans returns what came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Raw returns the bodies that came so far, and the headers of the requests.
func (c *Collector) Raw() (bodies []byte, headers []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.raw...), append([]http.Header(nil), c.headers...)
}
