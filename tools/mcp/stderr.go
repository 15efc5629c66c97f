package mcp

import (
	"bufio"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	stderrLine      = 500 // bytes of a line that are kept
	stderrPerSecond = 5   // lines that are logged
	stderrBurst     = 50
)

// stderrLog writes what a process prints on its standard error into our log, line by line and not more than so many.
type stderrLog struct {
	r      *os.File
	done   chan struct{} // everything was read
	redact func(string) string
	now    func() time.Time
	log    zerolog.Logger

	mu   sync.Mutex
	tail string
}

// run reads until the process is gone.
func (l *stderrLog) run() {
	defer close(l.done)
	defer func() { _ = l.r.Close() }()
	b := bufio.NewReaderSize(l.r, 4096)
	flow := bucket{size: stderrBurst, perSecond: stderrPerSecond}
	lost := 0
	for {
		line, err := b.ReadSlice('\n')
		head := string(line[:min(len(line), stderrLine)])
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line is not wanted
			_, err = b.ReadSlice('\n')
		}
		if text := guard.Line(l.redact(head), stderrLine); text != "" {
			l.mu.Lock()
			l.tail = text
			l.mu.Unlock()
			if flow.take(l.now(), 1) {
				l.log.Info().Int("lost", lost).Str("stderr", text).Msg("mcp server says")
				lost = 0
			} else {
				lost++
			}
		}
		if err != nil {
			if lost > 0 {
				l.log.Warn().Int("lost", lost).Msg("mcp server says too much: lines were left out")
			}
			return
		}
	}
}

// last is the last line that was read.
func (l *stderrLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bounded(l.tail, 200)
}
