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
	Models        int // calls of models, those of sub-agents too, like the tokens and the money
	Tools         []ReceiptTool
	Agents        []ReceiptAgent // its sub-agents, in the order in which they began
	NotRun        []string       // tools of calls that did not run, each once
	Approvals     []ReceiptApproval
	MoreApprovals int // that are not listed
	Input, Output int // tokens
	USD           float64
	Took          time.Duration // from the message to the answer
	Waited        time.Duration // of it, for decisions
	Lines         int           // in the audit log
	Audit         string        // hash of the last of them
	Changes       ReceiptChanges
}

// ReceiptChanges is what the calls of an answer have changed.
type ReceiptChanges struct {
	Made, Edited, Deleted []string       // names of files that are as the answer left them, or that cannot be put back
	Removed, Restored     []string       // names of files that were put back: those it had made, and the others
	Stays                 []ReceiptStays // files that cannot be put back
	Beyond                []ReceiptStays // tools that may have changed more
	UndoneBy              string         // who has put the files back; "" = nobody
	UndoneAt              time.Time
}

// ReceiptStays is something that cannot be undone.
type ReceiptStays struct {
	Name string
	Why  string // as package undo says it, or "server"
}

// ReceiptTool is a tool that ran.
type ReceiptTool struct {
	Name          string
	Calls, Failed int
}

// ReceiptAgent is what a sub-agent took.
type ReceiptAgent struct {
	Name          string
	Models        int // calls of the model
	Tools         []ReceiptTool
	Input, Output int // tokens
	USD           float64
}

// ReceiptApproval is an approval of a call.
type ReceiptApproval struct {
	Tool string    // or the command
	By   string    // name, or id if the name is not known
	At   time.Time // zero = a standing approval, or one for the session
}

// receiptBook is what receipts say in one language.
type receiptBook struct {
	Button, Details, Gone, Other   string
	Models, Lines, MoreApprovals   count
	Tokens, Took, Waited           string
	Instant                        string // it took less than a second
	Tools, Failed, NotRun          string
	Agent                          string // name, what it took
	Approved, ApprovedAt, Standing string
	Audit                          string // lines, hash
	Output, OutputFile             string
	Undo                           undoBook
}

// undoBook is what is said of putting files back.
type undoBook struct {
	Button, Yes, Delete, No string
	Ask, AskMade            count  // about files that existed before, and that did not
	AskBoth                 string // about both
	Made, Edited, Deleted   string // files
	Stays, Beyond           string // files, calls
	Removed, Restored       string // files that were put back
	Done                    string // name, time
	Again                   string // it is done already
	Unkept                  string
	Busy, Nothing, None     string
	Asked, AskedPrivate     string // a question is open, here or in private
	More                    count
	Why                     map[string]string
}

// ReceiptButton is the label of the button below an answer for which tools ran.
func (w Words) ReceiptButton(language string) string { return w.in(language).Receipts.Button }

// ReceiptDetails is the label of the button that shows how an answer came about.
func (w Words) ReceiptDetails(language string) string { return w.in(language).Receipts.Details }

// OutputButton is the label of the button that shows what tools have printed.
func (w Words) OutputButton(language string) string { return w.in(language).Receipts.Output }

// OutputFile is the caption of the file with what tools have printed.
func (w Words) OutputFile(language string) string { return w.in(language).Receipts.OutputFile }

// ReceiptGone says that it is no longer known what an answer took.
func (w Words) ReceiptGone(language string) string { return w.in(language).Receipts.Gone }

// ReceiptOther tells somebody who can read a receipt.
func (w Words) ReceiptOther(language string) string { return w.in(language).Receipts.Other }

// auditLength is how many characters of a hash are shown: enough to find its line.
const auditLength = 16

// Receipt says what an answer took: what it changed, who approved it, and what it took in time and money. details adds
// how that came about. Commands and tools are marked as code (render.Marked).
func (w Words) Receipt(language string, r *Receipt, details bool) string {
	b := &w.in(language).Receipts
	lines := w.changes(language, &r.Changes)
	add := func(pattern string, list []string) {
		if len(list) > 0 {
			lines = append(lines, fmt.Sprintf(pattern, strings.Join(list, ", ")))
		}
	}
	var idle []string
	for _, name := range r.NotRun {
		idle = append(idle, render.Code(named(name)))
	}
	if more := len(idle) - mostNamed; more > 0 {
		idle = append(slices.Clip(idle[:mostNamed]), b.Undo.More.say(more))
	}
	add(b.NotRun, idle)
	add(b.Approved, w.receiptApprovals(language, r))
	took := []string{b.Instant}
	if r.Took >= time.Second {
		took = []string{fmt.Sprintf(b.Took, w.Duration(language, r.Took))}
	}
	if r.Waited >= time.Second {
		took = []string{fmt.Sprintf(b.Waited, w.Duration(language, max(r.Took, r.Waited)), w.Duration(language, r.Waited))}
	}
	if r.USD > 0 {
		took = append(took, w.Money(language, r.USD))
	}
	lines = append(lines, capital(strings.Join(took, " · ")))
	if !details {
		return strings.Join(lines, "\n")
	}
	add(b.Tools, b.ran(r.Tools))
	lines = append(lines, b.Models.say(r.Models)+" · "+w.tokens(language, r.Input, r.Output))
	lines = append(lines, w.agents(language, r.Agents)...)
	if r.Audit != "" {
		hash := r.Audit[:min(len(r.Audit), auditLength)]
		lines = append(lines, fmt.Sprintf(b.Audit, b.Lines.say(r.Lines), hash))
	}
	return strings.Join(lines, "\n")
}

// tokens says how much a model has read and written.
func (w Words) tokens(language string, input, output int) string {
	return fmt.Sprintf(
		w.in(language).Receipts.Tokens, w.number(language, int64(input)), w.number(language, int64(output)),
	)
}

// agents returns a line for each sub-agent.
func (w Words) agents(language string, list []ReceiptAgent) []string {
	b := &w.in(language).Receipts
	var lines []string
	for i := range list {
		a := &list[i]
		parts := []string{b.Models.say(a.Models), w.tokens(language, a.Input, a.Output)}
		if a.USD > 0 {
			parts = append(parts, w.Money(language, a.USD))
		}
		if ran := b.ran(a.Tools); len(ran) > 0 {
			parts = append(parts, strings.Join(ran, ", "))
		}
		lines = append(lines, fmt.Sprintf(b.Agent, named(a.Name), strings.Join(parts, " · ")))
	}
	return lines
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

func (w Words) receiptApprovals(language string, r *Receipt) []string {
	b := &w.in(language).Receipts
	var list []string
	for _, a := range r.Approvals {
		by := render.Cut(named(w.person(language, a.By)), nameLength)
		text := fmt.Sprintf(b.Standing, render.Code(named(a.Tool)), by)
		if !a.At.IsZero() {
			text = fmt.Sprintf(b.ApprovedAt, render.Code(named(a.Tool)), by, w.clock(language, a.At))
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

// mostNamed is how many files or tools one line of a receipt names.
const mostNamed = 10

// changes says what was changed, what of it stays, and who has put it back.
func (w Words) changes(language string, c *ReceiptChanges) []string {
	b := &w.in(language).Receipts.Undo
	var lines []string
	add := func(pattern string, list []string) {
		if more := len(list) - mostNamed; more > 0 {
			list = append(slices.Clip(list[:mostNamed]), b.More.say(more))
		}
		if len(list) > 0 {
			lines = append(lines, fmt.Sprintf(pattern, strings.Join(list, ", ")))
		}
	}
	files := func(list []string) []string {
		shown := make([]string, len(list))
		for i, name := range list {
			shown[i] = w.fileName(language, name)
		}
		return shown
	}
	reasons := func(list []ReceiptStays) []string {
		var names []string
		whys := map[string][]string{}
		for _, s := range list {
			if whys[s.Name] == nil {
				names = append(names, s.Name)
			}
			if why := b.Why[s.Why]; !slices.Contains(whys[s.Name], why) {
				whys[s.Name] = append(whys[s.Name], why)
			}
		}
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%s)", render.Code(w.fileName(language, name)), strings.Join(whys[name], ", "))
		}
		return names
	}
	add(b.Made, files(c.Made))
	add(b.Edited, files(c.Edited))
	add(b.Deleted, files(c.Deleted))
	add(b.Removed, files(c.Removed))
	add(b.Restored, files(c.Restored))
	if c.UndoneBy != "" {
		lines = append(lines, fmt.Sprintf(b.Done, render.Cut(named(c.UndoneBy), nameLength), w.clock(language, c.UndoneAt)))
	}
	add(b.Stays, reasons(c.Stays))
	add(b.Beyond, reasons(c.Beyond))
	return lines
}

// UndoButton is the label of the button that begins to put files back.
func (w Words) UndoButton(language string) string { return w.in(language).Receipts.Undo.Button }

// UndoButtons are the labels of the buttons below UndoAsk.
func (w Words) UndoButtons(language string, c *ReceiptChanges) (yes, no string) {
	b := &w.in(language).Receipts.Undo
	if len(c.Edited)+len(c.Deleted) == 0 {
		return b.Delete, b.No
	}
	return b.Yes, b.No
}

// UndoAsk asks once more before files are put back. What stays is listed apart, marked as in a receipt.
func (w Words) UndoAsk(language string, c *ReceiptChanges) string {
	b := &w.in(language).Receipts.Undo
	ask, before := b.AskBoth, len(c.Edited)+len(c.Deleted) // one file or several: the numbers are not said
	switch {
	case before == 0:
		ask = b.AskMade.with(min(len(c.Made), 2))
	case len(c.Made) == 0:
		ask = b.Ask.with(min(before, 2))
	}
	return strings.Join(append([]string{ask}, w.changes(language, c)...), "\n")
}

// UndoBusy says that files cannot be put back while something runs.
func (w Words) UndoBusy(language string) string { return w.in(language).Receipts.Undo.Busy }

// UndoAsked says that files cannot be put back while a question is open, here or in private.
func (w Words) UndoAsked(language string, private bool) string {
	b := &w.in(language).Receipts.Undo
	if private {
		return b.AskedPrivate
	}
	return b.Asked
}

// UndoNothing says that no file could be put back.
func (w Words) UndoNothing(language string) string { return w.in(language).Receipts.Undo.Nothing }

// UndoAgain says that files were put back before.
func (w Words) UndoAgain(language string) string { return w.in(language).Receipts.Undo.Again }

// UndoNone says that no answer can be undone.
func (w Words) UndoNone(language string) string { return w.in(language).Receipts.Undo.None }

// UndoUnkept says that nothing can be put back where people are, because no copies are kept there.
func (w Words) UndoUnkept(language string) string { return w.in(language).Receipts.Undo.Unkept }

// Undone says who has put files back, and what has become of them, marked as in a receipt.
func (w Words) Undone(language string, c *ReceiptChanges) string {
	return strings.Join(w.changes(language, c), "\n")
}
