package openai_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
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
		p := pipedProvider(t, io.NopCloser(strings.NewReader(body)))
		streamed := ""
		res, err := p.Chat(t.Context(), hi(), func(d string) { streamed += d })
		if err != nil {
			var e *llm.Error
			if !errors.As(err, &e) || e.Provider != "main" || e.Kind == "" || e.Streamed != (streamed != "") {
				t.Errorf("error = %#v after %q", err, streamed)
			}
			return
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
	})
}
