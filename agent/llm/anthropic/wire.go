package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// version is the API version that this package implements.
const version = "2023-06-01"

// The vocabulary of the API.
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
	Tools     []any     `json:"tools,omitempty"` // the result of standIn, or nil
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

// part is one block of content. Its type determines which fields it has. Pointer fields are sent even if the value they
// point to is empty.
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

// cacheMark marks the end of what the vendor's cache stores.
type cacheMark struct {
	Type string `json:"type"`
}

func ephemeralMark() *cacheMark { return &cacheMark{Type: "ephemeral"} }

func textPart(text string) part { return part{Type: partText, Text: &text} }

// standIn is a placeholder for the tools while the rest of a request is encoded.
func standIn(tools []byte) []any {
	if tools == nil {
		return nil
	}
	return []any{0}
}

// standInJSON is the encoding of standIn. It cannot occur earlier in a request, because quotes are escaped in strings.
const standInJSON = `"tools":[0]`

// encodeWith encodes a request with tools that are encoded already. Schemas and arguments keep every
// character: nothing is escaped for HTML.
func (r *request) encodeWith(tools []byte) ([]byte, error) {
	data, err := llm.PlainJSON(r)
	if err != nil || tools == nil {
		return data, err
	}
	before, after, ok := bytes.Cut(data, []byte(standInJSON))
	if !ok {
		return nil, errors.New("the request has no place for its tools")
	}
	return slices.Concat(before, []byte(`"tools":`), tools, after), nil
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
		Type       string        `json:"type"`
		Text       wire.Fragment `json:"text"`
		JSON       wire.Fragment `json:"partial_json"`
		Thinking   wire.Fragment `json:"thinking"`
		Signature  string        `json:"signature"`
		StopReason string        `json:"stop_reason"`
	} `json:"delta"`
	Error json.RawMessage `json:"error"`
	Usage counts          `json:"usage"`
}

// counts are numbers of tokens. Absent ones do not apply.
type counts struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}
