//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// habit is how active people write: each waits for the answer, pauses and writes again.
type habit struct {
	chats int
	think time.Duration // of the model
	pause time.Duration // on average; each pause is between half and one and a half of it
}

// talks are people who talk at the same time, each in a chat. They write by timers, so that many of them cost little
// compared with what is measured.
type talks struct {
	world *world
	habit habit

	mu       sync.Mutex
	random   *rand.Rand
	chats    map[int64]*talk
	on       bool          // whether new messages are measured
	due      int           // measured messages without an answer
	heard    chan struct{} // closed when due is 0 and nothing more is measured
	enough   chan struct{} // closed when the wanted number of answers is measured
	ended    bool          // nobody writes any more
	open     int           // messages without an answer
	written  int           // messages in all
	requests int           // to the model
	idle     chan struct{} // closed when open is 0, after the end
	got      heard
	problem  error
}

// talk is one chat. The times are those of the newest message.
type talk struct {
	round  int
	text   string
	posted time.Time
	on     bool      // it is measured
	asked  time.Time // the model about it; zero = not yet
	shown  bool      // anything, to the person
}

// heard is what was measured: the time from a written message until each event.
type heard struct {
	asked    []time.Duration // the model is asked: the turn is dispatched
	shown    []time.Duration // something is visible in the chat
	answered []time.Duration
	ran      []time.Duration // from the first request to the model until the answer: what a turn takes that runs
	answers  int             // received during the measurement
}

// visible are the methods whose effect a person can see.
var visible = []string{"sendMessage", "sendMessageDraft", "sendChatAction", "editMessageText", "setMessageReaction"}

func newTalks(w *world, h habit) *talks {
	t := &talks{
		world: w, habit: h, random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // pauses are no secret
		chats: map[int64]*talk{}, idle: make(chan struct{}),
	}
	for i := range h.chats {
		t.chats[person(i)] = &talk{}
	}
	return t
}

// begin spreads the first messages over one round of the conversation, so that people do not write in step.
func (t *talks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for chat := range t.chats {
		t.after(chat, time.Duration(t.random.Int64N(int64(t.habit.think+t.habit.pause)+1)))
	}
}

// after makes a person write. t.mu is held.
func (t *talks) after(chat int64, pause time.Duration) {
	time.AfterFunc(pause, func() { t.write(chat) })
}

func (t *talks) write(chat int64) {
	t.mu.Lock()
	c := t.chats[chat]
	if t.ended {
		t.mu.Unlock()
		return
	}
	c.round++
	text := fmt.Sprintf("message %d of %d", c.round, chat)
	*c = talk{round: c.round, text: text, posted: time.Now(), on: t.on}
	t.written++
	if t.open++; c.on {
		t.due++
	}
	t.mu.Unlock()
	if err := t.world.say(chat, text); err != nil {
		t.fail(err)
	}
}

// fail records the first error.
func (t *talks) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.problem == nil {
		t.problem = err
	}
}

// asked is called when the model is asked.
func (t *talks) asked(text string) {
	var round int
	var chat int64
	if _, err := fmt.Sscanf(text, "message %d of %d", &round, &chat); err != nil {
		return // not one of these messages
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if c := t.chats[chat]; c != nil && c.round == round && c.asked.IsZero() {
		c.asked = time.Now()
		t.note(&t.got.asked, c)
	}
}

// note measures an event of the newest message of a chat. t.mu is held.
func (t *talks) note(list *[]time.Duration, c *talk) {
	if c.on {
		*list = append(*list, time.Since(c.posted))
	}
}

// call is called for each request of the service to Telegram.
func (t *talks) call(call telegramtest.Call) {
	if !slices.Contains(visible, call.Method) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.chats[call.Chat]
	if c == nil || c.round == 0 {
		return
	}
	if call.Phase == "before" && !c.shown {
		c.shown = true
		t.note(&t.got.shown, c)
	}
	if call.Phase != "after" || call.Method != "sendMessage" {
		return
	}
	if got, want := call.Params["text"], mirrored(c.text); got != want {
		if t.problem == nil {
			t.problem = fmt.Errorf("chat %d got %q, want %q", call.Chat, got, want)
		}
		return
	}
	t.note(&t.got.answered, c)
	if c.on {
		t.got.ran = append(t.got.ran, time.Since(c.asked))
	}
	t.settle(c)
	if t.ended {
		return
	}
	t.after(call.Chat, t.habit.pause/2+time.Duration(t.random.Int64N(int64(t.habit.pause)+1)))
}

// settle counts an answer. t.mu is held.
func (t *talks) settle(c *talk) {
	if t.on {
		if t.got.answers++; t.got.answers == leastAnswers {
			close(t.enough)
		}
	}
	if c.on {
		if t.due--; t.due == 0 && !t.on {
			close(t.heard)
		}
	}
	if t.open--; t.open == 0 && t.ended {
		close(t.idle)
	}
}

// leastAnswers is the minimum number of measured answers, however long it takes.
const leastAnswers = 20

// measure measures the messages of some time from now on, until each of them is answered. meanwhile is called at the
// end of that time.
func (t *talks) measure(ctx context.Context, d time.Duration, meanwhile func() error) (heard, error) {
	t.mu.Lock()
	t.on, t.due, t.got = true, 0, heard{}
	t.heard, t.enough = make(chan struct{}), make(chan struct{})
	t.mu.Unlock()
	wait(ctx, d)
	if err := await(ctx, t.enough); err != nil {
		return heard{}, t.why(err)
	}
	t.mu.Lock()
	t.on = false
	answers, due := t.got.answers, t.due
	t.mu.Unlock()
	if err := meanwhile(); err != nil {
		return heard{}, err
	}
	if due > 0 {
		if err := await(ctx, t.heard); err != nil {
			return heard{}, t.why(err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	got := t.got
	got.answers = answers
	for _, list := range [][]time.Duration{got.asked, got.shown, got.answered, got.ran} {
		slices.Sort(list)
	}
	return got, t.problem
}

// end makes everybody stop writing and waits for the outstanding answers.
func (t *talks) end(ctx context.Context) error {
	t.mu.Lock()
	t.ended = true
	open := t.open
	t.mu.Unlock()
	if open > 0 {
		if err := await(ctx, t.idle); err != nil {
			return t.why(err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem
}

// why returns the error of a wait for answers, with what was wrong before.
func (t *talks) why(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.problem)
}

// await waits for answers.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("messages stay without an answer")
	}
}

// listeners passes events to those who are talking now.
type listeners struct {
	mu  sync.Mutex
	now *talks
}

func (l *listeners) hear(t *talks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = t
}

func (l *listeners) current() *talks {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *listeners) call(c telegramtest.Call) {
	if t := l.current(); t != nil {
		t.call(c)
	}
}

func (l *listeners) asked(text string) {
	if t := l.current(); t != nil {
		t.asked(text)
	}
}
