package document

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/zephbot/zephbot/tools/charset"
	"github.com/zephbot/zephbot/tools/web"
)

// Bounds of what is unpacked.
const (
	maxEntries  = 4096      // files in an archive
	maxUnpacked = 128 << 20 // bytes of all files in an archive together, and of one stream
	maxPages    = 2000      // of a PDF, and sheets of a workbook
	maxDepth    = 256       // of elements in one another
)

// errFull says that MaxText is reached: what there is counts.
var errFull = errors.New("the text is long enough")

// text collects what is read, up to MaxText.
type text struct{ strings.Builder }

func (t *text) add(s string) error {
	if room := MaxText - t.Len(); len(s) > room {
		t.WriteString(strings.ToValidUTF8(s[:max(room, 0)], ""))
		return errFull
	}
	t.WriteString(s)
	return nil
}

// read reads a document of a kind. cut says that there is more than MaxText. Errors are those of the package; a library
// that panics found a damaged document.
func read(r io.ReaderAt, size int64, kind Kind) (out string, cut bool, err error) {
	t := &text{}
	defer func() {
		if p := recover(); p != nil {
			out, err = t.String(), fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	switch kind {
	case PDF:
		err = readPDF(t, r, size)
	case DOCX:
		err = readDOCX(t, r, size)
	case XLSX:
		err = readXLSX(t, r, size)
	case HTML:
		err = readHTML(t, r, size)
	case Encoded:
		err = readEncoded(t, r, size)
	case Plain, Other:
		err = fmt.Errorf("%w: nothing to read in a file of kind %s", ErrDamaged, kind)
	}
	if errors.Is(err, errFull) {
		return t.String(), true, nil
	}
	return t.String(), false, err
}

// unpack opens an archive whose contents have a sane size. The package archive/zip does not unpack more of a file than
// its directory says.
func unpack(r io.ReaderAt, size int64) (*zip.Reader, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(z.File) > maxEntries {
		return nil, fmt.Errorf("%w: %d files in it", ErrTooLarge, len(z.File))
	}
	total := uint64(0)
	for _, f := range z.File {
		if total += min(f.UncompressedSize64, maxUnpacked+1); total > maxUnpacked {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxUnpacked)
		}
	}
	return z, nil
}

// readDOCX reads the text of the body, footnotes and headers left out (ECMA-376, part 1, section 17).
func readDOCX(t *text, r io.ReaderAt, size int64) error {
	z, err := unpack(r, size)
	if err != nil {
		return err
	}
	body, err := z.Open("word/document.xml")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = body.Close() }() // it is only read
	d := xml.NewDecoder(body)
	for depth, inText := 0, false; ; {
		token, err := d.RawToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return fmt.Errorf("%w: elements %d deep", ErrTooLarge, depth)
			}
			inText = e.Name.Local == "t"
			err = t.add(map[string]string{"tab": "\t", "br": "\n", "cr": "\n"}[e.Name.Local])
		case xml.EndElement:
			depth--
			inText = false
			err = t.add(map[string]string{"p": "\n", "tc": "\t", "tr": "\n"}[e.Name.Local])
		case xml.CharData:
			if inText {
				err = t.add(string(e))
			}
		}
		if err != nil {
			return err
		}
	}
}

// readXLSX reads the sheets in order, a row a line, cells between tabs, as a reader sees them.
func readXLSX(t *text, r io.ReaderAt, size int64) error {
	if _, err := unpack(r, size); err != nil {
		return err
	}
	book, err := excelize.OpenReader(io.NewSectionReader(r, 0, size), excelize.Options{
		UnzipSizeLimit:    maxUnpacked,
		UnzipXMLSizeLimit: maxUnpacked,
	})
	switch {
	case errors.Is(err, excelize.ErrWorkbookPassword):
		return ErrLocked
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = book.Close() }() // it is only read
	for i, sheet := range book.GetSheetList() {
		if i == maxPages {
			return errFull
		}
		if err := readSheet(t, book, sheet); err != nil {
			return err
		}
	}
	return nil
}

func readSheet(t *text, book *excelize.File, sheet string) error {
	if err := t.add("[sheet " + sheet + "]\n"); err != nil {
		return err
	}
	rows, err := book.Rows(sheet)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = rows.Close() }() // it is only read
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err := t.add(strings.TrimRight(strings.Join(cells, "\t"), "\t") + "\n"); err != nil {
			return err
		}
	}
	if err := rows.Error(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
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
