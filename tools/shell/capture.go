package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools/charset"
)

const (
	stdout = iota
	stderr
)

const stderrMark = "[stderr] "

// maxPiece is the number of bytes of an unfinished line that are buffered.
const maxPiece = 64 << 10

// maxLast limits the line that progress shows, in characters.
const maxLast = 200

// ends keeps the beginning and the end of a stream in a limited amount of memory.
type ends struct {
	max   int // bytes, half for each end
	head  []byte
	tail  []byte
	total int64
}

func (e *ends) writeBytes(b []byte) {
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
	if len(e.tail) > 2*half { // rarely, so that on average a byte is moved once
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-half:]...)
	}
}

// keptText returns what was kept, and how many bytes are missing in the middle.
func (e *ends) keptText() (string, int64) {
	half := e.max - e.max/2
	tail := e.tail[max(0, len(e.tail)-half):]
	missing := e.total - int64(len(e.head)) - int64(len(tail))
	if missing <= 0 {
		return string(e.head) + string(tail), 0
	}
	return joinEnds(string(e.head), string(tail), missing, "bytes", func(s string) int { return len(s) })
}

// joinEnds joins both ends of a text with a note about how much is missing, and returns that amount too. The gap begins
// and ends at line breaks where lines are short, and at characters otherwise; measure counts what is additionally left
// out for that.
func joinEnds(head, tail string, missing int64, unit string, measure func(string) int) (text string, left int64) {
	const near = 2000
	var first string
	last := tail
	if i := strings.LastIndexByte(head, '\n'); i >= 0 && len(head)-i < near {
		first = head[:i+1]
	} else {
		first = trimPartialEnd(head)
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < near && i+1 < len(tail) {
		last = tail[i+1:]
	} else {
		for len(last) > 0 && !utf8.RuneStart(last[0]) {
			last = last[1:]
		}
	}
	left = missing + int64(measure(head[len(first):])) + int64(measure(tail[:len(tail)-len(last)]))
	if first != "" && !strings.HasSuffix(first, "\n") {
		first += "\n"
	}
	return first + fmt.Sprintf("[… %d %s left out …]\n", left, unit) + last, left
}

// trimPartialEnd removes an incomplete character at the end of s.
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
	odd int64 // bytes that do not occur in text
}

// isOdd reports whether the stream is not text in UTF-8: more than a tenth of it are control bytes or invalid.
func (s *stream) isOdd() bool { return s.odd > 0 && s.odd*10 > s.total }

// isBinary reports whether the stream is no text in any encoding.
func (s *stream) isBinary() bool {
	if !s.isOdd() {
		return false
	}
	kept := append(bytes.Clone(s.head), s.tail...)
	_, text := charset.Detect(kept, true)
	return !text
}

// renderText returns the stream as valid UTF-8.
func (s *stream) renderText() (text string, missing int64) {
	if s.isBinary() {
		return fmt.Sprintf("[binary output, %d bytes]", s.total), 0
	}
	text, missing = s.keptText()
	text, _ = decodeText(text)
	return text, missing
}

// cleanText replaces what is not text in UTF-8 by U+FFFD.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// decodeText returns a text as valid UTF-8, and what was assumed for that. A text that is mostly UTF-8 keeps its few
// other bytes as U+FFFD.
func decodeText(s string) (text, note string) {
	invalid, wide := 0, 0
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 || r == 0 {
			invalid++
		} else if size > 1 {
			wide++
		}
	}
	if invalid > wide {
		if encoding, ok := charset.Detect([]byte(s), true); ok && !encoding.IsUTF8() {
			return cleanText(encoding.Decode([]byte(s))), encoding.Note()
		}
	}
	return cleanText(s), ""
}

// capture collects both outputs of a command line by line: each on its own, and both in the order of arrival.
type capture struct {
	mu      sync.Mutex
	streams [2]stream
	both    spool
	page    []byte // buffer of take
	fresh   bool   // both is at the start of a line
	from    int    // the stream that the last byte of both came from
	last    string

	room  int64         // bytes until the output limit; negative = no limit
	flood chan struct{} // closed when the limit is exceeded
}

// newCapture returns a capture that keeps maxBytes of both streams together, using a file in dir beyond a certain size,
// and maxStream of each stream on its own. It closes flood when more than maxOutput bytes arrive; 0 means no limit. The
// caller has to close it.
func newCapture(maxBytes, maxStream int, maxOutput int64, dir string) *capture {
	c := &capture{
		fresh: true, both: spool{max: int64(max(maxBytes, 2)), dir: dir}, room: maxOutput,
		flood: make(chan struct{}),
	}
	if maxOutput <= 0 {
		c.room = -1
	}
	for i := range c.streams {
		c.streams[i].max = maxStream
	}
	return c
}

func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.both.close()
}

// readStream reads a stream until it ends or is closed.
func (c *capture) readStream(r io.Reader, which int) error {
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
			c.takePiece(pending[:cut], which)
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

// takePiece adds a piece, which ends with a line break or is part of a very long line.
func (c *capture) takePiece(piece []byte, which int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room >= 0 {
		if c.room -= int64(len(piece)); c.room < 0 {
			close(c.flood)
		}
	}
	s := &c.streams[which]
	s.writeBytes(piece)
	s.odd += oddBytes(piece)
	page := c.page[:0]
	if !c.fresh && c.from != which {
		page = append(page, '\n')
		c.fresh = true
	}
	c.from = which
	for line := range bytes.Lines(piece) {
		if c.fresh && which == stderr {
			page = append(page, stderrMark...)
		}
		page = append(page, line...)
		c.fresh = line[len(line)-1] == '\n'
		if shown := bytes.TrimSpace(line); len(shown) > 0 {
			c.last = string(shown[:min(len(shown), 4*maxLast)])
		}
	}
	c.both.writeBytes(page)
	c.page = page
}

// oddBytes counts bytes that do not occur in text.
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

// lastLine returns the latest line that is not empty, without colours and control characters.
func (c *capture) lastLine() string {
	c.mu.Lock()
	line, odd := c.last, c.streams[stdout].isOdd() || c.streams[stderr].isOdd()
	c.mu.Unlock()
	if odd {
		return ""
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a progress bar overwrites its line
		line = line[i+1:]
	}
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, withoutEscapes(cleanText(line))))
	if runes := []rune(line); len(runes) > maxLast {
		line = string(runes[:maxLast]) + "…"
	}
	return line
}

// output is what a command printed.
type output struct {
	text    string // both streams, for the model
	stdout  string // its beginning and end
	stderr  string
	omitted int64 // bytes missing in text
}

// capturedOutput returns what was captured. It fails when the file cannot be read.
func (c *capture) capturedOutput() (o output, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cutOut, cutErr int64
	o.stdout, cutOut = c.streams[stdout].renderText()
	o.stderr, cutErr = c.streams[stderr].renderText()
	if c.streams[stdout].isBinary() || c.streams[stderr].isBinary() {
		o.text, o.omitted = joinApart(o.stdout, o.stderr), cutOut+cutErr
	} else {
		o.text, o.omitted, err = c.both.keptText()
		var note string
		if o.text, note = decodeText(o.text); note != "" {
			o.text = strings.TrimRight(o.text, "\n") + "\n[" + note + "]"
		}
	}
	o.text = strings.TrimRight(o.text, "\n")
	return o, err
}

// joinApart puts stderr after stdout, when the streams are not mixed.
func joinApart(out, err string) string {
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

// shortenText keeps the first and the last half of the allowed characters.
func shortenText(s string, maxText int) (string, bool) {
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
	text, _ := joinEnds(string(head), string(tail), int64(n-maxText), "characters", utf8.RuneCountInString)
	return text, true
}
