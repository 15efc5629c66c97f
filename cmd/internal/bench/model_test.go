//go:build unix

package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mirror speaks the OpenAI wire and returns every message after some time. It represents another machine, so it uses as
// little of this one's processor as possible: it reads the messages of a request, which come first, and skips its
// tools.
func mirror(tb testing.TB, latency time.Duration) string {
	tb.Helper()
	return mirrorOf(tb, latency, func(string) {})
}

// weigher is a mirror that counts the bytes of the requests that it gets.
type weigher struct{ bytes, requests atomic.Int64 }

// begin returns the address of the mirror.
func (g *weigher) begin(tb testing.TB) string {
	tb.Helper()
	inner, err := url.Parse(mirror(tb, 0))
	if err != nil {
		tb.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(inner)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.bytes.Add(r.ContentLength)
		g.requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

// mirrorOf is a mirror that reports each message when it is asked about it.
func mirrorOf(tb testing.TB, latency time.Duration, asked func(text string)) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := lastContent(r.Body)
		answer, _ := json.Marshal(mirrored(text)) // a string can always be encoded
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked(text)
		wait(r.Context(), latency)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", answer)
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

// requests are buffers for lastContent.
var requests = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// lastContent returns the text of the last message of a request.
func lastContent(body io.Reader) (text string, err error) {
	data := requests.Get().(*bytes.Buffer)
	defer requests.Put(data)
	data.Reset()
	if _, err := data.ReadFrom(body); err != nil {
		return "", err
	}
	_, rest, ok := bytes.Cut(data.Bytes(), []byte(`"messages":`))
	if !ok {
		return "", errors.New("a request without messages")
	}
	var messages []struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&messages); err != nil {
		return "", err
	}
	if len(messages) == 0 {
		return "", errors.New("a request with an empty list of messages")
	}
	err = json.Unmarshal(messages[len(messages)-1].Content, &text)
	return text, err
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
