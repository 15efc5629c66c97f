//go:build unix

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
)

// modelServer speaks the OpenAI wire for a scripted model, which thus survives the bot.
type modelServer struct {
	*httptest.Server
	script *llmtest.Model
	// before the script is asked, during the answer, and after it but before its end
	hook func(ctx context.Context, what, phase string)
	// tokens of all answers, those included that nobody waited for any more
	answered atomic.Int64
	made     atomic.Int64 // recordings and pictures, which are paid
}

func newModelServer(script *llmtest.Model, hook func(ctx context.Context, what, phase string)) *modelServer {
	m := &modelServer{script: script, hook: hook}
	m.Server = httptest.NewServer(m)
	return m
}

// ServeHTTP implements http.Handler.
func (m *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if what, answer := mediaOf(r); what != "" {
		m.makeMedia(w, r, what, answer)
		return
	}
	var body ledgertest.Body
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.hook(r.Context(), model, before)
	answer, err := m.script.Chat(r.Context(), body.Request(), nil)
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err.Error()), http.StatusBadRequest)
		return
	}
	m.answered.Add(int64(answer.Usage.Total()))
	w.Header().Set("Content-Type", "text/event-stream")
	pieces := ledgertest.Frames(answer)
	for i, f := range pieces {
		if i == len(pieces)-1 {
			m.hook(r.Context(), model, after)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", f) // if the client has gone, the request's context ends
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		if i == 0 {
			m.hook(r.Context(), model, during)
		}
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
