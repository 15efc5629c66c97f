package config

import (
	"fmt"
	"io"
	"strconv"
)

// redacted is printed in place of a secret.
const redacted = "[redacted]"

// Secret is a text that is never printed: fmt, JSON, text, TOML and zerolog all show "[redacted]" (nothing if it is
// empty). Only Reveal returns it.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", or "" for the empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString returns what %#v prints.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format prints the redacted text whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'q', verb == 'v' && f.Flag('#'):
		_, _ = io.WriteString(f, s.GoString())
	default:
		_, _ = io.WriteString(f, s.String())
	}
}

// MarshalJSON writes the redacted text; zerolog's Interface and Any use it too.
func (s Secret) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, s.String()), nil }

// MarshalText returns the redacted text. The receiver is a pointer because go-toml ignores the method of a value whose
// kind is string, and would write the secret itself.
func (s *Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
