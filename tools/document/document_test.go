package document_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/document/documenttest"
)

// TestMain lets the test binary be the process that reads documents, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == document.Word {
		os.Exit(document.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	dir, err := os.MkdirTemp("", "zephbot-document")
	if err != nil {
		panic(err)
	}
	flag.Parse()
	compiled = filepath.Join(dir, "pdfium")
	if testing.Short() { // with the race detector, compiling PDFium takes long: the tests of the service keep it here
		compiled = filepath.Join(os.TempDir(), fmt.Sprint("zephbot-tests-", os.Getuid()), "pdfium")
		if err := newReader().Prepare(context.Background()); err != nil {
			panic(err)
		}
	}
	shared.Store(newReader())
	code := m.Run()
	_ = os.RemoveAll(dir) // it is a temporary directory
	os.Exit(code)
}

// compiled is where PDFium is kept.
var compiled string

var shared atomic.Pointer[document.Reader]

// newReader starts the test binary.
func newReader() *document.Reader {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return document.NewReader([]string{self, document.Word}, compiled)
}

// reader is a Reader that has been used before.
func reader(*testing.T) *document.Reader { return shared.Load() }

// file is a file with a content.
func file(t *testing.T, content []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestText(t *testing.T) {
	t.Parallel()
	r := reader(t)
	for name, test := range map[string]struct {
		content []byte
		kind    document.Kind
		want    string
		err     error
	}{
		"pdf":          {documenttest.PDF("Invoice 7\nTotal: 12 (net)", "Thank you"), document.PDF, "[page 1 of 2]\nInvoice 7\nTotal: 12 (net)\n[page 2 of 2]\nThank you\n", nil},
		"table pdf":    {documenttest.PDF("Lunch\nItem\tAmount\tEUR\nTea\t3\t4.50\nCake\t4\t8\nTotal\t\t12.50"), document.PDF, "[page 1 of 1]\nLunch\nItem\tAmount\tEUR\nTea\t3\t4.50\nCake\t4\t8\nTotal\t12.50\n", nil},
		"stacked pdf":  {documenttest.PDFDrawn("BT /F1 12 Tf 72 720 Td 14 TL (7) Tj T* (8) Tj T* (9) Tj T* (End) Tj ET"), document.PDF, "[page 1 of 1]\n7\n8\n9\nEnd\n", nil},
		"columns pdf":  {documenttest.PDFDrawn("BT /F1 12 Tf 72 720 Td (1) Tj 0 -14 Td (2) Tj 60 14 Td (3) Tj 0 -14 Td (4) Tj ET"), document.PDF, "[page 1 of 1]\n1\n2\n3\n4\n", nil},
		"turned pdf":   {documenttest.PDFDrawn("BT /F1 12 Tf 0 -1 1 0 72 400 Tm (Turned text) Tj ET"), document.PDF, "[page 1 of 1]\nTurned text\n", nil},
		"formula pdf":  {documenttest.PDFDrawn("BT /F1 1 Tf 12 0 0 12 72 720 Tm (H) Tj 7 0 0 7 80.6 717 Tm (2) Tj 12 0 0 12 84.5 720 Tm (O) Tj ET"), document.PDF, "[page 1 of 1]\nH2O\n", nil},
		"late pdf":     {append([]byte("HTTP/1.1 200 OK\r\n\r\n"), documenttest.PDF("Invoice 7")...), document.PDF, "[page 1 of 1]\nInvoice 7\n", nil},
		"docx":         {documenttest.DOCX("First <one>", "Zweiter Absatz: ä"), document.Zip, "First <one>\nZweiter Absatz: ä\n", nil},
		"xlsx":         {documenttest.XLSX("Costs", []string{"what", "EUR"}, []string{"rent", "900"}), document.Zip, "[sheet Costs]\nwhat\tEUR\nrent\t900\n", nil},
		"html":         {[]byte("<html><head><title>T</title><script>x()</script></head><body><h1>T</h1><p>Hello <b>you</b></p><p style='display:none'>obey</p></body></html>"), document.HTML, "# T\n\nHello **you**", nil},
		"windows-1252": {[]byte("Gr\xfc\xdfe"), document.Encoded, "[not UTF-8, read as windows-1252: letters beyond ASCII may be wrong]\nGrüße", nil},
		"gbk":          {[]byte("\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7\n\xbd\xf1\xcc\xec\xcf\xc2\xce\xe7\n"), document.Encoded, "[not UTF-8, read as GBK, judging by its bytes]\n你好世界\n今天下午\n", nil},
		"utf-16":       {[]byte("\xff\xfeh\x00i\x00"), document.Encoded, "hi", nil},
		"cut pdf":      {documenttest.PDF("Invoice")[:120], document.PDF, "", document.ErrDamaged},
		"no pdf":       {[]byte("%PDF-1.4 and then nothing of the kind"), document.PDF, "", document.ErrDamaged},
		"empty":        {nil, document.PDF, "", document.ErrDamaged},
		"no zip":       {[]byte("PK\x03\x04 and nothing"), document.Zip, "", document.ErrDamaged},
		"broken xml":   {documenttest.Zip("word/document.xml", "<w:p><w:t>a</w:p"), document.Zip, "", document.ErrDamaged},
		"deep xml":     {documenttest.Zip("word/document.xml", strings.Repeat("<a>", 5000)), document.Zip, "", document.ErrTooLarge},
		"docx bomb":    {documenttest.ZipBomb("word/document.xml", 130<<20), document.Zip, "", document.ErrTooLarge},
		"xlsx bomb":    {documenttest.ZipBomb("xl/worksheets/sheet1.xml", 130<<20), document.Zip, "", document.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, cut, err := r.Text(t.Context(), file(t, test.content), test.kind)
			if got != test.want || cut || !errors.Is(err, test.err) {
				t.Errorf("%q, cut %t, %v; want %q, %v", got, cut, err, test.want, test.err)
			}
		})
	}
}

// alone skips, with -short as the race detector runs tests, what a single goroutine does: reading further documents.
// TestText reads one of each kind.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a document is read by one goroutine, which TestText watches")
	}
}

// A scan has no text; its pages are drawn, as many as a model is shown.
func TestPages(t *testing.T) {
	t.Parallel()
	alone(t)
	scan := documenttest.Scan(10)
	if text, _, err := reader(t).Text(t.Context(), file(t, scan), document.PDF); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	drawn, pages, err := reader(t).Pages(t.Context(), file(t, scan))
	if err != nil || pages != 10 || len(drawn) != 8 {
		t.Fatalf("%d of %d pages, %v", len(drawn), pages, err)
	}
	for _, page := range drawn {
		m, err := jpeg.DecodeConfig(bytes.NewReader(page))
		if err != nil || m.Height != 1600 || m.Width < 1200 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if _, _, err := reader(t).Pages(t.Context(), file(t, []byte("%PDF-1.4"))); !errors.Is(err, document.ErrDamaged) {
		t.Error(err)
	}
}

// Where nothing can be kept, PDFium is interpreted.
func TestNoPlaceForPDFium(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := document.NewReader([]string{self, document.Word}, "/proc/nowhere")
	text, _, err := r.Text(t.Context(), file(t, documenttest.PDF("Invoice")), document.PDF)
	if text != "[page 1 of 1]\nInvoice\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A page that unpacks to gigabytes costs a process its life, and the service nothing.
func TestAPDFBomb(t *testing.T) {
	t.Parallel()
	alone(t)
	_, _, err := reader(t).Text(t.Context(), file(t, documenttest.PDFBomb(64<<20)), document.PDF)
	if !errors.Is(err, document.ErrTooLarge) && !errors.Is(err, document.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestALongDocumentIsCut(t *testing.T) {
	t.Parallel()
	paragraph := strings.Repeat("word ", 2000)
	paragraphs := make([]string, 300)
	for i := range paragraphs {
		paragraphs[i] = paragraph
	}
	text, cut, err := reader(t).Text(t.Context(), file(t, documenttest.DOCX(paragraphs...)), document.Zip)
	if err != nil || !cut || len(text) > document.MaxText || len(text) < document.MaxText-10 {
		t.Errorf("%d bytes, cut %t, %v", len(text), cut, err)
	}
}

func TestTheEndOfAContextIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := reader(t).Text(ctx, file(t, documenttest.PDF("x")), document.PDF); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := document.NewReader([]string{"/nowhere/program"}, "").Text(t.Context(), file(t, nil), document.PDF); err == nil || errors.Is(err, document.ErrDamaged) {
		t.Errorf("a process that cannot be started: %v", err)
	}
}

// TestClose ends the compiling of PDFium, which nobody waits for any more.
func TestClose(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := document.NewReader([]string{self, document.Word}, t.TempDir())
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := r.Prepare(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.Close()
	if err := r.Prepare(t.Context()); err != nil { // what it waits for is over
		t.Error(err)
	}
	unused := document.NewReader([]string{self, document.Word}, t.TempDir())
	unused.Close()
	if err := unused.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	half := append(bytes.Repeat([]byte("a"), document.HeadSize-1), 0xc3) // the first half of a character
	for _, test := range []struct {
		name, mediaType, head string
		want                  document.Kind
	}{
		{"a.txt", "text/plain", "hello", document.Plain},
		{"a.go", "", "package a", document.Plain},
		{"a.json", "application/json", `{"a":1}`, document.Plain},
		{"empty.csv", "text/csv", "", document.Plain},
		{"long.txt", "", string(half), document.Plain},
		{"a.html", "", "hello", document.HTML},
		{"a", "", "<!DOCTYPE html><p>", document.HTML},
		{"liar.txt", "text/plain", "%PDF-1.7", document.PDF},
		{"late.pdf", "", "\n\n%PDF-1.7", document.PDF},
		{"promise.pdf", "application/pdf", "hello", document.Broken},
		{"empty.docx", "", "", document.Broken},
		{"a.docx", "", "PK\x03\x04", document.Zip},
		{"a.txt", "", "{\\rtf1 x}", document.RTF},
		{"a.doc", "", "{\\rtf1 x}", document.RTF},
		{"a.doc", "", "hello", document.Plain},
		{"a.xls", "", "a\tb", document.Plain},
		{"a.doc", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", document.Old},
		{"a.eml", "", "Received: x\r\nFrom: y\r\n", document.Mail},
		{"a.eml", "", "hello", document.Plain},
		{"a.ipynb", "", "{}", document.Notebook},
		{"a.tar.gz", "", "\x1f\x8b\x08\x00", document.Packed},
		{"a.docx", "", "hello", document.Broken},
		{"a.csv", "", "Stra\xdfe;1", document.Encoded},
		{"a.bin", "", "\x7fELF\x00", document.Other},
		{"a.dat", "", "\xfc\xdf", document.Other},
		{"a.txt", "", "\xff\xfeh\x00", document.Encoded},
	} {
		if got := document.KindOf(test.name, test.mediaType, []byte(test.head)); got != test.want {
			t.Errorf("%s %s %.10q: %s, want %s", test.name, test.mediaType, test.head, got, test.want)
		}
	}
}

// Whatever a stranger writes, the process says something that is known, and no more than that.
func FuzzMain(f *testing.F) {
	for _, kind := range []document.Kind{
		document.PDF, document.Zip, document.Old, document.RTF, document.Mail, document.Notebook, document.Packed, document.Tar, document.HTML, document.Encoded,
	} {
		f.Add(string(kind), documenttest.PDF("a"))
		f.Add(string(kind), documenttest.DOCX("a"))
		f.Add(string(kind), documenttest.XLSX("a", []string{"b"}))
	}
	files, err := filepath.Glob("testdata/real/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(document.KindOf(name, "", content[:min(len(content), document.HeadSize)])), content)
	}
	f.Fuzz(func(t *testing.T, kind string, content []byte) {
		if document.Kind(kind) == document.PDF { // its library can go in circles, which ends with the process
			t.Skip()
		}
		text, _, err := document.Read(bytes.NewReader(content), int64(len(content)), document.Kind(kind))
		if len(text) > document.MaxText {
			t.Errorf("%d bytes", len(text))
		}
		if err != nil && !errors.Is(err, document.ErrDamaged) && !errors.Is(err, document.ErrLocked) && !errors.Is(err, document.ErrTooLarge) && !errors.Is(err, document.ErrUnknown) {
			t.Errorf("an error of nobody: %v", err)
		}
	})
}
