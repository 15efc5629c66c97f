package acptest

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

type (
	// Session is a type of the library, for tests in other packages.
	Session = sdk.SessionId
	// Block is a type of the library, for tests in other packages.
	Block = sdk.ContentBlock
	// Server is a type of the library, for tests in other packages.
	Server = sdk.McpServer
	// Permission is a type of the library, for tests in other packages.
	Permission = sdk.RequestPermissionRequest
	// Form is a type of the library, for tests in other packages.
	Form = sdk.UnstableCreateElicitationForm
	// Update is a type of the library, for tests in other packages.
	Update = sdk.SessionUpdate
	// Capabilities is a type of the library, for tests in other packages.
	Capabilities = sdk.ClientCapabilities
	// Files is a type of the library, for tests in other packages.
	Files = sdk.FileSystemCapabilities
	// Greeting is a type of the library, for tests in other packages.
	Greeting = sdk.InitializeResponse
	// Info is a type of the library, for tests in other packages.
	Info = sdk.SessionInfo
	// Loaded is a type of the library, for tests in other packages.
	Loaded = sdk.LoadSessionResponse
)

// Forms is the capability to show the forms of MCP servers.
func Forms() *sdk.ElicitationCapabilities {
	return &sdk.ElicitationCapabilities{Form: &sdk.ElicitationFormCapabilities{}}
}

// Text is a block of text.
func Text(text string) Block { return sdk.TextBlock(text) }

// Image is a block with a picture.
func Image(kind string, data []byte) Block {
	return sdk.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
}

// Link is a block that names a file.
func Link(name, uri string) Block { return sdk.ResourceLinkBlock(name, uri) }

// Resource is a block with the text of a file.
func Resource(uri, text string) Block {
	return sdk.ResourceBlock(sdk.EmbeddedResourceResource{
		TextResourceContents: &sdk.TextResourceContents{Uri: uri, Text: text},
	})
}

// Program is an MCP server that is a program.
func Program(name, command string, args ...string) Server {
	if args == nil {
		args = []string{}
	}
	return Server{Stdio: &sdk.McpServerStdio{Name: name, Command: command, Args: args, Env: []sdk.EnvVariable{}}}
}

// Greet says what the editor can do.
func (e *Editor) Greet(t *testing.T) Greeting {
	t.Helper()
	resp, err := e.conn.Initialize(t.Context(), sdk.InitializeRequest{
		ProtocolVersion:    sdk.ProtocolVersionNumber,
		ClientCapabilities: e.Capabilities,
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Begin opens a session, and waits until the agent has told which commands there are.
func (e *Editor) Begin(t *testing.T, dir string, servers ...Server) Session {
	t.Helper()
	s, err := e.TryBegin(t.Context(), dir, servers...)
	if err != nil {
		t.Fatal(err)
	}
	for e.Commands(s) == nil {
		select {
		case <-e.updated:
		case <-t.Context().Done():
			t.Fatal("the agent names no commands")
		}
	}
	return s
}

// Commands returns the names of the commands that a prompt can begin with, as the agent named them last; nil = it has
// not.
func (e *Editor) Commands(session Session) (names []string) {
	for _, u := range e.Updates(session) {
		if u.AvailableCommandsUpdate == nil {
			continue
		}
		names = []string{}
		for _, c := range u.AvailableCommandsUpdate.AvailableCommands {
			names = append(names, c.Name)
		}
	}
	return names
}

// Plans lists the plans that the editor was told, each as "status text, status text".
func (e *Editor) Plans(session Session) (list []string) {
	for _, u := range e.Updates(session) {
		if u.Plan == nil {
			continue
		}
		var entries []string
		for _, p := range u.Plan.Entries {
			entries = append(entries, string(p.Status)+" "+p.Content)
		}
		list = append(list, strings.Join(entries, ", "))
	}
	return list
}

// Usage returns what a session has used, as the agent said last; nil = it has not.
func (e *Editor) Usage(session Session) (last *sdk.SessionUsageUpdate) {
	for _, u := range e.Updates(session) {
		if u.UsageUpdate != nil {
			last = u.UsageUpdate
		}
	}
	return last
}

// TryBegin opens a session.
func (e *Editor) TryBegin(ctx context.Context, dir string, servers ...Server) (Session, error) {
	if servers == nil {
		servers = []Server{}
	}
	s, err := e.conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: dir, McpServers: servers})
	return s.SessionId, err
}

// Load opens a stored session.
func (e *Editor) Load(ctx context.Context, dir string, session Session, servers ...Server) (Loaded, error) {
	if servers == nil {
		servers = []Server{}
	}
	return e.conn.LoadSession(ctx, sdk.LoadSessionRequest{Cwd: dir, SessionId: session, McpServers: servers})
}

// List lists the sessions of a directory; "" = of all that are open.
func (e *Editor) List(t *testing.T, dir string) []Info {
	t.Helper()
	req := sdk.ListSessionsRequest{}
	if dir != "" {
		req.Cwd = &dir
	}
	resp, err := e.conn.ListSessions(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Sessions
}

// Say sends a prompt and returns why its turn has ended.
func (e *Editor) Say(t *testing.T, session Session, blocks ...Block) string {
	t.Helper()
	reason, err := e.TrySay(t.Context(), session, blocks...)
	if err != nil {
		t.Fatal(err)
	}
	return reason
}

// TrySay sends a prompt.
func (e *Editor) TrySay(ctx context.Context, session Session, blocks ...Block) (string, error) {
	resp, err := e.conn.Prompt(ctx, sdk.PromptRequest{SessionId: session, Prompt: blocks})
	return string(resp.StopReason), err
}

// Cancel ends the prompt of a session.
func (e *Editor) Cancel(ctx context.Context, session Session) error {
	return e.conn.Cancel(ctx, sdk.CancelNotification{SessionId: session})
}

// Mode sets the mode of a session.
func (e *Editor) Mode(ctx context.Context, session Session, mode string) error {
	_, err := e.conn.SetSessionMode(ctx, sdk.SetSessionModeRequest{SessionId: session, ModeId: sdk.SessionModeId(mode)})
	return err
}

// Close closes a session.
func (e *Editor) Close(ctx context.Context, session Session) error {
	_, err := e.conn.CloseSession(ctx, sdk.CloseSessionRequest{SessionId: session})
	return err
}

// Calls lists the notifications about calls: the beginning of the id, the kind if it is the first one, the status.
func (e *Editor) Calls(session Session) (list []string) {
	for _, u := range e.Updates(session) {
		switch {
		case u.ToolCall != nil:
			list = append(
				list, string(u.ToolCall.ToolCallId)[:8]+" "+string(u.ToolCall.Kind)+" "+string(u.ToolCall.Status),
			)
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
			list = append(list, string(u.ToolCallUpdate.ToolCallId)[:8]+" "+string(*u.ToolCallUpdate.Status))
		}
	}
	return list
}

// Outputs lists the texts with which calls have ended.
func (e *Editor) Outputs(session Session) (list []string) {
	for _, u := range e.Updates(session) {
		if u.ToolCallUpdate == nil {
			continue
		}
		for _, c := range u.ToolCallUpdate.Content {
			if c.Content != nil && c.Content.Content.Text != nil {
				list = append(list, c.Content.Content.Text.Text)
			}
		}
	}
	return list
}
