package terminal

import (
	"context"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/terminal/edit"
	"github.com/zephbot/zephbot/bot/terminal/keys"
	"github.com/zephbot/zephbot/bot/terminal/paint"
)

// key handles one key; the caller holds the lock.
func (r *Rich) key(k keys.Key, at time.Time) {
	switch {
	case k.Name == keys.Reply:
		r.replied(at)
		return
	case ctrl(k, "c"):
		r.interrupt()
		return
	case ctrl(k, "z"):
		r.suspend()
		return
	}
	if r.why != nil {
		r.whyKey(k)
		return
	}
	if question := r.open(); question != nil {
		if question.takes(k, at, r.replies) {
			r.choose(question, k)
			return
		}
		question.last = at
		r.draft(k)
		return
	}
	if r.form != nil {
		if r.form.takes(k, at, r.replies) {
			r.fillKey(k)
			return
		}
		r.form.last = at
		r.draft(k)
		return
	}
	r.write(k)
}

func ctrl(k keys.Key, letter string) bool { return k.Name == keys.Rune && k.Ctrl && k.Text == letter }

// draft adds to what the person is writing while something else is asked: nothing is sent.
func (r *Rich) draft(k keys.Key) {
	if k.Name == keys.Enter && !r.editor.Empty() {
		r.editor.Insert("\n")
		return
	}
	r.editor.Key(k)
}

// write handles a key at the prompt.
func (r *Rich) write(k keys.Key) {
	r.notice = ""
	if r.search != nil && r.searchKey(k) {
		return
	}
	switch {
	case r.menuKey(k):
		return
	case ctrl(k, "d") && r.editor.Empty():
		if r.busy {
			r.hint(r.rich.Words.StopHint, leaveFor)
			return
		}
		r.leave(nil)
		return
	case ctrl(k, "l"):
		_, _ = r.console.Out.Write([]byte("\x1b[H\x1b[2J")) // as every picture
		r.screen.Close()
		return
	case ctrl(k, "r"):
		r.search = &search{}
		return
	case k.Name == keys.Tab:
		r.complete(true)
		return
	case k.Name == keys.Enter && !k.Alt && !k.Shift:
		r.enter()
		return
	}
	r.editor.Key(k)
	r.complete(false)
}

// enter sends what is written; a line that ends with a backslash goes on.
func (r *Rich) enter() {
	text, _ := r.editor.Text()
	if head, ok := strings.CutSuffix(text, `\`); ok {
		r.editor.Set(head + "\n")
		return
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	r.menu, r.chosen = nil, -1
	r.editor.Take()
	if r.rich.History != nil {
		r.rich.History.Add(text)
		r.editor.SetHistory(r.rich.History.Lines())
	}
	if r.busy && !command(text) {
		r.queue = append(r.queue, text)
		return
	}
	r.submit(text)
}

// command reports whether a text is a command, which acts beside a running turn.
func command(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && len(strings.TrimSpace(text)) > 1
}

// submit shows a message and hands it in; the caller holds the lock.
func (r *Rich) submit(text string) {
	r.print(r.echo(text)...)
	if command(text) {
		if r.busy && !strings.HasPrefix(text, stopCommand) {
			r.asides++
		}
	} else {
		r.task = task{busy: true, began: time.Now(), former: r.turn, queue: r.queue}
		r.silence.Begin(r.began)
		r.stream = stream{}
	}
	r.later(func(ctx context.Context) error { return r.hand(ctx, r.accept, r.message(text)) })
}

// echo returns a message as it stays above its answer.
func (r *Rich) echo(text string) []string {
	var lines []string
	for i, line := range r.rich.Painter.Text(paint.Bold, text, max(1, r.screen.Size().Cols-3)) {
		lead := "> "
		if i > 0 {
			lead = "  "
		}
		lines = append(lines, r.rich.Painter.Paint(paint.Dim, lead)+line)
	}
	return append([]string{""}, lines...)
}

// interrupt handles Ctrl-C: it ends the turn; where there is none it clears the prompt, and a second one leaves.
func (r *Rich) interrupt() {
	now := time.Now()
	switch {
	case r.busy && r.stopping:
		r.leave(ErrLeft)
	case r.busy:
		r.stop()
	case r.why != nil:
		r.endWhy()
	case r.search != nil:
		r.search = nil
	case !r.editor.Empty():
		r.editor.Take()
		r.menu, r.chosen = nil, -1
	case now.Sub(r.interrupted) < leaveFor:
		r.leave(nil)
	default:
		r.interrupted = now
		r.hint(r.rich.Words.Leave, leaveFor)
	}
	r.draw()
}

// stop ends the running turn. What was to be said afterwards is the person's draft again.
func (r *Rich) stop() {
	r.stopping = true
	r.asks, r.why = nil, nil
	if r.form != nil {
		r.form.cancel()
		r.form = nil
	}
	if len(r.queue) > 0 {
		text, _ := r.editor.Text()
		r.editor.Set(strings.TrimRight(strings.Join(append(r.queue, text), "\n"), "\n"))
		r.queue = nil
	}
	r.stream.hidden = true
	r.later(func(ctx context.Context) error {
		r.void()
		return r.hand(ctx, r.accept, r.message(stopCommand))
	})
}

func (r *Rich) suspend() {
	if r.console.Suspend == nil {
		return
	}
	r.screen.Close()
	r.later(func(context.Context) error {
		err := r.console.Suspend()
		r.locked(func() {
			r.screen.Resize(r.console.Size())
			r.draw()
		})
		return err
	})
}

// hint shows a sentence below the prompt for a while.
func (r *Rich) hint(text string, long time.Duration) {
	r.notice, r.until = text, time.Now().Add(long)
}

// menuKey handles a key while there is something to complete; false = it has no meaning there.
func (r *Rich) menuKey(k keys.Key) bool {
	if len(r.menu) == 0 {
		return false
	}
	switch {
	case k.Name == keys.Escape:
		r.menu, r.chosen = nil, -1
	case k.Name == keys.Down, k.Name == keys.Tab && r.chosen >= 0 && !k.Shift:
		r.chosen = (r.chosen + 1) % len(r.menu)
	case k.Name == keys.Up, k.Name == keys.Tab && k.Shift:
		r.chosen = (max(r.chosen, 0) + len(r.menu) - 1) % len(r.menu)
	case k.Name == keys.Enter && r.chosen >= 0 && !k.Alt && !k.Shift:
		r.insert(r.menu[r.chosen].Name)
	default:
		return false
	}
	return true
}

// insert puts a completion in the place of the word before the cursor.
func (r *Rich) insert(name string) {
	_, start := r.editor.Word()
	if !strings.HasSuffix(name, "/") {
		name += " "
	}
	r.editor.Replace(start, name)
	r.menu, r.chosen = nil, -1
}

// complete looks for what the word before the cursor can become. With tab, what all have in common is inserted.
func (r *Rich) complete(tab bool) {
	r.menu, r.chosen = nil, -1
	word, start := r.editor.Word()
	switch {
	case strings.HasPrefix(word, "/") && start == 0:
		for _, c := range r.commands {
			if strings.HasPrefix("/"+c.Name, word) {
				r.menu = append(r.menu, Command{Name: "/" + c.Name, About: c.About})
			}
		}
	case strings.HasPrefix(word, "@") && r.rich.Complete != nil:
		for _, path := range r.rich.Complete(word[1:]) {
			r.menu = append(r.menu, Command{Name: "@" + path})
		}
	}
	if len(r.menu) == 1 && r.menu[0].Name == word {
		r.menu = nil
	}
	if !tab || len(r.menu) == 0 {
		return
	}
	if len(r.menu) == 1 {
		r.insert(r.menu[0].Name)
		return
	}
	names := make([]string, len(r.menu))
	for i, c := range r.menu {
		names[i] = c.Name
	}
	if common := edit.Common(names); len(common) > len(word) {
		r.editor.Replace(start, common)
		return
	}
	r.chosen = 0
}

// searchKey handles a key while the history is searched; false = the search is over, and the key is for the prompt.
func (r *Rich) searchKey(k keys.Key) bool {
	switch {
	case ctrl(k, "r"):
		r.search.skip++
	case k.Name == keys.Rune && !k.Ctrl && !k.Alt:
		r.search.text += k.Text
		r.search.skip = 0
	case k.Name == keys.Backspace && r.search.text != "":
		text := []rune(r.search.text)
		r.search.text = string(text[:len(text)-1])
	case k.Name == keys.Escape, ctrl(k, "g"):
		r.search = nil
		return true
	default:
		if line, ok := r.editor.Search(r.search.text, r.search.skip); ok {
			r.editor.Set(line)
		}
		r.search = nil
		return k.Name != keys.Enter
	}
	return true
}
