package terminal

import (
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/terminal/console"

	"github.com/zephbot/zephbot/bot/terminal/paint"
)

// whyFace is where the person may say why they denied. The denial counts already.
type whyFace struct {
	press  string // data of the press that hands in the reason
	until  time.Time
	editor console.Editor
}

// offerWhy lets the person say why they denied. What else waits for them is shown afterwards.
func (r *Rich) offerWhy(q *inquiry) {
	denial := q.options[q.denyButton()].data
	r.why = &whyFace{
		press: denial[:strings.LastIndexByte(denial, ':')+1] + approval.Why,
		until: time.Now().Add(approval.WhyFor),
	}
}

// endWhy goes on without a reason, or after one.
func (r *Rich) endWhy() {
	r.why = nil
	r.openNext()
}

// whyKey handles a key while the person may say why.
func (r *Rich) whyKey(k console.Key) {
	w := r.why
	switch {
	case k.Name == console.Escape:
		r.endWhy()
	case k.Name == console.Enter && !k.Alt && !k.Shift:
		text, _ := w.editor.Text()
		if text = strings.TrimSpace(text); text != "" {
			r.printLines(r.rich.Painter.Text(paint.Dim, r.rich.Words.Why+" "+text, r.screen.Size().Cols-1)...)
			r.pressButton(w.press, text)
		}
		r.endWhy()
	default:
		w.editor.Key(k)
	}
}

// whyLines draws the line in which the person says why, with the place of the cursor.
func (r *Rich) whyLines() (lines []string, row, col int) {
	words, width := r.rich.Words, r.screen.Size().Cols-1
	text, at := r.why.editor.Text()
	rows, cursorRow, cursorCol := promptRows(text, at, width, words.Why+" ")
	lines = append([]string{""}, rows...)
	return append(lines, r.rich.Painter.Cut(paint.Dim, words.WhyHint, width)), 1 + cursorRow, cursorCol
}
