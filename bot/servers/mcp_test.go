package servers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// files is a client with the server "files", which was added in a chat and has changed.
type files struct{ servers.Client }

func (files) Statuses() []mcp.Status {
	return []mcp.Status{{ID: "files", State: mcp.Connected, Trust: "untrusted", Tools: []string{"read", "write"}, Dynamic: true}}
}

func (files) Tools(string) []tools.Definition {
	return []tools.Definition{{Name: "files:read", Description: "reads\nmuch"}}
}

func (files) Loaded(context.Context) error { return nil }

func (files) Ready(context.Context) error { return nil }

func (files) Check(cfg mcp.Server) error {
	if cfg.ID == "bad" {
		return errors.New("the command is not allowed")
	}
	return nil
}

func (files) Holds(mcp.Server) string { return "" }

func (files) Pending(context.Context, string) (mcp.Pending, error) {
	return mcp.Pending{Code: "c0de", Changes: []mcp.Change{
		{Tool: "files:write", Old: mcp.Shown{Description: "writes\npath"}, Now: mcp.Shown{Description: "writes\npath\npassword"}},
		{Tool: "files:new", New: true, Now: mcp.Shown{Description: "x"}},
		{Old: mcp.Shown{Description: "be good"}, Now: mcp.Shown{Description: "be bad"}},
	}}, nil
}

// asking is a broker that puts questions into the Change.
type asking struct{ servers.Broker }

func (asking) Ask(_ context.Context, asked turn.Asked, change *bot.Change) error {
	change.Ask = append(change.Ask, bot.Approval{ID: asked.Turn})
	return nil
}

// TestMCP: /mcp shows the servers, and begins what takes a while with what is stored for that.
func TestMCP(t *testing.T) {
	t.Parallel()
	refused := "\nNot offered, because the model's server refuses them:\n• files:read – main: no such type"
	for _, row := range []struct {
		args, want string
		begins     string // the verb of the job that is stored with the answer
	}{
		{"", "• files · connected · 2 tools · untrusted" + refused, ""},
		{"list", "• files · connected · 2 tools · untrusted" + refused, ""},
		{"LIST", "• files · connected", ""},
		{"foo", "/mcp add ID URL", ""},
		{"add x", "/mcp add ID COMMAND…", ""},
		{"add x npx -y server", "", "add"},
		{"add bad npx", "bad: the command is not allowed", ""},
		{"restart files", "Connecting to files …", "restart"},
		{"restart", "/mcp restart ID", ""},
		{"tools files", "files · 1 tool\n• files:read – reads" + refused, ""},
		{"tools nope", "There is no server nope.", ""},
		{"tools", "/mcp tools ID", ""},
		{"remove files", "", "remove"},
		{"remove nope", "There is no server nope.", ""},
		{
			"accept files",
			"• files:write\n+ password\n• files:new (new)\n+ x\n• files: instructions\n- be good\n+ be bad\nTo accept exactly this: /mcp accept files c0de", "",
		},
		{"accept files c0de", "", "accept"},
		{"accept other", "There is no server other.", ""},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			store := bottest.New()
			d := servers.New(servers.Deps{
				Setup:  servers.Setup{Channel: "telegram", Bot: "7", Owner: "first", Programs: true, AllowedCommands: []string{"npx"}},
				Client: files{}, Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Moves: &moves.Map{}, Broker: asking{}, Audit: &ledger{}, Now: time.Now, Log: zerolog.Nop(),
				Shares: func() (map[string]catalog.Share, int) { return nil, 0 },
				Aside: func() []texts.SetAside {
					return []texts.SetAside{
						{Provider: "main", Model: "m", Tool: "files:read", Reason: "no such type"},
						{Provider: "main", Model: "m", Tool: "filesystem:x", Reason: "bad"},
						{Provider: "main", Model: "m", Tool: "bash", Reason: "bad"},
						{Provider: "other", Model: "m"},
					}
				},
			})
			call := ask()
			call.Message.Args = row.args
			e, err := d.Command(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if len(e.Change.Send) > 0 {
				text = e.Change.Send[0].Content.Text
			}
			if row.want == "" && text != "" || !strings.Contains(text, row.want) {
				t.Errorf("%q, want %q", text, row.want)
			}
			begun := ""
			for _, f := range e.Change.Facts {
				if f.Bucket == "mcp_job" {
					begun = f.Value
				}
			}
			if (begun == "") != (row.begins == "") || !strings.Contains(begun, `"verb":"`+row.begins) && row.begins != "" {
				t.Errorf("stored with the answer: %q, want %q", begun, row.begins)
			}
			if (len(e.Change.Ask) > 0) != (row.begins == "add") {
				t.Errorf("questions %+v", e.Change.Ask)
			}
		})
	}
}
