package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

const session = "telegram:42" // of toolstest.Call

// gate returns a named pipe: a command that reads it waits until it is opened.
func gate(t *testing.T, k *kit) (open func()) {
	t.Helper()
	path := filepath.Join(k.dir, "gate")
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// completed waits for n completions of the session.
func completed(t *testing.T, k *kit, n int) []shell.Completion {
	t.Helper()
	var list []shell.Completion
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for len(list) < n {
		select {
		case <-t.Context().Done():
			t.Fatal("ended before the background runs")
		case <-poll.C:
			list = append(list, k.ledger.Completed(session)...)
		}
	}
	return list
}

func TestBackground(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		k := setup(t, shell.Options{Helper: helper, MaxBackgroundRuns: 1, Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") }})
		open := gate(t, k)
		ctx, cancel := context.WithCancel(t.Context())
		res, _, err := k.call(ctx, shell.In{Command: "read x < gate; echo $x s3cret; exit 3", Background: true})
		cancel() // the end of the turn is not the end of the run
		if err != nil {
			t.Fatal(err)
		}
		running := k.r.Background(session)
		if len(running) != 1 || !strings.Contains(res.Text, running[0].Short()) || running[0].Command == "" {
			t.Fatalf("running %+v, result %q", running, res.Text)
		}
		if got := k.r.Background("telegram:other"); len(got) != 0 {
			t.Errorf("another session sees %+v", got)
		}
		_, _, err = k.call(t.Context(), shell.In{Command: "true", Background: true})
		fails(t, err, tools.PolicyBlocked, "limit")
		open()
		done := completed(t, k, 1)
		if c := done[0]; c.Ended != "exit" || c.ExitCode == nil || *c.ExitCode != 3 || c.Text != "go [redacted]\n[exit code 3]" || c.ID != running[0].ID {
			t.Errorf("completion %+v", c)
		}
		if m := done[0].Message(); !strings.Contains(m, "ended: exit code 3") || !strings.Contains(m, "$ read x") {
			t.Errorf("message %q", m)
		}
		if got := k.ledger.Completed(session); len(got) != 0 {
			t.Errorf("handed over twice: %+v", got)
		}
		if got := k.r.Background(session); len(got) != 0 {
			t.Errorf("still running: %+v", got)
		}
	}
}

func TestBackgroundCancel(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{Helper: sandbox.Self})
	for range 2 {
		if _, _, err := k.call(t.Context(), shell.In{Command: "sleep 600", Background: true}); err != nil {
			t.Fatal(err)
		}
	}
	first := k.r.Background(session)[0]
	if n := k.r.Cancel("telegram:other", ""); n != 0 {
		t.Errorf("another session cancelled %d", n)
	}
	if n := k.r.Cancel(session, first.Short()); n != 1 {
		t.Errorf("cancelled %d, want 1", n)
	}
	if n, m := k.r.Cancel(session, first.ID), k.r.Active(session); n != 0 || m != 1 {
		t.Errorf("told %d once more, %d are active", n, m)
	}
	if c := completed(t, k, 1)[0]; c.Ended != "cancelled" || c.ExitCode != nil || c.ID != first.ID {
		t.Errorf("completion %+v", c)
	}
	if n := k.r.Cancel(session, ""); n != 1 {
		t.Errorf("cancelled %d, want the other one", n)
	}
	completed(t, k, 1)
}

func TestBackgroundTimeout(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{BackgroundTimeout: 200 * time.Millisecond})
	if _, _, err := k.call(t.Context(), shell.In{Command: "sleep 600", Background: true}); err != nil {
		t.Fatal(err)
	}
	if c := completed(t, k, 1)[0]; c.Ended != "timeout" || c.ExitCode != nil || !strings.Contains(c.Text, "stopped after 200ms") {
		t.Errorf("completion %+v", c)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{Helper: sandbox.Self})
	for range 3 {
		if _, _, err := k.call(t.Context(), shell.In{Command: `trap "" TERM; while :; do sleep 600; done`, Background: true}); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.r.Shutdown(gone); err == nil && len(k.ledger.Completed(session)) != 3 {
		t.Error("Shutdown did not wait, and said nothing")
	}
	if err := k.r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.r.Background(session); len(got) != 0 {
		t.Errorf("after the shutdown there are %+v", got)
	}
	_, _, err := k.call(t.Context(), shell.In{Command: "true", Background: true})
	fails(t, err, tools.PolicyBlocked, "shutting down")
	if _, err := k.tool.Run(t.Context(), toolstest.Call(shell.Name, `{"command":"true"}`)); err != nil {
		t.Errorf("a foreground run after it: %v", err)
	}
}

// TestAttackBackgroundSlots: one person, in however many conversations, leaves background runs to others.
func TestAttackBackgroundSlots(t *testing.T) {
	t.Parallel()
	for most, own := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 8: 6} {
		k := setup(t, shell.Options{MaxBackgroundRuns: most})
		start := func(caller, session string) error {
			call := toolstest.Call(shell.Name, args(t, shell.In{Command: "sleep 600", Background: true}))
			call.Origin.Caller, call.Origin.Session = caller, session
			_, err := k.tool.Run(t.Context(), call)
			return err
		}
		for i := range own {
			if err := start("telegram:1", fmt.Sprint("s", i)); err != nil {
				t.Fatal(err)
			}
		}
		fails(t, start("telegram:1", "another"), tools.PolicyBlocked, "limit")
		for i := range most - own {
			if err := start("telegram:2", "s0"); err != nil {
				t.Errorf("of %d, run %d of another person: %v", most, i, err)
			}
		}
		fails(t, start("telegram:3", "s1"), tools.PolicyBlocked, "limit")
	}
}

func TestNoBackground(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{MaxBackgroundRuns: -1})
	_, _, err := k.call(t.Context(), shell.In{Command: "true", Background: true})
	fails(t, err, tools.PolicyBlocked)
}

// ledger refuses on request, and remembers the rest.
type ledger struct {
	shell.Memory
	refuse error         // of Begun
	stuck  chan struct{} // Ended reports here and keeps nothing until its context ends; nil = it keeps
}

func (l *ledger) Begun(context.Context, shell.BackgroundRun) error { return l.refuse }

func (l *ledger) Ended(ctx context.Context, done shell.Completion) error {
	if l.stuck == nil {
		return l.Memory.Ended(ctx, done)
	}
	close(l.stuck)
	<-ctx.Done()
	return ctx.Err()
}

// TestUnnoted: a run whose end nobody would hear of is not started, and takes no place.
func TestUnnoted(t *testing.T) {
	t.Parallel()
	l := &ledger{refuse: errors.New("disk full")}
	k := setup(t, shell.Options{MaxBackgroundRuns: 1, Ledger: l})
	_, _, err := k.call(t.Context(), shell.In{Command: "touch it", Background: true})
	fails(t, err, tools.PermanentFailure, "was not started")
	l.refuse = nil
	if _, _, err := k.call(t.Context(), shell.In{Command: "sleep 600", Background: true}); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "it")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused one ran: %v", err)
	}
}

// TestShutdownHurries: a ledger that cannot record the end of a run does not block the end of the program forever.
func TestShutdownHurries(t *testing.T) {
	t.Parallel()
	l := &ledger{stuck: make(chan struct{})}
	k := setup(t, shell.Options{Ledger: l})
	if _, _, err := k.call(t.Context(), shell.In{Command: "true", Background: true}); err != nil {
		t.Fatal(err)
	}
	<-l.stuck
	if n := len(k.r.Background(session)); n != 1 {
		t.Errorf("%d runs under way while the end of one is being kept, want 1", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.r.Shutdown(gone); err == nil {
		t.Error("Shutdown waited longer than it may")
	}
	if err := k.r.Shutdown(t.Context()); err != nil {
		t.Errorf("once nobody waits for the ledger: %v", err)
	}
}

// TestRename: runs follow a session that has another name now.
func TestRename(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	if _, _, err := k.call(t.Context(), shell.In{Command: "sleep 600", Background: true}); err != nil {
		t.Fatal(err)
	}
	k.r.Rename(func(name string) string { return strings.Replace(name, "42", "43", 1) })
	if n, m := len(k.r.Background(session)), len(k.r.Background("telegram:43")); n != 0 || m != 1 {
		t.Errorf("%d runs under the old name and %d under the new one, want 0 and 1", n, m)
	}
	if n := k.r.Cancel("telegram:43", ""); n != 1 {
		t.Errorf("cancelled %d under the new name, want 1", n)
	}
}
