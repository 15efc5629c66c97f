//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// Probe says what the kernel enforces: nothing on this system.
func Probe(context.Context, string) Level {
	return Level{Reason: "only Linux has one, this is " + runtime.GOOS}
}

// startHelped runs without a helper, because there is none on this system.
func startHelped(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	if spec.Require {
		return nil, fmt.Errorf("%w on %s", ErrUnavailable, runtime.GOOS)
	}
	return startPlain(ctx, spec, stdout, stderr)
}

// Shield has nothing to do on this system.
func Shield() error { return nil }
