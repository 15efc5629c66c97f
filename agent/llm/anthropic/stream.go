package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

// streamError is a failure that the server tells within the stream, as its JSON.
type streamError struct{ data []byte }

// Error implements error.
func (streamError) Error() string { return "server reports a failure" }

// stream reads the server-sent events of one answer.
type stream struct {
	in   *bufio.Reader
	name string // of the event being read
	data []byte // of it
}

func newStream(body io.Reader) *stream { return &stream{in: bufio.NewReader(body)} }

// next gives the next event; io.EOF at the end. Events without data are passed over, and one whose end is missing
// counts when it is complete.
func (s *stream) next() (*event, error) {
	for {
		line, err := s.line()
		if len(line) > 0 {
			if s.field(line) > adapter.MaxEvent {
				return nil, adapter.ErrTooBig
			}
			if err == nil {
				continue
			}
		}
		data, name := s.data, s.name
		s.data, s.name = nil, ""
		switch {
		case len(data) > 0 && (err == nil || json.Valid(data)):
			return decode(name, data)
		case err != nil:
			return nil, err
		}
	}
}

// line reads up to the next newline and cuts it off. How long a line may be is bounded by adapter.Lines.
func (s *stream) line() ([]byte, error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err //nolint:wrapcheck // classified by failure
	}
	return bytes.TrimRight(line, "\r\n"), err //nolint:wrapcheck // io.EOF must stay bare
}

// field takes one line of an event and gives the size of its data; comments and fields that do not matter are passed
// over.
func (s *stream) field(line []byte) int {
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
	}
	return len(s.data)
}

// decode reads the data of an event.
func decode(name string, data []byte) (*event, error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil && name != "error" {
		return nil, garbled("an event that is not as the API describes it: %s", err)
	}
	if name == "error" || e.Type == "error" {
		return nil, streamError{data}
	}
	return &e, nil
}
