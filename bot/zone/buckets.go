package zone

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket:   bucket,
			About:    "the time zone that a person has set",
			Found:    "key `CHANNEL:ID`",
			Revision: revisions,
		},
		{
			Bucket: revisions,
			About:  "that tasks or time zones have changed",
			Found:  "no person",
		},
	}
}
