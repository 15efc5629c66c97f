package app_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/acp/acptest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// studio is an editor with an agent, and a project.
type studio struct {
	*acptest.Editor
	dir, state string
	options    app.ACPOptions
}

// openStudio starts `zephbot acp` with a scripted model.
func openStudio(t *testing.T, e *acptest.Editor, script, conf string) *studio {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &studio{Editor: e, dir: filepath.Join(base, "project"), state: filepath.Join(base, "state")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.start(t, script, conf)
	return d
}

// start starts the agent, with the state that an earlier one left.
func (d *studio) start(t *testing.T, script, conf string) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "zephbot.toml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{WorkDir: home, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	model, err := llmtest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	d.Start(t, func(in io.Reader, out io.Writer) error {
		o := d.options
		o.In, o.Out, o.Language = in, out, "en"
		return app.ACP(t.Context(), app.Options{Config: cfg, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: home, State: d.state, Provider: model}, o)
	})
	d.Greet(t)
}

// file writes a file of the project.
func (d *studio) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEditorEditsWithPermission: an editor session edits a file with a permission request, whose diff and options the
// person sees; the notifications have one id from the question to the end.
func TestEditorEditsWithPermission(t *testing.T) {
	t.Parallel()
	d := openStudio(t, &acptest.Editor{}, `on "fix": call edit {"path":"a.txt","old_string":"helo","new_string":"hello"}
then say Fixed.`, "")
	path := d.file(t, "a.txt", "helo world\n")
	s := d.Begin(t, d.dir)
	if reason := d.Say(t, s, acptest.Text("fix it")); reason != "end_turn" {
		t.Errorf("ended with %s", reason)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "hello world\n" {
		t.Errorf("the file has %q", raw)
	}
	asked := d.Asked()
	if len(asked) != 1 {
		t.Fatalf("asked %d times: %s", len(asked), strings.Join(d.Lines(), "\n"))
	}
	var kinds []string
	for _, o := range asked[0].Options {
		kinds = append(kinds, string(o.Kind))
	}
	if got := strings.Join(kinds, " "); got != "allow_once allow_always reject_once" {
		t.Errorf("options %s", got)
	}
	id := string(asked[0].ToolCall.ToolCallId)[:8]
	if got, want := strings.Join(d.Calls(s), ", "), id+" edit pending, "+id+" in_progress, "+id+" completed"; got != want {
		t.Errorf("calls: %s, want %s", got, want)
	}
	if said := d.Said(s); strings.TrimSpace(said) != "Fixed." {
		t.Errorf("said %q", said)
	}
}

// TestEditorTerminal: a command runs in the editor's terminal if the editor can, after a question that says so; its
// output is that of the call, without credentials, and the audit log names the caller.
func TestEditorTerminal(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{Capabilities: acptest.Capabilities{Terminal: true}}
	d := openStudio(t, e, `on "go": call bash {"command":"pwd; echo token=ghp_0123456789abcdefghijABCDEFGHIJ012345; exit 3"}
then expect "exit code 3"
and say Ran.`, "")
	s := d.Begin(t, d.dir)
	if reason := d.Say(t, s, acptest.Text("go")); reason != "end_turn" {
		t.Errorf("ended with %s", reason)
	}
	if got := d.Ended(); len(got) != 1 || got[0] != "exit 3, released" {
		t.Errorf("terminals: %q", got)
	}
	asked := d.Asked()
	if len(asked) != 1 || !strings.Contains(asked[0].ToolCall.Content[0].Content.Content.Text.Text, "in the editor's terminal, outside the sandbox") {
		t.Errorf("asked %+v", asked)
	}
	output := strings.Join(d.Outputs(s), "\n")
	if !strings.Contains(output, d.dir) || strings.Contains(output, "ghp_0123") {
		t.Errorf("output %q", output)
	}
	calls := d.Calls(s)
	if len(calls) != 3 || !strings.HasSuffix(calls[0], " execute pending") || !strings.HasSuffix(calls[2], " failed") {
		t.Errorf("calls %q", calls)
	}
	logs, err := filepath.Glob(filepath.Join(d.state, "acp", "*", "audit.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v: %q", err, logs)
	}
	if raw, _ := os.ReadFile(logs[0]); !strings.Contains(string(raw), `"caller_id":"acp:`) {
		t.Errorf("audit: %s", raw)
	}
}

// TestEditorBuffers: what is not saved is read and edited through the editor, and the rules hold there as well.
func TestEditorBuffers(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{Capabilities: acptest.Capabilities{Fs: acptest.Files{ReadTextFile: true, WriteTextFile: true}}}
	d := openStudio(t, e, `on "go": call read {"path":"a.txt"}
then expect "unsaved"
and call edit {"path":"a.txt","old_string":"unsaved","new_string":"changed"}
then expect "Replaced 1"
and call read {"path":".env"}
then expect "may not be read here"
and call write {"path":"new/b.txt","content":"made\n"}
then say Done.`, "[tools.file]\ndeny_read = [\"*.env\"]\n")
	path := d.file(t, "a.txt", "saved\n")
	secret := d.file(t, ".env", "saved\n")
	d.Buffer(path, "unsaved\n")
	d.Buffer(secret, "secret\n")
	s := d.Begin(t, d.dir)
	d.Say(t, s, acptest.Text("go"))
	if said := strings.TrimSpace(d.Said(s)); said != "Done." {
		t.Errorf("said %q", said)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "changed\n" {
		t.Errorf("the file has %q", raw)
	}
	if got := d.Written(); len(got) != 2 || got[0] != path || got[1] != filepath.Join(d.dir, "new", "b.txt") {
		t.Errorf("written %q", got)
	}
	if strings.Contains(strings.Join(d.Lines(), "\n"), `"path":"`+secret+`"},"sessionId`) {
		t.Error("the editor was asked for a file that may not be read")
	}
}
