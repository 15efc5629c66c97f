package dispatch

// Messages that their writers change: before, during and after their turns.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/turn"
)

// editedBucket holds, by chat and message, the id of the arrival with the newest version of a message that was edited,
// for as long as stores keep the content of arrivals. People can edit a message for 48 hours (Bot API).
const (
	editedBucket = "edited"
	editedFor    = 8 * 24 * time.Hour
)

// editRoom is how many bytes of a conversation are searched for the turn of an edited message.
const editRoom = 256 << 10

// mostRevisions is how often the message of a turn can be changed while it runs: each time the model is called once
// more, within one turn of the quota. After that there is the button.
const mostRevisions = 5

// withOwn adds the sources of messages that the service writes itself.
func withOwn(decoders map[bot.Source]bot.Decoder) map[bot.Source]bot.Decoder {
	all := maps.Clone(decoders)
	if all == nil {
		all = map[bot.Source]bot.Decoder{}
	}
	for _, own := range []bot.Source{bot.FromEdit, bot.FromAgain, bot.FromStranger, bot.FromUnheard, bot.FromSchedule, bot.FromHook} {
		all[own] = bot.MessageDecoder{}
	}
	return all
}

// heardOf returns the messages that a message was put together from; by itself it is one of an arrival.
func heardOf(msg *bot.Message, arrival string) []journal.Heard {
	if len(msg.Heard) > 0 || msg.Message == "" {
		return msg.Heard
	}
	return []journal.Heard{{Message: msg.Message, Arrival: arrival}}
}

func includesMessage(list []journal.Heard, message string) bool {
	return slices.ContainsFunc(list, func(h journal.Heard) bool { return h.Message == message })
}

// expressEdited handles a message that its writer has changed. What waits is replaced. The turn in progress is
// cancelled and goes on with the new text. Below what was answered there is a button. Anything else is not a question
// of that person, and an edit makes none of it: bots are addressed by new messages only. The same holds for commands.
func (d *Dispatcher) expressEdited(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	if msg.Caller == "" || msg.FromBot || msg.Command != "" || msg.Message == "" || empty(msg) {
		return d.finishArrival(ctx, a) // other bots let their messages grow by edits
	}
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	if !verdict.OK {
		return d.finishArrival(ctx, a)
	}
	session, revised := d.session(msg), ""
	var replaced []bot.Replacement
	err = d.storeEffect(ctx, a, func() (e turn.Effect, err error) {
		e, revised, err = d.editEffect(ctx, a, msg, session)
		replaced = e.Change.Replace
		return e, err
	})
	if err != nil {
		return err
	}
	for i := range replaced {
		d.endReading(session, []int64{replaced[i].Seq}, errReplaced)
	}
	if revised != "" {
		d.stop(session, revised, agent.ErrRevised)
	}
	return nil
}

// editEffect returns what an edit does, and the turn in progress that it revises.
func (d *Dispatcher) editEffect(
	ctx context.Context, a *bot.Arrival, msg *bot.Message, session bot.SessionKey,
) (e turn.Effect, revised string, err error) {
	lane, err := d.parts.Store.Lane(ctx, session)
	if err != nil {
		return e, "", err
	}
	waiting, err := d.parts.Store.Next(ctx, session, 0)
	if err != nil {
		return e, "", err
	}
	for i := range waiting {
		if old := d.waitingMessage(&lane, &waiting[i], msg); old != nil {
			e, err = d.replaceWaiting(ctx, a, &waiting[i], old, msg)
			return e, "", err
		}
	}
	said, revisions, err := d.saidIn(ctx, session, msg)
	if err != nil || said == nil {
		return e, "", err
	}
	before, err := d.messageVersion(ctx, msg.Place, said.Heard, msg.Message)
	if err != nil || before == nil || looksAlike(before, msg) {
		return e, "", err
	}
	ends := isStopRequested(&lane) && len(editsOf(waiting, lane.Turn)) == 0
	ends = ends || said.Turn != lane.Turn || revisions >= mostRevisions
	if ends || !slices.Equal(fileContents(before), fileContents(msg)) {
		return d.offerAgain(session, said, a, msg), "", nil
	}
	e, err = d.reviseTurn(a, msg, &lane)
	return e, lane.Turn, err
}

// waitingMessage returns the message of an arrival if it is the edited one and no turn has begun with it.
func (d *Dispatcher) waitingMessage(lane *bot.Lane, a *bot.Arrival, edited *bot.Message) *bot.Message {
	if lane.Turn != "" && lane.Arrival == a.Seq {
		return nil
	}
	m, err := d.decodeArrival(a)
	if err != nil || m.Kind != bot.Text || m.Command != "" || m.Caller != edited.Caller {
		return nil
	}
	if relocateMessage(&m, a.Session); !includesMessage(heardOf(&m, a.ID), edited.Message) {
		return nil
	}
	return &m
}

// replaceWaiting gives a message that waits its new content.
func (d *Dispatcher) replaceWaiting(
	ctx context.Context, edit, a *bot.Arrival, old, edited *bot.Message,
) (e turn.Effect, err error) {
	next := *edited
	if len(old.Heard) > 0 {
		whole, err := d.composeVersions(ctx, edited.Place, old.Heard, edited)
		if err != nil || whole == nil {
			return e, err
		}
		next = *whole
	}
	if looksAlike(old, &next) {
		return e, nil
	}
	next.ID, next.Kind, next.Addressed = old.ID, bot.Text, old.Addressed
	raw, err := bot.EncodeMessage(&next)
	if err != nil {
		return e, poison{err}
	}
	e.Change.Replace = []bot.Replacement{{Seq: a.Seq, Session: a.Session, Source: bot.FromEdit, Raw: raw}}
	e.Change.Facts = []bot.Fact{d.recordNewest(edited, edit)}
	e.Wake = []bot.SessionKey{a.Session}
	return e, nil
}

// reviseTurn puts an edit into the inbox of the turn in progress, and asks the turn to stop, so that it is continued
// with the edit (turnInbox). /stop drops what waits, and this with it.
func (d *Dispatcher) reviseTurn(a *bot.Arrival, msg *bot.Message, lane *bot.Lane) (e turn.Effect, err error) {
	next := *msg
	next.ID = editID(lane.Turn) + a.ID
	raw, err := bot.EncodeMessage(&next)
	if err != nil {
		return e, poison{err}
	}
	e.Change.Arrive = []bot.Arrival{{
		Channel: d.opts.Channel,
		Bot:     d.opts.Bot,
		ID:      next.ID,
		Source:  bot.FromEdit,
		Session: lane.Session,
		Raw:     raw,
		At:      d.parts.Now(),
	}}
	e.Change.Lanes = []bot.LaneUpdate{{Session: lane.Session, Stop: new(lane.Turn)}}
	e.Change.Facts = []bot.Fact{d.recordNewest(msg, a)}
	e.Wake = []bot.SessionKey{lane.Session}
	return e, nil
}

// editID begins the ids of edits that are for a turn.
func editID(turn string) string { return "edit-" + againHash(turn) + "-" }

// editsOf lists the waiting edits that are for a turn.
func editsOf(waiting []bot.Arrival, turn string) (seqs []int64) {
	for i := range waiting {
		if turn != "" && waiting[i].Source == bot.FromEdit && strings.HasPrefix(waiting[i].ID, editID(turn)) {
			seqs = append(seqs, waiting[i].Seq)
		}
	}
	return seqs
}

// recordNewest records the arrival with the newest version of a message.
func (d *Dispatcher) recordNewest(msg *bot.Message, a *bot.Arrival) bot.Fact {
	return bot.Fact{
		Bucket:  editedBucket,
		Key:     editedKey(msg.Place, msg.Message),
		Value:   a.ID,
		Expires: d.parts.Now().Add(editedFor),
	}
}

func editedKey(place bot.Place, message string) string { return place.ChatKey() + "/" + message }

// saidIn returns the newest entry of a conversation that a message of the edit's writer is in, nil = none, and how
// often the message of its turn was changed while it ran.
func (d *Dispatcher) saidIn(
	ctx context.Context, session bot.SessionKey, msg *bot.Message,
) (said *journal.Entry, revisions int, err error) {
	tail, err := d.parts.Store.Tail(ctx, session, editRoom)
	if err != nil {
		return nil, 0, err
	}
	said = lastSaid(tail.Entries, func(e *journal.Entry) bool {
		return e.Caller == msg.Caller && includesMessage(e.Heard, msg.Message)
	})
	for i := range tail.Entries {
		if e := &tail.Entries[i]; said != nil && e.Turn == said.Turn && e.Joins == journal.Edited {
			revisions++
		}
	}
	return said, revisions, nil
}

// lastSaid returns the last user entry that is wanted; nil = none.
func lastSaid(entries []journal.Entry, wanted func(*journal.Entry) bool) *journal.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Kind == journal.UserEntry && wanted(e) {
			return e
		}
	}
	return nil
}

// messageVersion returns a message as it reads now, as far as is known; nil = its content is no longer kept.
func (d *Dispatcher) messageVersion(
	ctx context.Context, place bot.Place, heard []journal.Heard, message string,
) (*bot.Message, error) {
	i := slices.IndexFunc(heard, func(h journal.Heard) bool { return h.Message == message })
	if i < 0 {
		return nil, nil
	}
	edit, err := d.parts.Store.Fact(ctx, editedBucket, editedKey(place, message), d.parts.Now())
	if err != nil {
		return nil, err
	}
	a, err := d.parts.Store.ArrivalOf(ctx, d.opts.Channel, d.opts.Bot, cmp.Or(edit, heard[i].Arrival))
	if errors.Is(err, bot.ErrNotFound) || err == nil && len(a.Raw) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := d.decodeArrival(&a)
	if err != nil {
		return nil, nil //nolint:nilerr // it cannot be read any more, like one that is not kept
	}
	m.Kind = bot.Text
	return &m, nil
}

// composeVersions puts messages together as they read now; edited is the newest version of one of them, nil = the
// stored ones are. It returns nil if the content of one is no longer kept.
func (d *Dispatcher) composeVersions(
	ctx context.Context, place bot.Place, heard []journal.Heard, edited *bot.Message,
) (*bot.Message, error) {
	var g gathered
	for i, h := range heard {
		m := edited
		if edited == nil || h.Message != edited.Message {
			var err error
			if m, err = d.messageVersion(ctx, place, heard, h.Message); err != nil || m == nil {
				return nil, err
			}
		}
		if one := *m; i == 0 {
			one.Files = slices.Clone(m.Files)
			g.msg = one
		} else {
			g.add(&one, 0)
		}
	}
	for i := range g.msg.Files {
		g.msg.Files[i].Album = "" // it is complete: nobody waits for more
	}
	g.msg.Kind, g.msg.Heard = bot.Text, heard
	return &g.msg, nil
}

// looksAlike reports whether two versions of a message look the same: clients send edits for the preview of a link, a
// reaction, or a moving position, too.
func looksAlike(a, b *bot.Message) bool {
	return strings.TrimSpace(a.Text) == strings.TrimSpace(b.Text) && slices.Equal(fileContents(a), fileContents(b))
}

// fileContents are the files of a message that have a content, without the ids by which they are fetched: those
// can differ from update to update.
func fileContents(m *bot.Message) []bot.Attachment {
	var list []bot.Attachment
	for _, f := range m.Files {
		if f.ID != "" {
			f.ID, f.Still, f.Album = "", "", ""
			list = append(list, f)
		}
	}
	return list
}

// againPrefix begins the data of the button that runs a changed message again: PREFIX:TURN:PERSON, where TURN is a hash
// of the turn's id. Nothing in it is trusted: it only names what the person who presses it may do anyway.
const againPrefix = "e1"

func againHash(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:8])
}

// againID is the id of the arrival that runs the message of a turn again: there is one, however often somebody presses.
func againID(hash string) string { return "again-" + hash }

// offerAgain sends the button for a message that was changed after its turn, once for each turn.
func (d *Dispatcher) offerAgain(
	session bot.SessionKey, said *journal.Entry, a *bot.Arrival, msg *bot.Message,
) turn.Effect {
	hash := againHash(said.Turn)
	row := d.reply(msg, bot.Notice, d.parts.Words.EditedLate(msg.Language), againID(hash))
	row.Session, row.Turn, row.ReplyTo = session, said.Turn, msg.Message
	row.Content.Buttons = [][]bot.Button{{{
		Label: d.parts.Words.AgainButton(msg.Language),
		Data:  strings.Join([]string{againPrefix, hash, msg.Person}, ":"),
	}}}
	e := turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}
	if a != nil {
		e.Change.Facts = []bot.Fact{d.recordNewest(msg, a)}
	}
	return e
}

// editedLate handles an edit for a turn that ended before it could read it.
func (d *Dispatcher) editedLate(ctx context.Context, t *task) bool {
	return d.mayLookAgain(ctx, t.arrival, d.storeEffectInLane(ctx, t.arrival, func() (e turn.Effect, err error) {
		if !t.verdict.OK {
			return e, nil
		}
		said, _, err := d.saidIn(ctx, t.arrival.Session, t.msg)
		if err != nil || said == nil {
			return e, err
		}
		return d.offerAgain(t.arrival.Session, said, nil, t.msg), nil
	}))
}

// Feature returns /retry. The functions of it may be called once the dispatcher that of returns exists.
func Feature(of func() *Dispatcher) feature.Feature {
	return feature.Feature{Name: "retry", Commands: []feature.Command{{
		Name: "retry", Run: func(ctx context.Context, call *turn.Call) (turn.Effect, error) { return of().answerAgain(ctx, call) },
	}}}
}

// answerAgain has the newest message of whoever asks for it answered once more, as it reads now, by a turn of its own.
func (d *Dispatcher) answerAgain(ctx context.Context, call *turn.Call) (e turn.Effect, err error) {
	msg, w := call.Message, d.parts.Words
	lane, err := d.parts.Store.Lane(ctx, call.Session)
	if err != nil {
		return e, err
	}
	tail, err := d.parts.Store.Tail(ctx, call.Session, editRoom)
	if err != nil {
		return e, err
	}
	said := lastSaid(tail.Entries, func(e *journal.Entry) bool {
		return e.Caller == msg.Caller && e.Child == "" && e.Joins == "" && !e.Scheduled && len(e.Heard) > 0
	})
	if said == nil {
		return call.ReplyText(w.AgainNone(msg.Language)), nil
	}
	if lane.Turn == said.Turn {
		return call.ReplyText(w.AgainAlready(msg.Language)), nil
	}
	next, err := d.composeVersions(ctx, msg.Place, said.Heard, nil)
	if err != nil {
		return e, err
	}
	if next == nil {
		return call.ReplyText(w.AgainLost(msg.Language)), nil
	}
	arrival, err := d.arriveAgain(next, msg, call.Session, againID(againHash(said.Turn)+"-"+msg.ID))
	if err != nil {
		return e, err
	}
	e.Change.Arrive = []bot.Arrival{arrival}
	e.Wake = []bot.SessionKey{call.Session}
	return e, nil
}

// arriveAgain is the arrival that has a message answered once more, because of another one of the same person.
func (d *Dispatcher) arriveAgain(next, because *bot.Message, session bot.SessionKey, id string) (bot.Arrival, error) {
	next.ID, next.Addressed, next.At, next.Language = id, true, d.parts.Now(), because.Language
	raw, err := bot.EncodeMessage(next)
	if err != nil {
		return bot.Arrival{}, poison{err}
	}
	return bot.Arrival{
		Channel: d.opts.Channel, Bot: d.opts.Bot, ID: id, Source: bot.FromAgain, Session: session, Raw: raw, At: next.At,
	}, nil
}

// pressAgain handles the button: the message is answered once more, as it reads now, by a turn of its own.
func (d *Dispatcher) pressAgain(ctx context.Context, call *turn.Call) (e turn.Effect, err error) {
	msg, w := call.Message, d.parts.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	say := func(text string) (turn.Effect, error) {
		toast.Alert, toast.Content.Text = true, text
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	hash, person, _ := strings.Cut(strings.TrimPrefix(msg.Data, againPrefix+":"), ":")
	if person != msg.Person || msg.Caller == "" {
		return say(w.AgainNotYours(msg.Language))
	}
	switch _, err := d.parts.Store.ArrivalOf(ctx, d.opts.Channel, d.opts.Bot, againID(hash)); {
	case err == nil:
		return say(w.AgainAlready(msg.Language))
	case !errors.Is(err, bot.ErrNotFound):
		return e, err
	}
	tail, err := d.parts.Store.Tail(ctx, call.Session, editRoom)
	if err != nil {
		return e, err
	}
	said := lastSaid(tail.Entries, func(e *journal.Entry) bool {
		return e.Caller == msg.Caller && len(e.Heard) > 0 && againHash(e.Turn) == hash
	})
	if said == nil {
		return say(w.AgainLost(msg.Language))
	}
	next, err := d.composeVersions(ctx, msg.Place, said.Heard, nil)
	if err != nil {
		return e, err
	}
	if next == nil {
		return say(w.AgainLost(msg.Language))
	}
	arrival, err := d.arriveAgain(next, msg, call.Session, againID(hash))
	if err != nil {
		return e, err
	}
	e.Change.Arrive = []bot.Arrival{arrival}
	e.Change.Send = []bot.Row{toast}
	if msg.Message != "" {
		e.Change.Send = append(e.Change.Send, bot.Row{
			Session: call.Session, Place: msg.Place, Purpose: bot.Record, Edit: msg.Message,
			Content: bot.Content{Text: w.AgainRuns(msg.Language), Language: msg.Language},
		})
	}
	e.Wake = []bot.SessionKey{call.Session}
	return e, nil
}
