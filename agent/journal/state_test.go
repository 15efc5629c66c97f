package journal_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/source"
)

// turnOf is a turn of a person with batches of so many calls each.
func turnOf(turn, caller string, batches ...int) []journal.Entry {
	list := []journal.Entry{{Turn: turn, Kind: journal.UserEntry, Caller: caller}}
	for _, n := range batches {
		list = append(list, journal.Entry{Turn: turn, Kind: journal.AssistantEntry, Uses: make([]journal.Use, n)})
	}
	return append(list, journal.Entry{Turn: turn, Kind: journal.AnswerEntry})
}

// written is the ConversationState after these entries, numbered from the one that it counts last.
func written(s journal.ConversationState, turns ...[]journal.Entry) journal.ConversationState {
	for _, entries := range turns {
		for _, e := range entries {
			e.N = s.N + 1
			s = s.After(e)
		}
	}
	return s
}

func of(s journal.ConversationState, caller string) string {
	batches, calls := s.Of(caller)
	return fmt.Sprint(batches, "/", calls)
}

// TestCountsByPerson: what a person's turns used counts for that person alone; what others say within a turn does not
// make it theirs; what nobody knows whose it was counts for everybody.
func TestCountsByPerson(t *testing.T) {
	t.Parallel()
	s := written(journal.ConversationState{}, turnOf("1", "ann", 2, 1), turnOf("2", "ben", 3))
	joined := turnOf("3", "ann", 1)
	joined = append(joined[:1:1], append([]journal.Entry{{Turn: "3", Kind: journal.UserEntry, Caller: "ben"}}, joined[1:]...)...)
	s = written(s, joined)
	got := []string{of(s, "ann"), of(s, "ben"), of(s, "eve"), of(s, "")}
	if diff := cmp.Diff([]string{"3/4", "1/3", "0/0", "0/0"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s = written(s, turnOf("4", "", 5))
	got = []string{of(s, "ann"), of(s, "ben"), of(s, "eve"), of(s, "")}
	if diff := cmp.Diff([]string{"4/9", "2/8", "1/5", "1/5"}, got); diff != "" {
		t.Errorf("with a turn of nobody (-want +got):\n%s", diff)
	}
	plans := turnOf("4", "ann", 2, 1)
	plans[1].Uses[0].Plans, plans[2].Uses[0].Plans = true, true // one beside a call, one alone
	s = written(s, plans)
	if got := of(s, "ann"); got != "5/10" {
		t.Errorf("with plans: %s", got)
	}
	s = written(s, []journal.Entry{{Kind: journal.SummaryEntry}}, turnOf("5", "ben", 1))
	if got := []string{of(s, "ann"), of(s, "ben")}; got[0] != "0/0" || got[1] != "1/1" {
		t.Errorf("after a new beginning: %q", got)
	}
}

// TestCountsOfOtherVersions: a ConversationState of a version that does not tell people apart counts for everybody,
// also where that version has read and written again what this one had told apart.
func TestCountsOfOtherVersions(t *testing.T) {
	t.Parallel()
	said := written(journal.ConversationState{}, turnOf("1", "ann", 2), turnOf("2", "ben", 1))
	var before struct { // what that version knows of a ConversationState
		N       int64 `json:"n"`
		Batches int   `json:"batches"`
		Calls   int   `json:"calls"`
	}
	through := func(from, to any) {
		t.Helper()
		raw, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(raw, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	through(said, &before)
	before.N, before.Batches, before.Calls = before.N+3, before.Batches+1, before.Calls+4
	var now journal.ConversationState
	through(before, &now)
	now = written(now, turnOf("3", "ann", 1))
	if got := []string{of(now, "ann"), of(now, "ben")}; got[0] != "4/8" || got[1] != "3/7" {
		t.Errorf("counts %q", got)
	}
	var again journal.ConversationState
	if through(said, &again); !cmp.Equal(said, again) {
		t.Errorf("read back (-written +read):\n%s", cmp.Diff(said, again))
	}
}

// TestMostCallers: of too many people, those who used tools longest ago are counted for everybody, and nothing is
// forgotten.
func TestMostCallers(t *testing.T) {
	t.Parallel()
	var s journal.ConversationState
	for i := range journal.MostCallers + 2 {
		s = written(s, turnOf(fmt.Sprint(i), fmt.Sprint("p", i), 1))
		if i == 5 {
			s = written(s, turnOf("again", "p0", 1))
		}
	}
	if got := []string{of(s, "p0"), of(s, "p1"), of(s, "p3"), of(s, "nobody")}; len(s.By) != journal.MostCallers || got[0] != "4/4" || got[1] != "2/2" || got[2] != "3/3" || got[3] != "2/2" {
		t.Errorf("%d people: %q", len(s.By), got)
	}
}

// TestCountsAddUp: whatever is written, what counts for a person is what their turns used and what nobody's did.
func TestCountsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s journal.ConversationState
		own := map[string]int{}
		caller := ""
		turn := ""
		for _, e := range draw(t) {
			e.State = nil // a summary forgets everything here
			s = s.After(e)
			switch {
			case e.Begins():
				clear(own)
			case e.Kind == journal.UserEntry && e.Turn != turn:
				turn, caller = e.Turn, e.Caller
			case e.Kind == journal.AssistantEntry:
				own[caller] += len(e.Uses)
			}
			for _, name := range []string{"ann", "ben", "eve"} {
				want := own[name] + own[""]
				if _, calls := s.Of(name); calls != want {
					t.Fatalf("entry %d: %d calls count for %s, want %d", e.N, calls, name, want)
				}
			}
		}
	})
}

// TestMarks: what clears a mark clears that of the source it names, and no other; what is flagged again counts again.
func TestMarks(t *testing.T) {
	t.Parallel()
	flagged := func(from source.Source) journal.Entry {
		return journal.Entry{Turn: "t", Kind: journal.ResultEntry, Tool: "read", Source: from, Flagged: true}
	}
	cleared := func(source string) journal.Entry {
		return journal.Entry{Turn: "t", Kind: journal.ResultEntry, Tool: "bash", Cleared: source, By: "ann"}
	}
	both := flagged("c")
	both.Cleared = "a"
	for name, tt := range map[string]struct {
		entries []journal.Entry
		want    string
	}{
		"nothing":             {nil, ""},
		"one":                 {[]journal.Entry{flagged("a")}, "a"},
		"cleared":             {[]journal.Entry{flagged("a"), cleared("a")}, ""},
		"another":             {[]journal.Entry{flagged("a"), cleared("b")}, "a"},
		"the earlier one":     {[]journal.Entry{flagged("a"), flagged("b"), cleared("a")}, "b"},
		"the later one":       {[]journal.Entry{flagged("a"), flagged("b"), cleared("b")}, "a"},
		"both":                {[]journal.Entry{flagged("a"), flagged("b"), cleared("b"), cleared("a")}, ""},
		"flagged twice":       {[]journal.Entry{flagged("a"), flagged("b"), flagged("a"), cleared("a"), cleared("b")}, ""},
		"flagged again":       {[]journal.Entry{flagged("a"), cleared("a"), flagged("a")}, "a"},
		"and flagged by that": {[]journal.Entry{flagged("a"), both}, "c"},
		"words of old":        {[]journal.Entry{flagged("file:a"), cleared("the file a")}, ""},
		"another file":        {[]journal.Entry{flagged("file:a"), cleared("the file b")}, "file:a"},
		"two contacts":        {[]journal.Entry{flagged("item:poll"), flagged("item:contact"), cleared("item:contact")}, "item:poll"},
		"a mark without name": {[]journal.Entry{{Turn: "t", Kind: journal.ResultEntry, Tool: "bash", Flagged: true}}, "bash"},
	} {
		if got := written(journal.ConversationState{}, tt.entries); got.Suspicious != tt.want {
			t.Errorf("%s: %q, want %q", name, got.Suspicious, tt.want)
		}
	}
	var s journal.ConversationState
	for i := range 100 {
		s = written(s, []journal.Entry{flagged(source.Source(fmt.Sprint("s", i)))})
	}
	n := 0
	for ; s.Suspicious != ""; n++ {
		s = written(s, []journal.Entry{cleared(s.Suspicious)})
	}
	if n != 17 {
		t.Errorf("%d marks had to be cleared", n)
	}
}
