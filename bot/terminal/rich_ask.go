package terminal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/terminal/keys"
	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/bot/turn"
)

// arming decides which keys are meant for a question. A person can only mean what they have seen: a key counts if the
// terminal has replied to what was sent after the question, so that the key was pressed after it was shown, and if no
// other key came for a moment, so that nobody decides by going on with a sentence.
type arming struct {
	shown   time.Time
	last    time.Time // last key that was not meant for it
	replied time.Time // when the terminal has replied
}

// takes reports whether a key is meant for the question. replies says that the terminal is one that replies.
func (a *arming) takes(k keys.Key, at time.Time, replies bool) bool {
	if k.Name == keys.Paste {
		return false
	}
	since := a.shown
	for _, t := range []time.Time{a.last, a.replied} {
		if t.After(since) {
			since = t
		}
	}
	if a.replied.IsZero() && (replies || at.Sub(a.shown) < replyFor) {
		return false
	}
	return at.Sub(since) >= settle
}

// inquiry is a question whose answer is one of some buttons.
type inquiry struct {
	arming
	row     int64  // of the outbox
	message string // id of the message
	options []option
	at      int  // the selected one
	decided bool // the person has chosen; the answer is on its way
	hint    string
	// chosen is called with the choice, -1 = Escape, if it is not the press of a button.
	chosen func(ctx context.Context, choice int)
}

// option is one button.
type option struct {
	label, data string
	key         string // letter that chooses it; "" = none
}

// optionsOf returns the buttons of a card.
func optionsOf(lines [][]bot.Button) []option {
	var list []option
	for _, line := range lines {
		for _, b := range line {
			if b.Data == "" || b.Gray {
				continue
			}
			o := option{label: b.Label, data: b.Data}
			if i := strings.LastIndexByte(b.Data, ':'); i >= 0 && len(b.Data)-i == 2 && strings.Contains("ysn", b.Data[i+1:]) {
				o.key = b.Data[i+1:]
			}
			list = append(list, o)
		}
	}
	return list
}

// deny returns the button that refuses; without one, the last one, which leads back.
func (a *inquiry) deny() int {
	for i, o := range a.options {
		if o.key == "n" {
			return i
		}
	}
	return len(a.options) - 1
}

// open returns the question that is to be answered now; nil = none.
func (r *Rich) open() *inquiry {
	if len(r.asks) == 0 || r.asks[0].decided {
		return nil
	}
	return r.asks[0]
}

// replied is told that the terminal has replied: what was asked before it is on the screen.
func (r *Rich) replied(at time.Time) {
	r.replies = true
	if q := r.open(); q != nil {
		q.replied = at
	}
	if r.form != nil {
		r.form.replied = at
	}
}

// choose handles a key that is meant for a question.
func (r *Rich) choose(q *inquiry, k keys.Key) {
	pick := -1
	switch {
	case k.Name == keys.Up, k.Name == keys.Tab && k.Shift:
		q.at = (q.at + len(q.options) - 1) % len(q.options)
	case k.Name == keys.Down, k.Name == keys.Tab:
		q.at = (q.at + 1) % len(q.options)
	case k.Name == keys.Enter:
		pick = q.at
	case k.Name == keys.Escape && q.chosen != nil:
		r.picked(q, -1)
	case k.Name == keys.Escape:
		pick = q.deny()
	case k.Name == keys.Rune && !k.Ctrl && !k.Alt:
		pick = q.named(k.Text)
	}
	switch {
	case pick < 0:
		return
	case q.chosen != nil:
		r.picked(q, pick)
		return
	}
	q.decided = true
	data := q.options[pick].data
	r.later(func(ctx context.Context) error { return r.press(ctx, data) })
}

// named returns the option that a number or a letter means; -1 = none.
func (a *inquiry) named(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(a.options) {
		return n - 1
	}
	for i, o := range a.options {
		if o.key != "" && o.key == strings.ToLower(text) {
			return i
		}
	}
	return -1
}

// Choose has the person choose one of some lines before they can write; chosen gets its index, -1 for none. It is
// called before Talk.
func (r *Rich) Choose(hint string, lines []string, chosen func(ctx context.Context, choice int)) {
	q := &inquiry{hint: hint, chosen: chosen}
	for _, line := range lines {
		q.options = append(q.options, option{label: line})
	}
	r.locked(func() {
		r.asks = append(r.asks, q)
		r.whenOpen(func() { r.appear(&q.arming) })
	})
}

// picked ends a choice among lines.
func (r *Rich) picked(q *inquiry, choice int) {
	r.asks = r.asks[1:]
	r.later(func(ctx context.Context) error {
		q.chosen(ctx, choice)
		r.locked(func() {
			r.next(0)
			r.draw()
		})
		return nil
	})
}

// press hands in the press of a button.
func (r *Rich) press(ctx context.Context, data string) error {
	m := r.message("")
	m.Kind, m.Data, m.Query, m.Command = bot.Press, data, m.ID, ""
	raw, err := bot.EncodeMessage(&m)
	if err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	return r.accept(ctx, []turn.Raw{{ID: m.ID, Source: bot.FromTerminal, Body: raw}})
}

// question shows a card and asks what it asks.
func (r *Rich) question(row *bot.Row, id string, changes []Change) {
	q := &inquiry{row: row.ID, message: id, options: optionsOf(row.Content.Buttons)}
	r.print("")
	r.print(r.card(row, changes)...)
	if len(q.options) == 0 || r.stopping {
		return
	}
	r.asks = append(r.asks, q)
	if len(r.asks) == 1 {
		r.appear(&q.arming)
	}
}

// appear is called when a question is the one to be answered.
func (r *Rich) appear(a *arming) {
	*a = arming{shown: time.Now()}
	r.menu, r.chosen, r.search = nil, -1, nil
	r.draw()
	r.screen.Ask()
}

// card returns a card as lines. Where the changes of a call are known, they take the place of its arguments.
func (r *Rich) card(row *bot.Row, changes []Change) []string {
	text, entities := row.Content.Text, row.Content.Entities
	width := r.screen.Size().Cols - 1
	diffs, ok := r.diffs(changes, 0)
	if !ok {
		lines := r.rich.Painter.Message(text, entities, width)
		if row.Content.File != nil {
			lines = append(r.rich.Painter.Text(paint.Cyan, r.fileText(row), width), lines...)
		}
		return lines
	}
	for _, e := range entities {
		if e.Type != "pre" {
			continue
		}
		head, rest := cutUnits(text, e.Offset)
		_, foot := cutUnits(rest, e.Length)
		lines := r.rich.Painter.Text(paint.Bold, head, width)
		lines = append(lines, diffs...)
		return append(lines, r.rich.Painter.Text(paint.Plain, strings.TrimLeft(foot, "\n"), width)...)
	}
	return append(r.rich.Painter.Message(text, entities, width), diffs...)
}

// cutUnits splits text at an offset in UTF-16 units.
func cutUnits(text string, units int) (head, tail string) {
	for i, c := range text {
		if units <= 0 {
			return text[:i], text[i:]
		}
		if units--; c > 0xFFFF {
			units--
		}
	}
	return text, ""
}

// diffs returns changes as lines; limit is the most lines of each, 0 = all. ok is false if one cannot be shown.
func (r *Rich) diffs(changes []Change, limit int) (lines []string, ok bool) {
	width := r.screen.Size().Cols - 3
	for _, c := range changes {
		diff, ok := r.rich.Painter.Diff(c.Before, c.After, width, limit)
		if !ok {
			return nil, false
		}
		added, removed := paint.Count(c.Before, c.After)
		head := r.rich.Painter.Line(paint.Piece{Text: "  " + c.Path + " ", Look: paint.Bold},
			paint.Piece{Text: fmt.Sprintf("+%d", added), Look: paint.Green}, paint.Piece{Text: fmt.Sprintf(" -%d", removed), Look: paint.Red})
		lines = append(lines, head)
		for _, line := range diff {
			lines = append(lines, "  "+line)
		}
	}
	return lines, len(lines) > 0
}

// decided handles the edit of a card: another question in its place, or its record.
func (r *Rich) edited(row *bot.Row) {
	at := -1
	for i, q := range r.asks {
		if row.EditRow != 0 && q.row == row.EditRow || row.Edit != "" && q.message == row.Edit {
			at = i
		}
	}
	options := optionsOf(row.Content.Buttons)
	if at < 0 || len(options) == 0 {
		r.print(r.rich.Painter.Text(paint.Plain, recordOf(row), r.screen.Size().Cols-1)...)
		if at >= 0 {
			r.asks = append(r.asks[:at:at], r.asks[at+1:]...)
			r.next(at)
		}
		return
	}
	r.print("")
	r.print(r.card(row, nil)...)
	q := r.asks[at]
	q.options, q.at, q.decided = options, 0, false
	if at == 0 {
		r.appear(&q.arming)
	}
}

// next shows the question after the first one was answered.
func (r *Rich) next(removed int) {
	if removed == 0 && len(r.asks) > 0 {
		r.appear(&r.asks[0].arming)
	}
}

// recordOf returns what a card's record says about the decision: what follows the code.
func recordOf(row *bot.Row) string {
	for _, e := range row.Content.Entities {
		if e.Type == "pre" {
			_, rest := cutUnits(row.Content.Text, e.Offset+e.Length)
			return strings.TrimLeft(rest, "\n")
		}
	}
	return row.Content.Text
}

// refused shows why a press had no effect, and asks again.
func (r *Rich) refused(row *bot.Row) {
	r.print(r.rich.Painter.Text(paint.Yellow, row.Content.Text, r.screen.Size().Cols-1)...)
	if len(r.asks) > 0 && r.asks[0].decided {
		r.asks[0].decided = false
		r.appear(&r.asks[0].arming)
	}
}
