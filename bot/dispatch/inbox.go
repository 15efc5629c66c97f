package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Busy says what becomes of a text that arrives while a turn of the same person runs. Commands act as always, and while
// a turn waits for a decision, texts wait too: nobody gets round a question.
type Busy string

// The answers to a text that arrives during a turn.
const (
	Queue     Busy = "queue"     // it waits its turn
	Steer     Busy = "steer"     // the turn reads it before its next call of the model
	Interrupt Busy = "interrupt" // it ends the turn, and is answered next
)

// busy returns what becomes of a text of a person that arrives during their turn.
func (d *Dispatcher) busy(caller string) Busy {
	if d.parts.Personal != nil {
		if chosen := Busy(d.parts.Personal.Busy(caller)); chosen != "" {
			return chosen
		}
	}
	return d.opts.Busy
}

// turnInbox reads what the person of a turn says while the turn runs.
type turnInbox struct {
	*work
	look     bool // look at the inbox although nobody has announced anything
	began    bool // a step was begun: since then, other processes may have accepted something
	unstored *joining
}

// joining is what was told to the Runner and is not stored yet.
type joining struct {
	edits []int64    // the arrivals, if the message of the turn was changed
	texts []int64    // those of other messages
	facts []bot.Fact // that hold reasons for denials, deleted
	said  []bot.Message
}

// ReadInbox implements agent.TurnInbox.
func (j *laneJournal) ReadInbox(ctx context.Context) ([]journal.Entry, bool, error) {
	reasons, told, err := j.inbox.d.parts.Explanations.Reasons(ctx, j.lease.Session, j.inbox.d.opts.Shared)
	if err != nil {
		return nil, false, err
	}
	said, revised, err := j.inbox.readAll(ctx)
	if err != nil || revised || len(told) == 0 {
		return said, revised, err
	}
	if j.inbox.unstored == nil {
		j.inbox.unstored = &joining{}
	}
	j.inbox.unstored.facts = told
	for i := range reasons {
		reasons[i].Turn = j.inbox.turn.ID
	}
	return append(reasons, said...), false, nil
}

// announced reports whether something may have arrived in the session since the turn began. Of what other processes
// accept nobody tells.
func (e *turnInbox) announced() bool {
	d := e.d
	if d.busy(e.msg.Caller) != Steer {
		return false // what changes the message of the turn cancels its run
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[e.lane.Session]
	return d.opts.Shared && e.began || j != nil && j.again
}

func (e *turnInbox) readAll(ctx context.Context) (said []journal.Entry, revised bool, err error) {
	defer func() { e.began = true }()
	e.unstored = nil
	if !e.look && !e.announced() {
		return nil, false, nil
	}
	waiting, err := e.d.parts.Store.Next(ctx, e.lane.Session, lookAhead)
	if err != nil {
		return nil, false, err
	}
	e.look = false
	if edits := editsOf(waiting, e.turn.ID); len(edits) > 0 {
		entry, err := e.changedMessage(ctx, waiting, edits)
		if err != nil || entry == nil {
			return nil, false, errors.Join(err, e.dropEdits(ctx, edits, err))
		}
		e.unstored, e.look = &joining{edits: edits}, true
		return []journal.Entry{*entry}, true, nil
	}
	if e.d.busy(e.msg.Caller) == Steer {
		said, err = e.steeringTexts(ctx, waiting)
		e.look = len(said) > 0 // they may have to wait for an open call
	}
	return said, false, err
}

// changedMessage returns the message of the turn as it reads now; nil = it is no longer known.
func (e *turnInbox) changedMessage(ctx context.Context, waiting []bot.Arrival, edits []int64) (*journal.Entry, error) {
	last := slices.IndexFunc(waiting, func(a bot.Arrival) bool { return a.Seq == edits[len(edits)-1] })
	msg, err := e.d.decodeArrival(&waiting[last])
	if err != nil {
		return nil, nil //nolint:nilerr // it is dropped
	}
	said := lastSaid(e.journal.tail.Entries, func(s *journal.Entry) bool {
		return s.Turn == e.turn.ID && includesMessage(s.Heard, msg.Message)
	})
	if said == nil {
		return nil, nil
	}
	whole, err := e.d.composeVersions(ctx, msg.Place, said.Heard, nil)
	if err != nil || whole == nil {
		return nil, err
	}
	joins := journal.Edited
	if said.Joins == journal.Meanwhile {
		joins = journal.Meanwhile
	}
	return &journal.Entry{
		Turn: e.turn.ID, Kind: journal.UserEntry, At: e.d.parts.Now(), Text: strings.TrimSpace(whole.Text),
		Speaker: msg.Name, Caller: said.Caller, Joins: joins, Heard: said.Heard,
	}, nil
}

// dropEdits finishes edits that cannot be read, so that the turn goes on as it was.
func (e *turnInbox) dropEdits(ctx context.Context, edits []int64, failed error) error {
	if failed != nil {
		return nil
	}
	_, err := e.d.parts.Store.Apply(ctx, &bot.Change{
		Lease: &e.lease, Done: edits, Lanes: []bot.LaneUpdate{{Session: e.lane.Session, Stop: new("")}},
	})
	return err
}

// steeringTexts returns the texts of the turn's person that have arrived since it began, in order, up to the first that
// can only be a turn of its own.
func (e *turnInbox) steeringTexts(ctx context.Context, waiting []bot.Arrival) (said []journal.Entry, err error) {
	heard := &joining{}
	for i := range waiting {
		a := &waiting[i]
		msg, err := e.d.decodeArrival(a)
		if a.Seq == e.lane.Arrival || err != nil || msg.Caller != e.msg.Caller {
			continue
		}
		if relocateMessage(&msg, a.Session); !isSteering(&msg) || a.Source.Unsent() {
			break
		}
		verdict, err := e.d.parts.Guard.Admit(ctx, &msg)
		if err != nil {
			return nil, err
		}
		if !verdict.OK {
			break
		}
		entry := e.d.firstEntry(&task{arrival: a, msg: &msg}, e.turn.ID, turn.News{}, e.d.parts.Now())
		entry.Joins = journal.Meanwhile
		said, heard.texts = append(said, entry), append(heard.texts, a.Seq)
		heard.said = append(heard.said, msg)
	}
	if len(said) > 0 {
		e.unstored = heard
	}
	return said, nil
}

// isSteering reports whether a message can join a turn. Files have to be read before a turn, and a command is no text.
func isSteering(msg *bot.Message) bool {
	return msg.Kind == bot.Text && msg.Command == "" && !msg.FromBot &&
		msg.Place.Ordinary() && !msg.HasFiles() && !empty(msg)
}

// addJoining adds to a Change that appends what was heard that its arrivals are finished. The questions of a turn whose
// message was changed are withdrawn.
func (e *turnInbox) addJoining(ctx context.Context, change *bot.Change) error {
	if e.unstored == nil || !slices.ContainsFunc(change.Append.Entries, func(s journal.Entry) bool {
		return s.Joins != ""
	}) {
		return nil
	}
	change.Done, change.Facts = e.unstored.texts, append(change.Facts, e.unstored.facts...)
	if len(e.unstored.edits) == 0 {
		return nil
	}
	change.Handles, change.Done = e.unstored.edits[0], e.unstored.edits[1:]
	change.Lanes = []bot.LaneUpdate{{Session: e.lane.Session, Stop: new("")}}
	e.fresh = false // an earlier run may have asked
	return e.withdrawQuestions(ctx, change)
}

// reportJoined follows a Change that was stored: what joined the turn gets the sign of it.
func (e *turnInbox) reportJoined(change *bot.Change) {
	if e.unstored == nil || len(e.unstored.said) == 0 || len(change.Done) == 0 {
		return
	}
	if signs := e.d.parts.Signs; signs != nil {
		signs.Merged(e.lane.Session, e.unstored.said)
	}
	e.unstored = nil
}

// explainRefusal translates the error of a Change that appends what was heard: /stop drops it.
func (e *turnInbox) explainRefusal(change *bot.Change, err error) error {
	if change.Handles != 0 && errors.Is(err, bot.ErrHandled) {
		return agent.ErrWithdrawn
	}
	return err
}
