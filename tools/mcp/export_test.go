package mcp

import (
	"encoding/json"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Describe returns the description of a call of a tool without annotations.
func Describe(args json.RawMessage) (tools.Subject, error) {
	s := &server{m: &Manager{}, cfg: Server{ID: "srv", Trust: guard.Untrusted}}
	return s.describeCall(&tools.Call{Tool: "srv:t", Args: args}, guard.Tool{Name: "t"})
}

// Frames reads the messages from a server's output.
func Frames(out io.ReadCloser, limit int) io.Reader {
	return newFrames(out, limit, time.Now, zerolog.Nop())
}

// Mend mends a message.
func Mend(message []byte) ([]byte, []string) { return mendMessage(message) }
