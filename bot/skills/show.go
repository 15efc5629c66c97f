package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/skill"
)

// Prefix begins the data of the Handler's buttons: "sk:n:PAGE" shows a page of the list, and "sk:VERB:ID:PAGE" shows a
// skill or decides about it. The ID stands for the name and the content, so that nobody decides about
// anything else than what they saw.
const Prefix = "sk"

// Verbs of the buttons.
const (
	pressPage   = "n"
	pressView   = "v"
	pressAccept = "a"
	pressLimit  = "l"
	pressRefuse = "r"
)

// pageSize is how many skills one message lists.
const pageSize = 8

// contentID identifies a skill with its content.
func contentID(e *skill.Entry) string {
	sum := sha256.Sum256([]byte(e.Name + "\x00" + e.Hash))
	return hex.EncodeToString(sum[:8])
}

// Press implements turn.Presser. Whoever has a client of their own can send anything: an admin can do by it what they
// can do by a command, and anybody else can turn pages.
func (d *Handler) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	_, rest, _ := strings.Cut(msg.Data, ":")
	parts := strings.Split(rest, ":")
	page, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil || page < 0 || d.deps.Library == nil {
		return toastReply(msg, w.UnknownQuestion(msg.Language), true), nil
	}
	d.deps.Library.Sync()
	if err := d.Follow(ctx); err != nil {
		return turn.Effect{}, err
	}
	switch {
	case len(parts) == 2 && parts[0] == pressPage:
		return d.redrawList(msg, "", d.listPage(call, page, "")), nil
	case len(parts) != 3:
		return toastReply(msg, w.UnknownQuestion(msg.Language), true), nil
	case !call.Admin, msg.Place.Group:
		return toastReply(msg, w.SkillsInPrivate(msg.Language), true), nil
	}
	list, _ := d.deps.Library.Entries()
	i := slices.IndexFunc(list, func(e skill.Entry) bool { return contentID(&e) == parts[1] })
	if i < 0 {
		e := d.redrawList(msg, w.SkillOutdated(msg.Language), d.listPage(call, page, ""))
		e.Change.Send[0].Alert = true
		return e, nil
	}
	verdict := map[string]skill.Verdict{
		pressAccept: skill.Accepted,
		pressLimit:  skill.Limited,
		pressRefuse: skill.Refused,
	}[parts[0]]
	switch {
	case verdict != "":
		return d.pressSkill(ctx, call, list[i], verdict, page)
	case parts[0] == pressView:
		return d.redrawList(msg, "", d.skillDetails(msg, list[i], page)), nil
	}
	return toastReply(msg, w.UnknownQuestion(msg.Language), true), nil
}

// pressSkill decides, and draws the list again once that is stored.
func (d *Handler) pressSkill(
	ctx context.Context, call *turn.Call, e skill.Entry, v skill.Verdict, page int,
) (turn.Effect, error) {
	out, text, err := d.decideSkill(ctx, call, e, v)
	if err != nil {
		return turn.Effect{}, err
	}
	if len(out.Change.Facts) == 0 {
		return toastReply(call.Message, text, true), nil
	}
	out.Change.Send = toastReply(call.Message, d.deps.Words.Noted(call.Message.Language, 0), false).Change.Send
	then := out.Then
	out.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		if _, err := then(ctx, applied); err != nil {
			return turn.Effect{}, err
		}
		drawn := d.redrawList(call.Message, "", d.listPage(call, page, text))
		drawn.Change.Send = drawn.Change.Send[1:] // the press was answered
		return drawn, nil
	}
	return out, nil
}

func toastReply(msg *bot.Message, text string, alert bool) turn.Effect {
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: alert, Content: bot.Content{Text: text},
	}}}}
}

// redrawList answers a press and puts content into the message of its button.
func (d *Handler) redrawList(msg *bot.Message, said string, content bot.Content) turn.Effect {
	e := toastReply(msg, said, false)
	if msg.Message != "" {
		content.Language = msg.Language
		e.Change.Send = append(e.Change.Send, bot.Row{
			Place:   msg.Place,
			Purpose: bot.Record,
			Edit:    msg.Message,
			Content: content,
		})
	}
	return e
}

// listPage is a page of the skills. What is wrong with folders is for admins, and so are
// the buttons, outside of groups.
func (d *Handler) listPage(call *turn.Call, page int, note string) bot.Content {
	language, w := call.Message.Language, d.deps.Words.At(call.Message.Place)
	all, problems := d.deps.Library.Entries()
	page = min(page, max(0, len(all)-1)/pageSize)
	from := page * pageSize
	part := all[from:min(from+pageSize, len(all))]
	admin := call.Admin && !call.Message.Place.Group
	shownList := texts.SkillList{From: from + 1, All: len(all), Note: note}
	var content bot.Content
	var row []bot.Button
	for i := range part {
		shownList.Page = append(shownList.Page, *shownSkill(part[i]))
		if !admin {
			continue
		}
		row = append(row, bot.Button{
			Label: strconv.Itoa(from+i+1) + ". " + render.Cut(part[i].Name, 24),
			Data:  buttonData(pressView, contentID(&part[i]), page),
		})
		if len(row) == 2 || i == len(part)-1 {
			content.Buttons = append(content.Buttons, row)
			row = nil
		}
	}
	if admin {
		for _, p := range problems {
			shownList.Problems = append(shownList.Problems, p.Error())
		}
	}
	newer, older := w.PageButtons(language)
	content.AddPages(newer, older, page, from+pageSize < len(all), func(n int) string { return Prefix + ":" + pressPage + ":" + strconv.Itoa(n) })
	content.Text = w.Skills(language, shownList)
	content.Entities = render.Inert(content.Text)
	return content
}

// skillDetails is what an admin sees of a skill before deciding about it.
func (d *Handler) skillDetails(msg *bot.Message, e skill.Entry, page int) bot.Content {
	language, w := msg.Language, d.deps.Words.At(msg.Place)
	s := shownSkill(e)
	s.License, s.Compatibility, s.Allowed = e.License, e.Compatibility, e.AllowedTools
	for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
		if s.Metadata != "" {
			s.Metadata += ", "
		}
		s.Metadata += key + " = " + e.Metadata[key]
	}
	s.Size, s.Body, s.Code = e.Size, e.Body, e.Brief()
	for _, f := range e.Files {
		s.Files = append(s.Files, texts.SkillFile{Path: f.Path, Size: f.Size, Program: f.Program})
	}
	for _, f := range e.Findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		s.Findings = append(s.Findings, texts.SkillFinding{Kind: string(f.Kind), Where: where, What: f.What})
	}
	content := bot.Content{Text: w.SkillDetails(language, s)}
	content.Entities = render.Inert(content.Text)
	accept, limit, refuse, back := w.SkillButtons(language)
	var choices []bot.Button
	for _, c := range []struct {
		state       skill.State
		label, verb string
		style       string
	}{
		{skill.InUse, accept, pressAccept, ""},
		{skill.ReadOnly, limit, pressLimit, ""},
		{skill.Rejected, refuse, pressRefuse, "danger"},
	} {
		if e.State != c.state {
			choices = append(choices, bot.Button{
				Label: c.label,
				Data:  buttonData(c.verb, contentID(&e), page),
				Style: c.style,
			})
		}
	}
	content.Buttons = [][]bot.Button{
		choices,
		{{Label: back, Data: Prefix + ":" + pressPage + ":" + strconv.Itoa(page)}},
	}
	return content
}

func buttonData(verb, id string, page int) string {
	return Prefix + ":" + verb + ":" + id + ":" + strconv.Itoa(page)
}

// shownSkill converts a skill for the list.
func shownSkill(e skill.Entry) *texts.Skill {
	s := &texts.Skill{Name: e.Name, Description: e.Description, State: string(e.State)}
	if e.State != skill.Waiting {
		s.By, s.At = e.Decision.ByName, e.Decision.At
	}
	if e.State == skill.Changed {
		s.By = ""
	}
	return s
}
