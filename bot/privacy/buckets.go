package privacy

const (
	// askedBucket holds, by caller id, the newest question of /forget that is not decided, for ten minutes.
	askedBucket = "erase_asked"
	// exportBucket holds the exports that were asked for in a chat and are not sent yet, by the ids of their messages.
	exportBucket = "export_job"
	// oftenBucket holds, by caller id, that an export was made within the last hour.
	oftenBucket = "export_often"
	// AuditedBucket holds, by job and process, that a process has pseudonymised its audit log for a job, for a day.
	AuditedBucket = "erase_audit"
)
