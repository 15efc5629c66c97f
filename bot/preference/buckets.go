package preference

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About: "what a person has chosen in `/settings`: language, clock, voice messages, what happens to messages " +
				"during work, receipts, spoken answers; and whether a group has receipts and spoken answers, and a group " +
				"or topic has its talk kept",
			Found:    "key begins with `CHANNEL:ID/`; a group's: with the chat",
			Revision: revisions,
		},
		{
			Bucket:   ownBucket,
			About:    "how a person wants to be answered, in their own words (`/settings`)",
			Found:    "key `CHANNEL:ID`",
			Revision: revisions,
		},
		{
			Bucket: revisions,
			About:  "that settings have changed",
			Found:  "no person",
		},
	}
}
