package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestNoConversationIsDead: a server that refuses a history for a reason that nobody knows answers it as plain text. The
// person is told once, and the messages after it are not refused first.
func TestNoConversationIsDead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refused, answered := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if listed(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		text := string(body)
		if strings.Contains(text, `"role":"tool"`) {
			refused++
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"That is odd."}}`)
			return
		}
		answered++
		w.Header().Set("Content-Type", "text/event-stream")
		delta, finish := fmt.Sprintf(`"content":"Answer %d."`, answered), "stop"
		if answered == 1 {
			delta, finish = `"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"list_directory","arguments":"{\"path\":\".\""}}]`, "tool_calls"
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{%s}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, finish)
	}))
	t.Cleanup(server.Close)
	w := wireWith(t, zerolog.Nop(), time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC),
		fmt.Sprintf("[[llm.providers]]\nname = \"main\"\nbase_url = %q\nmodel = \"m\"\napi_key = \"k\"\nwire = \"chat\"\n", server.URL+"/v1"), "")
	w.say("look around")
	w.await("Answer 2.")
	w.await("refused this conversation")
	mu.Lock()
	before := refused
	mu.Unlock()
	if before == 0 || before > 4 {
		t.Errorf("%d requests were refused", before)
	}
	for i := range 2 {
		w.say("go on")
		w.await(fmt.Sprintf("Answer %d.", i+3))
	}
	mu.Lock()
	defer mu.Unlock()
	if refused != before {
		t.Errorf("%d more requests were refused", refused-before)
	}
	notices := 0
	for _, m := range w.fake.Chat(1001) {
		if strings.Contains(m.Text, "refused this conversation") {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("the person was told %d times", notices)
	}
}
