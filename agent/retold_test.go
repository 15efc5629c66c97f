package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// answers gives with one response after the other and keeps the requests.
type answers struct {
	list  []llm.Response
	asked []llm.Request
}

func (s *answers) Name() string { return "script" }

func (s *answers) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	s.asked = append(s.asked, *req)
	res := s.list[0]
	s.list = s.list[1:]
	return &res, nil
}

// TestWhatAServerWantsBack: opaque data of a step and of an answer is journalled, and goes with its message into every
// later request, also of another process; the model's own id of a call stays with it.
func TestWhatAServerWantsBack(t *testing.T) {
	t.Parallel()
	step, last := json.RawMessage(`{"host":"h","fields":{"reasoning_content":""}}`), json.RawMessage(`{"host":"h"}`)
	w := newWorld(t, llmtest.New(), "")
	w.shelf.entries = nil
	s := &answers{list: []llm.Response{
		{Stop: llm.StopTools, Extra: step, Uses: []llm.ToolUse{{ID: "functions.count:0", Name: "count", Args: json.RawMessage(`{"n":"1"}`)}}},
		{Text: "Done.", Stop: llm.StopEnd, Extra: last},
		{Text: "Again.", Stop: llm.StopEnd, Extra: json.RawMessage(strings.Repeat("1", journal.MaxExtra+1))},
		{Text: "And again.", Stop: llm.StopEnd},
	}}
	w.deps.Provider = s
	for i, text := range []string{"one", "two", "three"} {
		if out := w.say("turn-"+string('a'+rune(i)), text); out.Kind != agent.Answered {
			t.Fatalf("%+v", out)
		}
	}
	list := s.asked[len(s.asked)-1].Messages
	var extras []string
	for _, m := range list {
		if m.Role == llm.Assistant {
			extras = append(extras, string(m.Extra))
		}
	}
	if len(extras) != 3 || extras[0] != string(step) || extras[1] != string(last) || extras[2] != "" {
		t.Errorf("sent back: %q", extras)
	}
	if u := list[1].Uses[0]; u.Own != "functions.count:0" || u.ID != list[2].Result.ID {
		t.Errorf("call %+v with result %+v", u, list[2].Result)
	}
}

// TestRetold: what a server took as plain text only is plain text from then on, what follows is not.
func TestRetold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.New(), "")
	w.shelf.entries = nil
	call := func(id string) llm.Response {
		return llm.Response{Stop: llm.StopTools, Uses: []llm.ToolUse{{ID: id, Name: "count", Args: json.RawMessage(`{"n":"1"}`)}}}
	}
	retold := call("b")
	retold.Retold = true
	s := &answers{list: []llm.Response{call("a"), {Text: "Done.", Stop: llm.StopEnd}, retold, {Text: "Done.", Stop: llm.StopEnd}, {Text: "Yes.", Stop: llm.StopEnd}}}
	w.deps.Provider = s
	for i, want := range []bool{false, true, false} {
		if out := w.say("turn-"+string('a'+rune(i)), "go"); out.Kind != agent.Answered || out.Retold != want {
			t.Fatalf("turn %d: %+v", i, out)
		}
	}
	var shape []string
	for _, m := range s.asked[len(s.asked)-1].Messages {
		word := string(m.Role)
		if len(m.Uses) > 0 {
			word += "+call"
		}
		if strings.Contains(m.Text, "[tool_result ") {
			word += "+told"
		}
		shape = append(shape, word)
	}
	if got := strings.Join(shape, " "); got != "user+told assistant user assistant+call tool assistant user" {
		t.Errorf("messages: %s", got)
	}
	before := s.asked[3].Messages
	for i := range before {
		a, _ := json.Marshal(before[i])
		if b, _ := json.Marshal(s.asked[4].Messages[i]); string(a) != string(b) {
			t.Errorf("message %d became %s, it was %s", i, b, a)
		}
	}
}
