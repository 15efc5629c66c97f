package telegram

import "strings"

// Cause is what is wrong with a connection, without the address of the request, which the reader knows.
func Cause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "\": "); i >= 0 {
		text = text[i+len("\": "):]
	}
	return text
}
