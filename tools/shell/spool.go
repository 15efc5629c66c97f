package shell

import (
	"os"
	"slices"
	"strings"
)

// inMemory is how many bytes of what a command prints are held in memory while it runs; what comes after them is in a
// file.
const inMemory = 1 << 20

// spool keeps a text that grows: whole up to max bytes, of a longer one the first and the last half of max. What is
// beyond inMemory is in a file without a name, or in memory too where there is no room for a file. It is not safe for
// concurrent use.
type spool struct {
	max   int64  // bytes, at least 2
	dir   string // of the file
	total int64  // bytes that came
	front []byte // the first of them
	rest  []byte // the others, where they are not in file
	file  *os.File
}

// fronts is how many bytes are held in memory.
func (s *spool) fronts() int64 { return min(inMemory, s.max/2) }

// write adds b.
func (s *spool) write(b []byte) {
	if room := s.fronts() - s.total; room > 0 {
		n := min(room, int64(len(b)))
		s.front = append(s.front, b[:n]...)
		s.total += n
		b = b[n:]
	}
	if over := int64(len(b)) - s.ring(); over > 0 { // its own end pushes it out
		if room := s.max/2 - s.total; room > 0 {
			n := room
			s.put(b[:n])
			b, over = b[n:], over-n
		}
		if over > 0 {
			s.total += over
			b = b[over:]
		}
	}
	s.put(b)
}

// ring is the size of the end that is kept, in bytes.
func (s *spool) ring() int64 { return s.max - s.max/2 }

// at is where the byte at a place of the text stands behind front: in the first half, or in a ring behind that.
func (s *spool) at(place int64) (offset, run int64) {
	half := s.max / 2
	if place < half {
		return place - s.fronts(), half - place
	}
	turn := (place - half) % s.ring()
	return half - s.fronts() + turn, s.ring() - turn
}

func (s *spool) put(b []byte) {
	for len(b) > 0 {
		offset, run := s.at(s.total)
		n := min(run, int64(len(b)))
		s.store(b[:n], offset)
		s.total += n
		b = b[n:]
	}
}

// store writes at a place behind front.
func (s *spool) store(b []byte, offset int64) {
	if s.file == nil && s.rest == nil {
		s.open()
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

// open makes the file and takes its name away, so that nobody finds it and nothing is left of it.
func (s *spool) open() {
	f, err := os.CreateTemp(s.dir, "zephbot-output-*")
	if err != nil {
		s.rest = []byte{}
		return
	}
	if os.Remove(f.Name()) != nil { // a system that cannot: better memory than a file that stays
		_ = f.Close()
		s.rest = []byte{}
		return
	}
	s.file = f
}

// toMemory takes back what a file holds that takes no more, such as one on a full disk.
func (s *spool) toMemory() {
	s.rest = make([]byte, min(s.total, s.max)-s.fronts())
	_, _ = s.file.ReadAt(s.rest, 0) // it was written a moment ago; what cannot be read shows as NUL, and is no text
	s.close()
}

// close gives the file back. What was kept is gone then.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// text is what was kept, with a note where something is missing, and how many bytes are. It fails when the file cannot
// be read.
func (s *spool) text() (text string, missing int64, err error) {
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
	turn := (s.total - half) % s.ring()
	var tail strings.Builder
	tail.Grow(int(s.ring()))
	tail.Write(all[half+turn:])
	tail.Write(all[half : half+turn])
	text, missing = joined(string(all[:half]), tail.String(), s.total-s.max, "bytes",
		func(s string) int { return len(s) })
	return text, missing, nil
}
