package dispatch

// The journal of a session as the holder of its lane reads and writes it.

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// laneJournal is the journal of a session, written by the holder of its lane.
type laneJournal struct {
	store bot.Store
	lease bot.Lease
	last  int64
	tail  journal.Tail // the known end of the conversation, up to last, as it is stored
	known bool         // tail is filled
	// Nobody else appends to the array behind tail.Entries; slices that were handed out are clipped.
	own     bool
	odd     bool                            // tail differs from what is stored
	notices func([]journal.Entry) []bot.Row // returns the rows that are sent in the commit of some entries
	wake    func()
	weigh   func(history int64)          // receives how many bytes of history were read
	purse   turn.Budget                  // what was spent is stored with the entries for which it was spent
	resumed func(before []journal.Entry) // is told what was said before a turn that begins; may be nil
	inbox   *turnInbox                   // what the person says while the turn runs
	waits   map[string]bool              // calls of tools without a result; nil = nobody knows
	grown   int                          // tokens of what the model has not read
}

// Load implements agent.Journal.
func (j *laneJournal) Load(ctx context.Context, room int) (journal.Tail, error) {
	if !j.known {
		tail, err := j.store.Tail(ctx, j.lease.Session, room)
		if err != nil {
			return journal.Tail{}, err
		}
		j.tail, j.known = tail, true
	}
	j.tail = j.tail.Cut(room) // the remembered tail may have grown beyond room
	if len(j.tail.Entries) > 0 {
		j.last = j.tail.Last()
	}
	if j.resumed != nil {
		j.resumed(j.tail.Entries[:max(0, len(j.tail.Entries)-1)])
	}
	if j.weigh != nil {
		j.weigh(historyBytes(j.tail.Entries))
	}
	return journal.Tail{Before: j.tail.Before, Entries: slices.Clip(j.tail.Entries)}, nil
}

// Append implements agent.Journal. Once a Change was submitted, its commit decides: the caller gets the outcome even if
// its context ends.
func (j *laneJournal) Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error) {
	change := &bot.Change{
		Lease:  &j.lease,
		Append: &bot.Append{Session: j.lease.Session, After: j.last, Entries: entries},
		Send:   j.notices(entries),
	}
	if err := j.inbox.addJoining(ctx, change); err != nil {
		return nil, err
	}
	spent := j.purse.Spend(j.next(entries))
	spent.In(change)
	applied, err := j.store.Apply(ctx, change)
	j.purse.Stored(&spent, applied)
	if err != nil {
		return nil, j.inbox.explainRefusal(change, err)
	}
	j.inbox.reportJoined(change)
	if len(change.Send) > 0 {
		j.wake()
	}
	for i := range entries {
		j.last++
		entries[i].N = j.last
	}
	if j.known {
		j.learn(entries...)
		if j.weigh != nil && slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Child != "" }) {
			j.weigh(historyBytes(j.tail.Entries)) // a sub-agent has a window of its own
		}
	}
	return entries, nil
}

// next says what follows some entries that are stored: a call of the model, once all calls of tools have results.
func (j *laneJournal) next(entries []journal.Entry) turn.Next {
	for i := range entries {
		switch e := &entries[i]; {
		case e.Child != "":
		case e.Kind == journal.AssistantEntry:
			j.waits, j.grown = map[string]bool{}, 0
			for _, u := range e.Uses {
				j.waits[u.Call] = true
			}
		default:
			delete(j.waits, e.Call)
			j.grown += tokensOf(e)
		}
	}
	follows := j.waits != nil && len(j.waits) == 0 && entries[len(entries)-1].Child == ""
	return turn.Next{Call: follows, Tools: !follows, Tokens: j.grown}
}

// tokensOf estimates how much a request grows by an entry.
func tokensOf(e *journal.Entry) int { return int(historyBytes([]journal.Entry{*e})) / bytesPerToken }

// bytesPerToken are few, so that the estimate is rather too high.
const bytesPerToken = 3

// learn adds numbered entries to the known tail.
func (j *laneJournal) learn(list ...journal.Entry) {
	// The list is shared and must not be changed. A turn copies it once, with room for its question and its answer.
	if !j.own {
		entries := j.tail.Entries
		j.tail.Entries, j.own = append(make([]journal.Entry, 0, len(entries)+max(2, len(list))), entries...), true
	}
	for _, e := range list {
		stored, ok := asStored(e)
		j.odd = j.odd || !ok
		j.tail.Entries = append(j.tail.Entries, stored)
	}
}

// Ask implements agent.Asker. A decision about these questions is acted on when the turn has parked.
func (j *laneJournal) Ask(ctx context.Context, questions []tools.Question, stats journal.Stats) (err error) {
	w := j.inbox.work
	w.fresh = false // the end of the turn withdraws what is open
	for try := range commitTries {
		if try > 0 && !pause(ctx, time.Duration(try)*commitPause) {
			return err
		}
		change := &bot.Change{Lease: &j.lease}
		if err = w.d.parts.Approvals.Ask(ctx, w.asked(questions, stats), change); err == nil && len(change.Ask) > 0 {
			_, err = j.store.Apply(ctx, change)
		}
		switch {
		case err == nil:
			j.wake()
			return nil
		case isTaken(err), hopeless(err):
			return err
		}
	}
	return err
}

var _ agent.Asker = (*laneJournal)(nil)

// asStored returns an entry as the journal will return it. It returns false if that is not certain, since JSON replaces
// what is not UTF-8.
func asStored(e journal.Entry) (journal.Entry, bool) {
	e.At = e.At.Round(0).UTC()
	if e.At.IsZero() {
		e.At = time.Time{}
	}
	texts := []string{
		e.Turn,
		e.Text,
		e.Speaker,
		e.Caller,
		e.News,
		string(e.Foreign),
		e.Tool,
		e.Rule,
		e.By,
		e.Cleared,
		string(e.Source),
		e.Reason,
		e.Model,
	}
	if e.Quote != nil {
		texts = append(texts, e.Quote.Author, e.Quote.Text, e.Quote.Chat)
	}
	if e.Recalled != nil {
		texts = append(append(texts, e.Recalled.Text), e.Recalled.IDs...)
	}
	for _, r := range e.Talk {
		texts = append(texts, r.At, r.Caller, r.Name, r.Text)
	}
	for _, u := range e.Uses {
		texts = append(texts, u.Call, u.Model, u.Name, u.Definition)
	}
	for _, h := range e.Heard {
		texts = append(texts, h.Message, h.Arrival)
	}
	for _, p := range e.Parts {
		texts = append(texts, p.Hash, p.Type, p.Name, p.Label, p.Text)
	}
	lists := [][]string{texts, e.Notices, e.Touched, e.Found, e.Opened}
	if e.State != nil {
		lists = append(lists, e.State.Succeeded, e.State.Touched, e.State.Made, e.State.Marked, []string{
			e.State.Suspicious,
			e.State.Foreign,
			e.State.Turn,
			e.State.Caller,
		})
		for _, c := range e.State.By {
			lists[0] = append(lists[0], c.Caller)
		}
	}
	for _, list := range lists {
		for _, text := range list {
			if !utf8.ValidString(text) {
				return e, false
			}
		}
	}
	return e, true
}
