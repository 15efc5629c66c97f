//go:build !linux

package cli

import "os"

// flush has no way to drop what was typed; what was read before a question is no answer to it all the same.
func flush(*os.File) func() { return nil }
