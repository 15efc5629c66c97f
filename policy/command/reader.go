package command

import "sync"

// What a Reader remembers, in each of two generations.
const (
	readerTexts = 128
	readerBytes = 128 << 10
)

// Reading is a text as Parse reads it, and the paths in it. It is shared: nobody changes what it holds.
type Reading struct {
	Script

	once  sync.Once
	files Files
}

// Files is Script.Files, worked out once.
func (r *Reading) Files() Files {
	r.once.Do(func() { r.files = r.Script.Files() })
	return r.files
}

// Reader reads texts as Parse does and remembers the last of them, so that those who judge a call, run it and look at
// its output read its text once. What it gives depends on the text alone. Nil remembers nothing. Safe for concurrent
// use.
type Reader struct {
	mu    sync.Mutex
	young map[string]*Reading
	old   map[string]*Reading
	bytes int // of the texts in young
	read  int
}

// NewReader makes a Reader. It holds some megabytes at most.
func NewReader() *Reader { return &Reader{young: map[string]*Reading{}} }

// Read returns the reading of a text.
func (r *Reader) Read(text string) *Reading {
	if r == nil {
		return &Reading{Script: Parse(text)}
	}
	if known := r.find(text); known != nil {
		return known
	}
	reading := &Reading{Script: Parse(text)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read++
	r.keep(text, reading)
	return reading
}

// Parsed counts the texts that were not remembered.
func (r *Reader) Parsed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// find looks for a reading; one of the old generation becomes young again.
func (r *Reader) find(text string) *Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.young[text]; known != nil {
		return known
	}
	known := r.old[text]
	if known != nil {
		r.keep(text, known)
	}
	return known
}

// keep remembers a reading. When the young generation is full it becomes the old one, and the old one is forgotten.
// Called with mu held.
func (r *Reader) keep(text string, reading *Reading) {
	if len(r.young) >= readerTexts || r.bytes+len(text) > readerBytes {
		r.young, r.old, r.bytes = map[string]*Reading{}, r.young, 0
	}
	r.young[text] = reading
	r.bytes += len(text)
}
