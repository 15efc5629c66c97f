package command

import "sync"

// Limits of a Reader, for each of two generations.
const (
	readerTexts = 128
	readerBytes = 128 << 10
)

// Reading is a parsed text with its paths. It is shared and must not be changed.
type Reading struct {
	Script

	once  sync.Once
	files Files
}

// Files returns Script.Files, which is computed once.
func (r *Reading) Files() Files {
	r.once.Do(func() { r.files = r.Script.Files() })
	return r.files
}

// Reader parses texts like Parse and caches the latest of them, so that the parts that judge a call, run it and filter
// its output parse the text once. Its results depend only on the text. A nil Reader caches nothing. It is safe for
// concurrent use.
type Reader struct {
	mu    sync.Mutex
	young map[string]*Reading
	old   map[string]*Reading
	bytes int // of the texts in young
	read  int
}

// NewReader returns a Reader. It uses some megabytes at most.
func NewReader() *Reader { return &Reader{young: map[string]*Reading{}} }

// Read returns the reading of a text.
func (r *Reader) Read(text string) *Reading {
	if r == nil {
		return &Reading{Script: Parse(text)}
	}
	if known := r.findCached(text); known != nil {
		return known
	}
	reading := &Reading{Script: Parse(text)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read++
	r.keepReading(text, reading)
	return reading
}

// Parsed returns the number of texts that were not cached.
func (r *Reader) Parsed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// findCached returns a cached reading. One of the old generation becomes young again.
func (r *Reader) findCached(text string) *Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.young[text]; known != nil {
		return known
	}
	known := r.old[text]
	if known != nil {
		r.keepReading(text, known)
	}
	return known
}

// keepReading caches a reading. When the young generation is full, it replaces the old one. The caller holds mu.
func (r *Reader) keepReading(text string, reading *Reading) {
	if len(r.young) >= readerTexts || r.bytes+len(text) > readerBytes {
		r.young, r.old, r.bytes = map[string]*Reading{}, r.young, 0
	}
	r.young[text] = reading
	r.bytes += len(text)
}
