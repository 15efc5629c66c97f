package source_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/source"
)

// TestKinds: each source has its kind and its words, also as journals have kept it in other letters.
func TestKinds(t *testing.T) {
	t.Parallel()
	for s, want := range map[source.Source]struct {
		kind, words string
		strict      bool
	}{
		source.None:               {"outside", "", false},
		source.Command:            {"command output", "the output of a command", true},
		source.Background:         {"command output", "a command in the background", true},
		source.Talk:               {"conversation of others", "what was said in the group", false},
		source.Memory:             {"memory", "what was remembered", false},
		source.File("a.txt"):      {"file", "the file a.txt", true},
		"FILE:a.txt":              {"file", "FILE:a.txt", true},
		source.Document("a.pdf"):  {"document", "the document a.pdf", false},
		source.Recording("a.ogg"): {"recording", "a recording", false},
		source.Item("poll"):       {"item", "a poll", false},
		source.Hook("alerts"):     {"call of a hook", "a call of the hook alerts", false},
		source.MCP("github"):      {"MCP server", "mcp:github", false},
		source.Agent("reader"):    {"sub-agent", "sub-agent:reader", false},
		"https://a.example/x":     {"web page", "https://a.example/x", false},
		source.Names:              {"names", "names of files", true},
	} {
		if k := s.Kind(); k.Name != want.kind || s.Words() != want.words || s.Strict() != want.strict {
			t.Errorf("%q: %+v, %q", s, k, s.Words())
		}
	}
}

// TestHookName: the source of a hook says which one it is.
func TestHookName(t *testing.T) {
	t.Parallel()
	for of, want := range map[source.Source]string{source.Hook("alarm"): "alarm", source.Forwarded: "", source.MCP("hook"): ""} {
		if got := of.HookName(); got != want {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
}
