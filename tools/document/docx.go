package document

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// docx reads a text document of Office (ECMA-376, part 1, section 17).
type docx struct {
	*parts
	styles   map[string]docxStyle
	lists    docxLists
	comments map[string]string
	notes    map[string]string // by kind and id
	cited    []string          // notes in the order in which they are referred to
	links    map[string]related
	tables   int // in which one is
}

// docxStyle is what a style of paragraphs says about what we write.
type docxStyle struct {
	level int // of a heading, from 1; 0 = it is none
	list  docxItem
}

// docxItem says that a paragraph is in a list.
type docxItem struct {
	num   string // "" = it is in none
	level int
}

// readDOCX reads the headers, the body, its notes and the footers.
func readDOCX(t *text, p *parts) error {
	name, err := p.mainPart("word/document.xml")
	if err != nil {
		return err
	}
	d := &docx{parts: p, comments: map[string]string{}, notes: map[string]string{}}
	if d.links, err = p.relations(name); err != nil {
		return err
	}
	dir := name[:strings.LastIndex(name, "/")+1]
	err = errors.Join(
		d.readIfThere(dir+"styles.xml", d.readStyles),
		d.readIfThere(dir+"numbering.xml", d.lists.read),
		d.readAside(dir+"comments.xml", "comment", func(e *xml.StartElement, said string) {
			d.comments[attributeOf(e, "id")] = remark("comment", attributeOf(e, "author"), said)
		}),
		d.readAside(dir+"footnotes.xml", "footnote", d.keepNote),
		d.readAside(dir+"endnotes.xml", "endnote", d.keepNote),
	)
	if err != nil {
		return err
	}
	if err := d.readEdges(t, "header"); err != nil {
		return err
	}
	body := func(x *elements) error { return d.blocks(x, t) }
	if err := d.readPart(name, body); err != nil {
		return err
	}
	for i, note := range d.cited {
		if err := t.add(fmt.Sprintf("[^%d]: %s\n", i+1, strings.TrimSpace(d.notes[note]))); err != nil {
			return err
		}
	}
	return d.readEdges(t, "footer")
}

// readStyles reads which styles are headings and lists. Their names are English in every language of Word.
func (d *docx) readStyles(x *elements) error {
	d.styles = map[string]docxStyle{}
	return x.each("style", func(e *xml.StartElement) error {
		id, style := attributeOf(e, "styleId"), docxStyle{}
		err := x.children(func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "name":
				name := strings.ToLower(attributeOf(e, "val"))
				if level, ok := strings.CutPrefix(name, "heading "); ok {
					style.level = wholeNumber(level, 0)
				} else if name == "title" {
					style.level = 1
				}
			case "basedOn":
				if parent, ok := d.styles[attributeOf(e, "val")]; ok && style.level == 0 {
					style.level = parent.level
				}
			case "pPr":
				var p docxParagraph
				err := p.readProperties(x)
				style.list = p.list
				if p.level > 0 {
					style.level = p.level
				}
				return err
			}
			return nil
		})
		d.styles[id] = style
		return err
	})
}

// readAside reads what stands beside the text: comments and notes.
func (d *docx) readAside(name, element string, keep func(e *xml.StartElement, said string)) error {
	links := d.links
	defer func() { d.links = links }()
	var err error
	if d.links, err = d.relations(name); err != nil {
		return err
	}
	return d.readIfThere(name, func(x *elements) error {
		return x.each(element, func(e *xml.StartElement) error {
			var t text
			if err := d.blocks(x, &t); err != nil && !errors.Is(err, errFull) {
				return err
			}
			keep(e, t.String())
			return nil
		})
	})
}

func (d *docx) keepNote(e *xml.StartElement, said string) {
	if strings.TrimSpace(said) != "" { // the lines that separate notes are notes, too
		d.notes[e.Name.Local+attributeOf(e, "id")] = strings.ReplaceAll(strings.TrimSpace(said), "\n", "\n    ")
	}
}

// readEdges reads the headers or the footers, each text once.
func (d *docx) readEdges(t *text, kind string) error {
	var names, said []string
	for _, r := range d.links {
		if r.kind == kind && !r.external {
			names = append(names, r.target)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		root := map[string]string{"header": "hdr", "footer": "ftr"}[kind]
		err := d.readAside(name, root, func(_ *xml.StartElement, s string) {
			if s = strings.TrimSpace(s); s != "" && !slices.Contains(said, s) {
				said = append(said, s)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, s := range said {
		if err := t.add(remark(kind, "", s) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// blocks reads paragraphs and tables, in whatever they are wrapped.
func (d *docx) blocks(x *elements, t *text) error {
	return x.children(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return d.paragraph(x, t)
		case "tbl":
			return d.table(x, t)
		case "Fallback": // says again what is in Choice
			return nil
		default:
			return d.blocks(x, t)
		}
	})
}

// table reads a table; a cell that spans several columns is followed by empty ones.
func (d *docx) table(x *elements, t *text) error {
	d.tables++
	defer func() { d.tables-- }()
	g := &grid{t: t, inside: d.tables > 1}
	var inTable, inRow func(e *xml.StartElement) error
	var cells []string
	inRow = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "trPr":
			return x.children(func(e *xml.StartElement) error {
				switch e.Name.Local {
				case "gridBefore":
					cells = append(cells, make([]string, min(max(intAttribute(e, "val", 0), 0), emptyCells))...)
				case "ins", "del":
					said := remark(changeWord[e.Name.Local]+" row", attributeOf(e, "author"), "")
					cells = append(cells, strings.Replace(said, ":]", "]", 1))
				}
				return nil
			})
		case "tc":
			cell, span, err := d.cell(x)
			cells = append(cells, cell)
			cells = append(cells, make([]string, min(max(span-1, 0), emptyCells))...)
			return err
		}
		return x.children(inRow)
	}
	inTable = func(e *xml.StartElement) error {
		if e.Name.Local != "tr" {
			return x.children(inTable)
		}
		cells = nil
		err := x.children(inRow)
		return g.addRow(cells, err)
	}
	return x.children(inTable)
}

// cell reads a cell of a table, and over how many columns it goes.
func (d *docx) cell(x *elements) (cell string, span int, err error) {
	var t text
	span = 1
	goesOn := false
	err = x.children(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "tcPr":
			return x.children(func(e *xml.StartElement) error {
				switch e.Name.Local {
				case "gridSpan":
					span = intAttribute(e, "val", 1)
				case "vMerge":
					goesOn = attributeOf(e, "val") != "restart"
				}
				return nil
			})
		case "p":
			return d.paragraph(x, &t)
		case "tbl":
			return d.table(x, &t)
		default:
			return d.blocks(x, &t)
		}
	})
	if goesOn { // what it shows is in the row above
		return "", span, err
	}
	return t.String(), span, err
}

// docxParagraph is a paragraph that is being read.
type docxParagraph struct {
	style  string
	level  int // of a heading that says so itself
	list   docxItem
	line   *docxLine
	boxes  []string // text boxes that hang on it
	fields []docxField
	alt    string // of the picture that follows
}

// docxLine is a text with remarks about changes; several in a row that say the same become one.
type docxLine struct {
	t    text
	mark string // with which the remark began that has not ended
}

// add writes a text that is no change.
func (l *docxLine) add(s string) error {
	if s == "" {
		return nil
	}
	if l.mark != "" {
		l.mark, s = "", "]"+s
	}
	return l.t.add(s)
}

// change writes a text of a change.
func (l *docxLine) change(mark, s string) error {
	if l.mark == mark {
		return l.t.add(s)
	}
	err := l.add(mark)
	l.mark = mark
	return errors.Join(err, l.t.add(s))
}

// String is the whole text.
func (l *docxLine) String() string {
	if l.mark != "" {
		return l.t.String() + "]"
	}
	return l.t.String()
}

// docxField is a field that has begun: first its instruction, then what it shows.
type docxField struct {
	instruction string
	outer       *docxLine // what is before what it shows; nil = it shows nothing yet
}

// changeWord says what happened to a text, by the element around it.
var changeWord = map[string]string{
	"ins": "inserted", "moveTo": "inserted", "del": "deleted", "moveFrom": "deleted",
}

func (d *docx) paragraph(x *elements, t *text) error {
	p := &docxParagraph{line: &docxLine{}}
	err := d.inline(x, p)
	for len(p.fields) > 0 {
		p.endField()
	}
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	line := p.line.String()
	if line != "" {
		line = d.lead(p) + line
	}
	for _, box := range p.boxes {
		line += "\n" + remark("text box", "", box)
	}
	return errors.Join(t.add(line+"\n"), err)
}

// lead is what stands before a paragraph: the mark of a heading, a number or a bullet.
func (d *docx) lead(p *docxParagraph) string {
	style := d.styles[p.style]
	list := p.list
	if list.num == "" {
		list = style.list
		if list.num != "" && p.list.level > 0 {
			list.level = p.list.level
		}
	}
	lead := ""
	level := max(p.level, style.level)
	if level > 0 {
		lead = headingMark(level)
	} else if list.num != "" {
		lead = strings.Repeat("  ", min(list.level, 8))
	}
	if list.num != "" && list.num != "0" { // 0 takes a paragraph out of the list of its style
		lead += d.lists.lead(list)
	}
	return lead
}

// readProperties reads what a paragraph is.
func (p *docxParagraph) readProperties(x *elements) error {
	return x.children(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "pStyle":
			p.style = attributeOf(e, "val")
		case "outlineLvl":
			if level := intAttribute(e, "val", 9); level < 9 {
				p.level = level + 1
			}
		case "numPr":
			return x.children(func(e *xml.StartElement) error {
				switch e.Name.Local {
				case "numId":
					p.list.num = attributeOf(e, "val")
				case "ilvl":
					p.list.level = intAttribute(e, "val", 0)
				}
				return nil
			})
		}
		return nil
	})
}

// inline reads what is inside of a paragraph.
func (d *docx) inline(x *elements, p *docxParagraph) error {
	hidden := false
	return x.children(func(e *xml.StartElement) error {
		switch name := e.Name.Local; name {
		case "pPr":
			return p.readProperties(x)
		case "rPr":
			return x.children(func(e *xml.StartElement) error {
				hidden = hidden || e.Name.Local == "vanish" && isOn(attributeOf(e, "val"))
				return nil
			})
		case "t", "delText":
			s, err := x.text()
			if hidden && strings.TrimSpace(s) != "" {
				s = remark("hidden", "", s)
			}
			return errors.Join(p.line.add(s), err)
		case "tab", "ptab":
			return p.line.add("\t")
		case "br", "cr":
			return p.line.add("\n")
		case "noBreakHyphen":
			return p.line.add("-")
		case "ins", "del", "moveTo", "moveFrom":
			return d.change(x, p, e)
		case "hyperlink":
			target := d.links[relationID(e)].target
			return d.link(x, p, target)
		case "fldSimple":
			return d.link(x, p, linkOf(attributeOf(e, "instr")))
		case "fldChar":
			p.field(attributeOf(e, "fldCharType"))
			return nil
		case "instrText", "delInstrText":
			s, err := x.text()
			if n := len(p.fields); n > 0 && p.fields[n-1].outer == nil && len(p.fields[n-1].instruction) < 4<<10 {
				p.fields[n-1].instruction += s
			}
			return err
		case "footnoteReference", "endnoteReference":
			note := strings.TrimSuffix(name, "Reference") + attributeOf(e, "id")
			if d.notes[note] == "" {
				return nil
			}
			if !slices.Contains(d.cited, note) {
				d.cited = append(d.cited, note)
			}
			return p.line.add(fmt.Sprintf("[^%d]", slices.Index(d.cited, note)+1))
		case "commentReference":
			return p.line.add(d.comments[attributeOf(e, "id")])
		case "docPr":
			p.alt = attributeOf(e, "descr")
			return nil
		case "blip":
			return p.line.add(pictureMark(p.alt))
		case "chart":
			return p.line.add("[chart]")
		case "txbxContent":
			var t text
			err := d.blocks(x, &t)
			if box := strings.TrimSpace(t.String()); box != "" {
				p.boxes = append(p.boxes, box)
			}
			return err
		case "Fallback": // says again what is in Choice
			return nil
		default:
			return d.inline(x, p)
		}
	})
}

// pictureMark is what stands for a picture.
func pictureMark(alt string) string {
	if alt = strings.Join(strings.Fields(alt), " "); alt != "" {
		return "[picture: " + alt + "]"
	}
	return "[picture]"
}

// aside reads what is inside of an element to a text of its own.
func (d *docx) aside(x *elements, p *docxParagraph) (string, error) {
	outer := p.line
	p.line = &docxLine{}
	err := d.inline(x, p)
	shown := p.line.String()
	p.line = outer
	return shown, err
}

// link reads what may be a link.
func (d *docx) link(x *elements, p *docxParagraph, target string) error {
	if target == "" {
		return d.inline(x, p)
	}
	shown, err := d.aside(x, p)
	if shown != "" {
		err = errors.Join(p.line.add(markdownLink(shown, target)), err)
	}
	return err
}

// change reads what somebody inserted or deleted.
func (d *docx) change(x *elements, p *docxParagraph, e *xml.StartElement) error {
	mark := strings.TrimSuffix(remark(changeWord[e.Name.Local], attributeOf(e, "author"), ""), "]")
	shown, err := d.aside(x, p)
	if shown == "" {
		return err
	}
	return errors.Join(p.line.change(mark+" ", shown), err)
}

// field follows a field that has a beginning, a middle and an end of its own.
func (p *docxParagraph) field(part string) {
	n := len(p.fields)
	switch {
	case part == "begin" && n < maxDepth:
		p.fields = append(p.fields, docxField{})
	case part == "separate" && n > 0 && p.fields[n-1].outer == nil:
		p.fields[n-1].outer = p.line
		p.line = &docxLine{}
	case part == "end" && n > 0:
		p.endField()
	}
}

// endField writes what the last field shows.
func (p *docxParagraph) endField() {
	f := p.fields[len(p.fields)-1]
	p.fields = p.fields[:len(p.fields)-1]
	if f.outer == nil {
		return
	}
	shown := p.line.String()
	if target := linkOf(f.instruction); target != "" && shown != "" {
		shown = markdownLink(shown, target)
	}
	p.line = f.outer
	_ = p.line.add(shown) // what is too long is noticed by what follows
}

// linkOf is the address in the instruction of a field that is a link.
func linkOf(instruction string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(instruction), "HYPERLINK")
	if !ok {
		return ""
	}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, `\`) { // a place in the same document
		return ""
	}
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		target, _, _ := strings.Cut(quoted, `"`)
		return target
	}
	target, _, _ := strings.Cut(rest, " ")
	return target
}
