package bottest

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Typist is a person at a terminal: a reader of what they type and a writer of what they see. They type the next line
// when they see a prompt, which ends with a blank, and may have typed ahead. Safe for concurrent use.
type Typist struct {
	mu    sync.Mutex
	ready bytes.Buffer // typed, and not read yet
	lines []string
	seen  bytes.Buffer
	stir  *sync.Cond
	gone  bool
}

// NewTypist returns a Typist who has typed ahead, and types one of lines at each prompt; after the last line, the input
// ends at the next prompt.
func NewTypist(ahead string, lines ...string) *Typist {
	t := &Typist{lines: lines}
	t.ready.WriteString(ahead)
	t.stir = sync.NewCond(&t.mu)
	return t
}

// Write implements io.Writer: the person sees it.
func (t *Typist) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen.Write(p)
	if strings.HasSuffix(string(p), " ") {
		if len(t.lines) == 0 {
			t.gone = true
		} else {
			t.ready.WriteString(t.lines[0] + "\n")
			t.lines = t.lines[1:]
		}
		t.stir.Broadcast()
	}
	return len(p), nil
}

// Read implements io.Reader.
func (t *Typist) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ready.Len() == 0 {
		if t.gone {
			return 0, io.EOF
		}
		t.stir.Wait()
	}
	return t.ready.Read(p)
}

// Seen returns everything that the person saw.
func (t *Typist) Seen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.String()
}
