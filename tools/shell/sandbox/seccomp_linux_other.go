//go:build linux && !amd64 && !arm64

package sandbox

import (
	"fmt"
	"runtime"
)

// filterCalls has no filter for this processor.
func filterCalls(bool) error { return fmt.Errorf("there is no call filter for %s", runtime.GOARCH) }
