package shell

import (
	"os"
	"slices"
	"strings"
)

// inMemory is how many bytes of a command's output are held in memory while it runs. The rest is in a file.
const inMemory = 1 << 20

// spool stores a growing text: all of it up to max bytes, then the first and the last half of max. What exceeds
// inMemory is in an unnamed file, or in memory if the file cannot be written. It is not safe for concurrent use.
type spool struct {
	max   int64  // bytes, at least 2
	dir   string // directory for the file
	total int64  // bytes written so far
	front []byte // the first of them
	rest  []byte // the rest, if it is not in file
	file  *os.File
}

// frontSize returns how many bytes stay in memory.
func (s *spool) frontSize() int64 { return min(inMemory, s.max/2) }

// writeBytes adds b.
func (s *spool) writeBytes(b []byte) {
	if room := s.frontSize() - s.total; room > 0 {
		n := min(room, int64(len(b)))
		s.front = append(s.front, b[:n]...)
		s.total += n
		b = b[n:]
	}
	if over := int64(len(b)) - s.ringSize(); over > 0 { // its own end would overwrite it
		if room := s.max/2 - s.total; room > 0 {
			n := room
			s.putBytes(b[:n])
			b, over = b[n:], over-n
		}
		if over > 0 {
			s.total += over
			b = b[over:]
		}
	}
	s.putBytes(b)
}

// ringSize returns the size of the end that is kept, in bytes.
func (s *spool) ringSize() int64 { return s.max - s.max/2 }

// positionOf returns where the byte at a place of the text is stored behind front: in the first
// half, or in the ring after it.
func (s *spool) positionOf(place int64) (offset, run int64) {
	half := s.max / 2
	if place < half {
		return place - s.frontSize(), half - place
	}
	turn := (place - half) % s.ringSize()
	return half - s.frontSize() + turn, s.ringSize() - turn
}

func (s *spool) putBytes(b []byte) {
	for len(b) > 0 {
		offset, run := s.positionOf(s.total)
		n := min(run, int64(len(b)))
		s.storeAt(b[:n], offset)
		s.total += n
		b = b[n:]
	}
}

// storeAt writes at a place behind front.
func (s *spool) storeAt(b []byte, offset int64) {
	if s.file == nil && s.rest == nil {
		s.openFile()
	}
	if s.file != nil {
		if _, err := s.file.WriteAt(b, offset); err == nil {
			return
		}
		s.toMemory()
	}
	end := int(offset) + len(b)
	if end > len(s.rest) {
		s.rest = slices.Grow(s.rest, end-len(s.rest))[:end]
	}
	copy(s.rest[offset:], b)
}

// openFile creates the file and removes its name, so that nobody can open it and nothing stays behind.
func (s *spool) openFile() {
	f, err := os.CreateTemp(s.dir, "zephbot-output-*")
	if err != nil {
		s.rest = []byte{}
		return
	}
	if os.Remove(f.Name()) != nil { // not supported by this system: use memory rather than a file that stays behind
		_ = f.Close()
		s.rest = []byte{}
		return
	}
	s.file = f
}

// toMemory moves the contents of the file to memory, when the file cannot be written any more, for example because the
// disk is full.
func (s *spool) toMemory() {
	s.rest = make([]byte, min(s.total, s.max)-s.frontSize())
	_, _ = s.file.ReadAt(s.rest, 0) // it was written just now; what cannot be read shows as NUL, which is not text
	s.close()
}

// close releases the file and with it what was kept.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// keptText returns what was kept, with a note where something is missing, and the number of missing bytes. It
// fails when the file cannot be read.
func (s *spool) keptText() (text string, missing int64, err error) {
	kept := min(s.total, s.max)
	all := make([]byte, kept)
	n := copy(all, s.front)
	switch {
	case s.file != nil:
		if _, err := s.file.ReadAt(all[n:], 0); err != nil {
			return "", 0, err
		}
	default:
		copy(all[n:], s.rest)
	}
	if s.total <= s.max {
		return string(all), 0, nil
	}
	half := s.max / 2
	turn := (s.total - half) % s.ringSize()
	var tail strings.Builder
	tail.Grow(int(s.ringSize()))
	tail.Write(all[half+turn:])
	tail.Write(all[half : half+turn])
	text, missing = joinEnds(string(all[:half]), tail.String(), s.total-s.max, "bytes",
		func(s string) int { return len(s) })
	return text, missing, nil
}
