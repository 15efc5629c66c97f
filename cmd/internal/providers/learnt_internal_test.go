package providers

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestFenced: a conversation's model has no tools if the configuration, its server's dialect or what was learnt says so.
func TestFenced(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.LLM.Providers = []config.Provider{{Name: "main", Type: "openai", Model: "m", ToolUse: true}}
	c := New(Options{Config: &cfg, Log: zerolog.Nop(), Now: time.Now})
	if c.Fenced("main") {
		t.Error("fenced from the beginning")
	}
	c.Learnt.Update("main", "m", func(l *dialect.Learnt) { l.Omit = []string{"user"} })
	if c.Fenced("main") {
		t.Error("fenced without a field")
	}
	c.Learnt.Update("main", "m", func(l *dialect.Learnt) { l.Omit = append(l.Omit, learnt.AllTools) })
	if !c.Fenced("main") {
		t.Error("what was learnt is not seen")
	}
	cfg.LLM.Providers[0].Model = "n"
	if c.Fenced("main") {
		t.Error("another model is fenced too")
	}
	if cfg.LLM.Providers[0].ToolUse = false; !c.Fenced("main") {
		t.Error("the configuration is not seen")
	}
	if c.Fenced("gone") {
		t.Error("a provider that is not configured is fenced")
	}
}
