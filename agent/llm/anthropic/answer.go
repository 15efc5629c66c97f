package anthropic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/history"
	"github.com/zephbot/zephbot/agent/llm/textcall"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// maxBlocks bounds the content blocks of one answer.
const maxBlocks = 256

// origin is the content of llm.ToolUse.Extra: the thinking before a use, and the host and the model that signed it.
type origin struct {
	Host     string    `json:"host"`
	Model    string    `json:"model,omitempty"` // as configured; "" = kept by a version that did not note it
	Thoughts []thought `json:"thoughts,omitempty"`
	Later    []thought `json:"later,omitempty"` // of the first use: those between the text and the use
}

type thought struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// usage counts tokens by price class.
type usage struct{ fresh, written, read, output int64 }

// answer assembles an answer from its stream.
type answer struct {
	host   string
	asked  string // the configured model
	names  *wire.Names
	words  *textcall.Reader
	said   *textcall.Result // set once all words have come
	blocks []*block
	size   int
	stop   string
	over   bool
	model  string
	usage  usage
}

// block is one content block being assembled.
type block struct {
	kind     string
	id, name string
	args     strings.Builder
	thought  thought
	thinking strings.Builder // further pieces of its text
	joiner   wire.Joiner     // of text, thinking or arguments in pieces
}

// takeEvent handles one event. Unknown kinds are ignored, as the vendor asks.
func (a *answer) takeEvent(e *event) error {
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		u := e.Message.Usage
		a.usage = usage{fresh: u.Input, written: u.Written, read: u.Read, output: u.Output}
	case "content_block_start":
		return a.beginBlock(e)
	case "content_block_delta":
		return a.addDelta(e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		a.countUsage(&e.Usage)
	case "message_stop":
		a.over = true
		if a.stop == "" && a.size == 0 {
			return &llm.Error{Kind: llm.Truncated, Err: errors.New("message ended without a stop_reason")}
		}
	}
	return nil
}

// countUsage takes over totals. Absent ones do not apply.
func (a *answer) countUsage(u *counts) {
	a.usage.output = max(a.usage.output, u.Output)
	if u.Input > 0 {
		a.usage.fresh = u.Input
	}
	if u.Written > 0 {
		a.usage.written = u.Written
	}
	if u.Read > 0 {
		a.usage.read = u.Read
	}
}

func (a *answer) beginBlock(e *event) error {
	if e.Index != int64(len(a.blocks)) || e.Index >= maxBlocks {
		return garbledError("content block %d begins after %d blocks", e.Index, len(a.blocks))
	}
	c := &e.Block
	b := &block{kind: c.Type, id: c.ID, name: c.Name}
	switch c.Type {
	case partText:
		a.addText(c.Text)
	case partUse:
		if input := strings.TrimSpace(string(c.Input)); input != "" && input != "{}" && input != "null" {
			b.args.WriteString(input)
		}
	case partThinking:
		b.thought = thought{Text: c.Thinking, Signature: c.Signature}
		a.words.Think(a.fitText(c.Thinking))
	case partRedacted:
		b.thought = thought{Redacted: c.Data}
	}
	a.blocks = append(a.blocks, b)
	return nil
}

func (a *answer) addDelta(e *event) error {
	if e.Index < 0 || e.Index >= int64(len(a.blocks)) {
		return garbledError("a piece of content block %d, of which there are %d", e.Index, len(a.blocks))
	}
	b := a.blocks[e.Index]
	switch e.Delta.Type {
	case "text_delta":
		a.addText(b.joiner.Join(&e.Delta.Text))
	case "input_json_delta":
		if raw := e.Delta.JSON.Raw; raw != nil {
			b.args.WriteString(a.fitText(string(raw)))
		} else {
			b.args.WriteString(a.fitText(b.joiner.Join(&e.Delta.JSON)))
		}
	case "thinking_delta":
		text := a.fitText(b.joiner.Join(&e.Delta.Thinking))
		b.thinking.WriteString(text)
		a.words.Think(text)
	case "signature_delta":
		b.thought.Signature += e.Delta.Signature
	}
	return nil
}

func (a *answer) addText(text string) {
	if text = a.fitText(text); text != "" {
		a.words.Write(text)
	}
}

// fitText returns the part of a text that still fits. Beyond the limit, the answer ends as if at a token limit.
func (a *answer) fitText(text string) string {
	part, full := wire.FitAnswer(text, a.size)
	a.size += len(part)
	if full {
		a.over, a.stop = true, stopMaxTokens
	}
	return part
}

// makeResponse returns the whole answer. Thinking is attached to the use that it led to, because the
// vendor wants it back at its place.
func (a *answer) makeResponse() *llm.Response {
	res := &llm.Response{Stop: a.stopReason(), Model: a.model, Usage: llm.Usage{
		Input: int(a.usage.fresh + a.usage.written + a.usage.read), CachedInput: int(a.usage.read),
		Output: int(a.usage.output),
	}}
	from := origin{Host: a.host, Model: a.asked}
	seen, spoken := map[string]bool{}, false
	for _, b := range a.blocks {
		switch b.kind {
		case partThinking, partRedacted:
			b.thought.Text += b.thinking.String()
			if spoken && len(res.Uses) == 0 {
				from.Later = append(from.Later, b.thought)
			} else {
				from.Thoughts = append(from.Thoughts, b.thought)
			}
		case partText:
			spoken = true
		case partUse:
			id := b.id
			if id == "" || seen[id] {
				id = "use_" + rand.Text()
			}
			seen[id] = true
			use := llm.ToolUse{
				ID:   id,
				Name: a.names.Decode(textcall.CleanName(b.name)),
				Args: json.RawMessage(b.args.String()),
			}
			if len(use.Args) == 0 {
				use.Args = json.RawMessage("{}")
			}
			use.Args = a.names.DecodeArgs(use.Name, use.Args)
			if len(from.Thoughts)+len(from.Later) > 0 {
				if extra, err := json.Marshal(from); err == nil && len(extra) <= history.MaxOpaque {
					use.Extra = extra
				}
			}
			from.Thoughts, from.Later = nil, nil
			res.Uses = append(res.Uses, use)
		}
	}
	a.said = a.words.Finish(res.Stop == llm.StopLength)
	res.Text, res.Thoughts = a.said.Text, a.said.Thoughts
	res.Filtered = res.Stop == llm.StopRefusal && res.Text != ""
	if len(res.Uses) == 0 && res.Stop != llm.StopRefusal { // calls in the text count if the server has found none
		res.Unmade = a.said.Unmade
		for _, c := range a.said.Calls {
			res.Uses = append(res.Uses, llm.ToolUse{
				ID:   "use_" + rand.Text(),
				Name: c.Name,
				Args: a.names.DecodeArgs(c.Name, c.Args),
			})
		}
	}
	if len(res.Uses) > 0 && res.Stop == llm.StopEnd {
		res.Stop = llm.StopTools
	}
	return res
}

func (a *answer) stopReason() llm.Stop {
	switch a.stop {
	case stopToolUse:
		return llm.StopTools
	case stopMaxTokens, stopWindow:
		return llm.StopLength
	case stopRefusal:
		return llm.StopRefusal
	default:
		return llm.StopEnd
	}
}

func garbledError(format string, args ...any) error {
	return &llm.Error{Kind: llm.Truncated, Err: fmt.Errorf("server sent "+format, args...)}
}
