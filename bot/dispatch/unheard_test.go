package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// overheard keeps what is said in one group, and gives all of it to each turn.
type overheard struct {
	store *countingChanges
	chat  string
}

const heardBucket = "heard"

func (o *overheard) Follow(context.Context) error { return nil }

func (o *overheard) Wants(msg *bot.Message) bool { return msg.Place.Chat == o.chat }

func (o *overheard) Keep(_ context.Context, msg *bot.Message) ([]bot.Fact, error) {
	return []bot.Fact{{Bucket: heardBucket, Key: msg.ID, Value: msg.Text}}, nil
}

func (o *overheard) Since(ctx context.Context, msg *bot.Message, _ bot.SessionKey) (t turn.Talk, err error) {
	if !o.Wants(msg) {
		return t, nil
	}
	list, err := o.store.FactsOf(ctx, heardBucket, "", time.Now())
	for _, f := range list {
		t.Said = append(t.Said, journal.Remark{Caller: "test:2", Name: "2", Text: f.Value})
		t.Told = append(t.Told, bot.Fact{Bucket: heardBucket, Key: f.Key})
	}
	return t, err
}

// countingChanges counts them.
type countingChanges struct {
	bot.Store
	changes atomic.Int64
}

func (c *countingChanges) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	c.changes.Add(1)
	return c.Store.Apply(ctx, change)
}

// TestUnheard: a message that is not for the bot is stored without its content, where its group does not want more. It
// costs as many Changes where it does; then the turn that is addressed next reads it, also if both come at once, but
// not what somebody said to whom the bot does not talk.
func TestUnheard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		store := &countingChanges{Store: w.store}
		w.guard.out["3"] = true
		w.parts = func(p *dispatch.Parts) { p.Store, p.Talk = store, &overheard{store, "wants"} }
		p := w.start()
		synctest.Wait()
		changes := map[string]int64{}
		for _, chat := range []string{"other", "wants"} {
			before := store.changes.Load()
			aside := w.group(chat, "2", "the secret of "+chat)
			aside.Addressed = false
			w.accept(p, aside)
			changes[chat] = store.changes.Load() - before
			a, err := w.store.ArrivalOf(t.Context(), "test", "7", aside.ID)
			if err != nil || strings.Contains(string(a.Raw), "secret") || strings.Contains(string(a.Raw), "test:2") {
				t.Errorf("%s: %s is stored, %v", chat, a.Raw, err)
			}
		}
		if changes["other"] != changes["wants"] {
			t.Errorf("Changes: %v", changes)
		}
		stranger, at, question := w.group("wants", "3", "not kept"), w.group("wants", "2", "at once"), w.group("wants", "1", "what is it?")
		stranger.Addressed, at.Addressed = false, false
		w.accept(p, stranger, at, question)
		tail, err := w.store.Tail(t.Context(), question.Place.SessionKey("1"), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		want := []journal.Remark{{Caller: "test:2", Name: "2", Text: "the secret of wants"}, {Caller: "test:2", Name: "2", Text: "at once"}}
		if diff := cmp.Diff(want, tail.Entries[0].Talk); diff != "" {
			t.Error(diff)
		}
		if list, err := w.store.FactsOf(t.Context(), heardBucket, "", time.Now()); err != nil || len(list) != 0 {
			t.Errorf("%v would be told again, %v", list, err)
		}
		elsewhere := w.group("other", "1", "and here?")
		w.accept(p, elsewhere)
		if tail, err = w.store.Tail(t.Context(), elsewhere.Place.SessionKey("1"), 1<<20); err != nil || len(tail.Entries[0].Talk) > 0 {
			t.Errorf("%+v, %v", tail.Entries, err)
		}
	})
}
