package quota

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: Bucket,
			About:  "limits that an admin set for a person or a chat, with the admin's name",
			Found:  "key begins with `user/CHANNEL:ID/`; the admin is in the value",
			Stays:  bot.StaysLimit, StaysBelow: "user/",
		},
	}
}
