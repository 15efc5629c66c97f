package sign

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: Bucket,
			About:  "signs on messages that wait",
			Found:  "key begins with the session",
		},
	}
}
