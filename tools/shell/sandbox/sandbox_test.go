package sandbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

func TestMainLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"zephbot"}, {"zephbot", "serve"}, {"zephbot", sandbox.Arg}, {"zephbot", sandbox.Arg, "exec"}} {
		if sandbox.Main(args) {
			t.Errorf("Main(%q) took itself for a helper", args)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Start(t.Context(), sandbox.Spec{}, os.Stdout, os.Stderr); err == nil {
		t.Error("nothing to run was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sandbox.Start(ctx, sandbox.Spec{Argv: []string{"/bin/true"}}, os.Stdout, os.Stderr); err == nil {
		t.Error("a run was started for a context that had ended")
	}
}
