package inquiry

// The card of an inquiry: the current question with its buttons, below what was answered before.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
)

// Limits of a card, in UTF-16 units.
const (
	// shortLabel is how long the labels of a row of two buttons are at most, and fullLabel the longest that a phone
	// shows whole: longer ones are in the text too.
	shortLabel, fullLabel = 14, 30
	// mostShown is how much of an answer is shown.
	mostShown = 200
)

// Card implements approval.Inquiries.
func (d *Desk) Card(ctx context.Context, q approval.Inquiry) (bot.Content, error) {
	so, err := d.readDraft(ctx, q.Approval)
	if err != nil {
		return bot.Content{}, err
	}
	d.openedIn(q.Place)
	return d.questionCard(q, so), nil
}

// questionCard returns the card with the current question.
func (d *Desk) questionCard(q approval.Inquiry, so draft) bot.Content {
	at := len(so.Answers)
	if at >= len(q.Form.Questions) {
		return d.recordCard(q, so)
	}
	asked, w := &q.Form.Questions[at], d.deps.Words.At(q.Place)
	lines := d.answerLines(q, so)
	lines = append(lines, "❓ "+shownText(w, q.Language, asked.Text))
	if isLong(asked) {
		for i, choice := range asked.Choices {
			lines = append(lines, strconv.Itoa(i+1)+". "+visible.Name(choice))
		}
	}
	name := ""
	if q.Place.Group {
		name = q.Name
	}
	lines = append(lines, w.InquiryFoot(q.Language, texts.Inquiry{
		Kind: asked.Kind, Several: asked.Several, Name: name, Suspicious: w.Source(q.Language, visible.Name(q.Suspicious)),
		Number: at + 1, Of: len(q.Form.Questions), Expires: q.Expires, Typed: d.deps.Messages,
	}))
	content := plainCard(lines, q.Language)
	content.Buttons = d.questionButtons(q, so, asked)
	return content
}

// plainCard returns lines that become no links, mentions or commands: they contain words of a model and of people.
func plainCard(lines []string, language string) bot.Content {
	text := strings.Join(lines, "\n")
	return bot.Content{Text: text, Entities: render.Inert(text), Language: language}
}

// shownText shows a text of a model, with signs for what cannot be seen.
func shownText(w texts.Words, language, text string) string {
	text, _ = w.Visible(language).Text(text)
	return text
}

// isLong reports whether the choices do not fit on their buttons.
func isLong(asked *tools.FormQuestion) bool {
	for _, choice := range asked.Choices {
		if render.Length(choice) > fullLabel {
			return true
		}
	}
	return false
}

// questionButtons returns the buttons of the current question.
func (d *Desk) questionButtons(q approval.Inquiry, so draft, asked *tools.FormQuestion) [][]bot.Button {
	at, w := len(so.Answers), d.deps.Words
	labels := w.InquiryButtons(q.Language)
	button := func(label, choice string) bot.Button {
		return bot.Button{Label: label, Data: approval.InquiryData(q.ID, strconv.Itoa(at)+"."+choice)}
	}
	var list []bot.Button
	for i, choice := range asked.Choices {
		label := visible.Name(choice)
		if asked.Several {
			mark := "☐ "
			if strings.Contains(" "+strings.Trim(fmt.Sprint(so.Picked), "[]")+" ", " "+strconv.Itoa(i)+" ") {
				mark = "☑ "
			}
			label = mark + label
		}
		list = append(list, button(label, strconv.Itoa(i)))
	}
	rows := inRows(list)
	if asked.Several && len(so.Picked) > 0 {
		last := button(labels.Done, done)
		last.Style = "success"
		rows = append(rows, []bot.Button{last})
	}
	if asked.Kind == tools.DateQuestion {
		rows = append(rows, []bot.Button{button(labels.Today, today), button(labels.Tomorrow, next)},
			[]bot.Button{button(labels.Week, week)})
	}
	var last []bot.Button
	if len(q.Form.Questions) > 1 {
		last = append(last, button(labels.Skip, skips))
	}
	return append(rows, append(last, bot.Button{
		Label: labels.Cancel, Data: approval.InquiryData(q.ID, approval.Declined), Style: "danger",
	}))
}

// inRows puts two short buttons on a row, and long ones each on its own.
func inRows(list []bot.Button) [][]bot.Button {
	width := 2
	for _, b := range list {
		if render.Length(b.Label) > shortLabel {
			width = 1
		}
	}
	var rows [][]bot.Button
	for len(list) > 0 {
		n := min(width, len(list))
		rows, list = append(rows, list[:n]), list[n:]
	}
	return rows
}

// answerLines returns what was answered so far, a line for each question.
func (d *Desk) answerLines(q approval.Inquiry, so draft) []string {
	var lines []string
	for i := range so.Answers {
		if i == len(q.Form.Questions) {
			break
		}
		question := render.Cut(visible.Name(q.Form.Questions[i].Text), mostShown)
		lines = append(lines, question+"\n→ "+d.answerText(q, &so.Answers[i]))
	}
	return lines
}

// answerText returns an answer as people read it.
func (d *Desk) answerText(q approval.Inquiry, a *tools.FormAnswer) string {
	var parts []string
	for _, choice := range a.Chosen {
		parts = append(parts, visible.Name(choice))
	}
	if a.Text != "" {
		parts = append(parts, render.Cut(visible.Name(a.Text), mostShown))
	}
	switch {
	case a.Until != "":
		parts = append(parts, d.dayText(q, a.Day)+" – "+d.dayText(q, a.Until))
	case a.Day != "":
		parts = append(parts, d.dayText(q, a.Day))
	}
	if len(parts) == 0 {
		return d.deps.Words.InquirySkipped(q.Language)
	}
	return strings.Join(parts, ", ")
}

// dayText returns a day, or a day and a time of day as it is in the zone of who was asked.
func (d *Desk) dayText(q approval.Inquiry, day string) string {
	words := d.deps.Words
	words.Zone = d.zoneOf(q)
	if at, err := time.Parse(time.RFC3339, day); err == nil {
		return words.Moment(q.Language, at)
	}
	at, err := time.ParseInLocation(time.DateOnly, day, words.Zone)
	if err != nil {
		return day
	}
	return words.Day(q.Language, at)
}

// Record implements approval.Inquiries.
func (d *Desk) Record(q approval.Inquiry) bot.Content { return d.recordCard(q, draft{}) }

// recordCard returns what the card becomes: the questions, what was answered, and how it ended.
func (d *Desk) recordCard(q approval.Inquiry, so draft) bot.Content {
	w := d.deps.Words.At(q.Place)
	lines := d.answerLines(q, so)
	for i := len(so.Answers); i < len(q.Form.Questions); i++ {
		lines = append(lines, shownText(w, q.Language, q.Form.Questions[i].Text))
	}
	return plainCard(append(lines, w.InquiryEnded(q.Language, *q.Approval)), q.Language)
}
