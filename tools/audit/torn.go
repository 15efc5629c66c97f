package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxEnd is how many bytes at the end of a file are read. Lines are much shorter.
const maxEnd = 1 << 20

// torn describes the bytes after the last good line that do not form a line: one that a crash or a full disk made
// incomplete.
type torn struct {
	data []byte
	// it ended with a newline when the file was opened: no crash can do that, so the marker does not excuse it
	foreign bool
}

// extendTorn adds bytes that were written without forming a line. The receiver may be nil.
func (t *torn) extendTorn(more []byte) *torn {
	if t == nil {
		return &torn{data: bytes.Clone(more)}
	}
	return &torn{data: slices.Concat(t.data, more), foreign: t.foreign}
}

func (t *torn) hasEnded() bool { return bytes.HasSuffix(t.data, []byte("\n")) }

// bytesHash returns the hash of the bytes, including the newline that ends them.
func (t *torn) bytesHash() string {
	if t.hasEnded() {
		return hexDigest(t.data)
	}
	return hexDigest(append(slices.Clip(t.data), '\n'))
}

// end is the end of the chain in a file.
type end struct {
	hash         string
	time         string // of the last good line
	torn         *torn
	unterminated bool // only the newline of the last line is missing
}

// readEnd finds the last good line of a file and what follows it.
func readEnd(f io.ReaderAt, size int64) (end, error) {
	const short = 64 << 10 // holds the last lines of nearly every log
	if size > short {
		last, err := endWithin(f, size, short)
		if err == nil && last.hash != "" {
			return last, nil
		}
	}
	return endWithin(f, size, maxEnd)
}

func endWithin(f io.ReaderAt, size, most int64) (end, error) {
	begin := max(0, size-most)
	data := make([]byte, size-begin)
	if _, err := f.ReadAt(data, begin); err != nil && !errors.Is(err, io.EOF) {
		return end{}, err
	}
	if begin > 0 { // the first line is probably incomplete
		_, after, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return end{}, fmt.Errorf("its last %d bytes hold no line: is it an audit log?", most)
		}
		data = after
	}
	for stop := len(data); stop > 0; {
		start := bytes.LastIndexByte(data[:stop-1], '\n') + 1
		line, whole := bytes.CutSuffix(data[start:stop], []byte("\n"))
		var r record
		if body, hash, ok := unsealLine(line); ok && json.Unmarshal(body, &r) == nil {
			return end{
				hash:         r.chainHash(hash),
				time:         r.Timestamp,
				torn:         tornAfter(data[stop:]),
				unterminated: !whole,
			}, nil
		}
		stop = start
	}
	return end{torn: tornAfter(data)}, nil
}

// tornAfter describes what follows the last good line; nil when there is nothing.
func tornAfter(rest []byte) *torn {
	if len(rest) == 0 {
		return nil
	}
	return &torn{data: bytes.Clone(rest), foreign: bytes.Contains(rest, []byte("\n"))}
}

// lineEndsAt reports whether the line that ends at the offset is complete and has the hash.
func lineEndsAt(f io.ReaderAt, offset int64, hash string) bool {
	begin := max(0, offset-maxEnd)
	data := make([]byte, max(0, offset-begin))
	if n, err := f.ReadAt(data, begin); n < len(data) || err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	line, whole := bytes.CutSuffix(data, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	body, found, ok := unsealLine(line)
	var r record
	return whole && ok && hexDigest(body) == found && json.Unmarshal(body, &r) == nil && r.chainHash(found) == hash
}

// countLines returns the number of complete audit lines.
func countLines(r io.Reader) (int64, error) {
	var n int64
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if _, _, ok := unsealLine(bytes.TrimSuffix(line, []byte("\n"))); ok {
			n++
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// scanLines calls do for each line, with its newline.
func scanLines(r io.Reader, do func(line []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			do(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
