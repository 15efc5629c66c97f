package sql

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// The columns of each table, in the order of scan and values.
const (
	placeColumns   = `channel, bot, surface, chat, thread, grp`
	placeWidth     = 6
	arrivalColumns = `seq, channel, bot, id, source, session, express, raw, at, attempts, problem`
	laneColumns    = `session, ` + placeColumns + `, workspace, state, fence, owner,
		until, turn, arrival, since, not_before, failing, stop, last, live, notice, caller`
	approvalColumns = `id, short, session, turn, call, ` + placeColumns +
		`, caller, tool, hash, body, state, scope, decider, name, votes, needed, created, expires, decided, card`
	rowColumns = `session, turn, ` + placeColumns +
		`, purpose, content, reply_to, edit, edit_row, query, alert, key, state, message, attempts, unconfirmed, resent,
			not_before, created, problem`
)

// toNanos converts a time for storage; 0 = none. Times outside the range of the column (1677 to 2262) are clamped.
func toNanos(at time.Time) int64 {
	switch {
	case at.IsZero():
		return 0
	case at.Year() > 2261:
		return math.MaxInt64
	case at.Year() < 1678:
		return math.MinInt64
	}
	return at.UnixNano()
}

// stamp scans a stored time.
type stamp struct{ to *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T, not as a number", value)
	}
	*s.to = time.Time{}
	if n != 0 {
		*s.to = time.Unix(0, n).UTC()
	}
	return nil
}

// toBit converts a flag for storage.
func toBit(flag bool) int64 {
	if flag {
		return 1
	}
	return 0
}

// flag scans a stored flag.
type flag struct{ to *bool }

// Scan implements sql.Scanner.
func (f flag) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a flag is stored as %T, not as a number", value)
	}
	*f.to = n != 0
	return nil
}

// document scans stored JSON. NULL and "" leave the value unchanged.
type document struct{ to any }

// Scan implements sql.Scanner.
func (d document) Scan(value any) error {
	var data []byte
	switch v := value.(type) {
	case nil:
	case string:
		data = []byte(v)
	case []byte:
		data = v
	default:
		return fmt.Errorf("a document is stored as %T", value)
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, d.to); err != nil {
		return fmt.Errorf("decode stored %T: %w", d.to, err)
	}
	return nil
}

// encodeJSON returns JSON for storage.
func encodeJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", value, err)
	}
	return string(data), nil
}

// orNull converts bytes for storage: empty becomes NULL.
func orNull(data []byte) any {
	if len(data) == 0 {
		return nil
	}
	return data
}

func placeValues(p *bot.Place) []any {
	return []any{p.Channel, p.Bot, p.Surface, p.Chat, p.Thread, toBit(p.Group)}
}

func placeDests(p *bot.Place) []any {
	return []any{&p.Channel, &p.Bot, &p.Surface, &p.Chat, &p.Thread, flag{&p.Group}}
}

func scanArrival(scan scanner) (bot.Arrival, error) {
	var a bot.Arrival
	err := scan(&a.Seq, &a.Channel, &a.Bot, &a.ID, &a.Source,
		&a.Session, flag{&a.Express}, &a.Raw, stamp{&a.At}, &a.Attempts,
		&a.Problem)
	return a, err
}

func laneValues(l *bot.Lane) []any {
	values := append([]any{string(l.Session)}, placeValues(&l.Place)...)
	return append(values, l.Workspace, string(l.State), l.Fence, l.Owner, toNanos(l.Until),
		l.Turn, l.Arrival, toNanos(l.Since), toNanos(l.NotBefore),
		toNanos(l.Failing), l.Stop, l.Last, l.Live, l.Notice, l.Caller)
}

func scanLane(scan scanner) (bot.Lane, error) {
	var l bot.Lane
	dests := append([]any{&l.Session}, placeDests(&l.Place)...)
	dests = append(dests, &l.Workspace, &l.State, &l.Fence, &l.Owner, stamp{&l.Until},
		&l.Turn, &l.Arrival, stamp{&l.Since}, stamp{&l.NotBefore},
		stamp{&l.Failing}, &l.Stop, &l.Last, &l.Live, &l.Notice, &l.Caller)
	return l, scan(dests...)
}

func scanEntry(scan scanner) (journal.Entry, error) {
	var e journal.Entry
	var n int64
	err := scan(&n, document{&e})
	e.N = n
	return e, err
}

// encodeVotes returns the stored form of votes; "" = none.
func encodeVotes(votes []string) (string, error) {
	if len(votes) == 0 {
		return "", nil
	}
	return encodeJSON(votes)
}

func approvalValues(a *bot.Approval) ([]any, error) {
	votes, err := encodeVotes(a.Votes)
	if err != nil {
		return nil, err
	}
	values := append([]any{a.ID, a.Short, string(a.Session), a.Turn, a.Call}, placeValues(&a.Place)...)
	return append(values, a.Caller, a.Tool, a.Hash, orNull(a.Body), string(a.State), a.Scope,
		a.By, a.ByName, votes, a.Needed,
		toNanos(a.Created), toNanos(a.Expires), toNanos(a.Decided), a.Row), nil
}

func approvalDests(a *bot.Approval) []any {
	dests := append([]any{&a.ID, &a.Short, &a.Session, &a.Turn, &a.Call}, placeDests(&a.Place)...)
	return append(dests, &a.Caller, &a.Tool, &a.Hash, (*[]byte)(&a.Body), &a.State, &a.Scope,
		&a.By, &a.ByName, document{&a.Votes}, &a.Needed,
		stamp{&a.Created}, stamp{&a.Expires}, stamp{&a.Decided}, &a.Row)
}

func scanApproval(scan scanner) (bot.Approval, error) {
	var a bot.Approval
	return a, scan(approvalDests(&a)...)
}

// scanQuestion reads the number, then approvalColumns.
func scanQuestion(scan scanner) (state.Question, error) {
	var q state.Question
	return q, scan(append([]any{&q.N}, approvalDests(&q.Approval)...)...)
}

// rowValues returns the id and rowColumns.
func rowValues(r *bot.Row, content string) []any {
	values := append([]any{r.ID, string(r.Session), r.Turn}, placeValues(&r.Place)...)
	return append(values, string(r.Purpose), content, r.ReplyTo, r.Edit, r.EditRow, r.Query, toBit(r.Alert),
		r.Key, string(r.State), r.Message,
		r.Attempts, r.Unconfirmed, toNanos(r.Doubt), toNanos(r.NotBefore), toNanos(r.Created), r.Problem)
}

// scanRow reads the id, then rowColumns.
func scanRow(scan scanner) (bot.Row, error) {
	var r bot.Row
	dests := append([]any{&r.ID, &r.Session, &r.Turn}, placeDests(&r.Place)...)
	dests = append(dests, &r.Purpose, document{&r.Content}, &r.ReplyTo, &r.Edit, &r.EditRow,
		&r.Query, flag{&r.Alert}, &r.Key, &r.State,
		&r.Message, &r.Attempts, &r.Unconfirmed, stamp{&r.Doubt}, stamp{&r.NotBefore}, stamp{&r.Created}, &r.Problem)
	return r, scan(dests...)
}

func scanCharge(scan scanner) (bot.Charge, error) {
	var c bot.Charge
	return c, scan(&c.Key, &c.Scope, &c.Unit, &c.Day, &c.N)
}
