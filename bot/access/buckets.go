package access

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: personBucket,
			About:  "a person who was admitted in the chat: role, name, who admitted them",
			Found:  "key `CHANNEL/BOT/ID`; who admitted others is in the value (`by`, `by_name`)",
		},
		{
			Bucket: strangerBucket,
			About: "a person who asked to be admitted: name, language, in which group, who declined them, and who asked for a " +
				"group; kept for 30 days",
			Found: "key `CHANNEL/BOT/ID`; who declined is in the value (`declined_by`, `declined_name`), and who asked for a " +
				"group (`by`, `by_name`)",
		},
		{
			Bucket: saidBucket,
			About: "what a person wrote before they or their group were admitted, to be answered then: at most five messages; " +
				"kept for seven days",
			Found: "key begins with `CHANNEL/BOT/ID/`",
		},
		{
			Bucket: invitationBucket,
			About: "an invitation: role, uses that are left, who made it; kept until it is used up, or a week after its end, " +
				"which is after at most 30 days",
			Found: "the admin is in the value (`by`, `by_name`)",
		},
		{
			Bucket: invitationListBucket,
			About:  "which message lists the invitations for an admin; kept for 30 days",
			Found:  "key `CHANNEL/BOT/ID`",
		},
		{
			Bucket: invitedBucket,
			About:  "who has used an invitation; kept for as long as it lasts",
			Found:  "key begins with `CHANNEL/BOT/ID/`",
		},
		{
			Bucket: seenBucket,
			About:  "what a person is called who is admitted, their @name and the language of their client",
			Found:  "key `CHANNEL/BOT/ID`",
		},
		{
			Bucket: bucket,
			About:  "which person a configured @name belongs to",
			Found:  "value: the person's id",
			Stays:  bot.StaysConfigured,
		},
		{
			Bucket: usedBucket,
			About:  "who has used the code of the first admin; kept for a day",
			Found:  "value: the person's id",
			Stays:  bot.StaysBriefly,
		},
		{
			Bucket: greetedBucket,
			About:  "when an admin was greeted as such; kept for 90 days",
			Found:  "key `CHANNEL/BOT/ID`",
		},
		{
			Bucket: tryBucket,
			About:  "how often a person tried a code within an hour",
			Found:  "key begins with `CHANNEL/BOT/ID/`",
			Stays:  bot.StaysBriefly,
		},
		{
			Bucket: businessBucket,
			About:  "a connection to somebody's business account",
			Found:  "value: the account's owner",
			Owner:  bot.AnyMember,
		},
		{
			Bucket: groupBucket,
			About:  "a group that was admitted: its name, who admitted it",
			Found:  "a chat's; the admin is in the value",
		},
		{
			Bucket: blockedBucket,
			About:  "a group that is not answered: its name, who blocked it",
			Found:  "a chat's; the admin is in the value",
		},
		{
			Bucket: titleBucket,
			About:  "what a group that was admitted is called",
			Found:  "a chat's",
		},
		{
			Bucket: pairBucket,
			About:  "how often other bots wrote in a chat lately",
			Found:  "ids of other bots and chats, for a short time: no person",
		},
		{
			Bucket: silenceBucket,
			About:  "how often other bots wrote in a chat lately",
			Found:  "ids of other bots and chats, for a short time: no person",
		},
		{
			Bucket: chainBucket,
			About:  "how often other bots wrote in a chat lately",
			Found:  "ids of other bots and chats, for a short time: no person",
		},
		{
			Bucket: adminsBucket,
			About:  "which message last took the rights of an admin away",
			Found:  "the id of a message: no person",
		},
		{
			Bucket: toldBucket,
			About: "a random word that changes when admins are told of somebody who wants to be admitted; " +
				"kept for 30 days",
			Found: "no person",
		},
		{
			Bucket: codeBucket,
			About:  "hash of the code that a process has shown",
			Found:  "no person",
		},
	}
}
