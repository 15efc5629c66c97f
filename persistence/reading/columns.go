package reading

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// The columns of each table, in the order in which the functions of this file read and write them.
const (
	PlaceColumns   = `channel, bot, surface, chat, thread, grp`
	PlaceWidth     = 6 // how many PlaceColumns there are
	ArrivalColumns = `seq, channel, bot, id, source, session, express, raw, at, attempts, problem`
	LaneColumns    = `session, ` + PlaceColumns + `, workspace, state, fence, owner,
		until, turn, arrival, since, not_before, failing, stop, last, live, notice, caller`
	ApprovalColumns = `id, short, session, turn, call, ` + PlaceColumns +
		`, caller, tool, hash, body, state, scope, decider, name, votes, needed, created, expires, decided, card`
	RowColumns = `session, turn, ` + PlaceColumns +
		`, purpose, content, reply_to, edit, edit_row, query, alert, key, state, message, attempts, unconfirmed, resent,
			not_before, created, problem`
)

// Scan copies the columns of one row of an answer to dests.
type Scan func(dests ...any) error

// Nanos converts a time for storage, in nanoseconds since 1970; 0 = none. Times outside the range of the column (1677
// to 2262) are clamped.
func Nanos(at time.Time) int64 {
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

// TimeOf converts a stored time.
func TimeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Stamp scans a stored time.
type Stamp struct{ To *time.Time }

// Scan implements sql.Scanner.
func (s Stamp) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T, not as a number", value)
	}
	*s.To = TimeOf(n)
	return nil
}

// Text scans a text that is stored as text or as bytes. NULL leaves it unchanged.
type Text struct{ To *string }

// Scan implements sql.Scanner.
func (t Text) Scan(value any) error {
	data, err := bytesOf(value)
	if data != nil {
		*t.To = string(data)
	}
	return err
}

// Document scans stored JSON. NULL and empty leave the value unchanged.
type Document struct{ To any }

// Scan implements sql.Scanner.
func (d Document) Scan(value any) error {
	data, err := bytesOf(value)
	if err != nil || len(data) == 0 {
		return err
	}
	if err := json.Unmarshal(data, d.To); err != nil {
		return fmt.Errorf("decode stored %T: %w", d.To, err)
	}
	return nil
}

// bytesOf gives a stored text or bytes; nil for NULL.
func bytesOf(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case []byte:
		return v, nil
	}
	return nil, fmt.Errorf("a text is stored as %T", value)
}

// Encode returns JSON for storage.
func Encode(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return data, nil
}

// EncodeEntry returns the stored form of a journal entry. Its number is a column.
func EncodeEntry(entry journal.Entry) ([]byte, error) {
	if !entry.At.IsZero() {
		entry.At = entry.At.UTC()
	}
	return Encode(entry)
}

// EncodeVotes returns the stored form of votes; nil for none.
func EncodeVotes(votes []string) ([]byte, error) {
	if len(votes) == 0 {
		return nil, nil
	}
	return Encode(votes)
}

// OrNull converts bytes for storage: empty becomes NULL.
func OrNull(data []byte) any {
	if len(data) == 0 {
		return nil
	}
	return data
}

// PlaceValues returns PlaceColumns.
func PlaceValues(p *bot.Place) []any {
	return []any{p.Channel, p.Bot, p.Surface, p.Chat, p.Thread, p.Group}
}

func placeDests(p *bot.Place) []any {
	return []any{&p.Channel, &p.Bot, &p.Surface, &p.Chat, &p.Thread, &p.Group}
}

// ScanArrival reads ArrivalColumns.
func ScanArrival(scan Scan) (bot.Arrival, error) {
	var a bot.Arrival
	err := scan(&a.Seq, &a.Channel, &a.Bot, &a.ID, (*string)(&a.Source),
		(*string)(&a.Session), &a.Express, &a.Raw, Stamp{&a.At}, &a.Attempts,
		&a.Problem)
	return a, err
}

// LaneValues returns LaneColumns.
func LaneValues(l *bot.Lane) []any {
	values := append([]any{string(l.Session)}, PlaceValues(&l.Place)...)
	return append(values, l.Workspace, string(l.State), l.Fence, l.Owner, Nanos(l.Until),
		l.Turn, l.Arrival, Nanos(l.Since), Nanos(l.NotBefore),
		Nanos(l.Failing), l.Stop, l.Last, l.Live, l.Notice, l.Caller)
}

// LaneDests returns where LaneColumns are read to.
func LaneDests(l *bot.Lane) []any {
	dests := append([]any{(*string)(&l.Session)}, placeDests(&l.Place)...)
	return append(dests, &l.Workspace, (*string)(&l.State), &l.Fence, &l.Owner, Stamp{&l.Until},
		&l.Turn, &l.Arrival, Stamp{&l.Since}, Stamp{&l.NotBefore},
		Stamp{&l.Failing}, &l.Stop, &l.Last, &l.Live, &l.Notice, &l.Caller)
}

// ScanLane reads LaneColumns.
func ScanLane(scan Scan) (bot.Lane, error) {
	var l bot.Lane
	return l, scan(LaneDests(&l)...)
}

// ScanEntry reads the number and the body of a journal entry.
func ScanEntry(scan Scan) (journal.Entry, error) {
	var e journal.Entry
	var n int64
	err := scan(&n, Document{&e})
	e.N = n
	return e, err
}

// ApprovalValues returns ApprovalColumns; votes are those of the question in the form of the store.
func ApprovalValues(a *bot.Approval, votes any) []any {
	values := append([]any{a.ID, a.Short, string(a.Session), a.Turn, a.Call}, PlaceValues(&a.Place)...)
	return append(values, a.Caller, a.Tool, a.Hash, OrNull(a.Body), string(a.State), a.Scope,
		a.By, a.ByName, votes, a.Needed,
		Nanos(a.Created), Nanos(a.Expires), Nanos(a.Decided), a.Row)
}

func approvalDests(a *bot.Approval) []any {
	dests := append([]any{&a.ID, &a.Short, (*string)(&a.Session), &a.Turn, &a.Call}, placeDests(&a.Place)...)
	return append(dests, &a.Caller, &a.Tool, &a.Hash, (*[]byte)(&a.Body), (*string)(&a.State), &a.Scope,
		&a.By, &a.ByName, Document{&a.Votes}, &a.Needed,
		Stamp{&a.Created}, Stamp{&a.Expires}, Stamp{&a.Decided}, &a.Row)
}

// ScanApproval reads ApprovalColumns.
func ScanApproval(scan Scan) (bot.Approval, error) {
	var a bot.Approval
	return a, scan(approvalDests(&a)...)
}

// ScanQuestion reads the number of a question, then ApprovalColumns.
func ScanQuestion(scan Scan) (state.Question, error) {
	var q state.Question
	return q, scan(append([]any{&q.N}, approvalDests(&q.Approval)...)...)
}

// RowValues returns RowColumns of a new row as it is delivered; content is that of the row in the form of the store.
func RowValues(r *bot.Row, d *state.Delivery, content any, created time.Time) []any {
	values := append([]any{string(r.Session), r.Turn}, PlaceValues(&r.Place)...)
	return append(values, string(r.Purpose), content, r.ReplyTo, r.Edit, r.EditRow, r.Query, r.Alert,
		r.Key, string(d.State), d.Message,
		d.Attempts, d.Unconfirmed, Nanos(d.Doubt), Nanos(d.NotBefore), Nanos(created), d.Problem)
}

// ScanRow reads the id, then RowColumns.
func ScanRow(scan Scan) (bot.Row, error) {
	var r bot.Row
	dests := append([]any{&r.ID, (*string)(&r.Session), &r.Turn}, placeDests(&r.Place)...)
	dests = append(dests, (*string)(&r.Purpose), Document{&r.Content}, &r.ReplyTo, &r.Edit, &r.EditRow,
		&r.Query, &r.Alert, &r.Key, (*string)(&r.State),
		&r.Message, &r.Attempts, &r.Unconfirmed, Stamp{&r.Doubt}, Stamp{&r.NotBefore}, Stamp{&r.Created}, &r.Problem)
	return r, scan(dests...)
}

// ScanCharge reads key, scope, unit, day and n.
func ScanCharge(scan Scan) (bot.Charge, error) {
	var c bot.Charge
	return c, scan(&c.Key, &c.Scope, &c.Unit, &c.Day, &c.N)
}

// ScanFact reads bucket, key, value and expires.
func ScanFact(scan Scan) (bot.Fact, error) {
	var f bot.Fact
	return f, scan(&f.Bucket, &f.Key, Text{&f.Value}, Stamp{&f.Expires})
}
