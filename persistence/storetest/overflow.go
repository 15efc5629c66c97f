package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/overflow"
)

// Overflow runs the suite of overflow.Store. open returns an empty store that lives as long as its test and has room
// for some megabytes.
func Overflow(t *testing.T, open func(t *testing.T) overflow.Store) {
	t.Helper()
	for name, test := range map[string]func(*outputs){
		"an output is given back whole":          anOutputIsGivenBackWhole,
		"only its conversation reads an output":  onlyItsConversationReadsAnOutput,
		"an output is gone at its end":           anOutputIsGoneAtItsEnd,
		"a repeated call leaves one output":      aRepeatedCallLeavesOneOutput,
		"an id of another call is not taken":     anIDOfAnotherCallIsNotTaken,
		"what names nothing is refused":          whatNamesNothingIsRefused,
		"outputs are kept from many sides":       outputsAreKeptFromManySides,
		"a context that has ended keeps nothing": aContextThatHasEndedKeepsNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&outputs{T: t, Store: open(t)})
		})
	}
}

// outputs is one test with its store.
type outputs struct {
	*testing.T
	overflow.Store
}

// output returns the nth output of the suite.
func output(n int) overflow.Item {
	return overflow.Item{
		ID:      fmt.Sprintf("0f8fad5b-d9cb-469f-a165-7086%08d", n),
		Session: session,
		Turn:    "t1",
		Call:    fmt.Sprintf("c%d", n),
		Tool:    "bash",
		Source:  "https://example.com/",
		Text:    fmt.Sprintf("text %d", n),
		Created: start,
		Expires: start.Add(time.Hour),
	}
}

func (o *outputs) keep(items ...overflow.Item) {
	o.Helper()
	for _, item := range items {
		if err := o.Save(o.Context(), item); err != nil {
			o.Fatal(err)
		}
	}
}

// has checks that the item is stored unchanged.
func (o *outputs) has(want overflow.Item) {
	o.Helper()
	got, err := o.Load(o.Context(), want.Session, want.ID, start)
	if err != nil {
		o.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		o.Errorf("output (-want +got):\n%s", diff)
	}
}

func (o *outputs) lacks(session, id string, now time.Time) {
	o.Helper()
	if got, err := o.Load(o.Context(), session, id, now); !errors.Is(err, overflow.ErrNotFound) ||
		got != (overflow.Item{}) {
		o.Errorf("output %s of %q: got %+v, %v; want ErrNotFound", id, session, got, err)
	}
}

func anOutputIsGivenBackWhole(o *outputs) {
	for n, text := range []string{
		"short", "", "with \x00 and \n and \xff\xfe", strings.Repeat("häuser 🏘\n", 200_000),
	} {
		item := output(n)
		item.Text = text
		o.keep(item)
		o.has(item)
	}
	bare := overflow.Item{ID: output(9).ID, Session: "s", Call: "c"} // no turn, no source, no expiry
	o.keep(bare)
	o.has(bare)
	if _, err := o.Load(o.Context(), "s", bare.ID, farFuture); err != nil {
		o.Errorf("an output without an end has ended: %v", err)
	}
}

func onlyItsConversationReadsAnOutput(o *outputs) {
	mine, other := output(1), output(2)
	other.Session = another
	o.keep(mine, other)
	o.has(mine)
	o.has(other)
	o.lacks(another, mine.ID, start)
	o.lacks(session, other.ID, start)
	o.lacks("", mine.ID, start)
	o.lacks(session, output(3).ID, start)
	o.lacks(session, strings.ToUpper(mine.ID), start)
	o.lacks(session, "' OR 1=1 --", start)
}

func anOutputIsGoneAtItsEnd(o *outputs) {
	item := output(1)
	o.keep(item)
	if _, err := o.Load(o.Context(), session, item.ID, item.Expires.Add(-1)); err != nil {
		o.Errorf("before its end: %v", err)
	}
	o.lacks(session, item.ID, item.Expires)
	o.lacks(session, item.ID, farFuture)
}

func aRepeatedCallLeavesOneOutput(o *outputs) {
	first, again := output(1), output(2)
	again.Call, again.Text = first.Call, "said anew"
	turn, place := output(3), output(4) // the same call id in another turn and in another conversation
	turn.Call, turn.Turn = first.Call, "t2"
	place.Call, place.Session = first.Call, another
	o.keep(first, turn, place, again)
	o.has(again)
	o.has(turn)
	o.has(place)
	o.lacks(session, first.ID, start)
	again.Text = "and once more under the same id"
	o.keep(again)
	o.has(again)
}

func anIDOfAnotherCallIsNotTaken(o *outputs) {
	mine, foreign, older := output(1), output(1), output(2)
	foreign.Session, foreign.Text = another, "foreign"
	older.Session, older.Call = foreign.Session, foreign.Call
	o.keep(mine, older)
	if err := o.Save(o.Context(), foreign); err == nil {
		o.Error("an id was given twice")
	}
	o.has(mine)
	o.has(older) // the refused one has not replaced anything
	o.lacks(another, mine.ID, start)
}

func whatNamesNothingIsRefused(o *outputs) {
	for name, spoil := range map[string]func(*overflow.Item){
		"no id":         func(i *overflow.Item) { i.ID = "" },
		"no uuid":       func(i *overflow.Item) { i.ID = "../../etc/passwd" },
		"another form":  func(i *overflow.Item) { i.ID = strings.ToUpper(i.ID) },
		"with a prefix": func(i *overflow.Item) { i.ID = overflow.Prefix + i.ID },
		"no session":    func(i *overflow.Item) { i.Session = "" },
		"no call":       func(i *overflow.Item) { i.Call = "" },
	} {
		item := output(1)
		spoil(&item)
		if err := o.Save(o.Context(), item); err == nil {
			o.Errorf("%s: kept", name)
		}
		o.lacks(item.Session, item.ID, start)
	}
}

func outputsAreKeptFromManySides(o *outputs) {
	const sides = 32
	var wg sync.WaitGroup
	for n := range sides {
		wg.Go(func() {
			item := output(n)
			if err := o.Save(o.Context(), item); err != nil {
				o.Error(err)
			}
			if got, err := o.Load(o.Context(), session, item.ID, start); err != nil || got != item {
				o.Errorf("read back %+v (%v)", got, err)
			}
			shared := output(sides + n) // all of one call: only the last one is kept
			shared.Call = "shared"
			if err := o.Save(o.Context(), shared); err != nil {
				o.Error(err)
			}
		})
	}
	wg.Wait()
	found := 0
	for n := range sides {
		o.has(output(n))
		if _, err := o.Load(o.Context(), session, output(sides+n).ID, start); err == nil {
			found++
		}
	}
	if found != 1 {
		o.Errorf("%d outputs of one call", found)
	}
}

func aContextThatHasEndedKeepsNothing(o *outputs) {
	ctx, cancel := context.WithCancel(o.Context())
	cancel()
	if err := o.Save(ctx, output(1)); !errors.Is(err, context.Canceled) {
		o.Errorf("save: %v", err)
	}
	o.lacks(session, output(1).ID, start)
	o.keep(output(1))
	if _, err := o.Load(ctx, session, output(1).ID, start); !errors.Is(err, context.Canceled) {
		o.Errorf("load: %v", err)
	}
}
