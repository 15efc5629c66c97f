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
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

const journey = `on "go": call* echo {"text":"a"} count {"by":1} count {"by":10}
then call count {"by":2}
then say Done`

// TestResumeFromEveryPrefix cuts the journal of a finished turn after every entry, as a crash does, and continues from
// there.
func TestResumeFromEveryPrefix(t *testing.T) {
	t.Parallel()
	whole := newWorld(t, script(t, journey), "go")
	whole.finish(t.Context())
	full := whole.shelf.all()
	if got, want := whole.kinds(), "user assistant result started result started result assistant started result answer"; got != want {
		t.Fatalf("journal %s, want %s", got, want)
	}
	for cut := 1; cut <= len(full); cut++ {
		w := newWorld(t, script(t, journey), "go")
		w.shelf.entries = slices.Clone(full[:cut])
		before, open := startedIn(full[:cut])
		if out := w.finish(t.Context()); out.Kind != agent.Answered || out.Text != "Done" {
			t.Errorf("cut after %d: %+v", cut, out)
		}
		ran := map[string]int{}
		for _, id := range w.hand.ran {
			ran[id]++
		}
		for _, id := range []string{"c2_1", "c2_2", "c8_0"} {
			if n := ran[id]; n > 1 || (n == 1) == before[id] {
				t.Errorf("cut after %d: %s ran %d times after the crash, started before: %t", cut, id, n, before[id])
			}
		}
		if open != "" {
			reported(t, w, open)
			continue
		}
		if len(w.hand.interrupted) > 0 || len(w.shelf.all()) != len(full) {
			t.Errorf("cut after %d: %v reported as interrupted, journal %s", cut, w.hand.interrupted, w.kinds())
		}
	}
}

// startedIn lists the changing calls that a journal marks as started, and the one of them that has no result.
func startedIn(entries []journal.Entry) (started map[string]bool, open string) {
	started = map[string]bool{}
	for _, e := range entries {
		switch e.Kind {
		case journal.StartedEntry:
			started[e.Call], open = true, e.Call
		case journal.ResultEntry:
			open = ""
		}
	}
	return started, open
}

// reported checks that the outcome of a call is reported as unknown, to the model and in the audit log, once.
func reported(t *testing.T, w *world, call string) {
	t.Helper()
	if diff := cmp.Diff([]string{call}, w.hand.interrupted); diff != "" {
		t.Errorf("interrupted (-want +got):\n%s", diff)
	}
	if r := w.results()[call]; !strings.HasPrefix(r.Text, "[outcome unknown]") || !r.Failed || r.Category != "unknown" {
		t.Errorf("result %+v", r)
	}
}

// TestReadIsRepeated: a read-only call leaves no trace before its result, and is run again.
func TestReadIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, "on \"go\": call echo {\"text\":\"a\"}\nthen say Done"), "go")
	w.shelf.before = func(n int) error {
		if n == 2 {
			return errStore
		}
		return nil
	}
	if out := w.finish(t.Context()); out.Text != "Done" {
		t.Errorf("outcome %+v", out)
	}
	if diff := cmp.Diff([]string{"c2_0", "c2_0"}, w.hand.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	// The same for one that an old journal marks as started.
	w = newWorld(t, script(t, "on \"go\": call echo {\"text\":\"a\"}\nthen say Done"), "go")
	w.shelf.keep(
		journal.Entry{Turn: "turn-1", Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: "c2_0", Name: "echo", Args: []byte(`{"text":"a"}`), ReadOnly: true, Definition: toolstest.Echo().Definition.Hash()}}},
		journal.Entry{Turn: "turn-1", Kind: journal.StartedEntry, Call: "c2_0", Tool: "echo"},
	)
	if out := w.finish(t.Context()); out.Text != "Done" || w.results()["c2_0"].Text != "a" || len(w.hand.interrupted) != 0 {
		t.Errorf("outcome %+v, result %+v", out, w.results()["c2_0"])
	}
}

// TestStoreFailsAtEveryAppend fails one append after the other, with and without effect, and continues in another
// process.
func TestStoreFailsAtEveryAppend(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for at := 1; at <= 10; at++ {
			w := newWorld(t, script(t, journey), "go")
			fail := func(n int) error {
				if n == at {
					return errStore
				}
				return nil
			}
			if lost {
				w.shelf.after = fail
			} else {
				w.shelf.before = fail
			}
			out := w.finish(t.Context())
			if out.Kind != agent.Answered || out.Text != "Done" {
				t.Errorf("append %d, lost %t: %+v", at, lost, out)
			}
			once(t, w, fmt.Sprintf("append %d, lost %t", at, lost))
		}
	}
}

// once checks that no changing call ran twice, and that each unknown outcome was reported once.
func once(t interface {
	Helper()
	Errorf(string, ...any)
}, w *world, what string,
) {
	t.Helper()
	ran := map[string]int{}
	for _, id := range w.hand.ran {
		ran[id]++
	}
	unknown := map[string]int{}
	for _, id := range w.hand.interrupted {
		unknown[id]++
	}
	for _, e := range w.shelf.all() {
		for _, u := range e.Uses {
			if !u.ReadOnly && ran[u.Call] > 1 {
				t.Errorf("%s: %s ran %d times", what, u.Call, ran[u.Call])
			}
			said := w.results()[u.Call].Category == "unknown"
			if said && unknown[u.Call] == 0 {
				t.Errorf("%s: the unknown outcome of %s was not recorded", what, u.Call)
			}
		}
	}
}

// TestAnyBatches runs random batches over a store that fails at random.
func TestAnyBatches(t *testing.T) {
	t.Parallel()
	calls := []string{`echo {"text":"a"}`, `count {"by":1}`, `count {"by":10}`, `count {"by":100}`, `nothing {}`, `count {"by":"x"}`, `echo {"text":"b"}`}
	rapid.Check(t, func(rt *rapid.T) {
		var steps []llmtest.Step
		for i := range rapid.IntRange(1, 3).Draw(rt, "steps") {
			var uses []llm.ToolUse
			for _, c := range rapid.SliceOfN(rapid.SampledFrom(calls), 1, 4).Draw(rt, "uses") {
				name, args, _ := strings.Cut(c, " ")
				uses = append(uses, llm.ToolUse{Name: name, Args: []byte(args)})
			}
			steps = append(steps, llmtest.Step{Text: fmt.Sprint("step ", i), Uses: uses})
		}
		m := llmtest.New().On("go", append(steps, llmtest.Step{Text: "Done"})...)
		w := newWorld(t, m, "go")
		w.limits = agent.Limits{Repeats: -1, Iterations: -1, Parallel: rapid.IntRange(1, 4).Draw(rt, "parallel")}
		failing := rapid.SliceOfN(rapid.IntRange(1, 30), 0, 4).Draw(rt, "failing appends")
		lost := rapid.Bool().Draw(rt, "lost")
		fail := func(after bool) func(n int) error {
			return func(n int) error {
				if after == lost && slices.Contains(failing, n) {
					return errStore
				}
				return nil
			}
		}
		w.shelf.before, w.shelf.after = fail(false), fail(true)
		if out := w.finish(t.Context()); out.Text != "Done" || out.Stats.Steps != len(steps) {
			rt.Fatalf("outcome %+v", out)
		}
		once(rt, w, "random batch")
		wellFormed(t, m.Requests())
		for call, r := range w.results() {
			if r.Text == "" {
				rt.Errorf("%s has an empty result", call)
			}
		}
		entries := w.shelf.all()
		if last := entries[len(entries)-1]; last.Kind != journal.AnswerEntry {
			rt.Errorf("the journal ends with %s", last.Kind)
		}
	})
}

// TestConflictInABatch: a worker that lost its lane in the middle of a parallel batch reports it and starts no more
// calls.
func TestConflictInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, `on "go": call* echo {"text":"a"} count {"by":1}
then say Done`), "go")
	w.shelf.before = func(n int) error {
		if n == 2 { // the first result: another worker wrote meanwhile
			w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.ResultEntry, Call: "c2_0", Text: "from another worker"})
		}
		return nil
	}
	h := &handle{shelf: w.shelf}
	_, err := agent.NewRunner(w.deps, w.limits).Run(t.Context(), w.turn, h, w.watch)
	if !errors.Is(err, journal.ErrConflict) || w.counter.Runs() != 0 {
		t.Errorf("err = %v, %d runs", err, w.counter.Runs())
	}
}

// TestFoundComesFromTheJournal: the catalog is given what a search of the turn has found, in another process too. A
// tool of a server cannot report found tools.
func TestFoundComesFromTheJournal(t *testing.T) {
	t.Parallel()
	const talk = "on \"go\": call seek {}\nthen say Done"
	seek := tools.Tool{
		Definition: tools.Definition{Name: "seek", Schema: []byte(`{"type":"object"}`), ReadOnly: true},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "a line", Found: []string{"srv:one", "srv:two"}}, nil
		},
	}
	for _, server := range []string{"", "srv"} {
		tool := seek
		if tool.Definition.Server = server; server != "" {
			tool.Definition.Name = "srv:seek"
		}
		registry, err := tools.NewRegistry(tool)
		if err != nil {
			t.Fatal(err)
		}
		var seen [][]string
		setup := func(w *world) {
			w.hand = &hand{chain: chain.New(chain.Options{Registry: registry, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}})}
			w.deps.Tools = w.hand
			w.deps.Catalog = views{list: registry.Definitions, seen: &seen}
		}
		w := newWorld(t, script(t, strings.Replace(talk, "call seek", "call "+tool.Definition.Name, 1)), "go")
		setup(w)
		w.finish(t.Context())
		want := [][]string{nil, {"srv:one", "srv:two"}}
		if server != "" {
			want[1] = nil
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%q: found (-want +got):\n%s", server, diff)
		}
		entries := w.shelf.all()
		again := newWorld(t, script(t, strings.Replace(talk, "call seek", "call "+tool.Definition.Name, 1)), "go")
		again.shelf.entries, seen = slices.Clone(entries[:len(entries)-1]), nil // the answer was lost
		setup(again)
		again.finish(t.Context())
		if diff := cmp.Diff(want[1:], seen); diff != "" {
			t.Errorf("%q: found on resume (-want +got):\n%s", server, diff)
		}
	}
}

// views records what a catalog is given.
type views struct {
	list func() []tools.Definition
	seen *[][]string
}

func (v views) Tools(_ context.Context, _ *agent.Turn, view agent.View) []agent.Offer {
	*v.seen = append(*v.seen, view.Found)
	var offers []agent.Offer
	for _, d := range v.list() {
		offers = append(offers, agent.Plain(d))
	}
	return offers
}
