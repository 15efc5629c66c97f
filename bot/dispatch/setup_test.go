package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// decoder reads a bot.Message from JSON. "panic" panics.
type decoder struct{}

func (decoder) Decode(raw []byte) (bot.Message, error) {
	if string(raw) == "panic" {
		panic("poison")
	}
	var m bot.Message
	err := json.Unmarshal(raw, &m)
	return m, err
}

type composer struct{}

func (composer) Compose(markdown string, _ bot.Place, _ string) []bot.Content {
	if strings.TrimSpace(markdown) == "" {
		return nil
	}
	var list []bot.Content
	for part := range strings.SplitSeq(markdown, "\f") {
		list = append(list, bot.Content{Text: part})
	}
	return list
}

func (c composer) Divide(content bot.Content, to bot.Place, language string) []bot.Content {
	list := c.Compose(content.Text, to, language)
	if len(list) < 2 {
		return []bot.Content{content}
	}
	list[len(list)-1].Buttons = content.Buttons
	return list
}

// runner is a Runner by function; by default it echoes.
type runner func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error)

func (r runner) Run(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
	return r(ctx, turn, log, sink)
}

// room is more than any conversation of these tests has.
const room = 1 << 20

// history is what a turn sees of its conversation.
func history(ctx context.Context, log agent.Journal) ([]journal.Entry, error) {
	tail, err := log.Load(ctx, room)
	return tail.Entries, err
}

// answered ends a turn.
func answered(turn *agent.Turn, text string) agent.Outcome {
	return agent.Outcome{Kind: agent.Answered, Text: text, Entries: []journal.Entry{{Turn: turn.ID, Kind: journal.AnswerEntry, Text: text}}}
}

func ended(turn *agent.Turn, reason string) agent.Outcome {
	return agent.Outcome{Kind: agent.Ended, Reason: reason, Entries: []journal.Entry{{Turn: turn.ID, Kind: journal.EndEntry, Reason: reason}}}
}

// asked is what the person of a turn wrote.
func asked(ctx context.Context, turn *agent.Turn, log agent.Journal) (string, error) {
	entries, err := history(ctx, log)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Turn == turn.ID && e.Kind == journal.UserEntry {
			return e.Text, nil
		}
	}
	return "", fmt.Errorf("turn %s has no message", turn.ID)
}

func echo(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
	text, err := asked(ctx, turn, log)
	return answered(turn, "re: "+text), err
}

// until waits for a channel as a Runner should: a stop ends the turn, any other end of ctx is an error.
func until(ctx context.Context, c <-chan struct{}, turn *agent.Turn) (out agent.Outcome, err error, more bool) { //nolint:revive // more belongs to the caller, err to its caller
	select {
	case <-c:
		return agent.Outcome{}, nil, true
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), agent.ErrStopped) {
			return ended(turn, journal.ReasonStopped), nil, false
		}
		return agent.Outcome{}, ctx.Err(), false
	}
}

// guard admits everybody but "stranger"; groups share a session when their id begins with "s".
type guard struct {
	mu    sync.Mutex
	fails error
	panic bool
	out   map[string]bool
	with  func() bot.Change // what is stored with the refusal of a stranger; nil = nothing
}

func (g *guard) Admit(_ context.Context, msg *bot.Message) (turn.Verdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.panic:
		panic("guard")
	case g.fails != nil:
		return turn.Verdict{}, g.fails
	case msg.Kind == bot.Member:
		return turn.Verdict{OK: msg.Place.Chat != "unlisted", Reply: "not set up here", Once: "unlisted/" + msg.Place.Chat}, nil
	case msg.Person == "stranger" || g.out[msg.Person]:
		v := turn.Verdict{Reply: "I do not know you", Once: "stranger/" + msg.Person, Reason: "not listed"}
		if g.with != nil {
			v.Change = g.with()
		}
		return v, nil
	}
	return turn.Verdict{OK: true, Admin: msg.Person == "admin"}, nil
}

func (g *guard) Rules(place bot.Place) turn.Rules {
	return turn.Rules{SharedSession: strings.HasPrefix(place.Chat, "s"), AnyMessage: strings.HasSuffix(place.Chat, "all"), System: "rules of " + place.Chat}
}

func (g *guard) set(change func(*guard)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

// meter charges a turn once.
type meter struct {
	mu      sync.Mutex
	turns   map[string]int
	refuse  string
	notice  string
	fails   error
	undone  int
	opened  int // purses
	store   bot.Writer
	purse   *purse // of the next turn; nil = one that stays empty
	invalid bool
}

func (m *meter) Admit(_ context.Context, _ *bot.Message, id string) (turn.Admission, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return turn.Admission{}, m.fails
	}
	if m.refuse != "" {
		return turn.Admission{Refusal: m.refuse, Once: "today"}, nil
	}
	m.turns[id]++
	c := bot.Charge{Key: "turn/" + id, Unit: "turns", N: 1}
	if m.invalid {
		c.Key = ""
	}
	return turn.Admission{Charges: []bot.Charge{c}, Notice: m.notice, NoticeKey: "near"}, nil
}

func (m *meter) Open(*bot.Message, string) turn.Budget {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	if m.purse != nil {
		return m.purse
	}
	return &purse{meter: m}
}

// purse holds what a turn has spent.
type purse struct {
	meter   *meter
	mu      sync.Mutex
	charges []bot.Charge
	notices []turn.Notice
}

func (p *purse) Spend(turn.Next) turn.Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return turn.Spent{Charges: slices.Clone(p.charges)}
}

func (p *purse) Begin(admitted *bot.Ledger, _ string, _ int) turn.Spent {
	s := p.Spend(turn.Next{})
	s.Ledger = admitted
	return s
}

func (p *purse) Stored(s *turn.Spent, applied *bot.Applied) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if applied != nil {
		p.charges = p.charges[len(s.Charges):]
	}
}

func (p *purse) Reserve(context.Context, string, cost.Amount) error { return nil }

func (p *purse) Settle(_ context.Context, key string, used cost.Amount) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used.USD > 0 {
		p.charges = append(p.charges, bot.Charge{Key: key, Scope: "user/1", Unit: "usd", Day: "2026-01-01", N: int64(used.USD * 1e6)})
	}
	return nil
}

func (p *purse) Notices() []turn.Notice { return p.notices }

func (p *purse) Flush(ctx context.Context) error {
	spent := p.Spend(turn.Next{})
	var change bot.Change
	spent.In(&change)
	if spent.None() {
		return nil
	}
	applied, err := p.meter.store.Apply(ctx, &change)
	p.Stored(&spent, applied)
	return err
}

func (p *purse) Close() {
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	p.meter.opened--
}

func (m *meter) Undo(context.Context, []bot.Charge) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.undone++
	return nil
}

// commands are /stop (overtakes), /approve, /clear (interrupts), /lane (waits), /long (three messages), /bad (fails), /panic.
type commands struct {
	store  *bottest.Store
	broker *approval.Broker
	during func() // runs between reading and answering /stop
	fails  error
}

func (c *commands) Class(name string) turn.Class {
	switch name {
	case "clear":
		return turn.Interrupts
	case "lane", "bad", "panic":
		return turn.InLane
	}
	return turn.Overtakes
}

func (c *commands) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	say := func(text string) []bot.Row {
		return []bot.Row{{Session: call.Session, Place: call.Message.Place, Purpose: bot.Reply, Content: bot.Content{Text: text}}}
	}
	lane, err := c.store.Lane(ctx, call.Session)
	if err != nil {
		return turn.Effect{}, err
	}
	switch call.Message.Command {
	case "approve":
		return c.broker.Command(ctx, call, bot.Approved)
	case "stop":
		e := turn.Effect{Change: bot.Change{Send: say("stopping")}}
		waiting, err := c.store.Next(ctx, call.Session, 100)
		for _, a := range waiting {
			if lane.Turn == "" || a.Seq != lane.Arrival {
				e.Change.Done = append(e.Change.Done, a.Seq)
			}
		}
		if lane.Turn != "" {
			e.Change.Lanes, e.Stop = []bot.LaneUpdate{{Session: call.Session, Stop: &lane.Turn}}, []bot.SessionKey{call.Session}
		}
		if c.during != nil {
			c.during()
		}
		return e, err
	case "clear":
		e := turn.Effect{Change: bot.Change{Send: say("cleared")}}
		e.Change.Append = &bot.Append{Session: call.Session, After: lane.Last, Entries: []journal.Entry{{Turn: "reset", Kind: journal.SummaryEntry}}}
		return e, nil
	case "long":
		rows := say("one\ftwo\fthree")
		rows[0].ReplyTo, rows[0].Content.Buttons = call.Message.Message, [][]bot.Button{{{Label: "more", Data: "m"}}}
		return turn.Effect{Change: bot.Change{Send: rows}}, nil
	case "bad":
		return turn.Effect{}, c.fails
	case "panic":
		panic("command")
	}
	return turn.Effect{Change: bot.Change{Send: say(fmt.Sprintf("/%s running=%t admin=%t", call.Message.Command, call.Running, call.Admin))}}, nil
}

// outbox records nothing but that it is woken.
type outbox struct {
	mu    sync.Mutex
	wakes int
}

func (o *outbox) Wake(bot.Place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wakes++
}

// world is a store that outlives dispatchers.
type world struct {
	t        *testing.T
	store    *bottest.Store
	broker   *approval.Broker
	guard    *guard
	meter    *meter
	commands *commands
	outbox   *outbox
	runner   runner
	opts     dispatch.Options
	parts    func(*dispatch.Parts)
	id       int
	owners   int
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, store: bottest.New(), guard: &guard{out: map[string]bool{}}, meter: &meter{turns: map[string]int{}}, outbox: &outbox{}, runner: echo,
		opts: dispatch.Options{Channel: "test", Bot: "7"},
	}
	w.meter.store = w.store
	w.restarted()
	w.commands = &commands{store: w.store, broker: w.broker}
	return w
}

// restarted gives the next process a broker that remembers nothing.
func (w *world) restarted() {
	rights := func(context.Context, bot.Place, string) (approval.Rights, error) {
		return approval.Rights{Requester: true}, nil
	}
	w.broker = approval.New(approval.Deps{Store: w.store, Rights: rights, Words: texts.Words{}, Now: time.Now, Replies: true}, 10*time.Minute)
}

// process is a running dispatcher.
type process struct {
	*dispatch.Dispatcher
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs a dispatcher of a name of its own until stop or the end of the test.
func (w *world) start() *process {
	w.owners++
	opts := w.opts
	if opts.Owner == "" {
		opts.Owner = "p" + strconv.Itoa(w.owners)
	}
	parts := dispatch.Parts{
		Store: w.store, Decoders: map[bot.Source]bot.Decoder{"test": decoder{}}, Composer: composer{}, Runner: w.runner, Guard: w.guard, Meter: w.meter, Commands: w.commands,
		Approvals: w.broker, Explanations: w.broker, Outbox: w.outbox, Words: texts.Words{}, Log: zerolog.Nop(), Now: time.Now,
	}
	if w.parts != nil {
		w.parts(&parts)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &process{Dispatcher: dispatch.New(parts, opts), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if err := p.Run(ctx); err != nil {
			w.t.Errorf("run: %v", err)
		}
	}()
	w.t.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	p.cancel()
	<-p.done
}

// private is a message of a person in their private chat.
func (w *world) private(person, text string) bot.Message {
	w.id++
	m := bot.Message{
		ID: strconv.Itoa(w.id), Kind: bot.Text, Caller: "test:" + person, Person: person, Name: person, Text: text, Message: "m" + strconv.Itoa(w.id), Addressed: true,
		Place: bot.Place{Channel: "test", Bot: "7", Surface: "bot", Chat: person},
	}
	if name, ok := strings.CutPrefix(text, "/"); ok {
		m.Command, m.Args, _ = strings.Cut(name, " ")
	}
	return m
}

// group is a message in a group.
func (w *world) group(chat, person, text string) bot.Message {
	m := w.private(person, text)
	m.Place.Chat, m.Place.Group = chat, true
	return m
}

func session(person string) bot.SessionKey { return bot.SessionKey("test/7/bot/" + person + "/0/0") }

func raw(t *testing.T, m bot.Message) turn.Raw {
	t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return turn.Raw{ID: m.ID, Body: body}
}

// accept accepts messages as one batch and waits until everything has come to rest.
func (w *world) accept(p *process, messages ...bot.Message) {
	w.t.Helper()
	var list []turn.Raw
	for _, m := range messages {
		list = append(list, raw(w.t, m))
	}
	if err := p.Accept(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// rows lists what was sent, in order of id: "purpose: text".
func (w *world) rows() []string {
	w.t.Helper()
	due, err := w.store.Due(w.t.Context(), "test", "7", time.Now(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, r := range due {
		list = append(list, string(r.Purpose)+": "+r.Content.Text)
	}
	return list
}

// texts lists what was sent for a purpose.
func (w *world) texts(purpose bot.Purpose) []string {
	var list []string
	for _, r := range w.rows() {
		if text, ok := strings.CutPrefix(r, string(purpose)+": "); ok {
			list = append(list, text)
		}
	}
	return list
}

func (w *world) want(purpose bot.Purpose, want ...string) {
	w.t.Helper()
	if got := w.texts(purpose); !slices.Equal(got, want) {
		w.t.Errorf("%s rows: got %q, want %q", purpose, got, want)
	}
}

func (w *world) lane(session bot.SessionKey) bot.Lane {
	w.t.Helper()
	lane, err := w.store.Lane(w.t.Context(), session)
	if err != nil {
		w.t.Fatal(err)
	}
	return lane
}

func (w *world) counts() bot.Counts {
	w.t.Helper()
	c, err := w.store.Counts(w.t.Context(), "test", "7")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) open() []bot.Approval {
	w.t.Helper()
	list, err := w.store.OpenApprovals(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// press is a press on the button of a question.
func (w *world) press(person string, a *bot.Approval, choice string) bot.Message {
	m := w.private(person, "")
	m.Kind, m.Place, m.Data, m.Query = bot.Press, a.Place, "a1:"+a.ID+":"+choice, "q"+m.ID
	return m
}
