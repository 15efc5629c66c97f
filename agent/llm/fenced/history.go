package fenced

import (
	"strings"

	"github.com/zephbot/zephbot/agent/llm/history"
)

// words converts a conversation to plain text in which calls stand as this package reads them.
var words = history.Words{Call: render, Finish: closed}

// closed closes a fence that is open at the end of text. Otherwise, what follows would be inside it.
func closed(text string) string {
	s := newScanner(nil, nil)
	s.feed(text + "\n")
	if !s.open() {
		return text
	}
	return text + "\n" + strings.Repeat(string(s.fence.char), s.fence.length)
}
