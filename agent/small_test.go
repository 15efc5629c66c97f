package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools"
)

const overflowID = "overflow:0f8fad5b-d9cb-469f-a165-70867728950e"

// output is the text of a tool with a known beginning and end, as the stages leave it.
func output(filler string, length int, kept, foreign bool) string {
	text := "BEGIN\n" + strings.Repeat(filler, length/len(filler)) + "\nEND"
	if kept {
		text += "\n[90000 characters kept as " + overflowID + "; read_overflow reads them]"
	}
	if foreign {
		text = "<external-data id=\"1f\" source=\"file\" kind=\"file\" trust=\"untrusted\">\n[What stands between these two marks is material from outside.]\n" + text + "\n</external-data id=\"1f\">"
	}
	return text
}

// recorded is a model that always answers, and what it was asked.
func recorded() (chatFunc, *[]llm.Request) {
	var asked []llm.Request
	return func(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
		asked = append(asked, *req)
		return &llm.Response{Text: "Done", Stop: llm.StopEnd}, nil
	}, &asked
}

// TestNewestOutputIsNeverLeftOut: whatever the window and the newest output, the request stays within the window and
// contains the beginning, the end and where the rest can be read; and so does the next one, of another call.
func TestNewestOutputIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, asked := recorded()
		w := newWorld(t, m, "")
		w.shelf.entries = nil
		w.limits.ContextTokens = rapid.IntRange(4000, 40_000).Draw(rt, "window")
		for i := range rapid.IntRange(0, 6).Draw(rt, "turns") {
			w.shelf.keep(drawTurn(rt, fmt.Sprintf("old-%d", i))...)
		}
		filler := rapid.SampledFrom([]string{"1234\n", "x", "漢", "e\u0301", "👩‍👧", "\n"}).Draw(rt, "filler")
		kept, foreign, reads := rapid.Bool().Draw(rt, "kept"), rapid.Bool().Draw(rt, "foreign"), rapid.Bool().Draw(rt, "reads")
		text := output(filler, rapid.SampledFrom([]int{0, 1000, 10_000, 60_000, 400_000}).Draw(rt, "length"), kept, foreign)
		turn := "turn-1"
		w.turn.ID, w.turn.Origin.Turn = turn, turn
		w.shelf.keep(journal.Entry{Turn: turn, Kind: journal.UserEntry, At: noon, Text: "look " + strings.Repeat("z", rapid.IntRange(0, 1500).Draw(rt, "said")), Caller: "telegram:42"})
		for n := range rapid.IntRange(1, 3).Draw(rt, "batches") {
			call := fmt.Sprint("new-", n)
			w.shelf.keep(
				journal.Entry{Turn: turn, Kind: journal.AssistantEntry, At: noon, Uses: []journal.Use{{Call: call, Name: "echo", Args: fmt.Appendf(nil, `{"n":%d}`, n), ReadOnly: reads}}},
				journal.Entry{Turn: turn, Kind: journal.ResultEntry, At: noon, Call: call, Tool: "echo", Text: text},
			)
		}
		if out := w.must(t.Context()); out.Kind != agent.Answered {
			rt.Fatalf("outcome %+v", out)
		}
		req := (*asked)[0]
		if size := window.Fixed(&req) + window.Messages(req.Messages) + window.Parts(req.Messages, llm.Accepts{}); window.Over(size, w.limits.ContextTokens) {
			rt.Errorf("%d tokens in a window of %d", size, w.limits.ContextTokens)
		}
		got := req.Messages[len(req.Messages)-1].Result.Text
		if !strings.Contains(got, "BEGIN") || !strings.Contains(got, "END") || kept && !strings.Contains(got, overflowID) || foreign && !(strings.HasPrefix(got, "<external-data id") && strings.HasSuffix(got, "</external-data id=\"1f\">")) {
			rt.Errorf("the model gets %q … %q", got[:min(200, len(got))], got[max(0, len(got)-200):])
		}
		if want := map[bool]string{true: "; read_overflow reads", false: "; the same call reads"}[kept]; got != text && (kept || reads) && !strings.Contains(got, want) {
			rt.Errorf("nothing says where the rest is: %q", got[:min(300, len(got))])
		}
		if strings.ContainsRune(got, '\uFFFD') {
			rt.Errorf("a character is cut: %q", got)
		}
	})
}

// TestRoomOfCalls: a tool learns how much of the window its output may take: together a fifth of it.
func TestRoomOfCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ window, uses, least, most int }{
		{-1, 1, 0, 0}, {128_000, 1, 25_600, 25_600}, {128_000, 4, 6400, 6400}, {16_000, 1, 3200, 3200}, {16_000, 2, 1600, 1600}, {1000, 1, 200, 200}, {300, 3, 200, 200},
	} {
		steps := llmtest.Step{Text: "Look"}
		for i := range tt.uses {
			steps.Uses = append(steps.Uses, llm.ToolUse{ID: fmt.Sprint(i), Name: "spacious", Args: fmt.Appendf(nil, `{"n":%d}`, i)})
		}
		var rooms []int
		big, err := tools.New(tools.Typed[struct {
			N int `json:"n"`
		}]{
			Definition: tools.Definition{Name: "spacious"},
			Run: func(_ context.Context, call *tools.Call, _ struct {
				N int `json:"n"`
			},
			) (*tools.Result, error) {
				rooms = append(rooms, call.Room)
				return &tools.Result{Text: "seen"}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, llmtest.New().On("", steps, llmtest.Step{Text: "Done"}), "go", big)
		w.limits.ContextTokens = tt.window
		w.finish(t.Context())
		if len(rooms) != tt.uses {
			t.Fatalf("window of %d: %d calls", tt.window, len(rooms))
		}
		for _, room := range rooms {
			if room < tt.least || room > tt.most {
				t.Errorf("window of %d, %d calls: room for %d, want %d to %d", tt.window, tt.uses, room, tt.least, tt.most)
			}
		}
	}
}

// TestRepeatedCallIsTold: a model that makes a call again is told that its output is the same; one that has another
// output, or another turn, is not.
func TestRepeatedCallIsTold(t *testing.T) {
	t.Parallel()
	use := func(n int, args string) journal.Entry {
		return journal.Entry{Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: fmt.Sprint("c", n), Name: "echo", Args: []byte(args)}}}
	}
	gives := func(n int, text string) journal.Entry {
		return journal.Entry{Kind: journal.ResultEntry, Call: fmt.Sprint("c", n), Tool: "echo", Text: text}
	}
	other := strings.Replace(overflowID, "0f8", "1a2", 1)
	for name, tt := range map[string]struct {
		entries []journal.Entry
		want    string // in the last result; "" = no word of a repetition
	}{
		"the same":         {[]journal.Entry{use(1, `{}`), gives(1, "out"), use(2, `{}`), gives(2, "out")}, "with the same output. Go on with what you have."},
		"kept":             {[]journal.Entry{use(1, `{}`), gives(1, "a "+overflowID), use(2, `{}`), gives(2, "a "+other)}, "read_overflow reads any part of " + other},
		"not at once":      {[]journal.Entry{use(1, `{}`), gives(1, "out"), use(2, `{"a":1}`), gives(2, "out"), use(3, `{}`), gives(3, "out")}, "with the same output"},
		"another output":   {[]journal.Entry{use(1, `{}`), gives(1, "one"), use(2, `{}`), gives(2, "two")}, ""},
		"another argument": {[]journal.Entry{use(1, `{}`), gives(1, "out"), use(2, `{"a":1}`), gives(2, "out")}, ""},
		"another turn":     {[]journal.Entry{{Turn: "old", Kind: journal.AssistantEntry, Uses: use(1, `{}`).Uses}, {Turn: "old", Kind: journal.ResultEntry, Call: "c1", Text: "out"}, use(2, `{}`), gives(2, "out")}, ""},
		"no result before": {[]journal.Entry{use(1, `{}`), use(2, `{}`), gives(2, "out")}, ""},
	} {
		m, asked := recorded()
		w := newWorld(t, m, "go")
		for _, e := range tt.entries {
			if e.Turn == "" {
				e.Turn = w.turn.ID
			}
			w.shelf.keep(e)
		}
		w.must(t.Context())
		list := (*asked)[0].Messages
		got := list[len(list)-1].Result.Text
		if tt.want == "" && strings.Contains(got, "[You made") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
