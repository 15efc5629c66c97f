//go:build linux

package crashtest_test

import (
	"context"
	databasesql "database/sql" //nolint:depguard // the test adds up rows of the service's tables
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// engine is where the service of a machine stores its data, and what can fail there.
type engine interface {
	keeper
	breaker
}

// keeper is a place for the data.
type keeper interface {
	name() string
	// home returns the data_dir of a process.
	home(m *machine, index int) string
	// config returns the part of a process's configuration about it.
	config(m *machine, n *node) string
	// url returns the URL of the database; "" = SQLite in the home of process 0.
	url() string
	// number runs a query whose result is one number.
	number(ctx context.Context, m *machine, query string, args ...any) (int64, error)
}

// breaker causes the faults of a place.
type breaker interface {
	kinds() []weighted
	apply(ctx context.Context, m *machine, f fault)
	// fell judges a process that ended without being told to; last is the end of its log.
	fell(m *machine, n *node, c *child, last string)
	// excused reports whether a process may end with an error now, because what it has to store at its end cannot be
	// stored and it says so.
	excused(last string) bool
}

const diskSize = 768 << 20

// files is SQLite, on a small disk of its own if the machine allows mounting one.
type files struct {
	dir   string // where the disk is mounted; "" = there is none
	cache *cache
	lock  sync.Mutex
	fill  sync.Mutex

	mu     sync.Mutex
	sick   int       // faults under way
	healed time.Time // when the last one ended
}

// fallen is how long after a fault of the database a process may still end because of it: it retries for that long.
const fallen = 10 * time.Second

// ill counts a current fault; the returned function ends it.
func (f *files) ill() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sick++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sick--
		f.healed = time.Now()
	}
}

// newFiles creates the disk: root may mount one in memory. Without it the disk is never full.
func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		t.Logf("no disk to fill: %v", err)
		return &files{cache: newCache(t)}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &files{dir: dir, cache: newCache(t)}
}

func (f *files) name() string                  { return "SQLite" }
func (f *files) config(*machine, *node) string { return f.cache.config() }
func (f *files) url() string                   { return "" }

func (f *files) number(ctx context.Context, m *machine, query string, args ...any) (n int64, err error) {
	db, err := databasesql.Open("sqlite", "file:"+filepath.Join(f.home(m, 0), database)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

func (f *files) home(m *machine, _ int) string {
	if f.dir != "" {
		return f.dir
	}
	return filepath.Join(m.dir, "data")
}

func (f *files) kinds() []weighted {
	list := append(f.cache.kinds(), weighted{faultLocked, 4, time.Second / 20, 6 * time.Second})
	if f.dir != "" {
		list = append(list, weighted{faultFull, 2, time.Second / 5, 5 * time.Second})
	}
	return list
}

func (f *files) apply(ctx context.Context, m *machine, what fault) {
	switch what.Kind {
	case faultLocked:
		m.working.Go(func() { f.locked(ctx, m, what.Length) })
	case faultFull:
		m.working.Go(func() { f.full(ctx, m, what.Length) })
	default:
		f.cache.apply(ctx, m, what, f.ill)
	}
}

// walWriteLock is the byte of the -shm file that SQLite locks for writing (https://sqlite.org/walformat.html#locks).
const walWriteLock = 120

// locked holds the write lock of the database, as a backup program might.
func (f *files) locked(ctx context.Context, m *machine, length time.Duration) {
	if !f.lock.TryLock() {
		return
	}
	defer f.lock.Unlock()
	shm, err := os.OpenFile(filepath.Join(f.home(m, 0), database+"-shm"), os.O_RDWR, 0)
	if err != nil { // no process has started yet
		return
	}
	defer func() { _ = shm.Close() }() // which releases the lock
	// An open-file-description lock: POSIX locks would end with any other descriptor of this process.
	for ctx.Err() == nil {
		err := unix.FcntlFlock(shm.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: walWriteLock, Len: 1})
		if err == nil {
			m.hit(faultLocked)
			defer f.ill()()
			pause(ctx, length)
			return
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			m.fail("lock the database: %v", err)
			return
		}
		pause(ctx, time.Millisecond)
	}
}

// full fills the disk for a while.
func (f *files) full(ctx context.Context, m *machine, length time.Duration) {
	if !f.fill.TryLock() {
		return
	}
	defer f.fill.Unlock()
	name := filepath.Join(f.dir, "ballast")
	ballast, err := os.Create(name)
	if err != nil {
		m.fail("fill the disk: %v", err)
		return
	}
	defer func() {
		if err := errors.Join(ballast.Close(), os.Remove(name)); err != nil {
			m.fail("empty the disk: %v", err)
		}
	}()
	defer f.ill()()
	var disk unix.Statfs_t
	if err := unix.Statfs(f.dir, &disk); err != nil {
		m.fail("%v", err)
		return
	}
	if err := unix.Fallocate(int(ballast.Fd()), 0, 0, int64(disk.Bfree)*disk.Bsize); err != nil && !errors.Is(err, unix.ENOSPC) { //nolint:gosec // less than a gigabyte
		m.fail("fill the disk: %v", err)
		return
	}
	m.hit(faultFull)
	pause(ctx, length)
}

// fell: a process may end, with a message, if it finds at startup that nothing can be stored. It has no other reason to
// end by itself.
func (f *files) fell(m *machine, n *node, c *child, last string) {
	if f.excused(last) {
		return
	}
	reason := fmt.Sprint(c.err)
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		reason = status.Signal().String()
	}
	m.fail("process %d ended by itself (%s): …%s", n.index, reason, last)
}

func (f *files) excused(last string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (f.sick > 0 || time.Since(f.healed) < fallen) && saidWhy(last)
}

// saidWhy reports whether a log ends with the reason why the service ended.
func saidWhy(last string) bool {
	return strings.HasSuffix(strings.TrimSpace(last), `"message":"serve"}`)
}
