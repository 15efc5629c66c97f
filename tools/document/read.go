package document

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klippa-app/go-pdfium"

	"github.com/zephbot/zephbot/tools/charset"
	"github.com/zephbot/zephbot/tools/web"
)

// errFull says that MaxText is reached: what there is counts.
var errFull = errors.New("the text is long enough")

// text collects what is read, up to MaxText.
type text struct{ strings.Builder }

// add writes valid text only.
func (t *text) add(s string) error {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if room := MaxText - t.Len(); len(s) > room {
		t.WriteString(strings.ToValidUTF8(s[:max(room, 0)], ""))
		return errFull
	}
	t.WriteString(s)
	return nil
}

// readDocument reads a document of a kind. cut says that there is more than MaxText. Errors are those of the package; a
// library that panics found a damaged document.
func readDocument(r io.ReaderAt, size int64, kind Kind, engine pdfium.Pdfium) (out string, cut bool, err error) {
	t := &text{}
	defer func() {
		if p := recover(); p != nil {
			out, err = t.String(), fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	switch kind {
	case PDF:
		err = readPDF(t, engine, r, size)
	case Zip:
		err = readZip(t, r, size)
	case Old:
		err = readOLE(t, r, size)
	case RTF:
		err = readRTF(t, r, size)
	case Mail:
		err = readMail(t, r, size)
	case Notebook:
		err = readNotebook(t, r, size)
	case Packed:
		err = readPacked(t, r, size)
	case Tar:
		err = readTar(t, io.NewSectionReader(r, 0, size))
	case HTML:
		err = readHTML(t, r, size)
	case Encoded:
		err = readEncoded(t, r, size)
	case Plain, Broken, Other:
		err = fmt.Errorf("%w: nothing to read in a file of kind %s", ErrDamaged, kind)
	}
	if errors.Is(err, errFull) {
		return t.String(), true, nil
	}
	return t.String(), false, err
}

// readHTML turns a page into Markdown, without what a reader of it would not see.
func readHTML(t *text, r io.ReaderAt, size int64) error {
	page, err := web.Text(io.NewSectionReader(r, 0, min(size, 8<<20)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return t.add(page)
}

// readEncoded reads a text that is not UTF-8. It begins with what was assumed, unless its byte order mark says so.
func readEncoded(t *text, r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, HeadSize))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	encoding, ok := charset.Detect(head, size <= HeadSize)
	if !ok {
		return fmt.Errorf("%w: it is not text", ErrDamaged)
	}
	raw, err := io.ReadAll(io.LimitReader(encoding.Reader(io.NewSectionReader(r, 0, size)), MaxText+4))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if encoding.Guessed {
		if err := t.add("[" + encoding.Note() + "]\n"); err != nil {
			return err
		}
	}
	return t.add(strings.ToValidUTF8(string(raw), "\uFFFD"))
}
