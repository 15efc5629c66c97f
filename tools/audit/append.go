package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// appendRecords writes records with a single write; without records it only accounts for lost lines.
// Errors are counted and logged.
func (l *Log) appendRecords(list ...*record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	through, err := l.writeRecords(list)
	if err == nil {
		return nil
	}
	failed := len(list) - through
	l.failures += failed
	l.lost += failed
	l.logProblem(err, "audit line not written")
	return err
}

// logProblem logs an error, at most once in complainEvery.
func (l *Log) logProblem(err error, what string) {
	if now := l.now(); l.complained.IsZero() || now.Sub(l.complained) >= complainEvery {
		l.complained = now
		l.log.Error().Err(err).Int("failures", l.failures).Msg(what)
	}
}

// writeRecords extends the chain by the records, preceded by markers if there is something to account for. It returns
// how many records were written completely.
func (l *Log) writeRecords(list []*record) (through int, err error) {
	if l.closed {
		return 0, errClosed
	}
	if err := l.followFile(); err != nil {
		return 0, err
	}
	if len(list) > 0 {
		l.rotateIfDue()
	}
	markers := l.markers
	if l.torn != nil || l.lost > 0 { // it has to come just after what it accounts for
		markers = append([]*record{l.damageRecord()}, markers...)
	}
	if len(markers)+len(list) == 0 {
		return 0, nil
	}
	var buf []byte
	if l.torn != nil && !l.torn.hasEnded() {
		buf = append(buf, '\n')
	}
	buf, links, err := l.linkRecords(buf, slices.Concat(markers, list))
	if err != nil {
		return 0, err
	}
	n, err := l.out.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	whole := countWritten(links, n)
	l.advanceChain(links[:whole], buf[:min(max(n, 0), len(buf))])
	if whole > 0 {
		l.lost = 0
		l.markers = l.markers[min(len(l.markers), max(0, whole-(len(markers)-len(l.markers)))):]
	}
	if err != nil {
		err = fmt.Errorf("write audit line: %w", err)
	}
	return max(0, whole-len(markers)), err
}

// advanceChain records what was written: the chain continues from the last complete line.
func (l *Log) advanceChain(whole []link, data []byte) {
	rest := data
	if len(whole) > 0 {
		last := whole[len(whole)-1]
		if l.size == 0 {
			l.day = dayOf(whole[0].time)
		}
		l.prev, l.torn, rest = last.hash, nil, data[last.end:]
		l.lines += int64(len(whole))
		l.end = l.size + int64(last.end)
		l.flushSoon()
	}
	l.size += int64(len(data))
	if len(rest) > 0 {
		l.torn = l.torn.extendTorn(rest)
	}
}

// link is one line that is to be written: its end, its hash and its time.
type link struct {
	end  int
	hash string
	time string
}

// countWritten returns how many lines are complete within the first n bytes.
func countWritten(links []link, n int) int {
	whole := 0
	for whole < len(links) && links[whole].end <= n {
		whole++
	}
	return whole
}

// flushSoon makes sure that written lines reach the disk within syncAfter. One flush serves all lines written until
// then.
func (l *Log) flushSoon() {
	if !l.durable || l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(syncAfter, l.flush)
}

func (l *Log) flush() {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	l.timer = nil // lines from now on need another flush
	file, mark, closed := l.file, l.currentMark(), l.closed
	l.mu.Unlock()
	if closed {
		return
	}
	// a file that was rotated meanwhile was flushed before it was closed
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		l.log.Error().Err(err).Msg("audit log not flushed to disk")
		return
	}
	if err := l.storeMark(mark); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.logProblem(err, "mark of the audit log not stored")
	}
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
