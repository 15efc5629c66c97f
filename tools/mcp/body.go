package mcp

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// body limits the size and the rate of an HTTP answer. One goroutine may read while another closes it.
type body struct {
	r       io.ReadCloser
	release func() // called once, when it is closed
	limit   int64
	left    int64 // bytes left of a document; negative for a stream
	line    int64 // bytes of a stream since the last line break: a message is one line
	flow    bucket
	lines   bucket
	now     func() time.Time
	fault   func(*guard.Error) // called once with what is wrong with the answer
	once    sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		n, err := b.r.Read(p)
		if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
			b.line = int64(n - i - 1)
		} else if b.line += int64(n); b.line > b.limit {
			return 0, b.refuseBody(guard.InvalidInput, tooLong(b.limit))
		}
		now := b.now()
		if !b.flow.takeTokens(now, float64(n)) || !b.lines.takeTokens(now, float64(bytes.Count(p[:n], []byte{'\n'}))) {
			return 0, b.refuseBody(guard.ServerError, "it floods us with messages")
		}
		return n, err
	}
	if b.left == 0 {
		var one [1]byte
		n, err := b.r.Read(one[:])
		if n == 0 {
			return 0, err
		}
		return 0, b.refuseBody(guard.InvalidInput, tooLong(b.limit))
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *body) refuseBody(code guard.Code, text string) *guard.Error {
	e := &guard.Error{Code: code, Message: text}
	b.fault(e)
	return e
}

// tooLong returns the message for an answer that was cut off. It blames the call, because the model would get the same
// result from the same call.
func tooLong(limit int64) string {
	return fmt.Sprintf("its answer is longer than %d bytes, which is more than can be taken; ask for less", limit)
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.r.Close()
	b.once.Do(b.release)
	return err
}
