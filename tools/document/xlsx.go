package document

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// xlsx reads a workbook of Office (ECMA-376, part 1, section 18).
type xlsx struct {
	*parts
	t       *text
	shared  []string
	formats []cellFormat // by style
	since   int          // 1900 or 1904: from when dates count
	people  map[string]string
}

// readXLSX reads the sheets in order, as a reader sees them.
func readXLSX(t *text, p *parts) error {
	name, err := p.mainPart("xl/workbook.xml")
	if err != nil {
		return err
	}
	rels, err := p.relations(name)
	if err != nil {
		return err
	}
	w := &xlsx{parts: p, t: t, since: 1900, people: map[string]string{}}
	type sheetPart struct {
		name, part string
		hidden     bool
	}
	var sheets []sheetPart
	err = p.readIfThere(name, func(x *elements) error {
		var inside func(e *xml.StartElement) error
		inside = func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "workbookPr":
				if d := attributeOf(e, "date1904"); d != "" && isOn(d) {
					w.since = 1904
				}
			case "sheet":
				if r := rels[relationID(e)]; r.kind == "worksheet" || r.kind == "chartsheet" {
					state := attributeOf(e, "state")
					hidden := strings.HasSuffix(strings.ToLower(state), "hidden")
					sheets = append(sheets, sheetPart{attributeOf(e, "name"), r.target, hidden})
				}
			}
			return x.children(inside)
		}
		return x.children(inside)
	})
	if err != nil {
		return err
	}
	if len(sheets) == 0 { // the workbook lost its table of contents
		for _, f := range p.zip.File {
			if dir, base := path.Split(partName(f.Name)); dir == "xl/worksheets/" {
				sheets = append(sheets, sheetPart{name: base, part: f.Name})
			}
		}
	}
	for _, r := range rels {
		switch {
		case r.external:
		case r.kind == "sharedStrings":
			err = errors.Join(err, p.readIfThere(r.target, w.readShared))
		case r.kind == "styles":
			err = errors.Join(err, p.readIfThere(r.target, w.readStyles))
		case r.kind == "person":
			err = errors.Join(err, p.readIfThere(r.target, func(x *elements) error {
				return x.each("person", func(e *xml.StartElement) error {
					w.people[attributeOf(e, "id")] = attributeOf(e, "displayName")
					return nil
				})
			}))
		}
	}
	if err != nil {
		return err
	}
	if len(sheets) == 0 {
		return fmt.Errorf("%w: a workbook without sheets", ErrDamaged)
	}
	for i, s := range sheets {
		if i == maxPages {
			return errFull
		}
		if err := w.readSheet(s.name, s.part, s.hidden); err != nil {
			return err
		}
	}
	return nil
}

// maxShared is how many bytes of texts that cells share are kept.
const maxShared = 64 << 20

// readShared reads the texts that cells refer to.
func (w *xlsx) readShared(x *elements) error {
	size := 0
	return x.each("si", func(*xml.StartElement) error {
		s, err := richText(x)
		if size += len(s); size > maxShared {
			return fmt.Errorf("%w: more than %d bytes of texts", ErrTooLarge, maxShared)
		}
		w.shared = append(w.shared, s)
		return err
	})
}

// richText reads a text of several runs, without what says how it is pronounced.
func richText(x *elements) (string, error) {
	var t text
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			s, err := x.text()
			return errors.Join(err, t.add(s))
		case "rPh":
			return nil
		}
		return x.children(inside)
	}
	err := x.children(inside)
	if errors.Is(err, errFull) {
		err = nil
	}
	return t.String(), err
}

// readStyles reads how cells show numbers.
func (w *xlsx) readStyles(x *elements) error {
	codes := map[string]string{}
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			codes[attributeOf(e, "numFmtId")] = attributeOf(e, "formatCode")
		case "cellXfs":
			return x.each("xf", func(e *xml.StartElement) error {
				id := attributeOf(e, "numFmtId")
				code, ok := codes[id]
				if !ok {
					code = builtinFormats[wholeNumber(id, 0)]
				}
				w.formats = append(w.formats, parseFormat(code))
				return nil
			})
		}
		return x.children(inside)
	}
	return x.children(inside)
}

// xlsxSheet is a sheet that is being read.
type xlsxSheet struct {
	sheet
	book         *xlsx
	comments     map[string]string // by cell
	links        map[string]string
	row, column  int
	cells        []string
	merged, cols []string
}

// readSheet reads a sheet, with the comments and the links of its cells.
func (w *xlsx) readSheet(name, part string, hidden bool) error {
	rels, err := w.relations(part)
	if err != nil {
		return err
	}
	s := &xlsxSheet{
		sheet: sheet{t: w.t}, book: w, comments: map[string]string{}, links: map[string]string{}, row: -1,
	}
	linked := false
	threads := false
	for _, r := range rels {
		threads = threads || r.kind == "threadedComment" && w.has(r.target)
	}
	for _, r := range rels {
		switch {
		case r.kind == "hyperlink":
			linked = true
		case r.kind == "comments" && !r.external && !threads: // else it says there are threads
			err = errors.Join(err, w.readIfThere(r.target, s.readComments))
		case r.kind == "threadedComment" && !r.external:
			err = errors.Join(err, w.readIfThere(r.target, s.readThreads))
		}
	}
	if err == nil && linked { // they stand behind the cells
		err = w.readPart(part, func(x *elements) error {
			return x.each("hyperlink", func(e *xml.StartElement) error {
				if r := rels[relationID(e)]; r.external {
					first, _, _ := strings.Cut(attributeOf(e, "ref"), ":")
					s.links[first] = r.target
				}
				return nil
			})
		})
	}
	if err != nil {
		return err
	}
	if err := s.begin(name, hidden); err != nil {
		return err
	}
	err = w.readPart(part, func(x *elements) error { return x.children(func(e *xml.StartElement) error { return s.inside(x, e) }) })
	if err != nil {
		return err
	}
	if len(s.merged) > 0 {
		err = s.t.add("[merged cells: " + strings.Join(s.merged, ", ") + "]\n")
	}
	for _, ref := range slices.Sorted(maps.Keys(s.comments)) { // in rows that are not in the file
		err = errors.Join(err, s.t.add(ref+" "+s.comments[ref]+"\n"))
	}
	if s.next == 0 && err == nil {
		err = s.t.add("[no cells]\n")
	}
	return err
}

// maxMerged is how many merged ranges are said of a sheet.
const maxMerged = 100

func (s *xlsxSheet) inside(x *elements, e *xml.StartElement) error {
	switch e.Name.Local {
	case "cols":
		err := x.each("col", func(e *xml.StartElement) error {
			if h := attributeOf(e, "hidden"); h != "" && isOn(h) && len(s.cols) < emptyCells {
				first, last := intAttribute(e, "min", 1), intAttribute(e, "max", 1)
				name := columnName(first - 1)
				if last > first {
					name += ":" + columnName(last-1)
				}
				s.cols = append(s.cols, name)
			}
			return nil
		})
		if err == nil && len(s.cols) > 0 {
			err = s.t.add("[hidden columns: " + strings.Join(s.cols, ", ") + "]\n")
		}
		return err
	case "row":
		s.row = intAttribute(e, "r", s.row+2) - 1
		s.column, s.cells = -1, s.cells[:0]
		if err := x.children(func(e *xml.StartElement) error { return s.cell(x, e) }); err != nil {
			return err
		}
		s.emptyCells()
		hidden := attributeOf(e, "hidden")
		return s.sheet.row(s.row, s.cells, hidden != "" && isOn(hidden))
	case "mergeCell":
		if len(s.merged) < maxMerged {
			s.merged = append(s.merged, attributeOf(e, "ref"))
		}
		return nil
	}
	return x.children(func(e *xml.StartElement) error { return s.inside(x, e) })
}

// maxColumns is how many columns a sheet can have.
const maxColumns = 16384

// cell reads a cell into its place in the row.
func (s *xlsxSheet) cell(x *elements, e *xml.StartElement) error {
	if e.Name.Local != "c" {
		return nil
	}
	column, row, ok := cellAt(attributeOf(e, "r"))
	if !ok || row != s.row {
		column = s.column + 1
	}
	if column >= maxColumns {
		return nil
	}
	s.column = column
	var value, formula, inline string
	computed := false
	err := x.children(func(e *xml.StartElement) (err error) {
		switch e.Name.Local {
		case "v":
			value, err = x.text()
			computed = true
		case "f":
			formula, err = x.text()
		case "is":
			inline, err = richText(x)
		}
		return err
	})
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	shown := s.shown(attributeOf(e, "t"), value, inline, intAttribute(e, "s", 0))
	if shown == "" && formula != "" && !computed { // nothing has computed it yet
		shown = "=" + formula
	}
	ref := cellRef(column, s.row)
	if target := s.links[ref]; target != "" {
		shown = markdownLink(shown, target)
	} else if target := linkFormula(formula); target != "" {
		shown = markdownLink(shown, target)
	}
	if said := s.comments[ref]; said != "" {
		shown = strings.TrimSpace(shown + " " + said)
		delete(s.comments, ref)
	}
	s.put(column, shown)
	return nil
}

// put writes a cell into its place in the row.
func (s *xlsxSheet) put(column int, shown string) {
	if shown == "" {
		return
	}
	for len(s.cells) <= column {
		s.cells = append(s.cells, "")
	}
	s.cells[column] = shown
}

// emptyCells adds the comments on cells of the row that are not in the file.
func (s *xlsxSheet) emptyCells() {
	for ref, said := range s.comments {
		if column, row, ok := cellAt(ref); ok && row == s.row && column < maxColumns {
			if column >= len(s.cells) || s.cells[column] == "" {
				s.put(column, said)
				delete(s.comments, ref)
			}
		}
	}
}

// shown is a cell as a reader sees it.
func (s *xlsxSheet) shown(kind, value, inline string, style int) string {
	switch kind {
	case "s":
		if n := wholeNumber(value, -1); n >= 0 && n < len(s.book.shared) {
			return s.book.shared[n]
		}
		return ""
	case "inlineStr":
		return inline + value
	case "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[strings.TrimSpace(value)]
	case "str", "e", "d":
		return value
	}
	if style >= 0 && style < len(s.book.formats) {
		return s.book.formats[style].show(value, s.book.since)
	}
	return cellFormat{}.show(value, s.book.since)
}

// linkFormula is the address in a formula that makes a link; "" = it does not, or computes the address.
func linkFormula(formula string) string {
	rest, ok := strings.CutPrefix(strings.ToUpper(formula[:min(len(formula), 11)]), `HYPERLINK("`)
	if !ok || rest != "" {
		return ""
	}
	target, _, _ := strings.Cut(formula[11:], `"`)
	return target
}

// readComments reads the comments, by cell.
func (s *xlsxSheet) readComments(x *elements) error {
	var authors []string
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "author":
			name, err := x.text()
			authors = append(authors, name)
			return err
		case "comment":
			ref, who := attributeOf(e, "ref"), ""
			if n := intAttribute(e, "authorId", -1); n >= 0 && n < len(authors) {
				who = authors[n]
			}
			said, err := richText(x)
			said = strings.TrimPrefix(said, who+":\n") // Excel writes it into the text, too
			s.comments[ref] = strings.TrimSpace(s.comments[ref] + " " + remark("comment", who, said))
			return err
		}
		return x.children(inside)
	}
	return x.children(inside)
}

// readThreads reads the comments of newer versions of Excel, with their answers in order.
func (s *xlsxSheet) readThreads(x *elements) error {
	return x.each("threadedComment", func(e *xml.StartElement) error {
		var said string
		ref, who := attributeOf(e, "ref"), s.book.people[attributeOf(e, "personId")]
		err := x.each("text", func(*xml.StartElement) (err error) {
			said, err = x.text()
			return err
		})
		s.comments[ref] = strings.TrimSpace(s.comments[ref] + " " + remark("comment", who, said))
		return err
	})
}
