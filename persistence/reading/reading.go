// Package reading contains what the SQL stores read alike: the columns of the tables, how a row is read, and the lists
// that a query alone decides. Each store gives the texts of its queries and the way to run them.
package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy/table"
)

// ErrStop ends an answer early, without an error, if the function that sees rows returns it.
var ErrStop = errors.New("enough")

// Runner runs queries. Safe for concurrent use.
type Runner interface {
	// EachRow calls see for every row of a query, until see returns an error, which is returned unless it is ErrStop.
	EachRow(ctx context.Context, see func(Scan) error, query string, args ...any) error
}

// One reads the only row of a query; found is false if there is none.
func One(ctx context.Context, r Runner, see func(Scan) error, query string, args ...any) (found bool, err error) {
	err = r.EachRow(ctx, func(scan Scan) error {
		if err := see(scan); err != nil {
			return err
		}
		found = true
		return ErrStop
	}, query, args...)
	return found, err
}

// List reads all rows of a query.
func List[T any](
	ctx context.Context, r Runner, read func(Scan) (T, error), query string, args ...any,
) ([]T, error) {
	var all []T
	err := r.EachRow(ctx, func(scan Scan) error {
		value, err := read(scan)
		all = append(all, value)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// AtMost is the value for LIMIT: no limit for 0 or less.
func AtMost(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// Queries are the texts of the queries of a Reader. Each field names its parameters, in order.
type Queries struct {
	Approval   string // id
	ApprovalOf string // session, call; the newest
	Open       string // session
	OpenAll    string
	Granted    string // session, hash; the newest
	Asked      string // channel, bot, tool, created after, limit

	Arrival     string // channel, bot, id
	Next        string // session, limit
	Express     string // channel, bot, limit
	Backlog     string // channel, bot, after seq, limit
	DeadLetters string // limit

	Counts string // channel, bot
	Lanes  string // channel, bot, limit
	Stops  string // owner

	Journal string // session, after n
	Past    string // session, from n, before n

	Row        string // id
	RowOf      string // key
	Rows       string // session, limit; the newest first
	OpenRows   string // channel, bot, state, before id, limit
	FailedRows string // channel, bot, before id, limit

	Charges    string // since day
	ChargeSums string // since day
	Usage      string // since day

	Fact  string // bucket, key, now
	Facts string // bucket, from key, now; in the order of keys
}

// Reader implements the parts of bot.Reader, bot.Inspector, bot.Approvals and bot.Facts that a query alone decides.
// Each query sees everything that was committed before it began. Safe for concurrent use.
type Reader struct {
	Run     Runner
	Queries *Queries
	Wrap    func(what string, err error) error // says what could not be read; nil for nil
	Lane    func(bot.Lane) bot.Lane            // is applied to each lane that is listed; nil = not
}

func list[T any](
	ctx context.Context, r *Reader, what string, read func(Scan) (T, error), query string, args ...any,
) ([]T, error) {
	all, err := List(ctx, r.Run, read, query, args...)
	return all, r.Wrap(what, err)
}

// only reads the row that a query finds, which what describes; bot.ErrNotFound if there is none.
func only[T any](
	ctx context.Context, r *Reader, what string, read func(Scan) (T, error), query string, args ...any,
) (T, error) {
	all, err := list(ctx, r, "read "+what, read, query, args...)
	switch {
	case err != nil:
	case len(all) == 0:
		err = fmt.Errorf("%s: %w", what, bot.ErrNotFound)
	default:
		return all[0], nil
	}
	var none T
	return none, err
}

// Approval implements bot.Approvals.
func (r *Reader) Approval(ctx context.Context, id string) (bot.Approval, error) {
	return only(ctx, r, "question "+id, ScanApproval, r.Queries.Approval, id)
}

// ApprovalOf implements bot.Approvals.
func (r *Reader) ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error) {
	return only(ctx, r, "question of call "+call, ScanApproval, r.Queries.ApprovalOf, string(session), call)
}

// OpenApprovals implements bot.Approvals.
func (r *Reader) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	query, args := r.Queries.OpenAll, []any(nil)
	if session != "" {
		query, args = r.Queries.Open, []any{string(session)}
	}
	return list(ctx, r, "list open questions", ScanApproval, query, args...)
}

// GrantedInSession implements bot.Approvals.
func (r *Reader) GrantedInSession(
	ctx context.Context, session bot.SessionKey, hash string,
) (bot.Approval, bool, error) {
	found, err := list(ctx, r, "read grants", ScanApproval, r.Queries.Granted, string(session), hash)
	if err != nil || len(found) == 0 {
		return bot.Approval{}, false, err
	}
	return found[0], true, nil
}

// AskedSince implements bot.Approvals.
func (r *Reader) AskedSince(
	ctx context.Context, channel, botID, tool string, since time.Time, limit int,
) ([]bot.Approval, error) {
	return list(ctx, r, "list questions", ScanApproval, r.Queries.Asked,
		channel, botID, tool, Nanos(since), AtMost(limit))
}

// ArrivalOf implements bot.Inspector.
func (r *Reader) ArrivalOf(ctx context.Context, channel, botID, id string) (bot.Arrival, error) {
	return only(ctx, r, "arrival "+id, ScanArrival, r.Queries.Arrival, channel, botID, id)
}

// Next implements bot.Reader.
func (r *Reader) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	return list(ctx, r, "list waiting arrivals", ScanArrival, r.Queries.Next, string(session), AtMost(limit))
}

// Express implements bot.Reader.
func (r *Reader) Express(ctx context.Context, channel, botID string, limit int) ([]bot.Arrival, error) {
	return list(ctx, r, "list express arrivals", ScanArrival, r.Queries.Express, channel, botID, AtMost(limit))
}

// Backlog implements bot.Inspector.
func (r *Reader) Backlog(ctx context.Context, channel, botID string, after int64, limit int) ([]bot.Arrival, error) {
	return list(ctx, r, "list waiting arrivals", ScanArrival, r.Queries.Backlog, channel, botID, after, AtMost(limit))
}

// DeadLetters implements bot.Inspector.
func (r *Reader) DeadLetters(ctx context.Context, limit int) ([]bot.Arrival, error) {
	return list(ctx, r, "list dead letters", ScanArrival, r.Queries.DeadLetters, AtMost(limit))
}

// Counts implements bot.Inspector.
func (r *Reader) Counts(ctx context.Context, channel, botID string) (bot.Counts, error) {
	var c bot.Counts
	_, err := One(ctx, r.Run, func(scan Scan) error {
		return scan(&c.Running, &c.Parked, &c.Waiting, &c.Queued, &c.Undelivered, &c.Lost, &c.Sessions, &c.DeadLetters)
	}, r.Queries.Counts, channel, botID)
	return c, r.Wrap("count", err)
}

// Lanes implements bot.Inspector.
func (r *Reader) Lanes(ctx context.Context, channel, botID string, limit int) ([]bot.Lane, error) {
	return list(ctx, r, "list lanes", r.scanLane, r.Queries.Lanes, channel, botID, AtMost(limit))
}

func (r *Reader) scanLane(scan Scan) (bot.Lane, error) {
	lane, err := ScanLane(scan)
	if r.Lane != nil {
		lane = r.Lane(lane)
	}
	return lane, err
}

// Stops implements bot.Reader.
func (r *Reader) Stops(ctx context.Context, owner string) ([]bot.Stop, error) {
	return list(ctx, r, "list turns to stop", func(scan Scan) (s bot.Stop, err error) {
		return s, scan((*string)(&s.Session), &s.Turn)
	}, r.Queries.Stops, owner)
}

// Journal implements bot.Reader.
func (r *Reader) Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error) {
	return list(ctx, r, "read journal", ScanEntry, r.Queries.Journal, string(session), after)
}

// Past implements bot.Reader. The query may find more, where a text of ours looks like the kind of an entry.
func (r *Reader) Past(ctx context.Context, session bot.SessionKey, from, before int64) ([]journal.Entry, error) {
	entries, err := list(ctx, r, "read past conversations", ScanEntry, r.Queries.Past, string(session), from, before)
	return slices.DeleteFunc(entries, func(e journal.Entry) bool { return !e.Spoken() && !e.Begins() }), err
}

// Row implements bot.Reader.
func (r *Reader) Row(ctx context.Context, id int64) (bot.Row, error) {
	return only(ctx, r, fmt.Sprintf("row %d", id), ScanRow, r.Queries.Row, id)
}

// RowOf implements bot.Reader.
func (r *Reader) RowOf(ctx context.Context, key string) (bot.Row, error) {
	return only(ctx, r, "row of key "+key, ScanRow, r.Queries.RowOf, key)
}

// Rows implements bot.Inspector.
func (r *Reader) Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error) {
	rows, err := list(ctx, r, "list rows", ScanRow, r.Queries.Rows, string(session), AtMost(limit))
	slices.Reverse(rows)
	return rows, err
}

// RowsIn implements bot.Inspector.
func (r *Reader) RowsIn(
	ctx context.Context, channel, botID string, state bot.RowState, before int64, limit int,
) ([]bot.Row, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	query, args := r.Queries.OpenRows, []any{channel, botID, string(state), before, AtMost(limit)}
	switch state {
	case bot.Pending, bot.Sending, bot.Unknown:
	case bot.Dead:
		query, args = r.Queries.FailedRows, []any{channel, botID, before, AtMost(limit)}
	default:
		return nil, fmt.Errorf("%w: rows in state %q are not listed", bot.ErrInvalid, state)
	}
	return list(ctx, r, "list rows by state", ScanRow, query, args...)
}

// Charges implements bot.Inspector.
func (r *Reader) Charges(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	charges, err := r.listCharges(ctx, "list charges", r.Queries.Charges, sinceDay)
	slices.SortFunc(charges, func(a, b bot.Charge) int {
		return cmp.Or(
			cmp.Compare(a.Day, b.Day), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit),
		)
	})
	return charges, err
}

// Sums implements bot.Inspector.
func (r *Reader) Sums(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	charges, err := r.listCharges(ctx, "add charges up", r.Queries.ChargeSums, sinceDay)
	return bot.SumCharges(charges), err
}

// listCharges reads recent charges by a query, then those that were added to the sums of their days. A charge that is
// added up in between is read twice rather than not at all.
func (r *Reader) listCharges(ctx context.Context, what, query, sinceDay string) ([]bot.Charge, error) {
	recent, err := list(ctx, r, what, ScanCharge, query, sinceDay)
	if err != nil {
		return nil, err
	}
	older, err := list(ctx, r, what, ScanCharge, r.Queries.Usage, sinceDay)
	if err != nil {
		return nil, err
	}
	return append(recent, older...), nil
}

// Fact implements bot.Facts.
func (r *Reader) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	var value string
	_, err := One(ctx, r.Run, func(scan Scan) error { return scan(Text{&value}) },
		r.Queries.Fact, bucket, key, Nanos(now))
	return value, r.Wrap("read fact", err)
}

// FactsOf implements bot.Facts.
func (r *Reader) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	var facts []bot.Fact
	err := r.Run.EachRow(ctx, func(scan Scan) error {
		f, err := ScanFact(scan)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(f.Key, prefix) {
			return ErrStop // the keys with the prefix are adjacent
		}
		facts = append(facts, f)
		return nil
	}, r.Queries.Facts, bucket, prefix, Nanos(now))
	return facts, r.Wrap("list facts", err)
}

// ScanRecord returns a function that reads columns, all of them as bytes. One that is NULL is left out.
func ScanRecord(columns []table.Column) func(Scan) (table.Record, error) {
	return func(scan Scan) (table.Record, error) {
		values, dests := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			dests[i] = &values[i]
		}
		if err := scan(dests...); err != nil {
			return nil, err
		}
		record := table.Record{}
		for i, c := range columns {
			if values[i] != nil {
				record[c.Name] = string(values[i])
			}
		}
		return record, nil
	}
}
