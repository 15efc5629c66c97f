package shell_test

import (
	"os/exec"
	"testing"

	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestForeignArchive: an archive with files of other owners can be unpacked by root too, who may not change owners in
// the sandbox.
func TestForeignArchive(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("no tar on this machine")
	}
	k := setup(t, shell.Options{Helper: sandbox.Self})
	res := k.run(`mkdir d && echo x > d/f && tar --owner=1234 --group=1234 -cf a.tar d && rm -r d && tar -xf a.tar && cat d/f`)
	if res.Text != "x" {
		t.Errorf("%q", res.Text)
	}
}
