package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// The columns of each table, in the order of scan and values.
const (
	placeColumns   = `channel, bot, surface, chat, thread, grp`
	arrivalColumns = `seq, channel, bot, id, source, session, express, raw, at, attempts, problem`
	laneColumns    = `session, ` + placeColumns +
		`, state, fence, owner, until, turn, arrival, since, not_before, failing, stop, last,
			live, notice, caller, workspace`
	approvalColumns = `id, short, session, turn, call, ` + placeColumns +
		`, caller, tool, hash, body, state, scope, decider, name, votes, needed, created, expires, decided, card`
	rowColumns = `id, session, turn, ` + placeColumns +
		`, purpose, content, reply_to, edit, edit_row, query, alert, key, state, message, attempts, unconfirmed, resent,
			not_before, created, problem`
)

// row is one row of an answer.
type row interface{ Scan(dests ...any) error }

// nanos converts a time for storage; 0 = none. Times outside the range of the column (1677 to 2262) are clamped.
func nanos(at time.Time) int64 {
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

// timeOf converts a stored time.
func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// stamp scans a stored time.
type stamp struct{ to *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T, not as a number", value)
	}
	*s.to = timeOf(n)
	return nil
}

// document scans stored JSON. NULL and empty leave the value unchanged.
type document struct{ to any }

// Scan implements sql.Scanner.
func (d document) Scan(value any) error {
	data, ok := value.([]byte)
	if !ok && value != nil {
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

// encode returns JSON for storage.
func encode(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return data, nil
}

// encodeEntry returns the stored form of a journal entry. Its number is a column.
func encodeEntry(entry journal.Entry) ([]byte, error) {
	if !entry.At.IsZero() {
		entry.At = entry.At.UTC()
	}
	return encode(entry)
}

// encodeVotes returns the stored form of votes, nil for none.
func encodeVotes(votes []string) ([]byte, error) {
	if len(votes) == 0 {
		return nil, nil
	}
	return encode(votes)
}

// bytesOf converts bytes for storage: empty becomes NULL.
func bytesOf(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// clean replaces what PostgreSQL does not accept in a text, NUL and invalid UTF-8, by U+FFFD.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.Contains(text, "\x00") {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

func placeValues(p *bot.Place) []any {
	return []any{p.Channel, p.Bot, p.Surface, p.Chat, p.Thread, p.Group}
}

// chatValues returns the columns that identify a chat.
func chatValues(p *bot.Place) []any { return []any{p.Channel, p.Bot, p.Surface, p.Chat} }

func chatDests(p *bot.Place) []any { return []any{&p.Channel, &p.Bot, &p.Surface, &p.Chat} }

func placeDests(p *bot.Place) []any {
	return []any{&p.Channel, &p.Bot, &p.Surface, &p.Chat, &p.Thread, &p.Group}
}

func scanArrival(r row) (bot.Arrival, error) {
	var a bot.Arrival
	err := r.Scan(&a.Seq, &a.Channel, &a.Bot, &a.ID, (*string)(&a.Source),
		(*string)(&a.Session), &a.Express, &a.Raw, stamp{&a.At}, &a.Attempts,
		&a.Problem)
	return a, err
}

// laneValues returns the columns of a lane, its session first.
func laneValues(l *bot.Lane) []any {
	values := append([]any{l.Session}, placeValues(&l.Place)...)
	return append(values, string(l.State), l.Fence, l.Owner, nanos(l.Until), l.Turn,
		l.Arrival, nanos(l.Since), nanos(l.NotBefore),
		nanos(l.Failing), l.Stop, l.Last, l.Live, l.Notice, l.Caller, l.Workspace)
}

func laneDests(l *bot.Lane) []any {
	dests := append([]any{(*string)(&l.Session)}, placeDests(&l.Place)...)
	return append(dests, &l.State, &l.Fence, &l.Owner, stamp{&l.Until}, &l.Turn,
		&l.Arrival, stamp{&l.Since}, stamp{&l.NotBefore},
		stamp{&l.Failing}, &l.Stop, &l.Last, &l.Live, &l.Notice, &l.Caller, &l.Workspace)
}

// scanKnown reads laneColumns and the version.
func scanKnown(r row) (known, error) {
	var k known
	return k, r.Scan(append(laneDests(&k.lane), &k.version)...)
}

func scanEntry(r row) (journal.Entry, error) {
	var e journal.Entry
	var n int64
	err := r.Scan(&n, document{&e})
	e.N = n
	return e, err
}

func approvalValues(a *bot.Approval) ([]any, error) {
	votes, err := encodeVotes(a.Votes)
	if err != nil {
		return nil, err
	}
	values := append([]any{a.ID, a.Short, a.Session, a.Turn, a.Call}, placeValues(&a.Place)...)
	return append(values, a.Caller, a.Tool, a.Hash, bytesOf(a.Body), string(a.State), a.Scope,
		a.By, a.ByName, votes, a.Needed,
		nanos(a.Created), nanos(a.Expires), nanos(a.Decided), a.Row), nil
}

func approvalDests(a *bot.Approval) []any {
	dests := append([]any{&a.ID, &a.Short, (*string)(&a.Session), &a.Turn, &a.Call}, placeDests(&a.Place)...)
	return append(dests, &a.Caller, &a.Tool, &a.Hash, (*[]byte)(&a.Body), &a.State, &a.Scope,
		&a.By, &a.ByName, document{&a.Votes}, &a.Needed,
		stamp{&a.Created}, stamp{&a.Expires}, stamp{&a.Decided}, &a.Row)
}

func scanApproval(r row) (bot.Approval, error) {
	var a bot.Approval
	return a, r.Scan(approvalDests(&a)...)
}

// scanQuestion reads n, then approvalColumns.
func scanQuestion(r row) (state.Question, error) {
	var q state.Question
	return q, r.Scan(append([]any{&q.N}, approvalDests(&q.Approval)...)...)
}

func scanRow(r row) (bot.Row, error) {
	var o bot.Row
	dests := append([]any{&o.ID, (*string)(&o.Session), &o.Turn}, placeDests(&o.Place)...)
	dests = append(dests, &o.Purpose, document{&o.Content}, &o.ReplyTo, &o.Edit, &o.EditRow,
		&o.Query, &o.Alert, &o.Key, &o.State,
		&o.Message, &o.Attempts, &o.Unconfirmed, stamp{&o.Doubt}, stamp{&o.NotBefore}, stamp{&o.Created}, &o.Problem)
	return o, r.Scan(dests...)
}

func scanCharge(r row) (bot.Charge, error) {
	var c bot.Charge
	return c, r.Scan(&c.Key, &c.Scope, &c.Unit, &c.Day, &c.N)
}
