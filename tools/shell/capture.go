package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	stdout = iota
	stderr
)

const stderrMark = "[stderr] "

// maxPiece is how many bytes of an unfinished line are held back.
const maxPiece = 64 << 10

// maxLast bounds the line that progress shows, in characters.
const maxLast = 200

// ends keeps the start and the end of a stream in bounded memory.
type ends struct {
	max   int // bytes, half for each end
	head  []byte
	tail  []byte
	total int64
}

func (e *ends) write(b []byte) {
	e.total += int64(len(b))
	if room := e.max/2 - len(e.head); room > 0 {
		n := min(room, len(b))
		e.head = append(e.head, b[:n]...)
		b = b[n:]
	}
	half := e.max - e.max/2
	if len(b) > half {
		b = b[len(b)-half:]
	}
	e.tail = append(e.tail, b...)
	if len(e.tail) > 2*half { // seldom, so that a byte is moved once on average
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-half:]...)
	}
}

// text is what was kept, and whether something between is missing. The edges of a gap are whole lines where lines are short.
func (e *ends) text() (string, bool) {
	half := e.max - e.max/2
	tail := e.tail[max(0, len(e.tail)-half):]
	missing := e.total - int64(len(e.head)) - int64(len(tail))
	if missing <= 0 {
		return string(e.head) + string(tail), false
	}
	return joinEnds(string(e.head), string(tail), missing, "bytes"), true
}

// joinEnds puts a note between the two ends of a text, at line boundaries where these are near.
func joinEnds(head, tail string, missing int64, unit string) string {
	const near = 2000
	if i := strings.LastIndexByte(head, '\n'); i >= 0 && len(head)-i < near {
		head = head[:i+1]
	} else {
		head = trimPartialEnd(head) + "\n"
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < near && i+1 < len(tail) {
		tail = tail[i+1:]
	} else {
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	return head + fmt.Sprintf("[… about %d %s left out …]\n", missing, unit) + tail
}

// trimPartialEnd cuts a character that does not end within s.
func trimPartialEnd(s string) string {
	for i := 1; i <= min(utf8.UTFMax, len(s)); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// stream is one output of a command.
type stream struct {
	ends
	odd int64 // bytes that are no text
}

// binary says whether the stream is no text: a tenth of it are control bytes or no UTF-8.
func (s *stream) binary() bool { return s.odd > 0 && s.odd*10 > s.total }

// String is the stream as valid UTF-8.
func (s *stream) render() (string, bool) {
	if s.binary() {
		return fmt.Sprintf("[binary output, %d bytes]", s.total), false
	}
	text, cut := s.text()
	return clean(text), cut
}

func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// capture collects both outputs of a command, line by line, apart and together in the order of arrival.
type capture struct {
	mu      sync.Mutex
	streams [2]stream
	both    ends
	fresh   bool // both is at the start of a line
	from    int  // the stream of both's last byte
	last    string

	room  int64         // bytes that may still come; negative = any number
	flood chan struct{} // closed when more came
}

// newCapture keeps maxBytes of each stream. It tells when more than maxOutput bytes came; 0 = never.
func newCapture(maxBytes int, maxOutput int64) *capture {
	c := &capture{fresh: true, both: ends{max: maxBytes}, room: maxOutput, flood: make(chan struct{})}
	if maxOutput <= 0 {
		c.room = -1
	}
	for i := range c.streams {
		c.streams[i].max = maxBytes
	}
	return c
}

// read takes a stream in until it ends or is closed.
func (c *capture) read(r io.Reader, which int) error {
	buf := make([]byte, 32<<10)
	var pending []byte
	for {
		n, err := r.Read(buf)
		pending = append(pending, buf[:n]...)
		cut := bytes.LastIndexByte(pending, '\n') + 1
		if cut == 0 && len(pending) > maxPiece {
			cut = len(trimPartialEnd(string(pending)))
		}
		if err != nil {
			cut = len(pending)
		}
		if cut > 0 {
			c.take(pending[:cut], which)
			pending = append(pending[:0], pending[cut:]...)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
	}
}

// take adds a piece that ends with a line, or is cut from a very long one.
func (c *capture) take(piece []byte, which int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room >= 0 {
		if c.room -= int64(len(piece)); c.room < 0 {
			close(c.flood)
		}
	}
	s := &c.streams[which]
	s.write(piece)
	s.odd += oddBytes(piece)
	if !c.fresh && c.from != which {
		c.both.write([]byte{'\n'})
		c.fresh = true
	}
	c.from = which
	for line := range bytes.Lines(piece) {
		if c.fresh && which == stderr {
			c.both.write([]byte(stderrMark))
		}
		c.both.write(line)
		c.fresh = line[len(line)-1] == '\n'
		if shown := bytes.TrimSpace(line); len(shown) > 0 {
			c.last = string(shown[:min(len(shown), 4*maxLast)])
		}
	}
}

// oddBytes counts what does not stand in text.
func oddBytes(b []byte) int64 {
	var n int64
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 || r == 0x7f || r < ' ' && !strings.ContainsRune("\t\n\r\f\b\a\x1b", r) {
			n++
		}
		b = b[size:]
	}
	return n
}

// lastLine is the newest line with something in it, without colours and control characters.
func (c *capture) lastLine() string {
	c.mu.Lock()
	line, binary := c.last, c.streams[stdout].binary() || c.streams[stderr].binary()
	c.mu.Unlock()
	if binary {
		return ""
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a progress bar draws over itself
		line = line[i+1:]
	}
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, withoutEscapes(clean(line))))
	if runes := []rune(line); len(runes) > maxLast {
		line = string(runes[:maxLast]) + "…"
	}
	return line
}

// output is what a command printed.
type output struct {
	text      string // both streams for the model
	stdout    string
	stderr    string
	truncated bool
}

// output renders what was captured; text has at most maxText characters besides the note of the gap.
func (c *capture) output(maxText int) output {
	c.mu.Lock()
	defer c.mu.Unlock()
	var o output
	var cutOut, cutErr, cutBoth bool
	o.stdout, cutOut = c.streams[stdout].render()
	o.stderr, cutErr = c.streams[stderr].render()
	if c.streams[stdout].binary() || c.streams[stderr].binary() {
		o.text = apart(o.stdout, o.stderr)
	} else {
		o.text, cutBoth = c.both.text()
		o.text = clean(o.text)
	}
	o.text = strings.TrimRight(o.text, "\n")
	var cutText bool
	o.text, cutText = shorten(o.text, maxText)
	o.truncated = cutOut || cutErr || cutBoth || cutText
	return o
}

// apart puts stderr after stdout, for streams that do not mix.
func apart(out, err string) string {
	var b strings.Builder
	b.WriteString(out)
	if out != "" && !strings.HasSuffix(out, "\n") {
		b.WriteByte('\n')
	}
	for line := range strings.Lines(err) {
		b.WriteString(stderrMark + line)
	}
	return b.String()
}

// shorten keeps the first and last half of the characters allowed.
func shorten(s string, maxText int) (string, bool) {
	if len(s) <= maxText {
		return s, false
	}
	n := utf8.RuneCountInString(s)
	if n <= maxText {
		return s, false
	}
	runes := []rune(s)
	head := runes[:maxText/2]
	tail := runes[n-(maxText-maxText/2):]
	return joinEnds(string(head), string(tail), int64(n-maxText), "characters"), true
}
