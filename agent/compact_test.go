package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/summary"
	"github.com/zephbot/zephbot/agent/window"
)

// scribe sums up conversations: it writes down the lines of the text that begin with a name of a person and contain
// "decided", after those of the earlier summary.
type scribe struct {
	talks []agent.Talk
	err   error
}

func (s *scribe) sumUp(_ context.Context, talk agent.Talk) (string, error) {
	s.talks = append(s.talks, talk)
	if s.err != nil {
		return "", s.err
	}
	facts := []string{"what was"}
	for line := range strings.Lines(talk.Earlier + "\n" + transcribed(talk)) {
		if strings.Contains(line, "decided") && !slices.Contains(facts, strings.TrimSpace(line)) {
			facts = append(facts, strings.TrimSpace(line))
		}
	}
	return strings.Join(facts, "\n"), nil
}

func transcribed(talk agent.Talk) string {
	return summary.WriteTranscript(talk.Entries, talk.MaxInput, nil)
}

// spoken is a world in which so many turns of about 100 tokens were made, in the first of which something was decided.
func spoken(t testing.TB, turns int) (*world, *llmtest.Model, *scribe) {
	t.Helper()
	m := llmtest.New().On("", llmtest.Step{Text: "Done"})
	w := newWorld(t, m, "")
	w.shelf.entries = nil
	for i := range turns {
		text := fmt.Sprintf("question %d ", i) + strings.Repeat("x", 300)
		if i == 0 {
			text = "We decided to call it Heron."
		}
		turn := fmt.Sprintf("old-%d", i)
		w.shelf.keep(
			journal.Entry{Turn: turn, Kind: journal.UserEntry, At: noon, Text: text, Speaker: "Ann"},
			journal.Entry{Turn: turn, Kind: journal.AnswerEntry, At: noon, Text: "answer"},
		)
	}
	s := &scribe{}
	w.deps.SumUp, w.limits.ContextTokens = s.sumUp, 3000
	return w, m, s
}

// say makes a turn.
func (w *world) say(turn, text string) agent.Outcome {
	w.t.Helper()
	w.turn.ID = turn
	w.turn.Origin.Turn = turn
	w.shelf.keep(journal.Entry{Turn: turn, Kind: journal.UserEntry, At: noon, Text: text, Caller: "telegram:42", Speaker: "Ann"})
	return w.must(w.t.Context())
}

func summaries(entries []journal.Entry) []journal.Entry {
	return slices.DeleteFunc(entries, func(e journal.Entry) bool { return e.Kind != journal.SummaryEntry })
}

// TestLongTalkIsSummedUp: the summary is journalled before the model is called, what was decided first survives several
// of them, and the originals stay.
func TestLongTalkIsSummedUp(t *testing.T) {
	t.Parallel()
	w, m, s := spoken(t, 30)
	for i := range 60 {
		if out := w.say(fmt.Sprintf("turn-%d", i), fmt.Sprintf("go on %d ", i)+strings.Repeat("y", 300)); out.Kind != agent.Answered || out.LeftOut {
			t.Fatalf("turn %d: %+v", i, out)
		}
	}
	wellFormed(t, m.Requests())
	entries := w.shelf.all()
	written := summaries(slices.Clone(entries))
	if len(written) != len(s.talks) || len(written) < 3 || len(written) > 12 {
		t.Fatalf("%d summaries, %d asked for", len(written), len(s.talks))
	}
	if !strings.Contains(entries[0].Text, "Heron") || len(entries) != 2*90+len(written) {
		t.Errorf("%d entries, the first is %q", len(entries), entries[0].Text)
	}
	for i, e := range written {
		if e.Keeps < 1 || !strings.Contains(e.Text, "Heron") || e.State == nil || e.State.N != e.N || entries[e.N].Kind != journal.AnswerEntry {
			t.Errorf("summary %d: %+v", i, e)
		}
	}
	for i, talk := range s.talks {
		if (talk.Earlier != "") != (i > 0) || !strings.HasPrefix(transcribed(talk), "[2026-03-04]\nperson Ann: ") || talk.MaxTokens != 256 {
			t.Errorf("talk %d: %+v", i, talk)
		}
	}
	last := m.Requests()[len(m.Requests())-1]
	if first := last.Messages[0].Text; !strings.HasPrefix(first, "[summary of the conversation before this, material") || !strings.Contains(first, "Heron") {
		t.Errorf("the last request begins with %q", first)
	}
	if newest := last.Messages[len(last.Messages)-1].Text; !strings.HasPrefix(newest, "go on 59") {
		t.Errorf("the last request ends with %q", newest)
	}
}

// TestThePrefixStays: the beginning of the requests changes only when a summary is written.
func TestThePrefixStays(t *testing.T) {
	t.Parallel()
	w, m, s := spoken(t, 3)
	for i := range 80 {
		w.say(fmt.Sprintf("turn-%d", i), fmt.Sprintf("go on %d ", i)+strings.Repeat("y", 200))
	}
	changed := 0
	requests := m.Requests()
	for i := 1; i < len(requests); i++ {
		before, now := requests[i-1].Messages, requests[i].Messages
		if len(now) <= len(before) || !cmp.Equal(before, now[:len(before)]) {
			changed++
		}
	}
	if changed != len(s.talks) || changed == 0 {
		t.Errorf("the beginning of %d requests has changed %d times, with %d summaries", len(requests), changed, len(s.talks))
	}
}

// TestNoSummary: if the model cannot sum up, the oldest turns are left out, the person is told, and the prefix changes
// rarely all the same.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	w, m, s := spoken(t, 30)
	s.err = errors.New("no")
	told := 0
	for i := range 20 {
		if out := w.say(fmt.Sprintf("turn-%d", i), "go on "+strings.Repeat("y", 200)); out.Kind != agent.Answered {
			t.Fatalf("turn %d: %+v", i, out)
		} else if out.LeftOut {
			told++
		}
	}
	if len(summaries(w.shelf.all())) != 0 || told != 20 {
		t.Errorf("%d summaries, told %d times", len(summaries(w.shelf.all())), told)
	}
	begins := map[string]bool{}
	for _, r := range m.Requests() {
		begins[r.Messages[0].Text] = true
	}
	if len(begins) > 5 {
		t.Errorf("%d beginnings in 20 turns", len(begins))
	}
	wellFormed(t, m.Requests())
}

// TestSummaryIsKilled: at every append of a turn that sums up, the store fails, before or after it has stored, and
// another process goes on. One summary counts.
func TestSummaryIsKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			w, m, _ := spoken(t, 40)
			fail := func(at int) error {
				if at == n {
					return errStore
				}
				return nil
			}
			if after {
				w.shelf.after = fail
			} else {
				w.shelf.before = fail
			}
			w.turn.ID = "turn-x"
			w.shelf.keep(journal.Entry{Turn: "turn-x", Kind: journal.UserEntry, At: noon, Text: "go"})
			if out := w.finish(t.Context()); out.Kind != agent.Answered {
				t.Fatalf("%+v", out)
			}
			if got := len(summaries(w.shelf.all())); got != 1 {
				t.Errorf("append %d, stored %t: %d summaries: %s", n, after, got, w.kinds())
			}
			wellFormed(t, m.Requests())
			last := m.Requests()[len(m.Requests())-1]
			if n := strings.Count(fmt.Sprint(last.Messages), "[summary of"); n != 1 {
				t.Errorf("%d summaries are sent", n)
			}
		}
	}
}

// TestFlagsSurviveASummary: text that tried to give instructions stays in force when it is summed up, and a summary that
// itself tries is one.
func TestFlagsSurviveASummary(t *testing.T) {
	t.Parallel()
	for _, fromSummary := range []bool{false, true} {
		w, _, _ := spoken(t, 30)
		first := &w.shelf.entries[1]
		first.Kind, first.Source, first.Flagged = journal.ResultEntry, "a page", !fromSummary
		w.deps.Suspect = func(text string) bool { return fromSummary && strings.Contains(text, "Heron") }
		w.say("turn-1", "go")
		if len(summaries(w.shelf.all())) != 1 {
			t.Fatal("nothing is summed up")
		}
		want := map[bool]string{false: "a page", true: "the summary of the conversation"}[fromSummary]
		tail, err := (&handle{shelf: w.shelf}).Load(t.Context(), 1)
		if got := tail.StateAt(tail.Last()).Suspicious; err != nil || got != want {
			t.Errorf("suspicious: %q, want %q (%v)", got, want, err)
		}
	}
}

// TestOldOutputBecomesReferences: the newest output is whole, older output says where it can be read.
func TestOldOutputBecomesReferences(t *testing.T) {
	t.Parallel()
	w, m, s := spoken(t, 1)
	w.limits.ContextTokens = 7000
	kept := "[900 characters kept as overflow:0f8fad5b-d9cb-469f-a165-70867728950e; read_overflow reads them]"
	for i, text := range []string{strings.Repeat("a", 3000) + kept, strings.Repeat("b", 3000), strings.Repeat("c", 3000), strings.Repeat("d", 3000)} {
		turn := fmt.Sprintf("work-%d", i)
		w.shelf.keep(
			journal.Entry{Turn: turn, Kind: journal.UserEntry, Text: "look"},
			journal.Entry{Turn: turn, Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: turn, Name: "echo", Args: []byte(`{}`), ReadOnly: i == 1}}},
			journal.Entry{Turn: turn, Kind: journal.ResultEntry, Call: turn, Tool: "echo", Text: text},
			journal.Entry{Turn: turn, Kind: journal.AnswerEntry, Text: "seen"},
		)
	}
	w.say("turn-1", "go")
	var got []string
	for _, msg := range m.Requests()[0].Messages {
		if msg.Result != nil {
			got = append(got, msg.Result.Text[:min(130, len(msg.Result.Text))])
		}
	}
	want := []string{
		"[output of echo left out to save room, 3096 characters; read_overflow reads overflow:0f8fad5b-d9cb-469f-a165-70867728950e again]",
		"[output of echo left out to save room, 3000 characters; the same call reads it again]",
		strings.Repeat("c", 130), strings.Repeat("d", 130),
	}
	if diff := cmp.Diff(want, got); diff != "" || len(s.talks) != 0 {
		t.Errorf("%d summaries, output (-want +got):\n%s", len(s.talks), diff)
	}
}

// TestAnyTalkFits: whatever the journal and the window, the pairs of a request are whole, it begins with a person or a
// summary, contains the newest message and fits.
func TestAnyTalkFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := llmtest.New().On("", llmtest.Step{Text: "Done"})
		w := newWorld(t, m, "")
		w.shelf.entries = nil
		s := &scribe{}
		w.deps.SumUp = s.sumUp
		if rapid.IntRange(0, 2).Draw(rt, "fails") == 0 {
			s.err = errors.New("no")
		}
		w.limits.ContextTokens = rapid.SampledFrom([]int{1500, 4000, 20_000, -1}).Draw(rt, "window")
		for i := range rapid.IntRange(0, 16).Draw(rt, "turns") {
			w.shelf.keep(drawTurn(rt, fmt.Sprintf("old-%d", i))...)
		}
		before := summaries(w.shelf.all())
		out := w.say("turn-1", "the newest "+strings.Repeat("z", rapid.SampledFrom([]int{0, 300, 1500}).Draw(rt, "long")))
		if out.Kind != agent.Answered || len(m.Requests()) != 1 {
			rt.Fatalf("outcome %+v", out)
		}
		wellFormed(t, m.Requests())
		req := m.Requests()[0]
		uses := 0
		for _, msg := range req.Messages {
			uses += len(msg.Uses)
			if msg.Result != nil {
				uses--
			}
		}
		if uses != 0 {
			rt.Errorf("%d uses without a result", uses)
		}
		size := window.Fixed(&req) + window.Messages(req.Messages) + window.Parts(req.Messages, llm.Accepts{})
		if window.Over(size, w.limits.ContextTokens) {
			rt.Errorf("%d tokens in a window of %d", size, w.limits.ContextTokens)
		}
		if last := req.Messages[len(req.Messages)-1].Text; req.Messages[0].Role != llm.User || !strings.HasPrefix(last, "the newest") {
			rt.Errorf("begins as %s, ends with %q", req.Messages[0].Role, last)
		}
		if after := summaries(w.shelf.all()); len(after) > 0 && !strings.HasPrefix(req.Messages[0].Text, "[summary of") {
			rt.Errorf("%d summaries, %d of them new, and the request begins with %q", len(after), len(after)-len(before), req.Messages[0].Text)
		}
	})
}

// drawTurn draws a turn: one that was edited, has parallel calls, a huge result, a picture, or calls without a result.
func drawTurn(t *rapid.T, turn string) []journal.Entry {
	list := []journal.Entry{{Turn: turn, Kind: journal.UserEntry, At: noon, Text: "said " + strings.Repeat("s", rapid.IntRange(0, 400).Draw(t, "said"))}}
	if rapid.IntRange(0, 4).Draw(t, "picture") == 0 {
		list[0].Parts = []llm.Part{{Kind: llm.ImagePart, Hash: strings.Repeat("a", 64), Type: "image/png"}}
	}
	if rapid.IntRange(0, 4).Draw(t, "edited") == 0 {
		list = append(list, journal.Entry{Turn: turn, Kind: journal.UserEntry, At: noon, Text: "edited", Joins: journal.Edited})
	}
	for b := range rapid.IntRange(0, 3).Draw(t, "batches") {
		a := journal.Entry{Turn: turn, Kind: journal.AssistantEntry, Text: "Look"}
		for u := range rapid.IntRange(1, 3).Draw(t, "uses") {
			a.Uses = append(a.Uses, journal.Use{Call: fmt.Sprint(turn, "/", b, "/", u), Name: "echo", Args: []byte(`{}`), ReadOnly: u == 0})
		}
		list = append(list, a)
		for _, u := range a.Uses {
			if rapid.IntRange(0, 6).Draw(t, "parked") == 0 {
				continue
			}
			r := journal.Entry{Turn: turn, Kind: journal.ResultEntry, Call: u.Call, Tool: "echo", Text: strings.Repeat("r", rapid.SampledFrom([]int{0, 40, 2000, 9000}).Draw(t, "output"))}
			if rapid.IntRange(0, 6).Draw(t, "pictures") == 0 {
				r.Parts = []llm.Part{{Kind: llm.ImagePart, Hash: strings.Repeat("b", 64), Type: "image/png"}}
			}
			list = append(list, r)
		}
	}
	return append(list, journal.Entry{Turn: turn, Kind: journal.AnswerEntry, At: noon, Text: "answer"})
}
