package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/terminal/console"

	"github.com/zephbot/zephbot/bot/terminal/paint"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Console is the terminal of a person.
type Console struct {
	In      io.Reader // raw: keys as they are pressed
	Out     io.Writer
	Size    func() console.Size
	Resized <-chan os.Signal // the size has changed; nil = it never does
	Suspend func() error     // for Ctrl-Z; nil = not possible
}

// RichOptions are the options of a Rich terminal, besides those of Terminal.
type RichOptions struct {
	// Open prepares the terminal when the conversation begins. Close, which may be called more than once, restores it.
	Open    func() (console Console, restore func(), err error)
	Aside   *LogWriter // what the program writes besides; nil = nothing
	Painter paint.Painter
	Words   texts.Terminal
	// Doing says what a tool does (texts.Words.Line); it has a sign and a time, which are shown as they are.
	Doing func(does act.Verb, show string, done, total int, took time.Duration) string
	// Silent says that the model has said nothing for so long (texts.Words.Silent), with a sign like Doing.
	Silent  func(lasting time.Duration) string
	History *History
	// Complete lists the paths that begin with what is written after an @; nil = none.
	Complete func(prefix string) []string
	// Proposed returns what the call of a question would change; press is the data of one of its buttons. Changed
	// returns what a call has changed, once. Both may be nil.
	Proposed func(ctx context.Context, press string) []Change
	Changed  func(call string) []Change
	// Status returns what is shown below the prompt: the model and what the conversation has used; "" = nothing. It is
	// asked when that may have changed. nil = nothing is shown.
	Status func(ctx context.Context, session bot.SessionKey) string
}

// Change is what a call does to a text file.
type Change struct {
	Path          string
	Before, After string
}

// Command is a command that can be completed.
type Command struct{ Name, About string }

// Times of the terminal.
const (
	frame     = 80 * time.Millisecond  // between two pictures of what changes by itself
	escapeFor = 40 * time.Millisecond  // within which the rest of a sequence comes
	settle    = 300 * time.Millisecond // without a key before a choice takes one
	replyFor  = time.Second            // within which a terminal replies that does
	leaveFor  = 3 * time.Second        // within which a second Ctrl-C leaves
)

// Rich is the terminal for a person: what they write is edited in place while answers, tools and questions appear above
// it. It is a Terminal with another face: the same messages, decisions and rows pass through it. Its methods are safe
// for concurrent use; Talk runs once.
type Rich struct {
	*Terminal
	rich    RichOptions
	console Console

	screen *console.Screen // nil until Talk has opened it
	accept Accept
	poke   chan struct{} // there is something to do in Talk, or something changed

	face sync.Mutex // the fields below, and the screen

	// What is shown besides the prompt.
	above   []string // lines to be shown with the next picture
	stream  stream
	notice  string // a hint below the prompt
	status  string // below the prompt, while there is no hint
	until   time.Time
	spin    int
	drawn   time.Time
	dirty   bool
	replies bool // the terminal replies to questions

	task

	// Where the person writes.
	editor      console.Editor
	commands    []Command
	menu        []Command // what can be completed
	chosen      int       // in menu; -1 = none
	search      *search   // nil = not searching
	interrupted time.Time // last Ctrl-C at an empty prompt

	asks      []*inquiry // questions that wait for the person, oldest first; at most the first one is open
	cardFiles []*bot.Row // with long commands, whose cards are still to come
	why       *whyFace   // nil = nobody is offered to say why
	form      *formFace  // nil = none
	steps     []step     // for Talk: what is done without the lock
	early     []func()   // what is shown once the terminal is open
	left      error      // why Talk ends
	gone      bool       // Talk ends
}

// step is something that Talk does outside of the lock.
type step func(ctx context.Context) error

// task is the message that is being answered.
type task struct {
	busy     bool
	began    time.Time
	turn     string // id of its turn, once it runs
	former   string // of a turn that was stopped
	stopping bool
	asides   int // commands whose replies are not the end of it
	tools    []running
	done     int
	silence  turn.Silence // of the model
	plan     []tools.PlanEntry
	queue    []string // messages for afterwards
}

// running is a call in progress.
type running struct {
	call, tool, show, said string
	does                   act.Verb
	began                  time.Time
}

type search struct {
	text string
	skip int
}

// NewRich returns a Rich terminal.
func NewRich(opts Options, rich RichOptions) *Rich {
	opts.In = eof{}
	r := &Rich{Terminal: New(opts), rich: rich, poke: make(chan struct{}, 1)}
	r.chosen = -1
	if rich.History != nil {
		r.editor.SetHistory(rich.History.Lines())
	}
	return r
}

// eof is an input that has ended: the lines of a Rich terminal come from elsewhere.
type eof struct{}

// Read implements io.Reader.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// SetCommands sets the commands that can be completed. It must be called before Talk.
func (r *Rich) SetCommands(list []Command) { r.commands = list }

// typedInput is what was read at once.
type typedInput struct {
	data []byte
	at   time.Time
	err  error
}

// readTyped passes on what is typed. It cannot be interrupted: it ends with the input.
func (r *Rich) readTyped(to chan<- typedInput, done <-chan struct{}) {
	for {
		data := make([]byte, 4096)
		n, err := r.console.In.Read(data)
		select {
		case to <- typedInput{data[:n], time.Now(), err}:
		case <-done:
			return
		}
		if err != nil {
			return
		}
	}
}

// Talk lets the person talk until they leave, the input ends, or ctx does.
func (r *Rich) Talk(ctx context.Context, accept Accept) error {
	opened, restore, err := r.rich.Open()
	if err != nil {
		return err
	}
	defer restore() // also in a panic
	r.accept, r.console = accept, opened
	done := make(chan struct{})
	defer close(done)
	input := make(chan typedInput)
	go r.readTyped(input, done) // ends with the input, which only its owner can close
	r.beginScreen()
	defer r.endScreen()
	clock := time.NewTicker(frame)
	defer clock.Stop()
	var decoder console.KeyDecoder
	var escape <-chan time.Time
	for !r.hasEnded() {
		select {
		case <-ctx.Done():
			return nil
		case t := <-input:
			if t.err != nil {
				return r.inputEnded(t.err)
			}
			r.handleKeys(decoder.Feed(t.data), t.at)
			escape = nil
			if decoder.Pending() {
				escape = time.After(escapeFor)
			}
		case <-escape:
			escape = nil
			r.handleKeys(decoder.Flush(), time.Now())
		case <-r.pressed:
			r.withLock(r.handleInterrupt)
		case <-r.console.Resized:
			r.withLock(func() {
				r.screen.Resize(r.console.Size())
				r.drawScreen()
			})
		case <-clock.C:
			r.withLock(r.redrawMoving)
		case <-r.poke:
		}
		if err := r.performSteps(ctx); err != nil {
			return err
		}
	}
	return r.left
}

// beginScreen shows what there is to show.
func (r *Rich) beginScreen() {
	r.withLock(func() {
		r.screen = console.NewScreen(r.console.Out, r.console.Size())
		r.screen.Ask()
		r.showOpeners()
		r.queueStatus()
		r.drawScreen()
	})
	if r.rich.Aside != nil {
		r.rich.Aside.showThrough(r.showAside)
	}
}

// endScreen leaves the terminal as it is to be found by what comes next.
func (r *Rich) endScreen() {
	if r.rich.Aside != nil {
		r.rich.Aside.showThrough(nil)
	}
	r.withLock(func() {
		r.drawScreen()
		r.screen.Close()
		r.screen = nil
	})
}

// showOpeners shows what was to be shown before the terminal was open.
func (r *Rich) showOpeners() {
	list := r.early
	r.early = nil
	for _, show := range list {
		show()
	}
}

// whenOpen shows something now, or once the terminal is open; the caller holds the lock.
func (r *Rich) whenOpen(show func()) {
	if r.screen == nil {
		r.early = append(r.early, show)
		return
	}
	show()
	r.drawScreen()
}

func (r *Rich) hasEnded() bool {
	r.face.Lock()
	defer r.face.Unlock()
	return r.gone
}

func (r *Rich) inputEnded(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (r *Rich) withLock(do func()) {
	r.face.Lock()
	defer r.face.Unlock()
	do()
}

// handleKeys handles keys in their order, and shows what they did.
func (r *Rich) handleKeys(list []console.Key, at time.Time) {
	r.face.Lock()
	defer r.face.Unlock()
	for _, k := range list {
		r.handleKey(k, at)
	}
	r.drawScreen()
}

// queueStep has Talk do something outside of the lock; the caller holds it.
func (r *Rich) queueStep(s step) {
	r.steps = append(r.steps, s)
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// performSteps does what is to be done.
func (r *Rich) performSteps(ctx context.Context) error {
	for {
		r.face.Lock()
		list := r.steps
		r.steps = nil
		r.face.Unlock()
		if len(list) == 0 {
			return nil
		}
		for _, s := range list {
			if err := s(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}
}

// queueStatus has Talk look up the line below the prompt; the caller holds the lock.
func (r *Rich) queueStatus() {
	if r.rich.Status == nil {
		return
	}
	r.queueStep(func(ctx context.Context) error {
		status := r.rich.Status(ctx, r.Session())
		r.withLock(func() {
			r.status = status
			r.drawScreen()
		})
		return nil
	})
}

// endTalk ends Talk; the caller holds the lock.
func (r *Rich) endTalk(why error) { r.gone, r.left = true, why }

// redrawMoving shows what changes by itself: the spinner, an answer that grows, a hint that has been there long enough.
func (r *Rich) redrawMoving() {
	now := time.Now()
	if !r.until.IsZero() && now.After(r.until) {
		r.notice, r.until, r.dirty = "", time.Time{}, true
	}
	if r.why != nil && now.After(r.why.until) {
		r.endWhy()
		r.dirty = true
	}
	if r.busy {
		r.spin++
		r.dirty = true
	}
	if r.dirty {
		r.drawScreen()
	}
}
