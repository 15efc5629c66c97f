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

// Follow begins at the end of the log at path; from is how many lines of its file are known already (their numbers). A
// file that does not exist yet is followed from its first line.
func Follow(path string, from int) *Follower { return &Follower{path: path, number: -from - 1} }

// Close releases the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Next calls do for the lines that were added since the last call. It does not wait.
func (f *Follower) Next(do func(*Line)) error {
	if err := f.begin(); err != nil || f.file == nil {
		return err
	}
	for range maxFiles {
		if err := f.read(do); err != nil {
			return err
		}
		next, err := f.successor()
		if err != nil || next == "" {
			return err
		}
		// what was added before the file was moved away
		if err := f.read(do); err != nil {
			return err
		}
		if err := f.open(next); err != nil {
			return err
		}
	}
	return nil
}

// begin opens the file, and skips what is known.
func (f *Follower) begin() error {
	if f.file != nil {
		return nil
	}
	known := -f.number - 1
	if err := f.open(f.path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			f.number = -1
			return nil
		}
		return err
	}
	return f.read(func(*Line) {}, known)
}

func (f *Follower) open(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	err = f.Close()
	f.file, f.number, f.half = file, 0, nil
	return err
}

// read returns what was added to the open file; most limits the number of lines.
func (f *Follower) read(do func(*Line), most ...int) error {
	if err := f.cut(do); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for len(most) == 0 || f.number < most[0] {
		n, err := f.file.Read(buf)
		f.half = append(f.half, buf[:n]...)
		rest := f.half
		for len(most) == 0 || f.number < most[0] {
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
	return nil
}

// cut begins again with a file that became shorter, and says so.
func (f *Follower) cut(do func(*Line)) error {
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
	do(&Line{File: f.file.Name(), Number: f.number, Broken: fmt.Sprintf("the file was cut by %d bytes while it was read", at-info.Size())})
	_, err = f.file.Seek(0, io.SeekEnd)
	f.half = nil
	return err
}

// successor returns the file that continues the one that is open; "" = it is still the one that is written.
func (f *Follower) successor() (string, error) {
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
