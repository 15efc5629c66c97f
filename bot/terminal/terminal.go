// Package terminal is the channel of `zephbot chat`: one person, lines in, text or JSON events out. It uses the same
// inbox, lanes and outbox as every other channel.
package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// Name is the channel's name, BotID the bot's id on it.
const (
	Name  = "terminal"
	BotID = "local"
)

// Options of a Terminal.
type Options struct {
	In       io.Reader
	Out      io.Writer // answers, or JSON events
	Err      io.Writer // prompts and progress
	JSON     bool      // one JSON object per event on Out
	Ask      bool      // there is a person: prompts are shown and questions asked
	Screen   bool      // Out is a terminal, which would obey control characters
	Single   bool      // one message is answered (Once), and nothing of other conversations is shown
	Chat     string    // name of the conversation
	Caller   string    // person's id without channel; "" = "local"
	Language string
	Choices  string // the prompt of a question; "" = in English
	Answer   string // the prompt of a question that is answered in words or by a number; "" = in English
	Dir      string // directory whose files a message attaches by "@path"; "" = none
	Flush    func() // discards what was typed and not read yet; may be nil
	// Unanswered reports whether a final row says why its turn ended without an answer; nil = none does.
	Unanswered func(ctx context.Context, row *bot.Row) bool
	Now        func() time.Time
}

// Terminal is the channel. Its methods are safe for concurrent use.
type Terminal struct {
	opts Options
	chat atomic.Pointer[string]

	mu        sync.Mutex
	sent      int64
	questions []*question // open ones, oldest first; the person is asked one at a time
	cardFiles []Event     // long commands, whose cards are still to come
	awaits    bool        // somebody waits for an answer, and is asked
	forms     []form      // waiting requests of MCP servers, oldest first
	answered  int         // answers and replies shown
	asked     bool        // the message of Once is no command: a reply to it is no answer
	failed    bool        // the last answer was none
	waiting   int         // value of answered when the last message was accepted
	change    chan struct{}
	input     *input
	pressed   <-chan struct{} // see Interrupts; nil = never
}

type question struct {
	row     int64    // of the outbox
	message string   // id of its card
	shown   []Event  // its card, with the file of a long command before it
	seen    bool     // the card was shown
	asked   bool     // the person was asked
	again   bool     // they are asked once more about the card that is above
	press   string   // callback data without the choice
	more    []option // buttons besides yes, for this session and no; they are chosen by their numbers
	votes   bool     // yes and no are among the buttons
	own     bool     // the person has decided
	query   string   // id of their press
	gone    func()   // ends the asking; nil = it is not asked
	// options are the buttons of a question that is answered by one of them, or in words; nil = it is about a call.
	options []option
}

// inquiryOptions returns the buttons of a card if it is answered in words too.
func inquiryOptions(row *bot.Row) []option {
	list := optionsOf(row.Content.Buttons)
	if len(list) == 0 || !approval.IsInquiry(list[0].data) {
		return nil
	}
	return list
}

// New returns a Terminal.
func New(opts Options) *Terminal {
	if opts.Caller == "" {
		opts.Caller = "local"
	}
	t := &Terminal{opts: opts, change: make(chan struct{}), input: newInput(opts.In, opts.Ask)}
	t.Enter(opts.Chat)
	return t
}

// Event is one line of --json output.
type Event struct {
	Type     string         `json:"type"` // delta tool_started tool_finished plan notice approval answer error
	Session  bot.SessionKey `json:"session"`
	Turn     string         `json:"turn"`
	Text     string         `json:"text,omitempty"`
	Call     string         `json:"call,omitempty"`
	Tool     string         `json:"tool,omitempty"`
	Approval string         `json:"approval,omitempty"`
}

func (t *Terminal) placeOf() bot.Place {
	return bot.Place{Channel: Name, Bot: BotID, Surface: "bot", Chat: *t.chat.Load()}
}

// Enter changes the conversation. It must be called before Once and Talk hand in anything.
func (t *Terminal) Enter(chat string) { t.chat.Store(&chat) }

// Recall shows what was said last in the conversation, to a person who goes on with it.
func (t *Terminal) Recall(said, answer string) {
	if t.opts.Ask && !t.opts.JSON {
		t.printText("> " + said + "\n" + answer + "\n")
	}
}

// Session returns the key of the conversation.
func (t *Terminal) Session() bot.SessionKey { return t.placeOf().SessionKey("") }

// Compose implements bot.Composer: a terminal shows Markdown as it is.
func (t *Terminal) Compose(markdown string, _ bot.Place, _ string) []bot.Content {
	if strings.TrimSpace(markdown) == "" {
		return nil
	}
	return []bot.Content{{Text: markdown}}
}

// Divide implements bot.Composer: a terminal shows any length.
func (t *Terminal) Divide(content bot.Content, _ bot.Place, _ string) []bot.Content {
	return []bot.Content{content}
}

// Opening returns a message without a text, from the person who has opened the conversation.
func (t *Terminal) Opening() *bot.Message {
	m := t.newMessage("")
	return &m
}

// newMessage returns the message for what a person typed.
func (t *Terminal) newMessage(text string) bot.Message {
	m := bot.Message{
		ID: uuid.Must(uuid.NewV7()).String(), Kind: bot.Text, Place: t.placeOf(), Caller: Name + ":" + t.opts.Caller,
		Person: t.opts.Caller, Name: t.opts.Caller,
		Language: t.opts.Language, Text: text, Addressed: true, At: t.opts.Now(),
	}
	if rest, ok := strings.CutPrefix(text, "/"); ok && rest != "" && !strings.HasPrefix(rest, "/") {
		name, args, _ := strings.Cut(rest, " ")
		m.Command, m.Args = strings.ToLower(name), strings.TrimSpace(args)
		return m
	}
	m.Files = attachedFiles(t.opts.Dir, text)
	return m
}

// Send implements bot.Sender: it prints.
func (t *Terminal) Send(ctx context.Context, row *bot.Row) (string, error) {
	unanswered := row.Purpose == bot.Final && t.opts.Unanswered != nil && t.opts.Unanswered(ctx, row)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	id := strconv.FormatInt(t.sent, 10)
	event := Event{Session: row.Session, Turn: row.Turn, Text: row.Content.Text}
	own := row.Session == "" || row.Session == t.Session()
	if !own && t.opts.Single { // left by an earlier process: who asks for one answer must not read another one
		return id, nil
	}
	switch row.Purpose {
	case bot.Question:
		t.takeQuestion(row, id, event)
	case bot.Final:
		if event.Type = "answer"; unanswered {
			event.Type = "error"
		}
		t.showEvent(event, true)
		if own {
			t.answered++
			t.failed = unanswered
		}
	case bot.Reply:
		ends := own && (row.Turn == "" && !strings.HasPrefix(row.Key, "file/") || strings.HasPrefix(row.Key, "broken/"))
		if event.Type = "notice"; ends && t.asked {
			event.Type, t.failed = "error", true
		}
		t.showEvent(event, true)
		if ends {
			t.answered++
		}
	case bot.Record:
		tell := t.endQuestion(row, event)
		event.Type = "notice"
		t.showEvent(event, tell || t.opts.JSON)
	case bot.Toast:
		event.Type = "notice"
		t.showEvent(event, event.Text != "" && row.Alert)
		t.resumeQuestion(row)
	default:
		event.Type = "notice"
		t.showEvent(event, event.Text != "")
	}
	t.wakeWaiters()
	return id, nil
}

// fileText returns the long command of a card: exact for a program, with signs for invisible characters for a person.
func (t *Terminal) fileText(row *bot.Row) string {
	if row.Content.File == nil {
		return ""
	}
	text := string(row.Content.File.Data)
	if !t.opts.JSON {
		text, _ = visible.Words{}.Text(text)
	}
	return row.Content.File.Name + ":\n" + text
}

// takeQuestion takes a card. While the person is being asked, or soon will be, it is shown with its prompt; otherwise
// it is shown now, and again when they are asked. The caller holds the lock.
func (t *Terminal) takeQuestion(row *bot.Row, id string, event Event) {
	press := buttonsOf(row)
	if row.Content.File != nil {
		t.cardFiles = append(t.cardFiles, Event{
			Type:    "notice",
			Session: row.Session,
			Turn:    row.Turn,
			Text:    t.fileText(row),
		})
	}
	if press == "" {
		return
	}
	event.Type, event.Approval = "approval", press+"y"
	q := &question{row: row.ID, message: id, press: press, options: inquiryOptions(row)}
	if q.options != nil {
		event.Approval = ""
	}
	q.shown = append(t.cardFiles, event)
	q.more, q.votes = moreButtons(row)
	t.cardFiles, t.questions = nil, append(t.questions, q)
	if !t.awaits {
		t.showQuestion(q)
	}
}

// showQuestion shows a card; a program gets each once. The caller holds the lock.
func (t *Terminal) showQuestion(q *question) {
	for _, e := range q.shown {
		t.showEvent(e, !t.opts.JSON || !q.seen)
	}
	q.seen = true
}

// buttonsOf returns the data of a card's buttons without the choice; "" = it has none.
func buttonsOf(row *bot.Row) string {
	for _, line := range row.Content.Buttons {
		for _, b := range line {
			if i := strings.LastIndexByte(b.Data, ':'); i >= 0 {
				return b.Data[:i+1]
			}
		}
	}
	return ""
}

// moreButtons returns the buttons of a card that are chosen by their numbers, and whether it has yes and no.
func moreButtons(row *bot.Row) (more []option, votes bool) {
	for _, o := range optionsOf(row.Content.Buttons) {
		if o.key == "" {
			o.label = numbered.ReplaceAllString(o.label, "")
			more = append(more, o)
		}
		votes = votes || o.key == "y"
	}
	return more, votes
}

// numbered is the number that some buttons begin with.
var numbered = regexp.MustCompile(`^\d+\. `)

// resumeQuestion asks about a card again if the press had no effect, or has only shown something. An empty toast comes
// before another card in its place. The caller holds the lock.
func (t *Terminal) resumeQuestion(row *bot.Row) {
	for _, q := range t.questions {
		if q.query == "" || q.query != row.Query || !t.opts.Ask {
			continue
		}
		if row.Alert || !q.own && row.Content.Text != "" {
			q.again = !row.Alert
			q.own, q.asked, q.query = false, false, ""
		}
	}
}

// endQuestion ends the question whose record a row is, and reports whether the person has to be told how: they did
// not decide it themselves. A card that still asks takes the place of the former one, and is shown when it is
// asked. The caller holds the lock.
func (t *Terminal) endQuestion(row *bot.Row, event Event) (tell bool) {
	i := slices.IndexFunc(t.questions, func(q *question) bool {
		return q.row == row.EditRow || row.Edit != "" && q.message == row.Edit
	})
	if i < 0 {
		return false
	}
	q, asks := t.questions[i], buttonsOf(row) != ""
	if options := inquiryOptions(row); options != nil { // the next question, or another state of it
		event.Type = "approval"
		q.own, q.options = false, options
		q.shown, q.seen, q.asked, q.again = []Event{event}, false, false, false
	} else if asks && !q.own {
		event.Type, event.Approval = "approval", q.press+"y"
		q.shown, q.seen, q.asked, q.again = []Event{event}, false, false, false
		q.more, q.votes = moreButtons(row)
	} else {
		t.questions = slices.Delete(t.questions, i, i+1)
	}
	if q.gone != nil {
		q.gone()
	}
	return !asks && !q.own && q.seen
}

// showEvent prints an event; the caller holds the lock.
func (t *Terminal) showEvent(e Event, wanted bool) {
	if !wanted {
		return
	}
	if !t.opts.JSON {
		out := t.opts.Out
		if e.Type != "answer" && (e.Type != "notice" || t.asked) {
			out = t.opts.Err
		}
		text := e.Text
		if t.opts.Ask || t.opts.Screen { // a terminal would obey control characters
			text = visible.Controls(text)
		}
		_, _ = fmt.Fprintln(out, text) // a closed pipe: nobody reads any more
		return
	}
	raw, err := json.Marshal(e)
	if err == nil {
		_, _ = fmt.Fprintln(t.opts.Out, string(raw)) // as above
	}
}

// Watch shows the progress of a turn: events with --json, lines about tools otherwise.
func (t *Terminal) Watch(w turn.Watched) turn.Progress {
	return &progress{t: t, turn: w.Turn, done: make(chan struct{})}
}

type progress struct {
	t    *Terminal
	turn string
	done chan struct{}
	once sync.Once
}

// Emit implements agent.Sink.
func (p *progress) Emit(_ context.Context, e agent.Event) {
	out := Event{Session: p.t.Session(), Turn: p.turn, Text: e.Text, Call: e.Call, Tool: e.Tool}
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	switch e.Type {
	case agent.DeltaEvent:
		out.Type = "delta"
		p.t.showEvent(out, p.t.opts.JSON)
	case agent.ToolStartedEvent:
		out.Type = "tool_started"
		if out.Text = e.Args; !p.t.opts.JSON {
			out.Text = "· " + visible.Name(e.Tool+" "+strings.ReplaceAll(e.Args, "\n", " "))
		}
		p.t.showEvent(out, p.t.opts.JSON || p.t.opts.Ask)
	case agent.ToolFinishedEvent:
		out.Type = "tool_finished"
		// "[shell] 342 lines -> 28 lines, 91.8% filtered"
		p.t.showEvent(out, p.t.opts.JSON || p.t.opts.Ask && e.Text != "")
	case agent.PlanEvent:
		out.Type, out.Text = "plan", strings.Join(tools.Checklist(e.Plan, tools.MostPlanned), "\n")
		p.t.showEvent(out, p.t.opts.JSON || p.t.opts.Ask && out.Text != "")
	case agent.ResetEvent, agent.ToolProgressEvent, agent.ModelEvent, agent.ThoughtEvent:
	}
}

// Run implements turn.Progress.
func (p *progress) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-p.done:
	}
	return nil
}

// Close implements turn.Progress.
func (p *progress) Close() { p.once.Do(func() { close(p.done) }) }

// Accept stores arrivals durably (dispatch.Dispatcher.Accept).
type Accept func(ctx context.Context, raws []turn.Raw) error

func (t *Terminal) handMessage(ctx context.Context, accept Accept, m bot.Message) error {
	raw, err := bot.EncodeMessage(&m)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.waiting = t.answered
	t.mu.Unlock()
	return accept(ctx, []turn.Raw{{ID: m.ID, Source: bot.FromTerminal, Body: raw}})
}

// awaitEnd returns once the last message is answered, and asks pending questions in the meantime.
func (t *Terminal) awaitEnd(ctx context.Context, accept Accept) error {
	t.mu.Lock()
	t.awaits = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.awaits = false
		t.mu.Unlock()
	}()
	for {
		t.mu.Lock()
		change, done := t.change, t.answered > t.waiting
		var q *question
		if len(t.questions) > 0 && !t.questions[0].asked {
			q = t.questions[0]
		}
		t.mu.Unlock()
		if f, ok := t.nextForm(); ok && !done {
			if err := t.fillForm(ctx, f); err != nil {
				return err
			}
			continue
		}
		switch {
		case done:
			return nil
		case q != nil:
			if err := t.decideQuestion(ctx, accept, q); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-change:
		}
	}
}

// beginQuestion begins a question: only lines that are begun from now on can answer it.
func (t *Terminal) beginQuestion() int {
	if t.opts.Flush != nil {
		t.opts.Flush()
	}
	return t.input.markQuestion()
}

// decideQuestion shows a card, asks the person and accepts the decision. If the input ends without one, nobody has
// decided. It also ends when the question does.
func (t *Terminal) decideQuestion(ctx context.Context, accept Accept, q *question) error {
	asking, gone := context.WithCancel(ctx)
	defer gone()
	t.mu.Lock()
	open := slices.Contains(t.questions, q)
	if q.gone, q.asked = gone, true; open && !q.again {
		t.showQuestion(q)
	}
	asks := *q // an edit of the card ends the asking
	t.mu.Unlock()
	if !open {
		return nil
	}
	if asks.options != nil {
		return t.answerQuestion(asking, ctx, accept, q, asks.options)
	}
	choice, why, asked := approval.Gone, "", t.beginQuestion()
	for t.opts.Ask {
		t.printText(t.promptOf(&asks))
		text, err := t.input.nextLine(asking, asked)
		if errors.Is(err, io.EOF) {
			break
		}
		if asking.Err() != nil && ctx.Err() == nil { // decided elsewhere, or too late
			t.endPromptLine()
			return nil
		}
		if err != nil {
			return err
		}
		if choice, why = asks.readChoice(text); choice != approval.Gone {
			break
		}
	}
	m := t.pressOf(q.press+choice, "")
	t.mu.Lock()
	if q.own = approval.Decides(choice); choice != approval.Gone {
		q.query = m.Query
	}
	t.mu.Unlock()
	if err := t.handPress(ctx, accept, m); err != nil || why == "" {
		return err
	}
	return t.handPress(ctx, accept, t.pressOf(q.press+approval.Why, why))
}

// answerQuestion asks the person for the number of a button or an answer in words, and accepts it. asking ends when the
// question does.
func (t *Terminal) answerQuestion(
	asking, ctx context.Context, accept Accept, q *question, options []option,
) error {
	for i, o := range options {
		t.printText(fmt.Sprintf("  %d  %s\n", i+1, o.label))
	}
	data, text, asked := q.press+approval.Gone, "", t.beginQuestion()
	for t.opts.Ask {
		t.printText(cmp.Or(t.opts.Answer, "A number, or your answer: "))
		line, err := t.input.nextLine(asking, asked)
		if errors.Is(err, io.EOF) {
			break
		}
		if asking.Err() != nil && ctx.Err() == nil { // it has ended meanwhile
			t.endPromptLine()
			return nil
		}
		if err != nil {
			return err
		}
		line = strings.TrimSpace(line)
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
			data = options[n-1].data
			break
		}
		if line != "" {
			data, text = q.press+approval.Typed, line
			break
		}
	}
	m := t.pressOf(data, text)
	t.mu.Lock()
	q.own, q.query = true, m.Query
	t.mu.Unlock()
	return t.handPress(ctx, accept, m)
}

// promptOf returns what a line can choose.
func (t *Terminal) promptOf(q *question) string {
	list := make([]string, 0, len(q.more)+1)
	for i, o := range q.more {
		list = append(list, fmt.Sprintf("[%d] %s", i+1, o.label))
	}
	if q.votes || len(list) == 0 {
		return strings.Join(append(list, cmp.Or(
			t.opts.Choices, "[y] once, [s] for this session, [n] no (n and a few words: no, and why): ",
		)), ", ")
	}
	return strings.Join(list, ", ") + ": "
}

// readChoice returns what a line chooses on a card, and why; approval.Gone = nothing. Where the card is about something
// else than yes or no, a no leads back.
func (q *question) readChoice(line string) (choice, why string) {
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(line), ".)"))
	if err == nil && n >= 1 && n <= len(q.more) {
		return strings.TrimPrefix(q.more[n-1].data, q.press), ""
	}
	switch choice, why = readVote(line); {
	case q.votes || len(q.more) == 0:
		return choice, why
	case choice == "n":
		return strings.TrimPrefix(q.more[len(q.more)-1].data, q.press), ""
	}
	return approval.Gone, ""
}

// readVote returns what a line decides, and why; approval.Gone = nothing. Only a denial has a reason.
func readVote(line string) (choice, why string) {
	word, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	word, why = strings.ToLower(word), strings.TrimSpace(why)
	yes, ok := content.YesNo(strings.TrimRight(word, ",:;."))
	switch {
	case ok && !yes:
		return "n", why
	case why != "":
	case word == "s": // not the Spanish yes
		return "s", ""
	case yes:
		return "y", ""
	}
	return approval.Gone, ""
}

// pressOf returns the press of a button, with the text that goes with it.
func (t *Terminal) pressOf(data, text string) bot.Message {
	m := t.newMessage("")
	m.Kind, m.Data, m.Query, m.Text, m.Command = bot.Press, data, m.ID, text, ""
	return m
}

// handPress accepts a press.
func (t *Terminal) handPress(ctx context.Context, accept Accept, m bot.Message) error {
	raw, err := bot.EncodeMessage(&m)
	if err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	return accept(ctx, []turn.Raw{{ID: m.ID, Source: bot.FromTerminal, Body: raw}})
}

// Admit implements turn.Guard: a person at the terminal may do what their account may do.
func (t *Terminal) Admit(context.Context, *bot.Message) (turn.Verdict, error) {
	return turn.Verdict{OK: true, Admin: true}, nil
}

// Rules implements turn.Guard.
func (t *Terminal) Rules(bot.Place) turn.Rules { return turn.Rules{} }

var (
	_ bot.Sender   = (*Terminal)(nil)
	_ bot.Composer = (*Terminal)(nil)
	_ turn.Guard   = (*Terminal)(nil)
)
