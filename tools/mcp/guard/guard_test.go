package guard_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// usual is mcp.allowed_commands by default.
func usual() []string { return []string{"npx", "uvx", "node", "python", "python3"} }

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		allowed []string
		want    string // part of the error; "" = allowed
	}{
		{"npx", usual(), ""},
		{"python3", usual(), ""},
		{"custom-server", append(usual(), "custom-server"), ""},
		{"docker", usual(), "not allowed"},
		{"bash", usual(), "not allowed; permitted are npx, uvx, node, python, python3"},
		{"", usual(), "no command"},
		{"NPX", usual(), "not allowed"},
		{" npx", usual(), "not allowed"},
		{"npx ", usual(), "not allowed"},
		{"/usr/bin/npx", usual(), "path"},
		{"/usr/local/bin/mcpls", []string{"mcpls"}, "path"},
		{"/usr/local/bin/mcpls", []string{"/usr/local/bin/mcpls"}, "path"},
		{"/usr/local/bin/mcpls", []string{"/usr/local/bin/*"}, "path"},
		{`..\npx`, usual(), "path"},
		{"../../npx", usual(), "path"},
		{"./npx", usual(), "path"},
		{"npx", nil, "nothing is permitted"},
		{strings.Repeat("x", 5000), usual(), "not allowed"},
	} {
		err := guard.Command(c.name, c.allowed)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.name, err, c.want)
		case err != nil && len(err.Error()) > 400:
			t.Errorf("%q: the error is %d bytes long", c.name[:10], len(err.Error()))
		}
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]guard.Trust{"": guard.Untrusted, "trusted": guard.Trusted, "untrusted": guard.Untrusted, "sandboxed": guard.Sandboxed} {
		if got, err := guard.ParseTrust(in); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	for _, in := range []string{"Trusted", "root", " trusted"} {
		if _, err := guard.ParseTrust(in); err == nil || !strings.Contains(err.Error(), "sandboxed") {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, c := range []struct{ a, b, want guard.Trust }{
		{guard.Trusted, guard.Trusted, guard.Trusted},
		{guard.Trusted, guard.Untrusted, guard.Untrusted},
		{guard.Sandboxed, guard.Untrusted, guard.Sandboxed},
		{guard.Untrusted, "what", guard.Sandboxed},
		{"", guard.Trusted, guard.Sandboxed},
	} {
		if got := guard.Stricter(c.a, c.b); got != c.want {
			t.Errorf("%q %q: %q", c.a, c.b, got)
		}
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	yes, no := new(true), new(false)
	for _, c := range []struct {
		name               string
		a                  guard.Annotations
		trust              guard.Trust
		readOnly, destroys bool
		note               string
	}{
		{"nothing", guard.Annotations{}, guard.Trusted, false, false, ""},
		{"reads, trusted", guard.Annotations{ReadOnly: yes}, guard.Trusted, true, false, "The server says: it only reads."},
		{"reads, not believed", guard.Annotations{ReadOnly: yes}, guard.Untrusted, false, false, "The server says: it only reads. It is not a trusted server."},
		{"reads, sandboxed", guard.Annotations{ReadOnly: yes}, guard.Sandboxed, false, false, "The server says: it only reads. It is not a trusted server."},
		{"destroys", guard.Annotations{ReadOnly: no, Destructive: yes}, guard.Untrusted, false, true, "The server says: it changes things, it may destroy what exists. It is not a trusted server."},
		{"destroys and lies", guard.Annotations{ReadOnly: yes, Destructive: yes}, guard.Untrusted, false, true, "The server says: it only reads, it may destroy what exists. It is not a trusted server."},
		{"destroys and reads, trusted", guard.Annotations{ReadOnly: yes, Destructive: yes}, guard.Trusted, false, true, "The server says: it only reads, it may destroy what exists."},
		{"the protocol's default", guard.Annotations{ReadOnly: no, Idempotent: yes, OpenWorld: yes}, guard.Trusted, false, true, "The server says: it changes things, repeating it changes nothing more, it reaches other systems."},
		{"additive", guard.Annotations{ReadOnly: no, Destructive: no, OpenWorld: no}, guard.Trusted, false, false, "The server says: it changes things, it destroys nothing, it stays within the server."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			def := tools.Definition{Name: "s:t", ReadOnly: true, Destructive: true}
			c.a.Apply(&def, c.trust)
			want := tools.Definition{Name: "s:t", ReadOnly: c.readOnly, Destructive: c.destroys, Trusted: c.trust == guard.Trusted, Reads: strings.Contains(c.note, "it only reads") && !c.destroys}
			if diff := cmp.Diff(want, def); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := c.a.Note(c.trust).String(); got != c.note {
				t.Errorf("note: %q", got)
			}
		})
	}
}

// TestAttackReadOnlyByName: if a trusted server states that a destructive tool only reads, it is not believed, and its
// calls ask.
func TestAttackReadOnlyByName(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]bool{
		"s:delete_file": false, "s:fileDelete": false, "s:drop-table": false, "s:purge": false, "s:pods/kill": false,
		"s:list_deleted_items": true, "s:get_drop_rate": true, "s:read_file": true, "s:undelete": true,
	} {
		def := tools.Definition{Name: name}
		guard.Annotations{ReadOnly: new(true), Destructive: new(false)}.Apply(&def, guard.Trusted)
		if def.ReadOnly != reads || def.Destructive == reads {
			t.Errorf("%s: %+v", name, def)
		}
	}
}

func TestServerIDAndQualifiedNames(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"github", "a.b-c_D9", strings.Repeat("a", 128)} {
		if err := guard.ServerID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", "my server", "a:b", "a/b", "ünï", strings.Repeat("a", 129), "a\n"} {
		if err := guard.ServerID(id); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
	if s, n, ok := guard.Split(guard.Qualified("github", "create_issue")); !ok || s != "github" || n != "create_issue" {
		t.Errorf("%q %q %v", s, n, ok)
	}
	for _, name := range []string{"bash", ":x", "x:", "", ":"} {
		if _, _, ok := guard.Split(name); ok {
			t.Errorf("%q was taken apart", name)
		}
	}
}

func TestInterpolate(t *testing.T) {
	t.Parallel()
	given := map[string]string{"Authorization": "Bearer x", "X-Caller": "id=${caller};${caller}", "Other": "${HOME} $caller"}
	got, err := guard.Interpolate(given, "telegram:42")
	want := map[string]string{"Authorization": "Bearer x", "X-Caller": "id=telegram:42;telegram:42", "Other": "${HOME} $caller"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if given["X-Caller"] != "id=${caller};${caller}" {
		t.Error("the given map was changed")
	}
	if !guard.UsesCaller(given) || guard.UsesCaller(map[string]string{"A": "$caller"}) || guard.UsesCaller(nil) {
		t.Error("UsesCaller")
	}
	for name, c := range map[string]struct {
		values map[string]string
		caller string
		want   string
	}{
		"no caller":       {map[string]string{"A": "${caller}"}, "", "scope"},
		"a line break":    {map[string]string{"A": "${caller}"}, "telegram:42\r\nX-Admin: 1", "printable"},
		"a space":         {map[string]string{"A": "${caller}"}, "a b", "printable"},
		"other alphabets": {map[string]string{"A": "${caller}"}, "telegram:ä", "printable"},
		"in a name":       {map[string]string{"${caller}": "x"}, "telegram:42", "name"},
	} {
		if _, err := guard.Interpolate(c.values, c.caller); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := guard.Interpolate(map[string]string{"A": "x"}, ""); err != nil || got["A"] != "x" {
		t.Errorf("nothing to do: %v %v", got, err)
	}
	if err := guard.RefuseCaller("npx", []string{"-y", "server", "$caller"}); err != nil {
		t.Error(err)
	}
	if err := guard.RefuseCaller("npx", []string{"-y", "--user=${caller}"}); err == nil || !strings.Contains(err.Error(), "args[1]") {
		t.Error(err)
	}
	if err := guard.RefuseCaller("${caller}", nil); err == nil {
		t.Error("a command was taken")
	}
}
