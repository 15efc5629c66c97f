package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// errChanged means that a content is not as long as it was when its request was made.
var errChanged = errors.New("a content has changed since it was measured")

// Fill puts the contents of a request where their marks are. They are read and encoded while the request is sent, so
// that a request with pictures needs no more memory than one of text, however large they are and however many requests
// are under way.
func (c *Contents) Fill(req *http.Request) error {
	if c == nil || len(c.found) == 0 {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return fmt.Errorf("read own request: %w", err)
	}
	segments, size := c.cutBody(body)
	open := func() io.ReadCloser {
		return &filledBody{ctx: req.Context(), open: c.open, rest: segments}
	}
	req.Body, req.ContentLength = open(), size
	req.GetBody = func() (io.ReadCloser, error) { return open(), nil }
	return nil
}

// segment is a piece of a request: a text, or a content.
type segment struct {
	text []byte
	hash string // "" = a text
	size int64
}

// cutBody splits a body at the marks. size is that of the filled body.
func (c *Contents) cutBody(body []byte) (list []segment, size int64) {
	type place struct {
		at   int
		hash string
	}
	var places []place
	for hash := range c.found {
		mark := []byte(c.found[hash].Data)
		for from := 0; ; from += len(mark) {
			i := bytes.Index(body[from:], mark)
			if i < 0 {
				break
			}
			from += i
			places = append(places, place{from, hash})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	from := 0
	for _, p := range places {
		content := c.found[p.hash]
		list = append(list, segment{text: body[from:p.at]}, segment{hash: p.hash, size: int64(content.Size)})
		size += int64(p.at-from) + int64(base64.StdEncoding.EncodedLen(content.Size))
		from = p.at + len(content.Data)
	}
	return append(list, segment{text: body[from:]}), size + int64(len(body)-from)
}

// filledBody is the body of a request with its contents. A transport may close it while it is read.
type filledBody struct {
	ctx  context.Context //nolint:containedctx // of the request, for the contents that are opened while it is sent
	open func(ctx context.Context, hash string) (io.ReadCloser, error)

	mu     sync.Mutex
	rest   []segment
	now    io.Reader // nil = the next segment begins
	source io.Closer // of now; nil = a text
	closed bool
}

// Read implements io.Reader.
func (f *filledBody) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if f.closed {
			return 0, http.ErrBodyReadAfterClose
		}
		if f.now == nil {
			if len(f.rest) == 0 {
				return 0, io.EOF
			}
			if err := f.nextSegment(); err != nil {
				return 0, err
			}
		}
		n, err := f.now.Read(p)
		if errors.Is(err, io.EOF) {
			err = f.endSegment()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// nextSegment begins the next segment.
func (f *filledBody) nextSegment() error {
	s := f.rest[0]
	f.rest = f.rest[1:]
	if s.hash == "" {
		f.now = bytes.NewReader(s.text)
		return nil
	}
	r, err := f.open(f.ctx, s.hash)
	if err != nil {
		return fmt.Errorf("open a content: %w", err)
	}
	f.now, f.source = &encoder{source: r, left: s.size}, r
	return nil
}

func (f *filledBody) endSegment() (err error) {
	if f.source != nil {
		err = f.source.Close()
	}
	f.now, f.source = nil, nil
	return err
}

// Close implements io.Closer.
func (f *filledBody) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.endSegment()
}

// encodeAtOnce is a multiple of three bytes, so that the pieces of base64 can be joined.
const encodeAtOnce = 12 << 10

// encoder is a content in base64. It fails if the content is not as long as expected.
type encoder struct {
	source io.Reader
	left   int64
	ready  []byte
	space  []byte
	ended  bool
}

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.ready) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		if err := e.encodeMore(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// encodeMore encodes the next piece.
func (e *encoder) encodeMore() error {
	if e.space == nil {
		e.space = make([]byte, encodeAtOnce+base64.StdEncoding.EncodedLen(encodeAtOnce))
	}
	raw := e.space[:encodeAtOnce]
	n, err := io.ReadFull(e.source, raw)
	if e.ended = err != nil; e.ended && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read a content: %w", err)
	}
	if e.left -= int64(n); e.left < 0 || e.ended && e.left != 0 {
		return errChanged
	}
	e.ready = base64.StdEncoding.AppendEncode(e.space[encodeAtOnce:encodeAtOnce], raw[:n])
	return nil
}
