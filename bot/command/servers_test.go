package command_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// servers is an MCP client with one server.
type servers struct{ begun []string }

func (*servers) List() []texts.Server {
	return []texts.Server{{ID: "files", State: "connected", Tools: 2, Trust: "untrusted"}}
}

func (*servers) Tools(id string) ([]texts.ServerTool, error) {
	if id != "files" {
		return nil, command.ErrNoServer
	}
	return []texts.ServerTool{{Name: "files:read", Description: "reads"}}, nil
}

func (s *servers) Begin(_ context.Context, _ *turn.Call, verb, id string, target []string) (turn.Effect, error) {
	if id == "bad" {
		return turn.Effect{}, errors.New("the command /bin/sh is not allowed")
	}
	if id == "nope" {
		return turn.Effect{}, command.ErrNoServer
	}
	s.begun = append(s.begun, verb+" "+id+" "+strings.Join(target, " "))
	return turn.Effect{Change: bot.Change{Facts: []bot.Fact{{Bucket: "begun", Key: id}}}}, nil
}

func (*servers) Pending(_ context.Context, _, id string) (string, []texts.ServerChange, error) {
	if id != "files" {
		return "", nil, nil
	}
	return "c0de", []texts.ServerChange{
		{Tool: "files:write", Old: []string{"writes", "path"}, Now: []string{"writes", "path", "password"}},
		{Tool: "files:new", New: true, Now: []string{"x"}},
		{Old: []string{"be good"}, Now: []string{"be bad"}},
	}, nil
}

func TestServers(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want, begun string }{
		{"mcp", "• files · connected · 2 tools · untrusted", ""},
		{"mcp list", "• files · connected", ""},
		{"mcp LIST", "• files · connected", ""},
		{"mcp foo", "/mcp add ID URL", ""},
		{"mcp add x", "/mcp add ID COMMAND…", ""},
		{"mcp add x npx -y server", "Connecting to x …", "add x npx -y server"},
		{"mcp add bad /bin/sh", "bad: the command /bin/sh is not allowed", ""},
		{"mcp restart files", "Connecting to files …", "restart files "},
		{"mcp signin files", "Connecting to files …", "signin files "},
		{"mcp signin files https://x", "Connecting to files …", "signin files https://x"},
		{"mcp restart", "/mcp restart ID", ""},
		{"mcp tools files", "files · 1 tool\n• files:read – reads", ""},
		{"mcp tools nope", "There is no server nope.", ""},
		{"mcp tools", "/mcp tools ID", ""},
		{"mcp remove files", "", "remove files "},
		{"mcp remove nope", "There is no server nope.", ""},
		{
			"mcp accept files",
			"• files:write\n+ password\n• files:new (new)\n+ x\n• files: instructions\n- be good\n+ be bad\nTo accept exactly this: /mcp accept files c0de", "",
		},
		{"mcp accept files c0de", "", "accept files c0de"},
		{"mcp accept other", "other: nothing has changed", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			s := &servers{}
			d.deps.Servers = s
			d.table = command.New(d.deps)
			e := d.run(call(tt.text, true))
			if rows := e.Change.Send; (tt.want == "") != (len(rows) == 0) || tt.want != "" && !strings.Contains(rows[0].Content.Text, tt.want) {
				t.Errorf("%+v, want %q", rows, tt.want)
			}
			if e := d.run(call(tt.text, true)); len(e.Change.Facts) != len(s.begun)/2 {
				t.Errorf("what was begun is not stored with the answer: %+v", e.Change)
			} else if len(s.begun) > 0 {
				s.begun = s.begun[:1]
			}
			if got := strings.Join(s.begun, "|"); got != tt.begun {
				t.Errorf("begun %q, want %q", got, tt.begun)
			}
		})
	}
}

// TestRefusedByModels: /mcp and /mcp tools show which tools of the servers in question the servers of models refuse.
func TestRefusedByModels(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.deps.Servers = &servers{}
	d.deps.About.Aside = func() []texts.SetAside {
		return []texts.SetAside{
			{Provider: "main", Model: "m", Tool: "files:read", Reason: "no such type"},
			{Provider: "main", Model: "m", Tool: "filesystem:x", Reason: "bad"},
			{Provider: "main", Model: "m", Tool: "bash", Reason: "bad"},
			{Provider: "other", Model: "m"},
		}
	}
	d.table = command.New(d.deps)
	refused := "\nNot offered, because the model's server refuses them:\n• files:read – main: no such type"
	for _, text := range []string{"mcp", "mcp list", "mcp tools files"} {
		if got := d.answer(call(text, true)); !strings.HasSuffix(got, refused) {
			t.Errorf("%s:\n%s", text, got)
		}
	}
	if got := d.answer(call("mcp tools nope", true)); !strings.HasPrefix(got, "There is no server nope.") || strings.Contains(got, "refuses") {
		t.Error(got)
	}
	d.deps.About.Aside = func() []texts.SetAside { return nil }
	d.table = command.New(d.deps)
	if got := d.answer(call("mcp", true)); strings.Contains(got, "refuses") {
		t.Error(got)
	}
}

// blocks is one tool that failed too often.
type blocks struct{ gone string }

func (*blocks) Blocked(_ bot.SessionKey, _ string, all bool) []texts.Blocked {
	list := []texts.Blocked{{Tool: "fetch", Reason: "8 of 10 calls failed", Left: 5 * time.Minute}}
	if all {
		list = append(list, texts.Blocked{Tool: "grep", Reason: "it too", Left: 30 * time.Second, Elsewhere: true})
	}
	return list
}

func (*blocks) Lifted(tool string) []bot.Fact { return []bot.Fact{{Bucket: "blocked", Key: tool}} }

func (b *blocks) Unblock(_ context.Context, tool string) (bool, error) {
	b.gone = tool
	return tool == "fetch", nil
}

func TestBlockedTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text      string
		admin     bool
		want, got string
	}{
		{"tools", false, "• fetch – 8 of 10 calls failed (5 minutes left)", ""},
		{"tools", true, "• fetch – 8 of 10 calls failed (5 minutes left)\n• grep – it too (30 seconds left, in another conversation or for somebody else)", ""},
		{"tools unblock fetch", false, "That is for admins", ""},
		{"tools unblock fetch", true, "fetch can be used again.", "fetch"},
		{"tools unblock bash", true, "bash is not blocked.", "bash"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			b := &blocks{}
			d.deps.Blocks = b
			d.table = command.New(d.deps)
			e := d.run(call(tt.text, tt.admin))
			if got := e.Change.Send[0].Content.Text; !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if lifted := len(e.Change.Facts) == 1 && e.Change.Facts[0].Key == "fetch"; lifted != (tt.got == "fetch") {
				t.Errorf("stored with the answer: %+v", e.Change.Facts)
			}
			if e.Then != nil {
				if b.gone != "" {
					t.Error("unblocked before that was stored")
				}
				if _, err := e.Then(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if b.gone != tt.got {
				t.Errorf("unblocked %q, want %q", b.gone, tt.got)
			}
		})
	}
}
