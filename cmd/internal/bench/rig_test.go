//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// setup is a deployment: where state is kept, how many processes there are, and how updates reach them.
type setup struct {
	engine    string // sqlite or postgres
	processes int
	webhook   bool
}

const (
	sqlite   = "SQLite"
	postgres = "PostgreSQL"
)

func (s setup) intake() string {
	if s.webhook {
		return "webhook"
	}
	return "polling"
}

// durable are the settings of a server that survives a power failure, unlike a test server.
var durable = []string{"fsync=on", "full_page_writes=on", "shared_buffers=256MB", "autovacuum_naptime=1min"}

// loadPlaces is the maximum number of concurrent turns of all processes together: more than the people who are waiting
// at any moment for a model that takes a second.
const loadPlaces = 4096

// rig is a running deployment.
type rig struct {
	setup
	world     *world
	processes []*process
	cluster   *pgtest.Cluster // nil with SQLite
	database  string
	dir       string // of the last process
}

// newRig starts the processes of a deployment and waits until updates reach them. They end with the test.
func newRig(ctx context.Context, tb testing.TB, path string, s setup, w *world, model string, cluster *pgtest.Cluster) (*rig, error) {
	tb.Helper()
	r := &rig{setup: s, world: w}
	if s.engine == postgres {
		r.cluster, r.database = cluster, cluster.Database(tb, "")
		w.environment = append(w.environment, "ZEPH_DATABASE_URL="+cluster.URL(r.database), "ZEPH_REDIS_URL="+redistest.Run(tb).URL())
	}
	w.environment = append(w.environment, "ZEPH_AGENT_CONCURRENCY="+strconv.Itoa(loadPlaces/s.processes))
	if s.processes > 1 {
		w.environment = append(w.environment, "ZEPH_WORKSPACES_SHARED=true", "ZEPH_WORKSPACES_DIR="+tb.TempDir())
	}
	if s.webhook {
		w.environment = append(w.environment, "ZEPH_TELEGRAM_WEBHOOK_URL=http://balancer.invalid/updates")
	}
	var hooks []string
	for range s.processes {
		address, err := freeAddress(ctx)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, address)
	}
	w.hooks.spread(hooks...)
	for i := range s.processes {
		r.dir = tb.TempDir()
		p, err := launch(tb, path, r.dir, model, w, "ZEPH_TELEGRAM_WEBHOOK_LISTEN="+hooks[i])
		if err != nil {
			return nil, err
		}
		tb.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it has ended, unless the test failed
		r.processes = append(r.processes, p)
	}
	if !s.webhook {
		return r, w.listening(ctx)
	}
	for i, address := range hooks {
		if err := r.processes[i].answers(ctx, address); err != nil {
			return nil, err
		}
	}
	return r, w.fake.WaitFor(ctx, func() bool { return len(w.fake.CallsOf("setWebhook")) > 0 })
}

// freeAddress returns an address on which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// answers waits until the process listens on an address.
func (p *process) answers(ctx context.Context, address string) error {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-p.exited:
			return fmt.Errorf("the process has ended: %w", errors.Join(err, errors.New("before it listened")))
		default:
		}
		wait(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("nobody listens: %w", err)
		}
	}
}

// end stops all processes, as a deployment does.
func (r *rig) end(ctx context.Context) error {
	var errs []error
	for _, p := range r.processes {
		errs = append(errs, p.end(ctx))
	}
	return errors.Join(errs...)
}

// toll is the resources that a deployment has used on its machines so far.
type toll struct {
	at          time.Time
	cpu         time.Duration // of the service
	database    time.Duration // … of PostgreSQL
	written     int64         // bytes that went to the disk, or into PostgreSQL's log
	stored      int64         // bytes of the database with its indexes, at this moment
	connections int64         // to PostgreSQL, at this moment
	commits     int64         // of PostgreSQL, those of transactions that only read too
	rows        int64         // that scans of tables and indexes of PostgreSQL returned
	memory      float64       // MB of the largest process, at this moment
}

func (r *rig) toll(ctx context.Context) (t toll, err error) {
	t.at = time.Now()
	for _, p := range r.processes {
		cpu, err := p.cpu()
		if err != nil {
			return t, err
		}
		memory, err := p.memory("VmRSS")
		if err != nil {
			return t, err
		}
		written, err := ioCounter(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid), "write_bytes:")
		if err != nil {
			return t, err
		}
		t.cpu, t.memory = t.cpu+cpu, max(t.memory, memory)
		if r.cluster == nil {
			t.written += written
		}
	}
	if r.cluster != nil {
		return t, r.serverToll(ctx, &t)
	}
	for _, name := range []string{"zephbot.db", "zephbot.db-wal"} {
		file, err := os.Stat(filepath.Join(r.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return t, err
		}
		if err == nil {
			t.stored += file.Size()
		}
	}
	return t, nil
}

// serverToll adds what PostgreSQL has used. The times of a server process that has ended are lost; those of a pool do
// not end.
func (r *rig) serverToll(ctx context.Context, t *toll) error {
	pids, err := r.cluster.Numbers(ctx, r.database, "SELECT pid::bigint FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
	if err != nil {
		return err
	}
	for _, pid := range pids {
		cpu, err := cpuOf(int(pid))
		if err != nil {
			return err
		}
		t.database += cpu
	}
	const (
		log     = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
		size    = "SELECT pg_database_size(current_database())"
		clients = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
		commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
		rows    = "SELECT tup_returned FROM pg_stat_database WHERE datname = current_database()"
	)
	for query, value := range map[string]*int64{
		log: &t.written, size: &t.stored, clients: &t.connections, commits: &t.commits, rows: &t.rows,
	} {
		got, err := r.cluster.Numbers(ctx, r.database, query)
		if err != nil {
			return err
		}
		*value = got[0]
	}
	return nil
}

// cpuOf returns the processor time of a process so far; 0 if there is no /proc, or the process has ended.
func cpuOf(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // after the name, which may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("the process has no times")
	}
	var ticks int64
	for _, field := range fields[11:13] { // user and system time
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100, nil
}
