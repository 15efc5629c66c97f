package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/terminal/console"

	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// formFace is a request of a server that the person is filling in.
type formFace struct {
	arming
	form
	at      int // field
	values  map[string]any
	editor  console.Editor
	problem string
}

func (f *formFace) cancelForm() { f.reply <- Reply{Cancel: true} }

// Elicit asks the person, one request after the other. It waits for the answer until ctx ends.
func (r *Rich) Elicit(ctx context.Context, req Request) (Reply, error) {
	if !r.opts.Ask {
		return Reply{}, errors.New("there is nobody at the terminal")
	}
	f := form{ctx: ctx, req: req, reply: make(chan Reply, 1)}
	r.Terminal.mu.Lock()
	r.forms = append(r.forms, f)
	r.Terminal.mu.Unlock()
	r.withLock(func() { r.whenOpen(r.openNext) })
	select {
	case reply := <-f.reply:
		return reply, nil
	case <-ctx.Done():
		r.withLock(func() {
			if r.form != nil && r.form.reply == f.reply {
				r.form = nil
				late := fmt.Sprintf(r.rich.Words.FormLate, req.Server)
				r.printLines(r.rich.Painter.Text(paint.Yellow, late, r.screen.Size().Cols-1)...)
				r.openNext()
				r.drawScreen()
			}
		})
		return Reply{}, ctx.Err()
	}
}

// nextFormFace shows the oldest request that waits; the caller holds the lock.
func (r *Rich) nextFormFace() {
	f, ok := r.nextForm()
	if !ok {
		return
	}
	r.form = &formFace{form: f, values: map[string]any{}}
	width, p, words := r.screen.Size().Cols-1, r.rich.Painter, r.rich.Words
	head := fmt.Sprintf(words.FormHead, visible.Name(f.req.Server), visible.Name(f.req.Tool))
	r.printLines("")
	r.printLines(p.Text(paint.Bold|paint.Yellow, "✋ "+head, width)...)
	r.printLines(p.Text(paint.Plain, f.req.Form.Message, width)...)
	if f.req.Warn && f.req.Form.Sensitive() {
		r.printLines(p.Text(paint.Red, "⚠ "+fmt.Sprintf(words.FormSecret, visible.Name(f.req.Server)), width)...)
	}
	r.armQuestion(&r.form.arming)
}

// fillKey handles a key that is meant for a form.
func (r *Rich) fillKey(k console.Key) {
	f := r.form
	switch {
	case k.Name == console.Escape:
		r.replyForm(Reply{Cancel: true})
	case len(f.req.Form.Fields) == 0:
		switch yes, ok := content.YesNo(k.Text); {
		case k.Name != console.Rune || k.Ctrl || k.Alt:
		case yes:
			r.replyForm(Reply{Accept: true, Values: map[string]any{}})
		case ok:
			r.replyForm(Reply{})
		}
	case k.Name == console.Enter && !k.Alt && !k.Shift:
		r.fillField()
	default:
		f.problem = ""
		f.editor.Key(k)
	}
}

// fillField takes the value of a field, and goes on with the next one.
func (r *Rich) fillField() {
	f := r.form
	field := f.req.Form.Fields[f.at]
	text, _ := f.editor.Text()
	value, err := content.Parse(field, text)
	if err == nil && value != nil {
		err = field.Validate(value)
	}
	if err != nil {
		f.problem = fmt.Sprintf(r.rich.Words.FormWrong, err.Error())
		return
	}
	if value != nil {
		f.values[field.Name] = value
	}
	shown := text
	if field.Sensitive {
		shown = strings.Repeat("•", min(8, len([]rune(text))))
	}
	r.printLines(r.rich.Painter.Cut(paint.Dim, "  "+field.Label()+": "+shown, r.screen.Size().Cols-1))
	f.editor.Take()
	if f.at++; f.at == len(f.req.Form.Fields) {
		r.replyForm(Reply{Accept: true, Values: f.values})
	}
}

func (r *Rich) replyForm(reply Reply) {
	r.form.reply <- reply
	r.form = nil
	r.openNext()
}

// formLines draws the field that is to be filled in, with the place of the cursor.
func (r *Rich) formLines() (lines []string, row, col int) {
	f, p, words, width := r.form, r.rich.Painter, r.rich.Words, r.screen.Size().Cols-1
	if len(f.req.Form.Fields) == 0 {
		return []string{p.Cut(paint.Dim, words.FormConsent, width)}, 0, 0
	}
	field := f.req.Form.Fields[f.at]
	head := fmt.Sprintf("%d/%d %s", f.at+1, len(f.req.Form.Fields), field.Label())
	if field.Description != "" {
		head += " (" + field.Description + ")"
	}
	head += " [" + typeLabel(field)
	if !field.Required {
		head += ", " + words.FormOptional
	}
	if field.Default != nil {
		head += ", " + fmt.Sprintf(words.FormDefault, fmt.Sprint(field.Default))
	}
	lines = p.Text(paint.Bold, head+"]", width)
	for i, o := range field.Options {
		lines = append(lines, p.Cut(paint.Plain, fmt.Sprintf("  %d  %s", i+1, o.Title), width))
	}
	text, at := f.editor.Text()
	if field.Sensitive {
		at = len([]rune(text[:at])) * len("•")
		text = strings.Repeat("•", len([]rune(text)))
	}
	rows, cursorRow, cursorCol := promptRows(text, at, width, "? ")
	row, col = len(lines)+cursorRow, cursorCol
	lines = append(lines, rows...)
	if f.problem != "" {
		lines = append(lines, p.Cut(paint.Red, f.problem, width))
	}
	return append(lines, p.Cut(paint.Dim, words.FormHint, width)), row, col
}
