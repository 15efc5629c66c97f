package document_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/document/documenttest"
)

// readAs reads a document in this process, as the kind that its name and beginning say.
func readAs(name string, content []byte) (string, error) {
	kind := document.KindOf(name, "", content[:min(len(content), document.HeadSize)])
	text, _, err := document.Read(bytes.NewReader(content), int64(len(content)), kind)
	return text, err
}

// What programs write is read as people see it; the texts were compared by eye.
func TestRealDocuments(t *testing.T) {
	t.Parallel()
	alone(t)
	files, err := filepath.Glob("testdata/real/*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if filepath.Ext(name) == ".txt" {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAs(name, content)
			if filepath.Ext(name) == ".pdf" {
				got, _, err = reader(t).Text(t.Context(), file(t, content), document.PDF)
			}
			if err != nil {
				got += "error: " + err.Error() + "\n"
			}
			if os.Getenv("ZEPH_UPDATE") != "" {
				if err := os.WriteFile(name+".txt", []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".txt")
			if err != nil || got != string(want) {
				t.Errorf("%v; read:\n%s\nwant:\n%s", err, got, want)
			}
		})
	}
}

const (
	word = `<w:document xmlns:w="w" xmlns:r="r" xmlns:wps="wps" xmlns:mc="mc" xmlns:v="v"><w:body>`
	ooxR = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	rel  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

// run is a run of Word with a text.
func run(s string) string { return `<w:r><w:t xml:space="preserve">` + s + `</w:t></w:r>` }

// docxWith is a document with a body and more files.
func docxWith(body string, more ...string) []byte {
	return documenttest.Zip(append([]string{"word/document.xml", word + body + `</w:body></w:document>`}, more...)...)
}

// book is a workbook with one sheet, its attributes, and more files.
func book(attributes, pr, sheet string, more ...string) []byte {
	return documenttest.Zip(append([]string{
		"_rels/.rels", ooxR + `<Relationship Id="a" Type="` + rel + `officeDocument" Target="/xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml", `<workbook xmlns:r="r"><workbookPr ` + pr + `/><sheets><sheet name="S" sheetId="7" ` + attributes + ` r:id="s"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", ooxR + `<Relationship Id="s" Type="` + rel + `worksheet" Target="worksheets/sheet1.xml"/>` +
			`<Relationship Id="st" Type="` + rel + `styles" Target="styles.xml"/><Relationship Id="sh" Type="` + rel + `sharedStrings" Target="sharedStrings.xml"/>` +
			`<Relationship Id="p" Type="` + rel + `person" Target="persons/person.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml", `<worksheet xmlns:r="r">` + sheet + `</worksheet>`,
	}, more...)...)
}

// odfWith is an OpenDocument of a kind with contents.
func odfWith(kind, styles, body string, more ...string) []byte {
	return documenttest.Zip(append([]string{
		"mimetype", "application/vnd.oasis.opendocument." + kind,
		"content.xml", `<office:document-content><office:automatic-styles>` + styles + `</office:automatic-styles><office:body>` + body + `</office:body></office:document-content>`,
	}, more...)...)
}

// epub is a book with such files of META-INF beside the container.
func epub(more ...string) []byte {
	return documenttest.Zip(append([]string{
		"mimetype", "application/epub+zip",
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`,
		"OEBPS/book.opf", `<package><metadata><dc:title>Tea</dc:title></metadata><manifest><item id="b" href="b%20two.xhtml"/><item id="a" href="a.xhtml"/></manifest>` +
			`<spine><itemref idref="a"/><itemref idref="b"/></spine></package>`,
		"OEBPS/b two.xhtml", `<html><body><p>second</p></body></html>`,
		"OEBPS/a.xhtml", `<html><body><h1>One</h1><p>first</p></body></html>`,
	}, more...)...)
}

// tarOf is an archive of tar with one file.
func tarOf(name, content string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX}) // into memory
	_, _ = w.Write([]byte(content))
	_ = w.Close()
	return b.Bytes()
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // into memory
	_ = w.Close()
	return b.Bytes()
}

// lockedZip is an archive whose files say that they are encrypted.
func lockedZip() []byte {
	raw := documenttest.Zip("a.txt", "hello")
	for i := range len(raw) - 10 {
		switch string(raw[i : i+4]) {
		case "PK\x03\x04":
			raw[i+6] |= 1
		case "PK\x01\x02":
			raw[i+8] |= 1
		}
	}
	return raw
}

// What is hard in each format.
func TestFormats(t *testing.T) {
	t.Parallel()
	alone(t)
	const box = `<w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent>`
	const sst = `<sst><si><r><t>sha</t></r><r><t>red</t></r><rPh><t>x</t></rPh></si></sst>`
	const styles = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[$-407]d/\ mmm\ yyyy"/><numFmt numFmtId="165" formatCode="#,##0.00\ [$€-407];[Red]\-#,##0.00\ [$€-407]"/>` +
		`<numFmt numFmtId="166" formatCode="[h]:mm"/><numFmt numFmtId="167" formatCode="0.0%"/></numFmts>` +
		`<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="22"/><xf numFmtId="45"/></cellXfs></styleSheet>`
	for name, test := range map[string]struct {
		file    string
		content []byte
		want    string
		err     error
	}{
		"text box once": {"a.docx", docxWith(`<w:p>` + run("before") + `<w:r><mc:AlternateContent><mc:Choice><wps:txbx>` + box + `</wps:txbx></mc:Choice><mc:Fallback><v:textbox>` + box +
			`</v:textbox></mc:Fallback></mc:AlternateContent></w:r></w:p>`), "before\n[text box: in a box]\n", nil},
		"changes": {"a.docx", docxWith(`<w:p>` + run("a ") + `<w:ins w:author="Ann">` + run("b") + `</w:ins><w:ins w:author="Ann">` + run("c") + `</w:ins><w:del w:author="Ben"><w:r><w:delText>d</w:delText></w:r></w:del>` +
			run(" e") + `</w:p>`), "a [inserted by Ann: bc][deleted by Ben: d] e\n", nil},
		"field": {"a.docx", docxWith(`<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "https://example.com" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>` +
			run("site") + `<w:r><w:fldChar w:fldCharType="end"/></w:r>` + run(".") + `</w:p>`), "[site](https://example.com).\n", nil},
		"cells in one": {"a.docx", docxWith(`<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p>` + run("both") + `</w:p></w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p>` + run("gone") +
			`</w:p></w:tc><w:tc><w:tbl><w:tr><w:tc><w:p>` + run("x") + `</w:p></w:tc><w:tc><w:p>` + run("y") + `</w:p></w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>`), "| both |  |\n| --- | --- |\n|  | x ; y |\n", nil},
		"headers once": {"a.docx", docxWith(`<w:p>`+run("body")+`</w:p>`, "word/_rels/document.xml.rels", ooxR+`<Relationship Id="1" Type="`+rel+`header" Target="header1.xml"/><Relationship Id="2" Type="`+rel+
			`header" Target="header2.xml"/><Relationship Id="3" Type="`+rel+`footer" Target="footer1.xml"/></Relationships>`, "word/header1.xml", `<w:hdr><w:p>`+run("Acme")+`</w:p></w:hdr>`,
			"word/header2.xml", `<w:hdr><w:p>`+run("Acme")+`</w:p></w:hdr>`, "word/footer1.xml", `<w:ftr><w:p>`+run("secret")+`</w:p></w:ftr>`), "[header: Acme]\nbody\n[footer: secret]\n", nil},
		"hidden text":      {"a.docx", docxWith(`<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>psst</w:t></w:r></w:p>`), "[hidden: psst]\n", nil},
		"names of Windows": {"a.docx", documenttest.Zip(`word\document.xml`, word+`<w:p>`+run("x")+`</w:p></w:body></w:document>`), "x\n", nil},

		"numbers": {
			"a.xlsx", book("", "", `<sheetData><row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" s="1"><v>46082</v></c><c r="C2" s="2"><v>-1234.5</v></c><c r="D2" s="3"><v>1.104166666</v></c><c r="E2" s="4"><v>0.125</v></c>`+
				`<c r="F2" s="5"><v>46082.75</v></c><c r="H2"><v>0.30000000000000004</v></c><c r="I2" t="b"><v>1</v></c><c r="J2" t="e"><v>#N/A</v></c><c r="K2"><f>A1+1</f></c></row></sheetData>`, "xl/sharedStrings.xml", sst, "xl/styles.xml", styles),
			"[sheet S]\n\nshared\t2026-03-01\t-1234.50 €\t26:30:00\t12.5%\t2026-03-01 18:00\t\t0.3\tTRUE\t#N/A\t=A1+1\n", nil,
		},
		"1904, very hidden": {"a.xlsx", book(`state="veryHidden"`, `date1904="1"`, `<sheetData><row r="1"><c s="1"><v>44620</v></c></row></sheetData>`, "xl/styles.xml", styles), "[sheet S, hidden]\n2026-03-01\n", nil},
		"far away":          {"a.xlsx", book("", "", `<cols><col min="2" max="3" hidden="1"/></cols><sheetData><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>`), "[sheet S]\n[hidden columns: B:C]\n[rows 1 to 1048575 are empty]\n[XFD] 1\n", nil},
		"talk on a cell": {
			"a.xlsx", book("", "", `<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>`, "xl/persons/person.xml", `<personList><person displayName="Ann" id="{1}"/></personList>`,
				"xl/worksheets/_rels/sheet1.xml.rels", ooxR+`<Relationship Id="1" Type="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment" Target="../threadedComments/t.xml"/></Relationships>`,
				"xl/threadedComments/t.xml", `<ThreadedComments><threadedComment ref="A1" personId="{1}"><text>Why?</text></threadedComment><threadedComment ref="C9" personId="{1}"><text>Here</text></threadedComment></ThreadedComments>`),
			"[sheet S]\n1 [comment by Ann: Why?]\nC9 [comment by Ann: Here]\n", nil,
		},
		"linked cells": {"a.xlsx", book("", "", `<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>site</t></is></c><c r="B1" t="str"><f>HYPERLINK("https://b.example","b")</f><v>b</v></c></row></sheetData><hyperlinks><hyperlink ref="A1" r:id="h"/></hyperlinks>`,
			"xl/worksheets/_rels/sheet1.xml.rels", ooxR+`<Relationship Id="h" Type="`+rel+`hyperlink" Target="https://a.example" TargetMode="External"/></Relationships>`), "[sheet S]\n[site](https://a.example)\t[b](https://b.example)\n", nil},

		"repeated cells": {
			"a.ods", odfWith("spreadsheet", "", `<office:spreadsheet><table:table table:name="T"><table:table-row><table:table-cell table:number-columns-repeated="3"><text:p>x</text:p></table:table-cell>`+
				`<table:table-cell table:number-columns-repeated="16381"/></table:table-row><table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row><table:table-row><table:table-cell/>`+
				`<table:table-cell office:value-type="date" office:date-value="2026-03-01"><text:p>1 mars</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`),
			"[sheet T]\nx\tx\tx\n[rows 2 to 1048001 are empty]\n\t2026-03-01\n", nil,
		},
		"a sheet without a password": {"a.ods", odfWith("spreadsheet", "", "", "META-INF/manifest.xml", `<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>`), "", document.ErrLocked},
		"changes in a text": {"a.odt", odfWith("text", "", `<office:text><text:tracked-changes><text:changed-region text:id="c1"><text:deletion><office:change-info><dc:creator>Ben</dc:creator></office:change-info><text:p>old</text:p></text:deletion></text:changed-region>`+
			`<text:changed-region text:id="c2"><text:insertion><office:change-info><dc:creator>Ann</dc:creator></office:change-info></text:insertion></text:changed-region></text:tracked-changes>`+
			`<text:p>a <text:change text:change-id="c1"/><text:change-start text:change-id="c2"/>new<text:change-end text:change-id="c2"/><text:s text:c="2"/>b</text:p></office:text>`), "a [deleted by Ben: old][inserted by Ann: new]  b\n", nil},

		"order of a book": {"a.epub", epub(), "[title: Tea]\n[chapter 1 of 2]\n# One\n\nfirst\n[chapter 2 of 2]\nsecond\n", nil},
		"a sold book":     {"a.epub", epub("META-INF/encryption.xml", `<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>`), "[title: Tea]\n", document.ErrLocked},
		"fonts of a book": {"a.epub", epub("META-INF/encryption.xml", `<encryption><CipherReference URI="OEBPS/font.otf"/></encryption>`), "[title: Tea]\n[chapter 1 of 2]\n# One\n\nfirst\n[chapter 2 of 2]\nsecond\n", nil},

		"code pages": {"a.rtf", []byte(`{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset134 SimSun;}}{\*\generator X;}\f0 Gr\'fc\'dfe \f1 \'cf\'f0\'e8\'e2\'e5\'f2 \f2 \'c4\'e3\'ba\'c3\f0\par ` +
			`\u8364?\u-10179?\u-8638? \emdash{\*\unknown gone}\bin4 \}{{x{\pict 89504e47}\v secret\v0  end}`), "Grüße Привет 你好\n€🙂 —x[hidden: secret] end", nil},
		"a table": {
			"a.rtf", []byte(`{\rtf1 A\par\trowd\cellx1\cellx2\pard\intbl x\cell y\cell\row\trowd\intbl 1\cell\cell\row\pard B{\field{\*\fldinst HYPERLINK "https://e.example"}{\fldrslt site}}\par}`),
			"A\n| x | y |\n| --- | --- |\n| 1 |  |\nB[site](https://e.example)\n", nil,
		},

		"a mail": {
			"a.eml", []byte("From: =?iso-8859-1?Q?J=FCrgen?= <j@example.com>\r\nTo: a@example.com\r\nSubject: =?utf-8?B?8J+Ziw==?=\r\nX-Spam: no\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n" +
				"--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe an=\r\n alle\r\n--a\r\nContent-Type: text/html\r\n\r\n<p>html</p>\r\n--a--\r\n" +
				"--m\r\nContent-Type: application/pdf; name=\"a.pdf\"\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--m--\r\n"),
			"From: Jürgen <j@example.com>\nTo: a@example.com\nSubject: 🙋\n\nGrüße an alle\n[attachment: a.pdf, application/pdf, 5 bytes]\n", nil,
		},
		"a mail of HTML": {"a.eml", []byte("Date: today\r\nSubject: x\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n<p>\xcf\xf0\xe8\xe2\xe5\xf2</p>"), "Date: today\nSubject: x\n\nПривет\n", nil},

		"a notebook": {
			"a.ipynb", []byte(`{"nbformat":4,"metadata":{"language_info":{"name":"python"}},"cells":[{"cell_type":"markdown","source":["# Tea\n","nice"]},{"cell_type":"code","source":"1/0","outputs":[` +
				`{"output_type":"stream","text":["hi\n"]},{"output_type":"error","ename":"E","evalue":"v","traceback":["\u001b[0;31mE\u001b[0m: v"]},{"output_type":"display_data","data":{"image/png":"aa","text/plain":["<Figure>"]}}]}]}`),
			"[cell 1, markdown]\n# Tea\nnice\n[cell 2, code]\n```python\n1/0\n```\n[output]\nhi\n[output]\nE: v\n[output]\n<Figure>\n[picture]\n", nil,
		},

		"an archive": {
			"a.zip", documenttest.Zip("dir/a.txt", "hello", "b.csv", "Stra\xdfe", "c.bin", "\x00\x01\x02\x00", "d/", ""),
			"[archive of 4 files]\ndir/a.txt, 5 bytes\nb.csv, 6 bytes\nc.bin, 4 bytes\n[file dir/a.txt]\nhello\n[file b.csv, not UTF-8, read as windows-1252: letters beyond ASCII may be wrong]\nStraße\n", nil,
		},
		"a locked archive": {"a.zip", lockedZip(), "[archive of 1 files]\na.txt, 5 bytes, needs a password\n", document.ErrLocked},
		"an empty archive": {"a.zip", documenttest.Zip(), "[archive of 0 files]\n[the archive is empty]\n", nil},
		"tar":              {"a.tar", tarOf("x/a.md", "# hi"), "[archive]\nx/a.md, 4 bytes\n[file x/a.md]\n# hi\n", nil},
		"tar.gz":           {"a.tgz", gzipped(tarOf("a.md", "# hi")), "[archive]\na.md, 4 bytes\n[file a.md]\n# hi\n", nil},
		"gz":               {"a.log.gz", gzipped([]byte("one line\n")), "one line\n", nil},
		"a gz of no text":  {"a.gz", gzipped([]byte("\x7fELF\x00\x01")), "", document.ErrUnknown},
		"a gz that is cut": {"a.gz", gzipped(bytes.Repeat([]byte("one line\n"), 99))[:30], "", document.ErrDamaged},
		"a gz bomb":        {"a.tgz", gzipped(append(tarOf("a", strings.Repeat("x", 99)), make([]byte, 300<<20)...)), "[archive]\na, 99 bytes\n[file a]\n" + strings.Repeat("x", 99) + "\n", nil},

		"a page called so":  {"a.xls", []byte("<html><body><table><tr><th>a</th></tr></table></body></html>"), "| a |\n|---|", nil},
		"a zip called docx": {"a.docx", documenttest.Zip("readme", "x"), "[archive of 1 files]\nreadme, 1 bytes\n[file readme]\nx\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readAs(test.file, test.content)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%v, want %v; read:\n%s\nwant:\n%s", err, test.err, got, test.want)
			}
		})
	}
}

// Sheets that say they are endless, and elements that never end, cost little.
func TestEndlessDocuments(t *testing.T) {
	t.Parallel()
	alone(t)
	cell := `<table:table-cell table:number-columns-repeated="16384"><text:p>` + strings.Repeat("x", 2000) + `</text:p></table:table-cell>`
	for name, content := range map[string][]byte{
		"a.ods":  odfWith("spreadsheet", "", `<office:spreadsheet><table:table>`+strings.Repeat(`<table:table-row table:number-rows-repeated="1048576">`+cell+`</table:table-row>`, 50)+`</table:table></office:spreadsheet>`),
		"b.docx": docxWith(strings.Repeat(`<w:p><w:pPr><w:numPr><w:ilvl w:val="8"/><w:numId w:val="1"/></w:numPr></w:pPr>`+run("x")+`</w:p>`, 200_000)),
		"c.rtf":  []byte(`{\rtf1 ` + strings.Repeat(`{\*\x `, 100_000)),
		"d.xlsx": book("", "", `<sheetData>`+strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, 50_000)+`</sheetData>`),
		"e.eml":  []byte("From: a\nTo: b\nContent-Type: multipart/mixed; boundary=a\n\n" + strings.Repeat("--a\nContent-Type: multipart/mixed; boundary=a\n\n", 50_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			text, err := readAs(name, content)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if len(text) > document.MaxText || err != nil && !errors.Is(err, document.ErrTooLarge) {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}
