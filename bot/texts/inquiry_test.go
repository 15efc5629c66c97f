package texts_test

import (
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// inquiries says what is said around the questions that a model asks.
func inquiries(l string, m map[string][]string) {
	at := time.Date(2026, 11, 30, 18, 5, 0, 0, time.UTC)
	for _, kind := range []tools.FormKind{tools.ChoiceQuestion, tools.TextQuestion, tools.DateQuestion} {
		for _, typed := range []bool{false, true} {
			m["InquiryFoot"] = append(m["InquiryFoot"], w.InquiryFoot(l, texts.Inquiry{Kind: kind, Number: 1, Of: 1, Expires: at, Typed: typed}), w.InquiryFoot(l, texts.Inquiry{
				Kind: kind, Several: kind == tools.ChoiceQuestion, Name: "Ann", Suspicious: "https://h", Number: 2, Of: 3, Expires: at, Typed: typed,
			}))
		}
	}
	b := w.InquiryButtons(l)
	m["InquiryButtons"] = []string{b.Done, b.Skip, b.Cancel, b.Today, b.Tomorrow, b.Week}
	for _, state := range []bot.ApprovalState{bot.Approved, bot.Denied, bot.Expired, bot.Withdrawn} {
		a := bot.Approval{State: state, ByName: "Ann", Decided: at}
		m["InquiryEnded"], m["InquiryOver"] = append(m["InquiryEnded"], w.InquiryEnded(l, a)), append(m["InquiryOver"], w.InquiryOver(l, a))
	}
	m["InquirySkipped"], m["InquiryAnswered"], m["InquiryClosed"] = []string{w.InquirySkipped(l)}, []string{w.InquiryAnswered(l)}, []string{w.InquiryClosed(l)}
	m["InquiryNotYours"] = []string{w.InquiryNotYours(l, "Ann"), w.InquiryNotYours(l, "")}
	m["InquiryLong"], m["InquiryNoDay"] = []string{w.InquiryLong(l, 2000)}, []string{w.InquiryNoDay(l)}
}
