package shell_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
	"github.com/zephbot/zephbot/tools/workspace"
)

// TestAttackFillTheDisk: a command that fills its workspace is ended, also in the background, and the model is told
// why.
func TestAttackFillTheDisk(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(root, "one")
	k := setup(t, shell.Options{
		Helper: sandbox.Self, Workspace: func(tools.Origin) (string, error) { return ws, nil },
		Disk: workspace.NewGuard(workspace.GuardOptions{Root: root, MaxBytes: 4 << 20}),
	})
	k.dir = ws
	const fill = "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done"
	_, _, err = k.call(t.Context(), shell.In{Command: fill})
	if err == nil {
		t.Fatal("it ended by itself")
	}
	text := tools.Feedback(tools.AsError(err))
	for _, want := range []string{"permanent_failure", "the command was stopped", "may have done a part", "4 MiB", "workspaces.max_bytes", "Delete files"} {
		if !strings.Contains(text, want) {
			t.Errorf("the model does not hear %q: %s", want, text)
		}
	}
	if res, _, err := k.call(t.Context(), shell.In{Command: "rm -f f*; echo clean"}); err != nil || !strings.Contains(res.Text, "clean") {
		t.Errorf("it cannot clean up: %v", err)
	}
	if _, _, err := k.call(t.Context(), shell.In{Command: fill, Background: true}); err != nil {
		t.Fatal(err)
	}
	session := toolstest.Call(shell.Name, "{}").Origin.Session
	var done []shell.Completion
	for deadline := time.After(5 * time.Minute); len(done) == 0; done = k.ledger.Completed(session) { // slow machines
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatal("it was not ended")
		}
	}
	if len(done) != 1 || done[0].Ended != "stopped" || !strings.Contains(done[0].Message(), "workspaces.max_bytes") {
		t.Errorf("completions: %+v", done)
	}
}
