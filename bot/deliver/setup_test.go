package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/policy/act"
)

const mark = "(sent again)"

type words struct{}

func (words) Resent(string) string { return mark }
func (words) Lost(_ string, n int) string {
	return fmt.Sprintf("(%d lost)", n)
}
func (words) NoTopic(string) string    { return "(no topic)" }
func (words) AsFile(string) string     { return "(as a file)" }
func (words) Unsendable(string) string { return "(unsendable)" }
func (words) Thinking(string) string   { return "thinking" }
func (words) Silent(_ string, lasting time.Duration) string {
	return "silent " + lasting.String()
}

func (words) Line(_ string, does act.Verb, show string, done, total int, took time.Duration) string {
	return fmt.Sprintf("%s %s %d/%d %d", does, show, done, total, int(took.Seconds()))
}

func place(chat string) bot.Place {
	return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: chat, Group: strings.HasPrefix(chat, "-")}
}

func fail(outcome bot.SendOutcome) error {
	return &bot.SendError{Outcome: outcome, Err: errors.New("as told")}
}

// request is one call of the sender.
type request struct {
	row bot.Row
	at  time.Time
	err error
}

// sender executes what it is not told to fail. A vague failure may have delivered or not.
type sender struct {
	store *bottest.Store
	// answer says how a request ends; nil = well. It runs without a lock.
	answer func(row *bot.Row) error
	// reaches says whether a request of vague outcome reached the chat.
	reaches func(row *bot.Row) bool
	// wait makes every request hang until it is cut off.
	wait bool

	mu       sync.Mutex
	requests []request
	chats    map[string][]bot.Row // what people see, in order of arrival
	flying   map[string]int
	problems []string
	made     int
}

func (s *sender) Send(ctx context.Context, row *bot.Row) (string, error) {
	stored, err := s.store.Row(ctx, row.ID)
	want := bot.Sending
	if row.Edit != "" || row.Query != "" {
		want = bot.Pending
	}
	s.mu.Lock()
	if err != nil || stored.State != want {
		s.problems = append(s.problems, fmt.Sprintf("row %d is %q in the store during the request, want %q (%v)", row.ID, stored.State, want, err))
	}
	key := row.Place.ChatKey()
	if s.flying[key]++; s.flying[key] > 1 && row.Query == "" {
		s.problems = append(s.problems, "two requests to a chat at once")
	}
	s.mu.Unlock()
	var result error
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flying[key]--
		s.requests = append(s.requests, request{*row, time.Now(), result})
	}()
	if s.wait {
		<-ctx.Done()
		result = ctx.Err()
	}
	if s.answer != nil {
		result = s.answer(row)
	}
	if result != nil && (bot.OutcomeOf(result) != bot.Vague || s.reaches == nil || !s.reaches(row)) {
		return "", result
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	s.chats[row.Place.Chat] = append(s.chats[row.Place.Chat], *row)
	return fmt.Sprintf("m%d", s.made), result
}

func (s *sender) texts(chat string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, row := range s.chats[chat] {
		text := row.Content.Text
		if row.Edit != "" {
			text = "edit " + row.Edit + ": " + text
		}
		out = append(out, text)
	}
	return out
}

func (s *sender) sent() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// world is an outbox with all it needs, inside a synctest bubble.
type world struct {
	t      *testing.T
	store  *bottest.Store
	sender *sender
	outbox *deliver.Outbox
	log    *syncBuffer
	limits deliver.Limits
	pacer  bot.Pacer // nil = one of its own, with limits
	opts   deliver.Options
	writer bot.Writer // of say; default the store
	watch  func(row bot.Row, outcome string, asked time.Time)
	probe  func(ctx context.Context) error                                   // whether the channel answers; nil = nobody asks
	again  func(ctx context.Context, row *bot.Row, change *bot.Change) error // nil = a question is given up
	keys   int
	now    func() time.Time // of the outbox; nil = time.Now
	read   deliver.Store    // what the outbox works on; nil = store
	end    context.CancelFunc
	done   chan error
}

func setup(t *testing.T) *world {
	t.Helper()
	store := bottest.New()
	w := &world{t: t, store: store, log: &syncBuffer{}, opts: deliver.Options{Channel: "telegram", Bot: "1"}}
	w.sender = &sender{store: store, chats: map[string][]bot.Row{}, flying: map[string]int{}}
	return w
}

// start runs an outbox; the bubble's end stops it.
func (w *world) start() {
	w.t.Helper()
	pacer := w.pacer
	if pacer == nil {
		pacer = deliver.NewPacer(w.limits, deliver.PacerOptions{})
	}
	var store deliver.Store = w.store
	if w.read != nil {
		store = w.read
	}
	w.outbox = deliver.NewOutbox(deliver.Deps{
		Store: store, Sender: w.sender, Pacer: pacer, Words: words{}, Log: zerolog.New(w.log), Observe: w.watch,
		Probe: w.probe, Now: w.now, Again: w.again,
	}, w.opts)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.end, w.done = cancel, make(chan error, 1)
	out, done := w.outbox, w.done
	go func() { done <- out.Run(ctx) }()
}

// stop ends the outbox and checks what holds for every run.
func (w *world) stop() {
	w.t.Helper()
	w.end()
	if err := <-w.done; err != nil {
		w.t.Errorf("Run: %v", err)
	}
	w.sender.mu.Lock()
	defer w.sender.mu.Unlock()
	for _, p := range w.sender.problems {
		w.t.Error(p)
	}
}

// add stores rows without waking anybody.
func (w *world) add(rows ...bot.Row) []int64 {
	w.t.Helper()
	w.fill(rows)
	return w.write(w.store, rows)
}

func (w *world) fill(rows []bot.Row) {
	for i := range rows {
		if rows[i].Place.Chat == "" {
			rows[i].Place = place("7")
		}
		if rows[i].Session == "" {
			rows[i].Session = rows[i].Place.SessionKey("")
		}
		if rows[i].Created.IsZero() {
			rows[i].Created = time.Now()
		}
	}
}

// write stores rows as the dispatcher does: again with the same keys when nobody knows whether they are stored.
func (w *world) write(to bot.Writer, rows []bot.Row) []int64 {
	w.t.Helper()
	for i := range rows {
		w.keys++
		if rows[i].Key == "" {
			rows[i].Key = fmt.Sprint("key/", w.keys)
		}
	}
	for {
		applied, err := to.Apply(context.WithoutCancel(w.t.Context()), &bot.Change{Send: rows})
		if err == nil {
			return applied.Rows
		}
		if !errors.Is(err, errHiccup) {
			w.t.Fatal(err)
		}
		pass(200 * time.Millisecond)
	}
}

// errHiccup is a failure of the store after which a writer tries again.
var errHiccup = errors.New("the disk is away for a moment")

// offered makes say write through the outbox.
func (w *world) offered() { w.writer = deliver.OfferingStore{Store: w.store, Outbox: w.outbox} }

// say stores rows and wakes the outbox.
func (w *world) say(rows ...bot.Row) []int64 {
	w.t.Helper()
	if w.writer != nil {
		w.fill(rows)
		return w.write(w.writer, rows)
	}
	ids := w.add(rows...)
	w.outbox.Wake(rows[0].Place)
	return ids
}

// pass lets time go by until all is quiet.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func (w *world) row(id int64) bot.Row {
	w.t.Helper()
	row, err := w.store.Row(context.WithoutCancel(w.t.Context()), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

func row(purpose bot.Purpose, text string) bot.Row {
	return bot.Row{Purpose: purpose, Content: bot.Content{Text: text}}
}

func in(chat string, r bot.Row) bot.Row {
	r.Place = place(chat)
	return r
}

// bubble runs a test in a bubble, in parallel with others.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}
