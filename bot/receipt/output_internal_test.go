package receipt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/tools/chain"
)

// turnOf is a turn whose only call has printed a text.
func turnOf(args, text string) *about {
	return &about{entries: []journal.Entry{
		{Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: "1.0", Args: json.RawMessage(args)}}},
		{Kind: journal.ResultEntry, Call: "1.0", Tool: "bash", Ran: true, Text: text},
		{Kind: journal.ResultEntry, Call: "1.1", Tool: "write", Text: "refused"},
	}}
}

// TestOutput: what fits is a message of quotes, what does not is a file that is cut; what is no output is left out, and
// nothing that is shown can be clicked or has a credential.
func TestOutput(t *testing.T) {
	t.Parallel()
	d := New(Deps{Plain: chain.StripMarks, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }})
	msg := &bot.Message{Language: "en"}
	for name, row := range map[string]struct {
		args, text, want string
	}{
		"a command":      {`{"command":"cat a","timeout":5}`, "one\ntwo\n", "bash · cat a\none\ntwo"},
		"no arguments":   {`[`, "one", "bash\none"},
		"a credential":   {`{"command":"echo hunter2"}`, "hunter2", "bash · echo [redacted]\n[redacted]"},
		"foreign text":   {`{}`, `<external-data id="0123456789abcdef" source="x">` + "\nhi\n" + `</external-data id="0123456789abcdef">`, "bash\nhi"},
		"a long command": {`{"command":"` + strings.Repeat("x", 500) + `"}`, "y", "bash · " + strings.Repeat("x", 192) + "…\ny"},
	} {
		content := d.outputMessage(msg, d.outputs(turnOf(row.args, row.text)))
		if content.Text != row.want || content.File != nil {
			t.Errorf("%s: %q", name, content.Text)
		}
	}
	content := d.outputMessage(msg, d.outputs(turnOf(`{"command":"/bin/x"}`, "see @ann and https://example.org")))
	var kinds []string
	last := -1
	for _, e := range content.Entities {
		if e.Offset < last || e.Offset+e.Length > render.Length(content.Text) {
			t.Errorf("%+v is out of order or too long", e)
		}
		last = e.Offset
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "code expandable_blockquote code") {
		t.Errorf("entities %s", got)
	}
	long := d.outputMessage(msg, d.outputs(turnOf(`{"command":"a\nb"}`, strings.Repeat("é", outputBytes))))
	if long.File == nil || !strings.HasPrefix(string(long.File.Data), "# bash · a\n# b\né") || !strings.HasSuffix(string(long.File.Data), "é\n…\n") || len(long.File.Data) > outputBytes+8 {
		t.Errorf("the file is %+v", long.File)
	}
	if list := d.outputs(turnOf(`{}`, " \n")); len(list) != 0 {
		t.Errorf("nothing was printed, and shown is %q", list)
	}
}
