package acp

import (
	"bytes"
	"encoding/json"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// cancelMethod is the notification with which an editor cancels one request.
const cancelMethod = "$/cancel_request"

// maxPrompts is how many of the latest prompts can be cancelled by the id of their request. A session has one under
// way, so those that are forgotten have been answered.
const maxPrompts = 64

// cancelRequests knows which prompts the editor cancels by the id of their request. The library cancels the context of
// such a request, but also that of a prompt when another one of its session arrives, which must not end it; it does not
// tell one from the other. The zero value is ready. Safe for concurrent use.
type cancelRequests struct {
	mu      sync.Mutex
	prompts []sentPrompt // the oldest first
	ended   map[string]bool
}

// sentPrompt is a prompt that an editor has sent.
type sentPrompt struct{ id, session string }

// observe is told of each message of the editor before the library reads it.
func (c *cancelRequests) observe(line []byte) {
	prompt := bytes.Contains(line, []byte(sdk.AgentMethodSessionPrompt))
	if !prompt && !bytes.Contains(line, []byte(cancelMethod)) {
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Session string          `json:"sessionId"`
			Request json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil {
		return // the library says what is wrong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case sdk.AgentMethodSessionPrompt:
		if len(c.prompts) == maxPrompts {
			c.prompts = append(c.prompts[:0], c.prompts[1:]...)
		}
		c.prompts = append(c.prompts, sentPrompt{string(m.ID), m.Params.Session})
		delete(c.ended, m.Params.Session)
	case cancelMethod:
		for _, p := range c.prompts {
			if p.id == string(m.Params.Request) {
				if c.ended == nil {
					c.ended = map[string]bool{}
				}
				c.ended[p.session] = true
			}
		}
	}
}

// cancelled reports whether the editor has cancelled the request of the session's prompt.
func (c *cancelRequests) cancelled(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[session]
}
