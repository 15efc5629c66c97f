package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// chat makes a turn after each pause for so long, each by a process that has just started, and returns how often a summary
// was asked for.
func (w *world) chat(s *scribe, clock *time.Time, long, pause time.Duration) int {
	w.t.Helper()
	before := len(s.talks)
	for range long / pause {
		*clock = clock.Add(pause)
		turn := fmt.Sprintf("turn-%d", clock.Unix())
		if out := w.say(turn, "go on "+strings.Repeat("y", 200)); out.Kind != agent.Answered {
			w.t.Fatalf("%+v", out)
		}
	}
	return len(s.talks) - before
}

// TestFailedSummariesBackOff: a model that never sums up is asked a few times a day, not at every turn, whichever process
// goes on; once it does, the conversation is summed up as ever.
func TestFailedSummariesBackOff(t *testing.T) {
	t.Parallel()
	w, m, s := spoken(t, 30)
	clock := noon
	w.deps.Now = func() time.Time { return clock }
	s.err = errors.New("no")
	if n := w.chat(s, &clock, time.Hour, 5*time.Minute); n != 4 { // at once, after 5 more minutes, after 10, after 20
		t.Errorf("asked %d times in the first hour", n)
	}
	if n := w.chat(s, &clock, 12*time.Hour, 5*time.Minute); n != 4 { // 40, 80, 160, 320 minutes
		t.Errorf("asked %d times in the next 12 hours", n)
	}
	if n := w.chat(s, &clock, 24*time.Hour, 5*time.Minute); n != 4 { // every six hours
		t.Errorf("asked %d times a day", n)
	}
	s.err = nil
	if n := w.chat(s, &clock, 6*time.Hour, 5*time.Minute); n == 0 || len(summaries(w.shelf.all())) != n {
		t.Errorf("asked %d times, %d summaries", n, len(summaries(w.shelf.all())))
	}
	s.err = errors.New("no again")
	if n := w.chat(s, &clock, time.Hour, time.Minute); n == 0 || n > 4 {
		t.Errorf("asked %d times after summaries that succeeded", n)
	}
	wellFormed(t, m.Requests())
	_ = w.say("last", "/new is not needed")
	w.shelf.keep(journal.Entry{Turn: "new", Kind: journal.SummaryEntry, At: clock})
	tail, err := (&handle{shelf: w.shelf}).Load(t.Context(), 1)
	if soFar := tail.StateAt(tail.Last()); err != nil || soFar.Unsummed.Times != 0 {
		t.Errorf("a new conversation begins with %+v, %v", soFar.Unsummed, err)
	}
}

// TestUnpaidSummary: a summary that was not asked for because of money is tried at the next turn.
func TestUnpaidSummary(t *testing.T) {
	t.Parallel()
	w, _, s := spoken(t, 30)
	clock := noon
	w.deps.Now = func() time.Time { return clock }
	s.err = &cost.Denied{Text: "Used up."}
	if n := w.chat(s, &clock, 5*time.Minute, time.Minute); n != 5 {
		t.Errorf("tried %d times", n)
	}
}
