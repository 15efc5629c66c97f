package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/zephbot/zephbot/bot/terminal/console"
	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/tools"
)

// Limits of the live part, in lines.
const (
	maxMenu    = 8
	maxRunning = 4
	maxPlan    = 8
)

// printLines adds lines above the live part; the caller holds the lock and draws.
func (r *Rich) printLines(lines ...string) {
	if len(lines) > 0 {
		r.above = append(r.above, lines...)
		r.dirty = true
	}
}

// drawScreen shows everything; the caller holds the lock.
func (r *Rich) drawScreen() {
	if r.screen == nil {
		return
	}
	var live []string
	var cursor console.Cursor
	live = append(live, r.growingLines()...)
	live = append(live, r.statusLines()...)
	add := func(lines []string, row, col int, hidden bool) {
		cursor = console.Cursor{Row: len(live) + row, Col: col, Hidden: hidden}
		live = append(live, lines...)
	}
	switch q := r.openQuestion(); {
	case r.why != nil:
		lines, row, col := r.whyLines()
		add(lines, row, col, false)
	case q != nil && q.words:
		lines, row, col := r.answerLines(q)
		add(lines, row, col, false)
	case q != nil:
		add(r.askLines(q), q.at, 0, true)
	case r.form != nil:
		lines, row, col := r.formLines()
		add(lines, row, col, len(r.form.req.Form.Fields) == 0)
	default:
		lines, row, col := r.promptLines()
		add(lines, row, col, false)
	}
	above := r.above
	r.above, r.dirty, r.drawn = nil, false, time.Now()
	r.screen.Draw(above, live, cursor)
}

// statusLines says what is being done.
func (r *Rich) statusLines() []string {
	if !r.busy || r.openQuestion() != nil || r.form != nil {
		return nil
	}
	p, words, width := r.rich.Painter, r.rich.Words, r.screen.Size().Cols-1
	spinner := []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	sign := spinner[r.spin%len(spinner)]
	took := time.Since(r.began)
	var lines []string
	switch {
	case r.stopping:
		lines = []string{p.Cut(paint.Yellow, sign+" "+words.Stopping, width)}
	case len(r.tools) == 0:
		says := words.Thinking
		if silent, _ := r.silence.Lasting(time.Now()); silent > 0 {
			says = strings.TrimSpace(strings.TrimPrefix(r.rich.Silent(silent), "⏳"))
		}
		text := fmt.Sprintf("%s %s · %d s · %s", sign, says, int(took.Seconds()), words.StopHint)
		lines = []string{p.Cut(paint.Dim, text, width)}
	}
	if r.stopping {
		return append([]string{""}, lines...)
	}
	lines = append(r.planLines(width), lines...)
	for i, t := range r.tools {
		if i == maxRunning {
			lines = append(lines, p.Cut(paint.Dim, fmt.Sprintf("  … +%d", len(r.tools)-i), width))
			break
		}
		show := t.show
		if t.does == "" {
			show = t.tool
		}
		line := r.rich.Doing(t.does, show, r.done, r.done+len(r.tools), time.Since(t.began))
		line = strings.TrimSpace(strings.TrimPrefix(line, "⏳"))
		lines = append(lines, p.Cut(paint.Cyan, sign+" "+line, width))
		if t.said != "" {
			lines = append(lines, p.Cut(paint.Dim, "  "+t.said, width))
		}
	}
	return append([]string{""}, lines...)
}

// planLines draws the plan of the turn: a checklist above what is being done.
func (r *Rich) planLines(width int) []string {
	var lines []string
	for _, line := range tools.Checklist(r.plan, min(maxPlan, r.screen.Size().Rows/3)) {
		look := paint.Dim
		if strings.HasPrefix(line, "▶") {
			look = paint.Bold
		}
		lines = append(lines, r.rich.Painter.Cut(look, line, width))
	}
	return lines
}

// askLines draws the choices of a question.
func (r *Rich) askLines(q *inquiry) []string {
	p, width := r.rich.Painter, r.screen.Size().Cols-1
	var lines []string
	for i, o := range q.options {
		text := fmt.Sprintf("%d. %s", i+1, o.label)
		if o.key != "" {
			text += " (" + o.key + ")"
		}
		if i == q.at {
			lines = append(lines, p.Cut(paint.Bold|paint.Cyan, "❯ "+text, width))
			continue
		}
		lines = append(lines, "  "+p.Cut(paint.Plain, text, width-2))
	}
	lines = append(lines, p.Cut(paint.Dim, cmp.Or(q.hint, r.rich.Words.Choose), width))
	if text, _ := r.editor.Text(); text != "" {
		lines = append(lines, p.Cut(paint.Dim, "> "+text, width))
	}
	return lines
}

// answerLines draws the choices of a question that can be answered in words, and the line for these, with the place of
// the cursor.
func (r *Rich) answerLines(q *inquiry) (lines []string, row, col int) {
	choices := r.askLines(q)
	text, at := q.editor.Text()
	rows, cursorRow, cursorCol := promptRows(text, at, r.screen.Size().Cols-1, "✎ ")
	return append(choices, rows...), len(choices) + cursorRow, cursorCol
}

// promptLines draws the prompt, what can be completed, and hints.
func (r *Rich) promptLines() (lines []string, row, col int) {
	p, words, size := r.rich.Painter, r.rich.Words, r.screen.Size()
	width := size.Cols - 1
	lines = append(lines, "")
	for i, text := range r.queue {
		if i == 0 {
			lines = append(lines, p.Cut(paint.Dim, words.Queued, width))
		}
		lines = append(lines, p.Cut(paint.Dim, "  "+text, width))
	}
	text, at := r.editor.Text()
	if r.search != nil {
		found, _ := r.editor.Search(r.search.text, r.search.skip)
		head := words.Search + " " + r.search.text
		return append(lines, p.Cut(paint.Plain, head+" · "+found, width)), len(lines), min(width, paint.Width(head))
	}
	rows, cursorRow, cursorCol := promptRows(text, at, width, "> ")
	if most := max(3, size.Rows/2); len(rows) > most { // around the cursor
		first := min(max(0, cursorRow-most/2), len(rows)-most)
		rows, cursorRow = rows[first:first+most], cursorRow-first
	}
	row, col = len(lines)+cursorRow, cursorCol
	lines = append(lines, rows...)
	lines = append(lines, r.menuLines(width)...)
	status := r.status
	if status != "" && len(r.queue) > 0 {
		status += " · " + fmt.Sprintf(words.Waiting, len(r.queue))
	}
	if below := cmp.Or(r.notice, status); below != "" && len(r.menu) == 0 {
		lines = append(lines, p.Cut(paint.Dim, below, width))
	}
	return lines, row, col
}

func (r *Rich) menuLines(width int) []string {
	var lines []string
	p := r.rich.Painter
	first := min(max(0, r.chosen-maxMenu/2), max(0, len(r.menu)-maxMenu))
	for i, c := range r.menu {
		if i < first || i >= first+maxMenu {
			continue
		}
		text := "  " + c.Name
		if c.About != "" {
			text = fmt.Sprintf("  %-12s %s", c.Name, c.About)
		}
		look := paint.Dim
		if i == r.chosen {
			look, text = paint.Bold|paint.Cyan, "❯ "+strings.TrimPrefix(text, "  ")
		}
		lines = append(lines, p.Cut(look, text, width))
	}
	if left := len(r.menu) - first - maxMenu; left > 0 {
		lines = append(lines, p.Paint(paint.Dim, fmt.Sprintf("  … +%d", left)))
	}
	return lines
}

// promptRows wraps what is being written, with lead before its first row, and returns where the cursor is.
func promptRows(text string, at, width int, lead string) (rows []string, row, col int) {
	indent := paint.Width(lead)
	var b strings.Builder
	b.WriteString(lead)
	used := indent
	next := func() {
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(strings.Repeat(" ", indent))
		used = indent
	}
	for it := graphemes.FromString(text); it.Next(); {
		if it.Start() >= at && row == 0 && col == 0 {
			row, col = len(rows), used
		}
		if it.Value() == "\n" {
			next()
			continue
		}
		w := paint.Width(it.Value())
		if used+w > width {
			next()
			if it.Start() == at {
				row, col = len(rows), used
			}
		}
		b.WriteString(it.Value())
		used += w
	}
	if at >= len(text) {
		if used >= width {
			next()
		}
		row, col = len(rows), used
	}
	return append(rows, b.String()), row, col
}
