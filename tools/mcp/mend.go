package mcp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// The library reads an answer as a whole or not at all: one block of an unknown kind costs the result, one bad tool the
// list, and an error that is no object the connection. So what it could not read is replaced before it reads it.

const (
	shownPart = 2000   // bytes of a block that cannot be read, for the model
	internal  = -32603 // the code of an error that has none (JSON-RPC 2.0)
)

// mendMessage returns a message in which the library can read everything, and what was wrong with it in words for the
// log. A message without a mistake is returned as it is.
func mendMessage(message []byte) (mended []byte, faults []string) {
	if !bytes.Contains(message, []byte(`"error"`)) && !bytes.Contains(message, []byte(`"result"`)) {
		return message, nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || m["method"] != nil {
		return message, nil
	}
	if fault := m["error"]; fault != nil && string(fault) != "null" {
		var e struct {
			Code    int64           `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		}
		if json.Unmarshal(fault, &e) == nil {
			return message, nil
		}
		m["error"] = encodeJSON(map[string]any{"code": internal, "message": plainText(fault)})
		faults = append(faults, "an error that is not an object with a code and a message")
	} else if m["result"] != nil {
		m["result"], faults = mendResult(m["result"])
	}
	if len(faults) == 0 {
		return message, nil
	}
	return encodeJSON(m), faults
}

// mendResult mends the blocks of a result and the tools of a list.
func mendResult(result json.RawMessage) (mended json.RawMessage, faults []string) {
	var m map[string]json.RawMessage
	if json.Unmarshal(result, &m) != nil {
		return result, nil
	}
	if raw := m["content"]; raw != nil && !isReadable[sdk.CallToolResult]("content", raw) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil { // one block or one text without a list
			list = []json.RawMessage{raw}
		}
		for i, block := range list {
			if !isReadable[sdk.CallToolResult]("content", encodeJSON([]json.RawMessage{block})) {
				var fault string
				list[i], fault = mendBlock(block)
				faults = append(faults, fault)
			}
		}
		m["content"] = encodeJSON(list)
		if len(faults) == 0 {
			faults = append(faults, "content that is not a list")
		}
	}
	var list, kept []json.RawMessage
	if raw := m["tools"]; raw != nil && json.Unmarshal(raw, &list) == nil &&
		!isReadable[sdk.ListToolsResult]("tools", raw) {
		for _, tool := range list {
			if isReadable[sdk.ListToolsResult]("tools", encodeJSON([]json.RawMessage{tool})) {
				kept = append(kept, tool)
			} else {
				faults = append(faults, "a tool that cannot be read: "+guard.Line(cutText(string(tool), 200), 200))
			}
		}
		m["tools"] = encodeJSON(append([]json.RawMessage{}, kept...))
	}
	if len(faults) == 0 {
		return result, nil
	}
	return encodeJSON(m), faults
}

// isReadable reports whether the library reads a field of a result.
func isReadable[Result any](field string, value json.RawMessage) bool {
	var r Result
	return json.Unmarshal(encodeJSON(map[string]json.RawMessage{field: value}), &r) == nil
}

// mendBlock replaces a block of a result that cannot be read.
func mendBlock(block json.RawMessage) (mended json.RawMessage, fault string) {
	say := func(text string) json.RawMessage { return encodeJSON(map[string]string{"type": "text", "text": text}) }
	var m map[string]any
	if json.Unmarshal(block, &m) != nil || m == nil {
		return say(plainText(block)), "a block of a result that is not an object"
	}
	kind, _ := m["type"].(string)
	if field, holder := dataOf(m); field != "" {
		if data, ok := lenientBase64(fmt.Sprint(holder[field])); ok {
			holder[field] = data
			if whole := encodeJSON(m); isReadable[sdk.CallToolResult]("content", encodeJSON([]json.RawMessage{whole})) {
				return whole, "base64 in a form of its own"
			}
		}
		fault = "a block of the kind " + guard.Line(cutText(kind, 40), 40) + " whose data is not base64"
		return say("[" + guard.Line(cutText(kind, 40), 40) + ": its data is not valid base64]"), fault
	}
	fault = "a block of the unknown kind " + guard.Line(cutText(kind, 40), 40)
	return say("[a part of a kind that is not known here: " + cutText(string(block), shownPart) + "]"), fault
}

// dataOf returns the field of a block that is base64, and the object that holds it; "" = none.
func dataOf(block map[string]any) (field string, holder map[string]any) {
	switch block["type"] {
	case "image", "audio":
		if block["data"] != nil {
			return "data", block
		}
	case "resource":
		if r, ok := block["resource"].(map[string]any); ok && r["blob"] != nil {
			return "blob", r
		}
	}
	return "", nil
}

// lenientBase64 reads base64 as servers write it (with line breaks, without padding, with the alphabet of URLs, as a
// data: address) and returns it as RFC 4648 section 4 has it.
func lenientBase64(text string) (standard string, ok bool) {
	if head, rest, found := strings.Cut(text, ","); found && strings.HasPrefix(head, "data:") {
		text = rest
	}
	text = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, text)
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	return base64.StdEncoding.EncodeToString(data), true
}

// plainText returns a JSON value as text: a string as what it says, anything else as it is written.
func plainText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return cutText(string(value), shownPart)
}

// encodeJSON encodes what is always valid JSON.
func encodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null") // unreachable: all values come from a decoder
	}
	return bytes.TrimSpace(b.Bytes())
}

// mending mends the messages of an HTTP answer: the whole document, or each line of data of a stream. It belongs to one
// reader.
type mending struct {
	io.ReadCloser

	stream bool
	note   func(faults []string)
	lines  *bufio.Reader
	rest   []byte
	err    error
}

func newMending(body io.ReadCloser, stream bool, note func([]string)) *mending {
	return &mending{ReadCloser: body, stream: stream, note: note, lines: bufio.NewReaderSize(body, 4<<10)}
}

// Read implements io.Reader.
func (m *mending) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		if m.rest, m.err = m.nextFrame(); m.err != nil && !errors.Is(m.err, io.EOF) {
			m.rest = nil
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *mending) nextFrame() ([]byte, error) {
	if !m.stream {
		text, err := io.ReadAll(m.lines)
		if err == nil {
			err = io.EOF
		}
		return m.mendFrame(text), err
	}
	line, err := m.lines.ReadBytes('\n')
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return line, err
	}
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	message := bytes.TrimSpace(data)
	if mended := m.mendFrame(message); !bytes.Equal(mended, message) {
		line = append(append([]byte("data: "), mended...), end...)
	}
	return line, err
}

func (m *mending) mendFrame(message []byte) []byte {
	mended, faults := mendMessage(message)
	if len(faults) > 0 {
		m.note(faults)
	}
	return mended
}
