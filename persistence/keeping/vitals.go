package keeping

// Vitals are figures of a database for its operator. Zero means that the engine has no such figure.
type Vitals struct {
	Bytes int64 // size of the database
	WAL   int64 // size of SQLite's write-ahead log
	Blobs int64 // bytes of stored files, which retention.max_blob_bytes limits

	// The connections of this process to a server.
	Connections struct {
		Used, Idle, Most int
		Waits            int64 // how often none was free since the start
	}
}
