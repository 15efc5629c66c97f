package choice

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/turn"
)

// wholeChat ends the key of what was chosen for all conversations of a chat, or of one of its topics. All keys begin
// with the chat, so they follow a group that gets a new id.
const wholeChat = "/*"

// chosen is what people have chosen for conversations, one value for each place: a private conversation, a group, or a
// topic of a group. It is safe for concurrent use and starts no goroutines.
type chosen struct {
	bucket string
	now    func() time.Time
	stored *facts.Followed[map[string]string] // by key
	made   ahead
}

// newChosen returns what was chosen in a bucket; nothing before the first Follow. revisions holds one value, which
// changes with each choice: other processes read it instead of all choices.
func newChosen(store facts.Store, bucket, revisions string, now func() time.Time) *chosen {
	return &chosen{
		bucket: bucket,
		now:    now,
		stored: facts.NewFollowed(store, bucket, revisions, now, func(list []bot.Fact) map[string]string {
			values := make(map[string]string, len(list))
			for _, fact := range list {
				values[fact.Key] = fact.Value
			}
			return values
		}),
	}
}

// Follow reads what any process has chosen since the last call.
func (c *chosen) Follow(ctx context.Context) error { return c.stored.Follow(ctx) }

// Forget makes the next Follow read everything again, because a group has a new id.
func (c *chosen) Forget() { c.stored.Forget() }

// of returns what holds for a conversation, and the key that it was chosen for: its own, else that of its topic, else
// that of its chat; "" = nothing was chosen. It reads nothing from the store.
func (c *chosen) of(session bot.SessionKey) (value, key string) {
	stored, made := c.stored.Value(), c.made.since(c.now())
	if len(stored)+len(made) == 0 {
		return "", ""
	}
	chat := session.ChatKey()
	for _, key := range [...]string{string(session), topicKey(chat, session.Thread()), topicKey(chat, "")} {
		value, ok := made[key]
		if !ok {
			value = stored[key]
		}
		if value != "" {
			return value, key
		}
	}
	return "", ""
}

// store returns the effect that stores a choice for where a command or a button was given; "" takes it back.
func (c *chosen) store(call *turn.Call, value string) turn.Effect {
	key := choiceKey(call)
	c.made.make(key, value, c.now())
	return turn.Effect{
		Change: bot.Change{Facts: []bot.Fact{{Bucket: c.bucket, Key: key, Value: value}, c.stored.Revised()}},
		Then: func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
			err := c.Follow(ctx)
			if err == nil {
				c.made.read(key, value)
			}
			return turn.Effect{}, err
		},
	}
}

// choiceKey returns the key of a choice that is made with a command or a button. A group has one for the whole chat,
// and each of its topics may have another one.
func choiceKey(call *turn.Call) string {
	if p := call.Message.Place; p.Group {
		return topicKey(p.ChatKey(), p.Thread)
	}
	return string(call.Session)
}

// topicKey returns the key of the choice of a topic, or of the whole chat outside of topics.
func topicKey(chat, thread string) string {
	if thread != "" {
		chat += "/" + thread
	}
	return chat + wholeChat
}

// mayChoose reports whether the caller may choose: in a group, whose people share the choice, only admins may.
func mayChoose(call *turn.Call) bool { return call.Admin || !call.Message.Place.Group }

// inTopic reports whether a choice is for a topic of a group, where that of the whole group holds if there is none.
func inTopic(call *turn.Call) bool {
	return call.Message.Place.Group && call.Message.Place.Thread != ""
}
