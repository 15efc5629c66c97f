package inquiry

import "github.com/zephbot/zephbot/bot"

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{{
		Bucket: bucket,
		About:  "what a person has answered to the questions of a call (`ask_user`); kept for 30 days",
		Found:  "key begins with the session",
	}}
}
