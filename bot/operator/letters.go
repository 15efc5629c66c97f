package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	// decided holds what was decided about dead letters: the second one finds it.
	decided    = "operator_letter"
	decidedFor = 60 * 24 * time.Hour // longer than dead letters are listed

	kindArrival = "arrival"
	kindRow     = "row"
	doRetry     = "retry"
	doDrop      = "drop"
)

// decision is what was decided about a dead letter.
type decision struct {
	Do string    `json:"do"`
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func letterKey(kind string, id int64) string { return kind + "/" + strconv.FormatInt(id, 10) }

// rowKey is the key of the decision about a row. A question is sent again as the same row, so what is decided about it
// counts until it has been tried again.
func rowKey(row *bot.Row) string {
	key := letterKey(kindRow, row.ID)
	if row.Purpose == bot.Question {
		key += "/" + strconv.Itoa(row.Attempts)
	}
	return key
}

// keyOf is the key of the decision about a dead letter.
func (p *Page) keyOf(ctx context.Context, in letter) (string, error) {
	if in.Kind != kindRow {
		return letterKey(in.Kind, in.ID), nil
	}
	row, err := p.deps.Store.Row(ctx, in.ID)
	if err != nil {
		return "", err
	}
	return rowKey(&row), nil
}

// listLetters lists arrivals that were given up, and messages that may not have arrived or were given up.
func (p *Page) listLetters(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	before, err := queryNumber(r, "before")
	if err != nil {
		return nil, err
	}
	d := &p.deps
	made, err := d.Store.FactsOf(ctx, decided, kindRow, d.Now())
	if err != nil {
		return nil, err
	}
	done := make(map[string]bool, len(made))
	for _, f := range made {
		done[f.Key] = true
	}
	dead, err := d.Store.DeadLetters(ctx, PageSize)
	if err != nil {
		return nil, err
	}
	arrivals := []Arrival{}
	for i := range dead {
		if dead[i].Channel == d.Channel && dead[i].Bot == d.Bot {
			arrivals = append(arrivals, arrivalOf(&dead[i]))
		}
	}
	rows, next, names := []Row{}, int64(0), d.Names()
	for _, state := range []bot.RowState{bot.Unknown, bot.Dead} {
		list, err := d.Store.RowsIn(ctx, d.Channel, d.Bot, state, before, PageSize)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if !done[rowKey(&list[i])] {
				rows = append(rows, p.rowOf(&list[i], names))
			}
		}
		if state == bot.Dead && len(list) == PageSize {
			next = list[len(list)-1].ID
		}
	}
	return map[string]any{"arrivals": arrivals, "rows": rows, "before": next}, nil
}

// letter is what a reader wants done about a dead letter.
type letter struct {
	Kind string `json:"kind"`
	ID   int64  `json:"id"`
	Do   string `json:"do"`
}

// decideLetter retries or drops a dead letter, with one Change: on any number of processes it happens once, and it is
// on record exactly if it happened.
func (p *Page) decideLetter(ctx context.Context, v *visitor, in letter) (string, error) {
	if in.Do != doRetry && in.Do != doDrop {
		return "", wrong{http.StatusBadRequest, fmt.Sprintf("do is %q: want retry or drop", in.Do)}
	}
	var change *bot.Change
	var then func(*bot.Applied)
	var err error
	switch in.Kind {
	case kindArrival:
		change, then, err = p.arrivalChange(ctx, in)
	case kindRow:
		change, then, err = p.rowChange(ctx, in)
	default:
		return "", wrong{http.StatusBadRequest, fmt.Sprintf("kind is %q: want arrival or row", in.Kind)}
	}
	if err != nil {
		return "", err
	}
	key, err := p.keyOf(ctx, in)
	if err != nil {
		return "", err
	}
	now, none := p.deps.Now(), ""
	raw, err := json.Marshal(decision{Do: in.Do, By: v.Caller, At: now.UTC()})
	if err != nil {
		return "", fmt.Errorf("decide about a dead letter: %w", err)
	}
	change.Facts = append(change.Facts, bot.Fact{
		Bucket: decided, Key: key, Value: string(raw), Expires: now.Add(decidedFor), Was: &none,
	})
	applied, err := p.recordChange(ctx, change, p.auditCall(v, "admin_"+in.Do, in))
	if errGone(err) {
		return "", p.decidedBefore(ctx, in)
	}
	if err != nil {
		return "", err
	}
	then(applied)
	if in.Do == doRetry {
		return "It is tried again.", nil
	}
	return "It is dropped.", nil
}

// decidedBefore says who has decided before.
func (p *Page) decidedBefore(ctx context.Context, in letter) error {
	key, err := p.keyOf(ctx, in)
	if err != nil {
		return err
	}
	value, err := p.deps.Store.Fact(ctx, decided, key, p.deps.Now())
	var made decision
	if err != nil || json.Unmarshal([]byte(value), &made) != nil {
		return wrong{http.StatusConflict, "this is no dead letter any more"}
	}
	word := map[string]string{doRetry: "retried", doDrop: "dropped"}[made.Do]
	return wrong{
		http.StatusConflict,
		fmt.Sprintf("%s has %s this already, at %s", cmp.Or(p.deps.Names()[made.By], made.By), word, made.At.Format(time.RFC3339)),
	}
}

// arrivalChange finishes an arrival that was given up. A retry stores it once more under an id of its own, so that it
// begins a turn of its own: that of the first one has ended, and was paid for.
func (p *Page) arrivalChange(ctx context.Context, in letter) (*bot.Change, func(*bot.Applied), error) {
	dead, err := p.deps.Store.DeadLetters(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	for i := range dead {
		a := &dead[i]
		if a.Seq != in.ID || a.Channel != p.deps.Channel || a.Bot != p.deps.Bot {
			continue
		}
		change := &bot.Change{Done: []int64{a.Seq}}
		if in.Do == doDrop {
			return change, func(*bot.Applied) {}, nil
		}
		if len(a.Raw) == 0 {
			return nil, nil, errors.Join(wrong{
				http.StatusConflict,
				"its content has been deleted meanwhile: it can only be dropped",
			})
		}
		change.Arrive = []bot.Arrival{{
			Channel: a.Channel,
			Bot:     a.Bot,
			ID:      a.ID + "~" + strconv.FormatInt(a.Seq, 10),
			Source:  a.Source,
			Session: a.Session,
			Express: a.Express,
			Raw:     a.Raw,
			At:      p.deps.Now(),
		}}
		return change, func(*bot.Applied) {
			if a.Session != "" && p.deps.Wake != nil {
				p.deps.Wake(a.Session)
			}
		}, nil
	}
	return nil, nil, p.decidedBefore(ctx, in)
}

// rowChange gives a row up for good. A retry sends its content once more, as a new row: it belongs to the process that
// sends what is new in its chat.
func (p *Page) rowChange(ctx context.Context, in letter) (*bot.Change, func(*bot.Applied), error) {
	row, err := p.deps.Store.Row(ctx, in.ID)
	if err != nil {
		return nil, nil, err
	}
	if row.Place.Channel != p.deps.Channel || row.Place.Bot != p.deps.Bot ||
		row.State != bot.Unknown && row.State != bot.Dead {
		return nil, nil, p.decidedBefore(ctx, in)
	}
	change := &bot.Change{Rows: []bot.RowUpdate{{
		ID: row.ID, From: []bot.RowState{bot.Unknown, bot.Dead}, To: bot.Dead, Problem: row.Problem,
	}}}
	if in.Do == doDrop {
		return change, func(*bot.Applied) {}, nil
	}
	if !hasContent(&row) {
		return nil, nil, wrong{http.StatusConflict, "its content has been deleted meanwhile: it can only be dropped"}
	}
	if row.Purpose == bot.Question { // its approval knows it by this row
		change.Rows[0].To, change.Rows[0].Problem = bot.Pending, ""
		return change, p.deliverTo(row.Place), nil
	}
	again := bot.Row{
		Session: row.Session,
		Turn:    row.Turn,
		Place:   row.Place,
		Purpose: row.Purpose,
		Content: row.Content,
		ReplyTo: row.ReplyTo,
		Edit:    row.Edit,
		Key:     "operator/" + strconv.FormatInt(row.ID, 10),
	}
	change.Send = []bot.Row{again}
	return change, p.deliverTo(row.Place), nil
}

// deliverTo has a place looked at once a row for it is stored.
func (p *Page) deliverTo(place bot.Place) func(*bot.Applied) {
	return func(*bot.Applied) {
		if p.deps.Deliver != nil {
			p.deps.Deliver(place)
		}
	}
}
