package moves

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bot.MovedBucket,
			About:  "former ids of groups",
			Found:  "no person",
		},
	}
}
