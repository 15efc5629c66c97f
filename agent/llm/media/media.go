// Package media adds contents that are not text to a vendor's request. It knows what well-known models take, reads the
// contents that an adapter can send, within its limits, and puts all others into words, so that a model is always told
// about what it cannot see.
package media

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Rules are the limits of what an adapter can send to its model.
type Rules struct {
	Accepts llm.Accepts
	Types   []string // media types that the vendor accepts
	Image   int64    // bytes of one picture
	Other   int64    // bytes of one other content
	Total   int64    // bytes of all contents of a request; the newest take precedence
}

// Content is a content as it is sent.
type Content struct {
	Type string // detected type, whatever its source said
	Data string // a mark that Fill replaces by the content in base64
	Size int    // bytes
}

// URL returns the content as a data URL.
func (c Content) URL() string { return "data:" + c.Type + ";base64," + c.Data }

// Contents are the contents of one request. A nil *Contents has none.
type Contents struct {
	found   map[string]Content
	missing map[string]string // by hash: the reason
	open    func(ctx context.Context, hash string) (io.ReadCloser, error)
	rules   *Rules
}

// The reasons why a model does not get a content.
const (
	notTaken  = "this model does not take such content"
	nameOnly  = "only its name is known"
	unread    = "its content is not kept any more or cannot be read"
	tooLarge  = "it is too large for this model"
	noRoom    = "newer content fills the request"
	otherType = "its format is not one that this model reads"
	refused   = "the model's server refused it"
)

// Refuse puts all contents into words, because the server does not take them: one broken picture must not end a
// conversation that has it in its history.
func (c *Contents) Refuse() {
	if c == nil {
		return
	}
	for hash := range c.found {
		c.missing[hash] = refused
	}
	clear(c.found)
}

// Read reads the contents of a request that the rules allow, the newest first. It fails only when ctx ends: contents
// that cannot be read are put into words.
func Read(ctx context.Context, req *llm.Request, rules *Rules) (*Contents, error) {
	var c *Contents
	room := rules.Total
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		for _, list := range [...][]llm.Part{m.Parts, m.Result.Attached()} {
			for k := range list {
				if c == nil {
					c = &Contents{
						found:   map[string]Content{},
						missing: map[string]string{},
						rules:   rules,
						open:    req.Open,
					}
				}
				if err := c.addContent(ctx, req, &list[k], &room); err != nil {
					return nil, err
				}
			}
		}
	}
	return c, nil
}

// addContent reads one content unless it has been read already.
func (c *Contents) addContent(ctx context.Context, req *llm.Request, p *llm.Part, room *int64) error {
	if p.Hash == "" || !c.rules.Accepts.Takes(p.Kind) {
		return nil
	}
	if known, ok := c.found[p.Hash]; ok { // the same content again
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
	kind, size, err := lookAt(ctx, req, p.Hash, limit)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("read request contents: %w", ctxErr)
	}
	switch {
	case err != nil:
		c.missing[p.Hash] = unread
	case size > limit:
		c.missing[p.Hash] = tooLarge
	case !slices.Contains(c.rules.Types, kind):
		c.missing[p.Hash] = otherType
	default:
		*room -= size
		c.found[p.Hash] = Content{Type: kind, Data: "content" + rand.Text() + rand.Text(), Size: int(size)}
	}
	return nil
}

// sniffed is how much of a content tells its type (http.DetectContentType).
const sniffed = 512

// lookAt reads a content once, at most one byte more than the limit, and keeps nothing but its type and size.
func lookAt(ctx context.Context, req *llm.Request, hash string, limit int64) (kind string, size int64, err error) {
	r, err := req.Open(ctx, hash)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", 0, err
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(r, limit+1-int64(n)))
	return mediaType(head[:n]), int64(n) + rest, err
}

// mediaType detects the type of a content by its first bytes, because a vendor rejects the whole request if the type is
// wrong.
func mediaType(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return kind
}

// Of returns the content of a part, or false and the line that replaces it.
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
	return Content{}, describePart(p, why), false
}

// describePart describes a part in one line, with the reason why it is not sent.
func describePart(p *llm.Part, what string) string {
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

// Plain returns a text with every part in words, for models that take nothing else.
func Plain(text string, parts []llm.Part) string { return (*Contents)(nil).Text(text, parts) }

// Text returns a text with a line for each part whose content is not sent.
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
