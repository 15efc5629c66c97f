// Package audit is the outermost stage of the chain: one JSON line for every call that was decided, and one for every request a tool sent out.
//
// The lines form a hash chain. The last field of a line is hash: SHA-256 in hex over the line's bytes without that field; prev_hash is the hash
// of the line before and absent in the first one. An edited, removed, inserted or moved line breaks the chain, which Verify finds. Lines cut off
// at the end leave a shorter chain that is whole: keep the last hash elsewhere to notice that.
//
// A line is written to the file before the result of the call is returned, so it survives the process. It is flushed to the disk at most one
// second later and on Close, so it survives the machine from then on. One process at a time writes a file. Rotation is left to the operator:
// move the file away and restart; the new file begins a new chain.
package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
)

// syncAfter is how long a written line may wait for the disk.
const syncAfter = time.Second

// complainEvery is how often a log that cannot be written says so.
const complainEvery = time.Minute

// Redactor takes secrets out of what is written. It is safe for concurrent use and does not change its argument.
type Redactor interface {
	Value(v any) any
	String(s string) string
}

// Options configures a Log. Either Path or Writer is needed.
type Options struct {
	// Path of the file; it is created with mode 0600, and its directory with 0700.
	Path string
	// Writer takes the lines instead of a file (destination stdout); its chain begins with this process. It is not closed.
	Writer io.Writer
	// Redactor may be nil.
	Redactor Redactor
	// ID names the writing process in the lines; "" = random.
	ID string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log hears of lines that could not be written, once a minute.
	Log zerolog.Logger
}

// Log writes the audit lines. It is safe for concurrent use. A nil *Log writes nothing.
type Log struct {
	redactor Redactor
	id       string
	now      func() time.Time
	log      zerolog.Logger
	file     *os.File // nil with Options.Writer
	durable  bool     // file is a regular file, which can be flushed

	mu         sync.Mutex // guards what follows
	out        io.Writer
	prev       string
	torn       *torn // bytes after the last good line that are no line; a marker accounts for them before the next one
	lost       int   // lines that did not get through since the last one that did
	failures   int
	complained time.Time
	timer      *time.Timer // set while lines wait for the disk
	closed     bool

	syncing sync.Mutex // held while the file is flushed or closed
}

// ErrClosed is the error of a log that was closed.
var ErrClosed = errors.New("audit log is closed")

// New opens the log. With Path it takes the file for this process, and continues the chain where the last line ended.
func New(o Options) (*Log, error) {
	l := &Log{redactor: o.Redactor, id: o.ID, now: o.Now, log: o.Log}
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
	if err := l.open(o.Path); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return l, nil
}

func (l *Log) open(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	if err := l.take(f); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return nil
}

// take locks the file and reads where its chain ended.
func (l *Log) take(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l.out, l.file = f, f
	if !info.Mode().IsRegular() { // a pipe or a device has no past
		return nil
	}
	if err := lock(f); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return fmt.Errorf("restrict access: %w", err)
		}
	}
	l.durable = true
	last, err := readEnd(f, info.Size())
	if err != nil {
		return fmt.Errorf("read the last line: %w", err)
	}
	l.prev, l.torn = last.hash, last.torn
	if last.unterminated { // only the newline is missing: the line is whole
		if _, err := f.WriteString("\n"); err != nil {
			return fmt.Errorf("end the last line: %w", err)
		}
	}
	return nil
}

// Close flushes the file to the disk and gives it up. Lines written later are counted as failures.
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
	l.syncing.Lock() // a flush that has begun ends first
	defer l.syncing.Unlock()
	var err error
	if l.durable {
		err = l.file.Sync()
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("close audit log: %w", err)
	}
	return nil
}

// Failures counts the lines that could not be written since New.
func (l *Log) Failures() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

// Middleware is the stage. It never changes what a call returns. A call that waits for a person, and a probe, leave no line.
func (l *Log) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		res, err := next(ctx, call)
		if !call.Probe {
			l.Record(call, res, err)
		}
		return res, err
	}
}

// Record writes the lines of a call that ended with res and err: its requests first, then the call itself. The stage does this for every call
// that walked the chain; a caller needs it only for a call that never did, such as one that was cancelled while it waited.
func (l *Log) Record(call *tools.Call, res *tools.Result, err error) {
	if l == nil || undecided(err) {
		return
	}
	l.append(append(l.egress(call), l.line(call, res, err))...)
}

// Interrupted records a call that had started when the process died: nobody knows whether it did its work.
func (l *Log) Interrupted(call *tools.Call) {
	if l == nil {
		return
	}
	r := l.head(call)
	r.Result = &outcome{Type: "error", Reason: "outcome unknown (interrupted)"}
	l.append(r)
}

func undecided(err error) bool {
	var pending *tools.Pending
	return errors.As(err, &pending) || errors.Is(err, tools.ErrProbed)
}

// append writes records in one piece. Failing it counts and complains; the call is none the worse for it.
func (l *Log) append(list ...*record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	through, err := l.write(list)
	if err == nil {
		return
	}
	failed := len(list) - through
	l.failures += failed
	l.lost += failed
	if now := l.now(); l.complained.IsZero() || now.Sub(l.complained) >= complainEvery {
		l.complained = now
		l.log.Error().Err(err).Int("failures", l.failures).Msg("audit line not written")
	}
}

// write extends the chain by the records, after a marker when there is something to account for. It returns how many got through.
func (l *Log) write(list []*record) (through int, err error) {
	if l.closed {
		return 0, ErrClosed
	}
	marked := l.torn != nil || l.lost > 0
	var buf []byte
	if marked {
		if l.torn != nil && !l.torn.ended() {
			buf = append(buf, '\n')
		}
		list = append([]*record{l.marker()}, list...)
	}
	buf, links, err := l.link(buf, list)
	if err != nil {
		return 0, err
	}
	n, err := l.out.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	whole := written(links, n)
	rest := buf[:min(max(n, 0), len(buf))]
	if whole > 0 { // the chain goes on from the last line that is whole
		last := links[whole-1]
		l.prev, l.torn, rest = last.hash, nil, rest[last.end:]
		l.flushSoon()
	}
	if len(rest) > 0 {
		l.torn = l.torn.extend(rest)
	}
	if marked && whole > 0 {
		l.lost, whole = 0, whole-1
	}
	if err != nil {
		return whole, fmt.Errorf("write audit line: %w", err)
	}
	return whole, nil
}

// link is one line of a piece that is to be written: where it ends, and its hash.
type link struct {
	end  int
	hash string
}

// written is how many of the lines are whole within the first n bytes.
func written(links []link, n int) int {
	whole := 0
	for whole < len(links) && links[whole].end <= n {
		whole++
	}
	return whole
}

// link adds the records to buf, each bound to the one before.
func (l *Log) link(buf []byte, list []*record) ([]byte, []link, error) {
	prev := l.prev
	links := make([]link, 0, len(list))
	for _, r := range list {
		r.Writer, r.PrevHash = l.id, prev
		line, hash, err := seal(r)
		if err != nil {
			return nil, nil, err
		}
		buf, prev = append(buf, line...), hash
		links = append(links, link{end: len(buf), hash: hash})
	}
	return buf, links, nil
}

// flushSoon makes sure that what was written reaches the disk within syncAfter; one flush serves all lines written meanwhile.
func (l *Log) flushSoon() {
	if !l.durable || l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(syncAfter, l.flush)
}

func (l *Log) flush() {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	l.timer = nil // lines from now on need another flush
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return
	}
	if err := l.file.Sync(); err != nil {
		l.log.Error().Err(err).Msg("audit log not flushed to disk")
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
