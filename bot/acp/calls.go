package acp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// maxOutput is how many bytes of a call's output are sent to the editor; the rest is stored for the model.
const maxOutput = 256 << 10

// Executor returns an executor that shows the calls of open sessions.
func (p *Project) Executor(next agent.Executor) agent.Executor { return shower{next, p} }

type shower struct {
	agent.Executor
	project *Project
}

// Execute implements agent.Executor.
func (e shower) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	s := e.project.sessionOf(call.Origin)
	if s == nil {
		return e.Executor.Execute(ctx, call)
	}
	if start := call.OnStart; start != nil {
		call.OnStart = func(ctx context.Context) error {
			if err := start(ctx); err != nil {
				return err
			}
			if !isPlan(call) {
				s.showCall(ctx, call, sdk.ToolCallStatusInProgress)
			}
			return nil
		}
	}
	result, err := e.Executor.Execute(ctx, call)
	var pending *tools.Pending
	switch {
	case errors.As(err, &pending):
		s.showCall(ctx, call, sdk.ToolCallStatusPending)
	case call.Probe, isPlan(call):
	case err != nil && ctx.Err() != nil && !call.Trail.Started: // it is made again, or its turn ends
	default:
		s.showEnded(call, result, err)
	}
	return result, err
}

// isPlan reports whether a call shows a plan, which an editor is told as such (sendPlan).
func isPlan(call *tools.Call) bool { return call.Def.Stated().Act == act.Plans }

// callID returns the id by which an editor knows a call: the same one each time the call
// is shown, also after a restart.
func (s *session) callID(call string) sdk.ToolCallId {
	return sdk.ToolCallId(uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.id+"/"+call)).String())
}

// shownCall is a call that the editor knows.
type shownCall struct {
	ended    bool
	diff     []sdk.ToolCallContent // made before it ran
	terminal string                // id of the editor's terminal in which it runs; "" = none
}

// knownCall returns what is known of a call; fresh says that it was not shown before.
func (s *session) knownCall(call string) (c *shownCall, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.calls[call]
	if fresh = c == nil; fresh {
		c = &shownCall{}
		s.calls[call] = c
	}
	return c, fresh
}

// showCall shows a call, or that it goes on.
func (s *session) showCall(ctx context.Context, call *tools.Call, status sdk.ToolCallStatus) {
	c, fresh := s.knownCall(call.ID)
	if !fresh {
		s.sendUpdate(sdk.UpdateToolCall(s.callID(call.ID), sdk.WithUpdateStatus(status)))
		return
	}
	c.diff = s.callDiffs(ctx, call.Def.Stated().Verb, fileOf(call), call.Args)
	s.sendUpdate(s.startUpdate(call, status, c.diff))
}

// startUpdate is the first notification about a call.
func (s *session) startUpdate(
	call *tools.Call, status sdk.ToolCallStatus, content []sdk.ToolCallContent,
) sdk.SessionUpdate {
	return sdk.StartToolCall(s.callID(call.ID), s.callTitle(call), func(u *sdk.SessionUpdateToolCall) {
		u.Kind, u.Status, u.Content = callKind(call.Def.Stated()), status, content
		u.Locations, u.RawInput = callLocations(call), s.callInput(call.Args)
	})
}

// showEnded shows how a call has ended.
func (s *session) showEnded(call *tools.Call, result *tools.Result, err error) {
	c, fresh := s.knownCall(call.ID)
	if fresh { // it was refused, or its result was remembered
		s.sendUpdate(s.startUpdate(call, sdk.ToolCallStatusInProgress, nil))
	}
	status, output, raw := sdk.ToolCallStatusCompleted, "", any(nil)
	if err != nil {
		status, output = sdk.ToolCallStatusFailed, tools.Feedback(tools.AsError(err))
	} else {
		output, raw = s.project.currentBackend().Bare(result.Text), result.Raw
		if result.Error || result.Failure != nil {
			status = sdk.ToolCallStatusFailed
		}
	}
	s.mu.Lock()
	c.ended = true
	var content []sdk.ToolCallContent
	if c.terminal != "" {
		content = append(content, sdk.ToolTerminalRef(c.terminal))
	}
	if err == nil {
		content = append(content, c.diff...)
	}
	s.mu.Unlock()
	content = append(content, sdk.ToolContent(sdk.TextBlock(cutText(output, maxOutput))))
	s.sendUpdate(sdk.UpdateToolCall(s.callID(call.ID), func(u *sdk.SessionToolCallUpdate) {
		u.Status, u.Content, u.Locations, u.RawOutput = &status, content, callLocations(call), raw
	}))
}

// cutText shortens a text at the end of a character.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "\n…"
}

// callKind returns the kind of a call (seed 003, ACP tool notifications: bash, shell = execute; read; write, edit =
// edit; search, grep, find = search; web_scrape, fetch = fetch; everything else = other).
func callKind(says act.Statement) sdk.ToolKind {
	if says.Act == act.ReadsWeb && says.Verb == act.Read {
		return sdk.ToolKindFetch
	}
	switch says.Verb {
	case act.Run:
		return sdk.ToolKindExecute
	case act.Read:
		return sdk.ToolKindRead
	case act.Write, act.Edit:
		return sdk.ToolKindEdit
	case act.Search, act.Find:
		return sdk.ToolKindSearch
	case act.Fetch:
		return sdk.ToolKindFetch
	default:
		return sdk.ToolKindOther
	}
}

// titleLine is how many characters the title of a call has.
const titleLine = 200

// callTitle returns one line about a call.
func (s *session) callTitle(call *tools.Call) string {
	line, more, _ := strings.Cut(strings.TrimSpace(call.Subject.Show), "\n")
	if more != "" {
		line += " …"
	}
	switch {
	case line == "":
		line = call.Tool
	case !call.Def.Runs():
		line = call.Tool + " " + line
	}
	return shortLine(s.redactText(visible.Controls(line)))
}

func shortLine(line string) string {
	if runes := []rune(line); len(runes) > titleLine {
		return string(runes[:titleLine-1]) + "…"
	}
	return line
}

func (s *session) redactText(text string) string {
	if redact := s.project.currentBackend().Redact; redact != nil {
		return redact(text)
	}
	return text
}

// callInput returns the arguments of a call, without credentials.
func (s *session) callInput(args json.RawMessage) any {
	clean := []byte(s.redactText(string(args)))
	if !json.Valid(clean) {
		return nil
	}
	return json.RawMessage(clean)
}

// path returns the one file that a call works on; "" = there is none.
func fileOf(call *tools.Call) string {
	if call.Def.Runs() || len(call.Subject.Paths) != 1 || !filepath.IsAbs(call.Subject.Paths[0]) {
		return ""
	}
	return call.Subject.Paths[0]
}

// callLocations returns the files that a call works on, with the line at which it begins to read.
func callLocations(call *tools.Call) []sdk.ToolCallLocation {
	if call.Def.Runs() {
		return nil
	}
	var list []sdk.ToolCallLocation
	for _, p := range call.Subject.Paths {
		if filepath.IsAbs(p) {
			list = append(list, sdk.ToolCallLocation{Path: p})
		}
	}
	var at struct {
		Offset int `json:"offset"`
	}
	if call.Def.Stated().Act == act.ReadsFile && len(list) == 1 &&
		json.Unmarshal(call.Args, &at) == nil && at.Offset > 0 {
		line := at.Offset + 1
		list[0].Line = &line
	}
	return list
}

// callDiffs returns what an edit changes, without credentials; nil = the call is none.
func (s *session) callDiffs(
	ctx context.Context, verb act.Verb, path string, args json.RawMessage,
) []sdk.ToolCallContent {
	var in struct {
		Old     *string `json:"old_string"`
		New     *string `json:"new_string"`
		Content *string `json:"content"`
	}
	if path == "" || json.Unmarshal(args, &in) != nil {
		return nil
	}
	switch {
	case verb == act.Edit && in.Old != nil && in.New != nil:
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, s.redactText(*in.New), s.redactText(*in.Old))}
	case verb == act.Write && in.Content != nil:
		if old, ok := s.readBefore(ctx, path); ok {
			return []sdk.ToolCallContent{sdk.ToolDiffContent(path, s.redactText(*in.Content), s.redactText(old))}
		}
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, s.redactText(*in.Content))}
	}
	return nil
}
