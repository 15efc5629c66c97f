package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

func user(text string) llm.Message { return llm.Message{Role: llm.User, Text: text} }

func result(text string) llm.Message {
	return llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "x", Text: text}}
}

func ask(messages ...llm.Message) *llm.Request { return &llm.Request{Messages: messages} }

// talk plays a conversation until the model calls no more tools; every tool answers "ok". It returns what the model
// did.
func talk(t *testing.T, m *llmtest.Model, text string) []string {
	t.Helper()
	var log []string
	req := ask(user(text))
	for {
		res, err := m.Chat(t.Context(), req, func(d string) { log = append(log, "delta "+d) })
		if err != nil {
			return append(log, "error "+string(llm.KindOf(err)))
		}
		for _, u := range res.Uses {
			log = append(log, fmt.Sprintf("use %s %s", u.Name, u.Args))
		}
		if res.Stop != llm.StopTools {
			return append(log, string(res.Stop))
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: res.Text, Uses: res.Uses})
		for _, u := range res.Uses {
			req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: u.ID, Name: u.Name, Text: "ok"}})
		}
	}
}

func TestOrderedSteps(t *testing.T) {
	t.Parallel()
	m := llmtest.New(
		llmtest.Step{ExpectText: "hel", Text: "one", Usage: llm.Usage{Input: 3, Output: 1}, USD: 0.5},
		llmtest.Step{Expect: regexp.MustCompile(`^r\d$`), Deltas: []string{"t", "wo"}},
		llmtest.Step{Expect: regexp.MustCompile(`never`), Text: "x"},
		llmtest.Step{Text: "a", Deltas: []string{"b"}},
	)
	var deltas []string
	res, err := m.Chat(t.Context(), ask(user("hello")), func(d string) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	want := &llm.Response{Text: "one", Stop: llm.StopEnd, Usage: llm.Usage{Input: 3, Output: 1}, USD: 0.5, Provider: "scripted", Model: "scripted"}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"step 2: two", "step 3: x", "step 4: ab"}, m.Unused()); diff != "" {
		t.Errorf("Unused (-want +got):\n%s", diff)
	}
	if _, err := m.Chat(t.Context(), ask(user("hello"), result("r2")), func(d string) { deltas = append(deltas, d) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "t", "wo"}, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"hello" does not match "never"`, "Text \"a\" is not the sum of Deltas", "4 ordered steps are used up"} {
		_, err := m.Chat(t.Context(), ask(user("hello")), nil)
		if llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
	if got := len(m.Requests()); got != 5 {
		t.Errorf("%d requests recorded, want 5", got)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, text string
		want               []string
	}{
		{"say", `on "hello": say Hi there`, "oh hello you", []string{"delta Hi there", "end"}},
		{"first rule wins", "on \"a\": say 1\non \"ab\": say 2", "ab", []string{"delta 1", "end"}},
		{"catch all", "on \"a\": say 1\non \"\": say rest", "xyz", []string{"delta rest", "end"}},
		{"words", `on "": say* one two  three`, "x", []string{"delta one ", "delta two  ", "delta three", "end"}},
		{"quoted", `on "": say "two\nlines"`, "x", []string{"delta two\nlines", "end"}},
		{"here text", "on \"\": say <<END\n# not a comment\n\n  text\nEND\n# a comment", "x", []string{"delta # not a comment\n\n  text", "end"}},
		{
			"tools", "on \"save\": call bash {\"command\": \"touch it\"}\nthen expect \"ok\"\nand say Done", "save it",
			[]string{`use bash {"command": "touch it"}`, "delta Done", "end"},
		},
		{
			"several uses", "on \"\": say Look.\nand call* read {\"path\":\"a\"} list_tasks {} read {\"path\":\"b\"}\nthen call list_tasks\nthen say Done", "x",
			[]string{"delta Look.", `use read {"path":"a"}`, "use list_tasks {}", `use read {"path":"b"}`, "use list_tasks {}", "delta Done", "end"},
		},
		{"malformed arguments", "on \"\": callraw bash {\"command\nthen say ok", "x", []string{`use bash {"command`, "delta ok", "end"}},
		{"cut", "on \"\": say Half\nand stop length", "x", []string{"delta Half", "length"}},
		{"failure", `on "x": fail unavailable`, "x", []string{"error unavailable"}},
		{"ordered", "say one", "x", []string{"delta one", "end"}},
		{"rules before ordered", "say one\non \"x\": say two", "x", []string{"delta two", "end"}},
		{"rule used up", `on "": call bash {}`, "x", []string{"use bash {}", "error invalid"}},
		{"unexpected", "on \"\": call bash {}\nthen expect \"nope\"", "x", []string{"use bash {}", "error invalid"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := llmtest.Parse(tt.script)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, talk(t, m, tt.text)); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailuresThenAnswer(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse("on \"x\": fail rate_limited 5s\nthen fail timeout\nthen say Now\nand usage 12 3")
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"x of Ann", "x of Ben"} { // failures are counted per history
		_, err := m.Chat(t.Context(), ask(user(session)), nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.RateLimited || e.RetryAfter != 5*time.Second || e.Provider != "scripted" {
			t.Fatalf("%s: error = %#v", session, err)
		}
		if _, err = m.Chat(t.Context(), ask(user(session)), nil); llm.KindOf(err) != llm.Timeout {
			t.Fatalf("%s: error = %v, want timeout", session, err)
		}
		res, err := m.Chat(t.Context(), ask(user(session)), nil)
		if err != nil || res.Text != "Now" || res.Usage != (llm.Usage{Input: 12, Output: 3}) {
			t.Fatalf("%s: answer = %+v, %v", session, res, err)
		}
	}
}

func TestFailureAfterText(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse("say Half an ans\nand fail truncated\nsay Half\nand fail truncated")
	if err != nil {
		t.Fatal(err)
	}
	var e *llm.Error
	if _, err = m.Chat(t.Context(), ask(user("x")), func(string) {}); !errors.As(err, &e) || !e.Streamed {
		t.Errorf("error = %#v, want Streamed", err)
	}
	if _, err = m.Chat(t.Context(), ask(user("x")), nil); !errors.As(err, &e) || e.Streamed {
		t.Errorf("error = %#v, want not Streamed: nobody listened", err)
	}
}

// TestUnused: exactly the steps that no request reached are listed.
func TestUnused(t *testing.T) {
	t.Parallel()
	const script = `
on "one": fail timeout
then call bash {}
then expect "never"
and say promised
on "two": say 2
on "secret": never
on "": say rest`
	m, err := llmtest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		talk(t, m, "one") // fails once, then calls, then gets an unexpected message
	}
	want := []string{`line 4: then expect "never"`, `line 6: on "two": say 2`, `line 8: on "": say rest`}
	if diff := cmp.Diff(want, m.Unused()); diff != "" {
		t.Errorf("Unused (-want +got):\n%s", diff)
	}
	talk(t, m, "two")
	talk(t, m, "three")
	if diff := cmp.Diff(want[:1], m.Unused()); diff != "" {
		t.Errorf("Unused at the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), m.Broken()); diff != "" {
		t.Errorf("Broken (-want +got):\n%s", diff)
	}
	if got := talk(t, m, "a secret"); got[0] != "error invalid" {
		t.Errorf("never to be asked: %v", got)
	}
	if diff := cmp.Diff([]string{`line 7: on "secret": never`}, m.Broken()); diff != "" {
		t.Errorf("Broken after that (-want +got):\n%s", diff)
	}
}

func TestSameHistorySameStep(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse("on \"\": call* read {} read {}\nthen say Done")
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Chat(t.Context(), ask(user("x")), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Chat(t.Context(), ask(user("x")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second answer to one history (-want +got):\n%s", diff)
	}
	if first.Uses[0].ID == first.Uses[1].ID {
		t.Errorf("both uses are called %q", first.Uses[0].ID)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse("on \"slow\": wait gate say Here")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := m.Chat(t.Context(), ask(user("slow")), nil); err != nil || res.Text != "Here" {
			t.Errorf("answer = %+v, %v", res, err)
		}
	})
	<-m.Arrived("gate")
	ctx, cancel := context.WithCancel(t.Context())
	var second sync.WaitGroup
	second.Go(func() {
		if _, err := m.Chat(ctx, ask(user("slow")), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want cancelled", err)
		}
	})
	cancel()
	second.Wait()
	m.Release("gate")
	m.Release("gate")
	wg.Wait()
}

func TestConcurrentConversations(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse("on \"go\": call bash {}\nthen call read {}\nthen say Done")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"use bash {}", "use read {}", "delta Done", "end"}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if diff := cmp.Diff(want, talk(t, m, fmt.Sprintf("go %d", i))); diff != "" {
				t.Errorf("conversation %d (-want +got):\n%s", i, diff)
			}
		})
	}
	wg.Wait()
	if got := len(m.Requests()); got != 60 {
		t.Errorf("%d requests recorded, want 60", got)
	}
}

func TestRequestsAreCopies(t *testing.T) {
	t.Parallel()
	m := llmtest.New().On("", llmtest.Step{Text: "ok"})
	req := ask(user("before"), result("before"), user("x"))
	if _, err := m.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	req.Messages[0].Text, req.Messages[1].Result.Text = "after", "after"
	got := m.Requests()[0].Messages
	if got[0].Text != "before" || got[1].Result.Text != "before" {
		t.Errorf("recorded messages changed with the caller's: %+v", got)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ script, want string }{
		{"\n\non hello: say x", `script line 3: a rule is written: on "text": action`},
		{`on "a" say x`, `line 1: no colon after on "a"`},
		{`on "a":`, "an action is missing"},
		{`on "a": dance`, `unknown action "dance"`},
		{"on \"a\": say x\nsay y", `line 2: unknown word "say"; after a rule`},
		{"and say x", `"and" has no step before it`},
		{`on "a": say`, "say needs a text"},
		{`on "a": say "\q"`, "read quoted text"},
		{"on \"a\": say <<END\nx", "a line END is missing"},
		{`on "a": say <<`, "needs the word that ends the text"},
		{`on "a": call`, "call needs a tool name"},
		{`on "a": call bash {"x"`, "arguments of bash are not JSON"},
		{`on "a": call bash {} read {}`, "written with call*"},
		{`on "a": callraw`, "callraw needs a tool name"},
		{`on "a": fail badly`, `unknown failure "badly"; known are [unavailable`},
		{`on "a": fail rate_limited soon`, `retry after "soon" is not a duration`},
		{`on "a": wait`, "wait needs a name"},
		{`on "a": wait x wait y`, "already waits"},
		{`on "a": usage 1`, "usage needs two numbers"},
		{`on "a": usage 1 -2`, `usage "-2" is not a number of tokens`},
		{`on "a": stop now`, `unknown reason to stop "now"`},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			_, err := llmtest.Parse(tt.script)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("on \"a\": say <<END\nx\nEND\nthen call* a {} b [1]\nand wait x fail timeout 3s", "a")
	f.Add("callraw x {\"\nand usage 1 2", "b")
	f.Fuzz(func(t *testing.T, script, text string) {
		m, err := llmtest.Parse(script)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // ends a wait in the script
		if _, err := m.Chat(ctx, ask(user(text)), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want cancelled", err)
		}
		if got := strings.Join(llmtest.Words(text), ""); got != text {
			t.Errorf("words of %q sum up to %q", text, got)
		}
	})
}

func TestUsesSurviveStorage(t *testing.T) {
	t.Parallel()
	m, err := llmtest.Parse(`callraw bash {"broken`)
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Chat(t.Context(), ask(user("x")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(res.Uses); err != nil {
		t.Errorf("uses cannot be stored: %v", err)
	}
}
