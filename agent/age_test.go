package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
)

// still is a journal whose end was read before, and to which nothing is added.
type still struct{ tail journal.Tail }

func (s still) Load(context.Context, int) (journal.Tail, error) {
	return journal.Tail{Before: s.tail.Before, Entries: slices.Clip(s.tail.Entries)}, nil
}

func (still) Append(_ context.Context, entries ...journal.Entry) ([]journal.Entry, error) {
	return entries, nil
}

// BenchmarkAge runs turns of conversations of several ages, of which the end has been read.
func BenchmarkAge(b *testing.B) {
	for _, entries := range []int{2, 20, 200, 20_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			reply := &llm.Response{Text: "Done", Stop: llm.StopEnd}
			w := newWorld(b, chatFunc(func(context.Context, *llm.Request, func(string)) (*llm.Response, error) { return reply, nil }), "")
			w.shelf.entries = nil
			w.shelf.keep(past(entries / 4)...)
			w.shelf.keep(said("now"))
			tail, err := (&handle{shelf: w.shelf}).Load(b.Context(), 512<<10)
			if err != nil {
				b.Fatal(err)
			}
			runner := agent.NewRunner(w.deps, w.limits)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if _, err := runner.Run(b.Context(), w.turn, still{tail}, w.watch); err != nil {
					b.Fatal(err)
				}
				w.watch.events = w.watch.events[:0]
			}
		})
	}
}
