package bot

import "time"

// slowLine is the upload rate that a line must have for a file to get through, in bytes a second (1 Mbit/s).
const slowLine = 128 << 10

// UploadTime is what the time limit of a request grows by for the bytes that it sends: 400 s for 50 MB.
func UploadTime(bytes int64) time.Duration {
	return time.Duration(max(bytes, 0)) * time.Second / slowLine
}

// Bytes is how much of a content is a file.
func (c *Content) Bytes() int64 {
	if c.File == nil {
		return 0
	}
	return max(c.File.Size, int64(len(c.File.Data)))
}
