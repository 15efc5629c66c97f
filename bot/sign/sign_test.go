package sign_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/sign"
)

var (
	place   = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "5"}
	session = place.SessionKey("")
)

// chat is what a person sees on their messages.
type chat struct {
	mu      sync.Mutex
	signs   map[string]string
	calls   int
	answer  func(message, emoji string) error
	blocked chan struct{} // requests wait until it is closed; nil = they do not
}

func (c *chat) React(_ context.Context, _ bot.Place, message, emoji string) error {
	c.mu.Lock()
	blocked, answer := c.blocked, c.answer
	c.calls++
	c.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	if answer != nil {
		if err := answer(message, emoji); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signs[message] = emoji
	if emoji == "" {
		delete(c.signs, message)
	}
	return nil
}

func (c *chat) has(t *testing.T, want map[string]string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(want, maps.Clone(c.signs)); diff != "" {
		t.Errorf("signs (-want +got):\n%s", diff)
	}
}

// world is a service with one session.
type world struct {
	*testing.T
	store *bottest.Store
	chat  *chat
	desk  *sign.Reactions
	stop  func()
}

func open(t *testing.T) *world {
	w := &world{T: t, store: bottest.New(), chat: &chat{signs: map[string]string{}}}
	w.start()
	return w
}

// start begins a process; stop ends it.
func (w *world) start() { w.startOn(w.store) }

func (w *world) startOn(store sign.Store) {
	w.desk = sign.New(sign.Deps{
		Store: store, Reactor: w.chat, Decoders: map[bot.Source]bot.Decoder{bot.FromTerminal: bot.MessageDecoder{}},
		Now: time.Now, Log: zerolog.New(zerolog.NewTestWriter(w.T)),
	})
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	desk := w.desk
	go func() { done <- desk.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

func (w *world) apply(change *bot.Change) *bot.Applied {
	w.Helper()
	applied, err := w.store.Apply(w.Context(), change)
	if err != nil {
		w.Fatal(err)
	}
	return applied
}

// say stores a message and reports that it may wait.
func (w *world) say(message string, change func(*bot.Message)) int64 {
	w.Helper()
	msg := bot.Message{ID: "u" + message, Kind: bot.Text, Place: place, Caller: "telegram:5", Text: "hello", Message: message}
	if change != nil {
		change(&msg)
	}
	raw, err := bot.EncodeMessage(&msg)
	if err != nil {
		w.Fatal(err)
	}
	seq := w.apply(&bot.Change{Arrive: []bot.Arrival{{
		Channel: "telegram", Bot: "7", ID: msg.ID, Source: bot.FromTerminal, Session: session, Raw: raw, At: time.Now(),
	}}}).Seqs[0]
	w.desk.Waits(session)
	return seq
}

// turn begins a turn with an arrival, and ends the one before it with its arrival.
func (w *world) turn(name string, arrival int64, done ...int64) {
	w.Helper()
	running := bot.Running
	if name == "" {
		running = bot.Idle
	}
	w.apply(&bot.Change{Done: done, Lanes: []bot.LaneUpdate{{Session: session, State: &running, Turn: &name, Arrival: &arrival}}})
	w.desk.Ended(session)
}

func (w *world) facts(want int) {
	w.Helper()
	list, err := w.store.FactsOf(w.Context(), sign.Bucket, "", time.Now())
	if err != nil || len(list) != want {
		w.Errorf("%d signs are stored, want %d (%v)", len(list), want, err)
	}
}

func TestSignUntilTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer func() { w.stop() }()
		first := w.say("1", nil)
		w.turn("a", first)
		second := w.say("2", nil)
		w.say("3", func(m *bot.Message) { m.Command = "new" })
		w.chat.has(t, map[string]string{})
		pass(sign.After)
		w.chat.has(t, map[string]string{"2": sign.Seen})
		w.facts(1)
		if w.desk.Shown(t.Context(), session, first) || !w.desk.Shown(t.Context(), session, second) {
			t.Error("Shown does not tell which one has a sign")
		}
		w.turn("b", second, first)
		w.chat.has(t, map[string]string{"2": sign.Seen}) // its answer is being written
		w.turn("", 0, second)
		w.chat.has(t, map[string]string{})
		w.facts(0)
	})
}

func TestNoSignOnWhatDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer func() { w.stop() }()
		first := w.say("1", nil)
		w.turn("a", first)
		second := w.say("2", nil)
		w.turn("b", second, first) // soon enough
		pass(time.Minute)
		w.turn("", 0, second)
		pass(time.Minute)
		w.chat.has(t, map[string]string{})
		if w.chat.calls != 0 {
			t.Errorf("%d requests", w.chat.calls)
		}
	})
}

// A process that ends leaves a sign; the next one removes it, also if the message was dropped meanwhile.
func TestNoOrphanAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		first := w.say("1", nil)
		w.turn("a", first)
		second := w.say("2", nil)
		third := w.say("3", nil)
		pass(time.Second)
		w.chat.has(t, map[string]string{"2": sign.Seen, "3": sign.Seen})
		w.stop()
		w.apply(&bot.Change{Done: []int64{third}})
		w.start()
		defer func() { w.stop() }()
		w.chat.has(t, map[string]string{"2": sign.Seen})
		w.turn("", 0, first, second)
		pass(time.Second)
		w.chat.has(t, map[string]string{})
		w.facts(0)
	})
}

// A request that is still on its way when the message was answered does not leave its sign behind.
func TestALateSignIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer func() { w.stop() }()
		first := w.say("1", nil)
		w.turn("a", first)
		second := w.say("2", nil)
		w.chat.mu.Lock()
		w.chat.blocked = make(chan struct{})
		w.chat.mu.Unlock()
		pass(time.Second)
		w.turn("", 0, first, second)
		synctest.Wait()
		close(w.chat.blocked)
		pass(time.Second)
		w.chat.has(t, map[string]string{})
		w.facts(0)
	})
}

func TestMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer func() { w.stop() }()
		first := w.say("1", nil)
		w.turn("a", first)
		second, third := w.say("2", nil), w.say("3", nil)
		pass(time.Second)
		w.chat.has(t, map[string]string{"2": sign.Seen, "3": sign.Seen})
		w.turn("b", second, first, third)
		w.desk.Merged(session, []bot.Message{{Place: place, Message: "3"}})
		pass(time.Second)
		w.chat.has(t, map[string]string{"2": sign.Seen, "3": sign.Taken})
		w.turn("", 0, second)
		pass(time.Minute)
		w.chat.has(t, map[string]string{"3": sign.Taken})
		w.facts(0)
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	refused := &bot.SendError{Outcome: bot.Refused, Err: errors.New("REACTION_INVALID")}
	vague := &bot.SendError{Outcome: bot.Vague, Err: errors.New("EOF")}
	for name, row := range map[string]struct {
		err   error
		times int // requests fail
		calls int
	}{
		"a chat without reactions is left alone": {refused, 1000, 1},
		"a sign is removed in the end":           {vague, 3, 4},
		"not forever":                            {vague, 1000, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := open(t)
				defer func() { w.stop() }()
				left := row.times
				w.chat.answer = func(string, string) error {
					if left--; left >= 0 {
						return row.err
					}
					return nil
				}
				first := w.say("1", nil)
				w.turn("a", first)
				second := w.say("2", nil)
				pass(time.Second)
				third := w.say("3", nil)
				w.apply(&bot.Change{Done: []int64{third}})
				w.turn("", 0, first, second)
				pass(30 * time.Minute)
				w.chat.has(t, map[string]string{})
				w.facts(0)
				if w.chat.calls != row.calls {
					t.Errorf("%d requests, want %d", w.chat.calls, row.calls)
				}
			})
		})
	}
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestCrowded: a message that waits because many are asking, with no turn in its session, gets a sign at once, for one
// Change with others and without reading its session; it goes with the answer, and a restart shows no second one.
func TestCrowded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		first := w.say("m1", nil)
		w.desk.Crowded(session, first, place, "m1")
		w.desk.Crowded(session, first, place, "m1") // reported again by a process that does not know
		w.chat.has(t, map[string]string{"m1": sign.Seen})
		if w.chat.calls != 1 {
			t.Errorf("%d requests for one sign", w.chat.calls)
		}
		w.stop()
		w.start()
		synctest.Wait()
		w.desk.Crowded(session, first, place, "m1")
		w.chat.has(t, map[string]string{"m1": sign.Seen})
		if w.chat.calls != 1 {
			t.Errorf("%d requests after a restart", w.chat.calls)
		}
		w.apply(&bot.Change{Done: []int64{first}})
		w.desk.Ended(session)
		w.chat.has(t, map[string]string{})
		if left, err := w.store.FactsOf(t.Context(), sign.Bucket, "", time.Now()); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		w.stop()
	})
}

// TestManyCrowded: the signs of many sessions cost few Changes, and chats that take none are left alone.
func TestManyCrowded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		counted := &changes{Store: w.store}
		w.stop()
		w.startOn(counted)
		want := map[string]string{}
		for i := range 100 {
			chat := place
			chat.Chat = fmt.Sprint(100 + i)
			message := fmt.Sprint("m", i)
			w.desk.Crowded(chat.SessionKey(""), int64(i+1), chat, message)
			want[message] = sign.Seen
		}
		w.chat.has(t, want)
		if n := counted.n.Load(); n > 5 {
			t.Errorf("%d Changes for 100 signs", n)
		}
		w.chat.answer = func(string, string) error {
			return &bot.SendError{Outcome: bot.Refused, Err: errors.New("no reactions")}
		}
		quiet := place
		quiet.Chat = "quiet"
		for range 3 {
			w.desk.Crowded(quiet.SessionKey(""), 500, quiet, "q")
			synctest.Wait()
		}
		if w.chat.calls != 101 {
			t.Errorf("%d requests, want one for the chat that takes no reactions", w.chat.calls)
		}
		w.stop()
	})
}

// changes counts Changes.
type changes struct {
	*bottest.Store
	n atomic.Int64
}

func (c *changes) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	c.n.Add(1)
	return c.Store.Apply(ctx, change)
}
