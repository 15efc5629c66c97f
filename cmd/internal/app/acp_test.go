package app_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	return openStudioWith(t, e, app.ACPOptions{}, script, conf)
}

func openStudioWith(t *testing.T, e *acptest.Editor, o app.ACPOptions, script, conf string) *studio {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &studio{Editor: e, dir: filepath.Join(base, "project"), state: filepath.Join(base, "state"), options: o}
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
		o.In, o.Out, o.Language = in, out, cmp.Or(o.Language, "en")
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

// TestEditorTerminalIsKilled: a command that takes too long is killed, its terminal is given back, and what it printed is
// kept.
func TestEditorTerminalIsKilled(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{Capabilities: acptest.Capabilities{Terminal: true}}
	d := openStudioWith(t, e, app.ACPOptions{Timeout: 2 * time.Second}, `on "go": call bash {"command":"echo begun; sleep 600"}
then expect "timeout"
and say Late.`, "")
	s := d.Begin(t, d.dir)
	d.Say(t, s, acptest.Text("go"))
	if got := d.Ended(); len(got) != 1 || got[0] != "killed, released" {
		t.Errorf("terminals: %q", got)
	}
	if output := strings.Join(d.Outputs(s), "\n"); !strings.Contains(output, "begun") || !strings.Contains(output, "stopped after 2s") {
		t.Errorf("output %q", output)
	}
}

// TestEditorCancels: cancelling ends the turn at once, while a question waits and while a command runs; the question is
// withdrawn, the command is killed, and nothing runs that was not approved.
func TestEditorCancels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, command, ended string }{
		{"while it asks", "touch made", ""}, {"while a command runs", "touch made; sleep 600", "killed, released"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := &acptest.Editor{Capabilities: acptest.Capabilities{Terminal: true}}
			asked := make(chan struct{})
			e.Decide = func(ctx context.Context, _ acptest.Permission) string {
				close(asked)
				if tt.ended == "" {
					<-ctx.Done()
					return "y" // too late
				}
				return "y"
			}
			d := openStudio(t, e, `on "go": call bash {"command":"`+tt.command+`"}
then say Done.
on "again": say Here.`, "")
			s := d.Begin(t, d.dir)
			var cancelling sync.WaitGroup
			cancelling.Go(func() {
				<-asked
				for tt.ended != "" && len(d.Ended()) == 0 {
					runtime.Gosched()
				}
				if err := d.Cancel(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
			if reason := d.Say(t, s, acptest.Text("go")); reason != "cancelled" {
				t.Errorf("ended with %s", reason)
			}
			cancelling.Wait()
			if got := strings.Join(d.Ended(), " "); got != tt.ended {
				t.Errorf("terminals %q", got)
			}
			if _, err := os.Stat(filepath.Join(d.dir, "made")); tt.ended == "" && err == nil {
				t.Error("it ran without an approval")
			}
			if calls := d.Calls(s); len(calls) == 0 || !strings.HasSuffix(calls[len(calls)-1], " failed") {
				t.Errorf("calls %q", calls)
			}
			if reason := d.Say(t, s, acptest.Text("again")); reason != "end_turn" || !strings.HasSuffix(d.Said(s), "Here.") {
				t.Errorf("ended with %s, said %q", reason, d.Said(s))
			}
		})
	}
}

// TestEditorCancelsRequest: a prompt that is cancelled by the id of its request ends like one that session/cancel ends;
// another prompt of its session, which is refused, does not end it.
func TestEditorCancelsRequest(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{}
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	e.Decide = func(ctx context.Context, _ acptest.Permission) string {
		close(asked)
		<-ctx.Done()
		close(withdrawn)
		return "y" // too late
	}
	d := openStudio(t, e, `on "go": call bash {"command":"touch made"}
then say Done.
on "again": say Here.`, "")
	s := d.Begin(t, d.dir)
	ctx, cancel := context.WithCancel(t.Context())
	var cancelling sync.WaitGroup
	cancelling.Go(func() {
		<-asked
		if _, err := d.TrySay(t.Context(), s, acptest.Text("second")); err == nil {
			t.Error("two prompts at once")
		}
		select {
		case <-withdrawn:
			t.Error("a refused prompt has ended the one before it")
		default:
		}
		cancel()
	})
	if reason, err := d.TrySay(ctx, s, acptest.Text("go")); err == nil && reason != "cancelled" {
		t.Errorf("ended with %s", reason)
	}
	cancelling.Wait()
	<-withdrawn
	for { // the client does not wait for the end of what it has cancelled
		reason, err := d.TrySay(t.Context(), s, acptest.Text("again"))
		if err == nil {
			if reason != "end_turn" || !strings.HasSuffix(d.Said(s), "Here.") {
				t.Errorf("ended with %s, said %q", reason, d.Said(s))
			}
			break
		}
		runtime.Gosched()
	}
	if _, err := os.Stat(filepath.Join(d.dir, "made")); err == nil {
		t.Error("it ran without an approval")
	}
}

// TestEditorIsTold: an editor learns which commands there are, in the person's language like the names of the modes,
// and what its session has used.
func TestEditorIsTold(t *testing.T) {
	t.Parallel()
	d := openStudioWith(t, &acptest.Editor{}, app.ACPOptions{Language: "de"}, `on "go": say Fertig.
and usage 120 30 0.15`, "")
	s := d.Begin(t, d.dir)
	if names := strings.Join(d.Commands(s), " "); !strings.Contains(names, "status") || !strings.Contains(names, "help") {
		t.Errorf("commands: %s", names)
	}
	if lines := strings.Join(d.Lines(), "\n"); !strings.Contains(lines, `"name":"Nur lesen"`) {
		t.Errorf("no German name of a mode in %s", lines)
	}
	d.Say(t, s, acptest.Text("go"))
	if u := d.Usage(s); u == nil || u.Used != 150 || u.Size < u.Used || u.Cost == nil || u.Cost.Amount != 0.15 {
		t.Errorf("used: %+v", u)
	}
	loaded, err := d.Load(t.Context(), d.dir, s)
	if err != nil || loaded.Modes.AvailableModes[0].Name != "Fragen" {
		t.Errorf("%v: %+v", err, loaded.Modes)
	}
}

// TestEditorDenies: a question that is dismissed is denied, and what was approved for the session is not asked again.
func TestEditorDenies(t *testing.T) {
	t.Parallel()
	answers := []string{"", "n", "s"}
	e := &acptest.Editor{}
	e.Decide = func(context.Context, acptest.Permission) string {
		next := answers[0]
		answers = answers[1:]
		return next
	}
	d := openStudio(t, e, `on "go": call create_directory {"path":"made"}
then say Done.`, "")
	s := d.Begin(t, d.dir)
	for n, want := range []bool{false, false, true} {
		d.Say(t, s, acptest.Text("go"))
		if _, err := os.Stat(filepath.Join(d.dir, "made")); (err == nil) != want {
			t.Errorf("prompt %d: %v", n+1, err)
		}
	}
	d.Say(t, s, acptest.Text("go"))
	if n := len(d.Asked()); n != 3 {
		t.Errorf("asked %d times", n)
	}
}

// TestEditorSaysWhy: where the editor shows forms, who denies is asked why. The denial counts at once; the model reads the
// reason before its next step, here that of the next prompt.
func TestEditorSaysWhy(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{Decide: func(context.Context, acptest.Permission) string { return "n" }}
	e.Capabilities.Elicitation = acptest.Forms()
	e.Answer = func(*acptest.Form) map[string]any { return map[string]any{"why": "use another name"} }
	d := openStudio(t, e, `on "go": call create_directory {"path":"made"}
then expect "declined"
and say Not made.
on "another name": say I know why.`, "")
	s := d.Begin(t, d.dir)
	d.Say(t, s, acptest.Text("go"))
	if said := d.Said(s); !strings.HasSuffix(said, "Not made.") && !strings.HasSuffix(said, "I know why.") {
		t.Errorf("said %q", said)
	}
	for end := time.Now().Add(time.Minute); len(d.Filled()) == 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("nobody is asked why")
		}
	}
	for end := time.Now().Add(time.Minute); !strings.HasSuffix(d.Said(s), "I know why."); {
		if time.Now().After(end) {
			t.Fatalf("the model does not read it: %q", d.Said(s))
		}
		d.Say(t, s, acptest.Text("and"))
	}
}

// TestEditorAnswers: what the model wants to know is one form where the editor shows forms, and else a dialog for each
// question with choices. Who closes it does not answer.
func TestEditorAnswers(t *testing.T) {
	t.Parallel()
	const where, when, why = `{"question":"Where?","choices":["Lisbon","Oslo"]}`, `{"question":"When?","date":true}`, `{"question":"Why?"}`
	for name, tt := range map[string]struct {
		questions string
		filled    map[string]any // nil: the editor shows no forms
		decided   []string
		want      string
		asked     int
	}{
		"a form": {
			questions: where + `,{"question":"Who?","choices":["Ann","Ben","Cy"],"several":true},` + when,
			filled:    map[string]any{"answer1": "Oslo", "answer2": []any{"Ann", "Cy"}, "answer3": "2030-12-24"},
			want:      `[{"question":"Where?","chosen":["Oslo"]},{"question":"Who?","chosen":["Ann","Cy"]},{"question":"When?","date":"2030-12-24"}]`,
		},
		"a part of a form":    {questions: where + "," + why, filled: map[string]any{"answer2": "so"}, want: `[{"question":"Where?","skipped":true},{"question":"Why?","said":"so"}]`},
		"dialogs":             {questions: where + "," + why + "," + where, decided: []string{"1", "2"}, asked: 2, want: `[{"question":"Where?","chosen":["Oslo"]},{"question":"Why?","skipped":true},{"question":"Where?","skipped":true}]`},
		"a closed dialog":     {questions: where, decided: []string{""}, asked: 1, want: "The person does not want to answer."},
		"a forged choice":     {questions: where, decided: []string{"7"}, asked: 1, want: "The person does not want to answer."},
		"nothing to ask with": {questions: why, want: "Nobody answered in time."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &acptest.Editor{}
			if tt.filled != nil {
				e.Capabilities.Elicitation = acptest.Forms()
				e.Answer = func(*acptest.Form) map[string]any { return tt.filled }
			}
			decided := tt.decided
			e.Decide = func(context.Context, acptest.Permission) string {
				next := decided[0]
				decided = decided[1:]
				return next
			}
			d := openStudio(t, e, "on \"go\": call ask_user {\"questions\":["+tt.questions+"]}\nthen expect "+strconv.Quote(tt.want)+"\nand say Done.", "")
			s := d.Begin(t, d.dir)
			d.Say(t, s, acptest.Text("go"))
			if said := d.Said(s); !strings.HasSuffix(said, "Done.") || len(d.Asked()) != tt.asked {
				t.Errorf("said %q, asked %d times", said, len(d.Asked()))
			}
		})
	}
}

// TestEditorModes: a mode restricts what the configuration allows, and never widens it.
func TestEditorModes(t *testing.T) {
	t.Parallel()
	const script = `on "go": call bash {"command":"touch made"}
then say Done.
on "look": call read {"path":"a.txt"}
then expect "text"
and say Read.`
	for _, tt := range []struct {
		level, mode string
		asked, ran  bool
	}{
		{"full", "ask", true, true},
		{"full", "code", false, true},
		{"full", "architect", false, false},
		{"supervised", "code", true, true},
		{"readonly", "code", false, false},
	} {
		t.Run(tt.level+" "+tt.mode, func(t *testing.T) {
			t.Parallel()
			d := openStudio(t, &acptest.Editor{}, script, "[security]\nautonomy_level = \""+tt.level+"\"\n")
			d.file(t, "a.txt", "text")
			s := d.Begin(t, d.dir)
			if err := d.Mode(t.Context(), s, tt.mode); err != nil {
				t.Fatal(err)
			}
			d.Say(t, s, acptest.Text("go"))
			if asked := len(d.Asked()) > 0; asked != tt.asked {
				t.Errorf("asked: %t", asked)
			}
			if _, err := os.Stat(filepath.Join(d.dir, "made")); (err == nil) != tt.ran {
				t.Errorf("ran: %v", err)
			}
			d.Say(t, s, acptest.Text("look"))
			if said := d.Said(s); !strings.HasSuffix(said, "Read.") {
				t.Errorf("said %q", said)
			}
			if err := d.Mode(t.Context(), s, "yolo"); err == nil {
				t.Error("an unknown mode was taken")
			}
		})
	}
}
