package telegram_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// leading polls as one of several processes.
func (w *world) leading(t *testing.T, owner string, store telegram.HookStore, accept telegram.Accept, log *buffer, opts telegram.PollOptions) (stop func() error, leader *telegram.Leader) {
	t.Helper()
	leader = telegram.NewLeader(store, "1", owner, time.Now)
	opts.Lead, opts.Look, opts.Hold = leader.Lead, time.Millisecond, time.Second
	return poll(t, w.client, accept, log, opts), leader
}

// holder is who leads.
func holder(t *testing.T, store *bottest.Store) string {
	t.Helper()
	facts, err := store.FactsOf(t.Context(), "leader", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) == 0 {
		return ""
	}
	return facts[0].Value
}

// until waits for something.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatal("waited for ", what)
		case <-tick.C:
		}
	}
}

// TestLeaderPolls: of several processes one polls; when it ends, or is taken for dead, another one goes on, and every
// update is stored once.
func TestLeaderPolls(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	store, box := bottest.New(), newInbox(0)
	logs := map[string]*buffer{}
	stops := map[string]func() error{}
	leaders := map[string]*telegram.Leader{}
	for _, name := range []string{"a", "b", "c"} {
		logs[name] = &buffer{}
		stops[name], leaders[name] = w.leading(t, name, store, box.accept, logs[name], telegram.PollOptions{})
	}
	w.say("one", "two")
	box.wait(t, 2)
	first := holder(t, store)
	for name, log := range logs {
		if name != first {
			until(t, "a word about who polls", func() bool { return strings.Contains(log.String(), "another process of this service polls") })
		}
	}
	if err := stops[first](); err != nil {
		t.Fatal(err)
	}
	if again, err := leaders[first].Lead(t.Context()); !again || err != nil { // it has not given back yet
		t.Errorf("%v, %v", again, err)
	}
	if err := leaders[first].Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "another leader", func() bool { h := holder(t, store); return h != "" && h != first })
	w.say("three")
	box.wait(t, 3)
	// The second is taken for dead while it polls: what it had is another's.
	second := holder(t, store)
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "leader", Key: "poll/1", Value: "a fourth"}}}); err != nil {
		t.Fatal(err)
	}
	if err := leaders[second].Resign(t.Context()); err != nil || holder(t, store) != "a fourth" {
		t.Errorf("gave back what was not its own: %v, %q", err, holder(t, store))
	}
	if lead, err := leaders[second].Lead(t.Context()); lead || err != nil {
		t.Errorf("leads beside another: %v, %v", lead, err)
	}
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "leader", Key: "poll/1"}}}); err != nil {
		t.Fatal(err)
	}
	ids := w.say("four", "five")
	if got := box.wait(t, 5); got[4] != ids[1] {
		t.Errorf("stored %v", got)
	}
}

// TestTakingOver: the 409 of a process that led before is waited out; one that goes on is a foreign program's, and is
// named in words.
func TestTakingOver(t *testing.T) {
	t.Parallel()
	const waits, foreign = "has not quite ended", "does not share this database"
	for name, c := range map[string]struct {
		takeover      time.Duration
		says, silence string
	}{"a former leader": {0, waits, foreign}, "a foreign program": {time.Nanosecond, foreign, waits}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			log, box := &buffer{}, newInbox(0)
			w.AddFault(telegramtest.Fault{Method: "getUpdates", Kind: telegramtest.Fault409, Count: 2})
			stop, _ := w.leading(t, "a", bottest.New(), box.accept, log, telegram.PollOptions{Takeover: c.takeover})
			w.say("one")
			box.wait(t, 1)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if text := log.String(); !strings.Contains(text, c.says) || strings.Contains(text, c.silence) {
				t.Errorf("said:\n%s", text)
			}
		})
	}
}

// unreadable is a store that cannot be read for a while.
type unreadable struct {
	*bottest.Store
	mu   sync.Mutex
	away bool
}

func (r *unreadable) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return "", errors.New("the database is away")
	}
	return r.Store.Fact(ctx, bucket, key, now)
}

// TestNobodyLeads: without a store nobody polls, since nothing could be kept; then it goes on.
func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	store, box, log := &unreadable{Store: bottest.New(), away: true}, newInbox(0), &buffer{}
	w.leading(t, "a", store, box.accept, log, telegram.PollOptions{})
	until(t, "a word about the store", func() bool { return strings.Contains(log.String(), "updates cannot be stored") })
	if n := len(w.CallsOf("getUpdates")); n > 0 {
		t.Errorf("polled %d times without a store", n)
	}
	store.mu.Lock()
	store.away = false
	store.mu.Unlock()
	w.say("one")
	box.wait(t, 1)
}
