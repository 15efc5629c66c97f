// Package acptest is an editor for tests: the client's side of the Agent Client Protocol, with the library's own
// client. It has files with unsaved texts, terminals that run real commands, and a person who decides.
package acptest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// Editor is a client. Its fields are set before Start.
type Editor struct {
	Capabilities sdk.ClientCapabilities
	// Decide answers a question about a call: the id of an option, "" = dismissed. nil = the first option.
	Decide func(ctx context.Context, req sdk.RequestPermissionRequest) string
	// Answer answers the form of an MCP server; nil = it is declined.
	Answer func(form *sdk.UnstableCreateElicitationForm) map[string]any
	// Output runs instead of a real command; nil = the command runs.
	Output func(command string) (output string, exit int)
	// Opening runs before a terminal is opened, and may wait; nil = nothing.
	Opening func()

	conn *sdk.ClientSideConnection
	in   *io.PipeWriter

	mu        sync.Mutex
	buffers   map[string]string
	written   []string
	updates   []sdk.SessionNotification
	updated   chan struct{} // has room for one: there are new updates
	asked     []sdk.RequestPermissionRequest
	forms     []sdk.UnstableCreateElicitationForm
	terminals map[string]*terminal
	lines     []string // both directions
	waiting   []*awaited
	ended     chan error
}

// terminal is a command that runs or has run.
type terminal struct {
	mu       sync.Mutex
	output   strings.Builder
	cmd      *exec.Cmd
	done     chan struct{}
	code     *int
	signal   *string
	killed   bool
	released bool
}

// Start connects the editor with an agent, which runs until its input ends.
func (e *Editor) Start(t *testing.T, agent func(in io.Reader, out io.Writer) error) {
	t.Helper()
	e.terminals, e.ended, e.updated = map[string]*terminal{}, make(chan error, 1), make(chan struct{}, 1)
	if e.buffers == nil {
		e.buffers = map[string]string{}
	}
	toAgent, in := io.Pipe()
	out, fromAgent := io.Pipe()
	seen, mirror := io.Pipe()
	e.in = in
	var running sync.WaitGroup
	running.Go(func() {
		err := agent(toAgent, fromAgent)
		_ = fromAgent.Close()
		e.ended <- err
	})
	running.Go(func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			e.note("< " + lines.Text())
			if _, err := mirror.Write(append(lines.Bytes(), '\n')); err != nil {
				return
			}
		}
		_ = mirror.Close()
	})
	e.conn = sdk.NewClientSideConnection(e, noting{e, in}, seen)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		_ = in.Close()
		running.Wait()
	})
}

// noting notes what is written.
type noting struct {
	e  *Editor
	to io.Writer
}

// Write implements io.Writer.
func (n noting) Write(line []byte) (int, error) {
	n.e.note("> " + strings.TrimRight(string(line), "\n"))
	return n.to.Write(line)
}

func (e *Editor) note(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, line)
	for _, w := range e.waiting {
		if strings.Contains(line, w.text) {
			w.once.Do(func() { close(w.seen) })
		}
	}
}

// awaited is a text that somebody waits for.
type awaited struct {
	text string
	once sync.Once
	seen chan struct{}
}

// Await waits until one side has written a line that contains a text. The agent answers requests side by side.
func (e *Editor) Await(t *testing.T, text string) {
	t.Helper()
	w := &awaited{text: text, seen: make(chan struct{})}
	e.mu.Lock()
	found := slices.ContainsFunc(e.lines, func(line string) bool { return strings.Contains(line, text) })
	e.waiting = append(e.waiting, w)
	e.mu.Unlock()
	if found {
		return
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-w.seen:
	case <-limit.C:
		t.Errorf("nobody wrote %s", text)
	}
}

// Raw writes a line as it is, which need not be a message.
func (e *Editor) Raw(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// Leave closes the connection and returns how the agent has ended.
func (e *Editor) Leave() error {
	_ = e.in.Close()
	err := <-e.ended
	e.ended <- err
	return err
}

// Lines returns what both sides have written: "> " to the agent, "< " from it.
func (e *Editor) Lines() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.lines...)
}

// Buffer sets the unsaved text of a file.
func (e *Editor) Buffer(path, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.buffers == nil {
		e.buffers = map[string]string{}
	}
	e.buffers[path] = text
}

// Updates returns the notifications of a session so far.
func (e *Editor) Updates(session sdk.SessionId) []sdk.SessionUpdate {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []sdk.SessionUpdate
	for _, u := range e.updates {
		if u.SessionId == session {
			list = append(list, u.Update)
		}
	}
	return list
}

// Said returns what the agent has said in a session.
func (e *Editor) Said(session sdk.SessionId) string {
	var b strings.Builder
	for _, u := range e.Updates(session) {
		if u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil {
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

// Asked returns the questions so far.
func (e *Editor) Asked() []sdk.RequestPermissionRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]sdk.RequestPermissionRequest(nil), e.asked...)
}

// Filled returns the forms so far.
func (e *Editor) Filled() []sdk.UnstableCreateElicitationForm {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]sdk.UnstableCreateElicitationForm(nil), e.forms...)
}

// Written returns the paths that were written through the editor.
func (e *Editor) Written() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.written...)
}

// Ended describes the terminals: "exit 0", "killed", and whether each was released.
func (e *Editor) Ended() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for n := range len(e.terminals) {
		t := e.terminals["term-"+strconv.Itoa(n+1)]
		t.mu.Lock()
		how := "runs"
		switch {
		case t.killed:
			how = "killed"
		case t.code != nil:
			how = fmt.Sprintf("exit %d", *t.code)
		}
		if t.released {
			how += ", released"
		}
		t.mu.Unlock()
		list = append(list, how)
	}
	return list
}

// SessionUpdate implements sdk.Client.
func (e *Editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n)
	select {
	case e.updated <- struct{}{}:
	default:
	}
	return nil
}

// RequestPermission implements sdk.Client.
func (e *Editor) RequestPermission(
	ctx context.Context, req sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.asked = append(e.asked, req)
	e.mu.Unlock()
	choice := string(req.Options[0].OptionId)
	if e.Decide != nil {
		choice = e.Decide(ctx, req)
	}
	if choice == "" {
		return sdk.RequestPermissionResponse{Outcome: sdk.RequestPermissionOutcome{
			Cancelled: &sdk.RequestPermissionOutcomeCancelled{Outcome: "cancelled"},
		}}, nil
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.RequestPermissionOutcome{
		Selected: &sdk.RequestPermissionOutcomeSelected{OptionId: sdk.PermissionOptionId(choice), Outcome: "selected"},
	}}, nil
}

// ReadTextFile implements sdk.Client.
func (e *Editor) ReadTextFile(_ context.Context, req sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	e.mu.Lock()
	text, ok := e.buffers[req.Path]
	e.mu.Unlock()
	if ok {
		return sdk.ReadTextFileResponse{Content: text}, nil
	}
	raw, err := os.ReadFile(req.Path)
	return sdk.ReadTextFileResponse{Content: string(raw)}, err
}

// WriteTextFile implements sdk.Client.
func (e *Editor) WriteTextFile(_ context.Context, req sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	e.mu.Lock()
	e.written = append(e.written, req.Path)
	delete(e.buffers, req.Path)
	e.mu.Unlock()
	return sdk.WriteTextFileResponse{}, os.WriteFile(req.Path, []byte(req.Content), 0o600)
}

// CreateTerminal implements sdk.Client.
func (e *Editor) CreateTerminal(_ context.Context, req sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	if e.Opening != nil {
		e.Opening()
	}
	t := &terminal{done: make(chan struct{})}
	e.mu.Lock()
	id := "term-" + strconv.Itoa(len(e.terminals)+1)
	e.terminals[id] = t
	e.mu.Unlock()
	if e.Output != nil {
		output, code := e.Output(req.Args[len(req.Args)-1])
		t.output.WriteString(output)
		t.code = &code
		close(t.done)
		return sdk.CreateTerminalResponse{TerminalId: id}, nil
	}
	t.cmd = exec.Command(req.Command, req.Args...) //nolint:noctx // it is killed by the agent
	t.cmd.Dir, t.cmd.Stdout, t.cmd.Stderr = *req.Cwd, t, t
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return sdk.CreateTerminalResponse{}, err
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_ = t.cmd.Wait() // its state says how it ended
		t.mu.Lock()
		if code := t.cmd.ProcessState.ExitCode(); code >= 0 {
			t.code = &code
		} else {
			signal := "SIGKILL"
			t.signal = &signal
		}
		t.mu.Unlock()
		close(t.done)
	})
	return sdk.CreateTerminalResponse{TerminalId: id}, nil
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output.Write(p)
}

func (e *Editor) terminal(id string) (*terminal, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.terminals[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("no terminal %q", id)
}

// KillTerminal implements sdk.Client.
func (e *Editor) KillTerminal(_ context.Context, req sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	t, err := e.terminal(req.TerminalId)
	if err != nil {
		return sdk.KillTerminalResponse{}, err
	}
	t.mu.Lock()
	t.killed = true
	t.mu.Unlock()
	if t.cmd != nil {
		_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-t.done
	}
	return sdk.KillTerminalResponse{}, nil
}

// TerminalOutput implements sdk.Client.
func (e *Editor) TerminalOutput(_ context.Context, req sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	t, err := e.terminal(req.TerminalId)
	if err != nil {
		return sdk.TerminalOutputResponse{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return sdk.TerminalOutputResponse{Output: t.output.String()}, nil
}

// ReleaseTerminal implements sdk.Client.
func (e *Editor) ReleaseTerminal(
	_ context.Context, req sdk.ReleaseTerminalRequest,
) (sdk.ReleaseTerminalResponse, error) {
	t, err := e.terminal(req.TerminalId)
	if err != nil {
		return sdk.ReleaseTerminalResponse{}, err
	}
	t.mu.Lock()
	t.released = true
	t.mu.Unlock()
	return sdk.ReleaseTerminalResponse{}, nil
}

// WaitForTerminalExit implements sdk.Client.
func (e *Editor) WaitForTerminalExit(
	ctx context.Context, req sdk.WaitForTerminalExitRequest,
) (sdk.WaitForTerminalExitResponse, error) {
	t, err := e.terminal(req.TerminalId)
	if err != nil {
		return sdk.WaitForTerminalExitResponse{}, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return sdk.WaitForTerminalExitResponse{}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return sdk.WaitForTerminalExitResponse{ExitCode: t.code, Signal: t.signal}, nil
}

// UnstableCreateElicitation implements the library's interface for forms.
func (e *Editor) UnstableCreateElicitation(
	_ context.Context, req sdk.UnstableCreateElicitationRequest,
) (sdk.UnstableCreateElicitationResponse, error) {
	if req.Form == nil || e.Answer == nil {
		return sdk.UnstableCreateElicitationResponse{
			Decline: &sdk.UnstableCreateElicitationDecline{Action: "decline"},
		}, nil
	}
	e.mu.Lock()
	e.forms = append(e.forms, *req.Form)
	e.mu.Unlock()
	values := e.Answer(req.Form)
	if values == nil {
		return sdk.UnstableCreateElicitationResponse{
			Cancel: &sdk.UnstableCreateElicitationCancel{Action: "cancel"},
		}, nil
	}
	return sdk.UnstableCreateElicitationResponse{
		Accept: &sdk.UnstableCreateElicitationAccept{Action: "accept", Content: values},
	}, nil
}

// UnstableCompleteElicitation implements the library's interface for forms.
func (*Editor) UnstableCompleteElicitation(context.Context, sdk.UnstableCompleteElicitationNotification) error {
	return nil
}

var _ sdk.Client = (*Editor)(nil)
