package hook

import "github.com/zephbot/zephbot/bot"

// Buckets of facts.
const (
	bucket = "hook" // hooks that were made in chats, by conversation and name
	// revisions holds one value, which changes with each change of these hooks.
	revisions = "hook_revision"
	// seenBucket holds the calls that have begun turns, by hook and a digest of what identifies a call.
	seenBucket = "hook_seen"
	lastBucket = "hook_last" // when a hook was called, by conversation and name
)

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: bucket,
			About: "a hook that was made in a chat: in whose name it runs (id, name, username, language), where, and " +
				"what it asks; not its secret",
			Found: "key begins with the session; the person is in the value (`owner`)",
			Owner: "caller", Revision: revisions,
		},
		{
			Bucket: lastBucket,
			About:  "when a hook was called last",
			Found:  "key begins with the session",
		},
		{
			Bucket: seenBucket,
			About:  "that a call of a hook has begun a turn, so that the same call begins no other one; kept for 7 days",
			Found:  "no person: the name of the hook and a digest",
		},
		{
			Bucket: revisions,
			About:  "that hooks have changed",
			Found:  "no person",
		},
	}
}
