package openai_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

func FuzzStream(f *testing.F) {
	for _, s := range []string{
		sse(text("a"), finish("stop"), done),
		sse(calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{}"},"x":1}`), finish("tool_calls")),
		sse(calls(`{"function":{"name":"a","arguments":{}}},{"index":-1,"function":{"name":"b"}}`), finish("x")),
		"event: error\r\ndata: x\r\rdata\n: c\n\n", `{"error":[]}`, "data: {\"error\":null}\n\n", "[{}]", "data: null\n\ndata: 7\n\n",
		`{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}` + `{"usage":{"prompt_tokens":1e300}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		check(t, pipedProvider(t, io.NopCloser(strings.NewReader(body))))
	})
}

func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		named(created, said(0, "a"), ended("completed")),
		sse(args(1, `{"b`), added(1, "read"), finished(0, "github__create_issue", "{}"), ended("completed")),
		sse(`{"type":"response.output_item.done","output_index":-1,"item":{"type":"reasoning","id":"r","encrypted_content":"e"}}`, added(1, ""), ended("incomplete", `{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`)),
		`{"object":"response","status":"failed","error":{"code":502}}`, `{"object":"response","status":"completed","usage":{"input_tokens":-1e300}}`,
		sse(`{"type":"error"}`), "data: {\"type\":\"response.failed\",\"response\":null}\n\n", "data: null\n\ndata: 7\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		check(t, pipedResponses(t, io.NopCloser(strings.NewReader(body))))
	})
}

// check makes one call. Whatever the server sends, the answer or the error is well formed.
func check(t *testing.T, p *openai.Provider) {
	t.Helper()
	streamed := ""
	req := hi()
	req.OnReset = func() { streamed = "" }
	res, err := p.Chat(t.Context(), req, func(d string) { streamed += d })
	if err != nil {
		var e *llm.Error
		if !errors.As(err, &e) || e.Provider != "main" || e.Kind == "" || e.Streamed != (streamed != "") {
			t.Errorf("error = %#v after %q", err, streamed)
		}
		return
	}
	if res.Unmade && strings.HasPrefix(res.Text, streamed) {
		streamed = res.Text // what cannot be made is not streamed
	}
	if res.Text != streamed || res.Stop == "" || res.Usage.Input < 0 || res.Usage.Output < 0 {
		t.Errorf("answer = %+v, streamed %q", res, streamed)
	}
	ids := map[string]bool{}
	for _, u := range res.Uses {
		if u.ID == "" || ids[u.ID] || len(u.Args) == 0 {
			t.Errorf("use = %+v: id empty or repeated, or no arguments", u)
		}
		ids[u.ID] = true
	}
}
