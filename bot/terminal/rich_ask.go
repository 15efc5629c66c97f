package terminal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/terminal/console"
	"github.com/zephbot/zephbot/bot/terminal/paint"
)

// arming decides which keys are meant for a question. A person can only mean what they have seen: a key counts if the
// terminal has replied to what was sent after the question, so that the key was pressed after it was shown, and if no
// other key came for a moment, so that nobody decides by going on with a sentence.
type arming struct {
	shown   time.Time
	last    time.Time // last key that was not meant for it
	replied time.Time // when the terminal has replied
}

// takesKey reports whether a key is meant for the question. replies says that the terminal is one that replies.
func (a *arming) takesKey(k console.Key, at time.Time, replies bool) bool {
	if k.Name == console.Paste {
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

// inquiry is a question whose answer is one of some buttons. One is open at a time: its card is shown when its list
// opens, directly above it, so that a key decides about the card that the person reads.
type inquiry struct {
	arming
	card    *bot.Row   // nil = a choice among lines
	files   []*bot.Row // with long commands, shown before the card
	changes []Change
	message string // id of the card's message
	options []option
	at      int    // the selected one
	open    bool   // its card and its list are shown
	query   string // of the press that is on its way; "" = the person has not chosen
	decides bool   // that press decides, or else it only shows something
	denies  bool   // that press refuses
	hint    string
	words   bool // it can be answered in words too, which editor has
	editor  console.Editor
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
			if i := strings.LastIndexByte(b.Data, ':'); i >= 0 &&
				len(b.Data)-i == 2 && strings.Contains("ysn", b.Data[i+1:]) {
				o.key = b.Data[i+1:]
			}
			list = append(list, o)
		}
	}
	return list
}

// denyButton returns the button that refuses; without one, the last one, which leads back.
func (a *inquiry) denyButton() int {
	for i, o := range a.options {
		if o.key == "n" {
			return i
		}
	}
	return len(a.options) - 1
}

// openQuestion returns the question that is to be answered now; nil = none.
func (r *Rich) openQuestion() *inquiry {
	if len(r.asks) == 0 || !r.asks[0].open || r.asks[0].query != "" {
		return nil
	}
	return r.asks[0]
}

// openNext shows what waits for the person, if nothing else does: the oldest question, then requests of servers. The
// caller holds the lock.
func (r *Rich) openNext() {
	switch {
	case r.why != nil || r.form != nil:
	case len(r.asks) == 0:
		r.nextFormFace()
	case !r.asks[0].open:
		q := r.asks[0]
		q.open = true
		for _, file := range q.files {
			r.showCard(file, nil)
		}
		if q.card != nil {
			r.showCard(q.card, q.changes)
		}
		r.armQuestion(&q.arming)
	}
}

// noteReply is told that the terminal has replied: what was asked before it is on the screen.
func (r *Rich) noteReply(at time.Time) {
	r.replies = true
	if q := r.openQuestion(); q != nil {
		q.replied = at
	}
	if r.form != nil {
		r.form.replied = at
	}
}

// chooseByKey handles a key that is meant for a question.
func (r *Rich) chooseByKey(q *inquiry, k console.Key) {
	pick := -1
	switch {
	case k.Name == console.Up, k.Name == console.Tab && k.Shift:
		q.at = (q.at + len(q.options) - 1) % len(q.options)
	case k.Name == console.Down, k.Name == console.Tab:
		q.at = (q.at + 1) % len(q.options)
	case k.Name == console.Enter && q.words && !q.editor.Empty():
		text, _ := q.editor.Text()
		first := q.options[0].data
		q.query, q.decides = r.pressButton(first[:strings.LastIndexByte(first, ':')+1]+approval.Typed, text), false
	case k.Name == console.Enter:
		pick = q.at
	case q.words && (k.Name != console.Escape || !q.editor.Empty()):
		if k.Name == console.Escape {
			q.editor.Take()
		}
		q.editor.Key(k)
	case k.Name == console.Escape && q.chosen != nil:
		r.endChoice(q, -1)
	case k.Name == console.Escape:
		pick = q.denyButton()
	case k.Name == console.Rune && !k.Ctrl && !k.Alt:
		pick = q.namedOption(k.Text)
	}
	switch {
	case pick < 0:
		return
	case q.chosen != nil:
		r.endChoice(q, pick)
		return
	}
	chosen := q.options[pick]
	q.query, q.decides, q.denies = r.pressButton(chosen.data, ""), chosen.key != "", chosen.key == "n"
}

// namedOption returns the option that a number or a letter means; -1 = none.
func (a *inquiry) namedOption(text string) int {
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
	r.withLock(func() {
		r.asks = append(r.asks, q)
		r.whenOpen(r.openNext)
	})
}

// endChoice ends a choice among lines.
func (r *Rich) endChoice(q *inquiry, choice int) {
	r.asks = r.asks[1:]
	r.queueStep(func(ctx context.Context) error {
		q.chosen(ctx, choice)
		r.withLock(func() {
			r.queueStatus()
			r.openNext()
			r.drawScreen()
		})
		return nil
	})
}

// pressButton hands in the press of a button, with the text that goes with it, and returns its id.
func (r *Rich) pressButton(data, text string) (query string) {
	m := r.pressOf(data, text)
	r.queueStep(func(ctx context.Context) error { return r.handPress(ctx, r.accept, m) })
	return m.Query
}

// takeQuestion takes a card, and shows it when it is the one to be answered. A file with a long command comes before
// its card and is shown with it.
func (r *Rich) takeQuestion(row *bot.Row, id string, changes []Change) {
	q := &inquiry{
		card: row, files: r.cardFiles, changes: changes, message: id, options: optionsOf(row.Content.Buttons),
		words: inquiryOptions(row) != nil,
	}
	if q.words {
		q.hint = r.rich.Words.AnswerHint
	}
	switch {
	case r.stopping: // nobody is asked any more
		r.showCard(row, changes)
	case len(q.options) == 0:
		r.cardFiles = append(r.cardFiles, row)
	default:
		r.cardFiles, r.asks = nil, append(r.asks, q)
		r.openNext()
	}
}

func (r *Rich) showCard(row *bot.Row, changes []Change) {
	r.printLines("")
	r.printLines(r.cardLines(row, changes)...)
}

// armQuestion is called when a question is the one to be answered.
func (r *Rich) armQuestion(a *arming) {
	*a = arming{shown: time.Now()}
	r.menu, r.chosen, r.search = nil, -1, nil
	r.drawScreen()
	r.screen.Ask()
}

// cardLines returns a card as lines. Where the changes of a call are known, they take the place of its arguments.
func (r *Rich) cardLines(row *bot.Row, changes []Change) []string {
	text, entities := row.Content.Text, row.Content.Entities
	width := r.screen.Size().Cols - 1
	diffs, ok := r.diffLines(changes, 0)
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

// diffLines returns changes as lines; limit is the most lines of each, 0 = all. ok is false if one cannot be shown.
func (r *Rich) diffLines(changes []Change, limit int) (lines []string, ok bool) {
	width := r.screen.Size().Cols - 3
	for _, c := range changes {
		diff, ok := r.rich.Painter.Diff(c.Before, c.After, width, limit)
		if !ok {
			return nil, false
		}
		added, removed := paint.Count(c.Before, c.After)
		head := r.rich.Painter.Line(paint.Piece{Text: "  " + c.Path + " ", Look: paint.Bold},
			paint.Piece{
				Text: fmt.Sprintf("+%d", added),
				Look: paint.Green,
			}, paint.Piece{Text: fmt.Sprintf(" -%d", removed), Look: paint.Red})
		lines = append(lines, head)
		for _, line := range diff {
			lines = append(lines, "  "+line)
		}
	}
	return lines, len(lines) > 0
}

// handleEdit handles the edit of a card: another question in its place, or its record.
func (r *Rich) handleEdit(row *bot.Row) {
	at := slices.IndexFunc(r.asks, func(q *inquiry) bool { return q.editsCard(row) })
	options := optionsOf(row.Content.Buttons)
	if at >= 0 && len(options) > 0 {
		q := r.asks[at]
		if q.words && q.open && options[0].data == q.options[0].data { // the same question, with other marks
			q.card, q.options, q.query = revisedCard(q.card, row), options, ""
			return
		}
		q.editor.Take()
		q.card, q.changes, q.options, q.at, q.query, q.open = revisedCard(q.card, row), nil, options, 0, "", false
		r.openNext()
		return
	}
	if at < 0 && r.stopping || at >= 0 && r.asks[at].open { // its card is above
		r.printLines(r.rich.Painter.Text(paint.Plain, recordOf(row), r.screen.Size().Cols-1)...)
	} else {
		r.showCard(row, nil)
	}
	if at >= 0 {
		if q := r.asks[at]; q.denies && q.query != "" {
			r.offerWhy(q)
		}
		r.asks = slices.Delete(r.asks, at, at+1)
	}
	r.openNext()
}

// editsCard reports whether a row edits the card of the question.
func (a *inquiry) editsCard(row *bot.Row) bool {
	return a.card != nil && (row.EditRow != 0 && a.card.ID == row.EditRow || row.Edit != "" && a.message == row.Edit)
}

// revisedCard returns a card with what an edit makes of it.
func revisedCard(card, row *bot.Row) *bot.Row {
	next := *card
	next.Content = row.Content
	return &next
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

// handleToast is told what became of a press: it was counted, or why it had no effect. Unless
// it decides, it is asked again.
func (r *Rich) handleToast(row *bot.Row) {
	if row.Alert && row.Content.Text != "" {
		r.printLines(r.rich.Painter.Text(paint.Yellow, row.Content.Text, r.screen.Size().Cols-1)...)
	}
	at := slices.IndexFunc(r.asks, func(q *inquiry) bool { return q.query != "" && q.query == row.Query })
	if at < 0 || !row.Alert && r.asks[at].decides {
		return
	}
	q := r.asks[at]
	q.query = ""
	r.armQuestion(&q.arming)
}
