package blocks

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: Bucket,
			About:  "a tool that failed too often for somebody in a conversation",
			Found:  "key: tool, session and `CHANNEL:ID`",
		},
	}
}
