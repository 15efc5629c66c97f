package app_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/acp/acptest"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// TestEditorSessions: sessions are listed with title, directory and time, and loaded again by another process, with the
// calls and what was said; what is in one directory is not found in another.
func TestEditorSessions(t *testing.T) {
	t.Parallel()
	const script = `on "write": call write {"path":"a.txt","content":"x\n"}
then say Written.
on "what": say I wrote a.txt.`
	d := openStudio(t, &acptest.Editor{}, script, "")
	s := d.Begin(t, d.dir)
	d.Say(t, s, acptest.Text("write a file\nplease"))
	calls := d.Calls(s)
	if err := d.Mode(t.Context(), s, "code"); err != nil {
		t.Fatal(err)
	}
	if err := d.Leave(); err != nil {
		t.Fatal(err)
	}
	d.Editor = &acptest.Editor{}
	d.start(t, script, "")
	list := d.List(t, d.dir)
	if len(list) != 1 || list[0].SessionId != s || list[0].Cwd != d.dir || *list[0].Title != "write a file" || list[0].UpdatedAt == nil {
		t.Errorf("listed %+v", list)
	}
	if _, err := d.TrySay(t.Context(), s, acptest.Text("what")); err == nil {
		t.Error("a session that is not open took a prompt")
	}
	loaded, err := d.Load(t.Context(), d.dir, s)
	if err != nil || loaded.Modes.CurrentModeId != "code" {
		t.Fatalf("%v: %+v", err, loaded)
	}
	var shown []string
	for _, u := range d.Updates(s) {
		switch {
		case u.UserMessageChunk != nil:
			shown = append(shown, "> "+u.UserMessageChunk.Content.Text.Text)
		case u.AgentMessageChunk != nil:
			shown = append(shown, "< "+u.AgentMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			shown = append(shown, string(u.ToolCall.ToolCallId)[:8]+" "+u.ToolCall.Title)
		case u.ToolCallUpdate != nil:
			shown = append(shown, string(u.ToolCallUpdate.ToolCallId)[:8]+" "+string(*u.ToolCallUpdate.Status))
		}
	}
	id := calls[0][:8]
	if got, want := strings.Join(shown, " | "), "> write a file\nplease | "+id+" write a.txt | "+id+" completed | < Written."; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	d.Say(t, s, acptest.Text("what did you do?"))
	if said := d.Said(s); !strings.HasSuffix(said, "I wrote a.txt.") {
		t.Errorf("said %q", said)
	}
	if _, err := d.Load(t.Context(), t.TempDir(), s); err == nil {
		t.Error("loaded in another directory")
	}
	if _, err := d.Load(t.Context(), d.dir, "nonsense"); err == nil {
		t.Error("loaded what there is not")
	}
}

// TestTwoEditors: a second editor in the same project has sessions of its own, and the first one's are not disturbed.
func TestTwoEditors(t *testing.T) {
	t.Parallel()
	const script = "on \"a\": say One.\non \"b\": say Two."
	d := openStudio(t, &acptest.Editor{}, script, "")
	s := d.Begin(t, d.dir)
	other := &studio{Editor: &acptest.Editor{}, dir: d.dir, state: d.state}
	other.start(t, script, "")
	o := other.Begin(t, other.dir)
	d.Say(t, s, acptest.Text("a"))
	other.Say(t, o, acptest.Text("b"))
	if d.Said(s) != "One." || other.Said(o) != "Two." {
		t.Errorf("said %q and %q", d.Said(s), other.Said(o))
	}
}

// TestEditorPrompts: texts of files are fenced, links are named by their path, a picture reaches a model that sees, and
// one that does not is told in a line.
func TestEditorPrompts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"seen":   {"sees image\non \"look\": expect \"[sees image\"\nand say Seen.", "Seen."},
		"unseen": {"on \"look\": expect \"this model does not take pictures\"\nand say Unseen.", "Unseen."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openStudio(t, &acptest.Editor{}, tt.script+"\non \"read\": expect \"<external-data\"\nand expect \"evil words\"\nand expect \"sub/b.go\"\nand say Fenced.", "")
			s := d.Begin(t, d.dir)
			d.Say(t, s, acptest.Text("look"), acptest.Image("image/png", grayPixel(t)))
			if said := d.Said(s); !strings.Contains(said, tt.want) {
				t.Errorf("said %q", said)
			}
			d.Say(t, s, acptest.Text("read "), acptest.Link("b.go", "file://"+d.dir+"/sub/b.go"), acptest.Resource("file://"+d.dir+"/a.txt", "evil words"))
			if said := d.Said(s); !strings.HasSuffix(said, "Fenced.") {
				t.Errorf("said %q", said)
			}
			for _, block := range []acptest.Block{acptest.Text(" "), {}} {
				if _, err := d.TrySay(t.Context(), s, block); err == nil {
					t.Errorf("%+v was taken", block)
				}
			}
		})
	}
}

// grayPixel is a picture.
func grayPixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEditorServers: a server that the editor names is there for its session only, its calls are asked about, and its
// questions are shown by an editor that can; a program that is not permitted is not started, which is said.
func TestEditorServers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		forms bool
		want  string
	}{"an editor with forms": {true, "You live in Berlin."}, "an editor without": {false, "You did not tell."}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &acptest.Editor{Answer: func(f *acptest.Form) map[string]any {
				values := map[string]any{}
				for field := range f.RequestedSchema.Properties {
					values[field] = "Berlin"
				}
				return values
			}}
			expect := "declined"
			if tt.forms {
				e.Capabilities.Elicitation = acptest.Forms()
				expect = "Berlin"
			}
			d := openStudio(t, e, `on "go": call kind:ask {}
then expect "`+expect+`"
and say `+tt.want+`
on "other": call kind:ask {}
then expect "not"
and say Not here.`, "[mcp]\nallowed_commands = [\""+kindServer+"\"]\nelicitation_enabled = true\n")
			s := d.Begin(t, d.dir, acptest.Program("Kind", kindServer, strings.ReplaceAll(string(mcptest.ElicitForm), " ", "_"), t.TempDir()), acptest.Program("bad", "/bin/false"))
			d.Say(t, s, acptest.Text("go"))
			if said := d.Said(s); !strings.Contains(said, tt.want) || !strings.Contains(said, "The MCP server bad is not connected") {
				t.Errorf("said %q", said)
			}
			if len(d.Asked()) != 1 {
				t.Errorf("asked %d times", len(d.Asked()))
			}
			if forms := d.Filled(); tt.forms && (len(forms) != 1 || !strings.HasPrefix(forms[0].Message, "The MCP server kind asks (kind:ask): ")) {
				t.Errorf("forms %+v", forms)
			}
			o := d.Begin(t, d.dir)
			d.Say(t, o, acptest.Text("other"))
			if said := d.Said(o); said != "Not here." {
				t.Errorf("said in another session: %q", said)
			}
			if err := d.Close(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// crash returns the state of this moment: what a process leaves that ends at this moment.
func (d *studio) crash(t *testing.T) *studio {
	t.Helper()
	left := &studio{Editor: &acptest.Editor{}, dir: d.dir, state: t.TempDir()}
	err := filepath.WalkDir(d.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(d.state, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(left.state, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, raw, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestEditorCrash: a process that ends in the middle of a turn, while it asks or while a command runs, leaves a session
// that is loaded by the next one: it shows what happened, the turn is over, nothing ran that was not approved, and the
// conversation goes on.
func TestEditorCrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command string
		runs          bool
		want          string
	}{{"while it asks", "touch made", false, ""}, {"while a command runs", "sleep 600", true, "outcome unknown"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			script := `on "go": call bash {"command":"` + tt.command + `"}
then never
on "again": say Here.`
			e := &acptest.Editor{Capabilities: acptest.Capabilities{Terminal: true}}
			asked, crashed := make(chan struct{}), make(chan struct{})
			e.Decide = func(context.Context, acptest.Permission) string {
				close(asked)
				if !tt.runs {
					<-crashed
					return ""
				}
				return "y"
			}
			d := openStudio(t, e, script, "")
			s := d.Begin(t, d.dir)
			var left *studio
			var crashing sync.WaitGroup
			crashing.Go(func() {
				<-asked
				for tt.runs && len(d.Ended()) == 0 {
					runtime.Gosched()
				}
				left = d.crash(t)
				close(crashed)
				if err := d.Cancel(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
			d.Say(t, s, acptest.Text("go"))
			crashing.Wait()
			left.start(t, script, "")
			if _, err := left.Load(t.Context(), left.dir, s); err != nil {
				t.Fatal(err)
			}
			calls := left.Calls(s)
			if len(calls) == 0 || !strings.HasSuffix(calls[len(calls)-1], " failed") {
				t.Errorf("calls %q", calls)
			}
			if all := strings.Join(left.Outputs(s), " "); !strings.Contains(all, tt.want) {
				t.Errorf("outputs %q", all)
			}
			if _, err := os.Stat(filepath.Join(d.dir, "made")); err == nil || len(left.Asked()) > 0 || len(left.Ended()) > 0 {
				t.Error("it ran, or was asked about, in the next process")
			}
			if reason := left.Say(t, s, acptest.Text("again")); reason != "end_turn" || !strings.HasSuffix(left.Said(s), "Here.") {
				t.Errorf("ended with %s, said %q", reason, left.Said(s))
			}
		})
	}
}

// TestEditorNonsense: what is no message, or no request that can be right, gets an error of JSON-RPC, and the session
// before it goes on.
func TestEditorNonsense(t *testing.T) {
	t.Parallel()
	d := openStudio(t, &acptest.Editor{}, "on \"a\": say One.", "")
	s := d.Begin(t, d.dir)
	long := strings.Repeat("x", 11<<20)
	for _, line := range []string{
		"nonsense", "[]", "7", "{}", `{"jsonrpc":"2.0","id":900,"method":7}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`,
		`{"jsonrpc":"2.0","id":901,"method":"no/such"}`, `{"jsonrpc":"2.0","id":902,"method":"session/prompt"}`,
		`{"jsonrpc":"2.0","id":903,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}`,
		`{"jsonrpc":"2.0","id":904,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":905,"method":"session/new","params":{"cwd":"/no/such/dir","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":906,"method":"session/prompt","params":{"sessionId":"` + string(s) + `","prompt":[{"type":"image","mimeType":"image/png","data":"!"}]}}`,
		`{"jsonrpc":"2.0","id":907,"method":"session/prompt","params":{"sessionId":"` + string(s) + `","prompt":[{"type":"hologram"}]}}`,
		`{"jsonrpc":"2.0","id":908,"method":"x","params":"` + long + `"}`, `{"jsonrpc":"2.0","id":909,"result":{}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`, `{"jsonrpc":"2.0","id":910,"method":"_ext/x"}`,
		`{"jsonrpc":"2.0","id":911,"error":7}`,
	} {
		d.Raw(t, line)
	}
	if reason := d.Say(t, s, acptest.Text("a")); reason != "end_turn" || d.Said(s) != "One." {
		t.Errorf("ended with %s, said %q", reason, d.Said(s))
	}
	for _, want := range []string{
		`"id":null,"error":{"code":-32700`, `"id":900,"error":{"code":-32600`, `"id":901,"error":{"code":-32601`, `"id":902,"error":{"code":-32602`,
		`"id":904,"error":{"code":-32602`, `"id":905,"error":{"code":-32602`, `"id":906,"error":{"code":-32602`, `"id":907,"error":{"code":-32602`,
		`"id":908,"error":{"code":-32600`, `"id":910,"error":{"code":-32601`,
	} {
		d.Await(t, want)
	}
}

// TestEditorPlan: a plan is an update of its own and no call that is shown; a failed one is not shown. A session that is
// opened again shows the latest one; in the mode that only reads, plans are made too.
func TestEditorPlan(t *testing.T) {
	t.Parallel()
	const script = `on "go": call update_plan {"entries":[{"text":"read","status":"in_progress"},{"text":"key ghp_0123456789abcdefghijABCDEFGHIJ012345","status":"pending"}]}
then call read {"path":"a.txt"}
then call update_plan {"entries":[{"text":"read","status":"completed"}]}
then call update_plan {"entries":[{"text":"","status":"completed"}]}
then say Done.`
	d := openStudio(t, &acptest.Editor{}, script, "")
	d.file(t, "a.txt", "text")
	s := d.Begin(t, d.dir)
	if err := d.Mode(t.Context(), s, "architect"); err != nil {
		t.Fatal(err)
	}
	if reason := d.Say(t, s, acptest.Text("go")); reason != "end_turn" || len(d.Asked()) > 0 {
		t.Errorf("ended with %s, asked %+v", reason, d.Asked())
	}
	want := []string{"in_progress read, pending key [redacted]", "completed read"}
	if diff := cmp.Diff(want, d.Plans(s)); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
	if calls := d.Calls(s); len(calls) != 2 || !strings.Contains(calls[0], " read ") {
		t.Errorf("calls %q", calls)
	}
	if _, err := d.Load(t.Context(), d.dir, s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, want...), d.Plans(s)); diff != "" {
		t.Errorf("opened again (-want +got):\n%s", diff)
	}
	if calls := d.Calls(s); len(calls) != 4 {
		t.Errorf("opened again: calls %q", calls)
	}
}
