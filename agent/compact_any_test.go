package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
)

// drawChildren gives a turn sub-agents: entries of their own between those of the turn.
func drawChildren(t *rapid.T, list []journal.Entry) []journal.Entry {
	var out []journal.Entry
	for _, e := range list {
		out = append(out, e)
		if e.Kind != journal.AssistantEntry || rapid.IntRange(0, 2).Draw(t, "delegates") > 0 {
			continue
		}
		child := func(k journal.Kind, more journal.Entry) {
			more.Turn, more.Child, more.Kind, more.At = e.Turn, e.Uses[0].Call, k, noon
			out = append(out, more)
		}
		call := e.Uses[0].Call + "/child"
		child(journal.UserEntry, journal.Entry{Text: "look for it", Speaker: "researcher"})
		child(journal.AssistantEntry, journal.Entry{Uses: []journal.Use{{Call: call, Name: "echo", Args: []byte(`{}`), ReadOnly: true}}})
		if rapid.Bool().Draw(t, "child ends") {
			child(journal.ResultEntry, journal.Entry{Call: call, Tool: "echo", Text: strings.Repeat("k", 3000)})
			child(journal.AnswerEntry, journal.Entry{Text: "found"})
		}
	}
	return out
}

// anyTalk is a random conversation in which something was decided first, and its requests.
type anyTalk struct {
	*rapid.T
	*world
	asked  []llm.Request
	scribe *scribe
	fails  bool
}

func drawTalk(rt *rapid.T, t testing.TB) *anyTalk {
	a := &anyTalk{T: rt, scribe: &scribe{}, fails: rapid.IntRange(0, 3).Draw(rt, "fails") == 0}
	w := newWorld(t, chatFunc(func(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
		a.asked = append(a.asked, *req)
		return &llm.Response{Text: "Done", Stop: llm.StopEnd}, nil
	}), "")
	a.world, w.shelf.entries = w, nil
	w.deps.SumUp = a.scribe.sumUp
	if a.fails {
		a.scribe.err = errors.New("no")
	}
	w.limits.Repeats = -1
	w.limits.ContextTokens = rapid.SampledFrom([]int{2500, 4000, 20_000}).Draw(rt, "window")
	w.shelf.keep(
		journal.Entry{Turn: "first", Kind: journal.UserEntry, At: noon, Text: "We decided to call it Heron.", Speaker: "Ann"},
		journal.Entry{Turn: "first", Kind: journal.AnswerEntry, At: noon, Text: "Good"},
	)
	for i := range rapid.IntRange(2, 8).Draw(rt, "turns") {
		w.shelf.keep(drawChildren(rt, drawTurn(rt, fmt.Sprintf("old-%d", i)))...)
	}
	return a
}

// paired checks that each use of a request has exactly one result, each result exactly one use before it, and that no
// work of a sub-agent is in it.
func (a *anyTalk) paired(req *llm.Request) {
	wellFormed(a.t, []llm.Request{*req})
	uses, results := map[string]int{}, map[string]int{}
	for _, m := range req.Messages {
		for _, u := range m.Uses {
			uses[u.ID]++
		}
		if m.Result != nil {
			if results[m.Result.ID]++; uses[m.Result.ID] != 1 {
				a.Fatalf("result of %s before its use", m.Result.ID)
			}
		}
		if strings.Contains(m.Text, "look for it") {
			a.Fatal("the request has the task of a sub-agent")
		}
	}
	if !maps.Equal(uses, results) {
		a.Fatalf("uses and results (-uses +results):\n%s", cmp.Diff(uses, results))
	}
	for id, n := range uses {
		if n != 1 || strings.HasSuffix(id, "/child") {
			a.Fatalf("%d uses of %s", n, id)
		}
	}
}

// request checks what holds for every request.
func (a *anyTalk) request(req *llm.Request) {
	a.paired(req)
	size := window.Fixed(req) + window.Messages(req.Messages) + window.Parts(req.Messages, llm.Accepts{})
	if window.Over(size, a.limits.ContextTokens) {
		a.Errorf("%d tokens in a window of %d", size, a.limits.ContextTokens)
	}
	var texts strings.Builder
	for _, m := range req.Messages {
		texts.WriteString(m.Text + "\n")
	}
	if !a.fails && !strings.Contains(texts.String(), "Heron") {
		a.Errorf("the model does not read what was decided first: %s", texts.String())
	}
}

// TestAnyTalkIsCompacted: whatever happened in a conversation, while it is compacted again and again each call has one
// result, requests fit, the first decision survives, nothing that was stored changes, and the same turn compacted again
// gives the same request without another summary.
func TestAnyTalkIsCompacted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := drawTalk(rt, t)
		for i := range rapid.IntRange(1, 3).Draw(rt, "more") {
			before := a.shelf.all()
			a.turn.ID = fmt.Sprintf("turn-%d", i)
			a.turn.Origin.Turn = a.turn.ID
			a.shelf.keep(journal.Entry{
				Turn: a.turn.ID, Kind: journal.UserEntry, At: noon, Caller: "telegram:42", Speaker: "Ann",
				Text: "go on " + strings.Repeat("z", rapid.SampledFrom([]int{0, 300, 1500}).Draw(rt, "long")),
			})
			a.works()
			a.twice()
			if now := a.shelf.all(); !reflect.DeepEqual(before, now[:len(before)]) {
				rt.Fatal("an entry was changed")
			}
			a.shelf.keep(journal.Entry{Turn: a.turn.ID, Kind: journal.AnswerEntry, At: noon, Text: "Done " + strings.Repeat("d", 200)})
		}
	})
}

// works gives the turn calls that have ended, some of them by a person's decision, before the model is asked again.
func (a *anyTalk) works() {
	work := drawTurn(a.T, a.turn.ID)
	work = drawChildren(a.T, work[1:len(work)-1]) // neither a message nor an answer
	work = slices.DeleteFunc(work, func(e journal.Entry) bool { return e.Joins != "" })
	var list []journal.Entry
	for i, e := range work {
		list = append(list, e)
		for _, u := range e.Uses {
			answered := func(r journal.Entry) bool { return r.Kind == journal.ResultEntry && r.Call == u.Call }
			if e.Child == "" && !slices.ContainsFunc(work[i:], answered) {
				list = append(list, journal.Entry{Turn: e.Turn, Kind: journal.ResultEntry, At: noon, Call: u.Call, Tool: u.Name, Text: "refused", Failed: true})
			}
		}
	}
	a.shelf.keep(list...)
}

// twice runs the turn in two processes, the first of which dies before its answer is stored.
func (a *anyTalk) twice() {
	var requests [2]llm.Request
	var asked [2]int
	for i := range requests {
		out, err := agent.NewRunner(a.deps, a.limits).Run(a.t.Context(), a.turn, &handle{shelf: a.shelf}, a.watch)
		if err != nil || out.Kind != agent.Answered {
			a.Fatalf("%+v, %v", out, err)
		}
		requests[i], asked[i] = a.asked[len(a.asked)-1], len(a.scribe.talks)
		a.request(&requests[i])
	}
	if !a.fails && asked[0] != asked[1] {
		a.Errorf("a summary was asked for again")
	}
	if first, second := requests[0].Messages, requests[1].Messages; !reflect.DeepEqual(first, second) {
		a.Errorf("compacted again, the request is another one (-first +second):\n%s", cmp.Diff(first, second))
	}
}
