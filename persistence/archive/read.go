package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"time"
)

// Limits of the entries that are read into memory, in bytes.
const (
	maxHeader   = 1 << 20
	maxManifest = 1 << 30
)

func bytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// metaEntry is what an entry has besides its contents.
type metaEntry struct {
	Mode fs.FileMode
	Time time.Time
}

// visitor receives the entries of an archive, in order. Nothing of it can be trusted before Read has returned.
type visitor interface {
	Begin(Header) error
	Dir(name string, meta metaEntry) error
	File(name string, meta metaEntry, content io.Reader) error
	Link(name, target string) error
}

// readArchive reads an archive to its end and checks it against its manifest. The error is ErrDamaged if the archive is
// at fault, and otherwise that of the visitor or of ctx.
func readArchive(ctx context.Context, in io.Reader, visit visitor) (Manifest, error) {
	r := &reader{ctx: ctx, visit: visit, seen: map[string]bool{}}
	zip, err := gzip.NewReader(in)
	if err != nil {
		return Manifest{}, r.readFault(err, "it does not begin like a backup")
	}
	zip.Multistream(false)
	r.tar = tar.NewReader(zip)
	if err := r.readHead(); err != nil {
		return Manifest{}, err
	}
	for r.manifest == nil {
		if err := r.readEntry(); err != nil {
			return Manifest{}, err
		}
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return Manifest{}, r.readFault(err, "something follows its manifest")
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // up to the checksum
		return Manifest{}, r.readFault(err, "its end cannot be read")
	}
	return *r.manifest, r.compareManifest()
}

type reader struct {
	ctx      context.Context //nolint:containedctx // of the one call of Read
	tar      *tar.Reader
	visit    visitor
	header   Header
	entries  []Entry
	seen     map[string]bool
	manifest *Manifest
}

func (r *reader) readFault(err error, what string) error {
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case err == nil:
		return damagedError("%s", what)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damagedError("%s: it ends too early", what)
	default:
		return damagedError("%s: %w", what, err)
	}
}

// nextHeader returns the head of the next entry.
func (r *reader) nextHeader() (*tar.Header, error) {
	if r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	head, err := r.tar.Next()
	if err != nil {
		return nil, r.readFault(err, "the next entry cannot be read")
	}
	for name := range head.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse") {
			return nil, damagedError("%.80q has holes, which no backup has", head.Name)
		}
	}
	return head, nil
}

func (r *reader) readHead() error {
	head, err := r.nextHeader()
	if err != nil {
		return err
	}
	if head.Name != headerName || head.Typeflag != tar.TypeReg {
		return damagedError("its first entry is %.80q, not %s", head.Name, headerName)
	}
	if err := r.decodeEntry(head, maxHeader, &r.header); err != nil {
		return err
	}
	switch {
	case r.header.Format < 1:
		return damagedError("%s names no format", headerName)
	case r.header.Format != Format:
		return fmt.Errorf(
			"the backup has format %d, which this version does not know (it knows %d); restore it with version %s",
			r.header.Format, Format, r.header.Version,
		)
	}
	return r.visit.Begin(r.header)
}

func (r *reader) decodeEntry(head *tar.Header, most int64, into any) error {
	if head.Size > most {
		return damagedError("%s has %d bytes", head.Name, head.Size)
	}
	raw, err := io.ReadAll(io.LimitReader(r.tar, most))
	if err != nil {
		return r.readFault(err, head.Name)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return r.readFault(err, head.Name+" cannot be read")
	}
	return nil
}

// readEntry reads one entry.
func (r *reader) readEntry() error {
	head, err := r.nextHeader()
	if err != nil {
		return err
	}
	if head.Name == manifestName && head.Typeflag == tar.TypeReg {
		r.manifest = &Manifest{}
		return r.decodeEntry(head, maxManifest, r.manifest)
	}
	name := strings.TrimSuffix(head.Name, "/")
	if err := checkName(name); err != nil {
		return damagedError("%w", err)
	}
	if r.seen[name] || !r.header.Has(partOf(name)) {
		return damagedError("%.80q is in it twice, or in no part that it names", name)
	}
	r.seen[name] = true
	meta := metaEntry{Mode: fs.FileMode(head.Mode).Perm(), Time: head.ModTime}
	switch head.Typeflag {
	case tar.TypeDir:
		r.entries = append(r.entries, Entry{Name: name, Kind: kindDirectory})
		return r.visit.Dir(name, meta)
	case tar.TypeSymlink:
		if head.Linkname == "" || len(head.Linkname) > maxName {
			return damagedError("%.80q links to nothing", name)
		}
		r.entries = append(r.entries, Entry{Name: name, Kind: kindLink, Target: head.Linkname})
		return r.visit.Link(name, head.Linkname)
	case tar.TypeReg:
		return r.readFile(name, meta, head.Size)
	default:
		return damagedError("%.80q is no file, directory or link", name)
	}
}

func (r *reader) readFile(name string, meta metaEntry, size int64) error {
	sum := sha256.New()
	content := &faulty{from: io.TeeReader(r.tar, sum), r: r, name: name}
	if err := r.visit.File(name, meta, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil { // what the visitor did not want
		return err
	}
	r.entries = append(r.entries, Entry{
		Name:   name,
		Kind:   kindRegular,
		Size:   size,
		SHA256: hex.EncodeToString(sum.Sum(nil)),
	})
	return nil
}

// compareManifest compares what was read with the manifest.
func (r *reader) compareManifest() error {
	m := r.manifest
	if !reflect.DeepEqual(m.Header, r.header) {
		return damagedError("its header and its manifest differ")
	}
	for i := range max(len(m.Entries), len(r.entries)) {
		switch {
		case i >= len(m.Entries):
			return damagedError("its manifest does not know %.80q", r.entries[i].Name)
		case i >= len(r.entries):
			return damagedError("%.80q is missing", m.Entries[i].Name)
		case m.Entries[i] != r.entries[i]:
			return damagedError("%.80q is not what was written", m.Entries[i].Name)
		}
	}
	return nil
}

// faulty reads a file of the archive, with errors of the archive.
type faulty struct {
	from io.Reader
	r    *reader
	name string
}

// Read implements io.Reader.
func (f *faulty) Read(p []byte) (int, error) {
	if f.r.ctx.Err() != nil {
		return 0, f.r.ctx.Err()
	}
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.r.readFault(err, f.name)
	}
	return n, err
}

// Verify reads an archive to its end and checks it. It stores nothing.
func Verify(ctx context.Context, in io.Reader) (Manifest, error) {
	return readArchive(ctx, in, nothing{})
}

// nothing is a Visitor that ignores everything.
type nothing struct{}

func (nothing) Begin(Header) error          { return nil }
func (nothing) Dir(string, metaEntry) error { return nil }
func (nothing) Link(string, string) error   { return nil }
func (nothing) File(_ string, _ metaEntry, from io.Reader) error {
	_, err := io.Copy(io.Discard, from)
	return err
}
