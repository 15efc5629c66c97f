// Package story tells from a journal what was done in a conversation, for people: turns with their steps, the rule that
// decided, who approved, what it took. It does no I/O.
package story

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
)

// Turn is one question and everything done for it.
type Turn struct {
	ID       string    `json:"id"`
	State    string    `json:"state"` // running, waiting for a decision, done …: in words for people
	Began    time.Time `json:"began"`
	Text     string    `json:"text"`               // what was asked
	Messages []int     `json:"messages,omitempty"` // ids of the chat messages that the turn made, as far as known
	Steps    []Step    `json:"steps"`
}

// Kinds of a Step.
const (
	Model    = "model"
	Tool     = "tool"
	Approval = "approval"
	Answer   = "answer"
	End      = "end"
	task     = "task" // of a sub-agent
)

// Step is one step of a turn.
type Step struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name,omitempty"` // model, tool, or outcome
	Text   string  `json:"text,omitempty"` // arguments, result, answer
	Rule   string  `json:"rule,omitempty"` // what decided
	By     string  `json:"by,omitempty"`   // who approved or denied
	Millis int64   `json:"millis,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	Failed bool    `json:"failed,omitempty"`

	at time.Time
}

// Of groups a journal into turns with their steps, oldest first. rows are those of its session, and lane is its state.
// plain returns what the model reads of a result as people read it; nil = as it is.
func Of(entries []journal.Entry, rows []bot.Row, lane *bot.Lane, plain func(text string) string) []Turn {
	var list []Turn
	at, agents := map[string]int{}, map[string]string{}
	for _, e := range entries {
		if e.Begins() {
			continue
		}
		if e.Kind == journal.ResultEntry && plain != nil {
			e.Text = plain(e.Text)
		}
		i, ok := at[e.Turn]
		if !ok {
			i = len(list)
			at[e.Turn] = i
			list = append(list, Turn{ID: e.Turn, State: "running", Began: e.At})
		}
		if e.Child != "" {
			if e.Kind == journal.UserEntry {
				agents[e.Turn+"/"+e.Child] = e.Speaker
			}
			list[i].Steps = append(list[i].Steps, stepsOf(agents[e.Turn+"/"+e.Child], e)...)
			continue
		}
		addEntry(&list[i], e)
	}
	for _, r := range rows {
		i, ok := at[r.Turn]
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(r.Message); err == nil {
			list[i].Messages = append(list[i].Messages, n)
		}
		if r.Purpose == bot.Question {
			list[i].addQuestion(r.Created)
		}
	}
	if i, ok := at[lane.Turn]; ok && lane.Turn != "" {
		list[i].State = map[bot.LaneState]string{
			bot.Parked:  "waiting for a decision",
			bot.Waiting: "waiting for the model",
		}[lane.State]
		if list[i].State == "" {
			list[i].State = "running"
		}
	}
	return list
}

// addQuestion adds that people were asked, where it happened: before what came of it.
func (t *Turn) addQuestion(asked time.Time) {
	later := slices.IndexFunc(t.Steps, func(s Step) bool { return s.at.After(asked) })
	if later < 0 {
		later = len(t.Steps)
	}
	t.Steps = slices.Insert(t.Steps, later, Step{Kind: Approval, Name: "asked", at: asked})
}

// ArgsInWords returns what a tool was called with: the texts among its arguments, without their names.
func ArgsInWords(args json.RawMessage) string {
	var members map[string]any
	if json.Unmarshal(args, &members) != nil {
		return ""
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text, ok := members[name].(string); ok && text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, " · ")
}

// addEntry adds an entry to its turn.
func addEntry(t *Turn, e journal.Entry) {
	was := len(t.Steps)
	defer func() {
		for i := range t.Steps[was:] {
			t.Steps[was+i].at = e.At
		}
	}()
	switch e.Kind {
	case journal.UserEntry:
		switch text := prompt.Said(e.Text, e.Parts); e.Joins {
		case journal.Edited:
			t.Text = text
		case journal.Meanwhile, journal.Declined:
			t.Text += "\n" + text
		default:
			t.Text, t.Began = text, e.At
		}
	case journal.AssistantEntry:
		var names []string
		for _, u := range e.Uses {
			call := u.Name
			if args := ArgsInWords(u.Args); args != "" {
				call += " · " + args
			}
			names = append(names, call)
		}
		t.Steps = append(t.Steps, Step{
			Kind:   Model,
			Name:   e.Model,
			Text:   strings.Join(names, "\n"),
			Millis: e.Millis,
			Tokens: int64(e.Usage.Total()),
			USD:    e.USD,
		})
	case journal.ResultEntry:
		t.Steps = append(t.Steps, Step{
			Kind: Tool, Name: e.Tool, Text: e.Text, Rule: e.Rule, By: e.By, Millis: e.Millis, Failed: e.Failed,
		})
	case journal.AnswerEntry:
		t.State = "done"
		t.Steps = append(t.Steps, Step{
			Kind:   Answer,
			Name:   e.Model,
			Text:   e.Text,
			Millis: e.Millis,
			Tokens: int64(e.Usage.Total()),
			USD:    e.USD,
		})
	case journal.EndEntry:
		t.State = "ended without an answer"
		if e.Reason == journal.ReasonStopped {
			t.State = "stopped"
		}
		t.Steps = append(t.Steps, Step{Kind: End, Name: t.State, Text: e.Text, Failed: true})
	case journal.StartedEntry, journal.SummaryEntry, journal.ResetEntry:
	}
}

// stepsOf returns what an entry of a sub-agent adds to the story of its turn: its steps are told among those of the
// turn, with its name in front.
func stepsOf(agent string, e journal.Entry) []Step {
	if e.Kind == journal.UserEntry {
		return []Step{{Kind: task, Name: agent, Text: e.Text}}
	}
	var t Turn
	addEntry(&t, e)
	for i := range t.Steps {
		t.Steps[i].Name = agent + " · " + t.Steps[i].Name
	}
	return t.Steps
}
