package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
)

// tastes is a server of embeddings that knows two things: drinks, and the rest.
func tastes(t *testing.T, embedded *atomic.Int64) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type vector struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []vector
		for i, text := range req.Input {
			v := []float32{0, 1}
			if strings.Contains(text, "espresso") || strings.Contains(text, "drink") {
				v = []float32{1, 0}
			}
			data = append(data, vector{i, v})
		}
		embedded.Add(int64(len(data)))
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"data": data, "usage": map[string]int{"prompt_tokens": len(data), "total_tokens": len(data)}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestMemoriesByMeaning: a person is reminded of what fits without sharing a word with it, and what is remembered is
// embedded once.
func TestMemoriesByMeaning(t *testing.T) {
	t.Parallel()
	var embedded atomic.Int64
	url, dir := tastes(t, &embedded), t.TempDir()
	for name, want := range map[string]bool{"true": true, "false": false} {
		t.Run("semantic "+name, func(t *testing.T) {
			c := withEmbeddings(t, url, dir+"/"+name, name)
			var save tools.Tool
			list, err := c.memory.Tools()
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list {
				if tool.Definition.Name == "memory_save" {
					save = tool
				}
			}
			ctx := cost.WithPayer(t.Context(), cost.Unlimited{})
			for id, text := range map[string]string{"1": "Ann likes espresso.", "2": "The build runs on Fridays."} {
				args, err := json.Marshal(map[string]string{"content": text})
				if err != nil {
					t.Fatal(err)
				}
				call := &tools.Call{ID: id, Tool: "memory_save", Args: args, Trail: &tools.Trail{}, Origin: tools.Origin{
					Channel: telegram.Name, Turn: id, Session: "telegram/1/bot/42/0/0", Chat: "telegram/1/bot/42", Caller: "telegram:42", Private: true,
				}}
				if _, err := save.Run(ctx, call); err != nil {
					t.Fatal(err)
				}
			}
			msg := &bot.Message{Place: bot.Place{Channel: telegram.Name, Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}, Caller: "telegram:42", Text: "Suggest something to drink"}
			for range 2 {
				got, _ := c.memory.Recall(ctx, &turn.Reminder{Message: msg})
				if found := got != nil && strings.Contains(got.Text, "espresso"); found != want || found && strings.Contains(got.Text, "Fridays") {
					t.Errorf("reminded of %+v", got)
				}
			}
		})
	}
	// two memories, each compared when it was saved, and the question, from the cache the second time
	if n := embedded.Load(); n == 0 || n > 4 {
		t.Errorf("%d texts were embedded", n)
	}
}

// withEmbeddings is a process that computes embeddings.
func withEmbeddings(t *testing.T, url, dir, semantic string) *Core {
	t.Helper()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{
		"ZEPH_DATA_DIR=" + dir, "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + url, "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_EMBEDDING_MODEL=e",
		"ZEPH_LLM_PROVIDERS_MAIN_API_KEY=k", "ZEPH_LLM_EMBEDDING=main", "ZEPH_MEMORY_SEMANTIC=" + semantic,
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCore(t.Context(), Options{Config: cfg, Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
