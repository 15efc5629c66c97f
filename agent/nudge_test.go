package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// TestAskedOnceMore: an answer that is none is asked for once more; what the model is told for that does not stay.
func TestAskedOnceMore(t *testing.T) {
	t.Parallel()
	call := llmtest.Step{Uses: []llm.ToolUse{{Name: "echo", Args: []byte(`{"text":"a"}`)}}}
	for name, tt := range map[string]struct {
		steps  []llmtest.Step
		text   string
		reason string
		kinds  string
		calls  int
		told   string
	}{
		"empty, then an answer": {
			[]llmtest.Step{{USD: 1, Usage: llm.Usage{Input: 5}}, {Text: "Hi", USD: 2, Usage: llm.Usage{Input: 7}}}, "Hi", "", "user answer", 2, "was empty",
		},
		"empty after a result": {
			[]llmtest.Step{call, {USD: 1, Usage: llm.Usage{Input: 5}}, {Text: "Hi", USD: 2, Usage: llm.Usage{Input: 7}}}, "Hi", "", "user assistant result answer", 3, "was empty",
		},
		"only thoughts": {
			[]llmtest.Step{{Thoughts: "hm", Text: "\n", USD: 1, Usage: llm.Usage{Input: 5}}, {Text: "Hi", USD: 2, Usage: llm.Usage{Input: 7}}}, "Hi", "", "user answer", 2, "was empty",
		},
		"empty twice": {
			[]llmtest.Step{{USD: 1, Usage: llm.Usage{Input: 5}}, {USD: 2, Usage: llm.Usage{Input: 7}}}, "", journal.ReasonEmpty, "user end", 2, "was empty",
		},
		"a call in the text": {
			[]llmtest.Step{{Text: "<tool_call>x", Unmade: true, USD: 1, Usage: llm.Usage{Input: 5}}, {Text: "Hi", USD: 2, Usage: llm.Usage{Input: 7}}}, "Hi", "", "user answer", 2, "could not be run",
		},
		"a call in the text twice": { // it seems to be meant for the person
			[]llmtest.Step{{Text: "<tool_call>x", Unmade: true, USD: 1, Usage: llm.Usage{Input: 5}}, {Text: "<tool_call>y", Unmade: true, USD: 2, Usage: llm.Usage{Input: 7}}}, "<tool_call>y", "", "user answer", 2, "could not be run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.New(tt.steps...)
			w := newWorld(t, m, "go")
			out := w.must(t.Context())
			if out.Text != tt.text || out.Reason != tt.reason || len(m.Requests()) != tt.calls || w.kinds() != tt.kinds {
				t.Fatalf("outcome %+v after %d calls, journal %s", out, len(m.Requests()), w.kinds())
			}
			if e := out.Entries[0]; e.USD != 3 || e.Usage.Input != 12 {
				t.Errorf("what was spent is lost: %+v", e)
			}
			last := m.Requests()[tt.calls-1].Messages
			if text := last[len(last)-1].Text; !strings.Contains(text, tt.told) {
				t.Errorf("the model was told %q", text)
			}
			for _, e := range append(w.shelf.all(), out.Entries...) {
				if strings.Contains(e.Text, "not from the person") {
					t.Errorf("the note stays in the journal: %+v", e)
				}
			}
		})
	}
}

// TestAskedOnceMoreAndTools: a model that calls a tool only when asked again goes on with its result.
func TestAskedOnceMoreAndTools(t *testing.T) {
	t.Parallel()
	m := llmtest.New(llmtest.Step{}, llmtest.Step{Uses: []llm.ToolUse{{Name: "echo", Args: []byte(`{"text":"a"}`)}}}, llmtest.Step{Text: "Hi"})
	w := newWorld(t, m, "go")
	if out := w.must(t.Context()); out.Text != "Hi" || w.kinds() != "user assistant result answer" {
		t.Errorf("outcome %+v, journal %s", out, w.kinds())
	}
	if messages := m.Requests()[2].Messages; len(messages) != 3 {
		t.Errorf("the note stays in the conversation: %+v", messages)
	}
}

// TestThoughtsAreJournalled: thoughts are events and kept with their entry; no model reads them again as an answer.
func TestThoughtsAreJournalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("hm ä ", 10_000)
	m := llmtest.New(
		llmtest.Step{Thoughts: "first", Uses: []llm.ToolUse{{Name: "echo", Args: []byte(`{"text":"a"}`)}}},
		llmtest.Step{Thoughts: long, Text: "Hi"})
	w := newWorld(t, m, "go")
	out := w.must(t.Context())
	kept := out.Entries[0].Thoughts
	if out.Text != "Hi" || w.shelf.all()[1].Thoughts != "first" || len(kept) > 16<<10 || len(kept) < 15<<10 || !strings.HasPrefix(kept, "hm ä") || !strings.HasSuffix(kept, "hm ä ") {
		t.Errorf("outcome %+v, journal %+v", out, w.shelf.all())
	}
	var thoughts []agent.EventType
	for _, e := range w.watch.types() {
		if e == agent.ThoughtEvent {
			thoughts = append(thoughts, e)
		}
	}
	if diff := cmp.Diff([]agent.EventType{agent.ThoughtEvent, agent.ThoughtEvent}, thoughts); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, message := range m.Requests()[1].Messages {
		if strings.Contains(message.Text, "first") {
			t.Errorf("the model reads its thoughts as %+v", message)
		}
	}
}
