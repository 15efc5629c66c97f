package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// replayJournal shows a stored conversation.
func (s *session) replayJournal(ctx context.Context) error {
	entries, err := s.project.currentBackend().Store.Journal(ctx, s.sessionKey(), 0)
	if err != nil {
		return err
	}
	calls := retold{done: map[string]bool{}, plans: map[string]*journal.Use{}}
	for i := range entries {
		e := &entries[i]
		if e.Kind == journal.ResultEntry {
			calls.done[e.Call] = true
		}
		for j := range e.Uses {
			if e.Uses[j].Plans {
				calls.plans[e.Uses[j].Call] = &e.Uses[j]
			}
		}
	}
	for i := range entries {
		s.showEntry(&entries[i], calls)
	}
	return nil
}

// retold is what is known of the calls of a stored conversation.
type retold struct {
	done  map[string]bool         // calls that have a result
	plans map[string]*journal.Use // calls that show plans
}

// showEntry shows one entry.
func (s *session) showEntry(e *journal.Entry, calls retold) {
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
			if u := &e.Uses[i]; !u.Plans {
				s.replayCall(u, calls.done[u.Call])
			}
		}
	case journal.ResultEntry:
		if u := calls.plans[e.Call]; u != nil {
			s.replayPlan(u, e)
			return
		}
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

// replayPlan shows a plan again, unless its call failed.
func (s *session) replayPlan(u *journal.Use, result *journal.Entry) {
	if list, err := tools.ReadPlan(u.Args); err == nil && !result.Failed && result.Child == "" {
		s.sendPlan(list)
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
