package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/act"
)

// replayJournal shows a stored conversation.
func (s *session) replayJournal(ctx context.Context) error {
	entries, err := s.project.currentBackend().Store.Journal(ctx, s.sessionKey(), 0)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range entries {
		if entries[i].Kind == journal.ResultEntry {
			done[entries[i].Call] = true
		}
	}
	for i := range entries {
		s.showEntry(&entries[i], done)
	}
	return nil
}

// showEntry shows one entry; done says which calls have a result.
func (s *session) showEntry(e *journal.Entry, done map[string]bool) {
	if e.Child != "" && (e.Kind == journal.UserEntry || e.Kind == journal.AnswerEntry || e.Kind == journal.EndEntry) {
		return // between the agent and a sub-agent
	}
	switch e.Kind {
	case journal.UserEntry:
		s.retellUser(e)
	case journal.AssistantEntry:
		if e.Text != "" {
			s.sendUpdate(sdk.UpdateAgentMessageText(e.Text))
		}
		for i := range e.Uses {
			s.replayCall(&e.Uses[i], done[e.Uses[i].Call])
		}
	case journal.ResultEntry:
		status := sdk.ToolCallStatusCompleted
		if e.Failed {
			status = sdk.ToolCallStatusFailed
		}
		s.sendUpdate(sdk.UpdateToolCall(s.callID(e.Call), sdk.WithUpdateStatus(status), sdk.WithUpdateContent(
			[]sdk.ToolCallContent{
				sdk.ToolContent(sdk.TextBlock(cutText(s.project.currentBackend().Bare(e.Text), maxOutput))),
			})))
	case journal.AnswerEntry, journal.EndEntry:
		if e.Text != "" {
			s.sendUpdate(sdk.UpdateAgentMessageText(e.Text))
		}
	case journal.StartedEntry, journal.SummaryEntry, journal.ResetEntry:
	}
}

// retellUser shows what the person said, and the names of what came with it.
func (s *session) retellUser(e *journal.Entry) {
	if e.Text != "" {
		s.sendUpdate(sdk.UpdateUserMessageText(e.Text))
	}
	for i := range e.Parts {
		if name := e.Parts[i].Name; name != "" {
			s.sendUpdate(sdk.UpdateUserMessageText("[" + name + "]"))
		}
	}
}

// replayCall shows a call of a stored conversation.
func (s *session) replayCall(u *journal.Use, ended bool) {
	var says act.Statement
	if t, ok := s.project.currentBackend().Tools.Lookup(u.Name); ok {
		says = t.Definition.Stated()
	}
	var in struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	title := u.Name
	if json.Unmarshal(u.Args, &in) == nil {
		switch {
		case in.Command != "":
			title = firstLine(in.Command, title)
		case in.Path != "":
			title += " " + in.Path
		}
	}
	status := sdk.ToolCallStatusInProgress
	if !ended { // the process died, and the turn was ended before it had a result
		status = sdk.ToolCallStatusFailed
	}
	s.sendUpdate(sdk.StartToolCall(
		s.callID(u.Call),
		shortLine(s.redactText(title)),
		sdk.WithStartKind(callKind(says)),
		sdk.WithStartStatus(status),
		sdk.WithStartRawInput(s.callInput(u.Args)),
	))
}
