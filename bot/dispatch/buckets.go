package dispatch

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket:  editedBucket,
			About:   "which arrival has the newest version of a message that was edited; kept for 8 days",
			Found:   "key begins with the chat",
			Message: true,
		},
	}
}
