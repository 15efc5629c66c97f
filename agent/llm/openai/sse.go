package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// frames rewrites a server's stream into a form that the SDK's reader cannot misread: one line `data: {"frame":…}` or
// `data: {"failure":…}` for each event. The SDK alone loses `event: error`, takes a chunk that begins with
// {"error":null for a failure, gives up after 300 comment lines, cannot join several data lines and has no size limit.
// Line ends, comments and joining follow the WHATWG "server-sent events" specification. Beyond that, frames accepts
// data lines without an empty line between them, and a whole JSON answer instead of a stream.
type frames struct {
	body   io.ReadCloser
	in     *bufio.Reader
	out    bytes.Buffer
	err    error
	opened bool
	json   bool // the body is JSON, not a stream

	buffer []byte // for one line, reused
	event  string
	data   []byte
	has    bool // the event has data, which may be empty
	skipLF bool // the last line ended with CR

	ended   bool // the server said [DONE], or sent a whole answer instead of a stream
	skipped int  // events that were no JSON, or no object

	mark  []byte // what is in every event of the API
	heard bool   // an event of the API has come
	odd   []byte // until then: the beginning of what else came, at most complaint.MaxStray
	plain bool   // of that, something came outside of events
}

// frameBuffer is how many bytes of a stream are read ahead. The layers below read ahead more.
const frameBuffer = 512

// newFrames reads a stream. mark is a text that every event of the API contains.
func newFrames(body io.ReadCloser, mark []byte) *frames {
	return &frames{body: body, in: bufio.NewReaderSize(body, frameBuffer), mark: mark}
}

// keepStray keeps what is no event of the API, as long as none has come. It may say why.
func (f *frames) keepStray(data []byte, plain bool) {
	if f.heard || len(data) == 0 {
		return
	}
	f.plain = f.plain || plain
	data = data[:min(len(data), complaint.MaxStray-len(f.odd))]
	f.odd = append(append(f.odd, data...), '\n')[:min(len(f.odd)+len(data)+1, complaint.MaxStray)]
}

func (f *frames) Close() error { return f.body.Close() } //nolint:wrapcheck // a reader's own error

func (f *frames) Read(p []byte) (int, error) {
	for f.out.Len() == 0 && f.err == nil {
		f.err = f.readMore()
	}
	if f.out.Len() > 0 {
		return f.out.Read(p) //nolint:wrapcheck // a buffer that is not empty cannot fail
	}
	return 0, f.err
}

// readMore reads one line, or the whole of a JSON body.
func (f *frames) readMore() error {
	if !f.opened {
		if err := f.openBody(); err != nil {
			return err
		}
	}
	if f.json {
		return f.readWhole()
	}
	line, err := f.readLine()
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			f.takeLine(line)
		}
		if f.has && (json.Valid(f.data) || string(f.data) == "[DONE]") {
			f.dispatchEvent()
		}
		return err
	}
	f.takeLine(line)
	return nil
}

// openBody checks the first byte that is not white space: JSON begins with a brace or bracket, a stream never does.
func (f *frames) openBody() error {
	for {
		c, err := f.in.ReadByte()
		if err != nil {
			return err //nolint:wrapcheck // io.EOF must stay bare
		}
		if c == 0xEF { // byte order mark of UTF-8
			if _, err := f.in.Discard(2); err != nil {
				return err //nolint:wrapcheck // io.EOF must stay bare
			}
			continue
		}
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		if c == '<' {
			return wire.ErrWebPage
		}
		f.opened, f.json = true, c == '{' || c == '['
		return f.in.UnreadByte() //nolint:wrapcheck // follows ReadByte, cannot fail
	}
}

// readWhole reads JSON values until the end.
func (f *frames) readWhole() error {
	dec := json.NewDecoder(wire.LimitBody(struct {
		io.Reader
		io.Closer
	}{f.in, f.body}, wire.MaxEvent))
	for {
		var value json.RawMessage
		err := dec.Decode(&value)
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if _, broken := errors.AsType[*json.SyntaxError](err); broken && !f.heard && len(f.odd) == 0 {
			rest, _ := io.ReadAll(io.LimitReader(dec.Buffered(), complaint.MaxStray)) // of memory, cannot fail
			f.keepStray(rest, true)
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("read JSON answer: %w", err)
		}
		f.data, f.has, f.ended = value, true, true
		f.dispatchEvent()
	}
}

// readLine reads up to CR, LF or CRLF. The returned slice is overwritten by the next call.
func (f *frames) readLine() ([]byte, error) {
	line := f.buffer[:0]
	defer func() { f.buffer = line }()
	for {
		c, err := f.in.ReadByte()
		if err != nil {
			return line, err //nolint:wrapcheck // io.EOF must stay bare
		}
		skip := f.skipLF && c == '\n'
		f.skipLF = c == '\r'
		switch {
		case skip:
		case c == '\n' || c == '\r':
			return line, nil
		case len(line)+len(f.data) >= wire.MaxEvent:
			return nil, wire.ErrTooBig
		default:
			line = append(line, c)
		}
	}
}

// takeLine handles one line of a stream.
func (f *frames) takeLine(line []byte) {
	if len(line) == 0 {
		f.dispatchEvent()
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		if f.has {
			f.dispatchEvent()
		}
		f.event = string(bytes.TrimSpace(value))
	case "data":
		if f.has && (json.Valid(f.data) || string(f.data) == "[DONE]") {
			f.dispatchEvent()
		}
		if f.has {
			f.data = append(f.data, '\n')
		}
		f.data, f.has = append(f.data, value...), true
	case "", "id", "retry": // a comment, or what concerns who connects again
	default:
		f.keepStray(line, true)
	}
}

// dispatchEvent writes the event that has been collected.
func (f *frames) dispatchEvent() {
	data, event := bytes.TrimSpace(f.data), f.event
	f.event, f.data, f.has = "", f.data[:0], false // the data was copied in every case
	switch {
	case event == "error":
		f.writeFailure(data)
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.ended = true
		f.out.WriteString("data: [DONE]\n\n")
	default:
		f.writeFrame(data)
	}
}

func (f *frames) writeFrame(data []byte) {
	if !json.Valid(data) {
		if wire.DamagedEvent(data) {
			f.writeFailure([]byte(`{"message":"an event of the stream is not JSON","code":"` + garbledCode + `"}`))
			return
		}
		f.skipped++ // a keepalive in some form: whether the answer is whole is said by its end
		f.keepStray(data, false)
		return
	}
	if data[0] != '{' {
		f.handleOthers(data)
		return
	}
	var head struct {
		Error json.RawMessage `json:"error"`
	}
	// Most events do not contain the word and are not parsed twice.
	if mayName(data, "error") && json.Unmarshal(data, &head) == nil && wire.ReportsFailure(head.Error) {
		if f.json && !f.heard {
			// who speaks is not known to be a model server
			if _, known := complaint.Stray(nil, data, time.Time{}); !known {
				f.keepStray(data, true)
				return
			}
		}
		f.writeFailure(data)
		return
	}
	if _, refused := complaint.Hidden(data, time.Time{}); refused {
		f.writeFailure(data)
		return
	}
	if !f.heard {
		if f.heard = bytes.Contains(data, f.mark); !f.heard {
			f.keepStray(data, f.json)
		}
	}
	f.out.WriteString(`data: {"frame":`)
	if bytes.IndexByte(data, '\n') < 0 {
		f.out.Write(data)
	} else {
		f.writeCompact(data)
	}
	f.out.WriteString("}\n\n")
}

// handleOthers handles valid JSON that is no event: a list is the events in it, as a gateway joins them and as Gemini
// wraps an error, and anything else (null, a number, a string) is a keepalive in some form.
func (f *frames) handleOthers(data []byte) {
	var list []json.RawMessage
	if data[0] == '[' {
		_ = json.Unmarshal(data, &list) // cannot fail: the data is valid
	}
	if len(list) == 0 {
		f.skipped++
	}
	for _, one := range list {
		if one[0] == '{' {
			f.writeFrame(one)
		} else {
			f.skipped++
		}
	}
}

// writeCompact writes valid JSON as one line.
func (f *frames) writeCompact(data []byte) {
	_ = json.Compact(&f.out, data) // cannot fail: the input is valid
}

// mayName returns false if no object in a JSON text has a field of that name, which must not contain k or s.
// encoding/json matches names case-insensitively, where these two letters have non-ASCII forms, and an escape can
// represent any letter.
func mayName(data []byte, name string) bool {
	if bytes.Contains(data, []byte(`\u`)) {
		return true
	}
	for i := 0; i+len(name) <= len(data); i++ {
		if data[i]|0x20 == name[0] && bytes.EqualFold(data[i:i+len(name)], []byte(name)) {
			return true
		}
	}
	return false
}

func (f *frames) writeFailure(data []byte) {
	var compact bytes.Buffer
	if len(data) == 0 || json.Compact(&compact, data) != nil {
		compact.Reset()
		text, err := json.Marshal(string(data))
		if err != nil {
			text = []byte(`""`)
		}
		compact.Write(text)
	}
	fmt.Fprintf(&f.out, "data: {\"failure\":%s}\n\n", compact.Bytes())
}
