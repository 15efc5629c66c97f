package file

import (
	"io"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools/charset"
)

// The redactor has replaced credentials in what a model reads by redact.Mask. If a model wrote the mask back, it would
// destroy the credential. A call therefore must not increase the number of masks in a file. A file that really contains
// the mask as text keeps it.

// maskedError returns the error for writing the mask.
func maskedError(p place) error {
	return refusedError("Change the lines around it and leave the line with the credential as it is: edit with an "+
		"old_string that does not reach into it. "+
		"Do not write the file as a whole. If the credential itself has to change, ask the person to do it.",
		reason.HidesCredential, quoteName(p.given), redact.Mask)
}

// countMasks returns the number of masks that a file contains; 0 if it cannot be read.
func (s *scope) countMasks(p place) int {
	return strings.Count(s.peekText(p), redact.Mask)
}

// holdsText reports whether a file has exactly this text.
func (s *scope) holdsText(p place, text string) bool {
	content := s.peekText(p)
	return strings.Contains(content, text) || strings.Contains(content, toCRLF(text))
}

// peekText returns the text of a file that may be read, within the size that write and edit handle; "" for all others.
func (s *scope) peekText(p place) string {
	raw := s.peekContent(p)
	encoding, ok := charset.Detect(raw, false)
	if !ok {
		return string(raw)
	}
	return encoding.Decode(raw)
}

// peekContent is peekText without decoding.
func (s *scope) peekContent(p place) []byte {
	if !p.isRegular() {
		return nil
	}
	f, _, err := s.openContent(p)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // opened for reading
	content, err := io.ReadAll(io.LimitReader(f, int64(s.MaxWrite)))
	if err != nil {
		return nil
	}
	return content
}
