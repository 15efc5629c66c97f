package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	// shortQuery searches open questions only: ofBot keeps the planner from using the index of all questions ever asked
	// in the chat.
	shortQuery = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval
WHERE state = 'pending' AND short = ? AND ` + ofBot + ` AND surface = ? AND COALESCE(chat, '') = ?`
	questionQuery  = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE id = ?`
	questionsQuery = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' AND session = ?
		ORDER BY n`
	anyWaiting = `SELECT seq FROM inbox WHERE state = 'waiting' AND express = 0 AND session <> ''
		AND session = CAST(? AS TEXT) LIMIT 1`
	arrivedQuery = `SELECT seq FROM inbox WHERE channel = ? AND bot = ? AND id = ?`
	keyQuery     = `SELECT id FROM outbox WHERE key = ? AND key <> ''`
	oldFactQuery = `SELECT value, expires FROM fact WHERE bucket = ? AND key = ?`
)

// loadWorld fills the step's World. Unless the step is sure, it assumes that unique keys of new rows are free and no
// arrival is waiting, which is nearly always true. The inserts check it.
func (t *step) loadWorld(ctx context.Context) error {
	t.world.resetWorld()
	for _, part := range []func(*step, context.Context) error{
		(*step).loadLanes, (*step).loadArrivals, (*step).loadQuestions,
		(*step).loadRows, (*step).loadFacts, (*step).loadAccounts,
	} {
		if err := part(t, ctx); err != nil {
			return err
		}
	}
	if t.sure {
		if err := t.loadKeys(ctx); err != nil {
			return err
		}
	}
	last, n := &t.memory.numbers, &t.world.Numbers
	n.Arrivals = followingNumbers(n.Arrivals, last.arrival, t.needs.NewArrivals)
	n.Questions = followingNumbers(n.Questions, last.question, t.needs.NewQuestions)
	n.Rows = followingNumbers(n.Rows, last.row, t.needs.NewRows)
	return nil
}

// followingNumbers returns the n numbers after last, reusing the memory of list.
func followingNumbers(list []int64, last int64, n int) []int64 {
	list = list[:0]
	for i := range int64(n) {
		list = append(list, last+i+1)
	}
	return list
}

func (t *step) loadLanes(ctx context.Context) error {
	for _, session := range t.needs.Lanes {
		lane, found, err := t.memory.laneOf(ctx, t.q, session)
		if err != nil {
			return err
		}
		if found {
			t.world.Lanes[session] = lane
		}
	}
	return nil
}

func (t *step) loadArrivals(ctx context.Context) error {
	for _, seq := range t.needs.Arrivals {
		a, found, err := t.memory.arrivalOf(ctx, t.q, seq)
		if err != nil {
			return err
		}
		if found {
			t.world.Arrivals[seq] = a
		}
	}
	return nil
}

func (t *step) loadQuestions(ctx context.Context) error {
	for _, id := range t.needs.Asked {
		if !t.sure && slices.ContainsFunc(t.change.Ask, func(a bot.Approval) bool { return a.ID == id }) {
			continue
		}
		if err := t.addQuestions(ctx, questionQuery, id); err != nil {
			return err
		}
	}
	for _, name := range t.needs.Shorts {
		p := &name.Place
		if err := t.addQuestions(ctx, shortQuery, name.Short, p.Channel, p.Bot, p.Surface, p.Chat); err != nil {
			return err
		}
	}
	if t.needs.OpenOf == "" {
		return nil
	}
	return t.addQuestions(ctx, questionsQuery, t.needs.OpenOf)
}

func (t *step) addQuestions(ctx context.Context, query string, args ...any) error {
	found, err := reading.List(ctx, t.q, reading.ScanQuestion, query, args...)
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	for _, q := range found {
		t.world.Questions[q.ID] = q
	}
	return nil
}

func (t *step) loadRows(ctx context.Context) error {
	for _, id := range t.needs.Rows {
		row, found, err := t.memory.rowOf(ctx, t.q, id)
		if err != nil {
			return err
		}
		if found {
			t.world.Rows[id] = row
		}
	}
	return nil
}

func (t *step) loadFacts(ctx context.Context) error {
	for _, key := range t.needs.Facts {
		fact := bot.Fact{Bucket: key.Bucket, Key: key.Key}
		see := func(scan reading.Scan) error { return scan(&fact.Value, reading.Stamp{To: &fact.Expires}) }
		found, err := t.q.queryOne(ctx, see, oldFactQuery, key.Bucket, key.Key)
		if err != nil {
			return fmt.Errorf("read fact: %w", err)
		}
		if found {
			t.world.Facts[key] = fact
		}
	}
	return nil
}

// loadKeys reads which unique keys are in use, and whether an arrival is waiting.
func (t *step) loadKeys(ctx context.Context) (err error) {
	var n int64
	read := func(scan reading.Scan) error { return scan(&n) }
	if t.needs.Waiting != "" {
		if t.world.Waiting, err = t.q.queryOne(ctx, read, anyWaiting, t.needs.Waiting); err != nil {
			return fmt.Errorf("find waiting arrivals: %w", err)
		}
	}
	for _, key := range t.needs.Arrived {
		found, err := t.q.queryOne(ctx, read, arrivedQuery, key.Channel, key.Bot, key.ID)
		if err != nil {
			return fmt.Errorf("find arrival: %w", err)
		}
		if found {
			t.world.Arrived[key] = n
		}
	}
	for _, key := range t.needs.Keys {
		found, err := t.q.queryOne(ctx, read, keyQuery, key)
		if err != nil {
			return fmt.Errorf("find row: %w", err)
		}
		if found {
			t.world.Keys[key] = n
		}
	}
	return nil
}
