package hook

import "github.com/zephbot/zephbot/bot"

// seenBucket holds the calls that have begun turns, by hook and a digest of what identifies a call.
const seenBucket = "hook_seen"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: seenBucket,
			About:  "that a call of a hook has begun a turn, so that the same call begins no other one; kept for 7 days",
			Found:  "no person: the name of the hook and a digest",
		},
	}
}
