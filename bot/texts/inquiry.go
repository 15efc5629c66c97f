package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// inquiryBook is what is said around the questions that a model asks a person.
type inquiryBook struct {
	Choose, ChooseTyped, Several, SeveralTyped   string
	Write, Date, DateTyped                       string
	Only                                         string // name
	Progress                                     string // number, of how many
	Open                                         string // until when
	Buttons                                      inquiryButtons
	Answered, AnsweredOwn, Declined, DeclinedOwn string // name, time
	Expired, Withdrawn                           string // time
	Skipped                                      string
	NotYours                                     string // name
	Already                                      string // how it ended
	Before, Closed                               string
	Long                                         string // characters
	NoDay                                        string
}

type inquiryButtons struct {
	Done, Skip, Cancel, Today, Tomorrow, Week string
}

// Inquiry is what the foot of a question says.
type Inquiry struct {
	Kind       tools.FormKind
	Several    bool
	Name       string // who alone can answer, if others read it too
	Suspicious string // flagged source in the conversation; "" = none
	Number, Of int
	Expires    time.Time
	Typed      bool // an answer can be sent as a message
}

// InquiryFoot is the text below a question.
func (w Words) InquiryFoot(language string, q Inquiry) string {
	b := w.in(language)
	i := &b.Inquiry
	how := map[tools.FormKind][2]string{
		tools.ChoiceQuestion: {i.Choose, i.ChooseTyped}, tools.TextQuestion: {i.Write, i.Write},
		tools.DateQuestion: {i.Date, i.DateTyped},
	}[q.Kind]
	if q.Several {
		how = [2]string{i.Several, i.SeveralTyped}
	}
	lines := []string{how[0]}
	if q.Typed {
		lines[0] = how[1]
	}
	if name := named(q.Name); name != "" {
		lines = append(lines, fmt.Sprintf(i.Only, name))
	}
	if q.Suspicious != "" {
		lines = append(lines, fmt.Sprintf(b.Card.Suspicious, q.Suspicious))
	}
	last := fmt.Sprintf(i.Open, w.clock(language, q.Expires))
	if q.Of > 1 {
		last = fmt.Sprintf(i.Progress, q.Number, q.Of) + " · " + last
	}
	return strings.Join(append(lines, last), "\n")
}

// InquiryButtons are the labels of a question's buttons besides the choices.
func (w Words) InquiryButtons(language string) struct{ Done, Skip, Cancel, Today, Tomorrow, Week string } {
	return w.in(language).Inquiry.Buttons
}

// InquiryEnded is the last line of the record that the card becomes.
func (w Words) InquiryEnded(language string, a bot.Approval) string {
	b, at := w.in(language).Inquiry, w.clock(language, a.Decided)
	switch {
	case a.State == bot.Approved && w.Owner:
		return fmt.Sprintf(b.AnsweredOwn, at)
	case a.State == bot.Denied && w.Owner:
		return fmt.Sprintf(b.DeclinedOwn, at)
	case a.State == bot.Approved:
		return fmt.Sprintf(b.Answered, named(a.ByName), at)
	case a.State == bot.Denied:
		return fmt.Sprintf(b.Declined, named(a.ByName), at)
	case a.State == bot.Expired:
		return fmt.Sprintf(b.Expired, at)
	default:
		return fmt.Sprintf(b.Withdrawn, at)
	}
}

// InquirySkipped stands for an answer that was not given.
func (w Words) InquirySkipped(language string) string { return w.in(language).Inquiry.Skipped }

// InquiryNotYours answers the press of somebody who is not asked.
func (w Words) InquiryNotYours(language, who string) string {
	b := w.in(language)
	if who = named(who); who == "" {
		who = b.Decisions.Asker
	}
	return fmt.Sprintf(b.Inquiry.NotYours, who)
}

// InquiryOver answers the press of a question that has ended.
func (w Words) InquiryOver(language string, a bot.Approval) string {
	return fmt.Sprintf(w.in(language).Inquiry.Already, w.InquiryEnded(language, a))
}

// InquiryAnswered answers a second answer to the same question.
func (w Words) InquiryAnswered(language string) string { return w.in(language).Inquiry.Before }

// InquiryClosed answers a message that came as an answer when the question was no longer open.
func (w Words) InquiryClosed(language string) string { return w.in(language).Inquiry.Closed }

// InquiryLong answers an answer that is too long.
func (w Words) InquiryLong(language string, most int) string {
	return fmt.Sprintf(w.in(language).Inquiry.Long, most)
}

// InquiryNoDay answers what is no day.
func (w Words) InquiryNoDay(language string) string { return w.in(language).Inquiry.NoDay }
