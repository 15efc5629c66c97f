package command

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bot.ResetBucket,
			About:  "when a conversation was last cleared",
			Found:  "key: the session",
		},
	}
}
