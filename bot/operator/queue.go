package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Arrival is a message that waits or was given up, without its content.
type Arrival struct {
	Seq      int64          `json:"seq"`
	ID       string         `json:"id"`
	Source   bot.Source     `json:"source,omitempty"`
	Session  bot.SessionKey `json:"session,omitempty"`
	Express  bool           `json:"express,omitempty"`
	At       time.Time      `json:"at"`
	Attempts int            `json:"attempts"`
	Problem  string         `json:"problem,omitempty"`
	Kept     bool           `json:"kept,omitempty"` // its content is still there
}

func arrivalOf(a *bot.Arrival) Arrival {
	return Arrival{
		Seq:      a.Seq,
		ID:       a.ID,
		Source:   a.Source,
		Session:  a.Session,
		Express:  a.Express,
		At:       a.At,
		Attempts: a.Attempts,
		Problem:  a.Problem,
		Kept:     len(a.Raw) > 0,
	}
}

// Row is something to be sent, without its content.
type Row struct {
	ID        int64          `json:"id"`
	Session   bot.SessionKey `json:"session,omitempty"`
	Chat      string         `json:"chat"`
	Title     string         `json:"title,omitempty"` // of the chat, or the name of its person
	Purpose   bot.Purpose    `json:"purpose"`
	State     bot.RowState   `json:"state"`
	Edit      bool           `json:"edit,omitempty"` // it changes a message
	File      string         `json:"file,omitempty"` // media type of the file that it brings
	Length    int            `json:"length"`         // bytes of its text
	Attempts  int            `json:"attempts"`
	Created   time.Time      `json:"created"`
	NotBefore time.Time      `json:"not_before,omitzero"`
	Problem   string         `json:"problem,omitempty"`
	Kept      bool           `json:"kept,omitempty"` // its content is still there
}

func (p *Page) rowOf(r *bot.Row, names map[string]string) Row {
	out := Row{
		ID:        r.ID,
		Session:   r.Session,
		Chat:      r.Place.Chat,
		Title:     names[p.deps.Channel+":"+r.Place.Chat],
		Purpose:   r.Purpose,
		State:     r.State,
		Edit:      r.Edit != "" || r.EditRow != 0,
		Length:    len(r.Content.Text),
		Attempts:  r.Attempts,
		Created:   r.Created,
		NotBefore: r.NotBefore,
		Problem:   r.Problem,
		Kept:      hasContent(r),
	}
	if r.Content.File != nil {
		out.File = r.Content.File.Type
	}
	return out
}

// hasContent reports whether a row still has its content, which is deleted some time after it is finished.
func hasContent(r *bot.Row) bool { return r.Content.Text != "" || r.Content.File != nil }

// listQueue shows what waits: messages in order, and what is to be sent by state, newest first.
func (p *Page) listQueue(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	after, err := queryNumber(r, "after")
	if err != nil {
		return nil, err
	}
	d := &p.deps
	waiting, err := d.Store.Backlog(ctx, d.Channel, d.Bot, after, PageSize+1)
	if err != nil {
		return nil, err
	}
	arrivals := []Arrival{}
	for i := range waiting[:min(PageSize, len(waiting))] {
		arrivals = append(arrivals, arrivalOf(&waiting[i]))
	}
	rows, names := []Row{}, d.Names()
	for _, state := range []bot.RowState{bot.Sending, bot.Pending} {
		list, err := d.Store.RowsIn(ctx, d.Channel, d.Bot, state, 0, PageSize)
		if err != nil {
			return nil, err
		}
		for i := range list {
			rows = append(rows, p.rowOf(&list[i], names))
		}
	}
	lanes, err := d.Store.Lanes(ctx, d.Channel, d.Bot, mostLanes)
	if err != nil {
		return nil, err
	}
	turns := []Session{}
	for i := range lanes {
		if stateRank(lanes[i].State) > 0 && len(turns) < PageSize {
			turns = append(turns, p.sessionOf(&lanes[i], names))
		}
	}
	return map[string]any{"arrivals": arrivals, "more": len(waiting) > PageSize, "turns": turns, "rows": rows}, nil
}
