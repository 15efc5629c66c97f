package adapter_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"": nil, "12345\n12345\n\n1": nil, "123456": adapter.ErrTooBig, "1\n123456\n": adapter.ErrTooBig, "12345\n123456": adapter.ErrTooBig,
	} {
		for _, step := range []int{1, 3, 100} {
			body := adapter.Lines(io.NopCloser(pieces{strings.NewReader(text), step}), 5)
			data, err := io.ReadAll(body)
			if !errors.Is(err, want) || (want == nil && string(data) != text) {
				t.Errorf("%q in steps of %d: %q, %v", text, step, data, err)
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// pieces returns a few bytes at a time.
type pieces struct {
	io.Reader
	most int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.most)]) }

func TestRoom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		size int
		part string
		full bool
	}{
		{"abc", 0, "abc", false},
		{"abc", adapter.MaxAnswer - 3, "abc", false},
		{"abc", adapter.MaxAnswer - 2, "ab", true},
		{"aäb", adapter.MaxAnswer - 2, "a", true}, // no split character
		{"a", adapter.MaxAnswer, "", true},
		{"", adapter.MaxAnswer, "", false},
		{"a", adapter.MaxAnswer + 7, "", true},
	} {
		if part, full := adapter.Room(tt.text, tt.size); part != tt.part || full != tt.full {
			t.Errorf("%q after %d bytes: %q %t", tt.text, tt.size, part, full)
		}
	}
}
