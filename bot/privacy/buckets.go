package privacy

const (
	// AskedBucket holds, by caller id, the newest question of /forget that is not decided, for ten minutes.
	AskedBucket = "erase_asked"
	// ExportBucket holds the exports that were asked for in a chat and are not sent yet, by the ids of their messages.
	ExportBucket = "export_job"
	// OftenBucket holds, by caller id, that an export was made within the last hour.
	OftenBucket = "export_often"
	// AuditedBucket holds, by job and process, that a process has pseudonymised its audit log for a job, for a day.
	AuditedBucket = "erase_audit"
)
