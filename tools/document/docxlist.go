package document

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// docxLists number the paragraphs of lists (ECMA-376, part 1, section 17.9).
type docxLists struct {
	kinds  map[string][]docxLevel // by the id of an abstract list
	lists  map[string]docxList    // by the id of a list
	counts map[string][]int       // by the id of an abstract list: lists of one go on counting
	begun  map[string]bool        // lists that have started where they say
}

type docxList struct {
	kind   string
	starts map[int]int // levels that start anew
}

// docxLevel is how the items of a level are numbered.
type docxLevel struct {
	start        int
	format, text string
}

// maxLevels is how deep lists are in one another.
const maxLevels = 9

// read reads numbering.xml.
func (l *docxLists) read(x *elements) error {
	l.kinds, l.lists = map[string][]docxLevel{}, map[string]docxList{}
	l.counts, l.begun = map[string][]int{}, map[string]bool{}
	return x.children(func(e *xml.StartElement) error { // the root
		return x.children(func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "abstractNum":
				levels := make([]docxLevel, maxLevels)
				l.kinds[attributeOf(e, "abstractNumId")] = levels
				return x.each("lvl", func(e *xml.StartElement) error {
					n := intAttribute(e, "ilvl", -1)
					if n < 0 || n >= maxLevels {
						return nil
					}
					levels[n].start = 1
					return x.children(func(e *xml.StartElement) error {
						switch e.Name.Local {
						case "start":
							levels[n].start = intAttribute(e, "val", 1)
						case "numFmt":
							levels[n].format = attributeOf(e, "val")
						case "lvlText":
							levels[n].text = attributeOf(e, "val")
						}
						return nil
					})
				})
			case "num":
				list := docxList{starts: map[int]int{}}
				id, level := attributeOf(e, "numId"), 0
				var inside func(e *xml.StartElement) error
				inside = func(e *xml.StartElement) error {
					switch e.Name.Local {
					case "abstractNumId":
						list.kind = attributeOf(e, "val")
					case "lvlOverride":
						level = intAttribute(e, "ilvl", 0)
					case "startOverride":
						list.starts[level] = intAttribute(e, "val", 1)
					}
					return x.children(inside)
				}
				err := x.children(inside)
				l.lists[id] = list
				return err
			}
			return nil
		})
	})
}

// lead is the number or the bullet of the next item of a list, with a blank.
func (l *docxLists) lead(item docxItem) string {
	list, ok := l.lists[item.num]
	levels := l.kinds[list.kind]
	if !ok || item.level < 0 || item.level >= len(levels) {
		return "- "
	}
	counts := l.counts[list.kind]
	if counts == nil {
		counts = make([]int, maxLevels)
		for i := range counts {
			counts[i] = levels[i].start - 1
		}
		l.counts[list.kind] = counts
	}
	if !l.begun[item.num] {
		l.begun[item.num] = true
		for level, start := range list.starts {
			if level >= 0 && level < maxLevels {
				counts[level] = start - 1
			}
		}
	}
	counts[item.level]++
	for i := item.level + 1; i < maxLevels; i++ {
		counts[i] = levels[i].start - 1
	}
	level := levels[item.level]
	if level.format == "none" {
		return ""
	}
	if level.format == "bullet" || !strings.Contains(level.text, "%") {
		return "- "
	}
	shown := level.text
	for i := range item.level + 1 {
		n := counts[i]
		if i < item.level { // an item of it may have been left out
			n = max(n, levels[i].start)
		}
		shown = strings.ReplaceAll(shown, fmt.Sprint("%", i+1), listNumeral(levels[i].format, n))
	}
	return shown + " "
}

// listNumeral writes a number as a format of Office or OpenDocument has it.
func listNumeral(format string, n int) string {
	switch format {
	case "lowerLetter", "a":
		return letterNumeral(n)
	case "upperLetter", "A":
		return strings.ToUpper(letterNumeral(n))
	case "lowerRoman", "i":
		return strings.ToLower(romanNumeral(n))
	case "upperRoman", "I":
		return romanNumeral(n)
	case "decimalZero":
		return fmt.Sprintf("%02d", n)
	}
	return strconv.Itoa(n)
}

// letterNumeral counts a, b, … z, aa, bb.
func letterNumeral(n int) string {
	if n < 1 || n > 780 {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
}

func romanNumeral(n int) string {
	if n < 1 || n > 3999 {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, r := range []struct {
		n int
		s string
	}{
		{1000, "M"},
		{900, "CM"},
		{500, "D"},
		{400, "CD"},
		{100, "C"},
		{90, "XC"},
		{50, "L"},
		{40, "XL"},
		{10, "X"},
		{9, "IX"},
		{5, "V"},
		{4, "IV"},
		{1, "I"},
	} {
		for ; n >= r.n; n -= r.n {
			b.WriteString(r.s)
		}
	}
	return b.String()
}
