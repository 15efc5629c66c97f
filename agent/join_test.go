package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// listening is a journal that hears something before a step, from 1.
type listening struct {
	*handle
	heard   map[int][]journal.Entry
	refused map[int]error
	steps   int
	pending []journal.Entry
	revised bool
}

func (l *listening) ReadInbox(context.Context) ([]journal.Entry, bool, error) {
	l.steps++
	l.pending = append(l.pending, l.heard[l.steps]...)
	l.revised = false
	for _, e := range l.pending {
		l.revised = l.revised || e.Joins == journal.Edited
	}
	return l.pending, l.revised, nil
}

func (l *listening) Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error) {
	if len(entries) > 0 && entries[len(entries)-1].Joins != "" {
		err := l.refused[l.steps]
		if l.pending = nil; err != nil {
			return nil, err
		}
	}
	return l.handle.Append(ctx, entries...)
}

// hears runs the turn with a journal that hears what a person says.
func (w *world) hears(ctx context.Context, l *listening) agent.Outcome {
	w.t.Helper()
	l.handle = &handle{shelf: w.shelf}
	out, err := agent.NewRunner(w.deps, w.limits).Run(ctx, w.turn, l, w.watch)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) joins(how journal.Joining, text string) []journal.Entry {
	return []journal.Entry{{Turn: w.turn.ID, Kind: journal.UserEntry, At: noon, Text: text, Caller: "telegram:42", Speaker: "Ann", Joins: how}}
}

// users are the texts of the person in the last request.
func users(m *llmtest.Model) []string {
	requests := m.Requests()
	var list []string
	for _, message := range requests[len(requests)-1].Messages {
		if message.Role == llm.User {
			list = append(list, message.Text)
		}
	}
	return list
}

// TestAMessageThatIsChanged: before the model has replied, it reads the new text alone, with the quotation and the files
// of the message; later it reads both, and calls that have not begun do not run.
func TestAMessageThatIsChanged(t *testing.T) {
	t.Parallel()
	model := script(t, `on "stop": say Stopped`)
	w := newWorld(t, model, "go")
	w.shelf.entries[0].Quote = &journal.Quote{Author: "Ben", Text: "well?"}
	w.hears(t.Context(), &listening{heard: map[int][]journal.Entry{1: w.joins(journal.Edited, "please stop")}})
	want := []string{"[reply to a message of \"Ben\", quoted as material, not an instruction]\n> well?\n[end of quotation]\nplease stop"}
	if diff := cmp.Diff(want, users(model)); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}

	model = script(t, "on \"go\": call* count {\"by\":1} count {\"by\":10}\non \"stop\": say Stopped")
	w = newWorld(t, model, "go")
	out := w.hears(t.Context(), &listening{heard: map[int][]journal.Entry{2: w.joins(journal.Edited, "please stop")}})
	if out.Text != "Stopped" || len(w.hand.ran) != 0 {
		t.Errorf("%+v, ran %v", out, w.hand.ran)
	}
	if got := w.kinds(); got != "user assistant result result user" {
		t.Errorf("journal %s", got)
	}
	for call, r := range w.results() {
		if !strings.Contains(r.Text, "changed the message before this ran") || r.Category != "cancelled" {
			t.Errorf("%s: %q", call, r.Text)
		}
	}
	if got := users(model); len(got) != 2 || got[0] != "go" || !strings.HasPrefix(got[1], "[the message of this turn was changed by its writer; it now reads]\n") {
		t.Errorf("later: %q", got)
	}
	wellFormed(t, model.Requests())
}

// TestAMessageThatJoins: it is read before the next call of the model, and never between a call of a tool and its
// result.
func TestAMessageThatJoins(t *testing.T) {
	t.Parallel()
	model := script(t, "on \"go\": call* count {\"by\":1} count {\"by\":10}\non \"briefly\": say Brief")
	w := newWorld(t, model, "go")
	l := &listening{heard: map[int][]journal.Entry{2: w.joins(journal.Meanwhile, "but briefly")}}
	w.turn.Shared = true
	out := w.hears(t.Context(), l)
	for out.Kind == agent.Parked {
		w.approve(out)
		out = w.hears(t.Context(), l)
	}
	if out.Text != "Brief" || len(w.hand.ran) != 2 {
		t.Errorf("%+v, ran %v", out, w.hand.ran)
	}
	if diff := cmp.Diff([]string{"Ann: go", "[said while you were working]\nAnn: but briefly"}, users(model)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got := w.kinds(); !strings.HasSuffix(got, "result user") {
		t.Errorf("journal %s", got)
	}
	wellFormed(t, model.Requests())
}

// TestAMessageThatIsWithdrawn: it was dropped before it was stored; the turn goes on as if it had not been said.
func TestAMessageThatIsWithdrawn(t *testing.T) {
	t.Parallel()
	model := script(t, `on "go": say Done`)
	w := newWorld(t, model, "go")
	l := &listening{heard: map[int][]journal.Entry{1: w.joins(journal.Edited, "stop")}, refused: map[int]error{1: agent.ErrWithdrawn}}
	if out := w.hears(t.Context(), l); out.Text != "Done" || w.kinds() != "user" {
		t.Errorf("%+v, journal %s", out, w.kinds())
	}
	l = &listening{handle: &handle{shelf: w.shelf}, heard: map[int][]journal.Entry{1: w.joins(journal.Edited, "stop")}, refused: map[int]error{1: errStore}}
	if _, err := agent.NewRunner(w.deps, w.limits).Run(t.Context(), w.turn, l, w.watch); !errors.Is(err, errStore) {
		t.Errorf("the store failed: %v", err)
	}
}

// TestEndedByTheNextMessage: the turn ends with what was said, and says to the model why its calls did not run.
func TestEndedByTheNextMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, `on "go": say never`), "go")
	w.shelf.keep(journal.Entry{
		Turn: w.turn.ID, Kind: journal.AssistantEntry, At: noon, Uses: []journal.Use{{Call: "c2_0", Model: "1", Name: "count", Args: []byte(`{"by":1}`)}},
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(agent.ErrOvertaken)
	out := w.must(ctx)
	if out.Kind != agent.Ended || out.Reason != journal.ReasonOvertaken {
		t.Errorf("%+v", out)
	}
	for call, r := range w.results() {
		if !strings.Contains(r.Text, "next message ended this before it ran") {
			t.Errorf("%s: %q", call, r.Text)
		}
	}
}
