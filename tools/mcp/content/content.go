// Package content converts what MCP servers send: results of tools into text for the model and parts for the chat,
// definitions into those of package guard, and requests for input into forms. It does no I/O. Everything that a server
// wrote is cleaned and limited here.
package content

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Defaults for Options.
const (
	DefaultMaxText = 1 << 20 // bytes
	defaultMaxData = 4 << 20 // bytes
)

// Limits of one result.
const (
	minText  = 512 // bytes: the smallest Options.MaxText
	maxParts = 200 // parts that are listed individually
	maxLabel = 200 // bytes of a name, type or address in a line
)

// Options of Render.
type Options struct {
	Server  string  // id
	Output  *Schema // schema of the structured result; nil = it is not checked
	MaxText int     // bytes of text for the model; 0 = DefaultMaxText
	MaxData int     // bytes of images and other data kept for the chat, for all parts together; 0 = defaultMaxData
}

// Raw is Result.Raw: what a result contained besides text.
type Raw struct {
	Parts      []Part          `json:"parts,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Mismatch   string          `json:"mismatch,omitempty"` // how Structured violates the tool's output schema
}

// Part is an image, a sound, a resource or a link in a result.
type Part struct {
	Kind    Kind   `json:"kind"`
	MIME    string `json:"mime,omitempty"`
	Name    string `json:"name,omitempty"`
	URI     string `json:"uri,omitempty"`
	Note    string `json:"note,omitempty"` // description of a link
	Size    int64  `json:"size,omitempty"` // bytes, if known
	Data    []byte `json:"data,omitempty"` // base64 in JSON
	Omitted bool   `json:"omitted,omitempty"`
}

// Kind is the kind of a part.
type Kind string

// Kinds of parts.
const (
	Image    Kind = "image"
	Audio    Kind = "audio"
	Resource Kind = "resource"      // its content is included
	Link     Kind = "resource link" // its content has to be fetched
)

// Render converts a result for the chain. The text consists of what the server said, one line for each part that is not
// text, and the structured result, unless a text is the same. It is valid UTF-8 without control sequences, and limited
// in length. The result is always marked as untrusted. Render never fails: the text says what could not be shown. ctx
// ends the check of the structured result.
func Render(ctx context.Context, res *mcp.CallToolResult, o Options) *tools.Result {
	out := &tools.Result{Untrusted: source.MCP(o.Server)}
	if res == nil {
		return out
	}
	if o.MaxText <= 0 {
		o.MaxText = DefaultMaxText
	}
	if o.MaxData <= 0 {
		o.MaxData = defaultMaxData
	}
	w := &writer{limit: max(o.MaxText, minText), data: o.MaxData}
	for _, c := range res.Content {
		w.content(c)
	}
	if w.more > 0 {
		w.paragraph(fmt.Sprintf("[and %d more parts that are not shown]", w.more))
	}
	structured, mismatch := structure(ctx, res, o.Output)
	if structured != nil && !w.repeats(structured) {
		w.paragraph(string(structured))
		if len(res.Content) == 0 {
			out.MIME = "application/json"
		}
	}
	if mismatch != "" {
		out.MIME = ""
		w.note(mismatch)
	}
	out.Text, out.Truncated = w.finish()
	if out.Truncated {
		out.MIME = ""
	}
	out.Error = res.IsError
	if len(structured) > o.MaxData {
		structured = nil
	}
	if len(w.parts) > 0 || structured != nil || mismatch != "" {
		out.Raw = Raw{Parts: w.parts, Structured: structured, Mismatch: mismatch}
	}
	return out
}

// structure returns the structured result as JSON (nil = none) and one sentence about what is wrong with it.
func structure(ctx context.Context, res *mcp.CallToolResult, schema *Schema) (value json.RawMessage, mismatch string) {
	if res.StructuredContent == nil {
		if schema != nil && !res.IsError {
			return nil, "The tool promises a structured result and gave none."
		}
		return nil, ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(res.StructuredContent); err != nil {
		return nil, "The structured result cannot be read."
	}
	value = bytes.TrimSpace(b.Bytes())
	if schema != nil && !res.IsError {
		if problem := schema.Check(ctx, value); problem != "" {
			mismatch = "The structured result does not fit the tool's output schema: " + problem + "."
		}
	}
	return value, mismatch
}

// writer collects text up to a limit, and parts.
type writer struct {
	b     strings.Builder
	limit int      // bytes of text
	data  int      // bytes of data that can still be kept
	texts []string // what the server said
	cut   bool
	notes []string
	parts []Part
	more  int
}

func (w *writer) content(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		if c != nil {
			w.texts = append(w.texts, c.Text)
			w.paragraph(c.Text)
		}
	case *mcp.ImageContent:
		if c != nil {
			w.part(Part{Kind: Image, MIME: c.MIMEType, Size: int64(len(c.Data)), Data: c.Data})
		}
	case *mcp.AudioContent:
		if c != nil {
			w.part(Part{Kind: Audio, MIME: c.MIMEType, Size: int64(len(c.Data)), Data: c.Data})
		}
	case *mcp.ResourceLink:
		if c != nil {
			w.part(link(c))
		}
	case *mcp.EmbeddedResource:
		if c != nil && c.Resource != nil {
			w.resource(c.Resource)
		}
	case nil:
	default:
		w.paragraph("[a part of a kind that is not known here]")
	}
}

// repeats reports whether a text of the server is the structured result once more, as the specification recommends
// (2025-11-25, structured content).
func (w *writer) repeats(structured json.RawMessage) bool {
	var want any
	if json.Unmarshal(structured, &want) != nil {
		return false
	}
	return slices.ContainsFunc(w.texts, func(text string) bool {
		var said any
		return json.Unmarshal([]byte(text), &said) == nil && reflect.DeepEqual(said, want)
	})
}

func link(c *mcp.ResourceLink) Part {
	p := Part{Kind: Link, MIME: c.MIMEType, Name: c.Title, URI: c.URI, Note: c.Description}
	if p.Name == "" {
		p.Name = c.Name
	}
	if c.Size != nil && *c.Size > 0 {
		p.Size = *c.Size
	}
	return p
}

func (w *writer) resource(r *mcp.ResourceContents) {
	p := Part{Kind: Resource, MIME: r.MIMEType, URI: r.URI, Size: int64(len(r.Blob)), Data: r.Blob}
	if r.Text == "" {
		w.part(p)
		return
	}
	p.Size, p.Data = int64(len(r.Text)), []byte(r.Text)
	w.part(p)
	w.paragraph(r.Text)
}

// part records a part that is not text: a line for the model, the content for the chat.
func (w *writer) part(p Part) {
	if len(w.parts) == maxParts {
		w.more++
		return
	}
	p.MIME = guard.Line(Clean(p.MIME), maxLabel)
	p.Name = guard.Line(Clean(p.Name), maxLabel)
	p.URI = guard.Line(Clean(p.URI), 4*maxLabel)
	p.Note = guard.Line(Clean(p.Note), 2*maxLabel)
	if len(p.Data) > w.data {
		p.Data, p.Omitted = nil, true
	}
	w.data -= len(p.Data)
	w.parts = append(w.parts, p)
	w.paragraph(p.String())
}

// String returns one line about the part, as the model reads it.
func (p Part) String() string {
	words := []string{}
	for _, s := range []string{p.Name, p.MIME} {
		if s != "" {
			words = append(words, s)
		}
	}
	if p.Size > 0 {
		words = append(words, size(p.Size))
	}
	if p.URI != "" {
		words = append(words, p.URI)
	}
	text := "[" + string(p.Kind)
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	if p.Note != "" {
		text += " – " + p.Note
	}
	return text + "]"
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1000/1000)
	}
}

// note adds a sentence of our own. Notes come at the end and are never cut.
func (w *writer) note(text string) { w.notes = append(w.notes, "["+text+"]") }

// paragraph adds text on a new line, as far as it fits.
func (w *writer) paragraph(text string) {
	if w.cut {
		return
	}
	room := w.limit - w.b.Len()
	if w.b.Len() > 0 {
		room-- // for the line break
	}
	head := text
	if len(head) > 4*w.limit { // cleaning shortens text, but not by this much
		head = cutText(head, 4*w.limit)
		w.cut = true
	}
	head = Clean(head)
	if len(head) > max(room, 0) {
		head = cutText(head, max(room, 0))
		w.cut = true
	}
	if w.b.Len() > 0 && head != "" {
		w.b.WriteByte('\n')
	}
	w.b.WriteString(head)
}

// finish joins text and notes within the limit.
func (w *writer) finish() (text string, truncated bool) {
	text = w.b.String()
	if len(w.notes) == 0 && !w.cut {
		return text, false
	}
	tail := strings.Join(w.notes, "\n")
	if w.cut || len(text)+1+len(tail) > w.limit {
		w.cut = true
		w.note("The result was cut: it is longer than " + size(int64(w.limit)) + ".")
		tail = strings.Join(w.notes, "\n")
		text = cutText(text, w.limit-1-len(tail))
	}
	if text != "" {
		text += "\n"
	}
	return text + tail, w.cut
}
