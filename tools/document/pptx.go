package document

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

// pptx reads a presentation of Office (ECMA-376, part 1, section 19).
type pptx struct {
	*parts
	t       *text
	authors map[string]string
	links   map[string]related // of the slide that is read
}

// readPPTX reads the slides in order, each with its notes and comments.
func readPPTX(t *text, p *parts) error {
	name, err := p.mainPart("ppt/presentation.xml")
	if err != nil {
		return err
	}
	rels, err := p.relations(name)
	if err != nil {
		return err
	}
	d := &pptx{parts: p, t: t, authors: map[string]string{}}
	for _, r := range rels {
		if r.kind == "commentAuthors" || r.kind == "authors" {
			err = errors.Join(err, p.readIfThere(r.target, d.readAuthors))
		}
	}
	var slides []string
	err = errors.Join(err, p.readPart(name, func(x *elements) error {
		return x.each("sldId", func(e *xml.StartElement) error {
			if r, ok := rels[relationID(e)]; ok {
				slides = append(slides, r.target)
			}
			return nil
		})
	}))
	if err != nil {
		return err
	}
	for i, slide := range slides {
		if i == maxPages {
			return errFull
		}
		if err := d.readSlide(slide, fmt.Sprintf("slide %d of %d", i+1, len(slides))); err != nil {
			return err
		}
	}
	return nil
}

func (d *pptx) readAuthors(x *elements) error {
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		if e.Name.Local == "cmAuthor" || e.Name.Local == "author" {
			d.authors[attributeOf(e, "id")] = attributeOf(e, "name")
		}
		return x.children(inside)
	}
	return x.children(inside)
}

func (d *pptx) readSlide(part, name string) (err error) {
	if d.links, err = d.relations(part); err != nil {
		return err
	}
	var content text
	err = d.readPart(part, func(x *elements) error {
		return x.children(func(e *xml.StartElement) error { // the root
			if show := attributeOf(e, "show"); show != "" && !isOn(show) {
				name += ", hidden"
			}
			return d.shapes(x, &content, "")
		})
	})
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	if err := errors.Join(d.t.add("["+name+"]\n"+content.String()), err); err != nil {
		return err
	}
	links := d.links
	for _, kind := range []string{"diagramData", "notesSlide", "comments"} {
		for _, r := range links {
			if r.kind != kind || r.external {
				continue
			}
			switch kind {
			case "diagramData":
				err = d.readIfThere(r.target, func(x *elements) error { return d.shapes(x, d.t, "") })
			case "notesSlide":
				err = d.readNotes(r.target)
			case "comments":
				err = d.readIfThere(r.target, d.readComments)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readNotes reads what the speaker is to say.
func (d *pptx) readNotes(part string) (err error) {
	if d.links, err = d.relations(part); err != nil {
		return err
	}
	var notes text
	err = d.readIfThere(part, func(x *elements) error { return d.shapes(x, &notes, "body") })
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	if s := strings.TrimSpace(notes.String()); s != "" {
		err = errors.Join(d.t.add("[notes]\n"+s+"\n"), err)
	}
	return err
}

func (d *pptx) readComments(x *elements) error {
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "cm", "reply":
			who := d.authors[attributeOf(e, "authorId")]
			var said, answers []string
			err := x.children(func(e *xml.StartElement) error {
				switch e.Name.Local {
				case "text", "txBody":
					s, err := x.text()
					said = append(said, s)
					return err
				case "replyLst":
					return x.each("reply", func(e *xml.StartElement) error {
						s, err := x.text()
						answers = append(answers, remark("comment", d.authors[attributeOf(e, "authorId")], s))
						return err
					})
				}
				return nil
			})
			lines := append([]string{remark("comment", who, strings.Join(said, " "))}, answers...)
			return errors.Join(err, d.t.add(strings.Join(lines, "\n")+"\n"))
		}
		return x.children(inside)
	}
	return x.children(inside)
}

// shape is a shape of a slide that is being read.
type shape struct {
	holds string // what it is a place for: title, body, the number of the slide, …
	alt   string
}

// shapes reads the texts of shapes, tables and pictures, in the order in which they are drawn. only: shapes that are a
// place for it; "" = all but what is the same on every slide.
func (d *pptx) shapes(x *elements, t *text, only string) error {
	var s shape
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "sp", "graphicFrame", "pic", "cxnSp":
			s = shape{}
		case "cNvPr":
			s.alt = attributeOf(e, "descr")
		case "ph":
			if s.holds = attributeOf(e, "type"); s.holds == "" {
				s.holds = "obj"
			}
		case "blip":
			if only == "" {
				return t.add(pictureMark(s.alt) + "\n")
			}
			return nil
		case "chart":
			return t.add("[chart]\n")
		case "tbl":
			return d.table(x, t)
		case "p":
			line, err := d.paragraph(x)
			switch s.holds {
			case "sldNum", "dt", "ftr", "hdr", "sldImg":
				return err
			case "title", "ctrTitle":
				if strings.TrimSpace(line) != "" {
					line = headingMark(1) + line
				}
			}
			if only != "" && s.holds != only {
				return err
			}
			if strings.TrimSpace(line) == "" {
				return err
			}
			return errors.Join(t.add(line+"\n"), err)
		case "Fallback": // says again what is in Choice
			return nil
		}
		return x.children(inside)
	}
	return x.children(inside)
}

// table reads a table; cells that are part of a larger one are empty.
func (d *pptx) table(x *elements, t *text) error {
	g := &grid{t: t}
	return x.each("tr", func(*xml.StartElement) error {
		var cells []string
		err := x.each("tc", func(*xml.StartElement) error {
			var lines []string
			err := x.each("p", func(*xml.StartElement) error {
				line, err := d.paragraph(x)
				lines = append(lines, line)
				return err
			})
			cells = append(cells, strings.Join(lines, "\n"))
			return err
		})
		return g.addRow(cells, err)
	})
}

// paragraph reads a paragraph of a drawing, with a bullet where it is below another one.
func (d *pptx) paragraph(x *elements) (string, error) {
	line := &text{}
	lead, target := "", ""
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "pPr":
			if level := intAttribute(e, "lvl", 0); level > 0 {
				lead = strings.Repeat("  ", min(level, 8)) + "- "
			}
			return nil
		case "r", "fld":
			target = ""
			outer := line
			line = &text{}
			err := x.children(inside)
			shown := line.String()
			if line = outer; target != "" {
				shown = markdownLink(shown, target)
			}
			return errors.Join(line.add(shown), err)
		case "hlinkClick":
			if r := d.links[relationID(e)]; r.external {
				target = r.target
			}
			return nil
		case "t":
			s, err := x.text()
			return errors.Join(line.add(s), err)
		case "br":
			return line.add("\n")
		}
		return x.children(inside)
	}
	err := x.children(inside)
	s := line.String()
	if strings.TrimSpace(s) == "" {
		lead = ""
	}
	return lead + s, err
}
