package file_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
)

// TestAttackMaskOverwritesCredential: the mask that a model has read is not written back to a file.
func TestAttackMaskOverwritesCredential(t *testing.T) {
	t.Parallel()
	const config = "key = sk_live_1\nname = shop\nmode = [redac\n"
	const documented = "we print [redacted] instead\nand go on\n"
	for name, tt := range map[string]struct {
		tool string
		in   args
		ok   bool
	}{
		"write over a file":      {"write", args{"path": "app.toml", "content": "key = [redacted]\nname = store\n"}, false},
		"write a new file":       {"write", args{"path": "new.toml", "content": "key = [redacted]\n"}, false},
		"edit puts it in":        {"edit", args{"path": "app.toml", "old_string": "name = shop", "new_string": "key = [redacted]\nname = store"}, false},
		"edit looks for it":      {"edit", args{"path": "app.toml", "old_string": "key = [redacted]", "new_string": "key = x"}, false},
		"edit completes it":      {"edit", args{"path": "app.toml", "old_string": "[redac\n", "new_string": "[redacted]\n"}, false},
		"edit completes a part":  {"edit", args{"path": "app.toml", "old_string": "redac\n", "new_string": "redacted]\n"}, false},
		"edit around it":         {"edit", args{"path": "app.toml", "old_string": "name = shop", "new_string": "name = store"}, true},
		"a text of its own":      {"edit", args{"path": "doc.md", "old_string": "we print [redacted] instead", "new_string": "we show [redacted] instead"}, true},
		"it may be taken out":    {"edit", args{"path": "doc.md", "old_string": "print [redacted] instead", "new_string": "print nothing"}, true},
		"one more is too many":   {"edit", args{"path": "doc.md", "old_string": "and go on", "new_string": "and say [redacted]"}, false},
		"write keeps its own":    {"write", args{"path": "doc.md", "content": "only [redacted]\n"}, true},
		"write with one more":    {"write", args{"path": "doc.md", "content": "[redacted] and [redacted]\n"}, false},
		"a directory's own text": {"write", args{"path": "sub", "content": "[redacted]"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, nil)
			b.put("app.toml", config)
			b.put("doc.md", documented)
			b.mkdir("sub")
			_, described := b.tools[tt.tool].Describe(t.Context(), b.call(tt.tool, tt.in))
			_, err := b.try(tt.tool, tt.in)
			if tt.ok {
				if err != nil || described != nil {
					t.Fatalf("refused: %v, %v", err, described)
				}
				return
			}
			if err == nil {
				t.Fatal("done")
			}
			if e := tools.AsError(err); e.Category != tools.PolicyBlocked || !strings.Contains(tools.Feedback(e), "hidden from you") {
				t.Errorf("the model hears %q", tools.Feedback(e))
			}
			if b.content("app.toml") != config || b.content("doc.md") != documented {
				t.Error("a file changed")
			}
		})
	}
}
