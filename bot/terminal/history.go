package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of the history.
const (
	maxHistory     = 1000     // lines
	maxHistoryLine = 16 << 10 // bytes of a line; longer ones are not stored
	maxHistoryFile = 1 << 20  // bytes that are read
)

// History is what a person has written, kept in a file of their own that nobody else can read: a JSON string a line.
// One goroutine at a time may use it.
type History struct {
	path   string
	secret func(text string) bool
	lines  []string
	extra  int // lines of the file beyond maxHistory
}

// OpenHistory reads the history in a file; a file that cannot be read is an empty history. What secret says of is not
// stored.
func OpenHistory(path string, secret func(text string) bool) *History {
	h := &History{path: path, secret: secret}
	raw, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	if extra := len(raw) - maxHistoryFile; extra > 0 { // its end is enough, and the next text shortens it
		_, raw, _ = bytes.Cut(raw[extra:], []byte("\n"))
		h.extra = maxHistory
	}
	for line := range bytes.Lines(raw) {
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" {
			h.lines = append(h.lines, text)
		}
	}
	if extra := len(h.lines) - maxHistory; extra > 0 {
		h.lines, h.extra = h.lines[extra:], h.extra+extra
	}
	return h
}

// Lines returns what was written, oldest first.
func (h *History) Lines() []string { return slices.Clone(h.lines) }

// Add appends a text, unless it is the one before it. A text that holds a secret is remembered until the program ends,
// and not stored. What cannot be stored is only forgotten sooner.
func (h *History) Add(text string) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxHistoryLine || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return
	}
	h.lines = append(h.lines, text)
	if h.secret != nil && h.secret(text) {
		return
	}
	_ = h.storeLine(text) // as above
}

func (h *History) storeLine(text string) error {
	if h.extra > maxHistory/2 {
		return h.rewriteFile()
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(h.path), 0o700); err == nil {
			f, err = os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if len(h.lines) > maxHistory {
		h.lines = h.lines[1:]
		h.extra++
	}
	return errors.Join(err, f.Close())
}

// rewriteFile stores the newest lines only.
func (h *History) rewriteFile() error {
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	var b bytes.Buffer
	for _, text := range h.lines {
		if h.secret != nil && h.secret(text) {
			continue
		}
		raw, err := json.Marshal(text)
		if err != nil {
			return err
		}
		b.Write(append(raw, '\n'))
	}
	h.extra = 0
	fresh := h.path + ".new"
	if err := os.WriteFile(fresh, b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, h.path)
}
