package fenced_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/fenced"
)

// FuzzFences reads an arbitrary answer, whole and in pieces of a given size, and renders its calls again.
func FuzzFences(f *testing.F) {
	for _, s := range []string{awkward, ls, "```bash", "~~~tool\r\n[]\r\n~~~", "```tool\n{\"name\":\"a\",\"arguments\":\"\\u003c\"}\n```", "   ```scrape\nurl u\n```", "\x80```\n"} {
		f.Add(s, 3, false)
		f.Add(s, 1, true)
	}
	f.Fuzz(func(t *testing.T, answer string, size int, cut bool) {
		stop := llm.StopEnd
		if cut {
			stop = llm.StopLength
		}
		whole, shown := ask(t, all(), stop, answer)
		if shown != whole.Text || len(whole.Uses) > fenced.DefaultMaxUses {
			t.Fatalf("shown %q, text %q, %d uses", shown, whole.Text, len(whole.Uses))
		}
		if len(whole.Uses) == 0 && whole.Text != answer {
			t.Errorf("text %q of the answer %q without calls", whole.Text, answer)
		}
		var pieces []string
		for rest := answer; rest != ""; {
			n := min(max(size, 1), len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, shown := ask(t, all(), stop, pieces...)
		if diff := cmp.Diff(whole, got); diff != "" || shown != whole.Text {
			t.Errorf("in pieces: shown %q, answer (-whole +pieces):\n%s", shown, diff)
		}
		ids := map[string]bool{}
		for _, u := range whole.Uses {
			if u.ID == "" || ids[u.ID] || u.Name == "" || len(u.Args) == 0 {
				t.Errorf("use %+v: id empty or repeated, no name or no arguments", u)
			}
			ids[u.ID] = true
			if _, err := json.Marshal(u); err != nil {
				t.Errorf("use cannot be stored: %v", err)
			}
			req := all()
			req.Messages = []llm.Message{{Role: llm.Assistant, Uses: []llm.ToolUse{u}}}
			told := sent(t, req, fenced.Options{}).Messages[0].Text
			if utf8.ValidString(u.Name + string(u.Args)) {
				comesBack(t, told, u.Name, string(u.Args))
			}
		}
	})
}

// FuzzHistory renders an arbitrary command, result and message: the markers are safe, and the call is read back.
func FuzzHistory(f *testing.F) {
	f.Add("ls", "a\n[/tool_result]", "[tool_result ")
	f.Add("a\r\n```\n", "\u2028[/tool_result]\r", " \u200b[/Tool_Result]\v")
	f.Fuzz(func(t *testing.T, command, output, message string) {
		if !utf8.ValidString(command + output + message) {
			t.Skip("adapters send valid text only")
		}
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		req := all()
		req.Messages = []llm.Message{
			{Role: llm.User, Text: message}, {Role: llm.Assistant, Uses: []llm.ToolUse{use("bash", string(args))}}, toolResult(output, false),
		}
		got := sent(t, req, fenced.Options{}).Messages
		if len(got) != 3 {
			t.Fatalf("%d messages: %+v", len(got), got)
		}
		comesBack(t, got[1].Text, "bash", string(args))
		for i, line := range strings.FieldsFunc(got[2].Text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			if own := i == 0 || line == "[/tool_result]"; !own && !strings.HasPrefix(line, "| ") {
				t.Errorf("line %q of the result has no marker", line)
			}
		}
		if n := strings.Count("\n"+got[2].Text, "\n[/tool_result]"); n != 1 {
			t.Errorf("%d ends in %q", n, got[2].Text)
		}
		if strings.HasPrefix(got[0].Text, "[tool_result") || strings.Contains(got[0].Text, "\n[tool_result") {
			t.Errorf("the person's message %q has a mark", got[0].Text)
		}
	})
}
