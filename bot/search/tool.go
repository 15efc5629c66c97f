package search

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Name of the tool.
const Name = "search_conversations"

// toldLength is how much of what was said the model is told of each place, in characters.
const toldLength = 400

// Says returns the statement of the tool for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Recalls, Gain: 0.8}}}
}

type args struct {
	Query string `json:"query"`
}

// Tools returns the tool.
func (s *Searcher) Tools() ([]tools.Tool, error) {
	tool, err := tools.New(tools.Typed[args]{
		Definition: tools.Definition{
			Name: Name, ReadOnly: true, Says: act.Of(Says(), Name), Seldom: "earlier talks here",
			Description: "Finds words in this chat's earlier conversations.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in args) (tools.Subject, error) {
			switch n := len(parseQuery(in.Query)); {
			case n == 0:
				return tools.Subject{}, tools.Errorf(tools.InvalidParameters, "query has no word to look for")
			case n > mostTerms:
				return tools.Subject{}, tools.Errorf(
					tools.InvalidParameters, "query has %d words, at most %d: name those that are special", n, mostTerms,
				)
			}
			return tools.Subject{Inputs: []string{in.Query}, Show: in.Query}, nil
		},
		Run: s.run,
	})
	return []tools.Tool{tool}, err
}

func (s *Searcher) run(ctx context.Context, call *tools.Call, in args) (*tools.Result, error) {
	scope, ok := scopeOfCall(call.Origin)
	if !ok {
		return nil, &tools.Error{
			Category:   tools.PolicyBlocked,
			Message:    "conversations are searched only in a person's private chat, and in groups that the bot is in",
			Suggestion: "Tell the person to ask in the private chat.",
		}
	}
	q := &query{terms: parseQuery(in.Query), turn: call.Origin.Turn, trusted: true, length: toldLength, meant: in.Query}
	r, err := s.find(ctx, scope, q)
	if err != nil {
		return nil, &tools.Error{
			Category: tools.ServerError,
			Message:  "conversations cannot be searched at the moment",
			Err:      err,
		}
	}
	return s.tellModel(&r, s.deps.Zone(call.Origin.Caller)), nil
}

// tellModel tells the model what was found.
func (s *Searcher) tellModel(r *result, zone *time.Location) *tools.Result {
	bound := ""
	if r.bounded {
		bound = fmt.Sprintf(" Only the newest %d entries were looked at.", mostEntries)
	}
	if len(r.list) == 0 {
		return &tools.Result{Text: "Nothing that was said in this chat has these words. Try fewer or other ones." + bound}
	}
	head := fmt.Sprintf("%d of %d places, the newest first.", len(r.list), r.all)
	if r.partly {
		head = fmt.Sprintf("No place has all of these words; %d of %d that are nearest.", len(r.list), r.all)
	}
	lines := []string{head + bound}
	for i := range r.list {
		f := &r.list[i]
		who := texts.Named(f.speaker)
		switch {
		case f.answer:
			who = "assistant"
		case who == "":
			who = "person"
		}
		line := fmt.Sprintf("- %s, %s: %s", f.at.In(zone).Format("2006-01-02 15:04"), who, f.text)
		if f.link != "" {
			line += " [" + f.link + "]"
		}
		lines = append(lines, line)
	}
	return &tools.Result{Text: strings.Join(lines, "\n"), Untrusted: tools.Remembered}
}
