package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFiles limits the files of one chain.
const maxFiles = 10_000

// What the names of files end with that are beside a log and hold no lines of the chain.
const (
	erasingSuffix = ".erasing" // what a file will be when lines in it are pseudonymised
	journalSuffix = ".erase"   // what is being done, next to the log
)

// Files returns the files of the chain that ends in the log at path, oldest first. It searches the directory of path
// for names that begin like it (audit.jsonl.1, audit-20260304.jsonl). It orders the files by their hashes, not by name
// or time. For a log without rotation, the result is only path.
func Files(path string) ([]string, error) {
	pieces, err := chainFiles(path)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(pieces))
	for _, p := range pieces {
		list = append(list, p.name)
	}
	return list, nil
}

func chainFiles(path string) ([]piece, error) {
	others, err := filesBeside(path)
	if err != nil {
		return nil, err
	}
	last, err := readEnds(path)
	if err != nil {
		return nil, err
	}
	byLast := map[string]piece{} // the file that ends with a hash
	for _, p := range others {
		byLast[p.end.hash] = p
	}
	list := []piece{last}
	for {
		earlier, ok := byLast[list[len(list)-1].hash]
		if !ok || slices.ContainsFunc(list, func(p piece) bool { return p.name == earlier.name }) {
			slices.Reverse(list)
			return list, nil
		}
		list = append(list, earlier)
	}
}

// filesBeside returns the files next to a log that may belong to its chain, by name.
func filesBeside(path string) ([]piece, error) {
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("look for earlier audit logs: %w", err)
	}
	var list []piece
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), stem) || name == filepath.Clean(path) ||
			strings.HasSuffix(name, erasingSuffix) || strings.HasSuffix(name, journalSuffix) || len(list) >= maxFiles {
			continue
		}
		// a file that cannot be read is left out; Verify will report the gap
		if p, err := readEnds(name); err == nil && p.end.hash != "" {
			list = append(list, p)
		}
	}
	return list, nil
}

// readEnds reads the first and the last line of a file.
func readEnds(name string) (piece, error) {
	f, err := os.Open(name)
	if err != nil {
		return piece{}, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return piece{}, fmt.Errorf("audit log: %w", err)
	}
	last, err := readEnd(f, info.Size())
	if err != nil {
		return piece{}, fmt.Errorf("%s: %w", name, err)
	}
	return piece{name: name, start: readStart(f), end: last}, nil
}

// Erasing reports whether lines of a log are being pseudonymised: its files do not fit together meanwhile.
func Erasing(path string) bool {
	_, err := os.Lstat(path + journalSuffix)
	return !errors.Is(err, fs.ErrNotExist)
}

// WholeLines returns the size of a log up to the end of its last line, in bytes: another
// process may be writing the next one.
func WholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	begin := max(0, info.Size()-maxEnd)
	data := make([]byte, info.Size()-begin)
	if _, err := f.ReadAt(data, begin); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if at := bytes.LastIndexByte(data, '\n'); at >= 0 {
		return begin + int64(at) + 1, nil
	}
	if begin == 0 {
		return 0, nil
	}
	return info.Size(), nil // no audit log; it is taken as it is
}
