//go:build unix

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// mirror speaks the OpenAI wire and gives every message itself, after some time.
func mirror(tb testing.TB, latency time.Duration) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		var text string
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err == nil {
			err = json.Unmarshal(asked.Messages[len(asked.Messages)-1].Content, &text)
		}
		answer, _ := json.Marshal(mirrored(text)) // a string can always be written
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		wait(r.Context(), latency)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", answer)
	}))
	tb.Cleanup(server.Close)
	return server.URL
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
