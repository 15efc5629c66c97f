package openai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm/openai"
)

func TestWhichWire(t *testing.T) {
	t.Parallel()
	chat, responses := "/v1/chat/completions", "/v1/responses"
	chatAnswer, responsesAnswer := reply{body: sse(text("a"), finish("stop"))}, reply{body: sse(said(0, "a"), ended("completed"))}
	refusal := reply{status: 400, body: `{"error":{"message":"Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. Please use /v1/responses instead."}}`}
	tests := []struct {
		name, wire, model string
		replies           []reply
		want              []string
		failures          int
	}{
		{"chat by default", "", "gpt-4o", []reply{chatAnswer, chatAnswer}, []string{chat, chat}, 0},
		{"gpt-6", openai.WireAuto, "gpt-6-nova", []reply{responsesAnswer, responsesAnswer}, []string{responses, responses}, 0},
		{"gpt-6 behind a gateway", "", "openai/gpt-6.1-sol", []reply{responsesAnswer, responsesAnswer}, []string{responses, responses}, 0},
		{"set to responses", openai.WireResponses, "gpt-4o", []reply{responsesAnswer, responsesAnswer}, []string{responses, responses}, 0},
		{"set to chat", openai.WireChat, "gpt-5-pro", []reply{refusal, refusal, refusal, refusal}, []string{chat, chat, chat, chat}, 2},
		{"the server says so", "", "gpt-5-pro", []reply{refusal, responsesAnswer, responsesAnswer}, []string{chat, responses, responses}, 0},
		{"the server says so and is wrong", "", "x", []reply{refusal, {status: 404}, chatAnswer, chatAnswer}, []string{chat, responses, chat, chat}, 0},
		{"another refusal", "", "x", []reply{{status: 400, body: `{"error":"no"}`}, chatAnswer}, []string{chat, chat}, 1},
		{"overloaded", "", "x", []reply{{status: 503, body: `{"error":"v1/responses is down"}`}, chatAnswer}, []string{chat, chat}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := play(t, tt.replies...)
			p := s.provider(t, func(o *openai.Options) { o.Wire, o.Model = tt.wire, tt.model })
			failures := 0
			for range 2 {
				if _, err := p.Chat(t.Context(), hi(), nil); err != nil {
					failures++
				}
			}
			paths, _ := s.asked()
			if diff := cmp.Diff(tt.want, paths); diff != "" || failures != tt.failures {
				t.Errorf("%d failures, paths (-want +got):\n%s", failures, diff)
			}
		})
	}
}
