package talk

import "github.com/zephbot/zephbot/bot"

const (
	// talkBucket holds what people say to each other, by chat, topic, time and message.
	talkBucket = "group_talk"
	// readBucket holds, by session, up to where its model has read that.
	readBucket = "group_talk_read"
)

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: talkBucket,
			About: "what a person said in a group or topic whose talk is kept (`/settings`), and not to the bot; as many " +
				"and for as long as `[groups]` says",
			Found: "key begins with the chat; the person is in the value (`caller`, `name`)",
			Owner: "caller",
		},
		{
			Bucket: readBucket,
			About:  "up to where a conversation has read what was said in its group; kept as long as that",
			Found:  "key: the session",
		},
	}
}
