package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rotatedTime is the end of a rotated file's name: audit.jsonl.20260304T050607.008. Names sort by time.
const rotatedTime = "20060102T150405.000"

// Rotation says when the log moves its file away and continues in a new one.
type Rotation struct {
	MaxBytes int64 // before the file grows beyond this size; 0 = never
	Daily    bool  // before the first line of another day (UTC)
}

// rotateIfDue rotates a file that is too large or of another day. A failure is logged, and the log goes on in the same
// file: a line in a file that is too large is better than no line.
func (l *Log) rotateIfDue() {
	if l.torn != nil || l.size == 0 || !l.durable { // an incomplete line is accounted for in its own file
		return
	}
	large := l.rotation.MaxBytes > 0 && l.size >= l.rotation.MaxBytes
	old := l.rotation.Daily && l.day != "" && l.day != dayOf(l.timestampNow())
	if !large && !old {
		return
	}
	if err := l.rotateFile(); err != nil {
		l.logProblem(err, "audit log not rotated")
	}
}

// dayOf returns the date of a timestamp.
func dayOf(timestamp string) string {
	date, _, _ := strings.Cut(timestamp, "T")
	return date
}

// rotateFile moves the file away and continues in a new one, whose first line is written with the next one. If the
// process dies after the move, the next one finds the file that was moved, see trail.
func (l *Log) rotateFile() error {
	if err := l.countAll(); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	to, err := l.rotatedName()
	if err != nil {
		return err
	}
	if err := os.Rename(l.path, to); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	if err := syncDir(filepath.Dir(l.path)); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	mine, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	return l.reopenFile(countNames(mine), true)
}

// rotatedName returns a name that no file has, after those of all files that were rotated before.
func (l *Log) rotatedName() (string, error) {
	at := l.now().UTC()
	for range 1000 {
		name := l.path + "." + at.Format(rotatedTime)
		_, err := os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", fmt.Errorf("rotate audit log: %w", err)
		}
		at = at.Add(time.Millisecond)
	}
	return "", errors.New("rotate audit log: too many files of one second")
}

// countAll finds out how many lines the chain has, if no mark has said so.
func (l *Log) countAll() error {
	if l.anchor != nil {
		return nil
	}
	n, err := countLines(io.NewSectionReader(l.file, 0, l.size))
	if err != nil {
		return fmt.Errorf("count audit lines: %w", err)
	}
	l.lines = readStart(l.file).lines + n
	return nil
}

// start is what the first line of a file says about the files before it.
type start struct {
	hash  string // of the line before; "" = the chain begins here
	lines int64  // before this file; 0 = none or not known
	time  string // of the first line
	kind  string
}

// readStart reads the first line of a file. One that is no audit line says nothing.
func readStart(f io.ReaderAt) start {
	line, err := bufio.NewReader(io.NewSectionReader(f, 0, maxEnd)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return start{}
	}
	var r record
	body, _, ok := unsealLine([]byte(strings.TrimSuffix(string(line), "\n")))
	if !ok || json.Unmarshal(body, &r) != nil {
		return start{}
	}
	return start{hash: r.PrevHash, lines: r.linesBefore(), time: r.Timestamp, kind: r.Kind}
}

// continues is the reason of a line of the kind continue. Earlier versions had the number of lines in it alone.
const continues = "the chain goes on after line %d, which is in an earlier file"

// linesBefore returns how many lines are in the files before this line, if it is the first of a file.
func (r *record) linesBefore() int64 {
	n := r.Lines
	if r.Kind != kindContinue {
		return 0
	}
	if n == 0 {
		if _, err := fmt.Sscanf(r.Reason, continues, &n); err != nil {
			return 0
		}
	}
	return n
}

// goOn adds the marker that is the first line of a new file.
func (l *Log) goOn() {
	l.markers = append(l.markers, &record{
		Timestamp: l.timestampNow(),
		Kind:      kindContinue,
		Reason:    fmt.Sprintf(continues, l.lines),
		ledger:    ledger{Lines: l.lines},
	})
}

// endOfMoved returns where the chain ends in files that were moved away: the last hash, and the number of lines up to
// there. It starts at the file with the mark; without one, at the file that was rotated last.
func (l *Log) endOfMoved(mark Mark, known bool) (hash string, lines int64, found bool, err error) {
	files, err := l.otherFiles()
	if err != nil {
		return "", 0, false, err
	}
	if !known {
		rotated := slices.DeleteFunc(slices.Clone(files), func(f piece) bool { return !l.rotatedBefore(f.name) })
		if len(rotated) == 0 {
			return "", 0, false, nil
		}
		last := rotated[len(rotated)-1]
		n, err := linesAfter(last.name, 0)
		return last.end.hash, last.start.lines + n, err == nil, err
	}
	at := slices.IndexFunc(files, func(f piece) bool { return hasMark(f.name, mark) })
	if at < 0 {
		return "", 0, false, nil
	}
	n, err := linesAfter(files[at].name, mark.End)
	hash, lines = files[at].end.hash, mark.Lines+n
	for range files { // on to the files that continue this one
		next := slices.IndexFunc(files, func(f piece) bool { return f.start.hash == hash && f.end.hash != "" })
		if err != nil || next < 0 {
			break
		}
		n, err = linesAfter(files[next].name, 0)
		hash, lines = files[next].end.hash, lines+n
	}
	return hash, lines, err == nil, err
}

// piece is a file with lines of a chain.
type piece struct {
	name string
	start
	end end
}

// otherFiles returns the files next to the log that may hold its earlier lines, by name. Files
// that cannot be read are left out.
func (l *Log) otherFiles() ([]piece, error) { return filesBeside(l.path) }

// rotatedBefore reports whether the log itself gave a file its name.
func (l *Log) rotatedBefore(name string) bool {
	suffix, ok := strings.CutPrefix(name, l.path+".")
	_, err := time.Parse(rotatedTime, suffix)
	return ok && err == nil
}

func hasMark(name string, mark Mark) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	return lineEndsAt(f, mark.End, mark.Hash)
}

// linesAfter counts the lines of a file from an offset on.
func linesAfter(name string, offset int64) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, fmt.Errorf("count audit lines: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, fmt.Errorf("count audit lines: %w", err)
	}
	return countLines(f)
}

// syncDir flushes the names of a directory to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
