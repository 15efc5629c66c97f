package postgres

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The database assigns the numbers of rows in the trip that stores them, but the Change is decided before. It uses
// provisional numbers, from this one downwards, and each insert leaves the real number in a setting of the transaction
// for the statements after it.
const provisional = int64(-1) << 40

// laterThanAll begins the numbers of new questions. They only have to sort after all others.
const laterThanAll = math.MaxInt64 / 2

// numbers returns provisional numbers.
func numbers(needs *state.Needs) state.Numbers {
	var n state.Numbers
	for i := range int64(needs.NewArrivals) {
		n.Arrivals = append(n.Arrivals, provisional-i)
	}
	for i := range int64(needs.NewRows) {
		n.Rows = append(n.Rows, provisional-i)
	}
	for i := range int64(needs.NewQuestions) {
		n.Questions = append(n.Questions, laterThanAll+i)
	}
	return n
}

// The settings that hold real numbers; the index of the provisional one is appended.
const (
	arrivalSetting = "zephbot.arrival"
	rowSetting     = "zephbot.row"
)

// write is a decided Change that is being converted to statements.
type write struct {
	batch
	money  batch // the last statements: accounts are locked after everything else
	change *bot.Change
	needs  *state.Needs
	world  *state.World
	result *state.Result
	lanes  map[bot.SessionKey]known
	// versions are those of the lanes as written so far.
	versions map[bot.SessionKey]int64
	guess    bool // no row of the world is locked
	me       process
	number   int64
	seqs     []int64 // assigned to arrivals
	ids      []int64 // assigned to rows
}

func newWrite(change *bot.Change, needs *state.Needs, h *hold) *write {
	w := &write{
		change: change, needs: needs, number: newVersion(),
		lanes: map[bot.SessionKey]known{}, versions: map[bot.SessionKey]int64{},
	}
	if h != nil {
		w.me = h.me
	}
	return w
}

// statements builds the statements. Those that can refuse come before inserts, so that a refused Change uses up no
// numbers.
func (w *write) statements() error {
	w.batch, w.money = batch{}, batch{}
	w.do(makeApplied, w.number)
	w.keepSenders()
	if w.guess {
		w.guards()
	}
	w.keepLanes()
	if err := w.writeLanes(false); err != nil {
		return err
	}
	w.replaceArrivals()
	w.moveArrivals()
	w.moveRows()
	w.insertArrivals()
	parts := []func() error{w.insertRows, w.writeQuestions, w.insertEntries, func() error { return w.writeLanes(true) }}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	w.writeFacts()
	w.charges(w.change.Charges)
	w.setAside()
	return nil
}

// guards check the assumptions about a world that is not locked, except those that each write checks itself.
func (w *write) guards() {
	n := w.needs
	for _, name := range n.Shorts {
		w.do(lockNames, name.Place.ChatKey())
	}
	if n.Waiting != "" {
		w.do(noneWaiting, n.Waiting)
	}
	if c := w.change.Claim; c != nil && c.Arrival != 0 {
		w.do(stillWaiting, c.Arrival)
	}
	if len(n.Arrived) > 0 {
		channels, bots, ids := keyColumns(n.Arrived)
		w.do(noneArrived, channels, bots, ids)
	}
	if len(n.Keys) > 0 {
		w.do(noneKeyed, n.Keys)
	}
	if len(n.Asked) > 0 {
		w.do(noneAsked, n.Asked)
	}
	for _, name := range n.Shorts {
		w.do(noneNamed, name.Short, name.Place.Channel, name.Place.Bot, name.Place.Surface, name.Place.Chat)
	}
	if n.OpenOf != "" {
		w.do(noneOpen, n.OpenOf)
	}
	if w.me.shared {
		for i := range n.Chats {
			w.do(noneSends, chatValues(&n.Chats[i])...)
		}
	}
}

// keyColumns returns keys of arrivals column by column.
func keyColumns(keys []state.ArrivalKey) (channels, bots, ids []string) {
	for _, key := range keys {
		channels, bots, ids = append(channels, key.Channel), append(bots, key.Bot), append(ids, key.ID)
	}
	return channels, bots, ids
}

// keepLanes checks lanes that the Change depends on but does not write.
func (w *write) keepLanes() {
	if !w.guess {
		return
	}
	for _, session := range w.needs.Lanes {
		written := func(l state.Write[bot.SessionKey, bot.Lane]) bool { return l.Key == session }
		if slices.ContainsFunc(w.result.Lanes, written) {
			continue
		}
		if version := w.lanes[session].version; version > 0 {
			w.do(keepLane, session, version)
		} else {
			w.do(noLane, session)
		}
	}
}

// writeLanes writes the lanes that refer to new rows, which must be inserted before, or the others.
func (w *write) writeLanes(refer bool) error {
	for i := range w.result.Lanes {
		lane := &w.result.Lanes[i].New
		if (lane.Arrival <= provisional || lane.Live <= provisional) != refer {
			continue
		}
		values := reading.LaneValues(lane)
		if version := w.lanes[lane.Session].version; version > 0 {
			w.do(updateLane, append(values, version)...)
			w.versions[lane.Session] = version + 1
		} else {
			w.versions[lane.Session] = newVersion()
			w.do(insertLane, append(values, w.versions[lane.Session])...)
		}
	}
	return nil
}

// newVersion returns the first version of a new lane.
func newVersion() int64 {
	return 1 + rand.Int64N(1<<52) //nolint:gosec // distinguishes versions, not a secret
}

func (w *write) insertArrivals() {
	for _, n := range w.result.Arrive {
		a := &w.change.Arrive[n.Index]
		w.read(scanNumber(&w.seqs), insertArrival, a.Channel, a.Bot, a.ID,
			a.Session, a.Express, reading.OrNull(a.Raw), reading.Nanos(a.At),
			setting(arrivalSetting, n.Seq), string(a.Source))
	}
}

// scanNumber records the number that an insert was given.
func scanNumber(to *[]int64) func(reading.Scan) error {
	return func(scan reading.Scan) error {
		var n int64
		*to = append(*to, 0)
		err := scan(&n, nil)
		(*to)[len(*to)-1] = n
		return err
	}
}

// setting is the name under which the real number for a provisional one is stored.
func setting(kind string, n int64) string { return fmt.Sprint(kind, provisional-n) }

// replaceArrivals relies on locked rows: see guessed.
func (w *write) replaceArrivals() {
	for _, i := range w.result.Replace {
		r := &w.change.Replace[i]
		w.do(replaceArrival, r.Seq, string(r.Source), reading.OrNull(r.Raw))
	}
}

func (w *write) moveArrivals() {
	for _, a := range w.result.Arrivals {
		if w.guess {
			w.do(finishArrival, a.Key, string(a.New.State), reading.Nanos(a.New.Finished))
			continue
		}
		w.do(moveArrival, a.Key, string(a.New.State), a.New.Attempts, a.New.Problem, reading.Nanos(a.New.Finished),
			string(a.Old.State), a.Old.Attempts)
	}
}

func (w *write) moveRows() {
	for _, r := range w.result.Rows {
		d, old := r.New, r.Old
		w.do(moveRow, r.Key, string(d.State), d.Message, reading.Nanos(d.NotBefore),
			d.Attempts, d.Unconfirmed, reading.Nanos(d.Doubt), d.Problem, reading.Nanos(d.Finished),
			string(old.State), old.Message, reading.Nanos(old.NotBefore), old.Attempts, reading.Nanos(old.Doubt))
	}
}

func (w *write) insertRows() error {
	for _, n := range w.result.Send {
		r, d := &w.change.Send[n.Index], n.Delivery
		content, err := reading.Encode(r.Content)
		if err != nil {
			return err
		}
		values := append(reading.RowValues(r, &d, content, n.Created), reading.Nanos(d.Finished), n.Owner,
			w.number, setting(rowSetting, n.ID))
		w.read(scanNumber(&w.ids), insertRow, values...)
	}
	return nil
}

func (w *write) writeQuestions() error {
	for i := range w.result.Ask {
		a := &w.result.Ask[i].Question.Approval
		votes, err := reading.EncodeVotes(a.Votes)
		if err != nil {
			return err
		}
		w.do(insertQuestion, reading.ApprovalValues(a, votes)...)
	}
	for i := range w.result.Questions {
		a := &w.result.Questions[i].New.Approval
		votes, err := reading.EncodeVotes(a.Votes)
		if err != nil {
			return err
		}
		w.do(moveQuestion, a.ID, string(a.State), a.Scope, a.By, a.ByName, votes, reading.Nanos(a.Decided), a.Row)
	}
	return nil
}

func (w *write) insertEntries() error {
	a := w.change.Append
	if a == nil || len(a.Entries) == 0 {
		return nil
	}
	if w.result.Forget != "" {
		w.do(resetOverflow, w.result.Forget)
	}
	var ns []int64
	var resets []bool
	var bodies [][]byte
	for i := range a.Entries {
		body, err := reading.EncodeEntry(a.Entries[i])
		if err != nil {
			return err
		}
		ns = append(ns, w.result.Entries+int64(i))
		resets, bodies = append(resets, a.Entries[i].Begins()), append(bodies, body)
	}
	w.do(insertEntries, a.Session, ns, resets, bodies)
	return nil
}

func (w *write) writeFacts() {
	for _, f := range w.result.Facts {
		key := state.FactKey{Bucket: f.Bucket, Key: f.Key}
		_, exists := w.world.Facts[key]
		switch {
		case f.Value == "":
			w.do(deleteFact, f.Bucket, f.Key)
		case slices.Contains(w.needs.Facts, key) && !exists: // no other process may have set it meanwhile
			w.do(insertFact, f.Bucket, f.Key, []byte(f.Value), reading.Nanos(f.Expires))
		default:
			w.do(setFact, f.Bucket, f.Key, []byte(f.Value), reading.Nanos(f.Expires))
		}
	}
}

// applied is the result of the Change, with real numbers.
func (w *write) applied() *bot.Applied {
	applied := *w.result.Applied
	for i := range applied.Seqs {
		applied.Seqs[i] = settle(applied.Seqs[i], w.seqs)
	}
	for i := range applied.Rows {
		applied.Rows[i] = settle(applied.Rows[i], w.ids)
	}
	for i := range applied.Queued {
		applied.Queued[i] = settle(applied.Queued[i], w.ids)
	}
	return &applied
}

// settle returns the real number for a provisional one.
func settle(n int64, given []int64) int64 {
	if n > provisional {
		return n
	}
	return given[provisional-n]
}

// remember updates the memory with what was written.
func (w *write) remember(m *memory) {
	for i := range w.result.Lanes {
		lane := w.result.Lanes[i].New
		lane.Arrival, lane.Live = settle(lane.Arrival, w.seqs), settle(lane.Live, w.ids)
		for _, at := range []*time.Time{&lane.Until, &lane.Since, &lane.NotBefore, &lane.Failing} {
			*at = reading.TimeOf(reading.Nanos(*at))
		}
		m.learn(known{lane: lane, version: w.versions[lane.Session]})
	}
	for _, r := range w.result.Rows {
		m.learnRow(r.Key, r.New)
	}
	for i, n := range w.result.Send {
		m.learnRow(w.ids[i], n.Delivery)
	}
}
