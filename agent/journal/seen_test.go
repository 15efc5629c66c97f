package journal_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/netrule"
)

const page = "https://a.example/x"

// TestAddresses: who has brought an address. What the assistant or a command has written brings none.
func TestAddresses(t *testing.T) {
	t.Parallel()
	user := func(change func(e *journal.Entry)) []journal.Entry {
		e := journal.Entry{Kind: journal.UserEntry, Text: "see " + page + "."}
		change(&e)
		return []journal.Entry{e}
	}
	seen := netrule.KeysOf(page)
	reads := journal.Entry{Kind: journal.ResultEntry, Tool: "read", Touched: []string{"/w/dir/a"}, Seen: seen}
	wrote := func(paths ...string) journal.Entry {
		return journal.Entry{Kind: journal.ResultEntry, Tool: "write", Touched: paths, Wrote: true}
	}
	many := make([]journal.Entry, journal.MostMade)
	for i := range many {
		many[i] = wrote(fmt.Sprint("/w/", i))
	}
	for name, tt := range map[string]struct {
		entries    []journal.Entry
		said, seen bool
	}{
		"written":              {user(func(*journal.Entry) {}), true, false},
		"spoken":               {user(func(e *journal.Entry) { e.Text, e.Parts = "", []llm.Part{{Text: page, Own: true}} }), true, false},
		"forwarded":            {user(func(e *journal.Entry) { e.Foreign = "a forwarded message" }), false, true},
		"quoted":               {user(func(e *journal.Entry) { e.Text, e.Quote = "", &journal.Quote{Text: page} }), false, true},
		"our own, quoted":      {user(func(e *journal.Entry) { e.Text, e.Quote = "", &journal.Quote{Text: page, Own: true} }), false, false},
		"a document":           {user(func(e *journal.Entry) { e.Text, e.Parts = "", []llm.Part{{Kind: llm.TextPart, Text: page}} }), false, true},
		"scheduled":            {user(func(e *journal.Entry) { e.Scheduled = true }), false, false},
		"for a sub-agent":      {user(func(e *journal.Entry) { e.Child = "1.0" }), false, false},
		"from the background":  {user(func(e *journal.Entry) { e.Text, e.News = "", page }), false, false},
		"recalled":             {user(func(e *journal.Entry) { e.Text, e.Recalled = "", &journal.Recalled{Text: page} }), false, false},
		"answered":             {[]journal.Entry{{Kind: journal.AnswerEntry, Text: page}}, false, false},
		"summed up":            {[]journal.Entry{{Kind: journal.SummaryEntry, Text: page, Keeps: 1}}, false, false},
		"a page":               {[]journal.Entry{{Kind: journal.ResultEntry, Tool: "fetch", Seen: seen}}, false, true},
		"an answer in words":   {[]journal.Entry{{Kind: journal.ResultEntry, Tool: "ask", Text: page, Words: []string{page}}}, true, false},
		"of a sub-agent":       {[]journal.Entry{{Kind: journal.ResultEntry, Child: "1.0", Tool: "ask", Words: []string{page}}}, false, false},
		"a file":               {[]journal.Entry{reads}, false, true},
		"a file written here":  {[]journal.Entry{wrote("/w/dir/a"), reads}, false, false},
		"in a moved directory": {[]journal.Entry{wrote("/w/dir"), reads}, false, false},
		"another file":         {[]journal.Entry{wrote("/w/dir2"), reads}, false, true},
		"after a command":      {[]journal.Entry{wrote(), reads}, false, false},
		"after many":           {append(many[:journal.MostMade:journal.MostMade], wrote("/w/z"), reads), false, false},
		"then written":         {[]journal.Entry{reads, wrote("/w/dir/a")}, false, true},
	} {
		for i := range tt.entries {
			tt.entries[i].N = int64(i + 1)
		}
		s := journal.ConversationState{}.After(tt.entries...)
		if s.Said.Has(page) != tt.said || s.Seen.Has(page) != tt.seen {
			t.Errorf("%s: said %t, seen %t", name, s.Said.Has(page), s.Seen.Has(page))
		}
		over := s.After(journal.Entry{N: s.N + 1, Kind: journal.SummaryEntry})
		if over.Said.Len()+over.Seen.Len()+len(over.Made) > 0 || over.Wrote {
			t.Errorf("%s: a new conversation knows %+v", name, over)
		}
	}
}

// TestAddressesOfReducedEntries: an entry of which only what counts was kept counts the same.
func TestAddressesOfReducedEntries(t *testing.T) {
	t.Parallel()
	entries := []journal.Entry{
		{Turn: "a", Kind: journal.UserEntry, Text: page, Quote: &journal.Quote{Text: "https://b.example/"}},
		{Turn: "a", Kind: journal.ResultEntry, Tool: "write", Touched: []string{"/w/a"}, Wrote: true, Brought: true},
		{Turn: "a", Kind: journal.ResultEntry, Tool: "fetch", Seen: netrule.KeysOf("https://c.example/"), Source: "https://c.example", Brought: true},
		{Turn: "b", Kind: journal.UserEntry, Text: "https://d.example/", Foreign: "a forwarded message"},
		{Turn: "c", Kind: journal.UserEntry, Text: "hi"},
	}
	back := journal.Back{}
	for i := len(entries) - 1; i >= 0; i-- {
		entries[i].N = int64(i + 1)
		back.Take(entries[i])
	}
	tail := back.Tail()
	if len(tail.Entries) != 1 {
		t.Fatalf("%d entries were taken", len(tail.Entries))
	}
	if diff := cmp.Diff(journal.ConversationState{}.After(entries...), tail.StateAt(tail.Last())); diff != "" {
		t.Error(diff)
	}
}
