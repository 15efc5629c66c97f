package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Mark says how far a log had come. It is stored outside of the file, and shows whether the file was truncated, emptied
// or replaced.
type Mark struct {
	Lines int64  `json:"lines"` // of the whole chain
	Hash  string `json:"hash"`  // of the last line
	End   int64  `json:"end"`   // end of that line in its file, in bytes
}

// Anchor stores the mark of one log outside of its file. The mark follows within a second, so lines of the last second
// before a crash are in the file and not covered by the mark. Its methods are called by one goroutine at a time, and
// limit their own time.
type Anchor interface {
	// Load returns the mark that was saved last; false when there is none.
	Load() (Mark, bool, error)
	Save(m Mark) error
}

// openLog locks the file at the path for this process and determines the end of the chain, from the file and from the
// mark.
func (l *Log) openLog() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	mark, known, err := l.loadMark()
	if err != nil {
		return err
	}
	if err := l.takeFile(); err != nil {
		return err
	}
	if !l.durable {
		return nil
	}
	if l.anchor != nil || l.size == 0 {
		if err := l.compareMark(mark, known); err != nil {
			return err
		}
	}
	return l.completeErase()
}

// continueEmpty continues the chain in an empty file, after the mark or after the file that was moved away.
func (l *Log) continueEmpty(mark Mark) error {
	hash, lines, found, err := l.endOfMoved(mark, mark.Lines > 0)
	if err != nil {
		return err
	}
	if !found {
		hash, lines = mark.Hash, mark.Lines
	}
	if l.prev, l.lines = hash, lines; lines > 0 {
		l.goOn()
		l.log.Info().Str("file", l.path).Int64("line", lines).Msg("audit log continues in a new file")
	}
	return nil
}

func (l *Log) loadMark() (Mark, bool, error) {
	if l.anchor == nil {
		return Mark{}, false, nil
	}
	mark, known, err := l.anchor.Load()
	if err != nil {
		return mark, false, fmt.Errorf("read the mark of the log: %w", err)
	}
	return mark, known && mark.Lines > 0, nil
}

// takeFile opens and locks the file and reads the end of its chain.
func (l *Log) takeFile() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	if err := l.claimFile(f); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", l.path, err), f.Close())
	}
	return nil
}

func (l *Log) claimFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a pipe or a device has no content
		l.out, l.file = f, f
		return nil
	}
	if err := lockFile(f); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return fmt.Errorf("restrict access: %w", err)
		}
	}
	l.out, l.file, l.durable = f, f, true
	return l.resumeChain(info.Size())
}

// resumeChain reads the end of the chain in the file.
func (l *Log) resumeChain(size int64) error {
	last, err := readEnd(l.file, size)
	if err != nil {
		return fmt.Errorf("read the last line: %w", err)
	}
	l.size = size
	if last.unterminated { // only the newline is missing: the line is complete
		if _, err := l.file.WriteString("\n"); err != nil {
			return fmt.Errorf("end the last line: %w", err)
		}
		l.size++
	}
	l.prev, l.torn, l.end, l.day = last.hash, last.torn, l.size, dayOf(readStart(l.file).time)
	if last.torn != nil {
		l.end -= int64(len(last.torn.data))
	}
	return nil
}

// compareMark compares the file with the mark. A difference becomes a marker before the next line.
func (l *Log) compareMark(mark Mark, known bool) error {
	begin := mark.End
	switch {
	case !known && l.size == 0:
		return l.continueEmpty(mark)
	case !known:
		begin, mark.Lines = 0, readStart(l.file).lines
	case l.size == 0:
		// The file was moved away or removed; only the owner of the earlier file can tell which. The new file continues
		// the chain in both cases: after the file that was moved, which may have more lines than the mark knows of.
		return l.continueEmpty(mark)
	case !lineEndsAt(l.file, mark.End, mark.Hash):
		if hash, lines, found, err := l.endOfMoved(mark, true); err != nil || found && hash == readStart(l.file).hash {
			n, countErr := countLines(io.NewSectionReader(l.file, 0, l.end))
			l.lines = lines + n
			return errors.Join(err, countErr)
		}
		l.lines = mark.Lines
		l.markDamage(
			fmt.Sprintf(
				"lines were cut off or rewritten while nobody wrote: line %d with hash %s is not where it was",
				mark.Lines, mark.Hash,
			))
		return nil
	}
	n, err := countLines(io.NewSectionReader(l.file, begin, l.end-begin))
	if err != nil {
		return fmt.Errorf("%s: count the lines: %w", l.path, err)
	}
	l.lines = mark.Lines + n
	return nil
}

// markDamage adds a marker of damage before the next line and logs the reason.
func (l *Log) markDamage(reason string) {
	l.markers = append(l.markers, &record{Timestamp: l.timestampNow(), Kind: kindDamage, Reason: reason})
	l.log.Error().Str("file", l.path).Str("reason", reason).Msg("audit log was changed by somebody else")
}

// lookBack is how many bytes at the end of the file Has reads.
const lookBack = 1 << 20

// Has reports whether one of the latest lines of the file has this correlation id. It returns false for a log with a
// Writer, which cannot be read.
func (l *Log) Has(correlation string) bool {
	if l == nil || l.path == "" || correlation == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(l.path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return false
	}
	from := max(0, info.Size()-lookBack)
	data, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	return err == nil && bytes.Contains(data, fmt.Appendf(nil, `"correlation_id":%q`, correlation))
}

// followFile checks that the file at the path is still the same and has the expected size. A file that was moved away
// is released, and a new one continues the chain. follow costs two system calls per line.
func (l *Log) followFile() error {
	if !l.durable {
		return nil
	}
	mine, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("look at the audit log: %w", err)
	}
	there, err := os.Stat(l.path)
	switch {
	case err == nil && os.SameFile(mine, there) && mine.Size() >= l.size:
		return nil
	case err == nil && os.SameFile(mine, there):
		reason := fmt.Sprintf("the file was cut by %d bytes while it was written: line %d with hash %s is gone",
			l.size-mine.Size(), l.lines, l.prev)
		if err := l.resumeChain(mine.Size()); err != nil {
			return err
		}
		l.markDamage(reason)
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the audit log: %w", err)
	}
	return l.reopenFile(countNames(mine), false)
}

// reopenFile continues in a new file. left is the number of names of the old one; own: the log itself moved it.
func (l *Log) reopenFile(left uint64, own bool) error {
	old, prev := l.file, l.prev
	if err := l.takeFile(); err != nil {
		return err
	}
	stranger := l.size > 0
	if !stranger {
		l.prev, l.torn = prev, nil
	}
	switch {
	case stranger:
		l.markDamage(
			fmt.Sprintf(
				"another file took the place of the log while it was written; line %d has hash %s", l.lines, prev,
			))
	case left == 0:
		l.markDamage(fmt.Sprintf("the file with line %d was removed while it was written", l.lines))
	default:
		l.goOn()
		l.log.Info().Str("file", l.path).Bool("by_itself", own).Int64("line", l.lines).Msg("audit log rotated")
	}
	unlockFile(old)
	if err := errors.Join(old.Sync(), old.Close()); err != nil {
		l.log.Error().Err(err).Msg("audit log that was moved away not flushed to disk")
	}
	return nil
}

// currentMark returns the mark for the current end of the file.
func (l *Log) currentMark() Mark { return Mark{Lines: l.lines, Hash: l.prev, End: l.end} }

// storeMark stores a mark.
func (l *Log) storeMark(m Mark) error {
	if l.anchor == nil || m.Lines == 0 {
		return nil
	}
	if err := l.anchor.Save(m); err != nil {
		return fmt.Errorf("store the mark of the audit log: %w", err)
	}
	return nil
}
