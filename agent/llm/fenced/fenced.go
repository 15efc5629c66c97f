// Package fenced enables tools for a model without native tool calls (tool_use = false; seeds 002 and 004 call it text
// extraction). It wraps a provider: the tools are described in the system prompt, the history is converted to plain
// text, and fenced blocks of the answer become tool uses. It executes nothing and decides nothing: its uses walk the
// same chain as any other.
//
// # What is a call
//
//   - ```bash: the block is the command of the tool "bash".
//   - ```scrape: the arguments of the tool "web_scrape", as a JSON object or as lines "url: …", "select: …", "extract:
//     …", "limit: …".
//   - ```tool: one or several objects {"name": …, "arguments": {…}}, one after the other or in an array.
//
// The info string must consist of that word alone, in lower case. A bash or scrape block is ordinary text if its tool
// is not offered, because people ask for shell examples. All blocks are ordinary text if no tool is offered. A name
// that was not offered is passed on unchanged, so that the chain can answer that there is no such tool. A block that is
// not JSON is passed on with its raw text as arguments, so that the chain can reject it with its usual message.
//
// Fences follow CommonMark 0.31, 4.5: three or more backticks or tildes, indented by at most three spaces, closed by at
// least as many of the same kind. A fence within a longer fence, or within a fence of another language, is an example
// and not a call. An opening line longer than 256 bytes is ordinary text.
//
// A block without a closing fence is never a call. After StopLength the rest was cut off, and half a command may do
// what the whole one would not have done ("rm -rf /tmp/x" cut after the first slash). After StopEnd the model may just
// have forgotten the fence, but many servers report "stop" when their context was full, so the two cases cannot be
// distinguished. For the same reason, a closing fence at the very end of an answer cut by StopLength does not close the
// block: it may be the beginning of a longer line. Such a block stays in the text.
//
// # Bounds
//
// One answer contains at most Options.MaxUses calls. A tool block that would exceed the limit is rejected as a whole
// (it becomes one use with its raw text as arguments), and blocks after the last call are ordinary text. The
// instructions tell the model so.
package fenced

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// DefaultMaxUses is the most calls in one answer.
const DefaultMaxUses = 16

// Options configure New. The zero value is ready for use.
type Options struct {
	// Native is the part of the system prompt that is meant for models with native tool calls ("do not write commands
	// into code fences"). It is removed, because it would be wrong here; "" = nothing is removed.
	Native string
	// MaxUses limits the calls of one answer; 0 or negative = DefaultMaxUses.
	MaxUses int
}

// provider is the wrapper. It is stateless, and as safe for concurrent use as inner.
type provider struct {
	inner llm.Provider
	o     Options
}

// New wraps inner. The wrapper has the name of inner.
func New(inner llm.Provider, o Options) llm.Provider {
	if o.MaxUses <= 0 {
		o.MaxUses = DefaultMaxUses
	}
	return &provider{inner: inner, o: o}
}

// Name implements llm.Provider.
func (p *provider) Name() string { return p.inner.Name() }

// Accepts implements llm.Accepter.
func (p *provider) Accepts() llm.Accepts { return llm.AcceptsOf(p.inner) }

// Chat implements llm.Provider. onDelta gets the answer's Text: without the blocks that became uses.
func (p *provider) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	plain := *req
	plain.System = p.systemText(req)
	plain.Messages = words.Messages(req.Messages)
	plain.Tools, plain.TextTools = nil, req.Tools // the model may fall back into the notation of its own template
	if len(req.Tools) == 0 {
		return p.inner.Chat(ctx, &plain, onDelta) //nolint:wrapcheck // the wrapped provider's own error
	}
	c := newCollector(req, p.o.MaxUses, onDelta)
	if req.OnReset != nil {
		plain.OnReset = func() {
			c.discardAll()
			req.OnReset()
		}
	}
	res, err := p.inner.Chat(ctx, &plain, c.feedText)
	if err != nil {
		return nil, c.correctFailure(err)
	}
	return c.makeResponse(res), nil
}

// collector separates the text and the calls of one answer.
type collector struct {
	req     *llm.Request
	onDelta func(string)
	max     int

	scan  *scanner
	seen  strings.Builder // everything that was streamed
	shown bool            // something reached onDelta
	uses  []llm.ToolUse
}

func newCollector(req *llm.Request, limit int, onDelta func(string)) *collector {
	c := &collector{req: req, max: limit, onDelta: onDelta}
	c.scan = newScanner(blockTags(req.Tools), c.handleBlock)
	return c
}

// blockTags returns the info strings of blocks that are calls.
func blockTags(offered []llm.Tool) []string {
	list := []string{toolTag}
	for _, t := range offered {
		switch t.Name {
		case bashTool:
			list = append(list, bashTag)
		case scrapeTool:
			list = append(list, scrapeTag)
		}
	}
	return list
}

// discardAll discards everything, because the answer starts over.
func (c *collector) discardAll() {
	c.scan = newScanner(c.scan.tags, c.handleBlock)
	c.seen.Reset()
	c.uses, c.shown = nil, false
}

func (c *collector) feedText(text string) {
	c.seen.WriteString(text)
	c.showText(c.scan.feedPiece(text))
}

func (c *collector) showText(text string) {
	if text != "" && c.onDelta != nil {
		c.shown = true
		c.onDelta(text)
	}
}

// handleBlock handles a closed block; false = it is ordinary text.
func (c *collector) handleBlock(tag, body string) bool {
	if len(c.uses) >= c.max {
		return false
	}
	uses := parseBlock(tag, body)
	if len(c.uses)+len(uses) > c.max {
		uses = []llm.ToolUse{malformedUse(body)}
	}
	c.uses = append(c.uses, uses...)
	return true
}

// makeResponse returns the answer with its calls.
func (c *collector) makeResponse(res *llm.Response) *llm.Response {
	out := *res
	if rest, ok := strings.CutPrefix(res.Text, c.seen.String()); ok {
		c.feedText(rest) // the provider did not stream, or not to the end
	} else { // the provider streamed something else: its whole text counts, but what was shown cannot be taken back
		c.discardAll()
		c.onDelta = nil
		c.feedText(res.Text)
	}
	c.showText(c.scan.finishText(res.Stop == llm.StopLength))
	out.Text = c.scan.text.String()
	if res.Stop == llm.StopRefusal {
		return &out
	}
	// A server may return calls although no tools were sent. Those come first, unchanged.
	out.Uses = append(append([]llm.ToolUse(nil), res.Uses...), c.uses...)
	numberUses(out.Uses, len(res.Uses))
	switch {
	case len(out.Uses) > 0:
		out.Stop = llm.StopTools
	case out.Stop == llm.StopTools:
		out.Stop = llm.StopEnd
	}
	return &out
}

// numberUses gives the uses from index first on ids that no other use of the message has.
func numberUses(uses []llm.ToolUse, first int) {
	taken := map[string]bool{}
	for _, u := range uses[:first] {
		taken[u.ID] = true
	}
	n := 0
	for i := first; i < len(uses); i++ {
		for uses[i].ID == "" || taken[uses[i].ID] {
			n++
			uses[i].ID = fmt.Sprintf("block_%d", n)
		}
		taken[uses[i].ID] = true
	}
}

// correctFailure corrects what the wrapped provider reports about streamed text, because some
// of it may have been held back.
func (c *collector) correctFailure(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Streamed == c.shown {
		return err
	}
	corrected := *e
	corrected.Streamed = c.shown
	return &corrected
}
