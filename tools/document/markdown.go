package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// grid writes the rows of a table as one of Markdown, as they come.
type grid struct {
	t      *text
	inside bool // it is in a cell of another one, where there are no lines
	rows   int
}

// add writes a row.
func (g *grid) add(cells []string) error {
	g.rows++
	for i, c := range cells {
		if g.inside {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "\n", " / ")
			continue
		}
		c = strings.ReplaceAll(strings.TrimSpace(c), "|", `\|`)
		cells[i] = strings.ReplaceAll(c, "\n", "<br>")
	}
	if g.inside {
		return g.t.add(strings.Join(cells, " ; ") + "\n")
	}
	row := "| " + strings.Join(cells, " | ") + " |\n"
	if g.rows == 1 {
		row += "|" + strings.Repeat(" --- |", max(len(cells), 1)) + "\n"
	}
	return g.t.add(row)
}

// addRow is add after the cells were read, with the error of that: a text that is full keeps what there is.
func (g *grid) addRow(cells []string, err error) error {
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	return errors.Join(g.add(cells), err)
}

// markdownLink is a text that is a link.
func markdownLink(shown, target string) string {
	shown, target = strings.TrimSpace(shown), strings.TrimSpace(target)
	switch {
	case target == "":
		return shown
	case shown == "" || shown == target:
		return target
	}
	return "[" + shown + "](" + target + ")"
}

// remark is something that is said beside a text, and by whom.
func remark(what, who, said string) string {
	said = strings.Join(strings.FieldsFunc(said, func(r rune) bool { return r == '\n' }), " / ")
	if who = strings.TrimSpace(who); who != "" {
		what += " by " + who
	}
	if said = strings.TrimSpace(said); said != "" {
		said = " " + said
	}
	return "[" + what + ":" + said + "]"
}

// headingMark is the mark of a heading of a level, from 1.
func headingMark(level int) string { return strings.Repeat("#", min(max(level, 1), 6)) + " " }

// wholeNumber is the number that a text says, or what stands for none.
func wholeNumber(s string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
		return n
	}
	return otherwise
}

// isOn says whether an attribute that may be left out says yes.
func isOn(value string) bool {
	return value != "0" && value != "false" && value != "off" && value != "none"
}

// columnName is the letter of a column of a sheet, from 0.
func columnName(n int) string {
	name := ""
	for n++; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// cellAt is the column and the row of a cell, both from 0, of a reference such as B7.
func cellAt(ref string) (column, row int, ok bool) {
	i := 0
	for ; i < len(ref) && i < 4; i++ {
		c := ref[i] &^ 0x20
		if c < 'A' || c > 'Z' {
			break
		}
		column = column*26 + int(c-'A') + 1
	}
	row, err := strconv.Atoi(ref[i:])
	return column - 1, row - 1, i > 0 && err == nil && row > 0
}

// cellRef is the reference of a cell.
func cellRef(column, row int) string { return fmt.Sprint(columnName(column), row+1) }

// sheet writes the rows of a sheet: a row a line, cells between tabs. Lines are where rows are, unless many are empty.
type sheet struct {
	t       *text
	next    int // the row that comes next, from 0
	repeats int // cells that were written again because the file says so
}

// Bounds of what is empty in a sheet.
const (
	emptyRows  = 20
	emptyCells = 64
)

// begin writes the line that says which sheet it is.
func (s *sheet) begin(name string, hidden bool) error {
	if hidden {
		name += ", hidden"
	}
	return s.t.add("[sheet " + name + "]\n")
}

// row writes the row of a number, from 0. cells are by column; those at the end may be missing.
func (s *sheet) row(number int, cells []string, hidden bool) error {
	last := len(cells)
	for last > 0 && strings.TrimSpace(cells[last-1]) == "" {
		last--
	}
	if last == 0 {
		return nil
	}
	switch gap := number - s.next; {
	case gap > emptyRows:
		if err := s.t.add(fmt.Sprintf("[rows %d to %d are empty]\n", s.next+1, number)); err != nil {
			return err
		}
	case gap > 0:
		if err := s.t.add(strings.Repeat("\n", gap)); err != nil {
			return err
		}
	}
	s.next = number + 1
	if hidden {
		if err := s.t.add("[hidden row] "); err != nil {
			return err
		}
	}
	for i, empty := 0, 0; i < last; i++ {
		c := strings.NewReplacer("\t", " ", "\r\n", " / ", "\n", " / ").Replace(cells[i])
		switch {
		case c == "":
			empty++
			continue
		case empty > emptyCells:
			c = "[" + columnName(i) + "] " + c
		case i > 0:
			c = strings.Repeat("\t", empty+min(i-empty, 1)) + c
		}
		empty = 0
		if err := s.t.add(c); err != nil {
			return err
		}
	}
	return s.t.add("\n")
}
