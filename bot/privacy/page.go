package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/transcript"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// pageWord is what is written behind /export to get a conversation as a page.
	pageWord = "page"
	// pressPage is the button that does the same.
	pressPage = "p"
	// pageEvery is how long a person waits between two pages.
	pageEvery = time.Minute
)

// pageButton is the button below the answer to /export.
func (d *Handler) pageButton(language string, of Person) [][]bot.Button {
	return [][]bot.Button{{{
		Label: d.deps.Words.TranscriptButton(language), Data: strings.Join([]string{Prefix, pressPage, of.ID, ""}, ":"),
	}}}
}

// ExportPage answers /export page: the conversation in which it is written is made a page, which comes to the private
// chat of the person, because others may not have seen all of it.
func (d *Handler) ExportPage(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	say := func(text string) turn.Effect { return call.ReplyAside(bot.Content{Text: text}) }
	fact, refusal, err := d.orderPage(ctx, call)
	if err != nil || refusal != "" {
		return say(refusal), err
	}
	e := say(w.TranscriptBegun(msg.Language, msg.Place.Group))
	e.Change.Facts, e.Then = fact, d.lookNow
	return e, nil
}

// pressedPage answers the button of a page.
func (d *Handler) pressedPage(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	fact, refusal, err := d.orderPage(ctx, call)
	if err != nil {
		return turn.Effect{}, err
	}
	toast.Content.Text, toast.Alert = refusal, refusal != ""
	if refusal == "" {
		toast.Content.Text = d.deps.Words.TranscriptBegun(msg.Language, false)
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}, Facts: fact}, Then: d.lookNow}, nil
}

// orderPage returns the facts by which a page is made, or why none is.
func (d *Handler) orderPage(ctx context.Context, call *turn.Call) (order []bot.Fact, refusal string, err error) {
	msg, w := call.Message, d.deps.Words
	of, ok := personOf(msg)
	if !ok || !msg.Place.Ordinary() || msg.FromBot {
		return nil, w.ForgetPrivate(msg.Language), nil
	}
	x := exporting{
		Session: call.Session, Person: of, Place: msg.Place, Language: msg.Language, At: d.now(),
		Page: &transcript.Order{Session: call.Session, Caller: msg.Caller, Name: msg.Name, Group: msg.Place.Group},
	}
	if msg.Place.Group {
		x.Place = bot.Place{
			Channel: msg.Place.Channel, Bot: msg.Place.Bot, Surface: msg.Place.Surface, Chat: msg.Person,
		}
		x.Session = x.Place.SessionKey("")
		// a bot cannot begin a chat: whoever has never written there is not reached
		known, err := d.store.InChat(ctx, x.Place.ChatKey(), 1)
		if err != nil {
			return nil, "", fmt.Errorf("look whether somebody can be reached: %w", err)
		}
		if len(known) == 0 {
			return nil, w.TranscriptFirst(msg.Language), nil
		}
		rights, err := d.deps.Rights(ctx, msg.Place, "")
		if err != nil {
			return nil, "", err
		}
		x.Page.Everything = call.Admin || slices.Contains(rights.Approvers, msg.Caller)
	}
	last, err := d.store.Fact(ctx, pageBucket, of.Caller(), d.now())
	if err != nil {
		return nil, "", fmt.Errorf("when was the last page: %w", err)
	}
	if last != "" && last != msg.ID {
		return nil, w.TranscriptOften(msg.Language), nil
	}
	if some, err := d.deps.Pages.Any(ctx, x.Page); err != nil || !some {
		return nil, w.TranscriptNothing(msg.Language), err
	}
	value, err := json.Marshal(x)
	if err != nil {
		return nil, "", fmt.Errorf("note a page: %w", err)
	}
	return []bot.Fact{
		{Bucket: exportBucket, Key: msg.ID, Value: string(value), Expires: d.now().Add(exportFor)},
		{Bucket: pageBucket, Key: of.Caller(), Value: msg.ID, Expires: d.now().Add(pageEvery)},
	}, "", nil
}

// tryPage writes a page.
func (d *Handler) tryPage(ctx context.Context, x *exporting, bare bool) (content bot.Content, fits bool, err error) {
	w := d.deps.Words
	file := &bot.File{Name: "conversation.html", Type: "text/html"}
	err = d.writeFile(ctx, x, file, func(out io.Writer) error {
		return d.deps.Pages.Write(ctx, x.Page, x.Place, x.Language, bare, out)
	})
	switch {
	case errors.Is(err, errLarge):
		return content, false, nil
	case errors.Is(err, transcript.ErrNothing):
		return bot.Content{Text: w.TranscriptNothing(x.Language)}, true, nil
	case err != nil:
		return content, false, err
	}
	return bot.Content{Text: w.TranscriptDone(x.Language, bare), File: file}, true, nil
}
