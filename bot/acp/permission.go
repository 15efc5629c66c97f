package acp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// askPerson puts a question to the person in the editor, and hands on the decision. It does not wait for it.
func (s *session) askPerson(ctx context.Context, row *bot.Row) {
	c := cardOf(row)
	if c.id == "" {
		return // the file with a long command: the question itself shows all of it
	}
	s.mu.Lock()
	p := s.prompt
	s.mu.Unlock()
	if p == nil || row.Turn != p.turn { // nobody waits for the turn
		s.project.endUnasked(ctx, row)
		return
	}
	s.server.busy.Go(func() {
		asking, end := context.WithCancel(context.WithoutCancel(ctx))
		defer end()
		defer context.AfterFunc(s.server.life, end)()
		s.server.busy.Go(func() {
			select {
			case <-p.stopped:
				end()
			case <-asking.Done():
			}
		})
		choice, text := "", ""
		if approval.IsInquiry(c.press) {
			choice, text = s.askInquiry(asking, c)
		} else {
			choice = s.askChoice(asking, c, row.Content.Text)
		}
		if err := s.pressButton(context.WithoutCancel(ctx), c.press+choice, text); err != nil {
			s.server.opts.Log.Error().Err(err).Msg("a decision was not stored")
			return
		}
		if choice == deny {
			s.askReason(asking, c)
		}
	})
}

// card is the part of a question's row that is answered: the id of the question, and its buttons by choice.
type card struct {
	id      string
	press   string // data of a press without the choice
	buttons map[string]string
}

// cardOf returns the card of a row; the id is "" if it has no buttons.
func cardOf(row *bot.Row) card {
	c := card{buttons: map[string]string{}}
	for _, line := range row.Content.Buttons {
		for _, b := range line {
			if parts := strings.Split(b.Data, ":"); len(parts) == 3 {
				c.id, c.press, c.buttons[parts[2]] = parts[1], strings.TrimSuffix(b.Data, parts[2]), b.Label
			}
		}
	}
	return c
}

// The choices of a question (bot/approval).
const (
	once       = "y"
	forSession = "s"
	whole      = "t"
	clearMark  = "c"
	deny       = "n"
)

// askChoice asks the editor. Whoever dismisses the question denies; if nobody can be asked, nobody has decided.
func (s *session) askChoice(ctx context.Context, c card, text string) string {
	a, err := s.project.currentBackend().Store.Approval(ctx, c.id)
	if err != nil {
		return approval.Gone
	}
	var body struct {
		Question tools.Question `json:"question"`
	}
	if json.Unmarshal(a.Body, &body) != nil {
		return approval.Gone
	}
	var options []sdk.PermissionOption
	for _, o := range []struct {
		choice string
		kind   sdk.PermissionOptionKind
	}{
		{once, sdk.PermissionOptionKindAllowOnce},
		{forSession, sdk.PermissionOptionKindAllowAlways},
		{whole, sdk.PermissionOptionKindAllowAlways},
		{clearMark, sdk.PermissionOptionKindAllowAlways},
		{deny, sdk.PermissionOptionKindRejectOnce},
	} {
		if label, ok := c.buttons[o.choice]; ok {
			options = append(options, sdk.PermissionOption{
				OptionId: sdk.PermissionOptionId(o.choice),
				Kind:     o.kind,
				Name:     label,
			})
		}
	}
	resp, err := s.server.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(s.id), Options: options, ToolCall: s.questionUpdate(&body.Question, text),
	})
	switch {
	case err != nil:
		return approval.Gone
	case resp.Outcome.Selected == nil:
		return deny
	}
	choice := string(resp.Outcome.Selected.OptionId)
	if _, offered := c.buttons[choice]; !offered {
		return deny
	}
	return choice
}

// questionUpdate returns the call that is asked about: what the card says, the whole command if the card has only its
// beginning, and what an edit changes.
func (s *session) questionUpdate(q *tools.Question, card string) sdk.ToolCallUpdate {
	status, title := sdk.ToolCallStatusPending, firstLine(q.Show, q.Tool)
	if !q.Command && title != q.Tool {
		title = q.Tool + " " + title
	}
	title = shortLine(visible.Controls(title))
	u := sdk.ToolCallUpdate{
		ToolCallId: s.callID(q.Call), Title: &title, Status: &status, RawInput: s.callInput(json.RawMessage(q.Args)),
		Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(card))},
	}
	whole, _ := visible.Words{}.Text(strings.TrimRight(q.Show, "\n"))
	if q.Deed != nil && q.Deed.Diff != "" { // the card says what changes
		whole = ""
	}
	if whole != "" && !strings.Contains(card, whole) {
		u.Content = append(u.Content, sdk.ToolContent(sdk.TextBlock(whole)))
	}
	if c, fresh := s.knownCall(q.Call); !fresh {
		s.mu.Lock()
		u.Content = append(u.Content, c.diff...)
		s.mu.Unlock()
	}
	if t, ok := s.project.currentBackend().Tools.Lookup(q.Tool); ok {
		k := callKind(t.Definition.Stated())
		u.Kind = &k
	}
	return u
}

func firstLine(text, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return otherwise
	}
	return line
}

// askReason asks the person why they denied, where the editor shows forms, and hands on what they
// say. The denial counts already.
func (s *session) askReason(ctx context.Context, c card) {
	client := s.server.editorCapabilities()
	if client.Elicitation == nil || client.Elicitation.Form == nil {
		return
	}
	asking, end := context.WithTimeout(ctx, approval.WhyFor)
	defer end()
	words := texts.Words{}.Terminal(s.server.opts.Language)
	resp, err := s.server.conn.UnstableCreateElicitation(asking, sdk.UnstableCreateElicitationRequest{
		Form: &sdk.UnstableCreateElicitationForm{
			Meta: map[string]any{"sessionId": s.id}, Message: words.WhyForm, Mode: "form",
			RequestedSchema: formSchema([]content.Field{{Name: "why", Title: words.Why, Type: content.String}}),
		},
	})
	if err != nil || resp.Accept == nil { // nobody says anything
		return
	}
	why, _ := resp.Accept.Content["why"].(string)
	if strings.TrimSpace(why) == "" {
		return
	}
	if err := s.pressButton(context.WithoutCancel(ctx), c.press+approval.Why, why); err != nil {
		s.server.opts.Log.Error().Err(err).Msg("why a call was denied was not stored")
	}
}

// pressButton hands on a decision, or with text why it was made.
func (s *session) pressButton(ctx context.Context, data, text string) error {
	m := s.newMessage(uuid.Must(uuid.NewV7()).String())
	m.Kind, m.Message, m.Data, m.Query, m.Text = bot.Press, "", data, m.ID, text
	return s.handMessage(ctx, m)
}

// endUnasked ends a question that nobody can be asked: as if nobody had decided in time.
func (p *Project) endUnasked(ctx context.Context, row *bot.Row) {
	c := cardOf(row)
	if c.id == "" {
		return
	}
	s := &session{server: p.server, project: p, id: row.Place.Chat}
	if err := s.pressButton(ctx, c.press+approval.Gone, ""); err != nil {
		p.server.opts.Log.Error().Err(err).Msg("a question that nobody can be asked was not ended")
	}
}
