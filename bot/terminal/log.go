package terminal

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/bot/terminal/paint"
)

// LogWriter is where a program writes what is not part of the conversation, such as its log. While a Rich terminal
// draws, whole lines appear above its prompt; otherwise they go to To. Safe for concurrent use.
type LogWriter struct {
	To io.Writer

	mu   sync.Mutex
	rest []byte
	show func(text string) // nil = nobody draws
}

// Write implements io.Writer.
func (a *LogWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	show := a.show
	if show == nil {
		defer a.mu.Unlock()
		return a.To.Write(p)
	}
	a.rest = append(a.rest, p...)
	text := ""
	if i := bytes.LastIndexByte(a.rest, '\n'); i >= 0 {
		text = string(a.rest[:i])
		a.rest = append([]byte(nil), a.rest[i+1:]...)
	}
	a.mu.Unlock()
	if text != "" {
		show(text)
	}
	return len(p), nil
}

// showThrough has lines shown by a terminal; nil = by nobody any more.
func (a *LogWriter) showThrough(show func(text string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.show = show
	if show == nil && len(a.rest) > 0 {
		_, _ = a.To.Write(a.rest) // as every line of it
		a.rest = nil
	}
}

// showAside shows lines of the program.
func (r *Rich) showAside(text string) {
	r.withLock(func() {
		for line := range strings.SplitSeq(withoutColours(text), "\n") {
			r.printLines(r.rich.Painter.Text(paint.Dim, line, r.screen.Size().Cols-1)...)
		}
		r.drawScreen()
	})
}

// withoutColours returns text without colours.
func withoutColours(text string) string {
	var b strings.Builder
	for {
		head, tail, ok := strings.Cut(text, "\x1b[")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		_, text, _ = strings.Cut(tail, "m")
	}
}
