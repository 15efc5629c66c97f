package servers

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: toldBucket,
			About:  "what a conversation was told about a server",
			Found:  "key begins with the session",
		},
		{
			Bucket: jobBucket,
			About:  "an `/mcp` command that is under way: the message, with its writer",
			Found:  "value: the message; deleted when it is done",
			Owner:  "caller",
		},
		{
			Bucket: handBucket,
			About:  "the address at which a sign-in ended, minutes at most",
			Found:  "key begins with the job; deleted when it is used",
		},
		{
			Bucket: claimBucket,
			About:  "which process works on a command",
			Found:  "no person",
		},
	}
}
