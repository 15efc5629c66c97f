package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// version is the form of the API that this package speaks.
const version = "2023-06-01"

// The words of the API.
const (
	roleUser      = "user"
	roleAssistant = "assistant"

	partText     = "text"
	partUse      = "tool_use"
	partResult   = "tool_result"
	partThinking = "thinking"
	partRedacted = "redacted_thinking"
	partImage    = "image"
	partDocument = "document"

	stopToolUse   = "tool_use"
	stopMaxTokens = "max_tokens"
	stopWindow    = "model_context_window_exceeded"
	stopRefusal   = "refusal"
)

// request is the body of POST /v1/messages.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Metadata  *metadata `json:"metadata,omitempty"`
	Tools     []any     `json:"tools,omitempty"` // standIn, or none
	System    []part    `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Stream    bool      `json:"stream"`
}

type metadata struct {
	User string `json:"user_id"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheMark      `json:"cache_control,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

// part is one block of content. Which fields it has depends on its type; those that are pointers are sent when they are
// empty, too.
type part struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Use       string          `json:"tool_use_id,omitempty"`
	Content   []part          `json:"content,omitempty"`
	Failed    *bool           `json:"is_error,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`
	Cache     *cacheMark      `json:"cache_control,omitempty"`
}

// source is the content of a picture or document.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// cacheMark ends what the vendor's cache keeps.
type cacheMark struct {
	Type string `json:"type"`
}

func ephemeral() *cacheMark { return &cacheMark{Type: "ephemeral"} }

func textPart(text string) part { return part{Type: partText, Text: &text} }

// standIn stands in a request for its tools while the rest is written.
func standIn(tools []byte) []any {
	if tools == nil {
		return nil
	}
	return []any{0}
}

// standInJSON is what is written of standIn. Nothing before it can hold it: quotes are escaped in texts.
const standInJSON = `"tools":[0]`

// encode writes a request, with tools as they are written already. Schemas and arguments keep every character: nothing
// is escaped for HTML.
func (r *request) encode(tools []byte) ([]byte, error) {
	data, err := plainJSON(r)
	if err != nil || tools == nil {
		return data, err
	}
	before, after, ok := bytes.Cut(data, []byte(standInJSON))
	if !ok {
		return nil, errors.New("the request has no place for its tools")
	}
	return slices.Concat(before, []byte(`"tools":`), tools, after), nil
}

// plainJSON writes JSON without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// event is one event of the stream, with the fields of all kinds.
type event struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage counts `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage counts `json:"usage"`
}

// counts are numbers of tokens; those that do not apply are absent.
type counts struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}
