package source_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
)

// TestKinds: each source has its kind and its words, also as journals have kept it in other letters or in words.
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
		source.Item("poll"):       {"item", "a contact, place, poll or the like", false},
		source.Hook("alerts"):     {"call of a hook", "a call of the hook alerts", false},
		source.MCP("github"):      {"MCP server", "mcp:github", false},
		"the file a.txt":          {"outside", "the file a.txt", false},
		"file:":                   {"file", "file:", true},
		source.Agent("reader"):    {"sub-agent", "the sub-agent reader", false},
		"https://a.example/x":     {"web page", "https://a.example/x", false},
		source.Names:              {"names", "names of files", true},
	} {
		if k := s.Kind(); k.Name != want.kind || reason.From(string(s)).String() != want.words || s.Strict() != want.strict {
			t.Errorf("%q: %+v, %q", s, k, reason.From(string(s)))
		}
	}
}

// TestSaid: all sources without a name of their own can be said in all languages.
func TestSaid(t *testing.T) {
	t.Parallel()
	for _, s := range []source.Source{
		source.Command, source.Background, source.Files, source.Names, source.Search, source.Memory, source.Forwarded,
		source.Quoted, source.Talk, source.Attached, source.Speech, source.Summary, source.Several,
	} {
		if reason.From(string(s)).Code == reason.Name {
			t.Errorf("%q has no words", s)
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
