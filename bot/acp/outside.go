package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// Limits of what the editor gives.
const (
	terminalBytes = 1 << 20  // of a command's output that the editor keeps
	fileBytes     = 16 << 20 // of a file
	beforeBytes   = 1 << 20  // of a file that is shown as it was
)

// editorTools returns the tools that work through the editor, as far as it has announced that it can.
func (s *session) editorTools() ([]tools.Tool, error) {
	client, back := s.server.editorCapabilities(), s.project.currentBackend()
	var list []tools.Tool
	if base, ok := back.Tools.Lookup(shell.Name); ok && client.Terminal && !back.Held {
		list = append(list, s.inTerminal(base))
	}
	var read func(context.Context, string) (string, error)
	var write func(context.Context, string, string) error
	if client.Fs.ReadTextFile {
		read = s.readText
	}
	if client.Fs.WriteTextFile {
		write = s.writeText
	}
	if read == nil && write == nil || back.Through == nil {
		return list, nil
	}
	files, err := back.Through(read, write)
	if err != nil {
		return nil, err
	}
	for _, t := range files {
		if _, ok := back.Tools.Lookup(t.Definition.Name); ok { // not one that the configuration leaves out
			list = append(list, t)
		}
	}
	return list, nil
}

// editorRefusal is the error of something that the editor did not do.
func editorRefusal(what string, err error) error {
	reason := err.Error()
	if e, ok := errors.AsType[*sdk.RequestError](err); ok {
		reason = e.Message
		if data, err := json.Marshal(e.Data); err == nil && e.Data != nil {
			reason += " " + string(data)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "it did not answer in time"
	}
	return &tools.Error{
		Category: tools.PermanentFailure,
		Message:  "the editor could not " + what + ": " + shortLine(strings.Join(strings.Fields(reason), " ")),
		Err:      err,
	}
}

// readText reads a file as the editor has it, with what is not saved.
func (s *session) readText(ctx context.Context, path string) (string, error) {
	wait, done := context.WithTimeout(ctx, replyTime)
	defer done()
	resp, err := s.server.conn.ReadTextFile(wait, sdk.ReadTextFileRequest{SessionId: sdk.SessionId(s.id), Path: path})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", editorRefusal("read the file", err)
	case len(resp.Content) > fileBytes:
		return "", editorRefusal(
			"read the file", fmt.Errorf("it has %d bytes, more than %d", len(resp.Content), fileBytes),
		)
	}
	return resp.Content, nil
}

// writeText writes a file through the editor.
func (s *session) writeText(ctx context.Context, path, text string) error {
	wait, done := context.WithTimeout(ctx, replyTime)
	defer done()
	_, err := s.server.conn.WriteTextFile(wait, sdk.WriteTextFileRequest{
		SessionId: sdk.SessionId(s.id),
		Path:      path,
		Content:   text,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return editorRefusal("write the file", err)
	}
	return nil
}

// readBefore returns a file as it is before it is written; ok is false if there is none, or
// if it is too long to be shown.
func (s *session) readBefore(ctx context.Context, path string) (text string, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > beforeBytes {
		return "", false
	}
	if s.server.editorCapabilities().Fs.ReadTextFile {
		text, err := s.readText(ctx, path)
		return text, err == nil && len(text) <= beforeBytes
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	raw, err := io.ReadAll(io.LimitReader(f, beforeBytes))
	_ = f.Close() // it was only read
	return strings.ToValidUTF8(string(raw), "\uFFFD"), err == nil
}

// inTerminal returns the bash tool whose commands run in the editor's terminal. All that is decided about a command is
// decided as before, but nothing of it relies on the sandbox (Definition.Outside).
func (s *session) inTerminal(base tools.Tool) tools.Tool {
	t := base
	t.Definition.Outside = true
	t.Definition.Description = fmt.Sprintf(
		"Execute a bash command in the project's directory, in a terminal of the person's editor. It has %s, "+
			"then it is stopped; nobody types into it. With background=true it runs outside the editor, returns at "+
			"once, and its output comes with a later message.",
		s.server.opts.Timeout,
	)
	t.Describe = func(ctx context.Context, call *tools.Call) (tools.Subject, error) {
		subject, err := base.Describe(ctx, call)
		if !inBackground(call) {
			subject.Note = reason.Notes(reason.New(reason.InTerminal))
		}
		return subject, err
	}
	t.Run = func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if inBackground(call) {
			return base.Run(ctx, call)
		}
		if base.Check != nil {
			if err := base.Check(ctx, call); err != nil {
				return nil, err
			}
		}
		return s.runInTerminal(ctx, call)
	}
	return t
}

func inBackground(call *tools.Call) bool {
	var in shell.In
	return json.Unmarshal(call.Args, &in) == nil && in.Background
}

// runInTerminal runs a command in the editor's terminal and returns its output.
func (s *session) runInTerminal(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	var in shell.In
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return nil, tools.Errorf(tools.InvalidParameters, "the arguments cannot be read: %v", err)
	}
	dir, limit := call.Subject.Dir, terminalBytes
	if dir == "" {
		dir = s.project.dir
	}
	conn, id := s.server.conn, sdk.SessionId(s.id)
	began := s.server.opts.Now()
	terminal, err := s.openTerminal(ctx, sdk.CreateTerminalRequest{
		SessionId:       id,
		Command:         "bash",
		Args:            []string{"--noprofile", "--norc", "-c", in.Command},
		Cwd:             &dir,
		OutputByteLimit: &limit,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		ending, ended := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
		defer ended()
		// it is the editor's
		_, _ = conn.ReleaseTerminal(ending, sdk.ReleaseTerminalRequest{SessionId: id, TerminalId: terminal})
	}()
	s.noteTerminal(call.ID, terminal)
	waiting, waited := context.WithTimeout(ctx, s.server.opts.Timeout)
	exit, err := conn.WaitForTerminalExit(waiting, sdk.WaitForTerminalExitRequest{SessionId: id, TerminalId: terminal})
	late := waiting.Err() != nil
	waited()
	if err != nil && !late {
		return nil, editorRefusal("wait for the command", err)
	}
	after, done := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer done()
	if late {
		// releasing it kills, too
		_, _ = conn.KillTerminal(after, sdk.KillTerminalRequest{SessionId: id, TerminalId: terminal})
	}
	out, err := conn.TerminalOutput(after, sdk.TerminalOutputRequest{SessionId: id, TerminalId: terminal})
	if err != nil && !late {
		return nil, editorRefusal("give the output of the command", err)
	}
	r := run{
		output:    strings.ToValidUTF8(out.Output, "\uFFFD"),
		truncated: out.Truncated,
		code:      exit.ExitCode,
		took:      s.server.opts.Now().Sub(began),
	}
	if exit.Signal != nil {
		r.signal = *exit.Signal
	}
	switch {
	case late && ctx.Err() != nil:
		r.failure = &tools.Error{Category: tools.Cancelled, Message: "the command was cancelled while it ran"}
	case late:
		r.failure = &tools.Error{
			Category: tools.Timeout, Message: fmt.Sprintf("the command was stopped after %s", s.server.opts.Timeout),
			Suggestion: "Try a smaller step, or run it with background=true.",
		}
	}
	return r.resultOf(call), nil
}

// openTerminal opens a terminal and returns its id. It waits for a limited time, also if ctx ends: a terminal that is
// being opened has to be known, so that it can be ended. One that is opened later is ended at once.
func (s *session) openTerminal(ctx context.Context, req sdk.CreateTerminalRequest) (id string, err error) {
	type answer struct {
		id  string
		err error
	}
	answers, gone := make(chan answer), make(chan struct{}) // one of both is taken
	asking, end := context.WithCancel(context.WithoutCancel(s.server.life))
	s.server.busy.Go(func() {
		defer end()
		made, err := s.server.conn.CreateTerminal(asking, req)
		select {
		case answers <- answer{made.TerminalId, err}:
		case <-gone:
			if err == nil {
				s.endTerminal(made.TerminalId)
			}
		}
	})
	waiting, waited := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer waited()
	select {
	case a := <-answers:
		if a.err != nil {
			return "", editorRefusal("open a terminal", a.err)
		}
		return a.id, nil
	case <-waiting.Done():
		close(gone)
		context.AfterFunc(s.server.life, end) // the end of the process does not wait for it
		return "", &tools.Error{
			Category: tools.PermanentFailure,
			Message: fmt.Sprintf("the editor did not answer within %s when it was asked for a terminal: it is "+
				"unknown whether the command ran, or still will; "+
				"a terminal that it opens later is closed at once", replyTime),
			Suggestion: "Find out what the command has done before you repeat it.",
		}
	}
}

// endTerminal kills what runs in a terminal that nobody waits for, and releases it.
func (s *session) endTerminal(terminal string) {
	ctx, done := context.WithTimeout(context.WithoutCancel(s.server.life), replyTime)
	defer done()
	conn, id := s.server.conn, sdk.SessionId(s.id)
	_, killed := conn.KillTerminal(ctx, sdk.KillTerminalRequest{SessionId: id, TerminalId: terminal})
	_, released := conn.ReleaseTerminal(ctx, sdk.ReleaseTerminalRequest{SessionId: id, TerminalId: terminal})
	if err := errors.Join(killed, released); err != nil {
		s.server.opts.Log.Warn().Err(err).Msg("a terminal that the editor opened too late was not ended")
	}
}

// noteTerminal notes and shows in which terminal a call runs.
func (s *session) noteTerminal(call, terminal string) {
	c, _ := s.knownCall(call)
	s.mu.Lock()
	c.terminal = terminal
	s.mu.Unlock()
	s.sendUpdate(sdk.UpdateToolCall(
		s.callID(call), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolTerminalRef(terminal)}),
	))
}

// run is how a command in a terminal has ended.
type run struct {
	output    string
	truncated bool
	code      *int
	signal    string
	took      time.Duration
	failure   *tools.Error
}

// resultOf returns the result of the call, in the form of the bash tool.
func (r run) resultOf(call *tools.Call) *tools.Result {
	text := r.output
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	ended := ""
	switch {
	case r.failure != nil && r.failure.Category == tools.Timeout:
		ended = "timeout"
	case r.failure != nil:
		ended = "cancelled"
	case r.signal != "":
		text += "\n[killed by signal: " + r.signal + "]"
	case r.code != nil && *r.code != 0:
		text += fmt.Sprintf("\n[exit code %d]", *r.code)
	}
	if r.truncated {
		text = "[the editor kept only the end of the output]\n" + text
	}
	code := r.code
	if r.failure != nil || r.signal != "" {
		code = nil
	}
	if call.Trail != nil {
		call.Trail.ExitCode, call.Trail.Truncated = code, call.Trail.Truncated || r.truncated
	}
	return &tools.Result{
		Text: text, ExitCode: code, Truncated: r.truncated, Error: code == nil || *code != 0, Failure: r.failure,
		Raw: shell.Envelope{
			Stdout:    r.output,
			ExitCode:  code,
			Truncated: r.truncated,
			Signal:    r.signal,
			Ended:     ended,
			Millis:    r.took.Milliseconds(),
		},
	}
}
