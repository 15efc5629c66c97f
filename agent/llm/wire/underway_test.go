package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// hang lets a request wait until its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a server notices a client that goes once the body is read
	<-r.Context().Done()
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut ends the connection after it has written what comes before the end of an answer.
func cut(status int, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if status != 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Length", "1000000")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// TestUnknownEnds: an attempt may have cost something if the server had its request, and neither refused it nor said that
// it failed. Each way to fail, for both adapters.
func TestUnknownEnds(t *testing.T) {
	t.Parallel()
	const half = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n"
	for name, tt := range map[string]struct {
		serve http.HandlerFunc // nil = nothing listens
		cost  bool
	}{
		"nothing listens":                {nil, false},
		"cut before the answer":          {cut(0, ""), true},
		"cut in the answer":              {cut(http.StatusOK, half), true},
		"silence":                        {hang, true},
		"refused":                        {answer(http.StatusBadRequest, `{"error":{"message":"no"}}`), false},
		"too many requests":              {answer(http.StatusTooManyRequests, `{"error":{"message":"slower"}}`), false},
		"out of order":                   {answer(http.StatusInternalServerError, `{"error":{"message":"oops"}}`), false},
		"no server behind the gateway":   {answer(http.StatusBadGateway, "bad gateway"), false},
		"the gateway stopped waiting":    {answer(http.StatusGatewayTimeout, "timeout"), true},
		"Cloudflare stopped waiting":     {answer(524, "a timeout occurred"), true},
		"the server says that it failed": {answer(http.StatusOK, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), false},
		"nothing at all":                 {answer(http.StatusOK, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "http://" + closedAddress(t)
			if tt.serve != nil {
				s := httptest.NewServer(tt.serve)
				t.Cleanup(s.Close)
				url = s.URL
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			const idle = 200 * time.Millisecond
			first, err := openai.New(openai.Options{Name: "main", BaseURL: url + "/v1/", Model: "m", Idle: idle, HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			second, err := anthropic.New(anthropic.Options{Name: "main", BaseURL: url + "/v1", Key: "k", Model: "m", Idle: idle, HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			for vendor, p := range map[string]llm.Provider{"openai": first, "anthropic": second} {
				_, err := p.Chat(t.Context(), &llm.Request{MaxTokens: 9, Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}, func(string) {})
				if err == nil || llm.MayHaveCost(err) != tt.cost {
					t.Errorf("%s: may have cost something: %t, want %t: %v", vendor, llm.MayHaveCost(err), tt.cost, err)
				}
			}
		})
	}
}

// closedAddress returns an address at which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	var c net.ListenConfig
	l, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestGivenUpBeforeItLeft: a call that is given up while it waits for a connection has cost nothing.
func TestGivenUpBeforeItLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	p, err := openai.New(openai.Options{Name: "main", BaseURL: "http://model.test/v1/", Model: "m", HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Chat(ctx, &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}, nil)
	if !errors.Is(err, context.Canceled) || llm.MayHaveCost(err) {
		t.Errorf("error %v, may have cost something: %t", err, llm.MayHaveCost(err))
	}
}
