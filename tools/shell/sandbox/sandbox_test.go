package sandbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

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
