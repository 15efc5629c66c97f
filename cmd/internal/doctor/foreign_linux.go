package doctor

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// foreignDisk describes the file system of a directory if it is on another machine or only in memory; "" = it is not. A
// directory that does not exist is where its nearest existing parent is.
func foreignDisk(dir string) string {
	var st unix.Statfs_t
	for unix.Statfs(dir, &st) != nil {
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	const smb, smb2, plan9 = 0x517b, 0xfe534d42, 0x01021997 // not among the names of x/sys
	switch uint32(st.Type) {                                //nolint:gosec,unconvert // the type depends on the system; the numbers have 32 bits
	case unix.NFS_SUPER_MAGIC:
		return "a network file system (NFS)"
	case smb, unix.CIFS_SUPER_MAGIC, smb2:
		return "a network file system (SMB)"
	case unix.AFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, plan9:
		return "a network file system"
	case unix.FUSE_SUPER_MAGIC:
		return "a file system of a program (FUSE)"
	default:
		return ""
	}
}
