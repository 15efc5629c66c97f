package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	tests := []struct {
		name     string
		reply    reply
		kind     llm.Kind
		after    time.Duration
		streamed bool
		contains string
	}{
		{name: "wrong key, repeated by the server", reply: reply{status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + key + `.","code":"invalid_api_key"}}`}, kind: llm.Unauthorized, contains: "[redacted]"},
		{name: "forbidden", reply: reply{status: 403, body: "<html>no</html>"}, kind: llm.WrongAddress, contains: "gateway"},
		{name: "no credit", reply: reply{status: 402}, kind: llm.NoCredit, contains: "Payment Required"},
		{name: "quota used up", reply: reply{status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}, kind: llm.NoCredit},
		{name: "rate limit, seconds", reply: reply{status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"error":{"message":"slow down"}}`}, kind: llm.RateLimited, after: 7 * time.Second},
		{name: "rate limit, milliseconds first", reply: reply{status: 429, header: map[string]string{"Retry-After": "7", "Retry-After-Ms": "6500"}}, kind: llm.RateLimited, after: 6500 * time.Millisecond},
		{name: "rate limit, date", reply: reply{status: 429, header: map[string]string{"Retry-After": now.Add(90 * time.Second).Format(http.TimeFormat)}}, kind: llm.RateLimited, after: 90 * time.Second},
		{name: "rate limit, past date", reply: reply{status: 429, header: map[string]string{"Retry-After": now.Add(-time.Hour).Format(http.TimeFormat)}}, kind: llm.RateLimited},
		{name: "rate limit, nonsense", reply: reply{status: 429, header: map[string]string{"Retry-After": "1e300"}}, kind: llm.RateLimited, after: 24 * time.Hour},
		{name: "request larger than the limit", reply: reply{status: 429, body: `{"error":{"message":"Request too large for m","code":"rate_limit_exceeded"}}`}, kind: llm.TooLong},
		{name: "too long by code", reply: reply{status: 400, body: `{"error":{"message":"x","code":"context_length_exceeded"}}`}, kind: llm.TooLong},
		{name: "too long by sentence", reply: reply{status: 400, body: `{"object":"error","message":"This model's maximum context length is 4096 tokens."}`}, kind: llm.TooLong},
		{name: "too long by status", reply: reply{status: 413}, kind: llm.TooLong},
		{name: "invalid", reply: reply{status: 400, body: `{"error":"not today"}`}, kind: llm.Invalid, contains: "not today"},
		{name: "array as Gemini writes it", reply: reply{status: 400, body: `[{"error":{"code":400,"message":"bad field","status":"INVALID_ARGUMENT"}}]`}, kind: llm.Invalid, contains: "bad field"},
		{name: "detail as FastAPI writes it", reply: reply{status: 422, body: `{"detail":[{"msg":"missing"}]}`}, kind: llm.Invalid, contains: "missing"},
		{name: "no such model", reply: reply{status: 404, body: `{"error":{"message":"model not found"}}`}, kind: llm.UnknownModel},
		{name: "redirect", reply: reply{status: 307, header: map[string]string{"Location": "http://127.0.0.1:1/"}}, kind: llm.WrongAddress, contains: "redirects"},
		{name: "server error", reply: reply{status: 500, header: map[string]string{"Retry-After": "2"}}, kind: llm.Unavailable, after: 2 * time.Second},
		{name: "overloaded", reply: reply{status: 529, body: `{"error":{"type":"overloaded_error"}}`}, kind: llm.Unavailable},
		{name: "request timeout", reply: reply{status: 408}, kind: llm.Timeout},
		{name: "empty stream", reply: reply{}, kind: llm.Truncated},
		{name: "stream cut", reply: reply{body: sse(text("x")), abort: true}, kind: llm.Truncated, streamed: true},
		{name: "stream ends without a reason", reply: reply{body: sse(text("x"))}, kind: llm.Truncated, streamed: true, contains: "without a finish_reason"},
		{name: "nothing but an end", reply: reply{body: sse(`{"choices":[{"delta":{"role":"assistant"}}]}`, done)}, kind: llm.Truncated, contains: "without a finish_reason"},
		{name: "web page", reply: reply{header: map[string]string{"Content-Type": "text/html"}, body: "\n<!DOCTYPE html><html><title>Sign in</title></html>"}, kind: llm.WrongAddress, contains: "base_url"},
		{name: "no credit in a 200", reply: reply{body: `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`}, kind: llm.NoCredit, contains: "insufficient balance"},
		{name: "the network of the server", reply: reply{body: sse(text("x"), finish("network_error"))}, kind: llm.Unavailable, streamed: true},
		{name: "the resources of the server", reply: reply{body: sse(text("x"), finish("insufficient_system_resource"))}, kind: llm.Unavailable, streamed: true},
		{name: "the window is full before the answer", reply: reply{body: sse(finish("model_context_window_exceeded"), done)}, kind: llm.TooLong},
		{name: "error and finish reason error", reply: reply{body: sse(text("x"), `{"error":{"code":429,"message":"slow down"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`)}, kind: llm.RateLimited, streamed: true},
		{name: "error event, a JSON string", reply: reply{body: sse(text("x")) + "event: error\ndata: \"the model has crashed\"\n\n"}, kind: llm.Unavailable, streamed: true, contains: "the model has crashed"},
		{name: "cut within an event", reply: reply{body: sse(text("x")) + `data: {"choices":[{"del`}, kind: llm.Truncated, streamed: true},
		{name: "half an event", reply: reply{body: sse(text("x"), `{"choices":[{"delta":{"content":"lo`, finish("stop"))}, kind: llm.Truncated, streamed: true},
		{name: "event of another shape", reply: reply{body: sse(`{"choices":7}`)}, kind: llm.Truncated},
		{name: "tool calls announced, none sent", reply: reply{body: sse(finish("tool_calls"))}, kind: llm.Truncated},
		{name: "error event", reply: reply{body: sse(text("x")) + "event: error\ndata: {\"message\":\"overloaded " + key + "\"}\n\n"}, kind: llm.Unavailable, streamed: true, contains: "overloaded [redacted]"},
		{name: "error event in plain text", reply: reply{body: "event: error\ndata: out of memory\n\n"}, kind: llm.Unavailable, contains: "out of memory"},
		{name: "error in data", reply: reply{body: sse(text("x"), `{"error":{"message":"slow","type":"rate_limit_error"}}`)}, kind: llm.RateLimited, streamed: true},
		{name: "error with status in data", reply: reply{body: sse(`{"id":"1","error":{"message":"no credit","code":402}}`)}, kind: llm.NoCredit},
		{name: "error in a whole JSON answer", reply: reply{body: `{"error":{"message":"bad gateway","code":502}}`}, kind: llm.Unavailable},
		{name: "finish reason error", reply: reply{body: sse(text("x"), finish("error"))}, kind: llm.Unavailable, streamed: true},
		{name: "line without end", reply: reply{body: "data: " + strings.Repeat("x", 1<<10)}, kind: llm.Truncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.reply)
			p := provider(t, s, func(o *openai.Options) { o.Now = func() time.Time { return now } })
			_, err := p.Chat(t.Context(), hi(), func(string) {})
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("error = %v, want an llm.Error", err)
			}
			if e.Kind != tt.kind || e.RetryAfter != tt.after || e.Streamed != tt.streamed || e.Provider != "main" {
				t.Errorf("error = %+v, want kind %s, retry after %s, streamed %t", e, tt.kind, tt.after, tt.streamed)
			}
			if !strings.Contains(err.Error(), tt.contains) || strings.Contains(err.Error(), key) {
				t.Errorf("error text = %q, want %q and no key", err, tt.contains)
			}
			s.request(t) // no retries
		})
	}
}

func TestRefusedForItsContent(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{status: 400, body: `{"error":{"message":"filtered","code":"content_filter"}}`})
	res, err := provider(t, s, nil).Chat(t.Context(), hi(), nil)
	if err != nil || res.Stop != llm.StopRefusal || res.Provider != "main" {
		t.Errorf("answer = %+v, %v, want a refusal", res, err)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{})
	p := provider(t, s, nil)
	s.Close()
	_, err := p.Chat(t.Context(), hi(), nil)
	if llm.KindOf(err) != llm.Unavailable || strings.Contains(err.Error(), key) {
		t.Errorf("error = %v, want unavailable", err)
	}
}

// piped answers with a body that the test writes.
type piped struct{ body io.ReadCloser }

func (p piped) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.body == nil { // silent before the first byte
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	context.AfterFunc(req.Context(), func() { _ = p.body.Close() })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: p.body, Request: req}, nil
}

func pipedProvider(t *testing.T, body io.ReadCloser) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		Name: "main", BaseURL: "http://model.invalid/v1", Model: "m", Idle: time.Minute, HTTPClient: &http.Client{Transport: piped{body}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSilence(t *testing.T) {
	t.Parallel()
	t.Run("before the answer", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, err := pipedProvider(t, nil).Chat(t.Context(), hi(), nil)
			if llm.KindOf(err) != llm.Timeout || errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want timeout", err)
			}
		})
	})
	t.Run("within the answer", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() {
				for range 3 { // slow, but each within the limit; then silent
					<-time.After(50 * time.Second)
					_, _ = io.WriteString(w, sse(text("x")))
				}
			})
			var e *llm.Error
			_, err := pipedProvider(t, r).Chat(t.Context(), hi(), func(string) { <-time.After(2 * time.Minute) })
			if !errors.As(err, &e) || e.Kind != llm.Timeout || !e.Streamed {
				t.Errorf("error = %v, want timeout after text", err)
			}
		})
	})
	t.Run("the caller goes away", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := pipedProvider(t, nil).Chat(ctx, hi(), nil)
			if !errors.Is(err, context.DeadlineExceeded) || llm.KindOf(err) != llm.Timeout {
				t.Errorf("error = %v, want the caller's deadline", err)
			}
			if !errors.Is(err, llm.ErrUnderWay) {
				t.Errorf("error = %v, and the server had the request", err)
			}
			if _, err = pipedProvider(t, nil).Chat(ctx, hi(), nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, llm.ErrUnderWay) {
				t.Errorf("error = %v of a call that never left", err)
			}
		})
	})
}

// endless writes one event that never ends.
type endless struct{ started bool }

func (e *endless) Read(p []byte) (int, error) {
	if !e.started {
		e.started = true
		return copy(p, "data: "), nil
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestEndlessEvent(t *testing.T) {
	t.Parallel()
	_, err := pipedProvider(t, &endless{}).Chat(t.Context(), hi(), nil)
	if llm.KindOf(err) != llm.Oversize || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error = %v, want too large", err)
	}
}

func TestKeyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	o := openai.Options{Key: key}
	data, err := json.Marshal(map[string]any{"key": o.Key})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x %X %d", o, o, o, o.Key, o.Key, o.Key, o.Key, o.Key), o.Key.String(), string(data),
	} {
		if strings.Contains(got, "secret") || strings.Contains(strings.ToLower(got), "736b2d") || !strings.Contains(got, "[redacted]") {
			t.Errorf("printed: %s", got)
		}
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		o    openai.Options
		want string
	}{
		{openai.Options{Model: "m"}, "name is empty"},
		{openai.Options{Name: "a"}, "none of model, embedding_model, transcription_model, speech_model and image_model"},
		{openai.Options{Name: "a", Model: "m", BaseURL: "localhost:1"}, "base_url must look like"},
		{openai.Options{Name: "a", Model: "m", BaseURL: "https://u:secret@h/v1"}, "base_url must look like"},
		{openai.Options{Name: "a", Model: "m", MaxTokens: -1}, "must not be negative"},
		{openai.Options{Name: "a", Model: "m", Key: "a\nb"}, "line break"},
		{openai.Options{Name: "a", Model: "m", Wire: "grpc"}, `wire is "grpc"; it must be auto, chat or responses`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}
