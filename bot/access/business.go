package access

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// businessBucket holds the connections to business accounts: the key is CHANNEL/BOT/CONNECTION, the value an account.
const businessBucket = "business"

// connectedState is the state of a connection by which the bot may answer.
const connectedState = "connected"

// account is a business account that its owner has connected with the bot.
type account struct {
	Owner string `json:"owner"` // person id
	State string `json:"state"` // bot.Message.Status
}

func businessKey(place bot.Place, connection string) string { return personKey(place, connection) }

func (a account) fact(place bot.Place, connection string) (bot.Fact, error) {
	value, err := json.Marshal(a)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("business account: %w", err)
	}
	return bot.Fact{Bucket: businessBucket, Key: businessKey(place, connection), Value: string(value)}, nil
}

// recordConnection records that a person has connected the bot to their business account, or disconnected
// it, and tells them what follows.
func (g *Guard) recordConnection(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: "a business account: " + msg.Status}
	role, err := g.roleOf(ctx, msg)
	if err != nil {
		return v, err
	}
	if role == "" { // nothing of theirs is kept
		v.Reply, v.Once = g.words.Stranger(msg.Language, msg.Person), "stranger/"+msg.Caller
		return v, nil
	}
	fact, err := account{Owner: msg.Person, State: msg.Status}.fact(msg.Place, msg.Target)
	if err != nil {
		return v, err
	}
	v.Change.Facts = []bot.Fact{fact}
	v.Reply = g.words.Business(msg.Language, msg.Status)
	return v, nil
}

// admitToBusiness decides about a message in a chat of a business account. It is answered if the account's owner is
// admitted. The owner pays. The sender, whom the bot does not know, has no tools.
func (g *Guard) admitToBusiness(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	if msg.Kind != bot.Text || msg.Caller == "" {
		return turn.Verdict{Reason: "not a message of a person"}, nil
	}
	a, err := g.businessAccount(ctx, msg.Place)
	if err != nil {
		return turn.Verdict{}, err
	}
	if a.Owner == "" || a.State != connectedState {
		return turn.Verdict{Reason: "a business account that is not connected"}, nil
	}
	role, err := g.roleOf(ctx, &bot.Message{Kind: bot.Text, Place: msg.Place, Person: a.Owner})
	if err != nil {
		return turn.Verdict{}, err
	}
	if role == "" {
		return turn.Verdict{Reason: "the owner of the business account is not in telegram.allowed_users"}, nil
	}
	return turn.Verdict{
		OK: true, Payer: g.opts.Channel + ":" + a.Owner, Allowed: func(string) bool { return false },
	}, nil
}

// businessAccount returns the account of a chat. One that was connected before this was known is asked for, once.
func (g *Guard) businessAccount(ctx context.Context, place bot.Place) (a account, err error) {
	connection := place.Business()
	value, err := g.store.Fact(ctx, businessBucket, businessKey(place, connection), g.now())
	if err != nil {
		return a, fmt.Errorf("read a business account: %w", err)
	}
	if value != "" {
		if err := json.Unmarshal([]byte(value), &a); err != nil {
			return a, fmt.Errorf("business account of %s: %w", connection, err)
		}
		return a, nil
	}
	if g.opts.Connection == nil {
		return a, nil
	}
	if a.Owner, a.State, err = g.opts.Connection(ctx, connection); err != nil {
		return a, err
	}
	fact, err := a.fact(place, connection)
	if err != nil {
		return a, err
	}
	if _, err := g.store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{fact}}); err != nil {
		return a, fmt.Errorf("store a business account: %w", err)
	}
	return a, nil
}
