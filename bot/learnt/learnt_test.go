package learnt_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/learnt"
)

// TestMemory: what one process learns, the others know after the next Follow, and a restart too; not with another key,
// and not after a week.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, server := bottest.New(), "one"
		process := func() *learnt.Memory {
			m := learnt.New(learnt.Deps{Server: func(string) string { return server }, Now: time.Now, Log: zerolog.Nop()})
			m.Update("early", "m", func(l *dialect.Learnt) { l.Window = 1 })
			m.Open(store)
			if err := m.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			return m
		}
		first, second := process(), process()
		ctx, stop := context.WithCancel(t.Context())
		told := ""
		go func() {
			_ = first.Run(ctx, func(_ context.Context, provider, model string, a dialect.Aside) {
				told += provider + " " + model + " " + a.Tool + " " + a.Reason + "\n"
			})
		}()
		for range 2 {
			first.Update("main", "m", func(l *dialect.Learnt) {
				l.Omit = []string{learnt.AllTools}
				l.Aside = []dialect.Aside{{Tool: "mcp:x", Schema: "1", Reason: "bad"}}
			})
		}
		first.LearnWindow("main", "m", 8192)
		synctest.Wait()
		stop()
		if told != "main m mcp:x bad\nmain m * \n" {
			t.Errorf("told:\n%s", told)
		}
		if second.Recall("main", "m") != nil {
			t.Error("known before it was read")
		}
		if err := second.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		third := process()
		for _, m := range []*learnt.Memory{second, third} {
			l := m.Recall("main", "m")
			if l == nil || l.Window != 8192 || len(l.Aside) != 1 || len(m.Aside([][2]string{{"main", "m"}, {"other", "m"}})) != 2 {
				t.Fatalf("%+v", l)
			}
			if text := learnt.Describe(l); !strings.Contains(text, "mcp:x (bad)") || !strings.Contains(text, "no tools") || !strings.Contains(text, "8192") {
				t.Error(text)
			}
		}
		same := second.Recall("main", "m")
		if err := second.Follow(t.Context()); err != nil || second.Recall("main", "m") != same {
			t.Errorf("read again: %v", err)
		}
		server = "two"
		if process().Recall("main", "m") != nil {
			t.Error("another key has the same memory")
		}
		server = "one"
		<-time.After(dialect.Forgotten + time.Hour)
		if process().Recall("main", "m") != nil || third.Recall("main", "m") != nil {
			t.Error("it is known after a week")
		}
	})
}
