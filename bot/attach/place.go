package attach

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxName is how many bytes the name of a stored file has at most, its ending included; file systems take 255, and what
// is put beside the file has a longer name.
const maxName = 180

// maxSame is how many files of one name there may be.
const maxSame = 1000

// errNoName says that there are too many files of one name.
var errNoName = errors.New("there are too many files of that name")

// place is a directory in which files of people are stored. Nothing outside of it can be reached through it, whatever
// links there are (os.Root).
type place struct {
	root *os.Root
	dir  string
}

func openPlace(dir string) (*place, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return &place{root: root, dir: dir}, nil
}

func (p *place) close() { _ = p.root.Close() } // nothing is written through the handle of a directory

// writeFile stores a content under its own name, or under that of "name (2).pdf" where another content has that. The
// same content under a name of the series is not stored again: a message that is read twice after a crash leaves one
// file. It is there as a whole or not at all. temporary is a name that no other write in this place has at the time.
func (p *place) writeFile(
	ctx context.Context, name, temporary string, content io.Reader,
) (stored string, size int64, err error) {
	f, err := p.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", 0, fmt.Errorf("store a file: %w", err)
	}
	defer func() { _ = p.root.Remove(temporary) }() // it has moved, or is of no use
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, sum), reader{ctx, content})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", 0, fmt.Errorf("store a file: %w", err)
	}
	stored, err = p.settleName(name, temporary, sum, size)
	return stored, size, err
}

// settleName gives a written file its name.
func (p *place) settleName(name, temporary string, sum hash.Hash, size int64) (string, error) {
	for n := 1; n <= maxSame; n++ {
		try := numberedName(name, n)
		same, err := p.holdsContent(try, sum, size)
		switch {
		case err == nil && same:
			return try, nil
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("store a file: %w", err)
		}
		err = p.root.Link(temporary, try) // fails where the name was taken meanwhile
		switch {
		case errors.Is(err, fs.ErrExist):
			n--
		case err != nil: // a file system without links
			if err = p.root.Rename(temporary, try); err != nil {
				return "", fmt.Errorf("store a file: %w", err)
			}
			return try, nil
		default:
			return try, nil
		}
	}
	return "", errNoName
}

// holdsContent says whether a name has this very content; fs.ErrNotExist where there is nothing of that name.
func (p *place) holdsContent(name string, sum hash.Hash, size int64) (bool, error) {
	info, err := p.root.Lstat(name)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() || info.Size() != size {
		return false, nil
	}
	f, err := p.root.Open(name)
	if err != nil {
		return false, nil //nolint:nilerr // what cannot be read is another file
	}
	defer func() { _ = f.Close() }() // it is only read
	other := sha256.New()
	if _, err := io.Copy(other, f); err != nil {
		return false, nil //nolint:nilerr // what cannot be read is another file
	}
	return string(other.Sum(nil)) == string(sum.Sum(nil)), nil
}

// numberedName is the name of the n-th file of one name.
func numberedName(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + " (" + strconv.Itoa(n) + ")" + ext
}

// reader ends with a context.
type reader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	r   io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// safeName makes a name that its sender chose one to store a file under: no directories, nothing that cannot be seen,
// hidden or mistaken for an option, not too long. fallback stands for a name of which nothing is left.
func safeName(name, fallback string) string {
	name = norm.NFC.String(strings.ToValidUTF8(name, ""))
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cf, unicode.Co):
			return r
		}
		return -1
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, ". -"), ". ")
	if name == "" {
		return fallback
	}
	ext := path.Ext(name)
	if len(ext) > maxName/4 || ext == name {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if room := maxName - len(ext); len(stem) > room {
		for room > 0 && !utf8.RuneStart(stem[room]) {
			room--
		}
		stem = strings.TrimRight(stem[:room], " .")
	}
	return stem + ext
}
