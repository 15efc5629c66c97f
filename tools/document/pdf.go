package document

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium"
	pdfium_errors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/text/unicode/norm"
)

// enginePages is how much memory PDFium may use, in pages of 64 KiB.
const enginePages = 3072

// interpreted stands for the directory where there is none: PDFium is not compiled, which takes 350 MB for some seconds,
// but interpreted. That is enough for some hundred pages.
const interpreted = "-"

// openEngine starts PDFium, which is WebAssembly: it sees no files, no network and no memory but its own. Compiling it
// takes seconds, so the result is kept in a directory; "" = it is not kept.
func openEngine(cache string) (pdfium.Pdfium, error) {
	config := wazero.NewRuntimeConfig()
	if cache == interpreted {
		config, cache = wazero.NewRuntimeConfigInterpreter(), ""
	}
	config = config.
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(enginePages)
	if cache != "" {
		if kept, err := wazero.NewCompilationCacheWithDir(cache); err == nil { // else it is compiled again
			config = config.WithCompilationCache(kept)
		}
	}
	pool, err := webassembly.Init(webassembly.Config{
		MaxIdle:       1,
		MaxTotal:      1,
		RuntimeConfig: config,
		FSConfig:      wazero.NewFSConfig(), // it has none
		Stdout:        io.Discard,
		Stderr:        io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: start PDFium: %w", errEngine, err)
	}
	engine, err := pool.GetInstance(readTime)
	if err != nil {
		return nil, fmt.Errorf("%w: start PDFium: %w", errEngine, err)
	}
	return engine, nil
}

// errEngine: PDFium cannot be started, whatever the document.
var errEngine = errors.New("no PDF can be read")

// pdf is a document that PDFium has open.
type pdf struct {
	pdfium.Pdfium
	doc   references.FPDF_DOCUMENT
	pages int
}

// openPDF opens a document. Encrypted ones whose password is empty are opened, too.
func openPDF(engine pdfium.Pdfium, r io.ReaderAt, size int64) (*pdf, error) {
	doc, err := engine.OpenDocument(&requests.OpenDocument{
		FileReader: io.NewSectionReader(r, 0, size), FileReaderSize: size,
	})
	switch {
	case errors.Is(err, pdfium_errors.ErrPassword), errors.Is(err, pdfium_errors.ErrSecurity):
		return nil, ErrLocked
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	pages, err := engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if pages.PageCount == 0 {
		return nil, fmt.Errorf("%w: it has no pages", ErrDamaged)
	}
	return &pdf{Pdfium: engine, doc: doc.Document, pages: pages.PageCount}, nil
}

// page names a page, from 0.
func (d *pdf) page(n int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: d.doc, Index: n}}
}

// readPDF reads the pages in order. One that cannot be read leaves the others. A document without any text is empty.
func readPDF(t *text, engine pdfium.Pdfium, r io.ReaderAt, size int64) error {
	d, err := openPDF(engine, r, size)
	if err != nil {
		return err
	}
	broken, silent := 0, ""
	for n := range min(d.pages, maxPages) {
		page, err := d.readPage(n)
		head := fmt.Sprintf("[page %d of %d", n+1, d.pages)
		switch {
		case err != nil:
			broken++
			silent += head + ": it cannot be read]\n"
			continue
		case page == "":
			silent += head + ": no text, it may be a picture]\n"
			continue
		}
		if err := t.add(silent + head + "]\n" + page + "\n"); err != nil {
			return err
		}
		silent = ""
	}
	switch {
	case broken == min(d.pages, maxPages):
		return fmt.Errorf("%w: none of %d pages can be read", ErrDamaged, d.pages)
	case t.Len() > 0:
		return t.add(silent)
	}
	return nil
}

// readPage reads the text of a page.
func (d *pdf) readPage(n int) (string, error) {
	loaded, err := d.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: d.page(n)})
	if err != nil {
		return "", fmt.Errorf("page %d: %w", n+1, err)
	}
	p := &pdfPage{pdf: d, text: loaded.TextPage}
	defer func() { _, _ = d.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: p.text}) }() // it was only read
	count, err := d.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: p.text})
	if err != nil {
		return "", fmt.Errorf("page %d: %w", n+1, err)
	}
	if count.Count <= 0 {
		return "", nil
	}
	p.chars = make([]rune, 0, count.Count)
	for i := range count.Count {
		c, err := d.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: p.text, Index: i})
		if err != nil {
			return "", fmt.Errorf("page %d: %w", n+1, err)
		}
		p.chars = append(p.chars, rune(c.Unicode))
	}
	p.divideWords() // first: what is turned around is not where its place says
	p.divideStacks()
	p.turnAround()
	units := make([]uint16, 0, len(p.chars)) // what is beyond 16 bits may come in halves
	for i, c := range p.chars {
		if p.ends[i] {
			units = append(units, '\n')
		}
		if utf16.IsSurrogate(c) {
			units = append(units, uint16(c))
			continue
		}
		units = utf16.AppendRune(units, c)
	}
	return cleanPage(string(utf16.Decode(units))), nil
}

// pdfPage is the text of a page, each character with its place on the page.
type pdfPage struct {
	pdf   *pdf
	text  references.FPDF_TEXTPAGE
	chars []rune
	ends  map[int]bool // a line ends before these
}

// span is where a character is on the page, from left to right.
func (p *pdfPage) span(i int) (left, right float64, ok bool) {
	box, err := p.pdf.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: p.text, Index: i})
	if err != nil || box.Right <= box.Left {
		return 0, 0, false
	}
	return box.Left, box.Right, true
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
}

// word is one that is read from right to left: where it is in the text and on the page.
type word struct {
	begin, end  int
	first, last float64
}

// turnAround puts words that are read from right to left, and their letters, in the order in which they are read, where
// they come in the order in which they are drawn.
func (p *pdfPage) turnAround() {
	var words []word
	for i := 0; i < len(p.chars); i++ {
		switch c := p.chars[i]; {
		case rightToLeft(c):
			w := word{begin: i, end: i + 1}
			for w.end < len(p.chars) && (rightToLeft(p.chars[w.end]) || unicode.Is(unicode.M, p.chars[w.end])) {
				w.end++
			}
			words = append(words, w)
			i = w.end - 1
		case c == '\r', c == '\n', c > ' ' && !unicode.In(c, unicode.P):
			p.turnWords(words)
			words = words[:0]
		}
	}
	p.turnWords(words)
}

// turnWords does it for words in a row.
func (p *pdfPage) turnWords(words []word) {
	known := len(words) > 0
	for i := range words {
		w := &words[i]
		first, _, ok := p.span(w.begin)
		last, _, also := p.span(w.end - 1)
		w.first, w.last, known = first, last, known && ok && also
	}
	if !known {
		return
	}
	for _, w := range words {
		if w.first < w.last {
			slices.Reverse(p.chars[w.begin:w.end])
		}
	}
	if n := len(words); n > 1 && words[0].first < words[n-1].last {
		begin := words[0].begin
		slices.Reverse(p.chars[begin:words[n-1].end])
		at := begin // each word is turned again, to what it was
		for k := n - 1; k >= 0; k-- {
			size := words[k].end - words[k].begin
			slices.Reverse(p.chars[at : at+size])
			if at += size; k > 0 {
				at += words[k].begin - words[k-1].end
			}
		}
	}
}

// wideGap is how wide a gap between two words is, in sizes of their font, that divides columns.
const wideGap = 1.5

// divideWords puts tabs where the gap between two words is as wide as between columns of a table.
func (p *pdfPage) divideWords() {
	for i := 1; i+1 < len(p.chars); i++ {
		if i+2 < len(p.chars) && p.chars[i] == '\r' && p.chars[i+1] == '\n' && p.isOneLine(i-1, i+2) {
			p.chars[i], p.chars[i+1] = '\t', leftOut
			continue
		}
		if p.chars[i] != ' ' || p.chars[i-1] <= ' ' || p.chars[i+1] <= ' ' {
			continue
		}
		_, right, ok := p.span(i - 1)
		left, _, also := p.span(i + 1)
		if !ok || !also || left <= right {
			continue
		}
		size, err := p.pdf.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: p.text, Index: i - 1})
		if err == nil && left-right > wideGap*max(size.FontSize, 4) {
			p.chars[i] = '\t'
		}
	}
}

// leftOut is a character that cleanPage leaves out.
const leftOut = '\x01'

// isOneLine reports whether a character stands to the right of another one in the same line. PDFium ends a line before
// a text of one character that is drawn on its own, such as a number in a cell of a table.
func (p *pdfPage) isOneLine(i, next int) bool {
	if p.chars[i] <= ' ' || p.chars[next] <= ' ' {
		return false
	}
	a, err := p.pdf.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: p.text, Index: i})
	if err != nil {
		return false
	}
	b, err := p.pdf.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: p.text, Index: next})
	if err != nil || b.Left < a.Right {
		return false
	}
	common := min(a.Top, b.Top) - max(a.Bottom, b.Bottom)
	return common > 0 && common >= min(a.Top-a.Bottom, b.Top-b.Bottom)/2
}

// divideStacks ends a line between characters that stand below each other, such as numbers in a column of a table.
// PDFium takes them for one word that is written from top to bottom. Asking where each character is would take long, so
// words are looked at that end lower than they begin: on the line of the word before.
func (p *pdfPage) divideStacks() {
	p.ends = map[int]bool{}
	var line float64
	known := false // where the line is
	for begin := 0; begin < len(p.chars); begin++ {
		if p.chars[begin] <= ' ' {
			known = known && p.chars[begin] != '\n'
			continue
		}
		end := begin
		for end+1 < len(p.chars) && p.chars[end+1] > ' ' {
			end++
		}
		if !known {
			line, known = p.baseline(begin)
		}
		last, ok := p.baseline(end)
		if known && ok && last < line-1 {
			for i := begin + 1; i <= end; i++ {
				p.ends[i] = p.isLower(i-1, i) && p.isBelow(i-1, i)
			}
		}
		line, known, begin = last, ok, end
	}
}

// baseline is how high the line is that a character stands on.
func (p *pdfPage) baseline(i int) (y float64, ok bool) {
	origin, err := p.pdf.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: p.text, Index: i})
	if err != nil {
		return 0, false
	}
	return origin.Y, true
}

// isLower reports whether a character stands on another line of writing than one before it, which is upright and of a
// script that is not written from top to bottom.
func (p *pdfPage) isLower(i, next int) bool {
	if unicode.In(p.chars[i], unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
		return false
	}
	a, ok := p.baseline(i)
	b, also := p.baseline(next)
	size, err := p.pdf.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: p.text, Index: i})
	if !ok || !also || err != nil || a-b < max(size.FontSize, 4)/2 {
		return false
	}
	turned, err := p.pdf.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: p.text, Index: i})
	return err == nil && math.Cos(float64(turned.CharAngle)) > upright
}

// upright is the least cosine of the angle of a character that is not turned.
const upright = 0.99

// isBelow reports whether a character is below another one, and not to its right as an index is.
func (p *pdfPage) isBelow(i, next int) bool {
	a, err := p.pdf.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: p.text, Index: i})
	if err != nil {
		return false
	}
	b, err := p.pdf.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: p.text, Index: next})
	return err == nil && b.Top <= a.Bottom && b.Left < a.Right
}

// cleanPage writes ligatures and forms of letters as letters, and joins words that were divided at the end of a line.
func cleanPage(s string) string {
	s = strings.NewReplacer("\ufffe\r\n", "", "\ufffe\n", "", "\u0002\r\n", "", "\r\n", "\n").Replace(s)
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 0xfb00 && r <= 0xfb4f, r >= 0xfb50 && r <= 0xfdff, r >= 0xfe70 && r <= 0xfefc:
			b.WriteString(norm.NFKC.String(string(r)))
		case r == '\ufffe', r == '\u00ad', r == '\ufeff', r < ' ' && r != '\n' && r != '\t':
		case r == '\u00a0':
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// Bounds of the pages that are drawn.
const (
	maxDrawn     = 8
	maxDrawnSize = 12 << 20 // bytes of all together
	pageSide     = 1600     // pixels of the longer side: what models look at at most
	pageQuality  = 80
)

// drawPDF draws the first pages: their number in the document, then each as a JPEG behind its length.
func drawPDF(w io.Writer, engine pdfium.Pdfium, r io.ReaderAt, size int64) error {
	d, err := openPDF(engine, r, size)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	_ = binary.Write(&out, binary.BigEndian, uint32(min(d.pages, 1<<30))) // into memory
	for n := range min(d.pages, maxDrawn) {
		drawn, err := d.RenderPageInPixels(&requests.RenderPageInPixels{Page: d.page(n), Width: pageSide, Height: pageSide})
		if err != nil {
			return fmt.Errorf("%w: page %d: %w", ErrDamaged, n+1, err)
		}
		var page bytes.Buffer
		err = jpeg.Encode(&page, drawn.Result.RenderedImage, &jpeg.Options{Quality: pageQuality})
		drawn.Cleanup()
		if err != nil {
			return fmt.Errorf("%w: page %d: %w", ErrDamaged, n+1, err)
		}
		if out.Len()+page.Len() > maxDrawnSize {
			break
		}
		_ = binary.Write(&out, binary.BigEndian, uint32(page.Len())) // into memory
		out.Write(page.Bytes())
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	return nil
}

// drawnPages reads what drawPDF wrote.
func drawnPages(raw []byte) (drawn [][]byte, pages int) {
	if len(raw) < 4 {
		return nil, 0
	}
	pages = int(binary.BigEndian.Uint32(raw))
	for raw = raw[4:]; len(raw) >= 4; {
		n := int(binary.BigEndian.Uint32(raw))
		if n > len(raw)-4 {
			break
		}
		drawn, raw = append(drawn, raw[4:4+n]), raw[4+n:]
	}
	return drawn, pages
}

// warmTime is how long PDFium may take to be compiled.
const warmTime = 5 * time.Minute

// Prepare compiles PDFium into its directory, unless it is there; the first PDF does it, too. Who waits for it may stop
// waiting: it goes on until Close.
func (r *Reader) Prepare(ctx context.Context) error {
	if r.cache == "" {
		return nil
	}
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmTime)
		r.stop = cancel
		r.preparing.Go(func() {
			defer close(r.warmed)
			defer cancel()
			err := os.MkdirAll(r.cache, 0o700)
			if err == nil {
				err = r.command(ctx, engineKind).Run()
			}
			r.slow.Store(err != nil) // no place, or not enough memory
		})
	})
	select {
	case <-r.warmed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read a document: %w", ctx.Err())
	}
}
