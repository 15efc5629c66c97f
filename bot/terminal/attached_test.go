package terminal_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
)

// TestAttach: an @ before the path of a file of the directory attaches it; nothing else does, whatever is pasted.
func TestAttach(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "work")
	for name, text := range map[string]string{
		"work/a.txt": "key=secret\n", "work/sub/b.md": "# B\n", "work/p.png": "\x89PNG", "work/x.bin": "a\x00b", "outside.txt": "no",
		"work/long.txt": strings.Repeat("é", 40<<10),
	} {
		path := filepath.Join(above, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(above, "outside.txt"), filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	files := &terminal.Attached{
		Dir: dir, Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "[redacted]") },
		Wrap: func(from source.Source, text string) (string, []string) { return "<" + string(from) + ">" + text, nil },
	}
	for text, want := range map[string][]string{
		"compare @a.txt, @sub/b.md and (@a.txt).":     {"a.txt", "sub/b.md"},
		"look at @p.png and @x.bin":                   {"p.png", "x.bin"},
		"@../outside.txt @link.txt @/etc/passwd @sub": nil,
		"mail me@a.txt, @ann, @":                      nil,
		"/status @a.txt":                              nil,
	} {
		m := typedMessage(t, dir, text)
		var got []string
		for _, a := range m.Files {
			got = append(got, a.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	m := typedMessage(t, dir, "@a.txt @x.bin @long.txt @p.png")
	next := &restReceiver{}
	got, err := files.Receive(next).Receive(t.Context(), &turn.Sent{Message: &m})
	if err != nil || len(got.Parts) != 3 {
		t.Fatalf("%v: %+v", err, got)
	}
	if p := got.Parts[0].Text; !strings.Contains(p, "key=[redacted]") || !strings.Contains(p, `"a.txt", 11 bytes`) {
		t.Errorf("a text: %q", p)
	}
	if p := got.Parts[1].Text; !strings.Contains(p, "no text in UTF-8") {
		t.Errorf("what is no text: %q", p)
	}
	if p := got.Parts[2].Text; len(p) > 33<<10 || !strings.Contains(p, "read on with the file tools") || strings.Contains(p, "\uFFFD") {
		t.Errorf("a long text: %d bytes", len(p))
	}
	if len(next.files) != 1 || next.files[0].Kind != bot.Photo {
		t.Errorf("the rest: %+v", next.files)
	}
	if _, err := files.Fetch(t.Context(), "../outside.txt"); err == nil {
		t.Error("a file outside was opened")
	}
	content, err := files.Fetch(t.Context(), "p.png")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(content); err != nil || string(raw) != "\x89PNG" || content.Close() != nil {
		t.Errorf("%v: %q", err, raw)
	}
}

// restReceiver takes what a terminal does not read itself.
type restReceiver struct{ files []bot.Attachment }

// Receive implements turn.Attachments.
func (r *restReceiver) Receive(_ context.Context, sent *turn.Sent) (turn.Received, error) {
	r.files = sent.Message.Files
	return turn.Received{}, nil
}

// typedMessage returns the message that a terminal in a directory makes of a text.
func typedMessage(t *testing.T, dir, text string) (m bot.Message) {
	t.Helper()
	term := terminal.New(terminal.Options{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Dir: dir, Chat: "main", Now: time.Now})
	accept := func(ctx context.Context, raws []turn.Raw) error {
		if err := json.Unmarshal(raws[0].Body, &m); err != nil {
			return err
		}
		_, err := term.Send(ctx, &bot.Row{Purpose: bot.Reply})
		return err
	}
	if err := term.Once(t.Context(), accept, text); err != nil && !errors.Is(err, terminal.ErrNoAnswer) {
		t.Fatal(err)
	}
	return m
}
