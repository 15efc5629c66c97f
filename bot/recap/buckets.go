package recap

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About:  "a `/recap` or `/btw` that is being answered: the message, with its writer",
			Found:  "value: the message; deleted with the answer, at the latest after an hour",
			Owner:  "caller",
		},
	}
}
