package file

import (
	"io"
	"strings"

	"github.com/zephbot/zephbot/policy/redact"
)

// What a model reads went through the redactor: a credential is shown to it as redact.Mask. A model that writes back
// what it saw would destroy the credential, so no call may put more masks into a file than there were. A file that has
// the mask as a text of its own keeps it.

// masked refuses to write the mask.
func masked(p place) error {
	return refused("Change the lines around it and leave the line with the credential as it is: edit with an old_string that does not reach into it. "+
		"Do not write the file as a whole. If the credential itself has to change, ask the person to do it.",
		"%s is not changed: %s stands for a credential that was hidden from you, and writing it would destroy what is really there", quote(p.given), redact.Mask)
}

// masks counts the masks that a file has already; one that cannot be read has none.
func (s *scope) masks(p place) int {
	return strings.Count(s.peek(p), redact.Mask)
}

// holds reports that a file has this very text.
func (s *scope) holds(p place, text string) bool {
	content := s.peek(p)
	return strings.Contains(content, text) || strings.Contains(content, crlf(text))
}

// peek is the content of a file that may be read, as far as write and edit look at files; "" for all others.
func (s *scope) peek(p place) string {
	if !p.regular() {
		return ""
	}
	f, _, err := s.openContent(p)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // opened for reading
	content, err := io.ReadAll(io.LimitReader(f, int64(s.MaxWrite)))
	if err != nil {
		return ""
	}
	return string(content)
}
