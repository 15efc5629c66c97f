package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rs/zerolog"
)

// maxFrame is how many bytes a message of the editor may have; the library reads no longer ones.
const maxFrame = 10<<20 - 1

// maxQueued is how many bytes may wait for an editor that does not read.
const maxQueued = 64 << 20

// sieve passes on the lines that are messages of the protocol, and answers the others: the library would drop what is
// no JSON without an answer, and end the connection at a line that is too long.
type sieve struct {
	in      io.Reader
	out     io.Writer
	log     zerolog.Logger
	cancels *cancelRequests // told of each message; nil = nobody is
}

// copyLines passes lines on until the input ends; the error is io.EOF or that of the input.
func (g sieve) copyLines(to io.Writer) error {
	in := bufio.NewReaderSize(g.in, 64<<10)
	for {
		line, size, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 {
			if problem := judgeLine(line, size); problem != nil {
				g.refuseLine(line, problem)
			} else if err := g.passLine(to, line); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// passLine passes on a message. What it cancels is known before the library cancels it.
func (g sieve) passLine(to io.Writer, line []byte) error {
	if g.cancels != nil {
		g.cancels.observe(line)
	}
	_, err := to.Write(append(line, '\n'))
	return err
}

// readLine reads a line without its end. Of one that is too long only the beginning is kept; size is its length.
func readLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if room := maxFrame + 1 - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), size, err
	}
}

// problem is an error object of JSON-RPC.
type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// judgeLine returns what is wrong with a line; nil = it can be passed on.
func judgeLine(line []byte, size int) *problem {
	switch first := bytes.TrimSpace(line)[0]; {
	case size > maxFrame:
		return &problem{-32600, fmt.Sprintf("a message has at most %d bytes; this one has %d", maxFrame, size)}
	case !json.Valid(line):
		return &problem{-32700, "a line that is no JSON"}
	case first == '[':
		return &problem{-32600, "batches are not supported: send one message a line"}
	case first != '{':
		return &problem{-32600, "a message is a JSON object"}
	}
	return judgeParts(line)
}

// judgeParts returns what is wrong with the parts of a JSON object; nil = it is a message.
func judgeParts(line []byte) *problem {
	var head struct {
		Method any             `json:"method"`
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return &problem{-32600, "a message that cannot be read"}
	}
	method, named := head.Method.(string)
	switch {
	case head.Method != nil && !named:
		return &problem{-32600, "method is a string"}
	case len(head.ID) > 0 && bytes.IndexByte([]byte("{[tf"), head.ID[0]) >= 0:
		return &problem{-32600, "id is a string, a number or null"}
	case method != "":
		return nil
	case len(head.Error) > 0 && !errorObject(head.Error):
		return &problem{-32600, "error is an object with code and message"}
	case len(head.ID) == 0 || head.Result == nil && head.Error == nil:
		return &problem{-32600, "a message has a method, or an id with a result or an error"}
	}
	return nil
}

// errorObject reports whether the error of a response has the form that JSON-RPC gives it.
func errorObject(raw json.RawMessage) bool {
	var e *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	return json.Unmarshal(raw, &e) == nil
}

// refuseLine answers a line that is no message. The id is that of the line if it has one.
func (g sieve) refuseLine(line []byte, p *problem) {
	g.log.Warn().Int("code", p.Code).Str("problem", p.Message).Msg("a message of the editor cannot be read")
	raw, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *problem        `json:"error"`
	}{"2.0", idOf(line), p})
	if err != nil {
		return // the id was checked; nothing else can fail
	}
	_, _ = g.out.Write(append(raw, '\n')) // an editor that does not read is found by the queue
}

// maxHead is in how many bytes at the beginning of a message its id is looked for.
const maxHead = 64 << 10

// idOf returns the id of a message that may be incomplete; null if it has none that is a string or a number.
func idOf(line []byte) json.RawMessage {
	none := json.RawMessage("null")
	dec := json.NewDecoder(bytes.NewReader(line[:min(len(line), maxHead)]))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return none
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return none
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return none
		}
		if key != "id" {
			continue
		}
		if value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
			return value
		}
		return none
	}
	return none
}

// queue is what waits to be written: nothing that works on a turn waits for an editor that does not read.
type queue struct {
	to       io.Writer
	broken   chan struct{}     // closed when nothing can be written any more
	answered func(line []byte) // told of each message once it is queued; nil = nobody is. It must not block

	mu     sync.Mutex
	more   *sync.Cond
	lines  [][]byte
	size   int
	closed bool
	failed bool
}

func newQueue(to io.Writer) *queue {
	q := &queue{to: to, broken: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
	return q
}

// errClosed means that the editor does not read any more.
var errClosed = errors.New("the editor does not read any more")

// Write implements io.Writer: each call is one message.
func (q *queue) Write(line []byte) (int, error) {
	n, err := q.enqueue(line)
	if err == nil && q.answered != nil {
		q.answered(line)
	}
	return n, err
}

func (q *queue) enqueue(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.failed {
		return 0, errClosed
	}
	if q.size += len(line); q.size > maxQueued {
		q.giveUp()
		return 0, errClosed
	}
	q.lines = append(q.lines, bytes.Clone(line))
	q.more.Signal()
	return len(line), nil
}

// giveUp gives up; the caller holds the lock.
func (q *queue) giveUp() {
	if !q.failed {
		q.failed = true
		close(q.broken)
	}
	q.more.Signal()
}

// writeQueued writes until close is called and everything is written, or writing fails.
func (q *queue) writeQueued() {
	for {
		q.mu.Lock()
		for len(q.lines) == 0 && !q.closed && !q.failed {
			q.more.Wait()
		}
		lines := q.lines
		q.lines, q.size = nil, 0
		over := q.failed || len(lines) == 0
		q.mu.Unlock()
		if over {
			return
		}
		if _, err := q.to.Write(bytes.Join(lines, nil)); err != nil {
			q.mu.Lock()
			q.giveUp()
			q.mu.Unlock()
			return
		}
	}
}

// closeQueue lets run end.
func (q *queue) closeQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}
