package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// Bounds of what is read for a page.
const (
	maxBytes   = 4 << 20 // of all entries (Entry.Size)
	pastPage   = 1000    // entries that one query looks at
	maxEntries = 20_000  // that are looked at beyond those whose steps are shown
)

// ErrNothing means that a conversation has nothing that a page could show.
var ErrNothing = errors.New("nothing was said in this conversation")

// Store is what a page is made from.
type Store interface {
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
	Past(ctx context.Context, session bot.SessionKey, from, before int64) ([]journal.Entry, error)
}

// Receipts say what the answer of a turn took; "" = nothing worth saying (receipt.Receipts).
type Receipts interface {
	Text(
		ctx context.Context, place bot.Place, session bot.SessionKey, language string, turn []journal.Entry,
	) (string, error)
}

// Reader makes pages of conversations. Safe for concurrent use. All fields but Receipts are required.
type Reader struct {
	Store    Store
	Files    blob.Opener
	Receipts func() Receipts          // nil = there are none
	Redact   func(text string) string // removes credentials
	Plain    func(text string) string // returns what a model reads of a result as people read it
	Words    texts.Words
	Now      func() time.Time
}

// Order says of which conversation a page is made, and for whom.
type Order struct {
	Session    bot.SessionKey `json:"session"`
	Caller     string         `json:"caller"`
	Name       string         `json:"name"`
	Group      bool           `json:"group,omitempty"`
	Everything bool           `json:"everything,omitempty"` // the person may see what tools did for others
}

// Write writes the page for who reads at a place. It holds what was said and done since the conversation was begun,
// the newest part of it if it is long: in a group, from the first thing on that the person themselves has said, because
// nobody knows whether they could see what was there before. The error is ErrNothing if there is nothing.
func (r *Reader) Write(
	ctx context.Context, o *Order, place bot.Place, language string, bare bool, out io.Writer,
) error {
	entries, cut, err := r.readOrder(ctx, o)
	if err != nil {
		return err
	}
	deps := Deps{
		Open: func(ctx context.Context, hash string) (io.ReadCloser, error) {
			return r.Files.Open(ctx, string(o.Session), hash)
		},
		Redact: r.Redact, Plain: r.Plain, Words: r.Words.At(place),
	}
	if r.Receipts != nil {
		list := r.Receipts()
		deps.Receipt = func(ctx context.Context, turn []journal.Entry) (string, error) {
			return list.Text(ctx, place, o.Session, language, turn)
		}
	}
	return Write(ctx, deps, &Page{
		Entries: entries, Cut: cut, Name: o.Name, Caller: o.Caller, Group: o.Group, Everything: o.Everything,
		Bare: bare, Language: language, Made: r.Now(),
	}, out)
}

// Any reports whether there is something that a page could show.
func (r *Reader) Any(ctx context.Context, o *Order) (bool, error) {
	_, _, err := r.readOrder(ctx, o)
	if errors.Is(err, ErrNothing) {
		return false, nil
	}
	return err == nil, err
}

// readOrder returns the entries of a page; the error is ErrNothing if there is nothing to show.
func (r *Reader) readOrder(ctx context.Context, o *Order) (entries []journal.Entry, cut bool, err error) {
	if entries, cut, err = r.read(ctx, o.Session); err != nil {
		return nil, false, fmt.Errorf("read the conversation of a page: %w", err)
	}
	if o.Group {
		first := slices.IndexFunc(entries, func(e journal.Entry) bool {
			return e.Kind == journal.UserEntry && e.Child == "" && e.Caller == o.Caller
		})
		if first < 0 {
			return nil, false, ErrNothing
		}
		entries = entries[first:]
	}
	if !slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Spoken() }) {
		return nil, false, ErrNothing
	}
	return entries, cut, nil
}

// read returns the entries of the conversation that is under way, oldest first, and whether earlier ones are left out.
// Of those that were summed up for the model there is only what people and the bot have said.
func (r *Reader) read(ctx context.Context, session bot.SessionKey) (list []journal.Entry, cut bool, err error) {
	tail, err := r.Store.Tail(ctx, session, maxBytes)
	if err != nil {
		return nil, false, err
	}
	began := tail.StateAt(tail.Last()).Began
	for _, e := range tail.Entries {
		if e.Begins() || e.Shortens() { // the first one is in front of a gap
			continue
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, false, nil
	}
	size := 0
	for i := range list {
		size += list[i].Size()
	}
	before := list[0].N
	for looked := 0; before > began+1; looked += pastPage {
		if looked >= maxEntries || size >= maxBytes {
			return list, true, nil
		}
		from := max(began+1, before-pastPage)
		past, err := r.Store.Past(ctx, session, from, before)
		if err != nil {
			return nil, false, err
		}
		before = from
		var more []journal.Entry
		for i := range past {
			if past[i].Child == "" && past[i].Spoken() {
				size += past[i].Size()
				more = append(more, past[i])
			}
		}
		slices.Reverse(more)
		list = append(more, list...)
	}
	return list, false, nil
}
