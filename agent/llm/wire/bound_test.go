package wire_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/wire"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"": nil, "12345\n12345\n\n1": nil, "123456": wire.ErrTooBig, "1\n123456\n": wire.ErrTooBig, "12345\n123456": wire.ErrTooBig,
	} {
		for _, step := range []int{1, 3, 100} {
			body := wire.LimitLines(io.NopCloser(pieces{strings.NewReader(text), step}), 5)
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
		{"abc", wire.MaxAnswer - 3, "abc", false},
		{"abc", wire.MaxAnswer - 2, "ab", true},
		{"aäb", wire.MaxAnswer - 2, "a", true}, // no split character
		{"a", wire.MaxAnswer, "", true},
		{"", wire.MaxAnswer, "", false},
		{"a", wire.MaxAnswer + 7, "", true},
	} {
		if part, full := wire.FitAnswer(tt.text, tt.size); part != tt.part || full != tt.full {
			t.Errorf("%q after %d bytes: %q %t", tt.text, tt.size, part, full)
		}
	}
}
