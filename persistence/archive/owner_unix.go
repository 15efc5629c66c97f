//go:build unix

package archive

import (
	"os"
	"path/filepath"
	"syscall"
)

// owner is an account that files are given to.
type owner struct{ uid, gid int }

// ownerOf returns the account that a directory, or the nearest one above it, belongs to; nil unless this process is
// root and that is another account: only then would what it writes belong to somebody who is not the service.
func ownerOf(dir string) *owner {
	if os.Geteuid() != 0 {
		return nil
	}
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
				return &owner{int(stat.Uid), int(stat.Gid)}
			}
			return nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return nil
		}
		dir = above
	}
}
