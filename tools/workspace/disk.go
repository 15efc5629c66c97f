package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

const (
	minEntry    = 1 << 10         // minimum size of a file in bytes, because many empty files fill a disk too
	rememberFor = 2 * time.Minute // how long a measurement is valid, even if the disk lost little
	walkShare   = 20              // at most one part in this many of the time is spent on walks
	// how much a command may enlarge a workspace that is already over its limit, so that it can clean up
	cleanupSlack     = 1 << 20
	fastestWrite     = 4 << 30 // bytes a second that a command can write; this determines how often the disk is checked
	shortestInterval = 10 * time.Millisecond
	longestInterval  = 500 * time.Millisecond
	leastShare       = 8 // the reserve is at most the disk divided by this
)

// GuardOptions configures a Guard.
type GuardOptions struct {
	// Root contains the workspaces: each directory directly in it is one. What a session stores elsewhere is not
	// counted.
	Root string
	// MaxBytes limits the files of one workspace; 0 = no limit.
	MaxBytes int64
	// Reserve is how many bytes stay free on every disk that is written to and on that of Own, but at most an eighth of
	// the disk; 0 = none.
	Reserve int64
	// Own is the directory of the bot's own files.
	Own string

	// Beside returns a directory whose files count as those of a workspace, and which may not exist; "" =
	// none. nil = no workspace has one.
	Beside func(workspace string) string

	// Free returns how many bytes are free for us at a path, and the size of the disk; nil asks the system.
	Free func(path string) (free, total int64, err error)
	// Used measures a directory; nil walks it.
	Used func(ctx context.Context, dir string) (int64, error)
	Now  func() time.Time // nil = time.Now
}

// Guard prevents tools from filling the disk: it limits what a session can store, and keeps space free for the bot's
// own files. It is safe for concurrent use; a nil one limits nothing.
//
// Measuring a workspace means walking it, which is expensive. It is only done when the limit may have been reached,
// that is, when the size at the last walk plus the space that the disk has lost since then exceeds the limit.
type Guard struct {
	o  GuardOptions
	mu sync.Mutex
	// last is the latest measurement of each workspace.
	last map[string]measured
}

// measured is one measurement.
type measured struct {
	used, free int64
	at         time.Time
}

// NewGuard returns a Guard.
func NewGuard(o GuardOptions) *Guard {
	if o.Free == nil {
		o.Free = statDisk
	}
	if o.Used == nil {
		o.Used = walkUsage
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if real, err := filepath.EvalSymlinks(o.Root); err == nil {
		o.Root = real
	}
	return &Guard{o: o, last: map[string]measured{}}
}

// Admit returns an error if this many more bytes must not be written at a canonical path. The error is a *tools.Error
// for the model. Zero or fewer bytes are always admitted.
func (g *Guard) Admit(ctx context.Context, path string, bytes int64) error {
	if g == nil || bytes <= 0 {
		return nil
	}
	room, full := g.Room(ctx, path, bytes)
	if bytes <= room {
		return nil
	}
	return full
}

// Room returns how many more bytes can be written at a canonical path, and the error with which more is refused. want
// is how many the caller wants to write. If they fit, the result may be less than the real room, but not less than
// want.
func (g *Guard) Room(ctx context.Context, path string, want int64) (int64, error) {
	const plenty = 1 << 62
	if g == nil {
		return plenty, nil
	}
	room, reserve, err := g.spareSpace(path)
	if err != nil {
		return 0, &tools.Error{
			Category: tools.PermanentFailure,
			Message:  "the disk cannot be looked at, so nothing is written", Err: err,
		}
	}
	full := reserveFull(reserve)
	ws := g.workspaceOf(path)
	if ws == "" || g.o.MaxBytes <= 0 {
		return room, full
	}
	m, _, err := g.measureWorkspace(ctx, ws, g.o.MaxBytes-want)
	if err != nil {
		return 0, tools.AsError(err)
	}
	if left := g.o.MaxBytes - m; left < room {
		return max(0, left), g.quotaFull()
	}
	return room, full
}

// spareSpace returns how many bytes can be written before a reserve is used: on the disk of path and, if it is the same
// one, on the disk of the bot's own files.
func (g *Guard) spareSpace(path string) (room, reserve int64, err error) {
	const plenty = 1 << 62
	if g.o.Reserve <= 0 {
		return plenty, 0, nil
	}
	left, total, err := g.o.Free(path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the disk: %w", err)
	}
	reserve = min(g.o.Reserve, total/leastShare)
	return max(0, left-reserve), reserve, nil
}

// workspaceOf returns the workspace that contains a path; "" if there is none.
func (g *Guard) workspaceOf(path string) string {
	rel, err := filepath.Rel(g.o.Root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	name, _, _ := strings.Cut(rel, string(filepath.Separator))
	return filepath.Join(g.o.Root, name)
}

// measureWorkspace returns the size of a workspace, and how long the measurement took. As long as the workspace cannot
// have exceeded the limit, the result is an upper bound that costs nothing.
func (g *Guard) measureWorkspace(
	ctx context.Context, ws string, limit int64,
) (bytes int64, cost time.Duration, err error) {
	now := g.o.Now()
	left, _, err := g.o.Free(ws)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the disk: %w", err)
	}
	g.mu.Lock()
	m, known := g.last[ws]
	g.mu.Unlock()
	if atMost := m.used + max(0, m.free-left); known && now.Sub(m.at) < rememberFor && atMost <= limit {
		return atMost, 0, nil
	}
	if bytes, err = g.o.Used(ctx, ws); err != nil {
		return 0, 0, fmt.Errorf("measure the workspace: %w", err)
	}
	if beside := g.besideWorkspace(ws); beside != "" {
		more, err := g.o.Used(ctx, beside)
		if err != nil {
			return 0, 0, fmt.Errorf("measure what belongs to the workspace: %w", err)
		}
		bytes += more
	}
	end := g.o.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for dir, other := range g.last { // remove old measurements
		if end.Sub(other.at) > rememberFor {
			delete(g.last, dir)
		}
	}
	g.last[ws] = measured{used: bytes, free: left, at: end}
	return bytes, end.Sub(now), nil
}

// besideWorkspace returns the directory beside a workspace, if it exists.
func (g *Guard) besideWorkspace(ws string) string {
	if g.o.Beside == nil {
		return ""
	}
	dir := g.o.Beside(ws)
	if _, err := os.Lstat(dir); err != nil {
		return ""
	}
	return dir
}

// quotaFull returns the error for a full workspace.
func (g *Guard) quotaFull() *tools.Error {
	return tools.Refused(
		reason.New(reason.SpaceUsedUp, FormatSize(g.o.MaxBytes)),
		"Delete files that are no longer needed, or write less.",
	)
}

// reserveFull returns the error for a full disk.
func reserveFull(reserve int64) *tools.Error {
	return tools.Refused(
		reason.New(reason.DiskReserved, FormatSize(reserve)),
		"Delete files that are no longer needed, and tell the user that the disk of the bot is almost full.",
	)
}

// FormatSize formats a number of bytes for people.
func FormatSize(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, i := float64(n), 0
	for ; value >= 1024 && i < len(units)-1; i++ {
		value /= 1024
	}
	if i == 0 || value == float64(int64(value)) {
		return fmt.Sprintf("%.0f %s", value, units[i])
	}
	return fmt.Sprintf("%.1f %s", value, units[i])
}

// FreeSpace returns how many bytes are free for us on the disk of a path.
func FreeSpace(path string) (int64, error) {
	left, _, err := statDisk(path)
	return left, err
}

// statDisk asks the system. A path that does not exist is on the disk of its nearest existing parent.
func statDisk(path string) (left, total int64, err error) {
	var st unix.Statfs_t
	for {
		err = unix.Statfs(path, &st)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	if err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	size := uint64(st.Bsize)                                     //nolint:gosec,unconvert // type depends on the system
	return int64(st.Bavail * size), int64(st.Blocks * size), nil //nolint:gosec,unconvert // no disk has 2^63 bytes
}

// walkUsage walks a directory and adds up the disk space of its files, counting each file once.
func walkUsage(ctx context.Context, dir string) (int64, error) {
	var sum int64
	seen := map[[2]uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir && !errors.Is(err, os.ErrNotExist):
			return err
		case err != nil:
			return nil // it disappeared or cannot be read; its own entry was counted
		case ctx.Err() != nil:
			return ctx.Err()
		}
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			return nil
		}
		if !e.IsDir() && st.Nlink > 1 {
			id := [2]uint64{uint64(st.Dev), st.Ino} //nolint:unconvert // its type differs between systems
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		sum += max(minEntry, st.Blocks*512)
		return nil
	})
	return sum, err
}
