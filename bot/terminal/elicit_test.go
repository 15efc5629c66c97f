package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// ticket is a form with a field of each kind that matters here.
func ticket() content.Form {
	return content.Form{Mode: content.ModeForm, Message: "Which ticket?", Fields: []content.Field{
		{Name: "title", Type: content.String, Description: "what it is about", Required: true},
		{Name: "count", Type: content.Integer, Required: true},
		{Name: "token", Type: content.String, Sensitive: true},
	}}
}

// asked runs one message whose tool asks for input, and gives what came of it and what the person saw.
func asked(t *testing.T, form content.Form, input string, o terminal.Options) (terminal.Reply, string, error) {
	t.Helper()
	var out bytes.Buffer
	seen := bottest.NewTypist("", strings.Split(strings.TrimSuffix(input, "\n"), "\n")...)
	if input == "" {
		seen = bottest.NewTypist("")
	}
	o.In, o.Out, o.Err, o.Now, o.Chat = seen, &out, seen, time.Now, "main"
	term := terminal.New(o)
	var wg sync.WaitGroup
	var reply terminal.Reply
	var failed error
	accept := func(context.Context, []turn.Raw) error {
		wg.Go(func() {
			reply, failed = term.Elicit(t.Context(), terminal.Request{Server: "tickets", Tool: "tickets:open", Form: form, Warn: true})
			if _, err := term.Send(t.Context(), &bot.Row{Purpose: bot.Final, Content: bot.Content{Text: "done"}}); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	if err := term.Once(t.Context(), accept, "go"); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return reply, seen.Seen(), failed
}

func TestElicit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		input string
		want  terminal.Reply
	}{
		"filled":       {"Printer\n3\n\n", terminal.Reply{Accept: true, Values: map[string]any{"title": "Printer", "count": int64(3)}}},
		"second try":   {"Printer\nthree\n3\nsecret\n", terminal.Reply{Accept: true, Values: map[string]any{"title": "Printer", "count": int64(3), "token": "secret"}}},
		"cancelled":    {"Printer\n/cancel\n", terminal.Reply{Cancel: true}},
		"input ended":  {"Printer\n", terminal.Reply{Cancel: true}},
		"nothing said": {"", terminal.Reply{Cancel: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, seen, err := asked(t, ticket(), tt.input, terminal.Options{Ask: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s\n%s", diff, seen)
			}
			head := strings.Index(seen, "The MCP server tickets asks")
			if head < 0 || head > strings.Index(seen, "Which ticket?") || !strings.Contains(seen, "sounds like a secret") || !strings.Contains(seen, "/cancel") {
				t.Errorf("the person saw:\n%s", seen)
			}
		})
	}
}

func TestConsent(t *testing.T) {
	t.Parallel()
	form := content.Form{Mode: content.ModeForm, Message: "Go on?"}
	for input, want := range map[string]terminal.Reply{
		"y\n": {Accept: true, Values: map[string]any{}}, "maybe\nno\n": {}, "/cancel\n": {Cancel: true},
	} {
		got, seen, err := asked(t, form, input, terminal.Options{Ask: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s\n%s", input, diff, seen)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]terminal.Options{"a pipe": {}, "JSON": {Ask: true, JSON: true}} {
		if _, _, err := asked(t, ticket(), "3\nx\n\n", o); err == nil {
			t.Errorf("%s: the question was asked", name)
		}
	}
	term := terminal.New(terminal.Options{In: strings.NewReader(""), Ask: true, Now: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := term.Elicit(ctx, terminal.Request{Server: "s", Form: ticket()}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody works on a message: %v", err)
	}
}
