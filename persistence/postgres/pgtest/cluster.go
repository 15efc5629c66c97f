//go:build unix

// Package pgtest runs a PostgreSQL server for tests: Debian's programs, a cluster in a temporary directory, a Unix
// socket and no port. The cluster ends with the process that started it, even if that is killed. Proxy sits between a
// client and the server: it counts round trips and breaks connections.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// starting limits how long it takes to create a cluster and get an answer from it.
const starting = 60 * time.Second

// superuser owns every database of a cluster.
const superuser = "zephbot"

// settings make a cluster small and fast. It never has to survive a power failure: only our own processes are killed.
var settings = []string{
	"listen_addresses=", "fsync=off", "full_page_writes=off", "synchronous_commit=on",
	"shared_buffers=32MB", "max_connections=400",
	"logging_collector=off", "log_min_messages=panic", "autovacuum_naptime=5s", "deadlock_timeout=100ms",
}

// watchdog runs a server until its standard input ends, which happens when the process that started it ends, and then
// removes its directory.
const watchdog = `dir=$1; shift; "$@" & server=$!; cat >/dev/null; kill -QUIT $server; wait $server; rm -rf "$dir"`

// Cluster is a running server. Safe for concurrent use.
type Cluster struct {
	dir   string
	named atomic.Int64

	cmd  *exec.Cmd
	life io.Closer // the watchdog's standard input
}

// shared is the one cluster of a test process.
var shared struct {
	sync.Mutex
	cluster *Cluster
	err     error
}

// Main runs the tests of a package, ends the cluster that they used, if any, and returns the exit code of the process.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return max(code, 1)
		}
	}
	return code
}

// Shared returns the cluster of this test process, starting it at the first call. Without PostgreSQL on the machine,
// the test is skipped, or fails in CI (ZEPH_CI). A package that uses it must call Main.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = Start()
	}
	switch {
	case errors.Is(shared.err, errAbsent) && os.Getenv("ZEPH_CI") == "":
		tb.Skip("no PostgreSQL on this machine")
	case shared.err != nil:
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// errAbsent means that the machine has no PostgreSQL.
var errAbsent = errors.New("no PostgreSQL is installed below /usr/lib/postgresql or in PATH")

// programs finds the directory of initdb and postgres, of the newest version if there are several.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	version := func(path string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) > 0 {
		return filepath.Dir(found[0]), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errAbsent
}

// Program returns the path of a program of the server's version, such as pg_dump. It ends the test if there is none.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	bin, err := programs()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(bin, name)
	if _, err := os.Stat(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Start creates a cluster and waits until it answers. The caller must close it. Further settings, such as "fsync=on",
// override the defaults.
func Start(further ...string) (*Cluster, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "zephpg.") // short, because the name of a Unix socket is limited to 107 bytes
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if err := c.start(bin, further); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

func (c *Cluster) start(bin string, further []string) error {
	as, err := unprivileged(c.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(c.dir, "data")
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", superuser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.SysProcAttr = c.dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := []string{"-c", watchdog, "sh", c.dir, filepath.Join(bin, "postgres"), "-D", data, "-k", c.dir}
	for _, setting := range append(slices.Clone(settings), further...) {
		args = append(args, "-c", setting)
	}
	c.cmd = exec.Command("/bin/sh", args...) //nolint:noctx // it lives as long as the process; Close ends it
	c.cmd.Dir, c.cmd.SysProcAttr, c.cmd.Stderr = c.dir, as, os.Stderr
	if c.life, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := c.answers(ctx, filepath.Join(bin, "pg_isready")); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// answers waits until the server accepts connections.
func (c *Cluster) answers(ctx context.Context, program string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if exec.CommandContext(ctx, program, "-q", "-h", c.dir).Run() == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", ctx.Err())
		}
	}
}

// unprivileged returns the user for the server, because postgres refuses to run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if err := errors.Join(uidErr, gidErr, os.Chown(dir, uid, gid)); err != nil {
			return nil, err
		}
		credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids of the system
		return &syscall.SysProcAttr{Credential: credential}, nil
	}
	return nil, errors.New("there is no user postgres or nobody, and PostgreSQL does not run as root")
}

// Close ends the server and removes its files.
func (c *Cluster) Close() error {
	_ = c.life.Close() // the watchdog waits for the end of its input
	_ = c.cmd.Wait()   // it exits with the server's signal
	return os.RemoveAll(c.dir)
}

// Crash ends every session at once, without letting anything be stored that was not, and has the server start again
// from its log: what happens when one of its processes is killed. When it returns, the sessions have ended; the
// server answers again after a moment.
func (c *Cluster) Crash() error {
	pids, err := c.processes()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pids[len(pids)-1], syscall.SIGKILL); err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(starting); time.Now().Before(until); <-tick.C {
		now, err := c.processes()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pids[1:], func(pid int) bool { return slices.Contains(now[1:], pid) }) {
			return nil
		}
	}
	return errors.New("sessions of PostgreSQL outlive a crash")
}

// Pause stops every process of the server where it is, or lets them go on.
func (c *Cluster) Pause(pause bool) error {
	pids, err := c.processes()
	if err != nil {
		return err
	}
	signal := syscall.SIGCONT
	if pause {
		signal = syscall.SIGSTOP
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) { // a session that has ended
			return err
		}
	}
	return nil
}

// processes lists the server and, after it, its children: one for each session, and some of its own.
func (c *Cluster) processes() ([]int, error) {
	raw, err := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	server, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	raw, err = os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", server, server))
	if err != nil {
		return nil, err
	}
	pids := []int{server}
	for child := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Socket returns the path of the server's Unix socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// URL returns the URL of a database of the cluster.
func (c *Cluster) URL(database string) string {
	return address(c.dir, "", database)
}

// address returns the URL for a directory with a socket, or for a host and port.
func address(socket, host, database string) string {
	values := url.Values{"sslmode": {"disable"}}
	if socket != "" {
		values.Set("host", socket)
	}
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Host: host,
		Path: "/" + database, RawQuery: values.Encode(),
	}
	return u.String()
}

// Name returns a name for a database that no other test uses.
func (c *Cluster) Name() string { return fmt.Sprintf("t%d", c.named.Add(1)) }

// dial connects to the server for a Proxy.
func (c *Cluster) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket())
}
