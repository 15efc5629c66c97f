// Package receipt tells people what an answer took: tools, approvals, tokens, money, time and the lines of the audit
// log. It also lets them put back the files that the answer's calls have changed. All of it is read from the journal
// when somebody asks, so it can be told after a restart and by every process.
package receipt

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/undo"
)

// Prefix begins the data of the buttons: PREFIX:VERB:THREAD:PERSON:TURN, where THREAD and PERSON are those of the
// session's key, "0" = none, and TURN is undo.Key of the turn's id.
const Prefix = "r1"

// Verbs of the buttons.
const (
	pressShow = "s" // below an answer
	pressMore = "d" // below a receipt
	pressAsk  = "u" // below a receipt
	pressOut  = "o" // below its details
	pressDo   = "y" // below the question whether to put files back
	pressBack = "n"
)

// none is a thread or a person that there is not.
const none = "0"

// rooms are how many bytes at the end of a journal are searched for a turn. Most presses are about recent turns.
var rooms = []int{256 << 10, 2 << 20}

// mostApprovals is how many approvals a receipt lists.
const mostApprovals = 5

// Store is what receipts are read from (bot.Store).
type Store interface {
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error)
	OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error)
	FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error)
}

// Deps are what Receipts needs.
type Deps struct {
	Store Store
	// Rights say who may approve in a place: these people may read receipts, besides the person who asked.
	Rights func(ctx context.Context, place bot.Place, tool string) (approval.Rights, error)
	// Called returns what people are called, by caller id; nil = nobody knows.
	Called func() map[string]string
	// Wanted returns which receipts the answers to a person have in a place; nil = a button.
	Wanted func(place bot.Place, caller string) string
	// Redact removes credentials from what a model has written; nil = nothing is removed.
	Redact func(text string) string
	// Plain returns what the model reads of a result as people read it; nil = as it is.
	Plain func(text string) string
	Words texts.Words
	Now   func() time.Time
	Putting
}

// Putting is what putting files back needs.
type Putting struct {
	Files Files // nil = nothing is kept
	// Workspace returns the name under which the changes of a session are kept, from the workspace that its lane names.
	Workspace func(workspace string, session bot.SessionKey) string
	// Line returns the facts that record that files were put back; they are stored with the answer.
	Line func(Event) []bot.Fact
	// Tell returns a fact with which the model of a session is told something at its next turn, and Told follows when
	// that is stored.
	Tell func(session bot.SessionKey, id, text string) bot.Fact
	Told func(ctx context.Context, session bot.SessionKey)
	// Changed says that files of a conversation have changed, which began with an entry of that number.
	Changed func(ctx context.Context, session bot.SessionKey, began int64)
}

// Files is what turns have changed in files (undo.Store).
type Files interface {
	Look(ctx context.Context, workspace, key string) (undo.Report, bool, error)
	Undo(ctx context.Context, workspace, key string, by undo.Undone) (undo.Report, error)
}

// Event is that somebody has put back the files of a turn.
type Event struct {
	ID      string // of the press
	Place   bot.Place
	Session bot.SessionKey // of the turn
	Turn    string         // its key
	By      string         // caller id
	Files   []undo.File
}

// Receipts answers the buttons. Safe for concurrent use.
type Receipts struct{ deps Deps }

// New returns Receipts.
func New(deps Deps) *Receipts { return &Receipts{deps: deps} }

// Feature returns what shows what an answer took, as a button below it or a message after it, and /undo.
func (d *Receipts) Feature() feature.Feature {
	return feature.Feature{
		Name:     "receipt",
		Commands: []feature.Command{{Name: "undo", Unlisted: d.deps.Files == nil, Run: d.offerUndo}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Below:    d.Buttons,
		After:    d.After,
	}
}

// wanted returns which receipt an answer has.
func (d *Receipts) wanted(a *turn.Answer) string {
	switch {
	case a.Stats.Ran == 0:
		return texts.ReceiptsOff
	case d.deps.Wanted == nil:
		return texts.ReceiptsShort
	default:
		return d.deps.Wanted(a.Place, a.Caller)
	}
}

// Buttons are those below the answer of a turn; none if no tool ran in it.
func (d *Receipts) Buttons(a turn.Answer) []bot.Button {
	if d.wanted(&a) != texts.ReceiptsShort {
		return nil
	}
	data := targetOf(&a).buttonData(pressShow)
	if len(data) > mostData {
		return nil
	}
	return []bot.Button{{Label: d.deps.Words.ReceiptButton(a.Language), Data: data}}
}

// After is the receipt that follows an answer, where people want it always.
func (d *Receipts) After(ctx context.Context, a turn.Answer) ([]bot.Content, error) {
	if d.wanted(&a) != texts.ReceiptsAlways {
		return nil, nil
	}
	found, err := d.findTurn(ctx, a.Place, targetOf(&a))
	if err != nil {
		return nil, err
	}
	found.entries = append(found.entries, a.Entries...)
	content, err := d.receiptMessage(ctx, &bot.Message{Place: a.Place, Language: a.Language}, &found, false)
	if err != nil {
		return nil, err
	}
	return []bot.Content{content}, nil
}

func targetOf(a *turn.Answer) target {
	return target{a.Session.Thread(), a.Session.Person(), undo.Key(a.Turn)}
}

// mostData is how many bytes the data of a button can have (Bot API).
const mostData = 64

// target is the turn that a button is about.
type target struct{ thread, person, turn string }

// buttonData returns the data of a button.
func (t target) buttonData(verb string) string {
	part := func(s string) string {
		if s == "" {
			return none
		}
		return s
	}
	return strings.Join([]string{Prefix, verb, part(t.thread), part(t.person), t.turn}, ":")
}

var turnKey = regexp.MustCompile(`^[0-9a-f]{16}$`)

var identifier = regexp.MustCompile(`^-?[A-Za-z0-9_]+$`)

// parseTarget reads the data of a press. It comes from anybody.
func parseTarget(data string) (verb string, t target, ok bool) {
	parts := strings.Split(data, ":")
	if len(parts) != 5 || !identifier.MatchString(parts[2]) || !identifier.MatchString(parts[3]) {
		return "", t, false
	}
	t = target{parts[2], parts[3], parts[4]}
	for _, part := range []*string{&t.thread, &t.person} {
		if *part == none {
			*part = ""
		}
	}
	return parts[1], t, turnKey.MatchString(t.turn)
}

// session returns the session of a turn: one of the chat in which the button was pressed.
func (t target) session(place bot.Place) bot.SessionKey {
	place.Thread = t.thread
	return place.SessionKey(t.person)
}

// Press implements turn.Presser.
func (d *Receipts) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	verb, t, ok := parseTarget(msg.Data)
	if !ok {
		return call.PopUp(w.ReceiptGone(msg.Language)), nil
	}
	trusted, err := d.mayReadAll(ctx, call)
	switch {
	case err != nil:
		return turn.Effect{}, err
	case !trusted && t.person != "" && t.person != msg.Person:
		return call.PopUp(w.ReceiptOther(msg.Language)), nil
	}
	a, err := d.findTurn(ctx, msg.Place, t)
	switch {
	case err != nil:
		return turn.Effect{}, err
	case len(a.entries) == 0 && !a.kept:
		return call.PopUp(w.ReceiptGone(msg.Language)), nil
	case !trusted && a.asker() != msg.Caller:
		return call.PopUp(w.ReceiptOther(msg.Language)), nil
	}
	switch verb {
	case pressShow, pressBack:
		content, err := d.receiptMessage(ctx, msg, &a, false)
		return showMessage(call, content, verb == pressBack), err
	case pressMore:
		content, err := d.receiptMessage(ctx, msg, &a, true)
		return showMessage(call, content, true), err
	case pressOut:
		list := d.outputs(&a)
		if len(list) == 0 {
			return call.PopUp(w.ReceiptGone(msg.Language)), nil
		}
		return showMessage(call, d.outputMessage(msg, list), false), nil
	case pressAsk:
		return d.askToUndo(ctx, call, &a)
	case pressDo:
		return d.undoTurn(ctx, call, &a)
	default:
		return call.PopUp(w.ReceiptGone(msg.Language)), nil
	}
}

// mayReadAll reports whether somebody may read the receipts of everybody in a chat.
func (d *Receipts) mayReadAll(ctx context.Context, call *turn.Call) (bool, error) {
	if call.Admin {
		return true, nil
	}
	rights, err := d.deps.Rights(ctx, call.Message.Place, "")
	return err == nil && slices.Contains(rights.Approvers, call.Message.Caller), err
}

// showMessage answers a press with a message: one of its own, which in a group is for the person who pressed, or in
// place of the message of the button.
func showMessage(call *turn.Call, content bot.Content, replace bool) turn.Effect {
	msg := call.Message
	row := bot.Row{Session: call.Session, Place: msg.Place, Purpose: bot.Reply, Content: content}
	switch {
	case replace && msg.Message != "" && msg.Message != none: // what one person alone sees has no id
		row.Purpose, row.Edit = bot.Record, msg.Message
	case msg.Place.Group:
		row.ReplyTo, row.Content.Only = msg.Message, msg.Person
	}
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{toast, row}}}
}

// about is what is known of a turn.
type about struct {
	target
	session   bot.SessionKey
	entries   []journal.Entry // none if the conversation no longer has it
	began     int64           // number of the entry with which the conversation began
	workspace string          // name under which its changes are kept
	changes   undo.Report
	kept      bool // changes are known
}

// findTurn reads what is known of a turn.
func (d *Receipts) findTurn(ctx context.Context, place bot.Place, t target) (about, error) {
	a := about{target: t, session: t.session(place)}
	for _, room := range rooms {
		tail, err := d.deps.Store.Tail(ctx, a.session, room)
		if err != nil {
			return a, err
		}
		a.began = tail.StateAt(tail.Last()).Began
		for i := range tail.Entries {
			if undo.Key(tail.Entries[i].Turn) == t.turn {
				a.entries = append(a.entries, tail.Entries[i])
			}
		}
		if len(a.entries) > 0 {
			break
		}
	}
	if d.deps.Files == nil {
		return a, nil
	}
	lane, err := d.deps.Store.Lane(ctx, a.session)
	if err != nil {
		return a, err
	}
	a.workspace = d.deps.Workspace(lane.Workspace, a.session)
	a.changes, a.kept, err = d.deps.Files.Look(ctx, a.workspace, t.turn)
	return a, err
}

// asker returns who asked.
func (a *about) asker() string {
	for i := range a.entries {
		if a.entries[i].Kind == journal.UserEntry {
			return a.entries[i].Caller
		}
	}
	return a.changes.Caller
}

// receiptMessage is the message that says what an answer took, with a button if something can be put back, and one for
// the details unless it has them.
func (d *Receipts) receiptMessage(
	ctx context.Context, msg *bot.Message, a *about, details bool,
) (bot.Content, error) {
	w := d.deps.Words.At(msg.Place)
	changes := d.describeChanges(a)
	content := bot.Content{Language: msg.Language}
	if len(a.entries) > 0 {
		r, err := d.sumEntries(ctx, a.session, a.entries)
		if err != nil {
			return content, err
		}
		r.Changes = changes
		content.Text = w.Receipt(msg.Language, &r, details)
	} else {
		content.Text = w.ReceiptGone(msg.Language) + "\n" + w.Undone(msg.Language, &changes)
	}
	content.Text, content.Entities = render.Marked(content.Text)
	var row []bot.Button
	if a.changes.Count(undo.Ready) > 0 {
		row = append(row, bot.Button{Label: w.UndoButton(msg.Language), Data: a.buttonData(pressAsk)})
	}
	if len(a.entries) > 0 && !details {
		row = append(row, bot.Button{Label: w.ReceiptDetails(msg.Language), Data: a.buttonData(pressMore)})
	}
	if details && len(d.outputs(a)) > 0 {
		row = append(row, bot.Button{Label: w.OutputButton(msg.Language), Data: a.buttonData(pressOut)})
	}
	if row != nil {
		content.Buttons = [][]bot.Button{row}
	}
	return content, nil
}

// Text says what the answer of a turn took, to who reads at a place; "" = no tool ran.
func (d *Receipts) Text(
	ctx context.Context, place bot.Place, session bot.SessionKey, language string, entries []journal.Entry,
) (string, error) {
	if !slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Kind == journal.ResultEntry && e.Ran }) {
		return "", nil
	}
	a := about{session: session, entries: entries}
	if d.deps.Files != nil {
		lane, err := d.deps.Store.Lane(ctx, session)
		if err != nil {
			return "", err
		}
		a.workspace = d.deps.Workspace(lane.Workspace, session)
		if a.changes, a.kept, err = d.deps.Files.Look(ctx, a.workspace, undo.Key(entries[0].Turn)); err != nil {
			return "", err
		}
	}
	r, err := d.sumEntries(ctx, session, entries)
	if err != nil {
		return "", err
	}
	r.Changes = d.describeChanges(&a)
	text, _ := render.Marked(d.deps.Words.At(place).Receipt(language, &r, false))
	return text, nil
}

// sumEntries adds up the entries of a turn.
func (d *Receipts) sumEntries(
	ctx context.Context, session bot.SessionKey, entries []journal.Entry,
) (texts.Receipt, error) {
	r := texts.Receipt{Took: entries[len(entries)-1].At.Sub(entries[0].At)}
	var until time.Time
	var asked time.Duration
	var at map[string]int
	r.Agents, at = agentsOf(entries)
	calls := d.callNames(entries)
	for i := range entries {
		e := &entries[i]
		if e.Model != "" || e.Usage.Total() > 0 {
			r.Models++
			if e.Child == "" { // sub-agents work side by side
				asked += time.Duration(e.Millis) * time.Millisecond
			}
		}
		r.Input, r.Output, r.USD = r.Input+e.Usage.Input, r.Output+e.Usage.Output, r.USD+e.USD
		by := agentCosts(&r, at, e)
		if e.Kind != journal.ResultEntry {
			continue
		}
		if e.Audit != "" {
			r.Audit, r.Lines = e.Audit, r.Lines+1
		}
		countCall(&r, by, e, calls)
		if e.By == "" {
			continue
		}
		if err := d.addApproval(ctx, session, e, &r, &until); err != nil {
			return r, err
		}
	}
	spent, err := d.deps.Store.FactsOf(ctx, turn.AsideBucket, entries[0].Turn+"/", d.deps.Now())
	if err != nil {
		return r, err
	}
	aside := turn.SumAside(spent)
	r.Models, r.Input, r.Output = r.Models+aside.Calls, r.Input+aside.Input, r.Output+aside.Output
	r.USD += aside.USD
	r.Took = max(r.Took, asked) // the entries may be of processes whose clocks differ
	return r, nil
}

// callNames returns what people call the calls of a turn, by their ids: a command by its first line, any other call by
// its tool.
func (d *Receipts) callNames(entries []journal.Entry) map[string]string {
	names := map[string]string{}
	for i := range entries {
		for _, u := range entries[i].Uses {
			name, _, _ := strings.Cut(texts.CommandIn(u.Args), "\n")
			if name = cmp.Or(name, u.Name); d.deps.Redact != nil {
				name = d.deps.Redact(name)
			}
			names[u.Call] = name
		}
	}
	return names
}

// countCall adds a call to the receipt, or to what a sub-agent took.
func countCall(r *texts.Receipt, agent *texts.ReceiptAgent, e *journal.Entry, calls map[string]string) {
	if !e.Ran {
		if name := cmp.Or(calls[e.Call], e.Tool); !slices.Contains(r.NotRun, name) {
			r.NotRun = append(r.NotRun, name)
		}
		return
	}
	ran := &r.Tools
	if agent != nil {
		ran = &agent.Tools
	}
	at := slices.IndexFunc(*ran, func(t texts.ReceiptTool) bool { return t.Name == e.Tool })
	if at < 0 {
		at = len(*ran)
		*ran = append(*ran, texts.ReceiptTool{Name: e.Tool})
	}
	(*ran)[at].Calls++
	if e.Failed {
		(*ran)[at].Failed++
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addApproval adds the approval of a call. until is the time up to which waiting was counted.
func (d *Receipts) addApproval(
	ctx context.Context, session bot.SessionKey, e *journal.Entry, r *texts.Receipt, until *time.Time,
) error {
	if len(r.Approvals) == mostApprovals {
		r.MoreApprovals++
		return nil
	}
	given := texts.ReceiptApproval{Tool: e.Tool}
	name := ""
	a, err := d.deps.Store.ApprovalOf(ctx, session, e.Call)
	switch {
	case errors.Is(err, bot.ErrNotFound): // it was given earlier, for more than this call
	case err != nil:
		return err
	case a.State == bot.Approved && a.Turn == e.Turn:
		given.At = a.Decided
		given.Tool = cmp.Or(approval.CommandOf(&a), e.Tool)            // as the card calls it
		if from := laterOf(a.Created, *until); a.Decided.After(from) { // questions can be open at the same time
			r.Waited, *until = r.Waited+a.Decided.Sub(from), a.Decided
		}
		name = a.ByName
	}
	given.By = d.deciders(e.By, a.By, name)
	r.Approvals = append(r.Approvals, given)
	return nil
}

// deciders names who approved a call, one or several, by caller ids; name is what one of them was called then.
func (d *Receipts) deciders(callers, one, name string) string {
	var called map[string]string
	if d.deps.Called != nil {
		called = d.deps.Called()
	}
	list := strings.Split(callers, ", ")
	for i, caller := range list {
		_, id, _ := strings.Cut(caller, ":")
		if list[i] = cmp.Or(called[caller], id); caller == one {
			list[i] = cmp.Or(name, list[i])
		}
	}
	return strings.Join(list, ", ")
}

var _ turn.Presser = (*Receipts)(nil)
