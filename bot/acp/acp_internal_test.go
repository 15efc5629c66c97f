package acp

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/web"
)

// TestKinds: the table of the seed, by the statements of the tools that it means.
func TestKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]sdk.ToolKind{
		"bash": "execute", "read": "read", "write": "edit", "edit": "edit", "grep": "search", "find_path": "search", "search_code": "search",
		"web_scrape": "fetch", "fetch": "fetch", "list_directory": "other", "delete_path": "other", "move_path": "other", "create_directory": "other",
	} {
		found := false
		for _, says := range [][]act.Tool{shell.Says(), file.Says(), web.Says(), code.Says()} {
			if s := act.Of(says, name); s != nil {
				if found = true; callKind(*s) != want {
					t.Errorf("%s is %s, want %s", name, callKind(*s), want)
				}
			}
		}
		if !found {
			t.Errorf("no tool %s", name)
		}
	}
	if got := callKind(act.Statement{}); got != "other" {
		t.Errorf("a tool that says nothing is %s", got)
	}
}

// TestVoice: an editor cannot take text back, so nothing is said twice when a call of the model is repeated, and what was
// shown is not repeated by the answer.
func TestVoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, first, second, final, want string }{
		{"as it was shown", "Hello world", "", "Hello world", "Hello world"},
		{"nothing was shown", "", "", "Hello", "Hello"},
		{"the same again", "Hello wo", "Hello world", "Hello world", "Hello world"},
		{"another answer", "Hello wo", "Good day", "Good day", "Hello wo\n\nGood day"},
		{"more than was shown", "Hello", "", "Hello\n\ncut", "Hello\n\ncut"},
		{"an end without an answer", "Hel", "", "Stopped.", "Hel\n\nStopped."},
		{"shorter", "Hello world", "Hello", "Hello", "Hello world\n\nHello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var v voice
			var b strings.Builder
			for _, r := range tt.first {
				b.WriteString(v.hearPiece(string(r)))
			}
			if tt.second != "" {
				v.void = v.shown != ""
				for _, r := range tt.second {
					b.WriteString(v.hearPiece(string(r)))
				}
			}
			b.WriteString(v.finalPart(tt.final))
			if b.String() != tt.want {
				t.Errorf("%q, want %q", b.String(), tt.want)
			}
		})
	}
}
