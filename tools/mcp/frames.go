package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxJunkLines = 1000    // lines that are not messages, until the server is given up
	maxJunkLine  = 1 << 20 // bytes of one such line
	shownJunk    = 5       // such lines that are logged
	maxFlow      = 2000    // messages a second, sustained
	maxBurst     = 10000   // messages at once
)

// frames reads messages from a server's standard output: one JSON object or array per line. Other output, such as a
// banner or a progress bar, is skipped up to a limit. A line that is too long, or a flood of messages, ends the
// connection with a clear error.
type frames struct {
	f     io.ReadCloser
	r     *bufio.Reader
	limit int
	now   func() time.Time
	log   zerolog.Logger
	see   func(message []byte) // called with every message; may be nil

	rest []byte // the part of the current message that Read has not returned yet
	line []byte // buffer for the current message
	junk int
	flow bucket

	mu  sync.Mutex
	bad error
}

func newFrames(f io.ReadCloser, limit int, now func() time.Time, log zerolog.Logger) *frames {
	return &frames{
		f: f, r: bufio.NewReaderSize(f, 32<<10), limit: limit, now: now, log: log,
		flow: bucket{size: maxBurst, perSecond: maxFlow},
	}
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, err := f.nextFrame()
		if err != nil {
			return 0, f.recordFault(err)
		}
		f.rest = line
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// nextFrame returns the next message with its line break. The slice is valid until the next call.
func (f *frames) nextFrame() ([]byte, error) {
	if cap(f.line) > 256<<10 {
		f.line = nil // do not keep the memory of a large message for the life of the connection
	}
	f.line = f.line[:0]
	for {
		part, err := f.r.ReadSlice('\n')
		if len(f.line)+len(part) > f.limit {
			return nil, &guard.Error{Code: guard.InvalidInput, Message: tooLong(int64(f.limit))}
		}
		f.line = append(f.line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(f.line) > maxJunkLine && !looksLikeMessage(f.line) {
				return nil, junkError()
			}
			continue
		}
		if isMessage(f.line) {
			if !f.flow.takeTokens(f.now(), 1) {
				return nil, &guard.Error{Code: guard.ServerError, Message: "it floods us with messages"}
			}
			if err != nil && f.line[len(f.line)-1] != '\n' {
				f.line = append(f.line, '\n')
			}
			if mended, faults := mendMessage(f.line); len(faults) > 0 {
				f.log.Warn().Strs("faults", faults).Msg("the mcp server sent what cannot be read")
				f.line = append(append(f.line[:0], mended...), '\n')
			}
			if f.see != nil {
				f.see(f.line)
			}
			return f.line, nil
		}
		if err := f.skipLine(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		f.line = f.line[:0]
	}
}

// skipLine skips a line that is not a message.
func (f *frames) skipLine() error {
	line := bytes.TrimSpace(f.line)
	if len(line) == 0 {
		return nil
	}
	f.junk++
	if f.junk <= shownJunk {
		f.log.Warn().Str("text", guard.Line(string(line[:min(len(line), 400)]), 200)).
			Msg("the mcp server prints text other than messages on its standard output")
	}
	if f.junk > maxJunkLines {
		return junkError()
	}
	return nil
}

func junkError() error {
	return &guard.Error{
		Code:    guard.ServerError,
		Message: "it prints something else than MCP messages on its standard output",
	}
}

func looksLikeMessage(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}

// isMessage distinguishes a message from a log line in JSON.
func isMessage(line []byte) bool {
	if !looksLikeMessage(line) {
		return false
	}
	type head struct {
		Version string `json:"jsonrpc"`
	}
	var list []head
	if bytes.TrimLeft(line, " \t\r")[0] == '[' {
		if json.Unmarshal(line, &list) != nil || len(list) == 0 {
			return false
		}
	} else {
		list = make([]head, 1)
		if json.Unmarshal(line, &list[0]) != nil {
			return false
		}
	}
	for _, h := range list {
		if h.Version != "2.0" {
			return false
		}
	}
	return true
}

// recordFault remembers the first thing that was wrong with the output.
func (f *frames) recordFault(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		return io.EOF
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		f.mu.Lock()
		f.bad = e
		f.mu.Unlock()
	}
	return err
}

func (f *frames) firstFault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bad
}

func (f *frames) setDeadline(t time.Time) error {
	if d, ok := f.f.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return nil
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.f.Close() }

// bucket is a token bucket. Its zero value lets nothing through. It is not safe for concurrent use.
type bucket struct {
	size, perSecond float64
	used            float64
	last            time.Time
}

// takeTokens takes n tokens. It returns false, and takes none, when there are fewer.
func (b *bucket) takeTokens(now time.Time, n float64) bool {
	if !b.last.IsZero() {
		b.used = max(0, b.used-b.perSecond*max(0, now.Sub(b.last).Seconds()))
	}
	b.last = now
	if b.used+n > b.size {
		return false
	}
	b.used += n
	return true
}
