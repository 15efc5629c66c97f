package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/source"
)

// draw generates a journal of some turns. Some ends of turns carry the correct ConversationState.
func draw(t *rapid.T) []journal.Entry {
	var entries []journal.Entry
	var soFar journal.ConversationState
	add := func(e journal.Entry, carries bool) {
		e.N = int64(len(entries) + 1)
		soFar = soFar.After(e)
		if carries {
			said := soFar
			e.State = &said
		}
		entries = append(entries, e)
	}
	text := rapid.SampledFrom([]string{"", "short", strings.Repeat("long ", 300)})
	least := 0 // a summary is written from what an earlier one keeps
	shorten := func(turn string, whole []int) {
		from := max(least, whole[max(0, len(whole)-1-rapid.IntRange(0, 2).Draw(t, "kept"))])
		if rapid.IntRange(0, 5).Draw(t, "shortens") == 0 {
			least = from
			add(journal.Entry{
				Turn: turn, Kind: journal.SummaryEntry, Text: "what was", Keeps: len(entries) - from, Flagged: rapid.Bool().Draw(t, "suspicious"),
			}, true)
		}
	}
	var starts []int // of the turns of this conversation
	for i := range rapid.IntRange(0, 12).Draw(t, "turns") {
		turn := fmt.Sprint("t", i)
		if rapid.IntRange(0, 9).Draw(t, "begins") == 0 {
			begins(t, soFar, add)
			starts = nil
		}
		starts = append(starts, len(entries))
		caller := rapid.SampledFrom([]string{"", "ann", "ben"})
		add(journal.Entry{
			Turn: turn, Kind: journal.UserEntry, Text: text.Draw(t, "said"), Flagged: rapid.IntRange(0, 9).Draw(t, "news") == 0, Caller: caller.Draw(t, "caller"),
		}, false)
		for range rapid.IntRange(0, 3).Draw(t, "batches") {
			add(journal.Entry{Turn: turn, Kind: journal.AssistantEntry, Uses: make([]journal.Use, rapid.IntRange(1, 3).Draw(t, "uses"))}, false)
			if rapid.IntRange(0, 3).Draw(t, "joins") == 0 {
				add(journal.Entry{Turn: turn, Kind: journal.UserEntry, Text: "and", Caller: caller.Draw(t, "joined")}, false)
			}
			add(journal.Entry{Turn: turn, Kind: journal.StartedEntry, Tool: "a"}, false)
			add(journal.Entry{
				Turn: turn, Kind: journal.ResultEntry, Tool: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tool"), Failed: rapid.Bool().Draw(t, "failed"),
				Flagged: rapid.IntRange(0, 5).Draw(t, "flagged") == 0, Source: source.Source(fmt.Sprint("page ", i)), Text: text.Draw(t, "result"),
				Touched: rapid.SliceOfN(rapid.SampledFrom([]string{"/x", "/y", "/z"}), 0, 2).Draw(t, "touched"),
			}, false)
			shorten(turn, starts)
		}
		add(journal.Entry{Turn: turn, Kind: journal.AnswerEntry, Text: text.Draw(t, "answer")}, rapid.Bool().Draw(t, "carries"))
	}
	return entries
}

// begins adds a reset, a new beginning or a summary of earlier entries.
func begins(t *rapid.T, soFar journal.ConversationState, add func(journal.Entry, bool)) {
	e := journal.Entry{Turn: "begins", Kind: journal.SummaryEntry}
	switch rapid.SampledFrom([]string{"reset", "anew", "summary"}).Draw(t, "how") {
	case "reset":
		e.Kind = journal.ResetEntry
	case "summary":
		e.Text, e.State = "what was", &soFar
	}
	add(e, false)
}

// back reads a journal from its end and returns how many entries it took.
func back(entries []journal.Entry, room int) (tail journal.Tail, taken int) {
	b := journal.Back{Room: room}
	for _, e := range slices.Backward(entries) {
		taken++
		if !b.Take(e) {
			break
		}
	}
	tail = b.Tail()
	if n := b.Wants(); n > 0 {
		tail = tail.With(entries[n-1])
	}
	return tail, taken
}

// bare returns a journal as it was written before entries carried a ConversationState.
func bare(entries []journal.Entry) []journal.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if !entries[i].Begins() {
			entries[i].State = nil
		}
	}
	return entries
}

func rooms(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 1500, 6000, 1 << 20}).Draw(t, "room")
}

// The tail alone yields everything that the whole journal does, and old journals yield the same as new ones.
func TestTheTailTellsWhatTheWholeDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := draw(t)
		tail, _ := back(entries, rooms(t))
		if len(tail.Entries) == 0 {
			return
		}
		first := max(tail.Before.N, tail.Entries[0].N)
		var whole journal.ConversationState
		for i := range entries {
			whole = whole.After(entries[i])
			if n := entries[i].N; n >= first {
				if diff := cmp.Diff(whole, tail.StateAt(n), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("standing at %d (-whole +tail):\n%s", n, diff)
				}
			}
		}
		if tail.Last() != int64(len(entries)) {
			t.Errorf("last %d of %d", tail.Last(), len(entries))
		}
	})
}

// Whatever entries carry a ConversationState, the same entries are read: whole turns, as many
// as fit, and no more than needed.
func TestTheTailIsWholeTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries, room := draw(t), rooms(t)
		tail, taken := back(entries, room)
		old, _ := back(bare(entries), room)
		last := int64(len(entries))
		if diff := cmp.Diff(old.StateAt(last), tail.StateAt(last), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what was carried changes what it has come to:\n%s", diff)
		}
		if diff := cmp.Diff(old.Entries, bare(tail.Entries), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what was carried changes what is read:\n%s", diff)
		}
		list := tail.Entries
		front := false // a summary in front of a gap
		if len(list) > 1 && (list[0].Begins() || list[0].Shortens()) && list[1].N != list[0].N+1 {
			list, front = list[1:], true
		}
		if len(list) == 0 {
			return
		}
		first, size := list[0].N, 0
		if first > 1 && !list[0].Begins() && entries[first-2].Turn == list[0].Turn {
			t.Errorf("the tail begins in the middle of a turn, at %d", first)
		}
		for i := range list {
			if size += list[i].Size(); list[i].N != first+int64(i) {
				t.Fatalf("a gap at %d", list[i].N)
			}
		}
		if s, at := journal.Summary(list); s != nil && s.Shortens() && list[at].N != first {
			t.Errorf("the tail begins with %d, before %d, which is what the summary keeps", first, list[at].N)
		} else if whole := first == 1 || list[0].Begins() || s != nil && !front && first == s.Floor()+1; !whole && size < room {
			t.Errorf("%d bytes of %d, and more was there", size, room)
		}
		if last := slices.IndexFunc(list, func(e journal.Entry) bool { return e.Turn != list[0].Turn }); last > 0 && list[0].Text != "what was" {
			for i := range list[:last] {
				size -= list[i].Size()
			}
			if size >= room {
				t.Errorf("a turn too many: %d bytes of %d without the first", size, room)
			}
		}
		if taken < len(list) || taken > len(entries) {
			t.Errorf("%d entries taken for %d", taken, len(list))
		}
	})
}

// A tail that is cut equals the tail that would have been read, even after it has grown.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries, room := draw(t), rooms(t)
		at := rapid.IntRange(0, len(entries)).Draw(t, "read at")
		kept, _ := back(entries[:at], room)
		for _, e := range entries[at:] {
			if e.Begins() { // nothing before it is kept then
				t.Skip("begins anew meanwhile")
			}
			kept.Entries = append(kept.Entries, e)
		}
		want, _ := back(entries, room)
		got := kept.Cut(room)
		if diff := cmp.Diff(want.Entries, got.Entries, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-read +cut):\n%s", diff)
		}
		last := int64(len(entries))
		if diff := cmp.Diff(want.StateAt(last), got.StateAt(last), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("standing (-read +cut):\n%s", diff)
		}
	})
}

// An entry that carries a ConversationState ends the reading.
func TestReadingEnds(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 2000, 20_000} {
		var entries []journal.Entry
		var soFar journal.ConversationState
		for i := range n {
			e := journal.Entry{N: int64(i + 1), Turn: fmt.Sprint(i / 4), Kind: journal.UserEntry}
			soFar = soFar.After(e)
			if i%32 == 31 {
				said := soFar
				e.State = &said
			}
			entries = append(entries, e)
		}
		if _, taken := back(entries, 5*entries[0].Size()); taken > 33 {
			t.Errorf("%d of %d entries taken", taken, n)
		}
		if _, taken := back(bare(entries), 5*entries[0].Size()); taken != n {
			t.Errorf("%d of %d entries of an old journal taken", taken, n)
		}
	}
}

func TestTouchedIsBounded(t *testing.T) {
	t.Parallel()
	var s journal.ConversationState
	for i := range 10 * journal.MostTouched {
		before := s
		s = s.After(journal.Entry{N: int64(i + 1), Kind: journal.ResultEntry, Touched: []string{fmt.Sprint(i), "again"}})
		if i == 0 && len(before.Touched) > 0 {
			t.Error("the state before has changed")
		}
	}
	if n := len(s.Touched); n != journal.MostTouched || s.Touched[n-1] != "again" || s.Touched[n-2] != fmt.Sprint(10*journal.MostTouched-1) {
		t.Errorf("%d paths, %q", n, s.Touched[max(0, n-3):])
	}
}
