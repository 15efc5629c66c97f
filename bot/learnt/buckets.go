package learnt

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: Bucket,
			About:  "what was learnt of the servers of models: which tools and fields they refuse, kept for a week",
			Found:  "no person",
		},
		{
			Bucket: revisions,
			About:  "what was learnt of the servers of models: which tools and fields they refuse, kept for a week",
			Found:  "no person",
		},
	}
}
