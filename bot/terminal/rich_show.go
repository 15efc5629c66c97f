package terminal

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/bot/turn"
)

// maxDiffShown is how many lines of a change are shown once it was made.
const maxDiffShown = 40

// Send implements bot.Sender: it shows.
func (r *Rich) Send(ctx context.Context, row *bot.Row) (string, error) {
	var changes []Change
	if press := firstPress(row); press != "" && row.Purpose == bot.Question && r.rich.Proposed != nil {
		changes = r.rich.Proposed(ctx, press)
	}
	r.face.Lock()
	defer r.face.Unlock()
	r.sent++
	id := strconv.FormatInt(r.sent, 10)
	shown := *row
	r.whenOpen(func() { r.showRow(&shown, id, changes) })
	return id, nil
}

// showRow shows a row; the caller holds the lock.
func (r *Rich) showRow(row *bot.Row, id string, changes []Change) {
	switch {
	case row.Purpose == bot.Question:
		r.takeQuestion(row, id, changes)
	case row.Purpose == bot.Record:
		r.handleEdit(row)
	case row.Purpose == bot.Final:
		r.showFinal(row)
	case row.Purpose == bot.Toast:
		r.handleToast(row)
	default:
		r.showReply(row)
	}
}

// firstPress returns the data of a card's first button.
func firstPress(row *bot.Row) string {
	if list := optionsOf(row.Content.Buttons); len(list) > 0 {
		return list[0].data
	}
	return ""
}

// showFinal shows an answer, or what of it was not shown while it grew.
func (r *Rich) showFinal(row *bot.Row) {
	own := row.Session == "" || row.Session == r.Session()
	if !own || !r.busy || row.Turn != "" && row.Turn == r.former && row.Turn != r.turn {
		if !own {
			r.printLines("", r.rich.Painter.Paint(paint.Dim, r.rich.Words.Other))
		}
		r.printLines("")
		r.showMarkdown(row.Content.Text)
		return
	}
	text := row.Content.Text
	if rest, ok := strings.CutPrefix(text, r.stream.shownPart()); ok && !r.stream.hidden {
		text = rest
	}
	r.stream = stream{}
	if strings.TrimSpace(text) != "" {
		r.printLines("")
		r.showMarkdown(text)
	}
	r.showFiles(row)
	r.endTask()
}

// endTask ends the task, and begins the next one.
func (r *Rich) endTask() {
	queue := r.queue
	r.asks = slices.DeleteFunc(r.asks, func(q *inquiry) bool {
		return q.card != nil && q.card.Turn != "" && q.card.Turn == r.turn
	})
	r.task = task{former: r.turn}
	r.queueStatus()
	r.openNext()
	if len(queue) > 0 {
		text := queue[0]
		r.queue = queue[1:]
		r.submitMessage(text)
	}
}

// showReply shows a reply or a notice. A reply that belongs to no turn is the end of a message that began none.
func (r *Rich) showReply(row *bot.Row) {
	if row.Content.Text != "" {
		r.printLines("")
		recap := strings.HasPrefix(row.Key, "recap/") // a model has written it
		if (row.Purpose == bot.Reply || recap) && len(row.Content.Entities) == 0 {
			r.showMarkdown(row.Content.Text)
		} else {
			r.printLines(r.rich.Painter.Message(row.Content.Text, row.Content.Entities, r.screen.Size().Cols-1)...)
		}
	}
	r.showFiles(row)
	if row.Purpose == bot.Reply && row.Turn == "" {
		r.queueStatus() // the command may have chosen another model, or begun anew
	}
	if row.Purpose != bot.Reply || row.Turn != "" || !r.busy {
		return
	}
	switch {
	case strings.HasPrefix(row.Key, "broken/"):
		r.endTask()
	case r.asides > 0:
		r.asides--
	case r.turn == "" && !strings.HasPrefix(row.Key, "file/"):
		r.endTask()
	}
}

// showFiles names the files of a row: a terminal shows none.
func (r *Rich) showFiles(row *bot.Row) {
	for _, f := range row.Content.Files() {
		r.printLines(r.rich.Painter.Cut(paint.Dim, "[ "+f.Name+" ]", r.screen.Size().Cols-1))
	}
}

func (r *Rich) showMarkdown(text string) {
	r.printLines(r.rich.Painter.Markdown(text, r.screen.Size().Cols-1)...)
}

// Watch shows the progress of a turn.
func (r *Rich) Watch(w turn.Watched) turn.Progress {
	r.withLock(func() {
		if r.busy && !r.stopping && w.Turn != r.former {
			r.turn = w.Turn
		}
	})
	return &richProgress{r: r, turn: w.Turn, done: make(chan struct{})}
}

type richProgress struct {
	r    *Rich
	turn string
	done chan struct{}
	once sync.Once
}

// Run implements turn.Progress.
func (p *richProgress) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-p.done:
	}
	return nil
}

// Close implements turn.Progress. Calls that have not finished by then wait for a person, or were stopped.
func (p *richProgress) Close() {
	p.once.Do(func() {
		close(p.done)
		p.r.withLock(func() {
			p.r.tools = nil
			p.r.dirty = true
		})
	})
}

// Emit implements agent.Sink.
func (p *richProgress) Emit(_ context.Context, e agent.Event) {
	r := p.r
	r.face.Lock()
	defer r.face.Unlock()
	if r.stopping || r.screen == nil {
		return
	}
	r.dirty = true
	r.silence.Observe(e, time.Now())
	switch e.Type {
	case agent.DeltaEvent:
		r.growAnswer(e.Text)
	case agent.ResetEvent:
		r.stream = stream{}
	case agent.ToolStartedEvent:
		r.settleStream()
		r.tools = append(r.tools, running{call: e.Call, tool: e.Tool, show: e.Args, does: e.Verb, began: time.Now()})
	case agent.ToolProgressEvent:
		for i := range r.tools {
			if r.tools[i].call == e.Call {
				r.tools[i].said = e.Text
			}
		}
	case agent.ToolFinishedEvent:
		r.showFinished(e)
		r.drawScreen()
	case agent.PlanEvent:
		r.plan = e.Plan
	case agent.ModelEvent, agent.ThoughtEvent:
	}
}

// showFinished shows a call that has ended, with what it has changed.
func (r *Rich) showFinished(e agent.Event) {
	t := running{tool: e.Tool, show: e.Args, does: e.Verb} // it may have been refused before it started
	for i := range r.tools {
		if r.tools[i].call == e.Call {
			t = r.tools[i]
			r.tools = append(r.tools[:i:i], r.tools[i+1:]...)
			break
		}
	}
	r.done++
	p, width := r.rich.Painter, r.screen.Size().Cols-1
	sign, look := "✓", paint.Green
	if e.Failed {
		sign, look = "✗", paint.Red
	}
	what, _, _ := strings.Cut(strings.TrimSpace(t.show), "\n")
	if !strings.HasPrefix(what, t.tool) {
		what = strings.TrimSpace(t.tool + " " + what)
	}
	r.printLines(p.Paint(look, sign) + " " + p.Cut(paint.Plain, what, width-2))
	if e.Text != "" {
		r.printLines(p.Cut(paint.Dim, "  "+e.Text, width))
	}
	if r.rich.Changed != nil && !e.Failed {
		lines, _ := r.diffLines(r.rich.Changed(e.Call), maxDiffShown)
		r.printLines(lines...)
	}
}

// Recall shows what was said last in the conversation.
func (r *Rich) Recall(said, answer string) {
	r.withLock(func() {
		r.whenOpen(func() {
			r.printLines("", r.rich.Painter.Paint(paint.Dim, r.rich.Words.Earlier))
			r.printLines(r.echoMessage(said)...)
			r.printLines("")
			r.showMarkdown(answer)
		})
	})
}

// Greet shows the first lines: what this is, how it is used, and a note; "" = none.
func (r *Rich) Greet(title, note string) {
	r.withLock(func() {
		r.whenOpen(func() {
			width := r.screen.Size().Cols - 1
			r.printLines(r.rich.Painter.Cut(paint.Bold, title, width))
			r.printLines(r.rich.Painter.Text(paint.Dim, r.rich.Words.Welcome, width)...)
			if note != "" {
				r.printLines(r.rich.Painter.Text(paint.Yellow, note, width)...)
			}
		})
	})
}
