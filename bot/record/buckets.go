package record

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About:  "lines of the audit log that are not in it yet, seconds at most",
			Found:  "value: the line",
			Stays:  bot.StaysBriefly,
		},
	}
}
