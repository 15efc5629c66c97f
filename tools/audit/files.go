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
)

// maxFiles limits the files of one chain.
const maxFiles = 10_000

// Files returns the files of the chain that ends in the log at path, oldest first. It searches the directory of path
// for names that begin like it (audit.jsonl.1, audit-20260304.jsonl). It orders the files by their hashes, not by name
// or time. For a log without rotation, the result is only path.
func Files(path string) ([]string, error) {
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("look for earlier audit logs: %w", err)
	}
	byLast := map[string]string{} // the file that ends with a hash
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), stem) || name == filepath.Clean(path) ||
			len(byLast) >= maxFiles {
			continue
		}
		// a file that cannot be read is left out; Verify will report the gap
		if ends, err := ends(name); err == nil && ends.last != "" {
			byLast[ends.last] = name
		}
	}
	list := []string{path}
	for {
		first, err := ends(list[len(list)-1])
		if err != nil {
			return nil, err
		}
		earlier, ok := byLast[first.before]
		if !ok || slices.Contains(list, earlier) {
			slices.Reverse(list)
			return list, nil
		}
		list = append(list, earlier)
	}
}

// chainEnds are the hash before the first line of a file, and the hash of its last line.
type chainEnds struct{ before, last string }

func ends(name string) (ends chainEnds, err error) {
	f, err := os.Open(name)
	if err != nil {
		return ends, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return ends, fmt.Errorf("audit log: %w", err)
	}
	last, err := readEnd(f, info.Size())
	if err != nil {
		return ends, fmt.Errorf("%s: %w", name, err)
	}
	ends.last = last.hash
	line, err := bufio.NewReader(io.LimitReader(f, maxEnd)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return ends, fmt.Errorf("%s: %w", name, err)
	}
	var r record
	if body, _, ok := unseal([]byte(strings.TrimSuffix(string(line), "\n"))); ok && json.Unmarshal(body, &r) == nil {
		ends.before = r.PrevHash
	}
	return ends, nil
}
