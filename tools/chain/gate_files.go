package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
)

// maxContent is the size in bytes of the largest file whose content is hashed.
const maxContent = 32 << 20

// readFileStates returns the current state of the named files. Relative names start at dir. It never fails: the result
// says which files cannot be read.
func readFileStates(ctx context.Context, dir string, names []command.FileName) []policy.File {
	files := make([]policy.File, 0, len(names))
	for _, n := range names {
		if n.Pattern {
			if f, any := readMatchedFiles(ctx, dir, n); any {
				files = append(files, f)
			}
			continue
		}
		path := n.Name
		if !filepath.IsAbs(path) {
			path = dir + "/" + path // not cleaned, because the kernel follows links before it applies ".."
		}
		f := policy.File{Name: n.Name, Unread: true}
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			f.Path = real
		}
		switch info, err := os.Stat(path); {
		case ctx.Err() != nil:
		case os.IsNotExist(err):
			f.Path, f.Unread = "", false
		case err != nil:
		case info.IsDir():
			f.Hash, f.Unread = "directory", false
		case !info.Mode().IsRegular():
		case ofSystem(real):
			f.Hash, f.Unread = "system", false
		default:
			f.Hash, f.Unread = hashContent(real, info)
		}
		if n.Optional && (f.Path == "" || f.Hash == "directory" || f.Hash == "") && n.Name != "." {
			continue
		}
		files = append(files, f)
	}
	return files
}

// maxMatches limits the files for which one pattern stands.
const maxMatches = 200

// readMatchedFiles returns the state of all files that match a pattern, as one; any is false if there are none. Only
// the last part of a pattern is one, as a search of the disk would be too long for a decision.
func readMatchedFiles(ctx context.Context, dir string, name command.FileName) (f policy.File, any bool) {
	path := name.Name
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	f = policy.File{Name: name.Name, Unread: true}
	parent, last := filepath.Split(path)
	real, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return f, false
	}
	f.Path = real
	entries, err := os.ReadDir(parent)
	if strings.ContainsAny(parent, "*?[") || err != nil {
		return f, true
	}
	var names []command.FileName
	for _, e := range entries {
		// The shell's patterns match no names with a leading dot; those that are not known here match every name.
		ok, err := filepath.Match(last, e.Name())
		if ok && !strings.HasPrefix(e.Name(), ".") || err != nil ||
			strings.Contains(last, "[!") || strings.Contains(last, "[:") {
			names = append(names, command.FileName{Name: filepath.Join(parent, e.Name())})
		}
	}
	if len(names) == 0 || len(names) > maxMatches {
		return f, len(names) > 0
	}
	f.Unread = false
	h := sha256.New()
	for _, one := range readFileStates(ctx, dir, names) {
		f.Unread = f.Unread || one.Unread
		fmt.Fprintf(h, "%q %q\n", filepath.Base(one.Name), one.Hash)
	}
	f.Hash = hex.EncodeToString(h.Sum(nil))
	return f, true
}

// ofSystem reports whether a file belongs to the machine: commands cannot change it, and an update of the machine does
// not count as a change of a script.
func ofSystem(path string) bool {
	for _, root := range []string{"/usr/", "/bin/", "/sbin/", "/lib", "/nix/store/"} {
		if strings.HasPrefix(path, root) && !strings.HasPrefix(path, "/usr/local/") {
			return true
		}
	}
	return false
}

// hashContent returns the hash of a regular file. For a file that is too large or cannot be read, unread is true
// and only its metadata is used.
func hashContent(path string, info os.FileInfo) (hash string, unread bool) {
	looks := fmt.Sprintf("%d bytes, %d", info.Size(), info.ModTime().UnixNano())
	if info.Size() > maxContent {
		return looks, true
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe, which must not block
	if err != nil {
		return looks, true
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() {
		return looks, true
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxContent+1)); err != nil || n > maxContent {
		return looks, true
	}
	return hex.EncodeToString(h.Sum(nil)), false
}
