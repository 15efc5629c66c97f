package approval

// Questions that a group does not see: their cards are in the private chats of those who may decide, and the group reads
// only that it waits. A copy of the card is found by the key of its row, so that nothing else has to be stored.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// copyKey is between the key of a question and the person in whose private chat a copy of its card is.
const copyKey = "/to/"

// privateChat is where a person is alone with the bot.
func privateChat(place bot.Place, caller string) bot.Place {
	_, id, _ := strings.Cut(caller, ":")
	return bot.Place{Channel: place.Channel, Bot: place.Bot, Surface: place.Surface, Chat: id}
}

// IsHidden reports whether the group of a question does not see it.
func IsHidden(a *bot.Approval) bool {
	info, err := readGrant(a)
	return err == nil && info.Hidden
}

// decidersOf lists the people who may decide about a question of caller, each once.
func decidersOf(r Rights, caller string) []string {
	list := slices.Clone(r.Approvers)
	if r.Everybody() {
		list = append(list, caller)
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(id string) bool { return id == "" })
}

// lastRows is how many of the newest messages to somebody are looked at for one that has arrived.
const lastRows = 20

// started reports whether somebody has ever begun a private chat, which a bot cannot: there is a conversation, or
// something was sent to them.
func (b *Broker) started(ctx context.Context, place bot.Place) (bool, error) {
	lanes, err := b.deps.Store.InChat(ctx, place.ChatKey(), 1)
	if err != nil || len(lanes) > 0 {
		return len(lanes) > 0, err
	}
	rows, err := b.deps.Store.Rows(ctx, place.SessionKey(""), lastRows)
	return slices.ContainsFunc(rows, func(r bot.Row) bool { return r.State == bot.Sent }), err
}

// hide adds a hidden question to a change: to the private chats of those who may decide and have written there before,
// and to the group that it waits for them.
func (b *Broker) hide(
	ctx context.Context, a *bot.Approval, info *body, rights Rights, base bot.Row, change *bot.Change,
) error {
	var copies []bot.Row
	info.Hidden = true
	for _, caller := range decidersOf(rights, a.Caller) {
		started, err := b.started(ctx, privateChat(a.Place, caller))
		if err != nil {
			return fmt.Errorf("look who can be asked in private: %w", err)
		}
		if !started {
			continue
		}
		rows, err := b.copyRows(ctx, a, caller)
		if err != nil {
			return err
		}
		copies, info.Copies = append(copies, rows...), append(info.Copies, caller)
	}
	var err error
	if a.Body, err = json.Marshal(info); err != nil {
		return fmt.Errorf("question: %w", err)
	}
	base.Content, base.Key = b.waitingCard(a, info), askKey+a.ID
	change.Ask = append(change.Ask, *a)
	change.Cards = append(change.Cards, bot.Card{Approval: a.ID, Send: len(change.Send)})
	change.Send = append(append(change.Send, base), copies...)
	return nil
}

// waitingCard is what the group reads of a hidden question.
func (b *Broker) waitingCard(a *bot.Approval, info *body) bot.Content {
	w, asked := b.deps.Words.At(a.Place), 0
	for _, caller := range info.Copies {
		if a.Needed <= 1 || caller != a.Caller { // of several approvals, none is the asker's
			asked++
		}
	}
	if asked < a.Needed {
		return bot.Content{Text: w.HiddenTooFew(info.Language, a.Needed, a.Expires), Language: info.Language}
	}
	return bot.Content{Text: w.HiddenWaiting(info.Language, a.Needed, a.Expires, a.Short), Language: info.Language}
}

// copyRows returns the card of a hidden question for one person, with the file before it if there is one.
func (b *Broker) copyRows(ctx context.Context, a *bot.Approval, caller string) ([]bot.Row, error) {
	card, file, err := b.questionCard(a, b.inPrivate(a, caller))
	if err != nil {
		return nil, err
	}
	to := privateChat(a.Place, caller)
	row := bot.Row{
		Session: to.SessionKey(""), Place: to, Purpose: bot.Question, Key: askKey + a.ID + copyKey + to.Chat,
		Content: card,
	}
	if file == nil {
		return []bot.Row{row}, nil
	}
	first := row
	first.Key += fileKey
	first.Content = bot.Content{Text: file.Name, File: b.keepFile(ctx, row.Session, file)}
	return []bot.Row{first, row}, nil
}

// reader is who reads a card.
type reader struct {
	words    texts.Words // for where they read it
	language string      // "" = that of the words
	origin   string      // where the question comes from; "" = from where they read it
	asker    bool        // they alone read it, and have asked
}

// readerFor is whoever reads the card on which msg decides or presses; nil = those of the question's own place.
func (b *Broker) readerFor(a *bot.Approval, msg *bot.Message) reader {
	info, err := readGrant(a) // one that cannot be read has only the lines that need no language
	if err != nil || !info.Hidden || msg == nil {
		return reader{words: b.deps.Words.At(a.Place), language: info.Language}
	}
	to := b.inPrivate(a, msg.Caller)
	to.language = msg.Language
	return to
}

// inPrivate is a person who reads a hidden question in their private chat: in the language that they are known to read.
func (b *Broker) inPrivate(a *bot.Approval, caller string) reader {
	to := reader{words: b.deps.Words.At(privateChat(a.Place, caller))}
	info, err := readGrant(a)
	if err != nil {
		return to
	}
	if to.asker = caller == a.Caller; to.asker {
		to.language = info.Language
	}
	group := info.Title
	if b.deps.Called != nil {
		group = cmp.Or(b.deps.Called()[a.Place.Channel+":"+a.Place.Chat], group)
	}
	to.origin = to.words.HiddenOrigin(to.language, group)
	return to
}

// above puts above a card where the question comes from.
func (r reader) above(card bot.Content) bot.Content {
	card.Language = cmp.Or(r.language, r.words.Language)
	if r.origin == "" {
		return card
	}
	head := r.origin + "\n"
	card.Text = head + card.Text
	entities := render.Inert(r.origin) // the title of a group is chosen by its members
	for _, e := range card.Entities {
		e.Offset += render.Length(head)
		entities = append(entities, e)
	}
	card.Entities = entities
	return card
}

// copyOf returns the row of the card that a person has of a hidden question; ok is false if they have none.
func (b *Broker) copyOf(ctx context.Context, a *bot.Approval, caller string) (row bot.Row, ok bool, err error) {
	key := askKey + a.ID + copyKey + privateChat(a.Place, caller).Chat
	found := false
	for _, key := range []string{key, key + againKey} { // the newest one counts
		r, err := b.deps.Store.RowOf(ctx, key)
		if errors.Is(err, bot.ErrNotFound) {
			continue
		}
		if err != nil {
			return row, false, fmt.Errorf("read the card of a question: %w", err)
		}
		row, found = r, true
	}
	return row, found && row.State != bot.Dead, nil
}

// onCopy reports whether a button was pressed on the card that a person has of a hidden question.
func (b *Broker) onCopy(ctx context.Context, a *bot.Approval, msg *bot.Message) (bool, error) {
	if msg.Caller == "" || msg.Place.Group || msg.Place.ChatKey() != privateChat(a.Place, msg.Caller).ChatKey() {
		return false, nil
	}
	row, ok, err := b.copyOf(ctx, a, msg.Caller)
	same := msg.Message == "" || row.Message == "" || !row.Doubt.IsZero() || row.Message == msg.Message
	return ok && same, err
}

// concerns reports whether a question can be decided by a command where a message was written. show: its card has to be
// shown to the person first.
func (b *Broker) concerns(ctx context.Context, a *bot.Approval, msg *bot.Message) (here, show bool, err error) {
	group := a.Place.ChatKey() == msg.Place.ChatKey()
	if !IsHidden(a) {
		return group, false, nil
	}
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return false, false, err
	}
	own := !msg.Place.Group && msg.Caller != "" && msg.Place.ChatKey() == privateChat(a.Place, msg.Caller).ChatKey()
	if !group && !(own && slices.Contains(decidersOf(rights, a.Caller), msg.Caller)) {
		return false, false, nil
	}
	_, has, err := b.copyOf(ctx, a, msg.Caller)
	return true, !has, err
}

// showFirst answers a command about a hidden question whose card the person does not have: in private with the card.
func (b *Broker) showFirst(
	ctx context.Context, a *bot.Approval, msg *bot.Message, say func(text string, refused bool) bot.Row,
) (turn.Effect, error) {
	if msg.Place.Group {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.HiddenUnseen(msg.Language), true)}}}, nil
	}
	rows, err := b.copyRows(ctx, a, msg.Caller)
	return turn.Effect{Change: bot.Change{Send: rows}}, err
}

// spreadEffect is spread for the effect of a press or a command.
func (b *Broker) spreadEffect(
	ctx context.Context, a *bot.Approval, msg *bot.Message, e turn.Effect, err error,
) (turn.Effect, error) {
	if err != nil {
		return e, err
	}
	var after *bot.Approval
	for _, d := range e.Change.Decide {
		if d.ID == a.ID {
			after = questionAfter(a, d)
		}
	}
	return e, b.spread(ctx, a, after, msg, &e.Change)
}

// spread keeps what a Change says about a hidden question out of its group, and brings it to those who have its card: a
// decision and a vote to all of them, what somebody only looks at to their own. after is the question once it is
// decided or voted on; nil = it is as it was. msg is the press or command; nil = there is none.
func (b *Broker) spread(ctx context.Context, a, after *bot.Approval, msg *bot.Message, change *bot.Change) error {
	if !IsHidden(a) {
		return nil
	}
	var rows []bot.Row
	for _, row := range change.Send {
		edits := a.Row != 0 && row.EditRow == a.Row
		switch {
		case !edits && row.ReplyTo != bot.ReplyToRow(a.Row):
			rows = append(rows, row)
		case edits && after != nil:
			if after.State != bot.Open {
				group := row
				group.Content = b.decidedWaiting(after)
				rows = append(rows, group)
			}
			more, err := b.copyEdits(ctx, a, after, msg, row.Content)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		case msg != nil:
			row.Place = msg.Place
			if edits {
				row.EditRow, row.Edit = 0, msg.Message
			} else {
				row.ReplyTo, row.Key = msg.Message, row.Key+copyKey+msg.Person
			}
			rows = append(rows, row)
		}
	}
	change.Send = rows
	return nil
}

// decidedWaiting is what the group reads of a hidden question that is decided: by whom, and not what about.
func (b *Broker) decidedWaiting(a *bot.Approval) bot.Content {
	info, err := readGrant(a)
	if err != nil {
		return bot.Content{}
	}
	text := b.deps.Words.At(a.Place).Decided(info.Language, b.signedBy(a))
	return bot.Content{Text: text, Entities: render.Inert(text), Language: info.Language}
}

// copyEdits returns the rows by which all cards of a hidden question show what has become of it, also those of people who
// may not decide any more. own is what the person sees who has decided.
func (b *Broker) copyEdits(
	ctx context.Context, a, after *bot.Approval, msg *bot.Message, own bot.Content,
) (rows []bot.Row, err error) {
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return nil, err
	}
	info, err := readGrant(a)
	if err != nil {
		return nil, err
	}
	people := append(decidersOf(rights, a.Caller), info.Copies...)
	slices.Sort(people)
	for _, caller := range slices.Compact(people) {
		had, ok, err := b.copyOf(ctx, a, caller)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		var shown bot.Content
		switch to := b.inPrivate(after, caller); {
		case after.State == bot.Open:
			if shown, _, err = b.questionCard(after, to); err != nil {
				return nil, err
			}
		case after.State == bot.Denied && msg != nil && msg.Caller == caller: // with what can be said about it
			shown = own
		default:
			shown = b.decidedCard(after, to, "")
		}
		rows = append(rows, bot.Row{
			Session: had.Session, Place: had.Place, Purpose: bot.Record, EditRow: had.ID, Content: shown,
		})
	}
	return rows, nil
}
