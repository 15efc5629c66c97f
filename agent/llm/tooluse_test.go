package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
)

func TestToolUseJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		use  llm.ToolUse
		want string
	}{
		{"valid", llm.ToolUse{ID: "a", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, `{"id":"a","name":"bash","args":{"command":"ls"}}`},
		{"malformed", llm.ToolUse{ID: "a", Name: "bash", Args: json.RawMessage(`{"command":`)}, `{"id":"a","name":"bash","raw_args":"{\"command\":"}`},
		{"no arguments", llm.ToolUse{ID: "a", Name: "list_tasks"}, `{"id":"a","name":"list_tasks"}`},
		{"extra", llm.ToolUse{ID: "a", Name: "x", Args: json.RawMessage(`[1]`), Extra: json.RawMessage(`{"k":1}`)}, `{"id":"a","name":"x","args":[1],"extra":{"k":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tt.use)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("json = %s, want %s", got, tt.want)
			}
			var back llm.ToolUse
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.use, back); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
		})
	}
}
