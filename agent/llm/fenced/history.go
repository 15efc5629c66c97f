package fenced

import (
	"strings"

	"github.com/zephbot/zephbot/agent/llm/history"
)

// words converts a conversation to plain text in which calls are written as this package reads them.
var words = history.Words{Call: renderUse, Finish: closeFence}

// closeFence closes a fence that is open at the end of text. Otherwise, what follows would be inside it.
func closeFence(text string) string {
	s := newScanner(nil, nil)
	s.feedPiece(text + "\n")
	if !s.inFence() {
		return text
	}
	return text + "\n" + strings.Repeat(string(s.fence.char), s.fence.length)
}
