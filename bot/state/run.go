package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// run is the execution of one Change.
type run struct {
	change    *bot.Change
	world     *World
	now       time.Time
	numbers   Numbers
	lanes     table[bot.SessionKey, bot.Lane]
	arrivals  table[int64, Arrival]
	questions table[string, Question]
	rows      table[int64, Delivery]
	facts     table[FactKey, bot.Fact]
	result    *Result
}

// Run executes everything that a valid Change asks for, except Move, in the order that bot.Change promises. world has
// what NeedsOf lists; now is the store's time. An error refuses the Change as a whole; it is one of those of
// bot.Change.
func Run(c *bot.Change, world *World, now time.Time) (*Result, error) {
	r := run{
		change: c, world: world, now: now, numbers: world.Numbers, result: &Result{Applied: &bot.Applied{}},
		lanes:     table[bot.SessionKey, bot.Lane]{loaded: world.Lanes},
		arrivals:  table[int64, Arrival]{loaded: world.Arrivals},
		questions: table[string, Question]{loaded: world.Questions},
		rows:      table[int64, Delivery]{loaded: world.Rows},
		facts:     table[FactKey, bot.Fact]{loaded: world.Facts},
	}
	if err := r.claim(); err != nil {
		return nil, err
	}
	if err := r.lease(); err != nil {
		return nil, err
	}
	if err := r.expected(); err != nil {
		return nil, err
	}
	if err := r.arrive(); err != nil {
		return nil, err
	}
	if err := r.replace(); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := r.append(); err != nil {
		return nil, err
	}
	r.laneUpdates()
	if err := r.ask(); err != nil {
		return nil, err
	}
	if err := r.decide(); err != nil {
		return nil, err
	}
	r.cancel()
	r.send()
	if err := r.cards(); err != nil {
		return nil, err
	}
	if err := r.rowUpdates(); err != nil {
		return nil, err
	}
	r.setFacts()
	if err := r.ledger(); err != nil {
		return nil, err
	}
	r.placeholder()
	return r.done(), nil
}

// done lists what has to be written.
func (r *run) done() *Result {
	r.result.Lanes = r.lanes.sorted(cmp.Compare[bot.SessionKey])
	r.result.Arrivals = r.arrivals.sorted(cmp.Compare[int64])
	r.result.Rows = r.rows.sorted(cmp.Compare[int64])
	for _, w := range r.questions.sorted(cmp.Compare[string]) {
		if w.Exists {
			r.result.Questions = append(r.result.Questions, w)
		}
	}
	for i := range r.result.Ask { // as later parts of the Change left them
		asked := &r.result.Ask[i]
		asked.Question, _ = r.questions.get(asked.Question.ID)
	}
	for _, w := range r.facts.sorted(func(a, b FactKey) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket),
			cmp.Compare(a.Key, b.Key))
	}) {
		r.result.Facts = append(r.result.Facts, w.New)
	}
	return r.result
}

func (r *run) lane(session bot.SessionKey) bot.Lane {
	if lane, ok := r.lanes.get(session); ok {
		return lane
	}
	return Idle(session)
}

func (r *run) claim() error {
	c := r.change.Claim
	if c == nil {
		return nil
	}
	lane, err := Claim(r.lane(c.Session), c)
	if err != nil {
		return err
	}
	if !r.mayBegin(c) {
		return fmt.Errorf("begin a turn of %s: %w", c.Session, bot.ErrConflict)
	}
	r.lanes.set(c.Session, lane)
	r.result.Applied.Fence = lane.Fence
	return nil
}

// mayBegin reports whether the arrival of a claim still waits, or whether no other arrival waits before one that is
// stored with it.
func (r *run) mayBegin(c *bot.Claim) bool {
	if c.Arrives {
		return !r.world.Waiting
	}
	return c.Arrival == 0 || r.world.Arrivals[c.Arrival].State == Waiting
}

func (r *run) lease() error {
	if r.change.Lease == nil {
		return nil
	}
	return Holds(r.lane(r.change.Lease.Session), r.change.Lease)
}

func (r *run) arrive() error {
	known := table[ArrivalKey, int64]{loaded: r.world.Arrived}
	for i := range r.change.Arrive {
		key, seq := keyOf(&r.change.Arrive[i]), int64(0)
		if _, ok := known.get(key); !ok {
			seq = take(&r.numbers.Arrivals)
			known.set(key, seq)
			r.result.Arrive = append(r.result.Arrive, NewArrival{Seq: seq, Index: i})
		}
		r.result.Applied.Seqs = append(r.result.Applied.Seqs, seq)
	}
	if r.change.Claim == nil || !r.change.Claim.Arrives {
		return nil
	}
	lane, err := setBegunArrival(r.lane(r.change.Claim.Session), r.result.Applied.Seqs[0])
	if err != nil {
		return err
	}
	r.lanes.set(lane.Session, lane)
	return nil
}

// take returns the next free number.
func take(from *[]int64) int64 {
	n := (*from)[0]
	*from = (*from)[1:]
	return n
}

// finish changes the state of arrivals: handled, done, failed, given up.
func (r *run) finish() error {
	if err := r.checkUnbegun(); err != nil {
		return err
	}
	if seq := r.change.Handles; seq != 0 {
		if a, ok := r.arrivals.get(seq); ok && a.State != Waiting {
			return fmt.Errorf("arrival %d: %w", seq, bot.ErrHandled)
		}
		if err := r.arrival(seq, func(a Arrival) Arrival { return a.Finish(r.now) }); err != nil {
			return err
		}
	}
	for _, seq := range r.change.Done {
		if err := r.arrival(seq, func(a Arrival) Arrival { return a.Finish(r.now) }); err != nil {
			return err
		}
	}
	for _, l := range r.change.Retry {
		if err := r.arrival(l.Seq, func(a Arrival) Arrival { return a.Retry(l.Problem) }); err != nil {
			return err
		}
	}
	for _, l := range r.change.Dead {
		if err := r.arrival(l.Seq, func(a Arrival) Arrival { return a.GiveUp(l.Problem, r.now) }); err != nil {
			return err
		}
	}
	return nil
}

// checkUnbegun refuses the Change if a turn has begun with an arrival that it handles or gives up as one that waits.
func (r *run) checkUnbegun() error {
	session := r.change.Unbegun
	if session == "" {
		return nil
	}
	seqs := make([]int64, 0, 1+len(r.change.Dead))
	if r.change.Handles != 0 {
		seqs = append(seqs, r.change.Handles)
	}
	for i := range r.change.Dead {
		seqs = append(seqs, r.change.Dead[i].Seq)
	}
	before := r.lane(session)
	for _, seq := range seqs {
		lane, began := holdBegin(before, seq)
		if began {
			return fmt.Errorf("arrival %d of %s: its turn has begun: %w", seq, session, bot.ErrHandled)
		}
		r.lanes.set(session, lane)
	}
	return nil
}

func (r *run) arrival(seq int64, move func(Arrival) Arrival) error {
	a, ok := r.arrivals.get(seq)
	if !ok {
		return fmt.Errorf("arrival %d: %w", seq, bot.ErrNotFound)
	}
	if moved := move(a); moved != a {
		r.arrivals.set(seq, moved)
	}
	return nil
}

func (r *run) append() error {
	a := r.change.Append
	if a == nil {
		return nil
	}
	before := r.lane(a.Session)
	lane, forget, err := Append(before, a)
	if err != nil {
		return err
	}
	r.result.Entries = before.Last + 1
	if forget {
		r.result.Forget = a.Session
	}
	r.lanes.set(a.Session, lane)
	return nil
}

func (r *run) laneUpdates() {
	for i := range r.change.Lanes {
		u := &r.change.Lanes[i]
		r.lanes.set(u.Session, Update(r.lane(u.Session), u))
	}
}

func (r *run) ask() error {
	for i := range r.change.Ask {
		a := completeQuestion(r.change.Ask[i])
		if _, ok := r.questions.get(a.ID); ok {
			return fmt.Errorf("ask %s: id: %w", a.ID, bot.ErrTaken)
		}
		if named(&a) && r.shortTaken(shortOf(&a)) {
			return fmt.Errorf("ask %s: short name %s: %w", a.ID, a.Short, bot.ErrTaken)
		}
		q := Question{Approval: a, N: take(&r.numbers.Questions)}
		r.questions.set(a.ID, q)
		r.result.Ask = append(r.result.Ask, NewQuestion{Index: i, Question: q})
	}
	return nil
}

func (r *run) shortTaken(name ShortName) bool {
	return slices.ContainsFunc(r.known(), func(q Question) bool {
		return q.State == bot.Open && shortOf(&q.Approval) == name
	})
}

// known lists the questions that the Change can see, in the order in which they were asked.
func (r *run) known() []Question {
	all := make([]Question, 0, len(r.world.Questions)+len(r.questions.writes))
	for id, q := range r.world.Questions {
		if r.questions.find(id) < 0 {
			all = append(all, q)
		}
	}
	for i := range r.questions.writes {
		all = append(all, r.questions.writes[i].New)
	}
	slices.SortFunc(all, func(a, b Question) int { return cmp.Compare(a.N, b.N) })
	return all
}

func (r *run) decide() error {
	for i := range r.change.Decide {
		d := &r.change.Decide[i]
		q, ok := r.questions.get(d.ID)
		if !ok {
			return fmt.Errorf("question %s: %w", d.ID, bot.ErrNotFound)
		}
		var err error
		if q.Approval, err = Vote(q.Approval, d); err != nil {
			return err
		}
		r.questions.set(d.ID, q)
		r.result.Applied.Decided = append(r.result.Applied.Decided, q.State)
	}
	return nil
}

func (r *run) cancel() {
	c := r.change.Cancel
	if c == nil {
		return
	}
	for _, q := range r.known() {
		if q.State != bot.Open || q.Session != c.Session || (c.Turn != "" && q.Turn != c.Turn) {
			continue
		}
		q.Approval = Withdraw(q.Approval, c.By, c.At)
		r.questions.set(q.ID, q)
		r.result.Applied.Withdrawn = append(r.result.Applied.Withdrawn, q.ID)
	}
}

func (r *run) send() {
	known := table[string, int64]{loaded: r.world.Keys}
	for i := range r.change.Send {
		row := &r.change.Send[i]
		id, doubled := int64(0), false
		if row.Key != "" {
			id, doubled = known.get(row.Key)
		}
		if !doubled {
			id = take(&r.numbers.Rows)
			if row.Key != "" {
				known.set(row.Key, id)
			}
			created := row.Created
			if created.IsZero() {
				created = r.now
			}
			d, owner, queued := Deliver(row, r.now).by(r.world.Self, r.world.Senders[row.Place.ChatKey()])
			r.result.Send = append(r.result.Send, NewRow{ID: id, Index: i, Created: created, Owner: owner, Delivery: d})
			if queued {
				r.result.Applied.Queued = append(r.result.Applied.Queued, id)
			}
		}
		r.result.Applied.Rows = append(r.result.Applied.Rows, id)
		r.result.Applied.Skipped = append(r.result.Applied.Skipped, doubled)
	}
}

func (r *run) cards() error {
	for _, card := range r.change.Cards {
		q, ok := r.questions.get(card.Approval)
		if !ok {
			return fmt.Errorf("card of question %s: %w", card.Approval, bot.ErrNotFound)
		}
		q.Row = r.result.Applied.Rows[card.Send]
		r.questions.set(q.ID, q)
	}
	return nil
}

func (r *run) rowUpdates() error {
	for i := range r.change.Rows {
		u := &r.change.Rows[i]
		row, ok := r.rows.get(u.ID)
		if !ok {
			return fmt.Errorf("row %d: %w", u.ID, bot.ErrNotFound)
		}
		row, moved := row.Advance(u, r.now)
		if moved {
			r.rows.set(u.ID, row)
		}
		r.result.Applied.Moved = append(r.result.Applied.Moved, moved)
	}
	return nil
}

func (r *run) placeholder() {
	session := r.change.PlaceholderOf
	if session == "" {
		return
	}
	lane := r.lane(session)
	lane.Live = r.result.Applied.Rows[0]
	r.lanes.set(session, lane)
}
