package turn

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: AsideBucket,
			About:  "what calls of models have cost during a turn besides its answer; kept for 30 days",
			Found:  "the id of a turn: no person",
		},
	}
}
