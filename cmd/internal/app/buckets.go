package app

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/acp"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/blocks"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/hook"
	"github.com/zephbot/zephbot/bot/inquiry"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/record"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/sign"
	"github.com/zephbot/zephbot/bot/skills"
	"github.com/zephbot/zephbot/bot/speech"
	"github.com/zephbot/zephbot/bot/talk"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/zone"
	"github.com/zephbot/zephbot/cmd/internal/layout"
)

// Buckets says of every bucket of facts what is in it and whose it is. What is exported and erased of a person, and
// docs/personal-data.md, follow from this list. It needs no running service: people are erased on the command line too.
func Buckets() []bot.BucketRule {
	return slices.Concat(
		access.Buckets(),
		acp.Buckets(),
		approval.Buckets(),
		blocks.Buckets(),
		choice.Buckets(),
		command.Buckets(),
		dispatch.Buckets(),
		hook.Buckets(),
		inquiry.Buckets(),
		learnt.Buckets(),
		memory.Buckets(),
		moves.Buckets(),
		news.Buckets(),
		operator.Buckets(),
		preference.Buckets(),
		privacy.Buckets(),
		quota.Buckets(),
		recap.Buckets(),
		speech.Buckets(),
		record.Buckets(),
		schedule.Buckets(),
		servers.Buckets(),
		sign.Buckets(),
		skills.Buckets(),
		talk.Buckets(),
		telegram.Buckets(),
		turn.Buckets(),
		zone.Buckets(),
		ownBuckets(),
	)
}

// ownBuckets says what the facts are that this package stores, and whose.
func ownBuckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: verdictBucket,
			About:  "verdicts about the calls of a conversation; kept for a week",
			Found:  "key begins with the session",
		},
		{
			Bucket: mendedBucket,
			About:  "corrected arguments of calls; kept for a week",
			Found:  "key begins with the session",
		},
		{
			Bucket: staleBucket,
			About:  "that cached results of a conversation are out of date; kept for 25 hours",
			Found:  "key contains the session",
		},
		{
			Bucket: mcpBucket,
			About:  "servers that were added in a chat, and the state in which their tools were accepted",
			Found:  "value, where an address names somebody",
		},
		{
			Bucket: terminal.ConversationBucket,
			About: "a conversation of the terminal (`zephbot chat`): its directory, the beginning of its first " +
				"message, when something was said last; kept for 180 days after that",
			Found: "key: the name of the conversation; it belongs to the person whose state directory holds " +
				"the database",
		},
		{
			Bucket: layout.MarkBucket,
			About:  "how far the audit log has come",
			Found:  "no person",
		},
		{
			Bucket: secretBucket,
			About:  "keys that were generated once",
			Found:  "no person",
		},
	}
}
