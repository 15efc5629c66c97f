package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Bots says which other bots are answered in groups.
type Bots struct {
	On      bool
	Allowed []string // ids or "@name"; empty = all
	Depth   int      // messages of bots in a row, in one chat, that are answered; 0 = none
}

// Two bots that answer each other would never stop. Of one bot in one chat so many messages are answered in a time,
// then none for as long; and of all bots in a chat only so many in a row, until a person says something.
const (
	pairBucket    = "bot_pair"
	silenceBucket = "bot_silence"
	chainBucket   = "bot_chain"
	mostOfPair    = 20
	pairFor       = time.Minute
	chainFor      = time.Hour
)

// otherBot says whether a message of another bot is answered. A bot is no admin and no approver, and is never told why
// it is not answered: that would be one more message to answer.
func (g *Guard) otherBot(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	o := g.opts.Bots
	byName := "@" + strings.ToLower(msg.Username)
	allowed := len(o.Allowed) == 0 || slices.Contains(o.Allowed, Everyone) ||
		slices.ContainsFunc(o.Allowed, func(a string) bool {
			return a == msg.Person || msg.Username != "" && strings.ToLower(a) == byName
		})
	if !o.On || !allowed || msg.Kind != bot.Text {
		return turn.Verdict{Reason: "bot not in telegram.allowed_bots"}, nil
	}
	chat := msg.Place.ChatKey() + "/"
	silent, err := g.store.Fact(ctx, silenceBucket, chat+msg.Person, g.now())
	if err != nil {
		return turn.Verdict{}, fmt.Errorf("read which bots are not answered: %w", err)
	}
	if silent != "" {
		return turn.Verdict{Reason: "a bot that wrote too often"}, nil
	}
	left, err := g.takeSlot(ctx, pairBucket, chat+msg.Person+"/", mostOfPair, msg.ID, pairFor)
	if err != nil {
		return turn.Verdict{}, err
	}
	if left < 0 {
		f := bot.Fact{Bucket: silenceBucket, Key: chat + msg.Person, Value: msg.ID, Expires: g.now().Add(pairFor)}
		return turn.Verdict{Reason: "a bot that wrote too often", Change: bot.Change{Facts: []bot.Fact{f}}}, nil
	}
	if left, err = g.takeSlot(ctx, chainBucket, chat, o.Depth, msg.ID, chainFor); err != nil || left < 0 {
		return turn.Verdict{Reason: "too many messages of bots in a row"}, err
	}
	return turn.Verdict{OK: true, Allowed: g.toolsOf(User)}, nil
}

// endBotChain ends the row of messages of bots in a chat where a person says something.
func (g *Guard) endBotChain(ctx context.Context, msg *bot.Message) error {
	if !g.opts.Bots.On || !msg.Place.Group || msg.Kind != bot.Text {
		return nil
	}
	list, err := g.store.FactsOf(ctx, chainBucket, msg.Place.ChatKey()+"/", g.now())
	if err != nil || len(list) == 0 {
		return err
	}
	change := &bot.Change{}
	for _, f := range list {
		change.Facts = append(change.Facts, bot.Fact{Bucket: f.Bucket, Key: f.Key})
	}
	if _, err := g.store.Apply(ctx, change); err != nil {
		return fmt.Errorf("end a row of messages of bots: %w", err)
	}
	return nil
}

// takeSlot takes one of n places below a prefix for a message, and says how many are left; below 0 there was none. Only
// one message has a place, whichever process reads it, and one that is read again keeps its own.
func (g *Guard) takeSlot(
	ctx context.Context, bucket, prefix string, n int, id string, lasts time.Duration,
) (left int, err error) {
	taken, err := g.store.FactsOf(ctx, bucket, prefix, g.now())
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", bucket, err)
	}
	used := map[string]bool{}
	for _, f := range taken {
		if f.Value == id {
			return n - len(taken), nil
		}
		used[f.Key] = true
	}
	for i := range n {
		f := bot.Fact{Bucket: bucket, Key: prefix + strconv.Itoa(i), Value: id, Expires: g.now().Add(lasts)}
		if used[f.Key] {
			continue
		}
		applied, err := g.store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{f}})
		if err != nil {
			return 0, fmt.Errorf("store %s: %w", bucket, err)
		}
		if applied.Set[0] {
			return n - len(taken) - 1, nil
		}
	}
	return -1, nil
}
