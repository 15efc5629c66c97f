package privacy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy/table"
)

// collectConversations finds the person's own conversations, and where their files are:
// later steps delete what says so.
func (o *Office) collectConversations(ctx context.Context, j *Job) (int, error) {
	var err error
	if j.Sessions, err = ownConversations(ctx, o.deps.Tables, j.Person); err != nil {
		return 0, err
	}
	if err := o.findBeginnings(ctx, j); err != nil {
		return 0, err
	}
	if o.deps.Limited != nil && o.deps.Limited(j.Person.Caller()) {
		first := j.Begun.In(o.deps.Zone)
		j.KeepsDay = time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, o.deps.Zone).Format(time.DateOnly)
	}
	return 0, nil
}

// findBeginnings finds where the person's conversations were begun again: results are remembered since then.
func (o *Office) findBeginnings(ctx context.Context, j *Job) error {
	at := map[string]int{}
	for i, c := range j.Sessions {
		at[string(c.Session)] = i
	}
	return eachPage(ctx, o.deps.Tables, &ruleOf(journalTable).Table, j.Person.ID, func(rows []Record) error {
		for _, row := range rows {
			i, own := at[row["session"]]
			value, _ := decodeJSON(row["body"])
			object, _ := value.(map[string]any)
			if own && (object["kind"] == "summary" || object["kind"] == "reset") {
				j.Sessions[i].Began = append(j.Sessions[i].Began, rowNumber(row["n"]))
			}
		}
		return nil
	})
}

func ownConversations(ctx context.Context, from TableReader, of Person) (list []Conversation, err error) {
	r := ruleOf(laneTable)
	err = eachPage(ctx, from, &r.Table, of.ID, func(rows []Record) error {
		for _, row := range rows {
			session := bot.SessionKey(row["session"])
			lane := bot.Lane{Session: session, Workspace: row["workspace"]}
			if of.Owns(session) {
				list = append(list, Conversation{Session: session, Workspace: lane.WorkspaceID()})
			}
		}
		return nil
	})
	return list, err
}

func ruleOf(table string) *rule {
	for _, r := range tableRules() {
		if r.Table.Name == table {
			return &r
		}
	}
	return &rule{}
}

// stopTurns ends the person's turns, withdraws their questions, and waits until nobody works for them: what they would
// have written would be left over. A turn that does not end loses its lane later, and can store nothing.
func (o *Office) stopTurns(ctx context.Context, j *Job) (int, error) {
	lanes, err := o.busyLanes(ctx, j.Person)
	if err != nil {
		return 0, err
	}
	for _, lane := range lanes {
		change := &bot.Change{
			Lanes:  []bot.LaneUpdate{{Session: lane.Session, Stop: &lane.Turn}},
			Cancel: &bot.Cancel{Session: lane.Session, Turn: lane.Turn, At: o.deps.Now()},
		}
		if _, err := o.deps.Store.Apply(ctx, change); err != nil {
			return 0, fmt.Errorf("stop a turn: %w", err)
		}
		o.deps.Wake(lane.Session)
	}
	if o.orderOf(j).Alone {
		return len(lanes), nil
	}
	o.waitUntil(ctx, stopping, func() bool {
		left, err := o.busyLanes(ctx, j.Person)
		return err == nil && len(left) == 0
	})
	o.waitUntil(ctx, resting, func() bool { return !o.hasUnsent(ctx, j) })
	return len(lanes), ctx.Err()
}

// busyLanes lists the lanes with a turn of the person.
func (o *Office) busyLanes(ctx context.Context, of Person) (list []bot.Lane, err error) {
	r := ruleOf(laneTable)
	err = eachPage(ctx, o.deps.Tables, &r.Table, of.ID, func(rows []Record) error {
		for _, row := range rows {
			if row["turn"] == "" || row["caller"] != of.Caller() && !of.Owns(bot.SessionKey(row["session"])) {
				continue
			}
			lane, err := o.deps.Store.Lane(ctx, bot.SessionKey(row["session"]))
			if err != nil {
				return err
			}
			if lane.Turn != "" {
				list = append(list, lane)
			}
		}
		return nil
	})
	return list, err
}

// hasUnsent reports whether something for the person is still to be sent that was written before they asked.
func (o *Office) hasUnsent(ctx context.Context, j *Job) (busy bool) {
	r, s := ruleOf(outboxTable), j.subject()
	err := eachPage(ctx, o.deps.Tables, &r.Table, j.Person.ID, func(rows []Record) error {
		busy = busy || slices.ContainsFunc(rows, func(row Record) bool {
			return row["finished"] == "0" && s.toldRow(row)
		})
		return nil
	})
	return err == nil && busy
}

// waitUntil waits until something is so, but not longer than a time.
func (o *Office) waitUntil(ctx context.Context, most time.Duration, so func() bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ticker := time.NewTicker(lookEach)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// waitIdle waits until nobody works in a conversation.
func (o *Office) waitIdle(ctx context.Context, session string) {
	o.waitUntil(ctx, resting, func() bool {
		lane, err := o.deps.Store.Lane(ctx, bot.SessionKey(session))
		return err == nil && lane.Owner == ""
	})
}

// newEraser returns what decides about the rows of a job's person.
func newEraser(ctx context.Context, from TableReader, j *Job, buckets []bot.BucketRule) (*eraser, error) {
	e := &eraser{
		Subject: j.subject(), begun: j.Begun.UnixNano(), keepsDay: j.KeepsDay, cards: map[string]bool{},
		had: map[string]bool{}, touched: map[string]bool{}, shared: map[string]bool{},
	}
	e.buckets = rulesByBucket(buckets)
	for _, c := range j.Sessions {
		e.had[string(c.Session)] = true
	}
	r := ruleOf(approvalTable)
	err := eachPage(ctx, from, &r.Table, string(bot.Open), func(rows []Record) error {
		for _, row := range rows {
			if row["state"] == string(bot.Open) && !ownSession(&e.Subject, row) {
				e.cards[row["card"]] = true
			}
		}
		return nil
	})
	return e, err
}

// eraseTable erases in one table.
func (o *Office) eraseTable(ctx context.Context, j *Job, r *rule) (int, error) {
	e, err := newEraser(ctx, o.deps.Tables, j, o.deps.Buckets)
	if err != nil {
		return 0, err
	}
	idle := o.waitIdle
	if o.orderOf(j).Alone {
		idle = func(context.Context, string) {}
	}
	n, err := e.eraseRows(ctx, o.deps.Tables, r, idle)
	if err == nil && len(e.files) > 0 {
		err = e.eraseContents(ctx, o.deps.Tables)
	}
	if err != nil || len(e.touched) == 0 {
		return n, err
	}
	var list []bot.Fact // other processes notice by these
	for bucket := range e.touched {
		if revision := e.buckets[bucket].Revision; revision != "" {
			list = append(list, bot.Fact{Bucket: revision, Value: rand.Text()})
		}
	}
	if len(list) > 0 {
		_, err = o.deps.Store.Apply(ctx, &bot.Change{Facts: list})
	}
	return n, err
}

// makeReceipt says what went, and looks what still names the person.
func (o *Office) makeReceipt(ctx context.Context, j *Job) (*Receipt, error) {
	stays, err := o.countRemaining(ctx, j)
	if err != nil {
		return nil, err
	}
	return &Receipt{
		ID:        j.ID,
		Pseudonym: j.Pseudonym,
		Begun:     j.Begun,
		Ended:     o.deps.Now().UTC(),
		Gone:      sumCounts(j.Gone),
		Stays:     stays,
		Beyond:    outOfReach(o.deps.Postgres),
		Problems:  j.Problems,
	}, nil
}

// sumCounts adds up what went in steps that were repeated.
func sumCounts(list []Count) []Count {
	all := []Count{}
	for _, c := range list {
		at := slices.IndexFunc(all, func(known Count) bool { return known.What == c.What })
		if at < 0 {
			all = append(all, c)
		} else {
			all[at].N += c.N
		}
	}
	return all
}

func outOfReach(postgres bool) []Why {
	list := []Why{BeyondChannel, BeyondShared, BeyondPseudo, BeyondBackups}
	if postgres {
		list = append(list, BeyondPostgres)
	}
	return list
}

// countRemaining counts, by reason, the rows that name the person.
func (o *Office) countRemaining(ctx context.Context, j *Job) ([]Stay, error) {
	e, err := newEraser(ctx, o.deps.Tables, j, o.deps.Buckets)
	if err != nil {
		return nil, err
	}
	stays := []Stay{}
	for _, r := range tableRules() {
		err := eachPage(ctx, o.deps.Tables, &r.Table, j.Person.ID, func(rows []Record) error {
			for _, row := range rows {
				why, named := e.whyStays(r.Table.Name, row), j.Person.isNamedIn(&r.Table, row)
				if !named || why == StaysJob {
					continue // the job goes with the receipt
				}
				stays = addStay(stays, r.Table.Name, why)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return stays, nil
}

func addStay(list []Stay, what string, why Why) []Stay {
	for i := range list {
		if list[i].What == what && list[i].Why == why {
			list[i].N++
			return list
		}
	}
	return append(list, Stay{what, 1, why})
}

// isNamedIn reports whether a text of a row has the person in it. An id is looked for as a word, so that a number that
// merely contains it does not count.
func (p Person) isNamedIn(t *Table, row Record) bool {
	for _, c := range t.Columns() {
		if (c.Kind == table.Text || c.Kind == table.Bytes) && p.named(row[c.Name]) {
			return true
		}
	}
	return false
}

// Look says what is stored about a person without changing anything. buckets are the rules of all buckets of facts.
func Look(
	ctx context.Context, from TableReader, of Person, postgres bool, buckets []bot.BucketRule, now time.Time,
) (*Receipt, error) {
	j := NewJob(of, now)
	var err error
	if j.Sessions, err = ownConversations(ctx, from, of); err != nil {
		return nil, err
	}
	e, err := newEraser(ctx, from, j, buckets)
	if err != nil {
		return nil, err
	}
	r := &Receipt{Begun: j.Begun, Gone: []Count{}, Stays: []Stay{}, Beyond: outOfReach(postgres)}
	for _, t := range tableRules() {
		n := 0
		err := eachPage(ctx, from, &t.Table, of.ID, func(rows []Record) error {
			for _, row := range rows {
				switch {
				case t.erase(e, row) != nil || t.Table.Name == journalTable && ownSession(&e.Subject, row):
					n++
				case of.isNamedIn(&t.Table, row):
					r.Stays = addStay(r.Stays, t.Table.Name, e.whyStays(t.Table.Name, row))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			r.Gone = append(r.Gone, Count{t.Table.Name, n})
		}
	}
	return r, nil
}

// ReceiptOf returns the receipt of a job; nil = there is none yet.
func ReceiptOf(ctx context.Context, from bot.Facts, job string, now time.Time) (*Receipt, error) {
	value, err := from.Fact(ctx, receiptBucket, job, now)
	if err != nil || value == "" {
		return nil, err
	}
	r := &Receipt{}
	if err := json.Unmarshal([]byte(value), r); err != nil {
		return nil, fmt.Errorf("receipt %s: %w", job, err)
	}
	return r, nil
}
