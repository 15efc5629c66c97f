package servers_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// process is a desk of one of several processes on one store.
type process struct {
	*servers.Handler
	name string
	end  func()
}

// nobody is told which sessions have news.
type nobody struct{}

func (nobody) Note(bot.SessionKey) {}

// fleet is the processes that live.
type fleet struct {
	t     *testing.T
	store *bottest.Store
	mu    sync.Mutex
	alive []string
	told  []string // what chats were told, by whom
	news  chan struct{}
}

func (f *fleet) lives(owner string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.alive, owner)
}

func (f *fleet) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.told)
}

// join starts a process.
func (f *fleet) join(name string) *process {
	f.t.Helper()
	f.mu.Lock()
	f.alive = append(f.alive, name)
	f.mu.Unlock()
	registry, err := tools.NewRegistry()
	if err != nil {
		f.t.Fatal(err)
	}
	client, err := mcp.New(mcp.Options{Registry: registry, WorkDir: f.t.TempDir(), Now: time.Now, Log: zerolog.Nop()})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) }) // nil
	p := &process{name: name}
	p.Handler = servers.New(servers.Deps{
		Setup:  servers.Setup{Channel: "telegram", Bot: "7", Owner: name, Shared: true, Lives: f.lives},
		Client: client, Store: f.store, Keeper: facts.Keeper{Store: f.store, Log: zerolog.Nop()}, Moves: &moves.Map{}, Audit: &ledger{}, Now: time.Now, Log: zerolog.Nop(),
		News: nobody{}, Wake: func(bot.Place) {}, Words: texts.Words{},
		EndGrants: func(context.Context, string) error { return nil },
		Send: func(ctx context.Context, row bot.Row, facts ...bot.Fact) {
			if _, err := f.store.Apply(ctx, &bot.Change{Send: []bot.Row{row}, Facts: facts}); err != nil {
				f.t.Error(err)
			}
			f.mu.Lock()
			f.told = append(f.told, name)
			f.mu.Unlock()
			f.news <- struct{}{}
		},
	})
	p.Open(ctx, nil)
	p.end = sync.OnceFunc(func() { p.Close(cancel); running.Wait() })
	f.t.Cleanup(p.end)
	return p
}

// die ends a process, which others find gone.
func (f *fleet) die(p *process) {
	p.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = slices.DeleteFunc(f.alive, func(name string) bool { return name == p.name })
}

// job stores one that a process has begun, or was about to begin.
func (f *fleet) job(message, owner string) {
	f.t.Helper()
	raw, err := json.Marshal(servers.Job{
		Verb: "remove", ID: "gone", Owner: owner, At: time.Now(), Session: "telegram/7/bot/1/0/0",
		Message: bot.Message{ID: message, Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.store.Apply(f.t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "mcp_job", Key: message, Value: string(raw)}}}); err != nil {
		f.t.Fatal(err)
	}
}

// look has processes look for jobs at the same time.
func (f *fleet) look(processes ...*process) {
	f.t.Helper()
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() {
			if err := p.TakeUp(f.t.Context()); err != nil {
				f.t.Error(err)
			}
		})
	}
	wg.Wait()
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, store: bottest.New(), news: make(chan struct{}, 100)}
}

// TestTakeUp: the job of a process that is gone is carried out by exactly one of those that live, that of a living one
// by nobody else; so is the job of the one that took it and died over it.
func TestTakeUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b, c := f.join("a"), f.join("b"), f.join("c")
	f.job("1", "a")
	for range 5 {
		f.look(b, c)
	}
	if got := f.said(); len(got) != 0 {
		t.Fatalf("the job of a living process was carried out by %v", got)
	}
	f.die(a)
	f.look(b, c, b, c)
	<-f.news
	f.look(b, c)
	// One that "x" had taken over from "w", and died over.
	if _, err := f.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{
		{Bucket: "mcp_job_by", Key: "2/", Value: "w"}, {Bucket: "mcp_job_by", Key: "2/w", Value: "x"},
	}}); err != nil {
		t.Fatal(err)
	}
	f.job("2", "a")
	f.look(b, c, b, c)
	<-f.news
	f.look(b, c)
	f.die(b)
	f.die(c)
	if got := f.said(); len(got) != 2 {
		t.Errorf("two jobs were carried out by %v", got)
	}
	left, err := f.store.FactsOf(t.Context(), "mcp_job", "", time.Now())
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestToldOnce: a chat is told once that a server went or came, however many processes see it, and again when it
// happens again.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	place := bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}
	const session = "telegram/7/bot/1/0/0"
	if _, err := f.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Place: &place}}}); err != nil {
		t.Fatal(err)
	}
	tell := func(p *process) func(mcp.Notice) { return p.Tell(t.Context()) }
	a, b := tell(f.join("a")), tell(f.join("b"))
	for _, kind := range []mcp.Kind{mcp.Away, mcp.Back, mcp.Withdrawn} {
		n := mcp.Notice{Server: "kind", Kind: kind, Text: string(kind), Sessions: []string{session}, Tools: []string{"kind:one"}}
		a(n)
		b(n)
	}
	rows, err := f.store.Rows(t.Context(), session, 100)
	if err != nil || len(rows) != 3 {
		t.Errorf("told %d times, %v", len(rows), err)
	}
	news, err := f.store.FactsOf(t.Context(), "news", session+"/", time.Now())
	if err != nil || len(news) != 3 {
		t.Errorf("the model is told %d times, %v", len(news), err)
	}
}
