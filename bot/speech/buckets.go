package speech

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About:  "an answer that is being spoken: its text, and for whom",
			Found:  "value: the message; deleted when the recording is sent, at the latest after an hour",
			Owner:  "caller",
		},
	}
}
