package wire_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// TestNames: whatever tools are called, each wire name is valid, unique, and decodes to the original.
func TestNames(t *testing.T) {
	t.Parallel()
	good := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.StringMatching(`[a-c1:._/é-]{0,8}|[a-b1:_]{60,70}`), func(s string) string { return s }).Draw(t, "names")
		req := &llm.Request{}
		for _, name := range list {
			req.Tools = append(req.Tools, llm.Tool{Name: name})
		}
		names := wire.NamesOf(req)
		seen := map[string]string{}
		for _, name := range list {
			wire := names.Encode(name)
			if !good.MatchString(wire) {
				t.Fatalf("%q is sent as %q", name, wire)
			}
			if other, ok := seen[wire]; ok {
				t.Fatalf("%q and %q are both sent as %q", name, other, wire)
			}
			seen[wire] = name
			if back := names.Decode(wire); back != name {
				t.Fatalf("%q comes back as %q", name, back)
			}
		}
	})
}

func TestReadable(t *testing.T) {
	t.Parallel()
	names := wire.NamesOf(&llm.Request{Tools: []llm.Tool{{Name: "bash"}, {Name: "github:create_issue"}, {Name: "3d:print"}, {Name: "-x"}, {Name: strings.Repeat("x", 80)}}})
	for name, want := range map[string]string{"bash": "bash", "github:create_issue": "github__create_issue", "3d:print": "_3d__print", "-x": "_-x", "unknown:tool": "unknown__tool"} {
		if got := names.Encode(name); got != want {
			t.Errorf("%s is sent as %s, want %s", name, got, want)
		}
	}
	if got := names.Decode("nobody"); got != "nobody" {
		t.Errorf("an unknown name comes back as %s", got)
	}
}
