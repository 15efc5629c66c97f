package wire

import (
	"errors"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Limits of FilledWindow.
const (
	leastFilled = 1024 // tokens of a request; a smaller one fills the window of no model that is in use
	mostEmpty   = 16   // tokens that an answer of nothing may have: marks of the template
)

// FilledWindow returns an llm.Error with TooLong for an answer that says nothing because the request has left no room
// for it; nil = it is an answer, or empty for another reason. Servers on people's own machines stop such an answer "at
// its limit" instead of refusing the request. limit is the longest answer that was asked for, in tokens; 0 = none.
//
// The window is full if what was counted comes near the one that the request was made for, or if hardly a token was
// written where the limit allows more. An answer that used its whole limit was stopped by
// that, however much it thought.
func FilledWindow(req *llm.Request, res *llm.Response, limit int) error {
	used := res.Usage
	if res.Stop != llm.StopLength || strings.TrimSpace(res.Text) != "" ||
		len(res.Uses) > 0 || used.Input < leastFilled ||
		limit > 0 && used.Output >= limit {
		return nil
	}
	near := req.Window > 0 && used.Total() >= req.Window-req.Window/16
	if !near && (used.Output > mostEmpty || limit <= mostEmpty || res.Thoughts != "") {
		return nil
	}
	return &llm.Error{
		Kind: llm.TooLong, Window: used.Total(), Size: used.Input,
		Err: errors.New("the conversation fills the model's window: there is no room for an answer"),
	}
}
