// Package audit is the outermost stage of the chain: it writes one JSON line for every call that was decided, and one
// for every request that a tool sent.
//
// The lines form a hash chain. The last field of a line is hash: SHA-256 in hex over the bytes of the line without that
// field. prev_hash is the hash of the line before, and is absent in the first one. A line that was changed, removed,
// inserted or moved breaks the chain, and Verify finds it. If lines are cut off at the end, or the whole file is
// replaced, the chain is intact. Both are found with the [Mark], which says how far the log had come and is stored
// outside of the file, see [Anchor].
//
// A call that may change something has a line before it runs (kind started) and one after it. A line is written to the
// file before the result of the call is returned, so it survives a crash of the process. It is flushed to the disk at
// most one second later and on Close, after which it also survives a crash of the machine; the mark follows. With
// Options.Required, a call whose line cannot be written is refused.
//
// Only one process at a time writes a file. A file that is moved away (logrotate, mv) is rotated: the next line goes to
// a new file, which continues the chain. A file that is removed, emptied or truncated is damaged, and the log says so
// in a line that Verify always reports.
package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// syncAfter is how long a written line may take to reach the disk.
const syncAfter = time.Second

// complainEvery is the minimum time between two log entries about a log that cannot be written.
const complainEvery = time.Minute

// Redactor removes secrets from what is written. It is safe for concurrent use and does not change its argument.
type Redactor interface {
	Value(v any) any
	String(s string) string
}

// Options configures a Log. Either Path or Writer is needed.
type Options struct {
	// Path of the file; it is created with mode 0600, and its directory with 0700.
	Path string
	// Writer receives the lines instead of a file (destination stdout). The chain then begins with this process. Writer
	// is not closed.
	Writer io.Writer
	// Redactor may be nil.
	Redactor Redactor
	// ID names the writing process in the lines; "" = random.
	ID string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log receives errors about lines that could not be written, once a minute.
	Log zerolog.Logger
	// Required refuses calls whose line cannot be written: see Middleware.
	Required bool
	// Anchor stores the mark of the file at Path; nil = no mark is stored, and lines cut off at the end are not
	// noticed.
	Anchor Anchor
	// Rotation is when the file is rotated; the zero value is never.
	Rotation Rotation
}

// Log writes the audit lines. It is safe for concurrent use. A nil *Log writes nothing.
type Log struct {
	redactor Redactor
	id       string
	now      func() time.Time
	log      zerolog.Logger
	path     string // "" with Options.Writer
	required bool
	anchor   Anchor // nil = none
	rotation Rotation

	mu         sync.Mutex // guards the fields below
	chain                 // what is written
	gaps                  // what is not
	failures   int
	complained time.Time
	timer      *time.Timer // set while lines wait for the disk
	closed     bool

	syncing sync.Mutex // held while the file is flushed or closed
	tending sync.Mutex // held while earlier files are rewritten or removed; locked before mu
}

// chain is the file, or the writer, and how far the lines in it go.
type chain struct {
	out     io.Writer
	file    *os.File // nil with Options.Writer
	durable bool     // file is a regular file and can be flushed
	prev    string
	lines   int64  // of the whole chain, if known
	size    int64  // of the file, as this process left it
	end     int64  // end of the last complete line of the file
	day     string // of the first line of the file
}

// gaps are what the next line has to account for.
type gaps struct {
	// bytes after the last good line that do not form a line; a marker before the next line reports them
	torn    *torn
	markers []*record // written before the next line
	lost    int       // lines lost since the last one that was written
}

// errClosed means that the log was closed.
var errClosed = errors.New("audit log is closed")

// ErrHeld means that another process has the log open.
var ErrHeld = errors.New("another process writes this audit log; give each process its own file (audit.destination)")

// New opens the log. With Path, it locks the file for this process and continues the chain after the last line.
func New(o Options) (*Log, error) {
	l := &Log{redactor: o.Redactor, id: o.ID, now: o.Now, log: o.Log, required: o.Required}
	if l.now == nil {
		l.now = time.Now
	}
	if l.id == "" {
		l.id = rand.Text()[:16]
	}
	switch {
	case o.Writer != nil && o.Path != "":
		return nil, errors.New("audit: both a path and a writer are given; want one")
	case o.Writer != nil:
		l.out = o.Writer
		return l, nil
	case o.Path == "":
		return nil, errors.New("audit: neither a path nor a writer is given; want one")
	}
	l.path, l.anchor, l.rotation = o.Path, o.Anchor, o.Rotation
	if err := l.openLog(); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return l, nil
}

// Close flushes the file to the disk and unlocks it. Lines written later count as failures.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	l.syncing.Lock() // waits for a flush in progress
	defer l.syncing.Unlock()
	var err error
	if l.durable {
		err = errors.Join(l.file.Sync(), l.storeMark(l.currentMark()))
		unlockFile(l.file)
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("close audit log: %w", err)
	}
	return nil
}

// Failures returns the number of lines that could not be written since New.
func (l *Log) Failures() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

// Middleware returns the stage. A call that waits for a person, and a probe, write no line.
//
// The stage changes the outcome of a call in one case: if the log is required, the line cannot be written, and the call
// only read, the result is withheld. A call that may have changed something is refused earlier, by Started. Once it has
// run, hiding its outcome would not help.
func (l *Log) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		res, err := next(ctx, call)
		if call.Probe {
			return res, err
		}
		if failed := l.recordCall(call, res, err); failed != nil && err == nil && l.required && !mayChange(call) {
			return nil, unrecordedError(failed)
		}
		return res, err
	}
}

// Started must be called just before a tool runs. For a call that may change something, it writes a line of the kind
// started. Its error is a *tools.Error and occurs only if the log is required and cannot be written. The call must not
// run then.
func (l *Log) Started(call *tools.Call) error {
	if l == nil {
		return nil
	}
	var err error
	if mayChange(call) {
		r := l.callRecord(call)
		r.Kind, r.Args = kindStarted, nil // the line at its end has the arguments
		if t := call.Trail; t != nil {
			r.Rule, r.ApprovedBy = l.boundText(t.Rule), t.ApprovedBy
		}
		err = l.appendRecords(r)
	} else if l.required {
		err = l.appendRecords() // account for lost lines before anything is done
	}
	if err != nil && l.required {
		return unrecordedError(err)
	}
	return nil
}

// mayChange reports whether a call may change something. Statements of an MCP server count only if the operator trusts
// it. A call that runs where it can change nothing changes nothing.
func mayChange(call *tools.Call) bool {
	if call.Trail != nil && call.Trail.Reading {
		return false
	}
	return !call.Def.ReadOnly || call.Def.Server != "" && !call.Def.Trusted
}

// unrecordedError returns the error for a call that could not be recorded.
func unrecordedError(err error) *tools.Error {
	e := tools.Refused(
		reason.New(reason.AuditUnwritable),
		"Tell the person that an admin has to look at the audit log of this service; do not try other tools.",
	)
	e.Err = err
	return e
}

// Record writes the lines of a call that ended with res and err: first its requests, then the call. The stage does this
// for every call in the chain. Callers need Record only for calls that were never in the chain, such as one that was
// cancelled while it waited.
func (l *Log) Record(call *tools.Call, res *tools.Result, err error) {
	_ = l.recordCall(call, res, err) // append counts and logs the error
}

// Keep is Record for callers that keep the call until its lines are written. After an error they are not.
func (l *Log) Keep(call *tools.Call, res *tools.Result, err error) error {
	return l.recordCall(call, res, err)
}

func (l *Log) recordCall(call *tools.Call, res *tools.Result, err error) error {
	if l == nil || isUndecided(err) {
		return nil
	}
	line := l.resultRecord(call, res, err)
	if err := l.appendRecords(append(l.egressRecords(call), line)...); err != nil {
		return err
	}
	if call.Trail != nil {
		call.Trail.Audit = line.hash
	}
	return nil
}

// Interrupted records a call that had started when the process died. Its outcome is unknown.
func (l *Log) Interrupted(call *tools.Call) {
	if l == nil {
		return
	}
	r := l.callRecord(call)
	r.Result = &outcome{Type: "error", Reason: "outcome unknown (interrupted)"}
	_ = l.appendRecords(r) // append counts and logs the error
}

func isUndecided(err error) bool {
	var pending *tools.Pending
	return errors.As(err, &pending) || errors.Is(err, tools.ErrProbed)
}

// linkRecords appends the records to buf, each chained to the one before.
func (l *Log) linkRecords(buf []byte, list []*record) ([]byte, []link, error) {
	prev := l.prev
	links := make([]link, 0, len(list))
	for _, r := range list {
		r.Writer, r.PrevHash = l.id, prev
		line, hash, err := sealRecord(r)
		if err != nil {
			return nil, nil, err
		}
		buf, prev, r.hash = append(buf, line...), hash, hash
		links = append(links, link{end: len(buf), hash: hash, time: r.Timestamp})
	}
	return buf, links, nil
}
