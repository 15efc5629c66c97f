package window_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "a": 1, "ab": 1, "abc": 1, "abcd": 2, strings.Repeat("a", 7): 2, strings.Repeat("a", 700): 200, "日本語": 3, "é": 1, "🙂🙂": 2, "a日": 2, "\xff\xfe": 2,
	} {
		if got := window.Tokens(text); got != want {
			t.Errorf("Tokens(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 35) // 10 tokens
	for _, tt := range []struct {
		m    llm.Message
		want int
	}{
		{llm.Message{Role: llm.User, Text: text}, 14},
		{llm.Message{Role: llm.Assistant, Text: text, Uses: []llm.ToolUse{{Name: text, Args: []byte(text)}, {Name: text, Args: []byte(text)}}}, 14 + 2*24},
		{llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{Text: text}}, 14},
	} {
		if got := window.Message(tt.m); got != tt.want {
			t.Errorf("Message(%+v) = %d, want %d", tt.m, got, tt.want)
		}
		if got := window.Messages([]llm.Message{tt.m, tt.m}); got != 2*tt.want {
			t.Errorf("two of them = %d, want %d", got, 2*tt.want)
		}
	}
	req := &llm.Request{System: text, Tools: []llm.Tool{{Name: text, Description: text, Schema: []byte(text)}}, Messages: []llm.Message{{Text: text}}}
	if got := window.Fixed(req); got != 44 {
		t.Errorf("Fixed = %d, want 44", got)
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tokens, budget int
		want           bool
	}{{80, 100, false}, {81, 100, true}, {1 << 40, 0, false}, {1 << 40, -1, false}} {
		if got := window.Over(tt.tokens, tt.budget); got != tt.want {
			t.Errorf("Over(%d, %d) = %t", tt.tokens, tt.budget, got)
		}
	}
}
