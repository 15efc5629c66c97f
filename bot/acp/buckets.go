package acp

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: sessionBucket,
			About:  "a conversation in an editor: directory, title, mode, when it was used last",
			Found:  "the whole database is one person's, on their machine",
		},
	}
}
