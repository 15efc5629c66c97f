package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wirename"
)

// standInJSON is what the SDK writes of standIn. No text can hold it: quotes are escaped there.
const standInJSON = `"tools":[{"type":""}]`

// standIn stands in a request for its tools while the SDK writes it.
func standIn(tools []byte) []goopenai.Tool {
	if tools == nil {
		return nil
	}
	return []goopenai.Tool{{}}
}

// written is form as toolbox.Box wants it: the SDK would write the definitions anew with every request.
func written(form func(*llm.Request, *wirename.Names) []goopenai.Tool) func(*llm.Request, *wirename.Names) ([]byte, error) {
	return func(req *llm.Request, names *wirename.Names) ([]byte, error) { return json.Marshal(form(req, names)) } //nolint:wrapcheck // by the box
}

// messagesInJSON is what the SDK writes of messagesIn.
const messagesInJSON = `"messages":[{"role":""}]`

// messagesIn stands in a request for its messages while the SDK writes it: the SDK would write each one twice.
func messagesIn() []goopenai.ChatCompletionMessage { return []goopenai.ChatCompletionMessage{{}} }

// chatMessage is goopenai.ChatCompletionMessage as it is written.
type chatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content,omitempty"` // a string, or a list of parts

	ToolCalls  []goopenai.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string              `json:"tool_call_id,omitempty"`
}

// writeMessages writes messages as the SDK does.
func writeMessages(messages []goopenai.ChatCompletionMessage) ([]byte, error) {
	list := make([]chatMessage, len(messages))
	for i := range messages {
		m := &messages[i]
		list[i] = chatMessage{Role: m.Role, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID}
		switch {
		case len(m.MultiContent) > 0:
			list[i].Content = m.MultiContent
		case m.Content != "":
			list[i].Content = m.Content
		}
	}
	return json.Marshal(list)
}

var errNoPlace = errors.New("the request has no place for what was written before")

// fill puts messages and tools into a request in place of what stands in for them.
func (x *exchange) fill(req *http.Request) error {
	if x.messages == nil && x.tools == nil {
		return nil
	}
	rest, err := ownBody(req)
	if err != nil {
		return err
	}
	var parts [][]byte
	for _, part := range []struct{ standIn, name, value []byte }{ // in the order of the request
		{[]byte(messagesInJSON), []byte(`"messages":`), x.messages},
		{[]byte(standInJSON), []byte(`"tools":`), x.tools},
	} {
		if part.value == nil {
			continue
		}
		before, after, ok := bytes.Cut(rest, part.standIn)
		if !ok {
			return errNoPlace
		}
		parts, rest = append(parts, before, part.name, part.value), after
	}
	setBody(req, append(parts, rest)...)
	return nil
}

// ownBody reads the body of a request that was not sent yet.
func ownBody(req *http.Request) ([]byte, error) {
	data := bytes.NewBuffer(make([]byte, 0, max(req.ContentLength, 0)+bytes.MinRead))
	if _, err := data.ReadFrom(req.Body); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	return data.Bytes(), nil
}

// setBody makes the body of a request of pieces, which are not joined: the tools of a request are far longer than the
// rest, shared by all requests, and would be copied for each while its model thinks.
func setBody(req *http.Request, parts ...[]byte) {
	req.ContentLength = 0
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&pieces{rest: parts}), nil }
	req.Body = io.NopCloser(&pieces{rest: parts})
}

// pieces reads texts one after another. It does not change them nor their list.
type pieces struct {
	rest [][]byte
	read int // of the first
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.rest) > 0 && p.read == len(p.rest[0]) {
		p.rest, p.read = p.rest[1:], 0
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.rest[0][p.read:])
	p.read += n
	return n, nil
}
