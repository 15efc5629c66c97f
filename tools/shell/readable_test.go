package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestReadable: commands of a conversation read and run what they are granted, change none of it, and see nothing else
// next to it.
func TestReadable(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe(t.Context(), sandbox.Self).Full() {
		t.Skip("there is no kernel sandbox")
	}
	home := t.TempDir()
	granted, other := filepath.Join(home, "granted"), filepath.Join(home, "other")
	for _, dir := range []string{granted, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	k := setup(t, shell.Options{Helper: sandbox.Self, Sandbox: shell.SandboxRequired, Readable: func(tools.Origin) []string { return []string{granted} }})
	if res := k.run(granted + "/run.sh"); res.Text != "ran" {
		t.Errorf("a granted script: %q", res.Text)
	}
	if res := k.run("echo x >> " + granted + "/run.sh; echo x > " + granted + "/new; rm -f " + granted + "/run.sh"); !res.Error {
		t.Errorf("a granted directory was changed: %q", res.Text)
	}
	if res := k.run("cat " + other + "/run.sh"); strings.Contains(res.Text, "ran") {
		t.Errorf("what is next to it: %q", res.Text)
	}
	if _, err := os.Stat(filepath.Join(granted, "run.sh")); err != nil {
		t.Error(err)
	}
}
