package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

// streamError is a failure reported within the stream, as JSON.
type streamError struct{ data []byte }

// Error implements error.
func (streamError) Error() string { return "the server reported a failure" }

// stream reads the server-sent events of one answer.
type stream struct {
	in   *bufio.Reader
	name string // name of the event being read
	data []byte // its data
}

func newStream(body io.Reader) *stream { return &stream{in: bufio.NewReader(body)} }

// next returns the next event, or io.EOF at the end. Events without data are skipped. An event that lacks the final
// empty line counts if its data is complete.
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

// line reads up to the next newline, which is removed. The length of a line is limited by adapter.Lines.
func (s *stream) line() ([]byte, error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err //nolint:wrapcheck // classified by failure
	}
	return bytes.TrimRight(line, "\r\n"), err //nolint:wrapcheck // io.EOF must stay bare
}

// field handles one line of an event and returns the size of its data. Comments and irrelevant fields are ignored.
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

// decode decodes the data of an event.
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
