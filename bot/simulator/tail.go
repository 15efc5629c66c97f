package simulator

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

const (
	tailLines = 300
	tailWidth = 2000 // bytes that are kept of a line
)

// tail forwards what the bot prints and keeps the last lines.
type tail struct {
	to io.Writer

	mu    sync.Mutex
	lines []string
	open  []byte // line without its end
}

// Write implements io.Writer. A reader that has gone must not stop the bot, so errors of the other side are not
// returned.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.to.Write(p)
	rest := p
	for {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if len(t.open) < tailWidth {
			t.open = append(t.open, line[:min(len(line), tailWidth-len(t.open))]...)
		}
		if !ended {
			return len(p), nil
		}
		t.end()
		rest = after
	}
}

func (t *tail) end() {
	line := strings.TrimRight(strings.ToValidUTF8(string(t.open), "\ufffd"), " \r\t")
	t.open = t.open[:0]
	if line == "" {
		return
	}
	if len(t.lines) >= tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// finishLine ends a line that was cut off by the end of the process.
func (t *tail) finishLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}

func (t *tail) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return ""
	}
	return t.lines[len(t.lines)-1]
}
