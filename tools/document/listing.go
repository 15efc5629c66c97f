package document

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zephbot/zephbot/tools/charset"
)

// Bounds of archives that are listed.
const (
	maxListed     = 500       // files that are named
	maxMember     = 64 << 10  // bytes of a file whose text is shown
	maxShown      = 512 << 10 // bytes of all texts that are shown
	maxDecompress = 256 << 20 // bytes of a stream that are looked through
)

// listing names the files of an archive, and shows the texts among them, as far as there is room.
type listing struct {
	t      *text
	files  int
	more   int
	bytes  uint64
	locked bool
	texts  text
	full   bool
}

// add names a file, and shows it if it is a short text. open may be nil.
func (l *listing) add(name string, size uint64, locked bool, open func() (io.Reader, error)) error {
	if l.files++; l.files > maxListed {
		l.more++
		return nil
	}
	l.bytes += size
	line := fmt.Sprintf("%s, %d bytes", cleanName(name), size)
	if locked {
		l.locked = true
		line += ", needs a password"
	}
	if err := l.t.add(line + "\n"); err != nil {
		return err
	}
	if locked || open == nil || size > maxMember || size == 0 || l.full {
		return nil
	}
	r, err := open()
	if err != nil {
		return nil // it is named
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxMember+1))
	if err != nil || len(raw) > maxMember {
		return nil
	}
	encoding, ok := charset.Detect(raw, true)
	if !ok || bytes.IndexByte(raw, 0) >= 0 && encoding.IsUTF8() {
		return nil
	}
	shown := encoding.Decode(raw)
	if l.texts.Len()+len(shown) > maxShown {
		l.full = true
		return nil
	}
	head := cleanName(name)
	if note := encoding.Note(); encoding.Guessed && note != "" {
		head += ", " + note
	}
	return l.texts.add("[file " + head + "]\n" + strings.TrimRight(shown, "\n") + "\n")
}

// end writes how many files there were, and the texts.
func (l *listing) end() error {
	if l.more > 0 {
		if err := l.t.add(fmt.Sprintf("and %d more\n", l.more)); err != nil {
			return err
		}
	}
	if l.files == 0 {
		return l.t.add("[the archive is empty]\n")
	}
	if l.full {
		if err := l.texts.add("[more texts are not shown]\n"); err != nil {
			return err
		}
	}
	return l.t.add(l.texts.String())
}

// cleanName is a name of a file on one line.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if runes := []rune(name); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return name
}

// listZip lists a ZIP archive. Nothing of it is unpacked to a disk.
func listZip(t *text, p *parts) error {
	l := &listing{t: t}
	if err := t.add(fmt.Sprintf("[archive of %d files]\n", len(p.zip.File))); err != nil {
		return err
	}
	for _, f := range p.zip.File {
		name := f.Name
		if f.NonUTF8 {
			encoding, _ := charset.Detect([]byte(name), true)
			name = encoding.Decode([]byte(name))
		}
		if strings.HasSuffix(name, "/") && f.UncompressedSize64 == 0 {
			continue
		}
		err := l.add(name, f.UncompressedSize64, f.Flags&1 != 0, func() (io.Reader, error) {
			if f.UncompressedSize64 > p.left {
				return nil, ErrTooLarge
			}
			p.left -= f.UncompressedSize64
			return f.Open() // what is left open is memory only
		})
		if err != nil {
			return err
		}
	}
	if err := l.end(); err != nil {
		return err
	}
	if l.locked {
		return ErrLocked
	}
	return nil
}

// readPacked reads a stream that was packed by itself: an archive of tar, or one file.
func readPacked(t *text, r io.ReaderAt, size int64) error {
	section := io.NewSectionReader(r, 0, size)
	head := make([]byte, 3)
	if _, err := io.ReadFull(section, head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	section = io.NewSectionReader(r, 0, size)
	unpacked := bzip2.NewReader(section)
	name := ""
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(section)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		unpacked, name = z, z.Name
	}
	b := bufio.NewReaderSize(&bounds{r: unpacked, left: maxDecompress}, tarHead)
	begin, err := b.Peek(tarHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return damagedUnlessLarge(err)
	}
	if isTar(begin) {
		return readTar(t, b)
	}
	raw, err := io.ReadAll(io.LimitReader(b, MaxText+1))
	if err != nil {
		return damagedUnlessLarge(err)
	}
	encoding, ok := charset.Detect(raw[:min(len(raw), HeadSize)], len(raw) <= HeadSize)
	if !ok || encoding.IsUTF8() && bytes.IndexByte(raw, 0) >= 0 {
		return ErrUnknown
	}
	if name != "" {
		if err := t.add("[file " + cleanName(name) + "]\n"); err != nil {
			return err
		}
	}
	if note := encoding.Note(); encoding.Guessed && note != "" {
		if err := t.add("[" + note + "]\n"); err != nil {
			return err
		}
	}
	return t.add(encoding.Decode(raw))
}

// damagedUnlessLarge is the error of a stream that cannot be unpacked.
func damagedUnlessLarge(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// bounds reads so many bytes, and says so if there are more.
type bounds struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounds) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // io.EOF must stay what it is
}

// tarHead is how much of an archive of tar says that it is one.
const tarHead = 512

func isTar(head []byte) bool {
	return len(head) >= tarHead && string(head[257:262]) == "ustar"
}

// readTar lists an archive of tar. Nothing of it is unpacked to a disk.
func readTar(t *text, r io.Reader) error {
	if err := t.add("[archive]\n"); err != nil {
		return err
	}
	l := &listing{t: t}
	for z := tar.NewReader(r); ; {
		h, err := z.Next()
		if errors.Is(err, io.EOF) {
			return l.end()
		}
		if err != nil {
			return errors.Join(l.end(), damagedUnlessLarge(err))
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		err = l.add(h.Name, uint64(max(h.Size, 0)), false, func() (io.Reader, error) { return z, nil })
		if err != nil {
			return err
		}
	}
}
