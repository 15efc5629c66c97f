//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
)

const (
	// endsWithin is how long a process may take to end when it is told to: the turns have 18 s, the outbox 5 s.
	endsWithin = 40 * time.Second
	// restartPause is how long the supervisor waits before it restarts a process.
	restartPause = 200 * time.Millisecond
)

// States of a process.
const (
	down   = "down"
	up     = "up"
	frozen = "stopped by SIGSTOP"
	dying  = "killed"
	ending = "told to end"
)

// node is one place for a process: its directory, its log, and the supervisor that restarts it whenever it has ended.
type node struct {
	m     *machine
	index int
	dir   string
	log   *os.File

	mu    sync.Mutex
	child *child
	state string
	since time.Time // when it entered the state
	lives int
	hook  string   // address of its webhook; "" where updates are polled
	own   []string // how processes ended that were not told to
}

func newNode(m *machine, index int) *node {
	n := &node{m: m, index: index, dir: m.store.home(m, index), state: down}
	var err error
	for _, dir := range []string{n.dir, m.workspaces()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	if n.log, err = os.OpenFile(n.logName(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = n.log.Close() })
	if m.front != nil {
		n.hook = m.front.listen(m.t)
	}
	return n
}

func (n *node) logName() string { return filepath.Join(n.m.dir, fmt.Sprintf("process%d.log", n.index)) }

// journal is a log that is too long to be kept in memory.
type journalFile struct{ *os.File }

// String returns the end of the log.
func (f journalFile) String() string { return tail(f.Name(), 4000) }

// tail reads the last bytes of a file, at most this many.
func tail(name string, most int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	raw := make([]byte, min(most, info.Size()))
	if _, err := f.ReadAt(raw, info.Size()-int64(len(raw))); err != nil {
		return err.Error()
	}
	return string(raw)
}

// run keeps a process running until ctx ends, and ends the last one as a deployment does.
func (n *node) run(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := n.next(ctx)
		if err == nil {
			err = c.begin(n.m.t)
		}
		if err != nil {
			n.m.fail("process %d does not start: %v", n.index, err)
			return
		}
		n.begun(c)
		select {
		case <-c.exited:
		case <-ctx.Done():
			n.term()
		}
		n.await(c)
		pause(ctx, restartPause)
	}
}

// next prepares the next process.
func (n *node) next(ctx context.Context) (*child, error) {
	n.mu.Lock()
	l := life{n.index, n.lives + 1}
	n.mu.Unlock()
	if err := os.WriteFile(filepath.Join(n.dir, "zephbot.toml"), []byte(n.m.config(n, l)), 0o600); err != nil {
		return nil, err
	}
	c, err := newChild(ctx, n.dir, []string{"ZEPH_DATA_DIR=" + n.dir, laneVariable + "=1"}, journalFile{n.log})
	if err == nil {
		c.heard = func(line string) { n.m.diary.heard(l, line) }
	}
	return c, err
}

func (n *node) begun(c *child) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.child, n.state, n.since = c, up, time.Now()
	n.lives++
}

// await waits for the end of a process and checks that it was the intended one.
func (n *node) await(c *child) {
	for {
		select {
		case <-c.exited:
			n.ended(c)
			return
		case <-time.After(time.Second):
		}
		n.mu.Lock()
		late := n.state == ending && time.Since(n.since) > endsWithin
		n.mu.Unlock()
		if late {
			n.m.fail("process %d was told to end and goes on after %s", n.index, endsWithin)
			_ = c.cmd.Process.Kill()
		}
	}
}

// ended records how a process ended.
func (n *node) ended(c *child) {
	_ = c.stdin.Close() // nobody reads it any more
	n.mu.Lock()
	state := n.state
	n.state, n.since = down, time.Now()
	over := silence{life: life{n.index, n.lives}, from: n.since}
	n.mu.Unlock()
	if state != dying && state != ending { // others considered it dead some time ago
		over.from, over.doubt = over.from.Add(-fallen), true
	}
	n.m.diary.silent(over)
	last := tail(n.logName(), 600)
	switch {
	case state == dying && c.killed():
	// by the signal itself: it had not installed its handler yet
	case state == ending && (c.err == nil || c.ended(syscall.SIGTERM)):
	case state == ending && n.m.store.excused(last):
	case state == ending:
		n.m.fail("process %d was told to end and ended with %v: …%s", n.index, c.err, last)
	default:
		n.mu.Lock()
		n.own = append(n.own, fmt.Sprintf("%v: …%s", c.err, last))
		n.mu.Unlock()
		n.m.store.fell(n.m, n, c, last)
	}
}

// turn changes the state of a running process, and reports whether it was running.
func (n *node) turn(state string) *child {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != up {
		return nil
	}
	n.state, n.since = state, time.Now()
	if state != ending {
		n.m.diary.silent(silence{life: life{n.index, n.lives}, from: n.since, frozen: state == frozen})
	}
	return n.child
}

// kill ends the process like a power failure.
func (n *node) kill() {
	if c := n.turn(dying); c != nil {
		n.m.hit(faultKill)
		_ = c.cmd.Process.Kill()
	}
}

// term ends the process like a deployment.
func (n *node) term() {
	if c := n.turn(ending); c != nil {
		n.m.hit(faultTerm)
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// stop pauses the process for a while, in the middle of whatever it does.
func (n *node) stop(ctx context.Context, length time.Duration) {
	c := n.turn(frozen)
	if c == nil {
		return
	}
	n.mu.Lock()
	l := life{n.index, n.lives}
	n.mu.Unlock()
	n.m.hit(faultStop)
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	n.m.working.Go(func() {
		pause(ctx, length)
		n.mu.Lock()
		if n.state == frozen {
			n.state, n.since = up, time.Now()
		}
		n.mu.Unlock()
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		n.m.diary.again(l, time.Now())
	})
}

// workspaces is the directory that all processes share.
func (m *machine) workspaces() string { return filepath.Join(m.dir, "workspaces") }

// config is the configuration of a process. Commands that begin with "echo free" run without asking, all others need an
// approval. The anomaly detector is off: it would rightly block the shell after several interrupted calls.
func (m *machine) config(n *node, l life) string {
	var users, chats []string
	for _, p := range m.talkers {
		users = append(users, fmt.Sprint(p.person))
		if p.chat < 0 {
			chats = append(chats, fmt.Sprint(p.chat))
		}
	}
	hook := ""
	if m.front != nil {
		hook = fmt.Sprintf("webhook_url = \"http://front.example/updates\"\nwebhook_listen = %q", n.hook)
	}
	return fmt.Sprintf(`
[telegram]
%s
merge_ms = 0
token = %q
api_url = %q
allowed_users = [%s]
allowed_chats = [%s]
[workspaces]
dir = %q
shared = %v
[llm]
timeout = "30s"
idle_timeout = "6s"
[[llm.providers]]
name = "main"
type = "openai"
model = "oracle"
max_tokens = %d
input_usd_per_mtok = %d
output_usd_per_mtok = %d
api_key = "opens-nothing"
base_url = "%s/%s/v1"
[[tools.permissions.bash]]
pattern = "echo free *"
action = "allow"
[[tools.permissions.bash]]
pattern = "*"
action = "ask"
[tools.anomaly]
enabled = false
%s%s%s`, hook, m.fake.Token(), m.url, strings.Join(users, ", "), strings.Join(chats, ", "), m.workspaces(), m.shared, longestAnswer, ledgertest.InputUSD, ledgertest.OutputUSD, m.oracle.URL, l, m.limits(), m.bench.config(l), m.store.config(m, n))
}
