package terminal

import (
	"context"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/terminal/console"

	"github.com/zephbot/zephbot/bot/terminal/paint"
)

// handleKey handles one key; the caller holds the lock.
func (r *Rich) handleKey(k console.Key, at time.Time) {
	switch {
	case k.Name == console.Reply:
		r.noteReply(at)
		return
	case isCtrl(k, "c"):
		r.handleInterrupt()
		return
	case isCtrl(k, "z"):
		r.suspendProcess()
		return
	}
	if r.why != nil {
		r.whyKey(k)
		return
	}
	if question := r.openQuestion(); question != nil {
		if question.takesKey(k, at, r.replies) {
			r.chooseByKey(question, k)
			return
		}
		if question.words && k.Name == console.Paste { // it sends nothing by itself
			question.editor.Key(k)
			return
		}
		question.last = at
		r.draftKey(k)
		return
	}
	if r.form != nil {
		if r.form.takesKey(k, at, r.replies) {
			r.fillKey(k)
			return
		}
		r.form.last = at
		r.draftKey(k)
		return
	}
	r.promptKey(k)
}

func isCtrl(k console.Key, letter string) bool {
	return k.Name == console.Rune && k.Ctrl && k.Text == letter
}

// draftKey adds to what the person is writing while something else is asked: nothing is sent.
func (r *Rich) draftKey(k console.Key) {
	if k.Name == console.Enter && !r.editor.Empty() {
		r.editor.Insert("\n")
		return
	}
	r.editor.Key(k)
}

// promptKey handles a key at the prompt.
func (r *Rich) promptKey(k console.Key) {
	r.notice = ""
	if r.search != nil && r.searchKey(k) {
		return
	}
	switch {
	case r.menuKey(k):
		return
	case isCtrl(k, "d") && r.editor.Empty():
		if r.busy {
			r.showHint(r.rich.Words.StopHint, leaveFor)
			return
		}
		r.endTalk(nil)
		return
	case isCtrl(k, "l"):
		_, _ = r.console.Out.Write([]byte("\x1b[H\x1b[2J")) // as every picture
		r.screen.Close()
		return
	case isCtrl(k, "r"):
		r.search = &search{}
		return
	case k.Name == console.Tab:
		r.completeWord(true)
		return
	case k.Name == console.Enter && !k.Alt && !k.Shift:
		r.enterLine()
		return
	}
	r.editor.Key(k)
	r.completeWord(false)
}

// enterLine sends what is written; a line that ends with a backslash goes on.
func (r *Rich) enterLine() {
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
	if r.busy && !isCommand(text) {
		r.queue = append(r.queue, text)
		return
	}
	r.submitMessage(text)
}

// isCommand reports whether a text is a command, which acts beside a running turn.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && len(strings.TrimSpace(text)) > 1
}

// submitMessage shows a message and hands it in; the caller holds the lock.
func (r *Rich) submitMessage(text string) {
	r.printLines(r.echoMessage(text)...)
	m := r.newMessage(text)
	for i := range m.Files {
		r.printLines(r.rich.Painter.Cut(paint.Dim, "  [ "+m.Files[i].Name+" ]", r.screen.Size().Cols-1))
	}
	if isCommand(text) {
		if r.busy && !strings.HasPrefix(text, stopCommand) {
			r.asides++
		}
	} else {
		r.task = task{busy: true, began: time.Now(), former: r.turn, queue: r.queue}
		r.silence.Begin(r.began)
		r.stream = stream{}
	}
	r.queueStep(func(ctx context.Context) error { return r.handMessage(ctx, r.accept, m) })
}

// echoMessage returns a message as it stays above its answer.
func (r *Rich) echoMessage(text string) []string {
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

// handleInterrupt handles Ctrl-C: it ends the turn; where there is none it clears the prompt, and a second one leaves.
func (r *Rich) handleInterrupt() {
	now := time.Now()
	switch {
	case r.busy && r.stopping:
		r.endTalk(ErrLeft)
	case r.busy:
		r.stopTurn()
	case r.why != nil:
		r.endWhy()
	case r.search != nil:
		r.search = nil
	case !r.editor.Empty():
		r.editor.Take()
		r.menu, r.chosen = nil, -1
	case now.Sub(r.interrupted) < leaveFor:
		r.endTalk(nil)
	default:
		r.interrupted = now
		r.showHint(r.rich.Words.Leave, leaveFor)
	}
	r.drawScreen()
}

// stopTurn ends the running turn. What was to be said afterwards is the person's draft again.
func (r *Rich) stopTurn() {
	r.stopping = true
	r.asks, r.why = nil, nil
	if r.form != nil {
		r.form.cancelForm()
		r.form = nil
	}
	if len(r.queue) > 0 {
		text, _ := r.editor.Text()
		r.editor.Set(strings.TrimRight(strings.Join(append(r.queue, text), "\n"), "\n"))
		r.queue = nil
	}
	r.stream.hidden = true
	r.queueStep(func(ctx context.Context) error {
		r.voidRequests()
		return r.handMessage(ctx, r.accept, r.newMessage(stopCommand))
	})
}

func (r *Rich) suspendProcess() {
	if r.console.Suspend == nil {
		return
	}
	r.screen.Close()
	r.queueStep(func(context.Context) error {
		err := r.console.Suspend()
		r.withLock(func() {
			r.screen.Resize(r.console.Size())
			r.drawScreen()
		})
		return err
	})
}

// showHint shows a sentence below the prompt for a while.
func (r *Rich) showHint(text string, long time.Duration) {
	r.notice, r.until = text, time.Now().Add(long)
}

// menuKey handles a key while there is something to complete; false = it has no meaning there.
func (r *Rich) menuKey(k console.Key) bool {
	if len(r.menu) == 0 {
		return false
	}
	switch {
	case k.Name == console.Escape:
		r.menu, r.chosen = nil, -1
	case k.Name == console.Down, k.Name == console.Tab && r.chosen >= 0 && !k.Shift:
		r.chosen = (r.chosen + 1) % len(r.menu)
	case k.Name == console.Up, k.Name == console.Tab && k.Shift:
		r.chosen = (max(r.chosen, 0) + len(r.menu) - 1) % len(r.menu)
	case k.Name == console.Enter && r.chosen >= 0 && !k.Alt && !k.Shift:
		r.insertCompletion(r.menu[r.chosen].Name)
	default:
		return false
	}
	return true
}

// insertCompletion puts a completion in the place of the word before the cursor.
func (r *Rich) insertCompletion(name string) {
	_, start := r.editor.Word()
	if !strings.HasSuffix(name, "/") {
		name += " "
	}
	r.editor.Replace(start, name)
	r.menu, r.chosen = nil, -1
}

// completeWord looks for what the word before the cursor can become. With tab, what all have in common is inserted.
func (r *Rich) completeWord(tab bool) {
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
		r.insertCompletion(r.menu[0].Name)
		return
	}
	names := make([]string, len(r.menu))
	for i, c := range r.menu {
		names[i] = c.Name
	}
	if common := console.CommonPrefix(names); len(common) > len(word) {
		r.editor.Replace(start, common)
		return
	}
	r.chosen = 0
}

// searchKey handles a key while the history is searched; false = the search is over, and the key is for the prompt.
func (r *Rich) searchKey(k console.Key) bool {
	switch {
	case isCtrl(k, "r"):
		r.search.skip++
	case k.Name == console.Rune && !k.Ctrl && !k.Alt:
		r.search.text += k.Text
		r.search.skip = 0
	case k.Name == console.Backspace && r.search.text != "":
		text := []rune(r.search.text)
		r.search.text = string(text[:len(text)-1])
	case k.Name == console.Escape, isCtrl(k, "g"):
		r.search = nil
		return true
	default:
		if line, ok := r.editor.Search(r.search.text, r.search.skip); ok {
			r.editor.Set(line)
		}
		r.search = nil
		return k.Name != console.Enter
	}
	return true
}
