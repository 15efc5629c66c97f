//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/zephbot/zephbot/policy/reason"
)

// Probe returns what the kernel enforces: nothing on this system.
func Probe(context.Context, string) Level {
	return Level{Reason: reason.New(reason.SandboxLinux, runtime.GOOS)}
}

// startHelped starts a command without a helper, which does not exist on this system.
func startHelped(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	if spec.Require || spec.Reading {
		return nil, fmt.Errorf("%w on %s", ErrUnavailable, runtime.GOOS)
	}
	return startPlain(ctx, spec, stdout, stderr)
}

// Shield does nothing on this system.
func Shield() error { return nil }

// SystemDirs returns nothing: no sandbox restricts what is read.
func SystemDirs() []string { return nil }
