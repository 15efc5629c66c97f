package shell_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestChanges: a command may change anything in its directory, and what it can reach besides is said.
func TestChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options shell.Options
		in      shell.In
		files   bool
		beyond  []tools.Beyond
	}{
		"only reads":        {in: shell.In{Command: "ls -l | head"}},
		"writes":            {in: shell.In{Command: "echo x > a"}, files: true, beyond: []tools.Beyond{tools.Elsewhere}},
		"network":           {options: shell.Options{Network: sandbox.NetworkAll}, in: shell.In{Command: "make"}, files: true, beyond: []tools.Beyond{tools.Network, tools.Elsewhere}},
		"in the background": {in: shell.In{Command: "ls", Background: true}, beyond: []tools.Beyond{tools.Elsewhere, tools.Background}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.options.Sandbox = shell.SandboxOff
			k := setup(t, tt.options)
			got, err := k.tool.Changes(t.Context(), toolstest.Call(shell.Name, args(t, tt.in)))
			want := tools.Changes{Beyond: tt.beyond}
			if tt.files {
				want.Files = []tools.Area{{Root: k.dir, Paths: []string{k.dir}, Spare: []string{filepath.Join(k.dir, ".tmp")}}}
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v\n-want +got\n%s", err, diff)
			}
		})
	}
}

// TestChangesConfined: in the sandbox, a command reaches no other files, unless other paths are allowed.
func TestChangesConfined(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	for name, paths := range map[string][]string{"confined": nil, "other paths": {other}} {
		k := setup(t, shell.Options{Helper: sandbox.Self, AllowedPaths: paths})
		if !k.r.Level(t.Context()).Full() {
			t.Skip("no kernel sandbox here")
		}
		got, err := k.tool.Changes(t.Context(), toolstest.Call(shell.Name, args(t, shell.In{Command: "touch x"})))
		if err != nil || len(got.Files) != 1 || len(got.Beyond) != len(paths) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
