package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/replay"
	"github.com/zephbot/zephbot/tools/audit"
)

// book decides by the tool's name, and counts how often it is asked.
type book struct {
	effects map[string]string
	asked   int
}

func (b *book) Decide(c replay.Call) (replay.Decision, error) {
	b.asked++
	effect, ok := b.effects[c.Tool]
	if !ok {
		return replay.Decision{}, errors.New("no rule")
	}
	if c.Flagged && effect == "allow" {
		effect = "ask"
	}
	return replay.Decision{Effect: effect, Rule: "new " + effect}, nil
}

// line is a recorded call.
func line(tool, args, effect, rule string) *audit.Line {
	return &audit.Line{
		Tool: tool, Args: json.RawMessage(args), Effect: effect, Rule: rule, Caller: "telegram:42",
		Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
}

// TestReplay: what would be decided differently is grouped, and what cannot be known is not guessed.
func TestReplay(t *testing.T) {
	t.Parallel()
	rules := &book{effects: map[string]string{"bash": "deny", "read": "allow", "edit": "ask"}}
	r := replay.New(rules, nil)
	for _, l := range []*audit.Line{
		line("bash", `{"command":"make"}`, "ask", "built-in: bash asks"),
		line("bash", `{"command":"make"}`, "ask", "built-in: bash asks"),
		line("read", `{"path":"a"}`, "allow", "built-in"),
		line("read", `{"path":"a"}`, "ask", "built-in: flagged content (built-in)"),
		line("edit", `{"path":"a"}`, "allow", "grant: edit in this conversation"),
		line("bash", `{"command":"ls"}`, "allow", "grant: bash \"ls\""),
		line("bash", `{"command":"curl -H [redacted]"}`, "ask", "x"),
		line("bash", `"{\"command\":\"… (9999 characters)"`, "ask", "x"),
		line("bash", `{}`, "deny", "built-in: trust quarantined"),
		line("bash", `{}`, "", ""),
		line("bash", `{}`, "deny", "not offered"),
		line("unknown", `{}`, "allow", "x"),
		{Kind: "egress"},
		{Kind: "started"},
		{Tool: "/mcp add"},
		{Broken: "no audit line"},
		{Tool: "edit", Args: json.RawMessage(`{}`), Rule: "x", ApprovedBy: "telegram:1", Result: "success"},
		{Tool: "bash", Args: json.RawMessage(`{}`), Rule: "x", Result: "blocked", Reason: "This call is denied by policy."},
		{Tool: "read", Args: json.RawMessage(`{}`), Rule: "x", Result: "error"},
	} {
		r.Line(l)
	}
	s := r.Summary()
	want := replay.Summary{
		Calls: 15, Same: 6, Changed: 3, Broken: 1,
		Undecided: map[replay.Unsure]int{replay.Redacted: 1, replay.Cut: 1, replay.Source: 1, replay.Other: 2, replay.Failed: 1},
		Differences: []replay.Difference{
			{
				Tool: "bash", What: "make", Old: replay.Decision{Effect: "ask", Rule: "built-in: bash asks"}, New: replay.Decision{Effect: "deny", Rule: "new deny"},
				Count: 2, Caller: "telegram:42", First: "2026-03-04T05:06:07Z", Last: "2026-03-04T05:06:07Z",
			},
			{
				Tool: "bash", What: "ls", Old: replay.Decision{Effect: "allow", Rule: "grant: bash \"ls\""}, New: replay.Decision{Effect: "deny", Rule: "new deny"},
				Count: 1, Caller: "telegram:42", First: "2026-03-04T05:06:07Z", Last: "2026-03-04T05:06:07Z",
			},
		},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReplayWithOld: what the old rules do not decide as recorded is compared with what they decide.
func TestReplayWithOld(t *testing.T) {
	t.Parallel()
	old := &book{effects: map[string]string{"bash": "ask", "read": "allow"}}
	now := &book{effects: map[string]string{"bash": "deny", "read": "allow"}}
	r := replay.New(now, old)
	r.Line(line("bash", `{}`, "ask", "x"))   // changed
	r.Line(line("bash", `{}`, "allow", "x")) // the old rules ask too: still changed
	r.Line(line("read", `{}`, "deny", "x"))  // neither repeats the record
	r.Line(line("read", `{}`, "allow", "x"))
	if s := r.Summary(); s.Changed != 2 || s.Same != 1 || s.Undecided[replay.Elusive] != 1 {
		t.Errorf("%+v", s)
	}
}

// TestBounded: equal calls are decided once, and what is remembered has a limit.
func TestBounded(t *testing.T) {
	t.Parallel()
	rules := &book{effects: map[string]string{"bash": "deny"}}
	r := replay.New(rules, nil)
	for i := range 3 * replay.MaxGroups {
		r.Line(line("bash", fmt.Sprintf(`{"command":"echo %d"}`, i/2), "ask", "x"))
	}
	s := r.Summary()
	if len(s.Differences) != replay.MaxGroups || s.Beyond != replay.MaxGroups || s.Changed != 3*replay.MaxGroups || rules.asked != 3*replay.MaxGroups/2 {
		t.Errorf("%d groups, %d beyond, %d changed, %d asked", len(s.Differences), s.Beyond, s.Changed, rules.asked)
	}
}

// TestParseExamples: mistakes are named with their line, all at once.
func TestParseExamples(t *testing.T) {
	t.Parallel()
	list, err := replay.ParseExamples("x.toml", []byte("# rules\n[[example]]\ntool = \"bash\"\nargs.command = \"ls\"\nexpect = \"allow\"\n\n[[example]]\nname = \"n\"\ntool = \"read\"\nexpect = \"deny\"\nchat = \"-1\"\n"))
	if err != nil || len(list) != 2 || list[0].Line != 2 || list[1].Line != 7 || list[0].Args["command"] != "ls" {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		"":                               "x.toml has no [[example]]",
		"[[exampel]]\n":                  `x.toml:1: unknown key "exampel"; did you mean example?`,
		"[[example]]\ntol = 1\n":         `x.toml:2: unknown key "example.tol"; did you mean tool?`,
		"[[example]]\nexpect = \"alow\"": "x.toml:1: tool is missing, such as tool = \"bash\"\nx.toml:1: expect = \"alow\": did you mean \"allow\"?",
		"[[example]]\ntool = 1\n":        "x.toml:2:",
		"[[example]\n":                   "x.toml:1:",
		"[[example]]\ntool=\"a\"\nexpect=\"ask\"\nmode=\"chat\"\nchat=\"-1\"": "needs mode = \"serve\"",
	} {
		if _, err := replay.ParseExamples("x.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestExample: effect and rule have to fit.
func TestExample(t *testing.T) {
	t.Parallel()
	rules := &book{effects: map[string]string{"bash": "deny"}}
	call := func(e *replay.Example, args json.RawMessage) replay.Call {
		return replay.Call{Tool: e.Tool, Args: args}
	}
	for _, tc := range []struct {
		example replay.Example
		ok      bool
	}{
		{replay.Example{Tool: "bash", Expect: "deny"}, true},
		{replay.Example{Tool: "bash", Expect: "deny", Rule: "new"}, true},
		{replay.Example{Tool: "bash", Expect: "deny", Rule: "old"}, false},
		{replay.Example{Tool: "bash", Expect: "ask"}, false},
		{replay.Example{Tool: "x", Expect: "deny"}, false},
	} {
		if r := replay.Test(&tc.example, rules, call); r.OK != tc.ok || !r.OK && r.Got.Effect == "" && r.Error == "" {
			t.Errorf("%+v: %+v", tc.example, r)
		}
	}
}

// FuzzParseExamples: no file of examples makes the parser panic, and what it accepts is complete.
func FuzzParseExamples(f *testing.F) {
	f.Add([]byte("[[example]]\ntool = \"bash\"\nargs = { command = \"ls\" }\nexpect = \"allow\"\n"))
	f.Add([]byte("example = [{tool=\"a\",expect=\"ask\"}]"))
	f.Add([]byte("[[example.x]]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := replay.ParseExamples("x", data)
		for _, e := range list {
			if err == nil && (e.Tool == "" || e.Expect == "") {
				t.Errorf("%q is accepted: %+v", data, e)
			}
		}
	})
}
