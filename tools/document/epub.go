package document

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/zephbot/zephbot/tools/web"
)

// readEPUB reads the chapters of a book in the order in which one reads them (EPUB 3.3, section 5).
func readEPUB(t *text, p *parts) error {
	book := ""
	err := p.readPart("META-INF/container.xml", func(x *elements) error {
		return x.each("rootfile", func(e *xml.StartElement) error {
			if book == "" {
				book = attributeOf(e, "full-path")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	locked, err := lockedChapters(p)
	if err != nil {
		return err
	}
	files := map[string]string{}
	var spine, about []string
	err = p.readPart(book, func(x *elements) error {
		var inside func(e *xml.StartElement) error
		inside = func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "item":
				name, err := url.PathUnescape(attributeOf(e, "href"))
				if err != nil {
					name = attributeOf(e, "href")
				}
				files[attributeOf(e, "id")] = path.Join(path.Dir(book), name)
				return nil
			case "itemref":
				spine = append(spine, files[attributeOf(e, "idref")])
				return nil
			case "title", "creator":
				s, err := x.text()
				about = append(about, e.Name.Local+": "+strings.TrimSpace(s))
				return err
			}
			return x.children(inside)
		}
		return x.children(inside)
	})
	if err != nil {
		return err
	}
	if len(about) > 0 {
		if err := t.add("[" + strings.Join(about, ", ") + "]\n"); err != nil {
			return err
		}
	}
	read := 0
	for i, name := range spine {
		if locked[partName(name)] {
			return ErrLocked
		}
		if !p.has(name) {
			continue
		}
		chapter, err := readChapter(p, name)
		if err != nil {
			return err
		}
		if read++; strings.TrimSpace(chapter) == "" {
			continue
		}
		if err := t.add(fmt.Sprintf("[chapter %d of %d]\n%s\n", i+1, len(spine), chapter)); err != nil {
			return err
		}
	}
	if read == 0 {
		return fmt.Errorf("%w: a book without chapters", ErrDamaged)
	}
	return nil
}

// maxChapter is how many bytes of a page are read.
const maxChapter = 8 << 20

func readChapter(p *parts, name string) (string, error) {
	f, err := p.open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it is only read
	chapter, err := web.Text(io.LimitReader(f, maxChapter))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return chapter, nil
}

// lockedChapters are the files that are encrypted. Fonts often are, in books that anybody may read.
func lockedChapters(p *parts) (map[string]bool, error) {
	locked := map[string]bool{}
	err := p.readIfThere("META-INF/encryption.xml", func(x *elements) error {
		return x.each("CipherReference", func(e *xml.StartElement) error {
			name, err := url.PathUnescape(attributeOf(e, "URI"))
			if err != nil {
				name = attributeOf(e, "URI")
			}
			locked[partName(name)] = true
			return nil
		})
	})
	return locked, err
}
