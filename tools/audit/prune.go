package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Pruned says what [Log.Prune] removed.
type Pruned struct {
	Files int
	Lines int64  // that have been removed from the chain since it began, also by earlier calls
	Until string // time of the last of them
}

// Prune removes rotated files whose lines are all older than before, the oldest first. A line of the kind removed says
// how far that goes and is on the disk before the first file is removed, so that Verify can tell it from a file that is
// missing. If a log has not been written since before, its file is rotated and removed too; what remains is the
// account. It may be called while others write to the log. After an error or a kill, the next call removes the rest.
func (l *Log) Prune(ctx context.Context, before time.Time) (Pruned, error) {
	if l == nil || l.path == "" {
		return Pruned{}, nil
	}
	l.tending.Lock()
	defer l.tending.Unlock()
	done, err := l.pruneFiles(ctx, before.UTC().Format(timestamp))
	if err != nil {
		err = fmt.Errorf("remove old files of %s: %w", l.path, err)
	}
	return done, err
}

// Prune opens the log that o describes, as [New] does, and removes old files. It fails with [ErrHeld] while another
// process writes the log; then that process has to do it.
func Prune(ctx context.Context, o Options, before time.Time) (done Pruned, err error) {
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	l, err := New(o)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.Prune(ctx, before)
}

func (l *Log) pruneFiles(ctx context.Context, before string) (done Pruned, err error) {
	if err := l.withLock(func() error { return l.rotateIdle(before) }); err != nil {
		return done, err
	}
	files, err := chainFiles(l.path)
	if err != nil {
		return done, err
	}
	old := 0
	for old < len(files)-1 && files[old].end.time != "" && files[old].end.time < before {
		old++
	}
	if old == 0 {
		return done, nil
	}
	last := files[old-1]
	if done.Lines = files[old].lines; done.Lines == 0 { // the next file does not say it
		if done.Lines, err = countPieces(files[:old]); err != nil {
			return done, err
		}
	}
	done.Until = last.end.time
	err = l.withLock(func() error {
		_, err := l.writeRecords([]*record{{
			Timestamp: l.timestampNow(),
			Kind:      kindRemoved,
			Reason:    fmt.Sprintf("%d lines until %s were removed because of their age", done.Lines, done.Until),
			ledger:    ledger{Lines: done.Lines, Until: done.Until, UntilHash: last.end.hash},
		}})
		if err == nil && l.durable {
			err = errors.Join(l.file.Sync(), l.storeMark(l.currentMark()))
		}
		return err
	})
	if err != nil {
		return done, err
	}
	for _, f := range files[:old] {
		if err := errors.Join(ctx.Err(), os.Remove(f.name)); err != nil {
			return done, err
		}
		done.Files++
	}
	return done, syncDir(filepath.Dir(l.path))
}

// rotateIdle rotates the file if nothing was written to it since before, so that it can be removed.
func (l *Log) rotateIdle(before string) error {
	if !l.durable || l.size == 0 {
		return nil
	}
	last, err := readEnds(l.path)
	if err != nil || last.end.time == "" || last.end.time >= before {
		return err
	}
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	account := true
	err = scanLines(f, func(line []byte) {
		r, ok := parseLine(line)
		account = account && ok && (r.Kind == kindContinue || r.Kind == kindRemoved || r.Kind == kindErased)
	})
	if err != nil || account {
		return err
	}
	return l.turnOver()
}

func countPieces(files []piece) (int64, error) {
	sum := files[0].lines
	for _, f := range files {
		n, err := linesAfter(f.name, 0)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
