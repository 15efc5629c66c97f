package telegramtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func ids(list []update) []int64 {
	var out []int64
	for _, u := range list {
		out = append(out, u.ID)
	}
	return out
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	// Five updates with ids 50..54; each row polls a fresh server.
	for name, row := range map[string]struct {
		params  p
		want    []int64
		pending int
	}{
		"from the start":     {p{}, []int64{50, 51, 52, 53, 54}, 5},
		"limit":              {p{"limit": 2}, []int64{50, 51}, 5},
		"limit above 100":    {p{"limit": 1000}, []int64{50, 51, 52, 53, 54}, 5},
		"offset confirms":    {p{"offset": 52}, []int64{52, 53, 54}, 3},
		"offset at the end":  {p{"offset": 55}, []int64{}, 0},
		"negative":           {p{"offset": -2}, []int64{53, 54}, 2},
		"negative, too many": {p{"offset": -20}, []int64{50, 51, 52, 53, 54}, 5},
		"beyond the end":     {p{"offset": 900}, []int64{50, 51, 52, 53, 54}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, telegramtest.Options{FirstID: 50})
			for range 5 {
				w.Say(ann, ann, telegramtest.Message{Text: "x"})
			}
			got := ids(w.poll(row.params))
			if got == nil {
				got = []int64{}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
			if n := w.PendingUpdates(); n != row.pending {
				t.Errorf("%d pending, want %d", n, row.pending)
			}
		})
	}
}

func TestHeldPollWakesUp(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{FirstID: 50})
	got := make(chan reply, 1)
	go func() { got <- w.post("getUpdates?timeout=50", "", nil) }()
	if err := w.WaitFor(t.Context(), w.Polling); err != nil {
		t.Fatal(err)
	}
	w.Say(ann, ann, telegramtest.Message{Text: "x"})
	if r := <-got; !r.OK || len(r.Result) < 10 {
		t.Errorf("held poll: %+v", r)
	}
	if w.Polling() {
		t.Error("the poll is still held")
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{Local: true, FirstID: 50})
	older := make(chan reply, 1)
	go func() { older <- w.post("getUpdates?timeout=50", "", nil) }()
	if err := w.WaitFor(t.Context(), w.Polling); err != nil {
		t.Fatal(err)
	}
	w.poll(nil) // the newer one wins
	if r := <-older; r.Code != 409 || r.Text != "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running" {
		t.Errorf("older poll: %+v", r)
	}
	go func() { older <- w.post("getUpdates?timeout=50", "", nil) }()
	if err := w.WaitFor(t.Context(), w.Polling); err != nil {
		t.Fatal(err)
	}
	w.must("setWebhook", p{"url": "http://127.0.0.1:1/hook"}, nil)
	if r := <-older; r.Code != 409 || r.Text != "Conflict: terminated by setWebhook request" {
		t.Errorf("poll during setWebhook: %+v", r)
	}
	w.refused("getUpdates", nil, 409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	w.must("deleteWebhook", nil, nil)
	w.poll(nil)
}

// TestAllowedUpdates: the list sticks until another one is given, and counts when the update is made.
func TestAllowedUpdates(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{FirstID: 50})
	id, _ := w.Say(ann, ann, telegramtest.Message{Text: "a"})
	react := func() int64 {
		t.Helper()
		n, err := w.React(ann, ann, id, "👍")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	edit := func() int64 {
		t.Helper()
		n, err := w.EditText(ann, ann, id, "b")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if react() != 0 {
		t.Error("a reaction came without being asked for")
	}
	w.poll(p{"allowed_updates": []string{"message", "message_reaction"}})
	if react() == 0 || edit() != 0 {
		t.Error("the explicit list was not obeyed")
	}
	w.poll(nil) // sticky
	if react() == 0 || edit() != 0 {
		t.Error("the list did not stick")
	}
	w.poll(p{"allowed_updates": []string{}})
	if react() != 0 || edit() == 0 {
		t.Error("the empty list must mean the default")
	}
	if got := ids(w.poll(nil)); len(got) != 4 {
		t.Errorf("what was allowed when made must stay: %v", got)
	}
}

func TestLifetimesInTheQueue(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	m := w.send(ann, "x", keyboard(p{"text": "A", "callback_data": "a"}))
	w.Say(ann, ann, telegramtest.Message{Text: "x"})
	if _, err := w.PressButton(ann, ann, m, "A"); err != nil {
		t.Fatal(err)
	}
	w.clock.add(149 * time.Second)
	if n := w.PendingUpdates(); n != 2 {
		t.Errorf("after 149 s: %d pending, want 2", n)
	}
	w.clock.add(time.Second)
	if n := w.PendingUpdates(); n != 1 {
		t.Errorf("after 150 s the press must be gone: %d pending", n)
	}
	w.clock.add(24*time.Hour - 150*time.Second)
	if n := w.PendingUpdates(); n != 0 {
		t.Errorf("after a day: %d pending", n)
	}
}

func TestJumpedIDs(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{FirstID: 50})
	w.Say(ann, ann, telegramtest.Message{Text: "x"})
	if err := w.JumpID(10); err == nil {
		t.Error("jumped with an update pending")
	}
	w.poll(p{"offset": 51})
	if err := w.JumpID(10); err != nil {
		t.Fatal(err)
	}
	w.Say(ann, ann, telegramtest.Message{Text: "lower"})
	if got := ids(w.poll(p{"offset": 51})); len(got) != 1 || got[0] != 10 {
		t.Errorf("after a jump down: %v", got)
	}
	if got := w.poll(p{"offset": 11}); len(got) != 0 || w.PendingUpdates() != 0 {
		t.Errorf("the lower id was not confirmed: %v", got)
	}
}

func TestDuplicatesAndOddities(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{FirstID: 50})
	_, id := w.Say(ann, ann, telegramtest.Message{Text: "x"})
	w.poll(p{"offset": id + 1})
	if err := w.Redeliver(id); err != nil {
		t.Fatal(err)
	}
	if err := w.Redeliver(999); err == nil {
		t.Error("redelivered an update that never was")
	}
	if got := ids(w.poll(p{"offset": id + 1})); len(got) != 1 || got[0] != id {
		t.Errorf("duplicate: %v", got)
	}
	if got := w.poll(p{"offset": id + 1}); len(got) != 0 {
		t.Errorf("a duplicate must come once: %v", got)
	}
	odd, err := w.RawUpdate([]byte(`{"brand_new_kind":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.RawUpdate([]byte(`[]`)); err == nil {
		t.Error("took an update that is no object")
	}
	own, err := w.RawUpdate([]byte(`{"update_id":777,"x":{}}`))
	if err != nil || own != 777 {
		t.Errorf("own update id: %d %v", own, err)
	}
	if diff := cmp.Diff([]int64{odd, 777}, ids(w.poll(nil))); diff != "" {
		t.Error(diff)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	w.AddFault(telegramtest.Fault{Method: "getMe", Kind: telegramtest.FaultHang})
	got := make(chan reply, 2)
	go func() { got <- w.post("getUpdates?timeout=50", "", nil) }()
	go func() { got <- w.post("getMe", "", nil) }()
	if err := w.WaitFor(t.Context(), func() bool { return w.Polling() && w.InFlight() == 2 }); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for range 2 {
		if r := <-got; r.err == nil {
			t.Errorf("answered after Close: %+v", r)
		}
	}
	w.Close() // again is fine
	if _, err := w.Start(); err == nil {
		t.Error("started after Close")
	}
}

func TestWaitChangeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.WaitChange(ctx, w.Version()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	v := w.Version()
	w.Say(ann, ann, telegramtest.Message{Text: "x"})
	if got, err := w.WaitChange(t.Context(), v); err != nil || got <= v {
		t.Errorf("got %d %v after %d", got, err, v)
	}
}
