package privacy

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Archive is an export that is being written: a ZIP, one file after the other, none of which is in memory as a
// whole. It is for one goroutine.
type Archive struct {
	zip   *zip.Writer
	clean func(string) string // removes credentials
	now   time.Time
	used  map[string]int
	ended func() error // why no more is written; nil = go on
	size  int64        // bytes that were written, before they are compressed

	unread []string // the first names of what could not be read
	lacks  int      // how many there are

	// Texts leaves files out: only what was said and set is written.
	Texts bool
	// Most is how many bytes are written at most, before they are compressed; beyond it
	// writing fails with errLarge. 0 = any.
	Most int64
}

// errLarge means that an export is larger than it may be.
var errLarge = errors.New("the export is too large")

// newArchive returns an Archive that is written to out until ctx ends. clean removes credentials from texts.
func newArchive(ctx context.Context, out io.Writer, clean func(string) string, now time.Time) *Archive {
	return &Archive{zip: zip.NewWriter(out), clean: clean, now: now, used: map[string]int{}, ended: ctx.Err}
}

// Close completes the ZIP.
func (a *Archive) Close() error { return a.zip.Close() }

// File begins a file. Writing to it ends with the next one.
func (a *Archive) File(name string) (io.Writer, error) {
	name = a.freeName(name)
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: a.now})
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", name, err)
	}
	return bounded{w, a}, nil
}

// bounded ends a file of the archive once the archive is too large or its context has ended. Zeros of a sparse file
// take no space in the ZIP, but time.
type bounded struct {
	out     io.Writer
	archive *Archive
}

// Write implements io.Writer.
func (b bounded) Write(p []byte) (int, error) {
	a := b.archive
	if err := a.ended(); err != nil {
		return 0, err
	}
	if a.size += int64(len(p)); a.Most > 0 && a.size > a.Most {
		return 0, errLarge
	}
	return b.out.Write(p)
}

// freeName returns a name that no other file has.
func (a *Archive) freeName(name string) string {
	n := a.used[name]
	a.used[name]++
	if n == 0 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n+1, ext)
}

// Lines is a file with one JSON value a line. It is created with its first line.
type Lines struct {
	archive *Archive
	name    string
	out     io.Writer
}

// Lines returns a file of the archive. No other file may be written before its last line.
func (a *Archive) Lines(name string) *Lines { return &Lines{archive: a, name: name} }

// Add writes a value, without credentials.
func (l *Lines) Add(value any) error {
	if l.out == nil {
		var err error
		if l.out, err = l.archive.File(l.name); err != nil {
			return err
		}
	}
	text, ok := encodeJSON(l.archive.cleanValue(value))
	if !ok {
		return fmt.Errorf("export %s: a line cannot be encoded", l.name)
	}
	if _, err := io.WriteString(l.out, text+"\n"); err != nil {
		return fmt.Errorf("export %s: %w", l.name, err)
	}
	return nil
}

// cleanValue removes credentials from all texts in a value.
func (a *Archive) cleanValue(value any) any {
	switch v := value.(type) {
	case string:
		return a.clean(v)
	case json.RawMessage:
		if decoded, ok := decodeJSON(string(v)); ok {
			return a.cleanValue(decoded)
		}
		return a.clean(string(v))
	case []any:
		for i := range v {
			v[i] = a.cleanValue(v[i])
		}
	case map[string]any:
		for name, part := range v {
			v[name] = a.cleanValue(part)
		}
	}
	return value
}

// Dir writes the regular files below a directory. Links are not followed. A directory that does not exist has none;
// what cannot be read is left out, and listed at the end of the archive (Unread).
func (a *Archive) Dir(as, dir string) error {
	if a.Texts {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return a.skipGone(as, err)
	}
	defer func() { _ = root.Close() }() // nothing was written there
	return a.writeTree(as, root.FS(), func(name string) (fs.File, error) { return root.Open(filepath.FromSlash(name)) })
}

// writeTree writes the regular files of a tree.
func (a *Archive) writeTree(as string, files fs.FS, open func(name string) (fs.File, error)) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return a.skipGone(path.Join(as, name), err)
		}
		if err := a.ended(); err != nil || !entry.Type().IsRegular() {
			return err
		}
		in, err := open(name)
		if err != nil {
			return a.skipGone(path.Join(as, name), err)
		}
		defer func() { _ = in.Close() }() // opened for reading
		return a.copyFile(path.Join(as, name), in)
	})
}

// mostUnread is how many names of files that cannot be read are listed.
const mostUnread = 1000

// skipGone goes on without a file or directory that was deleted meanwhile, that this account must not read, or whose
// name is no text: nobody keeps all of their data from an export by one file.
func (a *Archive) skipGone(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrInvalid):
		if a.lacks++; a.lacks <= mostUnread {
			a.unread = append(a.unread, name)
		}
		return nil
	}
	return err
}

// noteUnread writes the names of what could not be read, if there is anything.
func (a *Archive) noteUnread() error {
	if a.lacks == 0 {
		return nil
	}
	out, err := a.File("unreadable.txt")
	if err != nil {
		return err
	}
	list := a.unread
	if more := a.lacks - len(list); more > 0 {
		list = append(list, fmt.Sprintf("… (+%d)", more))
	}
	if _, err := io.WriteString(out, a.clean(strings.Join(list, "\n"))+"\n"); err != nil {
		return fmt.Errorf("export unreadable.txt: %w", err)
	}
	return nil
}

// copyFile writes a file as it is.
func (a *Archive) copyFile(name string, in io.Reader) error {
	out, err := a.File(name)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", name, err)
	}
	return nil
}
