package adapter

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// What is taken in of one answer, in bytes. Together they keep the memory of an answer bounded however much a server
// sends: text and arguments are counted once, whatever wraps them is gone with its event.
const (
	// text and arguments: several times the longest answer of any model. What is more ends the answer like a token
	// limit
	MaxAnswer = 1 << 20
	MaxEvent  = 4 << 20   // one event of a stream, or one answer that is no stream
	MaxBody   = 256 << 20 // all that is read: a stream wraps a few bytes of text into some hundred
)

// Room says how much of a text may still be taken in when size bytes are there already, without cutting a character.
func Room(text string, size int) (part string, full bool) {
	room := max(0, MaxAnswer-size)
	if len(text) <= room {
		return text, false
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room], true
}

// Lines fails with ErrTooBig when a line of the body is longer than limit bytes. It keeps nothing of what passes.
func Lines(body io.ReadCloser, limit int) io.ReadCloser { return &lines{body: body, limit: limit} }

type lines struct {
	body          io.ReadCloser
	limit, length int
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.length += len(rest)
			rest = nil
		} else {
			l.length += end
			rest = rest[end+1:]
		}
		if l.length > l.limit {
			return 0, ErrTooBig
		}
		if end >= 0 {
			l.length = 0
		}
	}
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}

// Close implements io.Closer.
func (l *lines) Close() error { return l.body.Close() } //nolint:wrapcheck // a reader's own error
