package document

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Distances between two characters, in sizes of their font, above which they are in different lines or words.
const (
	lineApart = 0.5
	wordApart = 0.2
	backwards = 1.0 // so far to the left in the same line is another column
)

// readPDF reads the pages in order. One that cannot be read leaves the others.
func readPDF(t *text, r io.ReaderAt, size int64) error {
	doc, err := pdf.NewReader(r, size)
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	pages, broken := doc.NumPage(), 0
	for n := 1; n <= min(pages, maxPages); n++ {
		page, ok := readPage(doc, n)
		if !ok {
			broken++
			continue
		}
		if page == "" {
			continue
		}
		if err := t.add(fmt.Sprintf("[page %d of %d]\n%s\n", n, pages, page)); err != nil {
			return err
		}
	}
	if pages == 0 || broken == min(pages, maxPages) {
		return fmt.Errorf("%w: none of %d pages can be read", ErrDamaged, pages)
	}
	return nil
}

// readPage puts the characters of a page together to lines, in the order in which they are drawn. Not ok: the library
// cannot make sense of the page.
func readPage(doc *pdf.Reader, n int) (page string, ok bool) {
	defer func() {
		if recover() != nil { // so the library says that a page is malformed
			page, ok = "", false
		}
	}()
	var b strings.Builder
	var last pdf.Text
	for _, c := range doc.Page(n).Content().Text {
		if c.S == "\n" { // comes behind each string that has gaps
			continue
		}
		size := math.Max(math.Abs(c.FontSize), 1)
		switch gap := c.X - last.X - last.W; {
		case b.Len() == 0:
		case math.Abs(c.Y-last.Y) > lineApart*size, gap < -backwards*size && last.W > 0:
			b.WriteString("\n")
		case gap > wordApart*size && c.S != " " && last.S != " ":
			b.WriteString(" ")
		}
		b.WriteString(c.S)
		last = c
	}
	return strings.TrimSpace(b.String()), true
}
