package choice

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket:   modelBucket,
			About:    "the model that somebody chose for a conversation, with their name",
			Found:    "key: session or chat; the name is in the value",
			Revision: modelRevisionBucket,
		},
		{
			Bucket: modelRevisionBucket,
			About:  "that choices have changed",
			Found:  "no person",
		},
		{
			Bucket:   personaBucket,
			About:    "the persona that was chosen for a conversation, by its name in the configuration",
			Found:    "key: session or chat",
			Revision: personaRevisionBucket,
		},
		{
			Bucket: personaRevisionBucket,
			About:  "that choices of personas have changed",
			Found:  "no person",
		},
	}
}
