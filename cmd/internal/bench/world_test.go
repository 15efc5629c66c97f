//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// patience limits each wait; a working measurement never comes near it.
const patience = 2 * time.Minute

const firstPerson int64 = 10_000

// answer is a message that the fake has accepted.
type answer struct {
	chat int64
	text string
	at   time.Time
}

// world is a Bot API with people, each in a private chat.
type world struct {
	fake    *telegramtest.Server
	url     string
	answers chan answer
	polled  chan time.Time // the first getUpdates
	tally   tally
	watch   func(telegramtest.Call) // receives every call instead of answers and polled; nil = none does
	hooks   balancer

	environment []string // of the service, in addition to the usual
}

func newWorld(tb testing.TB, people int) *world {
	tb.Helper()
	w := &world{answers: make(chan answer, 1<<14), polled: make(chan time.Time, 1)}
	w.fake = telegramtest.New(telegramtest.Options{
		KeepCalls: 1000, OnCall: w.call, Local: true, Unchecked: true, WebhookClient: &http.Client{Transport: &w.hooks, Timeout: time.Minute},
	})
	tb.Cleanup(w.fake.Close)
	var err error
	if w.url, err = w.fake.Start(); err != nil {
		tb.Fatal(err)
	}
	for i := range people {
		w.fake.AddUser(telegramtest.User{ID: person(i), FirstName: fmt.Sprint("P", i), Language: "en"})
		w.fake.AddPrivate(person(i))
	}
	return w
}

func person(i int) int64 { return firstPerson + int64(i) }

func (w *world) call(_ context.Context, c telegramtest.Call) {
	switch {
	case w.watch != nil:
		w.watch(c)
	case c.Method == "sendMessage" && c.Phase == "after":
		w.answers <- answer{c.Chat, c.Params["text"], time.Now()}
	case c.Method == "getUpdates" && c.Phase == "before":
		select {
		case w.polled <- time.Now():
		default:
		}
	}
}

func (w *world) say(chat int64, text string) error {
	_, err := w.fake.Post(chat, chat, telegramtest.Message{Text: text})
	return err
}

// next waits for an answer.
func (w *world) next(ctx context.Context) (answer, error) {
	select {
	case a := <-w.answers:
		return a, nil
	case <-ctx.Done():
		return answer{}, errors.New("no answer comes")
	}
}

// listening waits until a poll is open.
func (w *world) listening(ctx context.Context) error { return w.fake.WaitFor(ctx, w.fake.Polling) }

func mirrored(text string) string { return "re: " + text }

// subject is a bot that is measured: run serves until ctx ends, with the model at a URL.
type subject struct {
	name string
	run  func(ctx context.Context, dir string, w *world, model string) error
}

func service() subject { return subject{"service", serve} }
func echo() subject    { return subject{"echo", echoBot} }

// begin starts a subject on a world and waits until it listens; the returned function ends it.
func (s subject) begin(ctx context.Context, tb testing.TB, w *world, model string) (stop func()) {
	tb.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	dir := tb.TempDir()
	go func() { done <- s.run(running, dir, w, model) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("%s: %v", s.name, err)
		}
	}
	if err := w.listening(ctx); err != nil {
		stop()
		tb.Fatalf("%s: %v", s.name, err)
	}
	return stop
}

// serve is the real service in this process. Send limits are off and concurrency is higher than the default: the
// machine is measured, not the limits.
func serve(ctx context.Context, dir string, w *world, model string) error {
	cfg, err := config.Load(config.Source{Env: environment(dir, w, model), WorkDir: dir, Home: dir})
	if err != nil {
		return err
	}
	return app.Serve(ctx, app.Options{Config: cfg, Version: "v0.0.0-bench", WorkDir: dir, Log: zerolog.Nop(), Hooks: w.tally.hooks()})
}

// environment configures the service for a world.
func environment(dir string, w *world, model string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + dir,
		"ZEPH_DATA_DIR=" + dir, "ZEPH_TELEGRAM_TOKEN=" + w.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + w.url, "ZEPH_TELEGRAM_ALLOWED_USERS=*",
		"ZEPH_TELEGRAM_LIMITS_PER_SECOND=0", "ZEPH_TELEGRAM_LIMITS_PER_CHAT_PER_SECOND=0", "ZEPH_AGENT_CONCURRENCY=512",
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=mirror", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=opens-nothing",
		"ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + model,
	}, w.environment...)
}

// turn sends one message and waits for its answer. It returns the time from the update to the accepted answer.
func turn(ctx context.Context, w *world, chat int64, text string) (time.Duration, error) {
	if err := w.listening(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := w.say(chat, text); err != nil {
		return 0, err
	}
	a, err := w.next(ctx)
	if err != nil {
		return 0, err
	}
	if a.chat != chat || a.text != mirrored(text) {
		return 0, fmt.Errorf("chat %d got %q, want %q in %d", a.chat, a.text, mirrored(text), chat)
	}
	return a.at.Sub(began), nil
}

// crowd makes people talk at once, each of them for a number of rounds, writing the next message after each answer. It
// checks that every message was answered once and in order, and returns how long it took.
func crowd(ctx context.Context, w *world, people, rounds int) (time.Duration, error) {
	line := func(chat int64, round int) string { return fmt.Sprintf("message %d of %d", round, chat) }
	began := time.Now()
	at := map[int64]int{}
	for i := range people {
		if err := w.say(person(i), line(person(i), 0)); err != nil {
			return 0, err
		}
	}
	for range people * rounds {
		a, err := w.next(ctx)
		if err != nil {
			return 0, err
		}
		round := at[a.chat]
		if want := mirrored(line(a.chat, round)); a.text != want {
			return 0, fmt.Errorf("chat %d got %q, want %q", a.chat, a.text, want)
		}
		if at[a.chat]++; at[a.chat] < rounds {
			if err := w.say(a.chat, line(a.chat, round+1)); err != nil {
				return 0, err
			}
		}
	}
	took := time.Since(began)
	for i := range people {
		answered := 0
		for _, m := range w.fake.Chat(person(i)) {
			if m.FromBot && strings.HasPrefix(m.Text, mirrored("")) {
				answered++
			}
		}
		if answered != rounds {
			return 0, fmt.Errorf("chat %d has %d answers, want %d", person(i), answered, rounds)
		}
	}
	return took, nil
}
