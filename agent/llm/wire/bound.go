package wire

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// Limits of one answer, in bytes. Together they bound the memory of an answer however much a server sends: text and
// arguments are counted once, and what wraps them is discarded with its event.
const (
	// MaxAnswer bounds text and arguments, at several times the longest answer of any model. An answer that exceeds it
	// ends as if at a token limit.
	MaxAnswer = 1 << 20
	MaxEvent  = 4 << 20   // one event of a stream, or one answer that is not a stream
	MaxBody   = 256 << 20 // everything that is read: a stream wraps a few bytes of text in several hundred
)

// FitAnswer returns the part of a text that still fits after size bytes, without cutting a character.
func FitAnswer(text string, size int) (part string, full bool) {
	room := max(0, MaxAnswer-size)
	if len(text) <= room {
		return text, false
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room], true
}

// ErrWebPage is the failure of an address at which people are answered, and no programs: the answer is a page of HTML.
var ErrWebPage = errors.New("the server answered with a web page instead of a model's answer; " +
	"check base_url: its path, such as /v1, may be missing, or a proxy or a login page is in between")

// DamagedEvent reports whether data of a stream's event that is not JSON was a piece of an answer, so that something is
// missing without it. Anything else is a keepalive in some form.
func DamagedEvent(data []byte) bool {
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	for _, field := range []string{`"choices"`, `"delta"`, `"type"`, `"content"`} {
		if bytes.Contains(data, []byte(field)) {
			return true
		}
	}
	return false
}

// ReportsFailure tells whether the field of an event or an answer that may hold a failure holds one. Some servers send
// it always, with a value that says that there is none.
func ReportsFailure(field []byte) bool {
	switch string(bytes.TrimSpace(field)) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	default:
		return true
	}
}

// LimitLines fails with ErrTooBig if a line of the body is longer than limit bytes. It buffers nothing.
func LimitLines(body io.ReadCloser, limit int) io.ReadCloser {
	return &limitedLines{body: body, limit: limit}
}

type limitedLines struct {
	body          io.ReadCloser
	limit, length int
}

// Read implements io.Reader.
func (l *limitedLines) Read(p []byte) (int, error) {
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
func (l *limitedLines) Close() error { return l.body.Close() } //nolint:wrapcheck // a reader's own error
