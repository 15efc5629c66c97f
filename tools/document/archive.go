package document

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
)

// Bounds of what is unpacked.
const (
	maxEntries  = 4096      // files in an archive that are known by name
	maxUnpacked = 128 << 20 // bytes of all files of an archive that are read, together, and of one stream
	maxPages    = 2000      // of a PDF, slides of a presentation, and sheets of a workbook
	maxDepth    = 256       // of elements in one another
)

// parts are the files of an archive. Names are compared as Windows does, which most writers of them come from.
type parts struct {
	zip   *zip.Reader
	files map[string]*zip.File
	left  uint64 // bytes that may still be unpacked
}

// openParts opens a ZIP archive.
func openParts(r io.ReaderAt, size int64) (*parts, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	p := &parts{zip: z, files: make(map[string]*zip.File), left: maxUnpacked}
	for _, f := range z.File[:min(len(z.File), maxEntries)] {
		p.files[partName(f.Name)] = f
	}
	return p, nil
}

// partName is the name under which a file of an archive is found.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/"))
}

// has says whether there is such a file.
func (p *parts) has(name string) bool { return p.files[partName(name)] != nil }

// open opens a file to be read. archive/zip does not unpack more of it than its directory says.
func (p *parts) open(name string) (io.ReadCloser, error) {
	f := p.files[partName(name)]
	if f == nil {
		return nil, fmt.Errorf("%w: it has no %s", ErrDamaged, name)
	}
	if f.Flags&1 != 0 {
		return nil, ErrLocked
	}
	if f.UncompressedSize64 > p.left {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxUnpacked)
	}
	p.left -= f.UncompressedSize64
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

// readPart reads an XML file of the archive.
func (p *parts) readPart(name string, read func(x *elements) error) error {
	f, err := p.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	return read(newElements(f))
}

// readIfThere is readPart for a file that may be missing.
func (p *parts) readIfThere(name string, read func(x *elements) error) error {
	if !p.has(name) {
		return nil
	}
	return p.readPart(name, read)
}

// elements are those of an XML file, read from its beginning to its end.
type elements struct {
	d     *xml.Decoder
	depth int // of the element that is being read
}

func newElements(r io.Reader) *elements {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	return &elements{d: d}
}

// next reads a piece. io.EOF: the file ended as it should.
func (x *elements) next() (xml.Token, error) {
	token, err := x.d.RawToken()
	switch {
	case errors.Is(err, io.EOF) && x.depth == 0:
		return nil, io.EOF
	case errors.Is(err, ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch token.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > maxDepth {
			return nil, fmt.Errorf("%w: elements %d deep", ErrTooLarge, x.depth)
		}
	case xml.EndElement:
		if x.depth--; x.depth < 0 {
			return nil, fmt.Errorf("%w: an element ends that has not begun", ErrDamaged)
		}
	}
	return token, nil
}

// content reads what is directly inside of the element that has begun, to its end. What visit leaves unread of an element
// is passed over.
func (x *elements) content(visit func(e *xml.StartElement) error, chars func(s string) error) error {
	for level := x.depth; ; {
		token, err := x.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			err = visit(&e)
			for err == nil && x.depth > level {
				_, err = x.next()
			}
		case xml.EndElement:
			if x.depth < level {
				return nil
			}
		case xml.CharData:
			if chars != nil {
				err = chars(string(e))
			}
		}
		if err != nil {
			return err
		}
	}
}

// children is content without the text between the elements.
func (x *elements) children(visit func(e *xml.StartElement) error) error {
	return x.content(visit, nil)
}

// each calls visit for all elements of a name inside of the one that has begun, at any depth, except those in one
// another.
func (x *elements) each(name string, visit func(e *xml.StartElement) error) error {
	return x.children(func(e *xml.StartElement) error {
		if e.Name.Local == name {
			return visit(e)
		}
		return x.each(name, visit)
	})
}

// text reads all text inside of the element that has begun.
func (x *elements) text() (string, error) {
	var t text
	var inside func(*xml.StartElement) error
	inside = func(*xml.StartElement) error { return x.content(inside, t.add) }
	err := x.content(inside, t.add)
	return t.String(), err
}

// attributeOf is the value of an attribute, by its name without a prefix.
func attributeOf(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// intAttribute is a whole number in an attribute, or what stands for none.
func intAttribute(e *xml.StartElement, name string, otherwise int) int {
	return wholeNumber(attributeOf(e, name), otherwise)
}

// relationID is the id of what an element refers to in another file of the archive: an attribute "id" with a prefix, as
// there may be one without.
func relationID(e *xml.StartElement) string {
	for _, a := range e.Attr {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}
	return ""
}

// related is what a file of the archive refers to.
type related struct {
	kind     string // the end of its type
	target   string // the name of a file of the archive, or an address
	external bool
}

// relations reads what a file of an Office archive refers to, by id (ECMA-376, part 2, section 6.5).
func (p *parts) relations(name string) (map[string]related, error) {
	dir, base := path.Split(name)
	found := map[string]related{}
	err := p.readIfThere(dir+"_rels/"+base+".rels", func(x *elements) error {
		return x.each("Relationship", func(e *xml.StartElement) error {
			r := related{
				kind:     path.Base(attributeOf(e, "Type")),
				target:   attributeOf(e, "Target"),
				external: attributeOf(e, "TargetMode") == "External",
			}
			switch {
			case r.external:
			case strings.HasPrefix(r.target, "/"):
				r.target = strings.TrimPrefix(r.target, "/")
			default:
				r.target = path.Join(dir, r.target)
			}
			found[attributeOf(e, "Id")] = r
			return nil
		})
	})
	return found, err
}

// mainPart is the file that an Office archive is about: the one its relations name, else the usual one.
func (p *parts) mainPart(usual string) (string, error) {
	rels, err := p.relations("")
	if err != nil {
		return "", err
	}
	for _, r := range rels {
		if r.kind == "officeDocument" && p.has(r.target) {
			return r.target, nil
		}
	}
	return usual, nil
}

// mediaType is what an archive of OpenDocument or EPUB says it is.
func (p *parts) mediaType() (string, error) {
	if !p.has("mimetype") {
		return "", nil
	}
	f, err := p.open("mimetype")
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it is only read
	raw, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// readZip reads what is in a ZIP archive: an Office document, an OpenDocument, a book, or files.
func readZip(t *text, r io.ReaderAt, size int64) error {
	p, err := openParts(r, size)
	if err != nil {
		return err
	}
	kind, err := p.mediaType()
	if err != nil && !errors.Is(err, ErrLocked) {
		return err
	}
	switch {
	case strings.HasPrefix(kind, "application/epub"), p.has("META-INF/container.xml"):
		return readEPUB(t, p)
	case strings.HasPrefix(kind, "application/vnd.oasis.opendocument"), strings.HasPrefix(kind, "application/vnd.sun.xml"):
		return readODF(t, p)
	}
	switch usual, err := p.mainPart(""); {
	case err != nil && !errors.Is(err, ErrLocked):
		return err
	case strings.HasPrefix(usual, "word/"), p.has("word/document.xml"):
		return readDOCX(t, p)
	case strings.HasSuffix(usual, "workbook.bin"):
		return ErrUnknown
	case strings.HasPrefix(usual, "xl/"), p.hasDir("xl/worksheets/"):
		return readXLSX(t, p)
	case strings.HasPrefix(usual, "ppt/"), p.has("ppt/presentation.xml"):
		return readPPTX(t, p)
	}
	return listZip(t, p)
}

// hasDir says whether there are files in a directory.
func (p *parts) hasDir(dir string) bool {
	for name := range p.files {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}
