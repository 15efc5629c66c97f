package news

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: newsBucket,
			About:  "what the model of a conversation is told at its next turn",
			Found:  "key begins with the session",
		},
		{
			Bucket: runBucket,
			About:  "commands that run in the background",
			Found:  "key begins with the session",
		},
		{
			Bucket: endBucket,
			About:  "that such a command has ended",
			Found:  "key: id of the run; deleted when its session was told",
		},
	}
}
