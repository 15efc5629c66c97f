package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/window"
)

// small is a provider with a window: it refuses what does not fit, as vendors do.
type small struct {
	*llmtest.Model
	tokens int
	says   bool
}

func (s small) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if n := window.Fixed(req) + window.Messages(req.Messages); n > s.tokens {
		e := &llm.Error{Kind: llm.TooLong, Provider: s.Name(), Err: fmt.Errorf("%d tokens > %d maximum", n, s.tokens)}
		if s.says {
			e.Window = s.tokens
		}
		return nil, e
	}
	return s.Model.Chat(ctx, req, onDelta)
}

// TestSmallerFallback: a long conversation is answered by a fallback with a smaller window, whether that is configured
// or found out, and what it is sent is whole.
func TestSmallerFallback(t *testing.T) {
	t.Parallel()
	for _, configured := range []bool{true, false} {
		main := llmtest.Named("main").On("", llmtest.Step{Err: &llm.Error{Kind: llm.Unauthorized, Err: errors.New("down")}})
		back := small{Model: llmtest.Named("back").On("", llmtest.Step{Text: "Done"}), tokens: 8000, says: true}
		o := route.Options{}
		if configured {
			o.Windows = map[string]int{"back": 8000}
		}
		router, err := route.New([]llm.Provider{main, back}, "main", []string{"back"}, o)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, router, "")
		w.shelf.entries = nil
		for i := range 60 { // about 50 000 tokens
			w.shelf.keep(
				journal.Entry{Turn: fmt.Sprint(i), Kind: journal.UserEntry, Text: fmt.Sprintf("question %d ", i) + strings.Repeat("q", 500)},
				journal.Entry{Turn: fmt.Sprint(i), Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: fmt.Sprint("c", i), Name: "echo", Args: []byte(`{}`)}}},
				journal.Entry{Turn: fmt.Sprint(i), Kind: journal.ResultEntry, Call: fmt.Sprint("c", i), Tool: "echo", Text: strings.Repeat("r", 2000)},
				journal.Entry{Turn: fmt.Sprint(i), Kind: journal.AnswerEntry, Text: "answer"},
			)
		}
		if out := w.say("turn-1", "the newest"); out.Kind != agent.Answered || out.Text != "Done" {
			t.Fatalf("configured %t: %+v", configured, out)
		}
		wellFormed(t, back.Requests())
		for _, r := range back.Requests() {
			if last := r.Messages[len(r.Messages)-1]; last.Text != "the newest" || r.Messages[0].Role != llm.User || len(r.Messages) < 10 {
				t.Errorf("configured %t: %d messages, the last is %q", configured, len(r.Messages), last.Text)
			}
		}
	}
}

// TestTooLongIsLearnt: a model that finds a conversation too long answers a shorter one in the same turn, and the next
// turn is made for its window.
func TestTooLongIsLearnt(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{true, false} {
		model := small{Model: llmtest.Named("main").On("", llmtest.Step{Text: "Done"}), tokens: 3000, says: says}
		router, err := route.New([]llm.Provider{model}, "main", nil, route.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, _, s := spoken(t, 50)
		w.deps.Provider, w.limits.ContextTokens = router, 9000
		if out := w.say("turn-1", "go"); out.Kind != agent.Answered {
			t.Fatalf("says %t: %+v", says, out)
		}
		if out := w.say("turn-2", "go on"); out.Kind != agent.Answered || len(s.talks) != 1 {
			t.Errorf("says %t: %+v after %d summaries", says, out, len(s.talks))
		}
		wellFormed(t, model.Requests())
	}
}
