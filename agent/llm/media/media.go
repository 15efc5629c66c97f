// Package media brings what is no text into a vendor's request. It knows what well-known models take, reads the
// contents that a wire can send, within its bounds, and puts everything else into words, so that a model is always told
// what it does not see.
package media

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Rules are what a wire can send to its model.
type Rules struct {
	Accepts llm.Accepts
	Types   []string // media types that the vendor reads
	Image   int64    // bytes of one picture
	Other   int64    // bytes of one other content
	Total   int64    // bytes of all contents of a request; the newest count first
}

// Content is a content as it goes into a request.
type Content struct {
	Type string // what the content is, whatever its source said
	Data string // in base64
	Size int    // bytes
}

// URL is the content as an address of its own.
func (c Content) URL() string { return "data:" + c.Type + ";base64," + c.Data }

// Contents are the contents of one request. A nil *Contents has none.
type Contents struct {
	found   map[string]Content
	missing map[string]string // by hash: why
	rules   *Rules
}

// Why a model does not get a content.
const (
	notTaken  = "this model does not take such content"
	nameOnly  = "only its name is known"
	unread    = "its content is not kept any more or cannot be read"
	tooLarge  = "it is too large for this model"
	noRoom    = "newer content fills the request"
	otherType = "its format is not one that this model reads"
	refused   = "the model's server refused it"
)

// Chat asks with the contents of the request, and without them when the server refuses the request as it is: one broken
// picture must not end a conversation in whose history it stays. once makes one request. Errors are those of once, or
// of ctx.
func Chat(ctx context.Context, req *llm.Request, rules *Rules, once func(*Contents) (*llm.Response, error)) (*llm.Response, error) {
	contents, err := Read(ctx, req, rules)
	if err != nil {
		return nil, err
	}
	res, err := once(contents)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Invalid || e.Streamed || contents == nil || len(contents.found) == 0 {
		return res, err
	}
	for hash := range contents.found {
		contents.missing[hash] = refused
	}
	clear(contents.found)
	return once(contents)
}

// Read reads the contents of a request that the rules allow, the newest first. Only the end of ctx is an error: what
// cannot be read is put into words.
func Read(ctx context.Context, req *llm.Request, rules *Rules) (*Contents, error) {
	var c *Contents
	room := rules.Total
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		for _, list := range [...][]llm.Part{m.Parts, m.Result.Attached()} {
			for k := range list {
				if c == nil {
					c = &Contents{found: map[string]Content{}, missing: map[string]string{}, rules: rules}
				}
				if err := c.add(ctx, req, &list[k], &room); err != nil {
					return nil, err
				}
			}
		}
	}
	return c, nil
}

// add reads one content, unless it is known already.
func (c *Contents) add(ctx context.Context, req *llm.Request, p *llm.Part, room *int64) error {
	if p.Hash == "" || !c.rules.Accepts.Takes(p.Kind) {
		return nil
	}
	if known, ok := c.found[p.Hash]; ok { // sent once more
		*room -= int64(known.Size)
		return nil
	}
	if c.missing[p.Hash] != "" {
		return nil
	}
	limit := c.rules.Other
	if p.Kind == llm.ImagePart {
		limit = c.rules.Image
	}
	why := ""
	switch {
	case req.Open == nil:
		why = unread
	case p.Size > limit:
		why = tooLarge
	case p.Size > *room:
		why = noRoom
	}
	if why != "" {
		c.missing[p.Hash] = why
		return nil
	}
	data, err := read(ctx, req, p.Hash, limit)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("read the contents of a request: %w", ctxErr)
	}
	kind := mediaType(data)
	switch {
	case err != nil:
		c.missing[p.Hash] = unread
	case int64(len(data)) > limit:
		c.missing[p.Hash] = tooLarge
	case !slices.Contains(c.rules.Types, kind):
		c.missing[p.Hash] = otherType
	default:
		*room -= int64(len(data))
		c.found[p.Hash] = Content{Type: kind, Data: base64.StdEncoding.EncodeToString(data), Size: len(data)}
	}
	return nil
}

// read reads a content up to one byte more than the limit.
func read(ctx context.Context, req *llm.Request, hash string, limit int64) ([]byte, error) {
	r, err := req.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	return data, errors.Join(err, r.Close())
}

// mediaType says what a content is by its first bytes: a vendor that is told something else refuses the whole request.
func mediaType(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return kind
}

// Of is the content of a part, or false and the line that takes its place.
func (c *Contents) Of(p *llm.Part) (content Content, line string, ok bool) {
	why := notTaken
	switch {
	case p.Kind == llm.TextPart:
		return Content{}, p.Text, false
	case p.Hash == "":
		why = nameOnly
	case c != nil && c.missing[p.Hash] != "":
		why = c.missing[p.Hash]
	case c != nil:
		if content, ok = c.found[p.Hash]; ok && c.rules.Accepts.Takes(p.Kind) {
			return content, "", true
		}
	}
	return Content{}, Line(p, why), false
}

// Line names a part in one line, with what has to be said of it.
func Line(p *llm.Part, what string) string {
	var b strings.Builder
	b.WriteString("[" + string(p.Kind))
	if p.Name != "" {
		b.WriteString(" " + strconv.Quote(p.Name))
	}
	if p.Type != "" {
		b.WriteString(", " + strconv.Quote(p.Type))
	}
	if p.Size > 0 {
		b.WriteString(", " + strconv.FormatInt(p.Size, 10) + " bytes")
	}
	if what != "" {
		b.WriteString(": " + what)
	}
	b.WriteString("]")
	return b.String()
}

// Plain is a text with every part in words, for models that take nothing else.
func Plain(text string, parts []llm.Part) string { return (*Contents)(nil).Text(text, parts) }

// Text is a text with a line for each part whose content is not sent.
func (c *Contents) Text(text string, parts []llm.Part) string {
	for i := range parts {
		_, line, ok := c.Of(&parts[i])
		if ok || line == "" {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += line
	}
	return text
}

// Sent lists the parts whose content is sent.
func (c *Contents) Sent(parts []llm.Part) []llm.Part {
	if c == nil {
		return nil
	}
	var list []llm.Part
	for i := range parts {
		if _, _, ok := c.Of(&parts[i]); ok {
			list = append(list, parts[i])
		}
	}
	return list
}
