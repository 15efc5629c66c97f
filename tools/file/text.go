package file

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// sniff is how many bytes of a file are inspected to decide whether it is text.
const sniff = 16 << 10

var utf8BOM = []byte("\xef\xbb\xbf")

// textEncoding returns what a file contains instead of UTF-8 text, judging by its beginning; "" if it is UTF-8. whole
// says that head is the whole file.
func textEncoding(head []byte, whole bool) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		return "UTF-32 text"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "UTF-16 text"
	case bytes.IndexByte(head, 0) >= 0:
		if utf16Like(head) {
			return "UTF-16 text without a byte order mark"
		}
		return "binary"
	case validHead(head, whole):
		return ""
	}
	if m := mimeType(head); (!strings.HasPrefix(m, "text/") && m != "application/octet-stream") ||
		bytes.ContainsFunc(head, isControl) {
		return "binary"
	}
	return "text in an 8-bit encoding such as Latin-1 or Windows-1252"
}

// isControl reports whether a character does not occur in text.
func isControl(r rune) bool {
	return (r < 0x20 && !strings.ContainsRune("\n\r\t\f\x1b", r)) || r == 0x7f
}

// validHead reports whether head is UTF-8. If it is not the whole file, its last character may be incomplete.
func validHead(head []byte, whole bool) bool {
	if !whole {
		for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
			b := head[len(head)-i]
			if utf8.RuneStart(b) {
				if b >= utf8.RuneSelf && !utf8.FullRune(head[len(head)-i:]) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head)
}

// utf16Like reports whether most of every second byte is zero, as in Latin text in UTF-16.
func utf16Like(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	var zero [2]int
	for i, b := range head {
		if b == 0 {
			zero[i%2]++
		}
	}
	half := len(head) / 2
	return (zero[0] > half*3/4 && zero[1] <= half/8) || (zero[1] > half*3/4 && zero[0] <= half/8)
}

func mimeType(head []byte) string {
	m, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return m
}

// unreadableText describes a file that is not text we can show.
func unreadableText(enc string, head []byte, size int64) string {
	if enc != "binary" {
		return fmt.Sprintf("This file is not UTF-8: it looks like %s, %d bytes. It is not shown, because it would be "+
			"garbled. Convert it first, for example with iconv.", enc, size)
	}
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
