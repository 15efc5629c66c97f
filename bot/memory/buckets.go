package memory

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About: "what people had the agent remember: the text, what it is about, who had it remembered (id and " +
				"name) and when; kept until it is deleted (`/memory`)",
			Found: "a person's own: key begins with `CHANNEL:ID/`; a group's: key begins with the chat, its author " +
				"is in the value (`by`, `name`)",
		},
		{
			Bucket: scopes,
			About:  "that somebody, or a group, has memories",
			Found:  "key: the person's caller id, or the chat",
		},
		{
			Bucket: changes,
			About:  "that memories were changed, for other processes; kept for 10 minutes",
			Found:  "value: the person's caller id, or the chat",
		},
	}
}
