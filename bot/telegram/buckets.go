package telegram

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: profileBucket,
			About:  "which texts of the bot's profile are ours",
			Found:  "no person",
		},
		{
			Bucket: menuBucket,
			About:  "private chats with a menu of their own: those of admins",
			Found:  "key `BOT/CHAT`, where the chat is the person's id",
			Stays:  bot.StaysConfigured,
		},
		{
			Bucket: bot.LeaderBucket,
			About:  "which process leads, and what is set at Telegram",
			Found:  "no person",
		},
		{
			Bucket: hookBucket,
			About:  "which process leads, and what is set at Telegram",
			Found:  "no person",
		},
		{
			Bucket: setterBucket,
			About:  "which process leads, and what is set at Telegram",
			Found:  "no person",
		},
	}
}
