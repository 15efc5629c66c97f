package operator

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: codes,
			About: "a link to the operator's page that an admin asked for: hash of its code, the admin's id and " +
				"name; five minutes at most",
			Found: "value (`caller`, `name`)",
		},
		{
			Bucket: sessions,
			About: "an admin who is signed in to the operator's page: id, name, since when, last look; 8 " +
				"hours after it",
			Found: "value (`caller`, `name`); deleted when the person is no admin any more",
		},
		{
			Bucket: decided,
			About:  "which admin retried or dropped a dead letter, and when; kept for 60 days",
			Found:  "value (`by`)",
		},
	}
}
