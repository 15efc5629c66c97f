package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"
)

// Writer writes an archive. It is not safe for concurrent use.
type Writer struct {
	zip      *gzip.Writer
	tar      *tar.Writer
	manifest Manifest
}

// NewWriter begins an archive. Nothing is complete before Close.
func NewWriter(out io.Writer, header Header) (*Writer, error) {
	header.Format = Format
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w := &Writer{zip: zip, tar: tar.NewWriter(zip), manifest: Manifest{Header: header, Entries: []Entry{}}}
	return w, w.writeDocument(headerName, header)
}

// writeDocument writes an entry of the format itself.
func (w *Writer) writeDocument(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	head := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     int64(len(raw)),
		Mode:     0o600,
		ModTime:  w.manifest.Created,
		Format:   tar.FormatPAX,
	}
	if err := w.tar.WriteHeader(head); err != nil {
		return err
	}
	_, err = w.tar.Write(raw)
	return err
}

// Close writes the manifest and ends the archive. It does not close the writer below.
func (w *Writer) Close() (Manifest, error) {
	if err := w.writeDocument(manifestName, w.manifest); err != nil {
		return w.manifest, err
	}
	return w.manifest, errors.Join(w.tar.Close(), w.zip.Close())
}

// Bytes adds a file.
func (w *Writer) Bytes(part Part, name string, content []byte) error {
	head := entryHeader(part, name, tar.TypeReg, 0o600, w.manifest.Created)
	head.Size = int64(len(content))
	return w.writeRegular(head, bytesReader(content))
}

// File adds the first size bytes of an open file. A file that has become shorter is filled up with zeros, and listed as
// changed.
func (w *Writer) File(part Part, name string, f fs.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := entryHeader(part, name, tar.TypeReg, info.Mode(), info.ModTime())
	head.Size = size
	body := &exactly{from: f, left: size}
	if err := w.writeRegular(head, body); err != nil {
		return err
	}
	after, err := f.Stat()
	if err != nil || body.short || after.ModTime() != info.ModTime() && part == Workspaces {
		w.manifest.Changed = append(w.manifest.Changed, head.Name)
	}
	return nil
}

func (w *Writer) writeRegular(head *tar.Header, from io.Reader) error {
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("%s: %w", head.Name, err)
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w.tar, sum), from, head.Size); err != nil {
		return fmt.Errorf("%s: %w", head.Name, err)
	}
	w.manifest.Entries = append(w.manifest.Entries, Entry{
		Name: head.Name, Kind: kindRegular, Size: head.Size, SHA256: hex.EncodeToString(sum.Sum(nil)),
	})
	return nil
}

// Tree adds everything below a directory; a missing one is empty. Links are not followed, and nothing outside of the
// directory is read, even if it changes meanwhile. What vanishes is left out; what is no file, directory or link, what
// cannot be read, and what skip returns true for is left out too, the first two with a mention in Changed.
func (w *Writer) Tree(ctx context.Context, part Part, dir string, skip func(name string, info fs.FileInfo) bool) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // read only
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == "." {
			return err
		}
		var info fs.FileInfo
		if err == nil {
			info, err = root.Lstat(filepath.FromSlash(name))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission):
			w.noteLeft(part, name)
			return nil
		case err != nil:
			return err
		case skip != nil && skip(name, info):
			if info.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return w.writeNode(root, part, name, info)
	})
}

func (w *Writer) noteLeft(part Part, name string) {
	w.manifest.Changed = append(w.manifest.Changed, path.Join(string(part), name))
}

// writeNode adds one entry of a tree.
func (w *Writer) writeNode(root *os.Root, part Part, name string, info fs.FileInfo) error {
	if checkName(path.Join(string(part), name)) != nil {
		w.noteLeft(part, name)
		return nil
	}
	switch {
	case info.IsDir():
		head := entryHeader(part, name, tar.TypeDir, info.Mode(), info.ModTime())
		w.manifest.Entries = append(w.manifest.Entries, Entry{Name: head.Name, Kind: kindDirectory})
		return w.tar.WriteHeader(head)
	case info.Mode()&fs.ModeSymlink != 0:
		return w.writeLink(root, part, name, info)
	case info.Mode().IsRegular():
		return w.writeOpened(root, part, name, info)
	default:
		w.noteLeft(part, name)
		return nil
	}
}

func (w *Writer) writeLink(root *os.Root, part Part, name string, info fs.FileInfo) error {
	target, err := root.Readlink(filepath.FromSlash(name))
	if err != nil || len(target) > maxName || target == "" || !utf8.ValidString(target) {
		w.noteLeft(part, name)
		return nil
	}
	head := entryHeader(part, name, tar.TypeSymlink, 0o777, info.ModTime())
	head.Linkname = target
	w.manifest.Entries = append(w.manifest.Entries, Entry{Name: head.Name, Kind: kindLink, Target: target})
	return w.tar.WriteHeader(head)
}

// writeOpened adds a file if it is still the one that info describes: a name may have
// become a pipe or a link meanwhile.
func (w *Writer) writeOpened(root *os.Root, part Part, name string, info fs.FileInfo) error {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.noteLeft(part, name)
		return nil //nolint:nilerr // it is listed
	}
	defer func() { _ = f.Close() }() // read only
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		w.noteLeft(part, name)
		return nil //nolint:nilerr // it is listed
	}
	return w.File(part, name, f, now.Size())
}

func entryHeader(part Part, name string, kind byte, mode fs.FileMode, at time.Time) *tar.Header {
	return &tar.Header{
		Typeflag: kind,
		Name:     path.Join(string(part), name),
		Mode:     int64(mode.Perm()),
		ModTime:  at.Truncate(time.Second),
		Format:   tar.FormatPAX,
	}
}

// exactly reads as many bytes as were announced, zeros if there are fewer.
type exactly struct {
	from  io.Reader
	left  int64
	short bool
}

// Read implements io.Reader.
func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), e.left)]
	if !e.short {
		n, err := e.from.Read(p)
		if n > 0 || err == nil {
			e.left -= int64(n)
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		e.short = true
	}
	clear(p)
	e.left -= int64(len(p))
	return len(p), nil
}
