package skills

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket:   bucket,
			About:    "what an admin decided about a skill: verdict, hash, name, when",
			Found:    "the admin is in the value (`by`, `by_name`)",
			Revision: revisions,
		},
		{
			Bucket: revisions,
			About:  "that decisions about skills have changed; of which ones admins were told (names and hashes)",
			Found:  "no person",
		},
		{
			Bucket: told,
			About:  "that decisions about skills have changed; of which ones admins were told (names and hashes)",
			Found:  "no person",
		},
	}
}
