package audit

// Digest is the hash of a line, for tests that forge one.
func Digest(body string) string { return hexDigest([]byte(body)) }
