package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm/negotiate"
)

// standInJSON is the SDK's encoding of standIn. It cannot occur in a text, because quotes are escaped there.
const standInJSON = `"tools":[{"type":""}]`

// standIn is a placeholder for the tools of a request while the SDK encodes it.
func standIn(tools []byte) []goopenai.Tool {
	if tools == nil {
		return nil
	}
	return []goopenai.Tool{{}}
}

// messagesInJSON is the SDK's encoding of messagesIn.
const messagesInJSON = `"messages":[{"role":""}]`

// messagesIn is a placeholder for the messages of a request while the SDK encodes it: the SDK would encode each one
// twice.
func messagesIn() []goopenai.ChatCompletionMessage { return []goopenai.ChatCompletionMessage{{}} }

var errNoPlace = errors.New("the request lacks the placeholder")

// fillRequest replaces the placeholders of a request by messages and tools, and changes its
// fields to what the server takes.
func (x *exchange) fillRequest(req *http.Request) error {
	if x.messages == nil && x.tools == nil && x.form == nil {
		return nil
	}
	edits := x.fieldEdits()
	rest, err := ownBody(req)
	if err == nil {
		rest, err = edits.Object(rest)
	}
	if err != nil {
		return err
	}
	var parts [][]byte
	for _, part := range []struct {
		standIn, name []byte
		field         string
		value         []byte
	}{ // in the order of the request
		{[]byte(messagesInJSON), []byte(`"messages":`), "messages", x.messages},
		{[]byte(standInJSON), []byte(`"tools":`), "tools", x.tools},
	} {
		if part.value == nil {
			continue
		}
		before, after, ok := bytes.Cut(rest, part.standIn)
		if !ok {
			return errNoPlace
		}
		value, err := edits.Value(part.field, part.value)
		if err != nil {
			return err //nolint:wrapcheck // says what it is about
		}
		parts, rest = append(parts, before, part.name, value), after
	}
	x.pieces = append(parts, rest)
	setBody(req, x.pieces...)
	return nil
}

// fieldEdits returns the changes of the request's fields.
func (x *exchange) fieldEdits() *negotiate.Edits {
	if x.form == nil {
		return &negotiate.Edits{}
	}
	return &x.form.Edits
}

// ownBody reads the body of a request that has not been sent yet.
func ownBody(req *http.Request) ([]byte, error) {
	data := bytes.NewBuffer(make([]byte, 0, max(req.ContentLength, 0)+bytes.MinRead))
	if _, err := data.ReadFrom(req.Body); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	return data.Bytes(), nil
}

// setBody sets the body of a request from pieces without joining them. The tools of a request are far longer than the
// rest and shared by all requests; joining would copy them for each while its model thinks.
func setBody(req *http.Request, parts ...[]byte) {
	req.ContentLength = 0
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&pieces{rest: parts}), nil }
	req.Body = io.NopCloser(&pieces{rest: parts})
}

// pieces reads byte slices one after another. It changes neither them nor their list.
type pieces struct {
	rest [][]byte
	read int // position in the first
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.rest) > 0 && p.read == len(p.rest[0]) {
		p.rest, p.read = p.rest[1:], 0
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.rest[0][p.read:])
	p.read += n
	return n, nil
}
