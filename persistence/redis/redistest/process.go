package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// patience is how long a test waits for a server; a busy machine is slow.
const patience = 40 * time.Second

// Process is a redis-server on loopback, without files unless the arguments say otherwise. Its methods are for the
// test's goroutine.
type Process struct {
	Port int
	Dir  string // working directory, deleted with the test

	tb     testing.TB
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
	wg     sync.WaitGroup
}

// Run starts a redis-server with further arguments and waits until it answers. If the program is not installed, the
// test is skipped, or fails in CI.
func Run(tb testing.TB, args ...string) *Process {
	tb.Helper()
	p := prepare(tb)
	p.args = append(p.args, args...)
	p.start("redis-server")
	p.Await("up", func(ctx context.Context) bool {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Addr())
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return p
}

func prepare(tb testing.TB) *Process {
	tb.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("ZEPH_CI") == "1" {
			tb.Fatal("redis-server is not installed, and CI must not skip")
		}
		tb.Skip("redis-server is not installed: the real server is not tested")
	}
	p := &Process{tb: tb, Port: port(tb), Dir: tb.TempDir()}
	tb.Cleanup(p.Kill)
	return p
}

// port returns an unused port.
func port(tb testing.TB) int {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on tcp
}

// Addr returns its address.
func (p *Process) Addr() string { return "127.0.0.1:" + strconv.Itoa(p.Port) }

// URL returns its URL, for a server without a password.
func (p *Process) URL() string { return "redis://" + p.Addr() }

// start starts the program, with arguments before those of the test.
func (p *Process) start(program string, first ...string) {
	p.tb.Helper()
	args := append(
		first,
		"--port",
		strconv.Itoa(p.Port),
		"--bind",
		"127.0.0.1",
		"--dir",
		p.Dir,
		"--save",
		"",
		"--logfile",
		filepath.Join(p.Dir, "log"),
	)
	p.cmd = exec.CommandContext(context.WithoutCancel(p.tb.Context()), program, append(args, p.args...)...)
	if err := p.cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	exited := make(chan struct{})
	p.exited = exited
	p.wg.Go(func() {
		defer close(exited)
		_ = p.cmd.Wait() // the log says why it ended
	})
}

// Kill ends it at once, without letting it save. A second Kill does nothing.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may have ended already
	}
	p.wg.Wait()
}

// Again restarts it after Kill, from the contents of its directory.
func (p *Process) Again() {
	p.tb.Helper()
	p.start("redis-server")
	p.Await("up again", func(ctx context.Context) bool { return p.Client().Ping(ctx).Err() == nil })
}

// Save keeps a copy of what it holds now, for Restore.
func (p *Process) Save() {
	p.tb.Helper()
	p.Do("SAVE")
	if err := os.Rename(filepath.Join(p.Dir, snapshot), filepath.Join(p.Dir, kept)); err != nil {
		p.tb.Fatal(err)
	}
}

// Restore restarts it after Kill with what it held at the last Save.
func (p *Process) Restore() {
	p.tb.Helper()
	name := filepath.Join(p.Dir, snapshot)
	if err := os.Rename(filepath.Join(p.Dir, kept), name); err != nil {
		p.tb.Fatal(err)
	}
	p.Again()
	if err := os.Rename(name, filepath.Join(p.Dir, kept)); err != nil {
		p.tb.Fatal(err)
	}
}

// Names of the file that a server reads when it starts, and of the copy of it that Save keeps.
const (
	snapshot = "dump.rdb"
	kept     = "kept.rdb"
)

// Pause stops it where it is, or lets it go on.
func (p *Process) Pause(pause bool) {
	p.tb.Helper()
	signal := syscall.SIGCONT
	if pause {
		signal = syscall.SIGSTOP
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.tb.Fatal(err)
	}
}

// Client returns a connection without a password, closed with the test.
func (p *Process) Client() *goredis.Client {
	c := goredis.NewClient(&goredis.Options{
		Addr:                     p.Addr(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		PoolSize:                 1,
	})
	p.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs a command on a server without a password.
func (p *Process) Do(args ...any) any {
	p.tb.Helper()
	out, err := p.Client().Do(p.tb.Context(), args...).Result()
	if err != nil {
		p.tb.Fatalf("%v: %v", args, err)
	}
	return out
}

// Await waits until so returns true.
func (p *Process) Await(what string, so func(ctx context.Context) bool) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.tb.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so(ctx) {
		select {
		case <-p.exited:
			p.tb.Fatalf("waited for a redis-server to be %s; it has ended:\n%s", what, p.log())
		case <-ctx.Done():
			p.tb.Fatalf("waited for a redis-server to be %s:\n%s", what, p.log())
		case <-tick.C:
		}
	}
}

func (p *Process) log() string {
	raw, err := os.ReadFile(filepath.Join(p.Dir, "log"))
	if err != nil {
		return fmt.Sprint("no log: ", err)
	}
	return string(raw)
}
