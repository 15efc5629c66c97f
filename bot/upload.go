package bot

import "time"

// slowLine is the upload rate that a line must have for a file to get through, in bytes a second (1 Mbit/s).
const slowLine = 128 << 10

// UploadTime is what the time limit of a request grows by for the bytes that it sends: 400 s for 50 MB.
func UploadTime(bytes int64) time.Duration {
	return time.Duration(max(bytes, 0)) * time.Second / slowLine
}

// Bytes is how much of a content is files.
func (c *Content) Bytes() int64 {
	var n int64
	for _, f := range c.Files() {
		n += max(f.Size, int64(len(f.Data)))
	}
	return n
}
