package cli

import (
	"strings"

	"rsc.io/qr"

	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// quietZone is the bright margin of a QR code, in modules: readers need it (ISO/IEC 18004 wants 4).
const quietZone = 4

// picture is the QR code of a link, for the terminal of a person; "" where it cannot be shown as a whole.
func (s *setup) picture(link string) string {
	if !s.c.env.OutTerm {
		return ""
	}
	code, err := qr.Encode(link, qr.L)
	if err != nil || code.Size+2*quietZone > s.in.columns() {
		return ""
	}
	return drawCode(code, s.c.coloured())
}

// drawCode draws a QR code, two rows of modules in one line. In colours it is dark on bright in any terminal; without, it
// takes the terminal's own colours, in which most are bright on dark.
func drawCode(code *qr.Code, coloured bool) string {
	bright := func(x, y int) bool { return !code.Black(x, y) } // the margin is bright: nothing outside is black
	var out strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		if coloured {
			out.WriteString("\x1b[97;40m")
		}
		for x := -quietZone; x < code.Size+quietZone; x++ {
			below := y+1 < code.Size+quietZone && bright(x, y+1)
			switch above := bright(x, y); {
			case above && below:
				out.WriteString("█")
			case above:
				out.WriteString("▀")
			case below:
				out.WriteString("▄")
			default:
				out.WriteString(" ")
			}
		}
		if coloured {
			out.WriteString("\x1b[0m")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// listItem is the beginning of an entry of a list, below which its other lines begin.
var listItem = lazyregexp.New(`^ +\d+  `)

// wrapWords breaks the lines of a text between words, so that none is wider than so many columns; 0 = they stay. A word
// that is wider, such as a link, has a line of its own and stays whole.
func wrapWords(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		width, blank, hang := 0, "", len(listItem().FindString(line))
		for word := range strings.SplitAfterSeq(line, " ") {
			bare := strings.TrimRight(word, " ")
			long := paint.Width(strings.TrimRight(bare, "\n"))
			switch {
			case width > 0 && width+len(blank)+long > columns:
				out.WriteString("\n" + strings.Repeat(" ", hang))
				width = hang
			default:
				out.WriteString(blank)
				width += len(blank)
			}
			out.WriteString(bare)
			width, blank = width+long, word[len(bare):]
		}
		out.WriteString(blank) // a prompt ends with one
	}
	return out.String()
}
