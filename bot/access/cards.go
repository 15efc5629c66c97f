package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/clock"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
)

// mostCards limits the cards that are remembered of one question.
const mostCards = 60

// settleEvery is how often is looked for what was decided elsewhere: by a time that is over, or by a configuration.
const settleEvery = time.Minute

// noteCard remembers a card by the key of its row.
func (s *stranger) noteCard(key string) {
	s.Cards = append(slices.Clip(s.Cards), key)
	s.Cards = s.Cards[max(0, len(s.Cards)-mostCards):]
}

// openCard returns the row of a message with buttons that was sent, or will be, and that msg did not press; ok is false if
// there is none.
func (g *Guard) openCard(ctx context.Context, key string, msg *bot.Message) (row bot.Row, ok bool, err error) {
	if key == "" {
		return row, false, nil
	}
	row, err = g.store.RowOf(ctx, key)
	switch {
	case errors.Is(err, bot.ErrNotFound):
		return row, false, nil
	case err != nil:
		return row, false, fmt.Errorf("read a card: %w", err)
	}
	pressed := msg != nil && msg.Message != "" && row.Message == msg.Message &&
		row.Place.ChatKey() == msg.Place.ChatKey()
	return row, row.State != bot.Dead && row.State != bot.Unknown && !pressed, nil
}

// editOf returns the row that replaces the message of another one.
func editOf(row *bot.Row, content bot.Content) bot.Row {
	return bot.Row{
		Session: row.Session, Place: row.Place, Purpose: bot.Record, EditRow: row.ID, Content: content,
	}
}

// endedCards returns the rows by which the cards about a person or group say what was decided, except the one that msg
// has pressed; they are not remembered any longer.
func (g *Guard) endedCards(
	ctx context.Context, msg *bot.Message, s *stranger, text func(w texts.Words, language string) string,
) ([]bot.Row, error) {
	var rows []bot.Row
	for _, key := range s.Cards {
		row, open, err := g.openCard(ctx, key, msg)
		if err != nil {
			return nil, err
		}
		if open {
			said := text(g.words.At(row.Place), row.Content.Language)
			rows = append(rows, editOf(&row, bot.Content{
				Text: said, Entities: render.Inert(said), Language: row.Content.Language,
			}))
		}
	}
	s.Cards = nil
	return rows, nil
}

// endCards adds to a Change that admits or blocks somebody that the cards about them say so. s is what admins were told
// of them; nil = nothing.
func (g *Guard) endCards(ctx context.Context, msg *bot.Message, e Entry, s *stranger, change *bot.Change) error {
	if s == nil || len(s.Cards) == 0 {
		return nil
	}
	rows, err := g.endedCards(ctx, msg, s, func(w texts.Words, language string) string {
		if e.Role == Blocked {
			return w.Blocked(language, g.displayedPerson(e))
		}
		return w.Admitted(language, g.displayedPerson(e))
	})
	if err != nil {
		return err
	}
	f, err := s.fact(msg.Place, e.ID)
	change.Send, change.Facts = append(change.Send, rows...), append(change.Facts, f)
	return err
}

// strangerOf returns what admins were told about a person or group; nil = nothing.
func (g *Guard) strangerOf(ctx context.Context, place bot.Place, id string) (*stranger, error) {
	list, err := g.listStrangers(ctx, personKey(place, id))
	if s, ok := list[personKey(place, id)]; ok {
		return &s, err
	}
	return nil, err
}

// askMissed adds to the Change that greets an admin what they have not been asked, because the bot may not begin a chat.
func (g *Guard) askMissed(ctx context.Context, msg *bot.Message, change *bot.Change) error {
	all := personKey(msg.Place, "")
	list, err := g.listStrangers(ctx, all)
	if err != nil || g.opts.Private == nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(list)) {
		id, s := strings.TrimPrefix(key, all), list[key]
		decided, err := g.decidedText(ctx, msg.Place, id, s.Name)
		if err != nil {
			return err
		}
		asked := s.Waits || s.Declined || decided != nil
		for _, card := range s.Cards {
			if asked {
				break
			}
			if !strings.HasSuffix(card, "/"+msg.Person) {
				continue
			}
			var row bot.Row
			if row, asked, err = g.openCard(ctx, card, nil); err != nil {
				return err
			}
			switch row.State { // nobody needs to hear that it was lost; what waits comes after the greeting
			case bot.Unknown, bot.Pending:
				change.Rows = append(change.Rows, bot.RowUpdate{
					ID: row.ID, From: []bot.RowState{row.State}, To: bot.Dead,
				})
				asked = false
			}
			if asked {
				if err := g.redrawCard(ctx, msg, id, s, &row, change); err != nil {
					return err
				}
			}
		}
		if asked {
			continue
		}
		change.Send = append(change.Send, g.askingRow(&s, id, msg.Person, msg.Language, "greeted/"+msg.ID))
		f, err := s.fact(msg.Place, id)
		if err != nil {
			return err
		}
		change.Facts = append(change.Facts, f)
	}
	return nil
}

// redrawCard adds to the Change that greets an admin that a card which they got before is in their language.
func (g *Guard) redrawCard(
	ctx context.Context, msg *bot.Message, id string, s stranger, card *bot.Row, change *bot.Change,
) error {
	buttons := g.strangerButtons(msg.Language, id)
	if len(card.Content.Buttons) == 0 || card.Content.Buttons[0][0].Label == buttons[0][0].Label {
		return nil
	}
	var err error
	if s.said, err = g.firstSaid(ctx, msg.Place, id); err != nil {
		return err
	}
	content := g.strangerCard(msg.Language, id, s, "")
	if isGroupID(id) {
		content = g.groupCard(msg.Language, id, s, msg.Person)
	}
	change.Send = append(change.Send, editOf(card, content))
	return nil
}

// Settle asks admins about the groups that asked when there was none, and ends the cards and links about which nobody has
// to decide any more, until ctx ends: what the configuration decides, and what time does. report gets what could not be
// done now; it is tried again. sent is told the places of new messages.
func (g *Guard) Settle(ctx context.Context, report func(err error), sent func(place bot.Place)) error {
	for {
		if err := g.settleOnce(ctx, sent); err != nil && ctx.Err() == nil {
			report(err)
		}
		if !clock.Until(ctx, g.now, g.now().Add(settleEvery), 0, nil) {
			return nil
		}
	}
}

func (g *Guard) settleOnce(ctx context.Context, sent func(place bot.Place)) error {
	place := bot.Place{Channel: g.opts.Channel, Bot: g.opts.Bot}
	return errors.Join(
		g.settleWaiting(ctx, place, sent), g.settleStrangers(ctx, place, sent), g.settleInvitations(ctx, place, sent),
	)
}

// settleWaiting asks the admins about the groups that asked when there was none.
func (g *Guard) settleWaiting(ctx context.Context, place bot.Place, sent func(place bot.Place)) error {
	admins, err := g.allAdmins(ctx, place)
	if err != nil || len(admins) == 0 {
		return err
	}
	unknown := slices.ContainsFunc(admins, func(admin string) bool { return g.nameOf(admin) == "" })
	if unknown && g.now().Sub(g.began) < settleEvery {
		return nil // what they have sent while the bot was away is greeted before they are asked, in their language
	}
	var change bot.Change
	err = g.askWaiting(ctx, place, admins, g.adminNames(), g.languageOf, &change)
	if err != nil || len(change.Send) == 0 {
		return err
	}
	return g.applySettled(ctx, &change, sent)
}

// settleStrangers ends the cards about people and groups that are admitted or blocked by now.
func (g *Guard) settleStrangers(ctx context.Context, place bot.Place, sent func(place bot.Place)) error {
	all := personKey(place, "")
	list, err := g.listStrangers(ctx, all)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(list)) {
		id, s := strings.TrimPrefix(key, all), list[key]
		if len(s.Cards) == 0 {
			continue
		}
		text, err := g.decidedText(ctx, place, id, s.Name)
		if err != nil || text == nil {
			if err != nil {
				return err
			}
			continue
		}
		var change bot.Change
		if change.Send, err = g.endedCards(ctx, nil, &s, text); err != nil {
			return err
		}
		f, err := s.fact(place, id)
		if err != nil {
			return err
		}
		change.Facts = []bot.Fact{f}
		if err := g.applySettled(ctx, &change, sent); err != nil {
			return err
		}
	}
	return nil
}

// decidedText says what was decided about a person or group; nil = nothing yet.
func (g *Guard) decidedText(
	ctx context.Context, place bot.Place, id, name string,
) (text func(w texts.Words, language string) string, err error) {
	read := g.personEntry
	if isGroupID(id) {
		read = g.groupEntry
	}
	e, known, err := read(ctx, place, id)
	e.ID, e.Group = id, isGroupID(id)
	switch {
	case err != nil:
		return nil, err
	case known && e.Role == Blocked:
		return func(w texts.Words, language string) string { return w.Blocked(language, g.displayedPerson(e)) }, nil
	case known:
		return func(w texts.Words, language string) string { return w.Admitted(language, g.displayedPerson(e)) }, nil
	case e.Group:
		admitted, err := g.inAdmittedGroup(ctx, groupPlace(place, id))
		if err != nil || !admitted {
			return nil, err
		}
		return func(w texts.Words, language string) string {
			return w.GroupConfigured(language, g.calledGroup(id))
		}, nil
	}
	role, key, err := g.configuredRole(ctx, id)
	if role == "" && containsID(g.opts.Users, id) {
		role, key = User, "telegram.allowed_users"
	}
	if err != nil || role == "" {
		return nil, err
	}
	p := g.configuredPerson(id, role)
	if p.Name == "" {
		p.Name = name
	}
	return func(w texts.Words, language string) string { return w.PersonConfigured(language, p, key) }, nil
}

// applySettled stores what was settled, unless somebody else decides meanwhile.
func (g *Guard) applySettled(ctx context.Context, change *bot.Change, sent func(place bot.Place)) error {
	_, err := g.store.Apply(ctx, change)
	if errors.Is(err, bot.ErrConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end cards about which somebody else has decided: %w", err)
	}
	for i := range change.Send {
		sent(change.Send[i].Place)
	}
	return nil
}
