//go:build linux && !amd64 && !arm64

package sandbox

import (
	"fmt"
	"runtime"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// filterOptions is what the filter depends on.
type filterOptions struct {
	network                    Network
	unix, memory, pid          bool
	tell, root, reading, tells bool
}

// isFilterable reports whether there is a filter for this processor.
func isFilterable() bool { return false }

// filterProgram returns no filter: there is none for this processor.
func filterProgram(filterOptions) ([]byte, error) {
	return nil, fmt.Errorf("there is no call filter for %s", runtime.GOARCH)
}

// watchedCalls returns none: there is no filter that could tell of them.
func watchedCalls(bool) []supervisor.WatchedCall { return nil }
