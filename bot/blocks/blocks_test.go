package blocks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/blocks"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/anomaly"
)

var (
	_ anomaly.Store   = blocks.Keeper{}
	_ command.Blocks  = blocks.List{}
	_ blocks.Detector = (*anomaly.Detector)(nil)
)

var (
	ann = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}
	bob = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "2"}
)

// TestKeeper: a block is kept until it no longer matters, and is replaced by the next one of its tool and session; an
// entry that is unreadable or has no tool is ignored.
func TestKeeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		k := blocks.Keeper{Facts: facts.Bucket{Name: blocks.Bucket, Store: store, Now: time.Now}}
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		list := func(want ...tools.Block) {
			t.Helper()
			got, err := k.Blocks(t.Context())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("blocks (-want +got):\n%s%v", diff, err)
			}
		}
		list()
		now := time.Now().UTC()
		one := tools.Block{Tool: "a:*", Reason: reason.Plain("r"), Since: now, Until: now.Add(time.Minute), Times: 1}
		two := tools.Block{Tool: "b", Session: "s", Caller: "telegram:1", Reason: reason.Plain("r"), Since: now, Until: now.Add(time.Hour), Times: 2}
		check(k.Block(t.Context(), one))
		check(k.Block(t.Context(), two))
		check(k.Facts.Save(t.Context(), "c ", "{"))
		check(k.Facts.Save(t.Context(), "d ", `"an earlier version"`))
		list(one, two)
		one.Times = 2
		check(k.Block(t.Context(), one))
		list(one, two)
		check(k.Unblock(t.Context(), two))
		check(k.Unblock(t.Context(), tools.Block{Tool: "b", Session: "s"}))
		list(one)
		<-time.After(one.Forget().Sub(now) - time.Second)
		list(one)
		<-time.After(2 * time.Second)
		list()
	})
}

// known is a detector with these blocks.
type known []tools.Block

func (k known) Blocks() []tools.Block { return k }
func (k known) Lift(tool string) (list []tools.Block) {
	for _, b := range k {
		if b.Tool == tool {
			list = append(list, b)
		}
	}
	return list
}
func (known) Unblock(context.Context, string) (bool, error) { return false, nil }

func TestList(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	until := now.Add(time.Minute)
	k := blocks.Keeper{Facts: facts.Bucket{Name: blocks.Bucket, Now: func() time.Time { return now }}}
	l := blocks.List{Detector: known{{Tool: "a", Session: "s", Reason: reason.Plain("r"), Until: until}, {Tool: "a", Session: "t", Until: until}, {Tool: "a", Session: "s", Caller: "telegram:2", Until: until}, {Tool: "b", Until: until}}, Keeper: k}
	here := []texts.Blocked{{Tool: "a", Reason: reason.Plain("r"), Left: time.Minute}, {Tool: "b", Left: time.Minute}}
	if diff := cmp.Diff(here, l.Blocked("s", "telegram:1", false)); diff != "" {
		t.Errorf("of the session (-want +got):\n%s", diff)
	}
	all := []texts.Blocked{here[0], {Tool: "a", Left: time.Minute, Elsewhere: true}, {Tool: "a", Left: time.Minute, Elsewhere: true}, here[1]}
	if diff := cmp.Diff(all, l.Blocked("s", "telegram:1", true)); diff != "" {
		t.Errorf("of all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bot.Fact{k.Facts.Fact("a s", ""), k.Facts.Fact("a t", ""), k.Facts.Fact("a s/telegram:2", "")}, l.Lifted("a")); diff != "" {
		t.Errorf("lifted (-want +got):\n%s", diff)
	}
}

// lanes knows the sessions of Ann, one of another channel, and one that cannot be read.
type lanes struct{}

func (lanes) Lane(_ context.Context, session bot.SessionKey) (bot.Lane, error) {
	switch session {
	case "ann":
		return bot.Lane{Session: session, Place: ann}, nil
	case "elsewhere":
		return bot.Lane{Session: session, Place: bot.Place{Channel: "terminal"}}, nil
	default:
		return bot.Lane{}, errors.New("not read")
	}
}

// TestTell: the conversation and the operators are told; an operator in that conversation is told once; a session of
// another channel is not told here; a repeated report stores the same rows.
func TestTell(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	for session, want := range map[string][]bot.Place{"ann": {ann, bob}, "": {ann, bob}, "elsewhere": {ann, bob}, "broken": {ann, bob}} {
		var to []bot.Place
		keys := map[string]int{}
		teller := blocks.Teller{
			Channel: "telegram", Bot: "7", Operators: func() []bot.Place { return []bot.Place{ann, bob} }, Lanes: lanes{}, Now: func() time.Time { return now }, Log: zerolog.Nop(),
			Send: func(_ context.Context, row bot.Row, _ ...bot.Fact) {
				keys[row.Key]++
				if keys[row.Key] == 1 {
					to = append(to, row.Place)
				}
				if row.Content.Text == "" || row.Purpose != bot.Reply || row.Session == "" {
					t.Errorf("%q: row %+v", session, row)
				}
			},
		}
		for range 2 {
			teller.Tell(t.Context(), blocks.Event{Tool: "a", Session: session, Until: now.Add(time.Hour), Failures: 15, Samples: 20})
		}
		if diff := cmp.Diff(want, to); diff != "" {
			t.Errorf("%q (-want +got):\n%s", session, diff)
		}
	}
}
