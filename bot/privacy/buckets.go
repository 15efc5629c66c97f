package privacy

import "github.com/zephbot/zephbot/bot"

const (
	// askedBucket holds, by caller id, the newest question of /forget that is not decided, for ten minutes.
	askedBucket = "erase_asked"
	// exportBucket holds the exports that were asked for in a chat and are not sent yet, by the ids of their messages.
	exportBucket = "export_job"
	// oftenBucket holds, by caller id, that an export was made within the last hour.
	oftenBucket = "export_often"
	// pageBucket holds, by caller id, that a page of a conversation was made within the last minute.
	pageBucket = "export_page"
	// AuditedBucket holds, by job and process, that a process has pseudonymised its audit log for a job, for a day.
	AuditedBucket = "erase_audit"
)

// Buckets says what the facts of this package are and whose.
func Buckets() []bot.BucketRule {
	return []bot.BucketRule{
		{
			Bucket: askedBucket,
			About:  "the question of `/forget` that a person has not decided; kept for ten minutes",
			Found:  "key `CHANNEL:ID`",
		},
		{
			Bucket: JobBucket,
			About:  "a request to erase somebody and how far it has come; deleted with its receipt",
			Found:  "value (`person`)",
			Stays:  bot.StaysJob,
		},
		{
			Bucket: receiptBucket,
			About:  "a receipt, for a day; it does not name the person",
			Found:  "no person",
		},
		{
			Bucket: SpentBucket,
			About:  "until when the charges of this month keep the id of somebody who was erased",
			Found:  "key `CHANNEL:ID`",
			Stays:  bot.StaysSums,
		},
		{
			Bucket: AuditedBucket,
			About:  "that a process has pseudonymised its audit log for a request; kept for a day",
			Found:  "no person",
		},
		{
			Bucket: exportBucket,
			About:  "an export that was asked for; deleted when it was sent, after a day at the latest",
			Found:  "value (`person`)",
			Stays:  bot.StaysJob,
		},
		{
			Bucket: oftenBucket,
			About:  "that somebody had an export within the last hour",
			Found:  "key `CHANNEL:ID`",
			Stays:  bot.StaysJob,
		},
		{
			Bucket: pageBucket,
			About:  "that somebody had a page of a conversation within the last minute",
			Found:  "key `CHANNEL:ID`",
			Stays:  bot.StaysJob,
		},
	}
}
