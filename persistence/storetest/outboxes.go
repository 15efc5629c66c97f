package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// Process is one of several processes that share a store.
type Process struct {
	Store bot.Store
	Alive func() bool // as reported by the store; see persistence.Stores.Alive
	Kill  func()      // kills it; returns when others have taken over its work
}

// Outboxes lets the outboxes of several processes deliver the messages of sessions while processes are killed at
// random: nothing is lost, nothing is sent twice without a mark, and each session's rows are sent in order. begin
// starts a process; there is always at least one.
func Outboxes(t *testing.T, begin func(t *testing.T, name string) Process, lives, each int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := &outboxes{T: t, random: rand.New(rand.NewPCG(seed, 0)), begin: begin, seen: map[string][]string{}}
	ids := map[string][]string{}
	for len(o.running) < 2 {
		o.start()
	}
	for range lives {
		for range each {
			chat := fmt.Sprint(1 + o.random.IntN(3))
			text := fmt.Sprintf("%s.%d", chat, len(ids[chat]))
			o.say(chat, text)
			ids[chat] = append(ids[chat], text)
		}
		o.kill()
		o.start()
	}
	o.settled(ids)
	for _, p := range o.running {
		o.stop(p)
	}
	for chat, want := range ids {
		o.check(chat, want)
	}
}

type outboxes struct {
	*testing.T
	random  *rand.Rand
	begin   func(t *testing.T, name string) Process
	named   int
	running []*posting

	mu   sync.Mutex
	seen map[string][]string // what people see, by chat
}

// posting is a process with its outbox.
type posting struct {
	Process
	outbox *deliver.Outbox
	end    context.CancelFunc
	done   chan error
}

func (o *outboxes) stop(p *posting) {
	o.Helper()
	p.end()
	if err := <-p.done; err != nil {
		o.Errorf("run: %v", err)
	}
}

func (o *outboxes) start() {
	o.Helper()
	o.named++
	p := &posting{Process: o.begin(o.T, fmt.Sprintf("p%03d", o.named)), done: make(chan error, 1)}
	p.outbox = deliver.NewOutbox(deliver.Deps{
		Store:  p.Store,
		Sender: letters{o, p},
		Pacer:  deliver.NewPacer(deliver.Limits{}, deliver.PacerOptions{}),
		Words:  marks{},
		Log:    zerolog.Nop(),
	}, deliver.Options{
		Channel: channel,
		Bot:     botID,
		Shared:  true,
		Poll:    10 * time.Millisecond,
		Backoff: 5 * time.Millisecond,
		Grace:   time.Millisecond,
	})
	ctx, end := context.WithCancel(context.WithoutCancel(o.Context()))
	p.end = end
	go func() { p.done <- p.outbox.Run(ctx) }()
	o.running = append(o.running, p)
}

// say sends a message of a session from any process, as the end of a turn does.
func (o *outboxes) say(chat, text string) {
	o.Helper()
	p := o.running[o.random.IntN(len(o.running))]
	row := bot.Row{
		Session: bot.SessionKey("telegram/1/bot/" + chat + "/0/42"),
		Place:   bot.Place{Channel: channel, Bot: botID, Surface: "bot", Chat: chat},
		Purpose: bot.Final,
		Key:     text,
		Content: bot.Content{Text: text},
	}
	if _, err := (deliver.OfferingStore{Store: p.Store, Outbox: p.outbox}).Apply(o.Context(), &bot.Change{
		Send: []bot.Row{row},
	}); err != nil {
		o.Fatalf("%s: %v", text, err)
	}
}

// kill kills one process while it has requests in flight.
func (o *outboxes) kill() {
	i := o.random.IntN(len(o.running))
	p := o.running[i]
	o.running = slices.Delete(o.running, i, i+1)
	p.Kill()
	o.stop(p)
}

// settled waits until everything is sent.
func (o *outboxes) settled(ids map[string][]string) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		open := 0
		for chat := range ids {
			rows, err := o.running[0].Store.Rows(ctx, bot.SessionKey("telegram/1/bot/"+chat+"/0/42"), 0)
			if err != nil {
				o.Fatal(err)
			}
			for i := range rows {
				if rows[i].State != bot.Sent {
					open++
				}
			}
		}
		if open == 0 {
			return
		}
		select {
		case <-ctx.Done():
			o.Fatalf("%d rows are never sent", open)
		case <-tick.C:
		}
	}
}

const again = "(again)"

// check requires every text of a chat, in order, and repeated only with a mark.
func (o *outboxes) check(chat string, want []string) {
	o.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var first []string
	for _, text := range o.seen[chat] {
		plain, marked := strings.CutSuffix(text, again)
		plain = strings.TrimSpace(plain)
		switch {
		case !slices.Contains(first, plain):
			first = append(first, plain)
		case !marked:
			o.Errorf("%s was sent again without a mark", text)
		}
	}
	if !slices.Equal(first, want) {
		o.Errorf("chat %s got %q, want %q", chat, first, want)
	}
}

// letters is the channel: requests take a moment, and some end with their process after they were made.
type letters struct {
	o    *outboxes
	from *posting
}

func (l letters) Send(ctx context.Context, row *bot.Row) (string, error) {
	if !l.from.Alive() {
		return "", &bot.SendError{Outcome: bot.NotSent, Err: errors.New("not sure to live")}
	}
	l.o.mu.Lock()
	l.o.seen[row.Place.Chat] = append(l.o.seen[row.Place.Chat], row.Content.Text)
	l.o.mu.Unlock()
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return "m", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// marks are the texts of the suite.
type marks struct{}

func (marks) Resent(string) string     { return again }
func (marks) Lost(string, int) string  { return "" }
func (marks) NoTopic(string) string    { return "" }
func (marks) AsFile(string) string     { return "" }
func (marks) Unsendable(string) string { return "" }
