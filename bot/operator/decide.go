package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Decisions carry out what admins decide on the page, on the paths of the chat: a press of a card's button, and what
// follows /quota. Without Apply, the page only shows what waits.
type Decisions struct {
	// Card returns what the card of a question says, and the text of the file that goes with it.
	Card func(a *bot.Approval) (text, file string, err error)
	// Press does what a press of a card's button does; it checks who may.
	Press func(ctx context.Context, msg *bot.Message) (turn.Effect, error)
	// Quota carries out what an admin writes behind /quota, and records it.
	Quota func(ctx context.Context, call *turn.Call) (string, turn.Effect, error)
	// Apply stores an Effect, and does what follows from it. compute is called again if the state has changed.
	Apply func(ctx context.Context, compute func() (turn.Effect, error)) error
}

// What can be done about a question.
const (
	doShow    = "show"
	doApprove = "approve"
	doDeny    = "deny"
)

// verdict is what an admin wants about a question. Seen is the hash of what was shown: nobody approves anything else.
type verdict struct {
	ID   string `json:"question"`
	Do   string `json:"do"`
	Seen string `json:"seen"`
}

// shownQuestion is a question with its texts.
type shownQuestion struct {
	ID   string `json:"question"`
	Seen string `json:"seen"`
	Text string `json:"text"`
	File string `json:"file,omitempty"`
}

// handleQuestion shows the texts of a question, which is put on record, or decides about it.
func (p *Page) handleQuestion(ctx context.Context, v *visitor, in verdict) (any, error) {
	switch {
	case p.deps.Apply == nil:
		return nil, wrong{http.StatusNotFound, "questions are decided in the chat only"}
	case in.Do == doShow:
		return p.showQuestion(ctx, v, in)
	case in.Do == doApprove, in.Do == doDeny:
		return saying(p.decideQuestion)(ctx, v, in)
	default:
		return nil, wrong{http.StatusBadRequest, fmt.Sprintf("do is %.20q: want show, approve or deny", in.Do)}
	}
}

// openQuestion returns a question of this bot that waits.
func (p *Page) openQuestion(ctx context.Context, id string) (*bot.Approval, error) {
	a, err := p.deps.Store.Approval(ctx, id)
	if err != nil {
		return nil, err
	}
	if a.Place.Channel != p.deps.Channel || a.Place.Bot != p.deps.Bot {
		return nil, bot.ErrNotFound
	}
	return &a, nil
}

func (p *Page) showQuestion(ctx context.Context, v *visitor, in verdict) (any, error) {
	a, err := p.openQuestion(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	text, file, err := p.deps.Card(a)
	if err != nil {
		return nil, err
	}
	_, err = p.recordChange(ctx, &bot.Change{}, p.auditCall(v, "admin_texts", map[string]any{
		"session": a.Session, "question": a.Short,
	}))
	return shownQuestion{ID: a.ID, Seen: a.Hash, Text: text, File: file}, err
}

// decideQuestion presses the button of the card in the name of the visitor, and records it with the decision.
func (p *Page) decideQuestion(ctx context.Context, v *visitor, in verdict) (said string, err error) {
	refused := false
	err = p.deps.Apply(ctx, func() (turn.Effect, error) {
		a, err := p.openQuestion(ctx, in.ID)
		if err != nil {
			return turn.Effect{}, err
		}
		if in.Do == doApprove && (in.Seen == "" || in.Seen != a.Hash) {
			return turn.Effect{}, wrong{http.StatusConflict, "this is not the question that was shown: look at it again"}
		}
		e, err := p.deps.Press(ctx, &bot.Message{
			Kind: bot.Press, Place: a.Place, Caller: v.Caller, Name: v.Name, Language: "en",
			Data: approval.PressData(a.ID, in.Do == doApprove),
		})
		if err != nil {
			return e, err
		}
		said, refused = "", false
		e.Change.Send = slices.DeleteFunc(e.Change.Send, func(row bot.Row) bool {
			if row.Purpose != bot.Toast {
				return false
			}
			said, refused = row.Content.Text, row.Alert
			return true
		})
		if len(e.Change.Decide) == 0 {
			return e, wrong{http.StatusConflict, said}
		}
		if p.deps.Line != nil && !refused {
			e.Change.Facts = append(e.Change.Facts, p.deps.Line(p.auditCall(v, "admin_"+in.Do, map[string]any{
				"question": a.Short, "session": a.Session, "tool": a.Tool,
			}))...)
		}
		return e, nil
	})
	if err == nil && p.deps.Recorded != nil {
		p.deps.Recorded(ctx)
	}
	switch {
	case errors.Is(err, bot.ErrDecided):
		return "", wrong{http.StatusConflict, "somebody has decided this already"}
	case err == nil && refused: // it had expired, which is stored now
		return "", wrong{http.StatusConflict, said}
	}
	return said, err
}

// limitChange is a limit that an admin sets; Limit "" takes back what was set, "off" is no limit.
type limitChange struct {
	Level  string `json:"level"`
	Unit   string `json:"unit"`
	Window string `json:"window"`
	Limit  string `json:"limit"`
}

// changeLimit carries out what /quota set and /quota unset do in the chat.
func (p *Page) changeLimit(ctx context.Context, v *visitor, in limitChange) (said string, err error) {
	who, ok := p.limitOwner(in.Level)
	if !ok || p.deps.Apply == nil {
		return "", wrong{http.StatusBadRequest, "this limit is set in the configuration only"}
	}
	unit := in.Unit
	if unit == quota.USD {
		unit = "usd"
	}
	words := []string{"set", who, unit + "/" + in.Window, in.Limit}
	if in.Limit == "" {
		words = []string{"unset", who, unit + "/" + in.Window}
	}
	call := &turn.Call{Admin: true, Message: &bot.Message{
		Place:  bot.Place{Channel: p.deps.Channel, Bot: p.deps.Bot, Surface: bot.SurfaceBot},
		Caller: v.Caller, Name: v.Name, Language: "en", Command: "quota", Args: strings.Join(words, " "),
	}}
	err = p.deps.Apply(ctx, func() (turn.Effect, error) {
		text, e, err := p.deps.Quota(ctx, call)
		if err == nil && len(e.Change.Facts) == 0 {
			return e, wrong{http.StatusBadRequest, text}
		}
		said = text
		return e, err
	})
	return said, err
}

// limitOwner returns how /quota names the person or group of a level; false for what only the configuration limits.
func (p *Page) limitOwner(level string) (string, bool) {
	if id, ok := strings.CutPrefix(level, quota.UserLevel(p.deps.Channel+":")); ok {
		n, err := strconv.ParseInt(id, 10, 64)
		return id, err == nil && n > 0
	}
	place := bot.Place{Channel: p.deps.Channel, Bot: p.deps.Bot, Surface: bot.SurfaceBot}
	place.Chat = level[strings.LastIndexByte(level, '/')+1:]
	n, err := strconv.ParseInt(place.Chat, 10, 64)
	return place.Chat, err == nil && n < 0 && level == quota.ChatLevel(place.ChatKey())
}

// settable reports whether the page can change a limit.
func (p *Page) settable(b *quota.Bar) bool {
	_, ok := p.limitOwner(b.Level)
	return ok && p.deps.Apply != nil && (b.Window == texts.Day || b.Window == texts.Month)
}
