package console

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// visitPieces splits a line into colours (ESC [ … m) and text.
func visitPieces(line string, visit func(text string, colour bool) bool) {
	for line != "" {
		i := strings.Index(line, "\x1b[")
		if i < 0 {
			visit(line, false)
			return
		}
		if i > 0 && !visit(line[:i], false) {
			return
		}
		end := strings.IndexByte(line[i:], 'm')
		if end < 0 {
			return
		}
		if !visit(line[i:i+end+1], true) {
			return
		}
		line = line[i+end+1:]
	}
}

// widthOf returns how many columns a line takes.
func widthOf(line string) int {
	n := 0
	visitPieces(line, func(text string, colour bool) bool {
		if !colour {
			n += displaywidth.String(text)
		}
		return true
	})
	return n
}

// cutLine shortens a line to at most so many columns, and ends its colours.
func cutLine(line string, columns int) string {
	var b strings.Builder
	left, coloured := columns-1, false
	visitPieces(line, func(text string, colour bool) bool {
		if colour {
			coloured = true
			b.WriteString(text)
			return true
		}
		for it := graphemes.FromString(text); it.Next(); {
			w := displaywidth.String(it.Value())
			if w > left {
				return false
			}
			left -= w
			b.WriteString(it.Value())
		}
		return true
	})
	b.WriteString("…")
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
