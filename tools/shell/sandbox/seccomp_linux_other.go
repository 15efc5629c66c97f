//go:build linux && !amd64 && !arm64

package sandbox

import (
	"fmt"
	"runtime"
)

// filterOptions are what the filter depends on.
type filterOptions struct {
	network           Network
	unix, memory, pid bool
}

// filterable says whether there is a filter for this processor.
func filterable() bool { return false }

// filterProgram has no filter for this processor.
func filterProgram(filterOptions) ([]byte, error) {
	return nil, fmt.Errorf("there is no call filter for %s", runtime.GOARCH)
}
