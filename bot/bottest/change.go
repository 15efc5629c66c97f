package bottest

import (
	"slices"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// world returns what the store has of what a Change depends on. Its maps are the store's own: state.Run does not change
// them.
func (s *Store) world(needs *state.Needs) *state.World {
	w := &state.World{
		Lanes: s.lanes, Arrived: s.arrived, Keys: s.keys, Facts: s.facts, Questions: s.questions,
		Arrivals: map[int64]state.Arrival{}, Rows: map[int64]state.Delivery{}, Self: s.self,
		Numbers: state.Numbers{
			Arrivals:  following(s.counters.seq, needs.NewArrivals),
			Questions: following(s.counters.question, needs.NewQuestions),
			Rows:      following(s.counters.row, needs.NewRows),
		},
	}
	for _, a := range s.arrivals {
		w.Waiting = w.Waiting ||
			(a.state == state.Waiting && !a.Express && a.Session != "" && a.Session == needs.Waiting)
	}
	if s.self != "" && len(needs.Chats) > 0 {
		w.Senders = s.senders()
	}
	for _, seq := range needs.Arrivals {
		if a, ok := s.arrivals[seq]; ok {
			w.Arrivals[seq] = state.Arrival{
				State: a.state, Attempts: a.Attempts, Problem: a.Problem, Finished: a.finished,
			}
		}
	}
	for _, id := range needs.Rows {
		if row, ok := s.rows[id]; ok {
			w.Rows[id] = state.DeliveryOf(&row)
		}
	}
	if n := needs.Accounts; len(n) > 0 {
		w.Accounts = s.balances(needs)
		w.Charged = map[string]bool{}
		for _, key := range needs.Charged {
			_, w.Charged[key] = s.charges[key]
		}
	}
	return w
}

// following returns the n numbers after one.
func following(last int64, n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = last + int64(i) + 1
	}
	return numbers
}

// contents are deep copies of what a Change stores, as in a durable store.
type contents struct {
	entries []journal.Entry
	rows    []bot.Content
}

func copies(change *bot.Change) (c contents, err error) {
	if change.Append != nil {
		for _, entry := range change.Append.Entries {
			entry.At = utc(entry.At)
			if entry, err = copied(entry); err != nil {
				return c, err
			}
			c.entries = append(c.entries, entry)
		}
	}
	for i := range change.Send {
		content, err := copied(change.Send[i].Content)
		if err != nil {
			return c, err
		}
		c.rows = append(c.rows, content)
	}
	return c, nil
}

// save stores the result of a Change.
func (s *Store) save(change *bot.Change, done *state.Result, c *contents) {
	for _, a := range done.Arrive {
		s.insertArrival(change.Arrive[a.Index], a.Seq)
	}
	for _, i := range done.Replace {
		r := &change.Replace[i]
		a := s.arrivals[r.Seq]
		a.Source, a.Raw = r.Source, slices.Clone(r.Raw)
		s.arrivals[r.Seq] = a
	}
	for _, row := range done.Send {
		s.insertRow(change.Send[row.Index], row, c.rows[row.Index])
	}
	for _, asked := range done.Ask {
		s.saveQuestion(asked.Question)
		s.counters.question = max(s.counters.question, asked.Question.N)
	}
	if len(c.entries) > 0 {
		session := change.Append.Session
		entries := slices.Clone(s.journal[session])
		for i, entry := range c.entries {
			entry.N = done.Entries + int64(i)
			entries = append(entries, entry)
		}
		s.journal[session] = entries
	}
	for _, w := range done.Lanes {
		s.saveLane(w.New)
	}
	for _, w := range done.Arrivals {
		s.saveArrival(w.Key, w.New)
	}
	for _, w := range done.Questions {
		s.saveQuestion(w.New)
	}
	for _, w := range done.Rows {
		s.saveRow(w.New.On(s.rows[w.Key]))
	}
	s.saveFacts(done.Facts)
	for _, charge := range change.Charges {
		if _, ok := s.charges[charge.Key]; !ok {
			s.charges[charge.Key] = charge
		}
	}
	if change.Ledger != nil && change.Ledger.Owner != "" {
		s.setAside(change.Ledger, done.Asides)
	}
}

func (s *Store) insertArrival(a bot.Arrival, seq int64) {
	a.Seq, a.Attempts, a.Problem, a.At, a.Raw = seq, 0, "", utc(a.At), slices.Clone(a.Raw)
	s.arrivals[seq] = arrival{Arrival: a, state: state.Waiting}
	s.arrived[state.ArrivalKey{Channel: a.Channel, Bot: a.Bot, ID: a.ID}] = seq
	s.counters.seq = max(s.counters.seq, seq)
}

func (s *Store) saveArrival(seq int64, to state.Arrival) {
	a := s.arrivals[seq]
	a.state, a.Attempts, a.Problem, a.finished = to.State, to.Attempts, to.Problem, to.Finished
	s.arrivals[seq] = a
}

func (s *Store) insertRow(row bot.Row, as state.NewRow, content bot.Content) {
	row.ID, row.Content, row.Created = as.ID, content, utc(as.Created)
	s.saveRow(as.Delivery.On(row))
	if as.Owner != "" {
		s.owners[row.ID] = as.Owner
	}
	if row.Key != "" {
		s.keys[row.Key] = row.ID
	}
	s.counters.row = max(s.counters.row, row.ID)
}

func (s *Store) saveRow(row bot.Row) {
	row.NotBefore, row.Doubt = utc(row.NotBefore), utc(row.Doubt)
	s.rows[row.ID] = row
}

func (s *Store) saveLane(lane bot.Lane) {
	lane.Until, lane.Since = utc(lane.Until), utc(lane.Since)
	lane.NotBefore, lane.Failing = utc(lane.NotBefore), utc(lane.Failing)
	s.lanes[lane.Session] = lane
}

func (s *Store) saveQuestion(q state.Question) {
	q.Body, q.Votes = slices.Clone(q.Body), slices.Clone(q.Votes)
	q.Created, q.Expires, q.Decided = utc(q.Created), utc(q.Expires), utc(q.Decided)
	s.questions[q.ID] = q
}

func (s *Store) saveFacts(facts []bot.Fact) {
	for _, fact := range facts {
		fact.Expires = utc(fact.Expires)
		if key := (state.FactKey{Bucket: fact.Bucket, Key: fact.Key}); fact.Value == "" {
			delete(s.facts, key)
		} else {
			s.facts[key] = fact
		}
	}
}
