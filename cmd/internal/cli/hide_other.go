//go:build !(linux || darwin)

package cli

import (
	"errors"
	"os"
)

// hide is not possible on this system.
func hide(*os.File) func() (show func(), err error) {
	return func() (func(), error) { return nil, errors.New("not possible on this system") }
}
