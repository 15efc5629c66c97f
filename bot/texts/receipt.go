package texts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// Receipt is what an answer took.
type Receipt struct {
	Models        int // calls of the model
	Tools         []ReceiptTool
	NotRun        []string // tools of calls that did not run, each once
	Approvals     []ReceiptApproval
	MoreApprovals int // that are not listed
	Input, Output int // tokens
	USD           float64
	Took          time.Duration // from the message to the answer
	Waited        time.Duration // of it, for decisions
	Lines         int           // in the audit log
	Audit         string        // hash of the last of them
}

// ReceiptTool is a tool that ran.
type ReceiptTool struct {
	Name          string
	Calls, Failed int
}

// ReceiptApproval is an approval of a call.
type ReceiptApproval struct {
	Tool string
	By   string    // name, or id if the name is not known
	At   time.Time // zero = a standing approval, or one for the session
}

// receiptBook is what receipts say in one language.
type receiptBook struct {
	Button, Gone, Other            string
	Models, Lines, MoreApprovals   count
	Tokens, Took, Waited           string
	Tools, Failed, NotRun          string
	Approved, ApprovedAt, Standing string
	Audit                          string // lines, hash
}

// ReceiptButton is the label of the button below an answer for which tools ran.
func (w Words) ReceiptButton(language string) string { return w.in(language).Receipts.Button }

// ReceiptGone says that it is no longer known what an answer took.
func (w Words) ReceiptGone(language string) string { return w.in(language).Receipts.Gone }

// ReceiptOther tells somebody who can read a receipt.
func (w Words) ReceiptOther(language string) string { return w.in(language).Receipts.Other }

// auditLength is how many characters of a hash are shown: enough to find its line.
const auditLength = 16

// Receipt says what an answer took.
func (w Words) Receipt(language string, r *Receipt) string {
	b := &w.in(language).Receipts
	head := []string{b.Models.say(r.Models), fmt.Sprintf(b.Tokens, r.Input, r.Output)}
	if r.USD > 0 {
		head = append(head, Money(r.USD))
	}
	head = append(head, fmt.Sprintf(b.Took, w.Duration(language, r.Took)))
	if r.Waited >= time.Second {
		head = append(head, fmt.Sprintf(b.Waited, w.Duration(language, r.Waited)))
	}
	lines := []string{strings.Join(head, " · ")}
	add := func(pattern string, list []string) {
		if len(list) > 0 {
			lines = append(lines, fmt.Sprintf(pattern, strings.Join(list, ", ")))
		}
	}
	add(b.Tools, b.ran(r.Tools))
	var idle []string
	for _, name := range r.NotRun {
		idle = append(idle, named(name))
	}
	add(b.NotRun, idle)
	add(b.Approved, w.receiptApprovals(b, r))
	if r.Audit != "" {
		hash := r.Audit[:min(len(r.Audit), auditLength)]
		lines = append(lines, fmt.Sprintf(b.Audit, b.Lines.say(r.Lines), hash))
	}
	return strings.Join(lines, "\n")
}

// ran names the tools that ran, and how often.
func (b *receiptBook) ran(tools []ReceiptTool) []string {
	var list []string
	for _, t := range tools {
		text := named(t.Name)
		if t.Calls > 1 {
			text = fmt.Sprintf("%s × %d", text, t.Calls)
		}
		if t.Failed > 0 {
			text += " (" + fmt.Sprintf(b.Failed, t.Failed) + ")"
		}
		list = append(list, text)
	}
	return list
}

func (w Words) receiptApprovals(b *receiptBook, r *Receipt) []string {
	var list []string
	for _, a := range r.Approvals {
		by := render.Cut(named(a.By), nameLength)
		text := fmt.Sprintf(b.Standing, named(a.Tool), by)
		if !a.At.IsZero() {
			text = fmt.Sprintf(b.ApprovedAt, named(a.Tool), by, w.clock(a.At))
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if r.MoreApprovals > 0 {
		list = append(list, b.MoreApprovals.say(r.MoreApprovals))
	}
	return list
}
