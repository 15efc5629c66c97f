package schedule

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About:  "a scheduled task: its text, in whose name it runs (id, name, username, language), where and when",
			Found:  "key begins with the session; the person is in the value (`owner`)",
			Owner:  "caller", Revision: revisions,
		},
		{
			Bucket: ends,
			About:  "how the last run of a task ended; deleted within seconds",
			Found:  "key begins with the session",
		},
		{
			Bucket: revisions,
			About:  "that tasks or time zones have changed",
			Found:  "no person",
		},
	}
}
