package choice

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket:   bucket,
			About:    "the model that somebody chose for a conversation, with their name",
			Found:    "key: session or chat; the name is in the value",
			Revision: revisions,
		},
		{
			Bucket: revisions,
			About:  "that choices have changed",
			Found:  "no person",
		},
	}
}
