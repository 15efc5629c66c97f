package openai_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/llm/openai"
)

// TestFiltered: an answer that a filter breaks off is told apart from what a model says to decline, and from one of which
// nothing came.
func TestFiltered(t *testing.T) {
	t.Parallel()
	const refusal = `{"choices":[{"delta":{"refusal":"I will not."}}]}`
	filter := `{"error":{"message":"no","type":"invalid_request_error","code":"content_filter"}}`
	for name, tt := range map[string]struct {
		wire, body, text string
		filtered         bool
	}{
		"after text":            {"", sse(text("a"), finish("content_filter")), "a", true},
		"Gemini":                {"", sse(text("a"), finish("content_filter: SAFETY")), "a", true},
		"Gemini, its own word":  {"", sse(text("a"), finish("SAFETY")), "a", true},
		"in a whole answer":     {"", `{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`, "a", true},
		"as an error":           {"", sse(text("a"), filter), "a", true},
		"before text":           {"", sse(finish("content_filter")), "", false},
		"as an error, no text":  {"", sse(filter), "", false},
		"thoughts only":         {"", sse(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, finish("content_filter")), "", false},
		"the model declines":    {"", sse(refusal, finish("stop")), "I will not.", false},
		"declines, and filter":  {"", sse(refusal, finish("content_filter")), "I will not.", false},
		"responses, after text": {openai.WireResponses, sse(said(0, "a"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), "a", true},
		"responses, declines":   {openai.WireResponses, sse(ended("completed", `{"type":"message","id":"x","content":[{"type":"refusal","refusal":"No."}]}`)), "No.", false},
		"responses, no text":    {openai.WireResponses, sse(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := provider(t, serve(t, reply{body: tt.body}), func(o *openai.Options) { o.Wire = tt.wire }).Chat(t.Context(), hi(), nil)
			if err != nil || res.Stop != "refusal" || res.Text != tt.text || res.Filtered != tt.filtered {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}
