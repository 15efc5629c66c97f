package mcp

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/lazyregexp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	stderrLine      = 500 // bytes of a line that are kept
	stderrPerSecond = 5   // lines a second that are logged
	stderrBurst     = 50
	stderrTail      = 60 // last lines that are searched for the reason why a program ended
)

// stderrLog copies the standard error of a process into our log, line by line and at a limited rate.
type stderrLog struct {
	r      *os.File
	done   chan struct{} // closed when everything was read
	redact func(string) string
	now    func() time.Time
	log    zerolog.Logger

	mu   sync.Mutex
	tail []string // the last lines
}

// readLines reads until the process has ended.
func (l *stderrLog) readLines() {
	defer close(l.done)
	defer func() { _ = l.r.Close() }()
	b := bufio.NewReaderSize(l.r, 4096)
	flow := bucket{size: stderrBurst, perSecond: stderrPerSecond}
	lost := 0
	for {
		line, err := b.ReadSlice('\n')
		head := string(line[:min(len(line), stderrLine)])
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line is dropped
			_, err = b.ReadSlice('\n')
		}
		if text := guard.Line(l.redact(head), stderrLine); text != "" {
			l.mu.Lock()
			l.tail = append(l.tail[max(0, len(l.tail)-stderrTail+1):], text)
			l.mu.Unlock()
			if flow.takeTokens(l.now(), 1) {
				l.log.Info().Int("lost", lost).Str("stderr", text).Msg("mcp server says")
				lost = 0
			} else {
				lost++
			}
		}
		if err != nil {
			if lost > 0 {
				l.log.Warn().Int("lost", lost).Msg("mcp server prints too much: lines were dropped")
			}
			return
		}
	}
}

// bestLine returns the line among the last ones that best explains why the program ended.
func (l *stderrLog) bestLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cutText(tellingLine(l.tail), 200)
}

// tellingLine picks the line of a program's last output that a person needs. The very last lines are mostly a
// stack frame, the path of a log file, or the version of the runtime. The order of preference is the last line
// with a thrown error ("TypeError: …"), the first one of npm, the last one that sounds like a failure, and the
// last one that is not decoration.
func tellingLine(lines []string) string {
	best, bestRank := "", 0
	for _, line := range lines {
		rank, first := rankOf(line)
		if rank > bestRank || rank > 0 && rank == bestRank && !first {
			best, bestRank = line, rank
		}
	}
	return best
}

// These expressions cover the messages of node, npm, Python, uv and Go.
const (
	stackFrame = `at .*|File ".*", line \d+.*|Traceback \(most recent call last\):|goroutine \d+ .*|` +
		`\S+:\d+(?::\d+)?\)?(?: \+0x[0-9a-f]+)?|\w+\.\w+\(.*\)|throw .*|exit status \d+`
	decoration = `[^\pL\pN]*|Node\.js v.*|(?:errno|syscall|path|spawnargs|code|dest|requireStack|address|port|type|` +
		`cache|file)(?::|\b).*|Require stack:|\d{3}`
	advice = `A complete log of this run .*|Log files were not written .*|You can rerun .*|If you are behind a ` +
		`proxy.*|Your cache folder contains .*|Note that you .*|note: .*|hint: .*|usage: .*|During handling of .*|` +
		`The above exception .*|Emitted 'error' event .*|\(Use .*`
	failureWords = `error|err!|failed|failure|fatal|exception|cannot|can't|could not|couldn't|not found|no such|no ` +
		`module|denied|invalid|missing|required|refused|unable|unknown`
)

var (
	stderrNoise  = lazyregexp.New(`^(?:` + stackFrame + `|` + decoration + `|` + advice + `)$`)
	stderrNPM    = lazyregexp.New(`^npm (?:ERR!|error|warn|WARN|notice|http)\s*`)
	stderrThrown = lazyregexp.New(`(?i)^(?:[\w.$/-]+: )?(?:uncaught )?(?:[\w.$]*(?:error|exception|failure)(?: ` +
		`\[\w+\])?|panic|fatal|failed|E[A-Z]{3,}): `)
	stderrNamed = lazyregexp.New(`(?i)(?:^|\W)(?:` + failureWords + `)(?:\W|$)`)
)

// rankOf returns how informative a line is; 0 = not at all. first means that among lines of this rank the first one is
// the best.
func rankOf(line string) (rank int, first bool) {
	line = strings.TrimSpace(line)
	text := stderrNPM().ReplaceAllString(line, "")
	npm := text != line
	text = strings.TrimSpace(text)
	switch {
	case npm && !strings.HasPrefix(line, "npm ERR!") && !strings.HasPrefix(line, "npm error"),
		stderrNoise().MatchString(text):
		return 0, false
	case stderrThrown().MatchString(text):
		return 4, false
	case npm && stderrNamed().MatchString(text):
		return 3, true
	case stderrNamed().MatchString(text):
		return 2, strings.HasPrefix(text, "Caused by")
	}
	return 1, npm
}
