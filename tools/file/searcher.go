package file

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/charset"
)

// Sizes in bytes of the buffer into which files are read. A line that is longer than the larger one is searched in
// pieces, of which each begins with the end of the one before, so that a short match is found wherever it is.
const (
	leastBuffer = 64 << 10
	mostBuffer  = 4 << 20
	overlap     = 4 << 10
)

// searcher searches files one by one and has its own buffers.
type searcher struct {
	s     *scope
	m     *lineMatcher
	spent *atomic.Int64 // bytes read by the whole call
	buf   []byte
	low   []byte
}

// newSearcher returns a searcher that stops when late reports that the time is over.
func newSearcher(s *scope, m *matcher, spent *atomic.Int64, late func() bool) *searcher {
	return &searcher{s: s, m: &lineMatcher{matcher: m, late: late}, spent: spent}
}

func (w *searcher) searchBatch(b batch) finding {
	var f finding
	for _, name := range b.names {
		if w.s.ctx.Err() != nil || len(f.lines) > maxMatches || w.m.over {
			break
		}
		w.searchFile(b.d.dir, name, &f)
	}
	f.late = w.m.over
	return f
}

// searchFile searches one file. It uses bare descriptors, because an os.File costs more than reading a small file.
func (w *searcher) searchFile(d dir, name string, f *finding) {
	if w.s.rules {
		if _, denied := w.s.Rules.Denied(d.joinName(name)); denied {
			f.denied++
			return
		}
	}
	fd, err := unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		f.locked++
		return
	}
	defer func() { _ = unix.Close(fd) }() // opened for reading
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil || fileKind(st) != unix.S_IFREG:
		f.locked++
		return
	case st.Nlink > 1 && w.s.otherName(st):
		f.denied++
		return
	case st.Size == 0:
		return
	}
	w.growBuffer(st.Size)
	had, path := len(f.lines), w.s.displayPath(d.joinName(name))
	err = w.searchContent(fd, st.Size, path, f)
	if errors.Is(err, errForeign) {
		f.lines = f.lines[:had]
		err = w.searchDecoded(fd, st.Size, path, f)
	}
	if err != nil {
		f.lines = f.lines[:had]
		switch {
		case errors.Is(err, errForeign):
			f.foreign++
		case errors.Is(err, errEnough):
			f.big++
		case w.s.ctx.Err() == nil:
			f.locked++
		}
	}
}

// growBuffer makes room for a file, up to the maximum size of the buffer.
func (w *searcher) growBuffer(n int64) {
	want := int(min(max(n+1, leastBuffer), mostBuffer))
	if len(w.buf) < want {
		w.buf = make([]byte, want)
	}
}

var errForeign = errors.New("not UTF-8 text")

// searchContent searches a file of the given size in pieces that end with a line.
func (w *searcher) searchContent(fd int, size int64, path string, f *finding) error {
	held, line := 0, 1
	within, shown := false, false // a line that is longer than the buffer is being searched; a match of it is shown
	for total := int64(0); ; {
		n, err := unix.Read(fd, w.buf[held:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if total == 0 {
			encoding, ok := charset.Detect(w.buf[:min(n, sniff)], int64(min(n, sniff)) >= size)
			switch {
			case !ok:
				return nil // binary files have no lines
			case !encoding.IsUTF8():
				return errForeign
			}
		}
		if w.spent.Add(int64(n)) > maxSearch {
			return errEnough
		}
		held += n
		total += int64(n)
		over := n == 0 || total >= size
		if !over && held < len(w.buf) {
			continue
		}
		text, next, cut := pieceOf(w.buf[:held], over)
		if cut && !within {
			f.long++
		}
		if shown { // a line is shown once
			rest := bytes.IndexByte(text, '\n') + 1
			line += min(rest, 1)
			if text = text[rest:]; rest == 0 {
				text = nil
			}
		}
		had := len(f.lines)
		lines, err := w.searchPiece(text, path, line, f)
		if err != nil || over || len(f.lines) > maxMatches || !w.m.spendSteps(maxSteps) {
			return err
		}
		line += lines
		within, shown = cut, cut && (shown || len(f.lines) > had)
		held = copy(w.buf, w.buf[next:held])
		if err := w.s.ctx.Err(); err != nil {
			return err
		}
	}
}

// mostDecoded is how many bytes a file may have that is decoded before it is searched.
const mostDecoded = 16 << 20

// searchDecoded searches a file that is not UTF-8, all of it at once. It returns errForeign if it cannot be decoded.
func (w *searcher) searchDecoded(fd int, size int64, path string, f *finding) error {
	if size > mostDecoded {
		return errForeign
	}
	raw := make([]byte, size)
	n, err := io.ReadFull(&atOffset{fd: fd}, raw)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if w.spent.Add(int64(n)) > maxSearch {
		return errEnough
	}
	encoding, ok := charset.Detect(raw[:n], true)
	if !ok {
		return errForeign
	}
	had := len(f.lines)
	_, err = w.searchPiece([]byte(encoding.Decode(raw[:n])), path, 1, f)
	if len(f.lines) > had {
		f.decoded++
	}
	w.m.spendSteps(maxSteps) // the next file asks whether the time is over
	return err
}

// atOffset reads a file from its beginning, wherever its descriptor is.
type atOffset struct {
	fd int
	at int64
}

// Read implements io.Reader.
func (r *atOffset) Read(b []byte) (int, error) {
	for {
		n, err := unix.Pread(r.fd, b, r.at)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 && err == nil {
			return 0, io.EOF
		}
		r.at += int64(max(n, 0))
		return max(n, 0), err
	}
}

// pieceOf returns what of buf is searched at once, and from where on the next piece begins: whole lines, everything if
// nothing follows, or a part of a line that is longer than the buffer (cut).
func pieceOf(buf []byte, last bool) (text []byte, next int, cut bool) {
	if last {
		return buf, len(buf), false
	}
	if end := bytes.LastIndexByte(buf, '\n') + 1; end > 0 {
		return buf[:end], end, false
	}
	end, next := wholeRunes(buf, len(buf)), wholeRunes(buf, len(buf)-overlap)
	return buf[:end], next, true
}

// wholeRunes returns the largest offset up to n at which no character is cut, if buf is UTF-8.
func wholeRunes(buf []byte, n int) int {
	for i := n - 1; i >= max(0, n-utf8.UTFMax); i-- {
		if utf8.RuneStart(buf[i]) {
			if utf8.FullRune(buf[i:n]) {
				return n
			}
			return i
		}
	}
	return n
}

// searchPiece searches whole lines, of which the first has the given number. It returns the number of line ends.
func (w *searcher) searchPiece(buf []byte, path string, line int, f *finding) (int, error) {
	if w.m.wide && !utf8.Valid(buf) {
		return 0, errForeign
	}
	useLits := w.m.literalsUsable(buf)
	if useLits && w.m.fold {
		w.low = lowerASCII(w.low, buf)
	}
	counted, number := 0, line
	for from := 0; from < len(buf) && len(f.lines) <= maxMatches; {
		h, ok := w.m.nextHit(buf, w.low, from, useLits)
		if !ok {
			break
		}
		text := buf[h.start:h.end]
		if !utf8.Valid(text) {
			return 0, errForeign
		}
		number += bytes.Count(buf[counted:h.start], newline)
		counted = h.start
		f.lines = append(f.lines, shownMatch(showName(path), number, text, h.at-h.start))
		from = h.end + 1
	}
	return number - line + bytes.Count(buf[counted:], newline), nil
}

var newline = []byte("\n")
