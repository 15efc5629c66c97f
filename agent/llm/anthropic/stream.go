package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// streamError is a failure reported within the stream, as JSON.
type streamError struct{ data []byte }

// Error implements error.
func (streamError) Error() string { return "the server reported a failure" }

// stream reads the server-sent events of one answer.
type stream struct {
	in    *bufio.Reader
	name  string   // name of the event being read
	data  []byte   // its data
	begun bool     // the first byte was looked at
	whole []*event // of an answer that does not come as a stream, those that next has not returned yet

	ended   bool // the server said that the answer is over, in another API's words
	skipped int  // events that were no JSON, or no object

	heard bool   // an event of the API has come
	odd   []byte // until then: the beginning of what else came, at most complaint.MaxStray
	plain bool   // of that, something came outside of events
}

// keepStray keeps what is no event of the API, as long as none has come. It may say why.
func (s *stream) keepStray(data []byte, plain bool) {
	if s.heard || len(data) == 0 {
		return
	}
	s.plain = s.plain || plain
	s.odd = append(s.odd, data[:min(len(data), complaint.MaxStray-len(s.odd))]...)
	if len(s.odd) < complaint.MaxStray {
		s.odd = append(s.odd, '\n')
	}
}

func newStream(body io.Reader) *stream { return &stream{in: bufio.NewReader(body)} }

// nextEvent returns the next event, or io.EOF at the end. Events without data are skipped. An event that lacks the
// final empty line counts if its data is complete.
func (s *stream) nextEvent() (*event, error) {
	if !s.begun {
		s.begun = true
		switch s.firstByte() {
		case '<':
			return nil, wire.ErrWebPage
		case '{':
			if err := s.readMessage(); err != nil {
				return nil, err
			}
		}
	}
	if len(s.whole) > 0 {
		e := s.whole[0]
		s.whole = s.whole[1:]
		return e, nil
	}
	for {
		line, err := s.readLine()
		if len(line) > 0 {
			if s.readField(line) > wire.MaxEvent {
				return nil, wire.ErrTooBig
			}
			if err == nil {
				continue
			}
		}
		data, name := s.data, s.name
		s.data, s.name = nil, ""
		if data = bytes.TrimSpace(data); len(data) > 0 {
			valid := json.Valid(data)
			switch {
			case string(data) == "[DONE]":
				s.ended = true
			case valid && data[0] == '{' || name == "error" && (valid || err == nil):
				e, err := decodeEvent(name, data)
				if err == nil && e.Type == "" {
					s.keepStray(data, false)
				} else if err == nil && e.Type != "ping" {
					s.heard = true
				}
				return e, err
			case err == nil && wire.DamagedEvent(data):
				return nil, garbledError("an event that is not as the API describes it: %s", "it is not JSON")
			default:
				s.skipped++ // a keepalive in some form: whether the answer is whole is said by its end
				s.keepStray(data, false)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// firstByte returns the first byte that is not white space; 0 = none.
func (s *stream) firstByte() byte {
	for {
		c, err := s.in.Peek(1)
		if err != nil {
			return 0
		}
		if bytes.IndexByte([]byte(" \t\r\n"), c[0]) < 0 {
			return c[0]
		}
		_, _ = s.in.Discard(1) // what was peeked can be discarded
	}
}

// readMessage reads an answer that comes as a whole, as the events that a stream would have had.
func (s *stream) readMessage() error {
	data, err := io.ReadAll(s.in)
	if err != nil {
		return err //nolint:wrapcheck // classified by failure
	}
	var head struct {
		Type       string            `json:"type"`
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Error      json.RawMessage   `json:"error"`
	}
	if _, broken := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &head)); broken &&
		json.NewDecoder(bytes.NewReader(data)).Decode(&head) == nil {
		s.keepStray(data, true) // lines of JSON
		return io.EOF
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return garbledError("an answer that is not as the API describes it: %s", err)
	}
	if head.Type != "message" && head.Type != "error" && head.StopReason == "" && len(head.Content) == 0 {
		if _, known := complaint.Stray(nil, data, time.Time{}); !known || complaint.Foreign(data) != "" {
			s.keepStray(data, true)
			return io.EOF
		}
		return streamError{data}
	}
	s.heard = true
	if _, hidden := complaint.Hidden(data, time.Time{}); hidden ||
		head.Type == "error" || wire.ReportsFailure(head.Error) {
		return streamError{data}
	}
	start := &event{Type: "message_start"}
	if err := json.Unmarshal(data, &start.Message); err != nil {
		return garbledError("an answer that is not as the API describes it: %s", err)
	}
	s.whole = append(s.whole, start)
	for i, raw := range head.Content {
		e := &event{Type: "content_block_start", Index: int64(i)}
		if err := json.Unmarshal(raw, &e.Block); err != nil {
			return garbledError("a content block that is not as the API describes it: %s", err)
		}
		s.whole = append(s.whole, e)
	}
	end := &event{Type: "message_delta", Usage: start.Message.Usage}
	end.Delta.StopReason = head.StopReason
	s.whole = append(s.whole, end, &event{Type: "message_stop"})
	return nil
}

// readLine reads up to the next newline, which is removed. The length of a line is limited by adapter.Lines.
func (s *stream) readLine() ([]byte, error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err //nolint:wrapcheck // classified by failure
	}
	return bytes.TrimRight(line, "\r\n"), err //nolint:wrapcheck // io.EOF must stay bare
}

// readField handles one line of an event and returns the size of its data. Comments and irrelevant fields are ignored.
func (s *stream) readField(line []byte) int {
	key, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(key) {
	case "event":
		s.name = string(value)
	case "data":
		if len(s.data) > 0 {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
	case "", "id", "retry": // a comment, or what concerns who connects again
	default:
		s.keepStray(line, true)
	}
	return len(s.data)
}

// decodeEvent decodes the data of an event.
func decodeEvent(name string, data []byte) (*event, error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil && name != "error" {
		return nil, garbledError("an event that is not as the API describes it: %s", err)
	}
	if name == "error" || e.Type == "error" || wire.ReportsFailure(e.Error) {
		return nil, streamError{data}
	}
	return &e, nil
}
