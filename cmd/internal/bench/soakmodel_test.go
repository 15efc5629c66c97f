//go:build unix

package bench_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// soakMessage is a message of a person.
var soakMessage = regexp.MustCompile(`message \d+ of \d+( with \w+)?`)

// soakModel speaks the OpenAI wire: for a message that ends in "with NAME" it first calls the tool NAME, and it finally
// returns every message.
func soakModel(tb testing.TB) *httptest.Server {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
			http.Error(w, "a request without messages", http.StatusBadRequest)
			return
		}
		said, last := "", body.Messages[len(body.Messages)-1].Role
		for _, m := range body.Messages {
			// the service surrounds it with text of its own
			if found := soakMessage.Find(m.Content); m.Role == "user" && found != nil {
				said = string(found)
			}
		}
		delta := map[string]any{"content": mirrored(said)}
		finish := "stop"
		if _, tool, ok := strings.Cut(said, " with "); ok && last == "user" {
			call := map[string]any{"index": 0, "id": "c1", "type": "function", "function": map[string]any{"name": tool, "arguments": `{"text":"hello"}`}}
			delta, finish = map[string]any{"tool_calls": []any{call}}, "tool_calls"
		}
		frame, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", frame) // no answer is needed if the client has gone
	}))
	tb.Cleanup(server.Close)
	return server
}
