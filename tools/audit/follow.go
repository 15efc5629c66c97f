package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Follower reads the lines that are added to a chain, over rotation. It is used by one goroutine.
type Follower struct {
	path   string
	file   *os.File
	number int    // of the last line that was returned
	half   []byte // a line whose end is not there yet
}

// Follow reads what is added to the log at path from now on, or with whole, from the first line of its file. A file
// that does not exist yet is read from its first line.
func Follow(path string, whole bool) (*Follower, error) {
	f := &Follower{path: path}
	err := f.openFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil && !whole {
		err = f.readAdded(func(*Line) {})
	}
	return f, err
}

// Close releases the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Next calls do for the lines that were added since the last call. It does not wait.
func (f *Follower) Next(do func(*Line)) error {
	if f.file == nil {
		if err := f.openFile(f.path); errors.Is(err, os.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
	}
	for range maxFiles {
		if err := f.readAdded(do); err != nil {
			return err
		}
		next, err := f.nextFile()
		if err != nil || next == "" {
			return err
		}
		// what was added before the file was moved away
		if err := f.readAdded(do); err != nil {
			return err
		}
		if err := f.openFile(next); err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) openFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	err = f.Close()
	f.file, f.number, f.half = file, 0, nil
	return err
}

// readAdded returns what was added to the open file.
func (f *Follower) readAdded(do func(*Line)) error {
	if err := f.restartCut(do); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := f.file.Read(buf)
		f.half = append(f.half, buf[:n]...)
		rest := f.half
		for {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole {
				break
			}
			f.number++
			l := ReadLine(bytes.Clone(line))
			l.File, l.Number = f.file.Name(), f.number
			do(&l)
			rest = after
		}
		f.half = bytes.Clone(rest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
	}
}

// restartCut begins again with a file that became shorter, and says so.
func (f *Follower) restartCut(do func(*Line)) error {
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	if info.Size() >= at {
		return nil
	}
	do(&Line{
		File:   f.file.Name(),
		Number: f.number,
		Broken: fmt.Sprintf("the file was cut by %d bytes while it was read", at-info.Size()),
	})
	_, err = f.file.Seek(0, io.SeekEnd)
	f.half = nil
	return err
}

// nextFile returns the file that continues the one that is open; "" = it is still the one that is written.
func (f *Follower) nextFile() (string, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return "", fmt.Errorf("read audit log: %w", err)
	}
	live, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && os.SameFile(mine, live):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("audit log: %w", err)
	}
	files, err := Files(f.path)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(mine, info)
	})
	if at >= 0 && at < len(files)-1 {
		return files[at+1], nil
	}
	if live.Size() == 0 { // its first line is not written yet: it will say what it continues
		return "", nil
	}
	return f.path, nil
}
