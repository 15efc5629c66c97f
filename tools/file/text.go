package file

import (
	"fmt"
	"net/http"
	"strings"
)

// sniff is how many bytes of a file are inspected to decide whether it is text.
const sniff = 16 << 10

func mimeType(head []byte) string {
	m, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return m
}

// binaryText describes a file that is not text.
func binaryText(head []byte, size int64) string {
	m := mimeType(head)
	if m == "application/octet-stream" || strings.HasPrefix(m, "text/") {
		return fmt.Sprintf("binary file, %d bytes", size)
	}
	return fmt.Sprintf("binary file, %d bytes, looks like %s", size, m)
}

// countNoun returns a number with its noun: "1 file", "2 files".
func countNoun[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
