package record_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/record"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// process is one run of a process, with a Book over a log file.
type process struct {
	t     *testing.T
	store *bottest.Store
	path  string
	audit *audit.Log
	*record.Book
}

func live(t *testing.T, store *bottest.Store, path, owner string, others ...string) *process {
	t.Helper()
	log, err := audit.New(audit.Options{Path: path, ID: owner, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, store: store, path: path, audit: log}
	p.Book = record.New(record.Deps{
		Audit: log, Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Owner: owner,
		Lives:  func(owner string) bool { return strings.Contains(strings.Join(others, " "), owner) },
		Eldest: func() bool { return len(others) == 0 }, Now: time.Now, Log: zerolog.Nop(),
	})
	return p
}

func (p *process) die() {
	p.t.Helper()
	if err := p.audit.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// due stores a line together with what it describes.
func (p *process) due(tool string, failed error) []bot.Fact {
	p.t.Helper()
	facts := p.Due(&tools.Call{ID: "7", Tool: tool, Args: []byte(`{"id":"kind"}`), Trail: &tools.Trail{ApprovedBy: "telegram:1"}}, failed)
	if _, err := p.store.Apply(p.t.Context(), &bot.Change{Facts: facts}); err != nil {
		p.t.Fatal(err)
	}
	return facts
}

// left counts the lines that are due.
func (p *process) left() int {
	p.t.Helper()
	left, err := p.store.FactsOf(p.t.Context(), "audit_due", "", time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	return len(left)
}

// written checks that each of these is in the log once, and that nothing is due.
func (p *process) written(want ...string) {
	p.t.Helper()
	raw, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, w := range want {
		if n := strings.Count(string(raw), w); n != 1 {
			p.t.Errorf("%s is in the log %d times:\n%s", w, n, raw)
		}
	}
	if n := p.left(); n > 0 {
		p.t.Errorf("%d still due", n)
	}
}

// TestDue: a line that is stored together with what it describes reaches the log once, whenever the process dies, and a
// log that cannot be written loses no line.
func TestDue(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "audit.jsonl"), bottest.New()
	first := live(t, store, path, "first")
	first.due("never-written", nil)
	first.due("refused", &tools.Error{Category: tools.PolicyBlocked, Message: "no", Reason: reason.Plain("no")})
	first.die() // before it wrote anything
	second := live(t, store, path, "second")
	second.Settle(t.Context())
	second.written(`"tool":"never-written"`, `"reason":"no"`)
	facts := second.due("written", nil)
	second.Settle(t.Context())
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: facts}); err != nil { // it died before the line was marked as written
		t.Fatal(err)
	}
	second.die()
	third := live(t, store, path, "third")
	third.Settle(t.Context())
	third.Settle(t.Context())
	third.written(`"tool":"written"`)
	third.due("closed", nil)
	third.die()
	third.Settle(t.Context()) // the log can no longer be written
	if third.left() != 1 {
		t.Error("a line that could not be written is no longer due")
	}
	fourth := live(t, store, path, "fourth")
	fourth.Settle(t.Context())
	fourth.written(`"tool":"closed"`)
	fourth.die()
}

// TestDueOfAnother: a running process writes its own lines; the eldest process writes those of a dead one.
func TestDueOfAnother(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), bottest.New()
	first := live(t, store, filepath.Join(dir, "first.jsonl"), "first", "second")
	first.due("mine", nil)
	second := live(t, store, filepath.Join(dir, "second.jsonl"), "second", "first")
	second.Settle(t.Context())
	if second.left() != 1 {
		t.Error("the line of a running process was taken")
	}
	first.die()
	younger := live(t, store, filepath.Join(dir, "third.jsonl"), "third", "second")
	younger.Settle(t.Context())
	if younger.left() != 1 {
		t.Error("a younger process wrote the line")
	}
	second.die()
	younger.die()
	last := live(t, store, filepath.Join(dir, "last.jsonl"), "last")
	last.Settle(t.Context())
	last.written(`"tool":"mine"`)
	last.die()
}

// TestInterrupted: a line that was written, and could not be marked as written because the process was told to end, is
// not written again by the process that wrote it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "audit.jsonl"), bottest.New()
	p := live(t, store, path, "first")
	p.due("interrupted", nil)
	ctx, cancel := context.WithCancel(t.Context())
	p.Book = record.New(record.Deps{
		Audit: p.audit, Store: store, Keeper: facts.Keeper{Store: &ending{store, cancel}, Log: zerolog.Nop()}, Owner: "first",
		Lives: func(string) bool { return false }, Eldest: func() bool { return true }, Now: time.Now, Log: zerolog.Nop(),
	})
	p.Settle(ctx)
	if p.left() != 1 {
		t.Fatal("nothing was interrupted")
	}
	p.Settle(t.Context())
	p.written(`"tool":"interrupted"`)
	p.die()
}

// ending is a store that changes nothing once, because the process is told to end.
type ending struct {
	*bottest.Store
	cancel context.CancelFunc
}

func (e *ending) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	e.cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return e.Store.Apply(ctx, change)
}

// TestUnreadable: an unreadable line does not hold up the others.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "audit.jsonl"), bottest.New()
	p := live(t, store, path, "first")
	bad := bot.Fact{Bucket: "audit_due", Key: "0/first/x", Value: "{"}
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{bad}}); err != nil {
		t.Fatal(err)
	}
	p.due("good", nil)
	p.Record(&tools.Call{Tool: "over", Trail: &tools.Trail{}}, nil)
	p.Settle(t.Context())
	p.written(`"tool":"good"`, `"tool":"over"`)
	p.die()
}

// TestNoLog: without a log no line becomes due, lines from before it was disabled are dropped, and nothing fails.
func TestNoLog(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "audit.jsonl"), bottest.New()
	before := live(t, store, path, "first")
	before.due("old", nil)
	before.die()
	off := record.New(record.Deps{
		Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Owner: "off",
		Lives: func(string) bool { return false }, Eldest: func() bool { return true }, Now: time.Now, Log: zerolog.Nop(),
	})
	call := &tools.Call{Trail: &tools.Trail{}}
	off.Record(call, errors.New("x"))
	if facts := off.Due(call, errors.New("x")); facts != nil {
		t.Errorf("without a log got %v", facts)
	}
	off.Settle(t.Context())
	if before.left() != 0 {
		t.Error("a line remains due forever")
	}
}
