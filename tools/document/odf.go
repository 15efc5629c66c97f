package document

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

// odf reads a document of OpenDocument: a text, a sheet or a presentation (OASIS OpenDocument 1.3, part 3).
type odf struct {
	*parts
	t       *text
	styles  map[string]odfStyle
	lists   map[string][]string // the format of numbers of each level, by style; "" = a bullet
	changes map[string]odfChange
	notes   []string
	slides  int
	tables  int // in which one is
}

// odfStyle is what a style says about what we write.
type odfStyle struct {
	hidden bool // what has it is not shown
	level  int  // of a heading; 0 = it is none
	list   string
}

// odfChange is a tracked change.
type odfChange struct{ what, who, text string }

// readODF reads the headers, the contents, notes and the footers.
func readODF(t *text, p *parts) error {
	d := &odf{
		parts: p, t: t, styles: map[string]odfStyle{}, lists: map[string][]string{}, changes: map[string]odfChange{},
	}
	if locked, err := d.locked(); err != nil || locked {
		return errors.Join(err, ErrLocked)
	}
	kind, err := d.mediaType()
	if err != nil {
		return err
	}
	isText := strings.Contains(kind, ".text")
	var edges text // headers and footers stand in the file with the styles
	var header, footer []string
	err = d.readIfThere("styles.xml", func(x *elements) error {
		var inside func(e *xml.StartElement) error
		inside = func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
				edges.Reset()
				if err := d.blocks(x, &edges, 0); err != nil && !errors.Is(err, errFull) {
					return err
				}
				kind := e.Name.Local[:len("header")]
				said := remark(kind, "", strings.TrimSpace(edges.String()))
				if strings.TrimSpace(edges.String()) == "" || !isText { // a sheet has some that nobody wrote
					return nil
				}
				if kind == "header" {
					header = append(header, said)
				} else {
					footer = append(footer, said)
				}
				return nil
			}
			if done, err := d.style(x, e); done {
				return err
			}
			return x.children(inside)
		}
		return x.children(inside)
	})
	if err != nil {
		return err
	}
	if err := addOnce(t, header); err != nil {
		return err
	}
	if err := d.readPart("content.xml", func(x *elements) error { return d.body(x) }); err != nil {
		return err
	}
	for i, note := range d.notes {
		if err := t.add(fmt.Sprintf("[^%d]: %s\n", i+1, note)); err != nil {
			return err
		}
	}
	return addOnce(t, footer)
}

// addOnce writes lines, each once.
func addOnce(t *text, lines []string) error {
	said := map[string]bool{}
	for _, s := range lines {
		if said[s] {
			continue
		}
		said[s] = true
		if err := t.add(s + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// locked says whether the contents are encrypted.
func (d *odf) locked() (bool, error) {
	locked := d.has("encrypted-package")
	err := d.readIfThere("META-INF/manifest.xml", func(x *elements) error {
		return x.each("encryption-data", func(*xml.StartElement) error {
			locked = true
			return nil
		})
	})
	return locked, err
}

// style reads an element that says how things look. Not done: it is none.
func (d *odf) style(x *elements, e *xml.StartElement) (done bool, err error) {
	switch e.Name.Local {
	case "style":
		name := attributeOf(e, "name")
		parent := attributeOf(e, "parent-style-name")
		level := intAttribute(e, "default-outline-level", 0)
		s := odfStyle{
			list:  attributeOf(e, "list-style-name"),
			level: max(level, headingStyle(name), headingStyle(parent), d.styles[parent].level),
		}
		var inside func(e *xml.StartElement) error
		inside = func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "table-properties":
				s.hidden = s.hidden || attributeOf(e, "display") == "false"
			case "drawing-page-properties":
				s.hidden = s.hidden || attributeOf(e, "visibility") == "hidden"
			case "text-properties":
				if name != "" && strings.HasPrefix(e.Name.Space, "style") {
					s.hidden = s.hidden || attributeOf(e, "display") == "none"
				}
			}
			return x.children(inside)
		}
		err = x.children(inside)
		d.styles[name] = s
		return true, err
	case "list-style":
		levels := make([]string, maxLevels+1)
		err = x.children(func(e *xml.StartElement) error {
			if n := intAttribute(e, "level", 0); e.Name.Local == "list-level-style-number" && n > 0 && n <= maxLevels {
				if levels[n] = attributeOf(e, "num-format"); levels[n] == "" {
					levels[n] = "none"
				}
			}
			return nil
		})
		d.lists[attributeOf(e, "name")] = levels
		return true, err
	}
	return false, nil
}

// headingStyle is the level of a heading by the usual name of its style; 0 = it is none.
func headingStyle(name string) int {
	level, ok := strings.CutPrefix(name, "Heading_20_")
	if !ok {
		return 0
	}
	return max(wholeNumber(level, 0), 0)
}

// body finds what the document is about.
func (d *odf) body(x *elements) error {
	return x.children(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "spreadsheet":
			return d.spreadsheet(x)
		case "presentation", "drawing":
			return x.children(func(e *xml.StartElement) error {
				if e.Name.Local != "page" {
					return nil
				}
				return d.page(x, e)
			})
		case "text":
			return d.blocks(x, d.t, 0)
		}
		if done, err := d.style(x, e); done {
			return err
		}
		return d.body(x)
	})
}

// page reads a slide, then what the speaker is to say.
func (d *odf) page(x *elements, e *xml.StartElement) error {
	d.slides++
	name := fmt.Sprintf("[slide %d", d.slides)
	if d.styles[attributeOf(e, "style-name")].hidden {
		name += ", hidden"
	}
	if err := d.t.add(name + "]\n"); err != nil {
		return err
	}
	var notes text
	err := x.children(func(e *xml.StartElement) error {
		if e.Name.Local == "notes" {
			return d.blocks(x, &notes, 0)
		}
		return d.block(x, e, d.t, 0)
	})
	if s := strings.TrimSpace(notes.String()); s != "" && (err == nil || errors.Is(err, errFull)) {
		err = errors.Join(d.t.add("[notes]\n"+s+"\n"), err)
	}
	return err
}

// blocks reads paragraphs, lists, tables and what they are wrapped in. level: of the list that one is in.
func (d *odf) blocks(x *elements, t *text, level int) error {
	return x.children(func(e *xml.StartElement) error { return d.block(x, e, t, level) })
}

func (d *odf) block(x *elements, e *xml.StartElement, t *text, level int) error {
	switch e.Name.Local {
	case "h", "p":
		level := intAttribute(e, "outline-level", d.styles[attributeOf(e, "style-name")].level)
		line, err := d.paragraph(x)
		if strings.TrimSpace(line) != "" && (e.Name.Local == "h" || level > 0) {
			line = headingMark(level) + line
		}
		return errors.Join(t.add(line+"\n"), err)
	case "list":
		return d.list(x, e, t, level+1, "")
	case "header", "footer": // of a presentation
		return nil
	case "table":
		return d.table(x, t)
	case "tracked-changes":
		return x.each("changed-region", func(e *xml.StartElement) error { return d.region(x, e) })
	case "annotation", "frame", "custom-shape", "a":
		switch attributeOf(e, "class") {
		case "page-number", "header", "footer", "date-time", "page":
			return nil
		}
		s, err := d.inside(x, e)
		if strings.TrimSpace(s) == "" {
			return err
		}
		return errors.Join(t.add(strings.TrimRight(s, "\n")+"\n"), err)
	case "sequence-decls", "variable-decls", "user-field-decls", "forms", "page-thumbnail", "date-time-decl", "footer-decl",
		"table-of-content-source", "index-title-template":
		return nil
	default:
		return d.blocks(x, t, level)
	}
}

// list reads a list. style: of the list that it is in, unless it has its own.
func (d *odf) list(x *elements, e *xml.StartElement, t *text, level int, style string) error {
	if own := attributeOf(e, "style-name"); own != "" {
		style = own
	}
	number := 0
	format := ""
	if levels := d.lists[style]; level < len(levels) {
		format = levels[level]
	}
	indent := strings.Repeat("  ", min(level-1, 8))
	return x.children(func(e *xml.StartElement) error {
		if e.Name.Local != "list-item" && e.Name.Local != "list-header" {
			return nil
		}
		number = intAttribute(e, "start-value", number+1)
		lead := "- "
		switch {
		case e.Name.Local == "list-header" || format == "none":
			lead = ""
		case format != "":
			lead = listNumeral(format, number) + ". "
		}
		lead = indent + lead
		return x.children(func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "list":
				return d.list(x, e, t, level+1, style)
			case "p", "h":
				line, err := d.paragraph(x)
				if strings.TrimSpace(line) == "" {
					return err
				}
				line = lead + line
				lead = strings.Repeat(" ", len(lead))
				return errors.Join(t.add(line+"\n"), err)
			}
			return d.block(x, e, t, level)
		})
	})
}

// region reads what was inserted or deleted, and by whom.
func (d *odf) region(x *elements, e *xml.StartElement) error {
	id := attributeOf(e, "id")
	return x.children(func(e *xml.StartElement) error {
		c := odfChange{what: map[string]string{"insertion": "inserted", "deletion": "deleted"}[e.Name.Local]}
		var deleted text
		err := x.children(func(e *xml.StartElement) error {
			if e.Name.Local == "change-info" {
				return x.children(func(e *xml.StartElement) (err error) {
					if e.Name.Local == "creator" {
						c.who, err = x.text()
					}
					return err
				})
			}
			return d.block(x, e, &deleted, 0)
		})
		c.text = strings.TrimSpace(deleted.String())
		if d.changes[id] = c; errors.Is(err, errFull) {
			return nil
		}
		return err
	})
}

// table reads a table as one of Markdown.
func (d *odf) table(x *elements, t *text) error {
	d.tables++
	defer func() { d.tables-- }()
	g := &grid{t: t, inside: d.tables > 1}
	return x.each("table-row", func(e *xml.StartElement) error {
		var cells []string
		err := x.children(func(e *xml.StartElement) error {
			if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
				return nil
			}
			var cell text
			err := d.blocks(x, &cell, 0)
			for range min(max(intAttribute(e, "number-columns-repeated", 1), 1), emptyCells) {
				cells = append(cells, strings.TrimSpace(cell.String()))
			}
			return err
		})
		return g.addRow(cells, err)
	})
}

// odfLine is a paragraph that is being read.
type odfLine struct{ *text }

func (d *odf) paragraph(x *elements) (string, error) {
	l := &odfLine{text: &text{}}
	err := d.line(x, l)
	return l.String(), err
}

// inside reads an element of a paragraph that stands for itself.
func (d *odf) inside(x *elements, e *xml.StartElement) (string, error) {
	l := &odfLine{text: &text{}}
	err := d.piece(x, e, l)
	return l.String(), err
}

func (d *odf) line(x *elements, l *odfLine) error {
	blank := false // blanks in a row count as one
	return x.content(func(e *xml.StartElement) error {
		blank = false
		return d.piece(x, e, l)
	}, func(s string) error {
		var b strings.Builder
		for _, r := range s {
			isBlank := r == ' ' || r == '\n' || r == '\t' || r == '\r'
			if isBlank && !blank {
				b.WriteByte(' ')
			} else if !isBlank {
				b.WriteRune(r)
			}
			blank = isBlank
		}
		return l.add(b.String())
	})
}

// piece reads an element inside of a paragraph.
func (d *odf) piece(x *elements, e *xml.StartElement, l *odfLine) error {
	switch e.Name.Local {
	case "s":
		return l.add(strings.Repeat(" ", min(max(intAttribute(e, "c", 1), 1), 1000)))
	case "tab":
		return l.add("\t")
	case "line-break":
		return l.add("\n")
	case "a":
		shown, err := d.paragraph(x)
		return errors.Join(l.add(markdownLink(shown, attributeOf(e, "href"))), err)
	case "note":
		return d.note(x, l)
	case "annotation":
		return d.annotation(x, l)
	case "change": // something was deleted here
		if c := d.changes[attributeOf(e, "change-id")]; c.what == "deleted" && c.text != "" {
			return l.add(remark(c.what, c.who, c.text))
		}
	case "change-start":
		if c := d.changes[attributeOf(e, "change-id")]; c.what != "" {
			mark := remark(c.what, c.who, "")
			return l.add(strings.TrimSuffix(mark, "]") + " ")
		}
	case "change-end":
		if d.changes[attributeOf(e, "change-id")].what != "" {
			return l.add("]")
		}
	case "frame", "custom-shape", "rect", "g":
		return d.frame(x, l)
	case "ruby-text", "annotation-end", "bookmark-start", "bookmark-end", "soft-page-break":
		return nil
	case "hidden-text":
		return l.add(remark("hidden", "", attributeOf(e, "string-value")))
	case "span":
		if d.styles[attributeOf(e, "style-name")].hidden {
			shown, err := d.paragraph(x)
			return errors.Join(l.add(remark("hidden", "", shown)), err)
		}
		return d.line(x, l)
	default:
		return d.line(x, l)
	}
	return nil
}

// note keeps a note for the end, and writes its number.
func (d *odf) note(x *elements, l *odfLine) error {
	var body text
	err := x.children(func(e *xml.StartElement) error {
		if e.Name.Local != "note-body" {
			return nil
		}
		return d.blocks(x, &body, 0)
	})
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	d.notes = append(d.notes, strings.ReplaceAll(strings.TrimSpace(body.String()), "\n", "\n    "))
	return l.add(fmt.Sprintf("[^%d]", len(d.notes)))
}

func (d *odf) annotation(x *elements, l *odfLine) error {
	var said text
	who := ""
	err := x.children(func(e *xml.StartElement) (err error) {
		switch e.Name.Local {
		case "creator":
			who, err = x.text()
			return err
		case "date", "date-string", "creator-initials", "meta":
			return nil
		}
		return d.block(x, e, &said, 0)
	})
	return errors.Join(l.add(remark("comment", who, strings.TrimSpace(said.String()))), err)
}

// frame reads a picture, a text box or what else is drawn.
func (d *odf) frame(x *elements, l *odfLine) error {
	alt, drawn := "", false
	var inside text
	err := x.children(func(e *xml.StartElement) (err error) {
		switch e.Name.Local {
		case "desc", "title":
			var s string
			s, err = x.text()
			if alt == "" || e.Name.Local == "desc" {
				alt = s
			}
			return err
		case "image":
			drawn = true
			return nil
		case "object":
			drawn = true
		}
		return d.block(x, e, &inside, 0)
	})
	s := strings.TrimSpace(inside.String())
	switch {
	case s != "":
		if l.Len() > 0 {
			s = "\n" + s
		}
		return errors.Join(l.add(s+"\n"), err)
	case drawn:
		return errors.Join(l.add(pictureMark(alt)), err)
	}
	return err
}

// maxRepeats is how often the cells of a sheet are written again, because the file says that they repeat.
const maxRepeats = 10000

// spreadsheet reads the sheets of a workbook, as a reader sees them.
func (d *odf) spreadsheet(x *elements) error {
	return x.children(func(e *xml.StartElement) error {
		if e.Name.Local != "table" {
			return nil
		}
		s := &sheet{t: d.t}
		if err := s.begin(attributeOf(e, "name"), d.styles[attributeOf(e, "style-name")].hidden); err != nil {
			return err
		}
		number := 0
		return d.rows(x, s, &number)
	})
}

func (d *odf) rows(x *elements, s *sheet, number *int) error {
	return x.children(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "table-row":
			cells, err := d.cells(x, s)
			repeated := max(intAttribute(e, "number-rows-repeated", 1), 1)
			hidden := attributeOf(e, "visibility") == "collapse" || attributeOf(e, "visibility") == "filter"
			if err != nil {
				return err
			}
			for i := range repeated {
				if len(cells) == 0 || i > 0 && s.repeats >= maxRepeats {
					break
				}
				if i > 0 {
					s.repeats++
				}
				if err := s.row(*number+i, cells, hidden); err != nil {
					return err
				}
			}
			*number += min(repeated, 1<<21)
			return nil
		case "shapes", "forms", "named-expressions":
			return nil
		}
		return d.rows(x, s, number)
	})
}

// cells reads the cells of a row, up to the last one that has something in it.
func (d *odf) cells(x *elements, s *sheet) ([]string, error) {
	var cells []string
	column := 0
	err := x.children(func(e *xml.StartElement) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		var said []string
		var remarks []string
		err := x.children(func(e *xml.StartElement) error {
			piece, err := d.inside(x, e)
			switch e.Name.Local {
			case "annotation":
				remarks = append(remarks, piece)
			case "p", "h":
				said = append(said, piece)
			}
			return err
		})
		if date := attributeOf(e, "date-value"); date != "" && len(said) == 1 { // as any country reads it
			said[0] = strings.Replace(strings.TrimSuffix(date, "T00:00:00"), "T", " ", 1)
		}
		shown := strings.TrimSpace(strings.Join(append([]string{strings.Join(said, "\n")}, remarks...), " "))
		repeated := max(intAttribute(e, "number-columns-repeated", 1), 1)
		for i := range repeated {
			if shown == "" || column+i >= maxColumns || i > 0 && s.repeats >= maxRepeats {
				break
			}
			if i > 0 {
				s.repeats++
			}
			for len(cells) < column+i {
				cells = append(cells, "")
			}
			cells = append(cells, shown)
		}
		column += min(repeated, maxColumns)
		return err
	})
	return cells, err
}
