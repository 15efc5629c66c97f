// Package documenttest makes documents for tests: small ones as programs write them, and those that are made to harm
// who reads them.
package documenttest

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"html"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"strings"
)

// PDF is a document with a page for each text; lines are rows of the page, and tabs begin columns.
func PDF(pages ...string) []byte {
	contents := make([][]byte, len(pages))
	for i, page := range pages {
		var b strings.Builder
		for n, line := range strings.Split(page, "\n") {
			for column, text := range strings.Split(line, "\t") {
				fmt.Fprintf(
					&b, "BT /F1 12 Tf %d %d Td (%s) Tj ET\n", 72+150*column, 720-20*n,
					strings.NewReplacer(`\`, `\\`, `(`, `\(`, `)`, `\)`).Replace(text),
				)
			}
		}
		contents[i] = []byte(b.String())
	}
	return pdf(contents, nil)
}

// PDFBomb is a document whose one page unpacks to more than so many bytes of text.
func PDFBomb(size int) []byte {
	line := []byte("BT /F1 12 Tf 72 720 Td (" + strings.Repeat("x", 1000) + ") Tj ET\n")
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	for n := 0; n < size; n += len(line) {
		_, _ = z.Write(line) // into memory
	}
	_ = z.Close()
	return pdf([][]byte{packed.Bytes()}, []byte("/Filter /FlateDecode "))
}

// pdf writes a document with the contents of its pages. more goes into the dictionary of each content.
func pdf(contents [][]byte, more []byte) []byte {
	var b bytes.Buffer
	var at []int
	b.WriteString("%PDF-1.4\n")
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n", len(at))
		fmt.Fprintf(&b, format, args...)
		b.WriteString("\nendobj\n")
	}
	kids := make([]string, len(contents))
	for i := range contents {
		kids[i] = fmt.Sprintf("%d 0 R", 4+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(kids))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, content := range contents {
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "+
			"/Contents %d 0 R >>", 5+2*i)
		object("<< %s/Length %d >>\nstream\n%s\nendstream", more, len(content), content)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}

// Scan is a document of so many pages, each of them one picture.
func Scan(pages int) []byte {
	var b bytes.Buffer
	var at []int
	b.WriteString("%PDF-1.4\n")
	object := func(content string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), content)
	}
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 5+i)
	}
	picture := JPEG(60, 80)
	const draw = "q 612 0 0 792 0 0 cm /I Do Q"
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), pages))
	object(fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width 60 /Height 80 /ColorSpace /DeviceRGB "+
		"/BitsPerComponent 8 /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream", len(picture), picture))
	object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(draw), draw))
	for range pages {
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] " +
			"/Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>")
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}

// Zip is an archive of files, by name and content in turn.
func Zip(pairs ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		if w, err := z.Create(pairs[i]); err == nil { // as always: it is written into memory
			_, _ = io.WriteString(w, pairs[i+1])
		}
	}
	_ = z.Close()
	return b.Bytes()
}

// DOCX is a document with a paragraph for each text.
func DOCX(paragraphs ...string) []byte {
	var b strings.Builder
	for _, p := range paragraphs {
		b.WriteString(`<w:p><w:r><w:t xml:space="preserve">` + html.EscapeString(p) + `</w:t></w:r></w:p>`)
	}
	return Zip(
		"[Content_Types].xml",
		`<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"word/document.xml",
		`<?xml version="1.0" encoding="UTF-8"?><w:document `+
			`xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`+
			b.String()+`</w:body></w:document>`,
	)
}

// XLSX is a workbook with one sheet of texts.
func XLSX(sheet string, rows ...[]string) []byte {
	var b strings.Builder
	for r, row := range rows {
		fmt.Fprintf(&b, `<row r="%d">`, r+1)
		for c, cell := range row {
			fmt.Fprintf(&b, `<c r="%c%d" t="inlineStr"><is><t>%s</t></is></c>`, 'A'+c, r+1, html.EscapeString(cell))
		}
		b.WriteString("</row>")
	}
	const head = `<?xml version="1.0" encoding="UTF-8"?>`
	const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	const packages = "http://schemas.openxmlformats.org/package/2006/"
	return Zip(
		"[Content_Types].xml",
		head+`<Types xmlns="`+packages+
			`content-types"><Default Extension="rels" `+
			`ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override `+
			`PartName="/xl/workbook.xml" `+
			`ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override `+
			`PartName="/xl/worksheets/sheet1.xml" `+
			`ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>`,
		"_rels/.rels",
		head+`<Relationships xmlns="`+packages+`relationships"><Relationship Id="rId1" Type="`+
			office+`/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml",
		head+`<workbook xmlns="`+main+`" xmlns:r="`+office+`"><sheets><sheet name="`+
			html.EscapeString(sheet)+`" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels",
		head+`<Relationships xmlns="`+packages+`relationships"><Relationship Id="rId1" Type="`+
			office+`/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml",
		head+`<worksheet xmlns="`+main+`"><sheetData>`+b.String()+`</sheetData></worksheet>`,
	)
}

// ZipBomb is an archive that has one file of so many equal bytes under a name.
func ZipBomb(name string, size int64) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if w, err := z.Create(name); err == nil { // as always: it is written into memory
		_, _ = io.CopyN(w, endless('x'), size)
	}
	_ = z.Close()
	return b.Bytes()
}

// endless is one byte for ever.
type endless byte

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// JPEG is a picture of such a size.
func JPEG(width, height int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		m.Set(x, x%height, color.RGBA{R: uint8(x), G: 200, A: 255})
	}
	var b bytes.Buffer
	_ = jpeg.Encode(&b, m, nil) // into memory
	return b.Bytes()
}

// PNGHead is the beginning of a PNG that says it has such a size; the picture itself is missing.
func PNGHead(width, height uint32) []byte {
	head := []byte("IHDR")
	head = binary.BigEndian.AppendUint32(head, width)
	head = binary.BigEndian.AppendUint32(head, height)
	head = append(head, 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

// OGG begins as a voice message does, and has so many bytes.
func OGG(size int) []byte {
	out := make([]byte, max(size, 64))
	copy(out, "OggS\x00\x02")
	copy(out[28:], "OpusHead")
	return out
}

// PDFDrawn is a document of one page, whose content is drawn by operators of PDF with the font F1.
func PDFDrawn(content string) []byte { return pdf([][]byte{[]byte(content)}, nil) }
