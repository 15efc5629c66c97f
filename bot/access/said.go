package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// saidBucket holds what strangers have written while admins decide, and people of the list in a group that is not admitted
// yet, so that it is answered then: the key is that of the person and a number, the value a message (bot.EncodeMessage).
const saidBucket = "stranger_said"

// Limits of what is kept of a stranger. What is more, or older, is not answered.
const (
	mostSaid     = 5
	mostSaidSize = 8 << 10 // bytes of one message, as it is stored
	saidFor      = 7 * 24 * time.Hour
)

// saidKey returns the beginning of the keys of what a stranger has written.
func saidKey(place bot.Place, id string) string { return personKey(place, id) + "/" }

// keepSaid returns the fact that keeps a message of a stranger; nil if it cannot be answered later, or there is enough. A
// Change with it is refused with ErrConflict if another message of theirs was kept meanwhile.
func (g *Guard) keepSaid(ctx context.Context, msg *bot.Message) (*bot.Fact, error) {
	if msg.Kind != bot.Text || msg.Command != "" || !msg.Place.Ordinary() {
		return nil, nil //nolint:nilnil // nothing is kept
	}
	kept, err := g.store.FactsOf(ctx, saidBucket, saidKey(msg.Place, msg.Person), g.now())
	if err != nil {
		return nil, fmt.Errorf("read what a stranger has written: %w", err)
	}
	said := *msg
	said.ID = "stranger/" + msg.ID // ids are unique across all sources
	raw, err := bot.EncodeMessage(&said)
	if err != nil || len(kept) >= mostSaid || len(raw) > mostSaidSize {
		return nil, err
	}
	free := ""
	n := 0
	for slices.ContainsFunc(kept, func(f bot.Fact) bool {
		return f.Key == saidKey(msg.Place, msg.Person)+strconv.Itoa(n)
	}) { // what was said elsewhere may have been answered since
		n++
	}
	return &bot.Fact{
		Bucket: saidBucket, Key: saidKey(msg.Place, msg.Person) + strconv.Itoa(n), Value: string(raw),
		Expires: g.now().Add(saidFor), Was: &free,
	}, nil
}

// firstSaid returns the first words that are kept of a stranger; "" = none.
func (g *Guard) firstSaid(ctx context.Context, place bot.Place, id string) (string, error) {
	kept, err := g.store.FactsOf(ctx, saidBucket, saidKey(place, id), g.now())
	if err != nil || len(kept) == 0 {
		return "", err
	}
	msg, err := (bot.MessageDecoder{}).Decode([]byte(kept[0].Value))
	if err != nil {
		return "", nil //nolint:nilerr // one of another version is not quoted
	}
	return msg.Text, nil
}

// releaseSaid adds to a Change what a person, or somebody in a group, has written before it admitted them, so that it is
// answered, and returns the sessions to wake. What a person has written in a group that is not admitted waits on. With drop
// nothing is answered.
func (g *Guard) releaseSaid(
	ctx context.Context, place bot.Place, id string, drop bool, change *bot.Change,
) (wake []bot.SessionKey, err error) {
	prefix := saidKey(place, id)
	if isGroupID(id) {
		prefix = personKey(place, "")
	}
	kept, err := g.store.FactsOf(ctx, saidBucket, prefix, g.now())
	if err != nil {
		return nil, fmt.Errorf("read what a stranger has written: %w", err)
	}
	for _, f := range kept {
		msg, unreadable := (bot.MessageDecoder{}).Decode([]byte(f.Value))
		if unreadable == nil {
			if err := g.followMove(ctx, &msg.Place, &msg.Message); err != nil {
				return nil, err
			}
		}
		concerned := !isGroupID(id) || unreadable == nil && msg.Place.Chat == id
		if concerned && unreadable == nil && !drop && !isGroupID(id) {
			if concerned, err = g.inAdmittedGroup(ctx, msg.Place); err != nil {
				return nil, err
			}
		}
		if !concerned {
			continue
		}
		was := f.Value
		change.Facts = append(change.Facts, bot.Fact{Bucket: f.Bucket, Key: f.Key, Was: &was})
		if drop || unreadable != nil { // one of another version cannot be answered
			continue
		}
		session := g.sessionOf(&msg)
		change.Arrive = append(change.Arrive, bot.Arrival{
			Channel: msg.Place.Channel, Bot: msg.Place.Bot, ID: msg.ID, Source: bot.FromStranger, Session: session,
			Raw: []byte(f.Value), At: g.now(),
		})
		wake = append(wake, session)
	}
	return wake, nil
}

// sessionOf returns the conversation that a message belongs to.
func (g *Guard) sessionOf(msg *bot.Message) bot.SessionKey {
	if msg.Place.Group && !g.Rules(msg.Place).SharedSession {
		return msg.Place.SessionKey(msg.Person)
	}
	return msg.Place.SessionKey("")
}

// followMove gives a place that was stored the id that its group has now. A message of it is not known there.
func (g *Guard) followMove(ctx context.Context, place *bot.Place, message *string) error {
	if !place.Group {
		return nil
	}
	moved, err := g.store.FactsOf(ctx, bot.MovedBucket, g.nameKey(""), g.now())
	if err != nil {
		return fmt.Errorf("read the new id of %s: %w", place.Chat, err)
	}
	for _, f := range moved {
		if f.Value == place.Chat {
			place.Chat, *message = strings.TrimPrefix(f.Key, g.nameKey("")), ""
		}
	}
	return nil
}
