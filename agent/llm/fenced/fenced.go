// Package fenced lets a model without tool calls of its own use tools (tool_use = false; seeds 002 and 004 call it text
// extraction). It wraps a provider: the tools are described in the system prompt, the history is told in plain text,
// and fenced blocks of the answer become tool uses. It executes nothing and decides nothing: a use it finds walks the
// same chain as any other.
//
// # What is a call
//
//   - ```bash: the block is the command of the tool "bash".
//   - ```scrape: the arguments of the tool "web_scrape", as a JSON object or as lines "url: …", "select: …", "extract:
//     …", "limit: …".
//   - ```tool: one or several objects {"name": …, "arguments": {…}}, one after the other or in an array.
//
// The word after the fence must stand there alone and in lower case. A bash or scrape block is ordinary text when its
// tool is not offered: people ask for shell examples. All blocks are ordinary text when no tool is offered. A name
// nobody offered is passed on as it is, so that the chain can answer that there is no such tool; a block that is not
// JSON is passed on with its raw text as arguments, so that the chain can refuse it in its own words.
//
// Fences follow CommonMark 0.31, 4.5: three or more backticks or tildes, indented by at most three blanks, closed by at
// least as many of the same kind. A fence within a longer fence or in a fence of another language is an example and is
// not a call. An opening line longer than 256 bytes is ordinary text.
//
// A block whose closing fence is missing is never a call. After StopLength the rest was cut off, and half a command may
// do what the whole one would not have done ("rm -rf /tmp/x" cut after the first slash). After StopEnd it looks like
// forgetfulness, but many servers say "stop" when their context was full, so the two cannot be told apart. For the same
// reason a closing fence that is the very end of an answer cut by StopLength does not close: it may be the beginning of
// a longer line. Such a block stays in the text.
//
// # Bounds
//
// One answer holds at most Options.MaxUses calls. A tool block that would pass the bound is refused as a whole (it
// becomes one use with its raw text as arguments), and blocks after the last call are ordinary text; the instructions
// tell the model so.
package fenced

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// DefaultMaxUses is how many calls one answer may hold.
const DefaultMaxUses = 16

// Options are the tunables of New; the zero value is ready.
type Options struct {
	// Native is the part of the system prompt that is meant for models with tool calls of their own ("do not write
	// commands into code fences"). It is taken out, because here it would be wrong; "" = nothing is taken out.
	Native string
	// MaxUses bounds the calls of one answer; 0 = DefaultMaxUses, negative is taken for 0.
	MaxUses int
}

// provider is the wrapper. Safe for concurrent use as far as inner is; it keeps nothing.
type provider struct {
	inner llm.Provider
	o     Options
}

// New wraps inner. The wrapper has inner's name.
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

// Chat implements llm.Provider. What onDelta gets is the answer's Text: the blocks that became uses are not in it.
func (p *provider) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	plain := *req
	plain.System = p.system(req)
	plain.Messages = messages(req.Messages)
	plain.Tools = nil
	if len(req.Tools) == 0 {
		return p.inner.Chat(ctx, &plain, onDelta) //nolint:wrapcheck // the wrapped provider's own error
	}
	c := newCollector(req, p.o.MaxUses, onDelta)
	if req.OnReset != nil {
		plain.OnReset = func() {
			c.reset()
			req.OnReset()
		}
	}
	res, err := p.inner.Chat(ctx, &plain, c.feed)
	if err != nil {
		return nil, c.failure(err)
	}
	return c.response(res), nil
}

// collector takes one answer apart.
type collector struct {
	req     *llm.Request
	onDelta func(string)
	max     int

	scan  *scanner
	seen  strings.Builder // all that was streamed
	shown bool            // something reached onDelta
	uses  []llm.ToolUse
}

func newCollector(req *llm.Request, limit int, onDelta func(string)) *collector {
	c := &collector{req: req, max: limit, onDelta: onDelta}
	c.scan = newScanner(tags(req.Tools), c.block)
	return c
}

// tags are the languages of blocks that are calls.
func tags(offered []llm.Tool) []string {
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

// reset forgets everything: the answer begins afresh.
func (c *collector) reset() {
	c.scan = newScanner(c.scan.tags, c.block)
	c.seen.Reset()
	c.uses, c.shown = nil, false
}

func (c *collector) feed(text string) {
	c.seen.WriteString(text)
	c.show(c.scan.feed(text))
}

func (c *collector) show(text string) {
	if text != "" && c.onDelta != nil {
		c.shown = true
		c.onDelta(text)
	}
}

// block takes a closed block; false = it is ordinary text.
func (c *collector) block(tag, body string) bool {
	if len(c.uses) >= c.max {
		return false
	}
	uses := parse(tag, body)
	if len(c.uses)+len(uses) > c.max {
		uses = []llm.ToolUse{malformed(body)}
	}
	c.uses = append(c.uses, uses...)
	return true
}

// response is the answer with its calls.
func (c *collector) response(res *llm.Response) *llm.Response {
	out := *res
	if rest, ok := strings.CutPrefix(res.Text, c.seen.String()); ok {
		c.feed(rest) // a provider that streams nothing, or not to the end
	} else { // a provider that broke its promise: its whole text is what counts, and what was shown cannot be taken back
		c.reset()
		c.onDelta = nil
		c.feed(res.Text)
	}
	c.show(c.scan.finish(res.Stop == llm.StopLength))
	out.Text = c.scan.text.String()
	if res.Stop == llm.StopRefusal {
		return &out
	}
	// A server may call tools although none were sent; its calls come first, as they are.
	out.Uses = append(append([]llm.ToolUse(nil), res.Uses...), c.uses...)
	number(out.Uses, len(res.Uses))
	switch {
	case len(out.Uses) > 0:
		out.Stop = llm.StopTools
	case out.Stop == llm.StopTools:
		out.Stop = llm.StopEnd
	}
	return &out
}

// number gives the uses from first on ids that no other use of the message has.
func number(uses []llm.ToolUse, first int) {
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

// failure corrects what the wrapped provider says about streamed text: some of it may have been held back.
func (c *collector) failure(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Streamed == c.shown {
		return err
	}
	corrected := *e
	corrected.Streamed = c.shown
	return &corrected
}
