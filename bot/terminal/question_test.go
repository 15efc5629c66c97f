package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
)

// card is an approval question with a long command.
func card(show string) *bot.Row {
	return &bot.Row{Purpose: bot.Question, Content: bot.Content{
		Text: "May I?", File: &bot.File{Name: "command.sh.txt", Data: []byte(show)},
		Buttons: [][]bot.Button{{{Label: "Approve once", Data: "a1:ID:y"}}, {{Label: "Deny", Data: "a1:ID:n"}}},
	}}
}

// decided runs a conversation whose every message asks, and lists the messages and the presses that were handed in.
func decided(t *testing.T, o terminal.Options, in io.Reader, seen io.Writer, show string) (messages, presses []string, printed string) {
	t.Helper()
	var out bytes.Buffer
	o.In, o.Out, o.Err, o.Now, o.Chat = in, &out, seen, time.Now, "main"
	term := terminal.New(o)
	var wg sync.WaitGroup
	accept := func(ctx context.Context, raws []turn.Raw) error {
		var m bot.Message
		if err := json.Unmarshal(raws[0].Body, &m); err != nil {
			return err
		}
		row := card(show)
		if m.Kind == bot.Press {
			presses = append(presses, m.Data)
			row = &bot.Row{Purpose: bot.Record}
		} else {
			messages = append(messages, m.Text)
		}
		wg.Go(func() {
			if _, err := term.Send(ctx, row); err != nil {
				t.Error(err)
			}
			if row.Purpose == bot.Record {
				if _, err := term.Send(ctx, &bot.Row{Purpose: bot.Final, Content: bot.Content{Text: "done\x1b[2J"}}); err != nil {
					t.Error(err)
				}
			}
		})
		return nil
	}
	if err := term.Talk(t.Context(), accept); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return messages, presses, out.String()
}

// TestAttackTypedAhead: what was typed or pasted before the question could be seen does not answer it; it is what the
// person says next.
func TestAttackTypedAhead(t *testing.T) {
	t.Parallel()
	person := bottest.NewTypist("go\ny\n", "(seen at the first prompt)", "n", "n", "n")
	messages, presses, _ := decided(t, terminal.Options{Ask: true}, person, person, "rm -rf x")
	if len(presses) == 0 || presses[0] != "a1:ID:n" {
		t.Errorf("presses %q", presses)
	}
	if len(messages) < 2 || messages[0] != "go" || messages[1] != "y" {
		t.Errorf("messages %q", messages)
	}
}

// TestAttackHalfTyped: a line that was begun before the question is no answer either.
func TestAttackHalfTyped(t *testing.T) {
	t.Parallel()
	person := bottest.NewTypist("go\nyes, tell me", " more", "no")
	messages, presses, _ := decided(t, terminal.Options{Ask: true}, person, person, "rm -rf x")
	if len(presses) == 0 || presses[0] != "a1:ID:n" {
		t.Errorf("presses %q, messages %q", presses, messages)
	}
}

// TestNoInput: when the input ends, or nobody sits there, the question ends as one that nobody decided, and never as a
// yes.
func TestNoInput(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]bool{"the input ended": true, "a pipe": false} {
		_, presses, _ := decided(t, terminal.Options{Ask: ask}, strings.NewReader("go\ny\n"), io.Discard, "x")
		if len(presses) == 0 || presses[0] != "a1:ID:g" {
			t.Errorf("%s: presses %q", name, presses)
		}
	}
}

// TestAttackControls: a terminal is shown no control characters of others, and a program gets them exactly.
func TestAttackControls(t *testing.T) {
	t.Parallel()
	const evil = "rm x\x1b[1A\x1b[2K\r\u202els"
	person := bottest.NewTypist("", "go", "n")
	_, _, printed := decided(t, terminal.Options{Ask: true}, person, person, evil)
	if all := printed + person.Seen(); strings.ContainsAny(all, "\x1b\r\u202e") || !strings.Contains(all, "rm x␛[1A␛[2K␍⟨U+202E⟩ls") || !strings.Contains(all, "done␛[2J") {
		t.Errorf("the person saw %q", all)
	}
	_, _, printed = decided(t, terminal.Options{Ask: true, JSON: true}, strings.NewReader("go\n"), io.Discard, evil)
	var e terminal.Event
	if err := json.Unmarshal([]byte(strings.Split(printed, "\n")[0]), &e); err != nil || e.Text != "command.sh.txt:\n"+evil {
		t.Errorf("%v: %q", err, printed)
	}
}

// TestLongInput: a pipe of any length is read as it is used, and a line has a limit.
func TestLongInput(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(strings.Repeat("x", 100<<10)+"\n", 64)
	messages, _, _ := decided(t, terminal.Options{}, strings.NewReader(lines), io.Discard, "x")
	if len(messages) != 64 {
		t.Errorf("%d messages", len(messages))
	}
	term := terminal.New(terminal.Options{In: strings.NewReader(strings.Repeat("x", 2<<20)), Out: io.Discard, Err: io.Discard, Now: time.Now})
	err := term.Talk(t.Context(), func(context.Context, []turn.Raw) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Errorf("%v", err)
	}
}

// TestAttackControlsOfOneAnswer: what is piped in may be on a terminal when it comes out.
func TestAttackControlsOfOneAnswer(t *testing.T) {
	t.Parallel()
	for screen, want := range map[bool]string{true: "done␛[2J\n", false: "done\x1b[2J\n"} {
		var out bytes.Buffer
		term := terminal.New(terminal.Options{In: strings.NewReader(""), Out: &out, Err: io.Discard, Screen: screen, Now: time.Now})
		row := &bot.Row{Purpose: bot.Final, Content: bot.Content{Text: "done\x1b[2J"}}
		if _, err := term.Send(t.Context(), row); err != nil || out.String() != want {
			t.Errorf("screen %t: %q, %v", screen, out.String(), err)
		}
	}
}
