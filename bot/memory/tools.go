package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// The names of the tools.
const (
	saveName   = "memory_save"
	searchName = "memory_search"
	forgetName = "memory_forget"
)

// mostResults limits a search, and what is forgotten by one call.
const mostResults = 20

// Says returns the tools' statements for the policy.
func Says() []act.Tool {
	return []act.Tool{
		{Name: saveName, Statement: act.Statement{Act: act.Remembers, Gain: 0.8}},
		{Name: searchName, Statement: act.Statement{Act: act.Recalls, Gain: 0.8}},
		{Name: forgetName, Statement: act.Statement{Act: act.Remembers, Gain: 0.8}},
	}
}

// Whom a text is remembered for.
const (
	forMe   = "me"
	forChat = "chat"
)

type saveArgs struct {
	Content  string `json:"content" jsonschema:"one fact, as a full sentence that is understood without this conversation"`
	Subject  string `json:"subject,omitempty" jsonschema:"what it is about, in a few words (favourite editor): what was remembered about the same subject is replaced"`
	Replaces string `json:"replaces,omitempty" jsonschema:"id of a memory that this one replaces, because it is no longer true"`
	For      string `json:"for,omitempty" jsonschema:"me or chat: in a private chat everything is remembered for that person alone, in a group for everybody in it. Say me if the person wants it for themselves"`
}

type searchArgs struct {
	Query string `json:"query,omitempty" jsonschema:"words to look for; empty lists the newest"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many results, 1 to 20"`
}

type forgetArgs struct {
	ID string `json:"id" jsonschema:"id of the memory to delete, as search gives it; several are separated by commas"`
}

// Tools returns the tools.
func (s *Store) Tools() ([]tools.Tool, error) {
	save, err := tools.New(tools.Typed[saveArgs]{
		Definition: tools.Definition{
			Name: saveName, Repeatable: true, Says: act.Of(Says(), saveName),
			Description: "Remembers a fact for later conversations: a preference, an agreement, a name. Save it when " +
				"a person asks for it, or tells you something that will matter later. Never passwords or keys.",
		},
		Adjust: func(schema *jsonschema.Schema) {
			schema.Properties["for"].Enum = []any{forMe, forChat}
		},
		Describe: s.describeSave, Check: s.checkSave, Run: s.runSave,
	})
	if err != nil {
		return nil, err
	}
	search, err := tools.New(tools.Typed[searchArgs]{
		Definition: tools.Definition{
			Name: searchName, ReadOnly: true, Says: act.Of(Says(), searchName),
			Description: "Searches what was remembered in earlier conversations: of this person in a private chat, " +
				"of everybody in a group. What fits a message is shown to you with it; search for more. In a " +
				"conversation that was summed up, it also finds what was said there before.",
		},
		Adjust: func(schema *jsonschema.Schema) {
			schema.Properties["limit"].Description += fmt.Sprintf("; %d without it", s.deps.Limits.Results)
		},
		Describe: func(_ context.Context, _ *tools.Call, in searchArgs) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{in.Query}, Show: in.Query}, nil
		},
		Run: s.runSearch,
	})
	if err != nil {
		return nil, err
	}
	forget, err := tools.New(tools.Typed[forgetArgs]{
		Definition: tools.Definition{
			Name: forgetName, Repeatable: true, Says: act.Of(Says(), forgetName),
			Description: "Deletes memories by their ids, for good. To correct one, save the new fact with " +
				"replaces instead.",
		},
		Describe: s.describeForget, Run: s.runForget,
	})
	return []tools.Tool{save, search, forget}, err
}

// scopeOfCall returns whose memories a call works on.
func (s *Store) scopeOfCall(call *tools.Call) (Scope, error) {
	scope, ok := ScopeOfCall(call.Origin)
	if !ok {
		return Scope{}, &tools.Error{
			Category: tools.PolicyBlocked,
			Message: "nothing is remembered here, because it is neither a person's private chat nor a group that " +
				"the bot is in",
			Suggestion: "Tell the person to write in the private chat.",
		}
	}
	return scope, nil
}

// memoryOfCall returns what a call wants remembered, in the form in which it is stored.
func (s *Store) memoryOfCall(call *tools.Call, in saveArgs) (Memory, Scope, error) {
	scope, err := s.scopeOfCall(call)
	if err != nil {
		return Memory{}, scope, err
	}
	if scope.shared && in.For == forMe {
		return Memory{}, scope, &tools.Error{
			Category:   tools.PolicyBlocked,
			Message:    "in a group, something is remembered for the whole group only",
			Suggestion: "Tell the person to say it in the private chat, where it is remembered for them alone.",
		}
	}
	m := Memory{By: call.Origin.Caller, Name: call.Origin.Name, At: s.deps.Now().UTC()}
	m.ID = idOf(cmp.Or(call.Origin.Turn, call.Origin.Session), call.ID)
	var bad wrongText
	if m.Text, bad = s.cleanText(in.Content, s.deps.Limits.Bytes); bad != "" {
		return m, scope, refusedError(refusedAs(bad, "content", len(in.Content), s.deps.Limits.Bytes))
	}
	if strings.TrimSpace(in.Subject) == "" {
		return m, scope, nil
	}
	if m.Key, bad = s.cleanText(in.Subject, keyBytes); bad != "" {
		return m, scope, refusedError(refusedAs(bad, "subject", len(in.Subject), keyBytes))
	}
	m.Key = strings.Join(strings.Fields(m.Key), " ")
	return m, scope, nil
}

// refusedError converts an error for the chain.
func refusedError(err error) error {
	bad, ok := errors.AsType[*wrongError](err)
	switch {
	case !ok:
		return &tools.Error{
			Category: tools.ServerError,
			Message:  "the memory cannot be read or written at the moment",
			Err:      err,
		}
	case bad.wrong == wrongFull:
		return &tools.Error{Category: tools.PermanentFailure, Message: bad.text}
	default:
		return &tools.Error{Category: tools.InvalidParameters, Message: bad.text}
	}
}

func (s *Store) describeSave(_ context.Context, call *tools.Call, in saveArgs) (tools.Subject, error) {
	m, scope, err := s.memoryOfCall(call, in)
	if err != nil {
		return tools.Subject{}, err
	}
	show, note := m.Text, reason.RememberedAlone
	if m.Key != "" {
		show = m.Key + ": " + show
	}
	if scope.shared {
		note = reason.RememberedGroup
	}
	return tools.Subject{
		Inputs: []string{m.Text},
		Show:   show,
		Note:   reason.Notes(reason.New(note)),
		Own:    in.Replaces == "" && isOwnWords(call.Said, m.Key, m.Text),
	}, nil
}

func (s *Store) checkSave(ctx context.Context, call *tools.Call, in saveArgs) error {
	m, scope, err := s.memoryOfCall(call, in)
	if err != nil || in.Replaces == "" {
		return err
	}
	list, err := s.listMemories(ctx, scope)
	if err != nil {
		return refusedError(err)
	}
	if _, err = replacedMemories(&draft{list: list}, &m, []string{in.Replaces}); err != nil {
		return refusedError(err)
	}
	return nil
}

func (s *Store) runSave(ctx context.Context, call *tools.Call, in saveArgs) (*tools.Result, error) {
	m, scope, err := s.memoryOfCall(call, in)
	if err != nil {
		return nil, err
	}
	var replaces []string
	if in.Replaces != "" {
		replaces = []string{in.Replaces}
	}
	out, err := s.saveText(ctx, scope, m, replaces, call.Origin)
	if err != nil {
		return nil, refusedError(err)
	}
	result := &tools.Result{Text: s.tellModel(&out, scope)}
	if out.known || len(out.replaced)+len(out.near) > 0 { // it repeats what was remembered before
		result.Untrusted = tools.Remembered
	}
	return result, nil
}

// tellModel tells the model what became of a memory.
func (s *Store) tellModel(out *saved, scope Scope) string {
	if out.known {
		return "This is remembered already:\n" + s.lineForModel(&out.Memory, scope)
	}
	text := "Remembered for this person alone, as " + out.ID + "."
	if scope.shared {
		text = "Remembered for everybody in this group, as " + out.ID + "."
	}
	for i := range out.replaced {
		text += "\nIt replaces what is now deleted:\n" + s.lineForModel(&out.replaced[i], scope)
	}
	if len(out.near) > 0 {
		text += "\nThese may be about the same. If one is no longer true, delete it with " + forgetName + ":"
		for i := range out.near {
			text += "\n" + s.lineForModel(&out.near[i], scope)
		}
	}
	return text
}

func (s *Store) runSearch(ctx context.Context, call *tools.Call, in searchArgs) (*tools.Result, error) {
	scope, err := s.scopeOfCall(call)
	if err != nil {
		return nil, err
	}
	limit := min(max(cmp.Or(in.Limit, s.deps.Limits.Results), 1), mostResults)
	all, err := s.listMemories(ctx, scope)
	if err != nil {
		return nil, refusedError(err)
	}
	said := s.addSaid(ctx, call, in.Query, limit)
	var lines []string
	if strings.TrimSpace(in.Query) == "" {
		for i := range all[:min(limit, len(all))] {
			lines = append(lines, s.lineForModel(&all[i], scope))
		}
	} else if len(all) > 0 {
		hits := s.rankMemories(ctx, scope, in.Query, &read{list: all, texts: textsOf(all)})
		for i := range hits[:min(limit, len(hits))] {
			lines = append(lines, fmt.Sprintf("%s [score: %.2f]", s.lineForModel(hits[i].Memory, scope), hits[i].score))
		}
	}
	switch {
	case len(lines) > 0:
		text := fmt.Sprintf("## Key facts (%d of %d)\n%s\n%s", len(lines), len(all), strings.Join(lines, "\n"), said)
		return &tools.Result{Text: strings.TrimSpace(text), Untrusted: tools.Remembered}, nil
	case said != "":
		return &tools.Result{Text: strings.TrimSpace(said), Untrusted: tools.Remembered}, nil
	case len(all) == 0:
		return &tools.Result{Text: "Nothing is remembered here yet."}, nil
	default:
		return &tools.Result{Text: fmt.Sprintf("None of the %d memories has words of this query. "+
			"Try other words, or no query for the newest.", len(all))}, nil
	}
}

// forgottenIDs lists the ids of a call that forgets.
func forgottenIDs(in forgetArgs) ([]string, error) {
	list := strings.FieldsFunc(strings.ToLower(in.ID), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	switch {
	case len(list) == 0:
		return nil, tools.Errorf(tools.InvalidParameters, "id is empty: give the id that a search shows in brackets")
	case len(list) > mostResults:
		return nil, tools.Errorf(
			tools.InvalidParameters, "%d ids at once, at most %d are deleted by one call", len(list), mostResults,
		)
	}
	for i := range list {
		list[i] = strings.Trim(list[i], "[]")
	}
	return list, nil
}

// describeForget shows what is deleted, not only its id.
func (s *Store) describeForget(ctx context.Context, call *tools.Call, in forgetArgs) (tools.Subject, error) {
	scope, err := s.scopeOfCall(call)
	if err != nil {
		return tools.Subject{}, err
	}
	list, err := forgottenIDs(in)
	if err != nil {
		return tools.Subject{}, err
	}
	all, err := s.listMemories(ctx, scope)
	if err != nil {
		return tools.Subject{}, refusedError(err)
	}
	var show []string
	for _, id := range list {
		if m, ok := (&draft{list: all}).findMemory(id); ok {
			id += ": " + m.Text
		}
		show = append(show, id)
	}
	note := reason.DeletedAlone
	if scope.shared {
		note = reason.DeletedGroup
	}
	return tools.Subject{Inputs: list, Show: strings.Join(show, "\n"), Note: reason.Notes(reason.New(note))}, nil
}

func (s *Store) runForget(ctx context.Context, call *tools.Call, in forgetArgs) (*tools.Result, error) {
	scope, err := s.scopeOfCall(call)
	if err != nil {
		return nil, err
	}
	list, err := forgottenIDs(in)
	if err != nil {
		return nil, err
	}
	gone, err := s.forgetMemories(ctx, scope, list, call.Origin)
	if err != nil {
		return nil, refusedError(err)
	}
	if len(gone) == 0 { // it may be this call that has deleted them, before it was interrupted
		return &tools.Result{Text: "Nothing is remembered under " + strings.Join(list, ", ") + " (any more)."}, nil
	}
	return &tools.Result{Text: fmt.Sprintf("Deleted: %s.", strings.Join(memoryIDs(gone), ", "))}, nil
}
