package approval

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: GrantBucket,
			About:  "standing approvals: rule, who gave it and when; how often it was used, and what its last three uses were",
			Found:  "value (`by`, `by_name`); the key begins with the chat",
			Owner:  "by",
		},
		{
			Bucket: remindedBucket,
			About:  "that a chat was told of the end of a standing approval; until that end",
			Found:  "key is that of the approval, which begins with the chat",
		},
		{
			Bucket: allowedBucket,
			About:  "what a person saw when they approved a call: hashes of files",
			Found:  "key begins with the session",
		},
		{
			Bucket: whyBucket,
			About:  "which card was denied, so that a reply to it is taken as the reason; kept for a day",
			Found:  "key begins with the chat; value: the id of the question",
		},
		{
			Bucket: reasonBucket,
			About:  "why somebody denied a call, until the model has read it; 30 days at most",
			Found:  "key begins with the session; name and id are in the value (`name`, `caller`)",
		},
	}
}
