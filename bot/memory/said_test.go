package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/memory"
)

// talk stores entries of a session; each has the turn of its text's first word.
func talk(t *testing.T, store *bottest.Store, session string, entries ...journal.Entry) {
	t.Helper()
	lane, err := store.Lane(t.Context(), bot.SessionKey(session))
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		e := &entries[i]
		e.N, e.At = lane.Last+int64(i)+1, time.Date(2026, 3, 4, 0, 0, i, 0, time.UTC)
		if e.Turn == "" {
			e.Turn, _, _ = strings.Cut(e.Text, " ")
		}
		if e.Kind == journal.SummaryEntry && e.State == nil && e.Keeps > 0 {
			e.State = &journal.ConversationState{N: e.N, Summary: e.N}
		}
	}
	_, err = store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: bot.SessionKey(session), After: lane.Last, Entries: entries}})
	if err != nil {
		t.Fatal(err)
	}
}

func said(text string) journal.Entry { return journal.Entry{Kind: journal.UserEntry, Text: text} }

// TestFindsWhatWasSaid: in a conversation that was summed up, a search finds messages and former summaries that the model
// no longer reads, of this conversation alone.
func TestFindsWhatWasSaid(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	p := open(t, store, func(d *memory.Deps) { d.Journal = store })
	o := origin("1", "1")
	talk(t, store, o.Session, said("t0 the heron before /new"), journal.Entry{Kind: journal.SummaryEntry, Turn: "new"})
	talk(
		t, store, o.Session, said("t1 we call it heron, "+strings.Repeat("long ", 100)), journal.Entry{Turn: "t1", Kind: journal.AnswerEntry, Text: "heron it is"},
		journal.Entry{Turn: "t2", Kind: journal.UserEntry, Text: "t2 heron flagged", Flagged: true},
		journal.Entry{Turn: "t2", Child: "c", Kind: journal.UserEntry, Text: "t2 heron for the sub-agent"},
		journal.Entry{Turn: "t2", Kind: journal.ResultEntry, Call: "c", Text: "t2 heron of a tool"},
		journal.Entry{Turn: "t2", Kind: journal.AnswerEntry, Text: "fine weather"},
	)
	talk(t, store, origin("2", "2").Session, said("t1 heron of somebody else"), said("t3 now"), journal.Entry{Kind: journal.SummaryEntry, Text: "heron of theirs", Keeps: 1, Turn: "t3"})
	if got := p.search(o, "heron"); got != "Nothing is remembered here yet." {
		t.Errorf("not summed up, found %q", got)
	}
	talk(t, store, o.Session, said("t3 heron kept"), journal.Entry{Turn: "t3", Kind: journal.SummaryEntry, Text: "first summary: heron", Keeps: 1})
	talk(t, store, o.Session, said("turn heron now"), journal.Entry{Turn: "turn", Kind: journal.SummaryEntry, Text: "second summary: heron", Keeps: 1})
	p.save(o, "the heron is a bird", "")
	got := p.search(o, "heron")
	for _, want := range []string{"## Key facts (1 of 1)\n", "\n## Recalled messages (3 of 4)\n- ", "- heron it is (4 Mar 2026, assistant) [score: ", "- t3 heron kept (", "long … (", "\n## Session summaries (1 of 1)\n- first summary: heron ("} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for _, never := range []string{"before /new", "flagged", "sub-agent", "of a tool", "else", "theirs", "second summary", "heron now"} {
		if strings.Contains(got, never) {
			t.Errorf("%q in:\n%s", never, got)
		}
	}
	if got := p.search(o, "weather"); !strings.HasPrefix(got, "## Recalled messages (1 of 4)\n- fine weather") {
		t.Errorf("found %q", got)
	}
	if got := p.search(origin("1", "-5"), "heron"); got != "Nothing is remembered here yet." {
		t.Errorf("in the group, found %q", got)
	}
}

// TestFindsWhatWasLeftOut: where the model could not sum up, everything before the turn is searched.
func TestFindsWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	p := open(t, store, func(d *memory.Deps) { d.Journal = store })
	o := origin("1", "1")
	for i := range 40 {
		talk(t, store, o.Session, said(fmt.Sprintf("t%d heron number%d", i, i)))
	}
	talk(t, store, o.Session, journal.Entry{Turn: "t39", Kind: journal.AnswerEntry, Text: "yes", Unsummed: true}, said("turn which heron was number7"))
	if got := p.search(o, "number7"); !strings.HasPrefix(got, "## Recalled messages (1 of 41)\n- t7 heron number7 (") {
		t.Errorf("found %q", got)
	}
}
