package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// askInquiry asks the person in the editor what a call wants to know, and returns the press that hands on the answers:
// with one form where the editor shows forms, or else with a dialog for each question that has choices.
func (s *session) askInquiry(ctx context.Context, c card) (choice, text string) {
	a, err := s.project.currentBackend().Store.Approval(ctx, c.id)
	var body struct {
		Question tools.Question `json:"question"`
	}
	if err != nil || json.Unmarshal(a.Body, &body) != nil || body.Question.Form == nil {
		return approval.Gone, ""
	}
	client := s.server.editorCapabilities()
	var answers [][]string
	if client.Elicitation != nil && client.Elicitation.Form != nil {
		answers, choice = s.fillInquiry(ctx, &body.Question)
	} else {
		answers, choice = s.chooseInquiry(ctx, &body.Question)
	}
	if choice != approval.Filled {
		return choice, ""
	}
	raw, err := json.Marshal(answers)
	if err != nil {
		return approval.Gone, ""
	}
	return choice, string(raw)
}

// fillInquiry asks with a form.
func (s *session) fillInquiry(ctx context.Context, q *tools.Question) (answers [][]string, choice string) {
	fields := make([]content.Field, len(q.Form.Questions))
	for i := range q.Form.Questions {
		fields[i] = inquiryField(i, &q.Form.Questions[i])
	}
	resp, err := s.server.conn.UnstableCreateElicitation(ctx, sdk.UnstableCreateElicitationRequest{
		Form: &sdk.UnstableCreateElicitationForm{
			Meta:    map[string]any{"sessionId": s.id, "toolCallId": string(s.callID(q.Call))},
			Message: visible.Controls(q.Show), Mode: "form", RequestedSchema: formSchema(fields),
		},
	})
	switch {
	case err != nil:
		return nil, approval.Gone
	case resp.Accept == nil:
		return nil, approval.Declined
	}
	for i := range fields {
		answers = append(answers, valueTexts(resp.Accept.Content[fields[i].Name]))
	}
	return answers, approval.Filled
}

// inquiryField returns the field for a question.
func inquiryField(i int, q *tools.FormQuestion) content.Field {
	f := content.Field{Name: "answer" + strconv.Itoa(i+1), Title: visible.Controls(q.Text), Type: content.String}
	for _, choice := range q.Choices {
		f.Options = append(f.Options, content.Option{Value: choice, Title: visible.Name(choice)})
	}
	switch {
	case q.Several:
		f.Type = content.Multi
	case q.Kind == tools.ChoiceQuestion:
		f.Type = content.Enum
	case q.Kind == tools.DateQuestion:
		f.Format = "date"
	}
	return f
}

// valueTexts returns what was filled into a field.
func valueTexts(value any) []string {
	switch v := value.(type) {
	case nil:
		return []string{}
	case []any:
		list := make([]string, 0, len(v))
		for _, one := range v {
			list = append(list, fmt.Sprint(one))
		}
		return list
	default:
		return []string{fmt.Sprint(v)}
	}
}

// chooseInquiry asks with a dialog for each question that has choices; the others are skipped. If there is none, nobody
// can be asked.
func (s *session) chooseInquiry(ctx context.Context, q *tools.Question) (answers [][]string, choice string) {
	labels := texts.Words{}.InquiryButtons(s.server.opts.Language)
	choice = approval.Gone
	for i := range q.Form.Questions {
		asked, chosen := &q.Form.Questions[i], []string{}
		choices := asked.Choices
		if asked.Kind == tools.DateQuestion {
			choices = []string{labels.Today, labels.Tomorrow}
		}
		if len(choices) > 0 {
			n, ok := s.askChoices(ctx, q, asked.Text, choices, labels.Skip)
			if !ok {
				return nil, approval.Gone
			}
			if n == dismissed {
				return nil, approval.Declined
			}
			if choice = approval.Filled; n < len(choices) {
				chosen = choices[n : n+1]
			}
		}
		answers = append(answers, chosen)
	}
	return answers, choice
}

// dismissed is the choice of who closes a dialog.
const dismissed = -1

// askChoices shows a dialog and returns the number of the choice, the number of choices for skip, or dismissed; ok is
// false if nobody can be asked.
func (s *session) askChoices(
	ctx context.Context, q *tools.Question, text string, choices []string, skip string,
) (n int, ok bool) {
	var options []sdk.PermissionOption
	for i, choice := range choices {
		options = append(options, sdk.PermissionOption{
			OptionId: sdk.PermissionOptionId(strconv.Itoa(i)), Kind: sdk.PermissionOptionKindAllowOnce,
			Name: visible.Name(choice),
		})
	}
	options = append(options, sdk.PermissionOption{
		OptionId: sdk.PermissionOptionId(strconv.Itoa(len(choices))), Kind: sdk.PermissionOptionKindRejectOnce, Name: skip,
	})
	one := *q
	one.Show = text
	resp, err := s.server.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(s.id), Options: options,
		ToolCall: s.questionUpdate(&one, visible.Controls(strings.TrimSpace(text))),
	})
	if err != nil {
		return dismissed, false
	}
	if resp.Outcome.Selected == nil {
		return dismissed, true
	}
	n, err = strconv.Atoi(string(resp.Outcome.Selected.OptionId))
	if err != nil || n < 0 || n > len(choices) {
		return dismissed, true
	}
	return n, true
}
