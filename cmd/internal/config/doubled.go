package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxDoubled limits how many headers are ignored, so that a hostile file costs little.
const maxDoubled = 64

// doubledHeader is a line [table] before [[table]], as in an example of older documentation. It has no meaning, and
// TOML forbids it.
type doubledHeader struct {
	line int
	name string
}

func (h doubledHeader) warning(file string) Problem {
	return Problem{File: file, Line: h.line, Key: h.name, Text: fmt.Sprintf(
		"[%s] directly before [[%s]] is not valid TOML; it is read as if it did not stand there: remove this line",
		h.name, h.name,
	)}
}

// withoutDoubled blanks the lines [table] that come directly before [[table]] and contain nothing of their own, if they
// are why the document cannot be parsed. Line numbers do not change. Every other document is returned unchanged.
func withoutDoubled(data []byte) ([]byte, []doubledHeader) {
	var left []doubledHeader
	now := data
	for len(left) < maxDoubled {
		bad, ok := decodeError(now)
		if !ok {
			return now, left
		}
		lines := bytes.SplitAfter(now, []byte("\n"))
		at, _ := bad.Position()
		name, i := headerBefore(lines, at-1)
		if i < 0 {
			break
		}
		copied := append([][]byte{}, lines...)
		copied[i] = []byte("\n")
		now = bytes.Join(copied, nil)
		left = append(left, doubledHeader{line: i + 1, name: name})
	}
	return now, left // it has other errors too, which the parser describes
}

func decodeError(data []byte) (*toml.DecodeError, bool) {
	tree := map[string]any{}
	err := toml.Unmarshal(data, &tree)
	return errors.AsType[*toml.DecodeError](err)
}

// headerBefore finds the line [name] before the line [[name]] with the number at, from 0; only empty lines and comments
// may be between them. -1 = none.
func headerBefore(lines [][]byte, at int) (name string, line int) {
	if at < 1 || at >= len(lines) {
		return "", -1
	}
	name, ok := header(lines[at], "[[", "]]")
	if !ok {
		return "", -1
	}
	for i := at - 1; i >= 0; i-- {
		text := strings.TrimSpace(string(lines[i]))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if own, ok := header(lines[i], "[", "]"); ok && own == name {
			return name, i
		}
		break
	}
	return "", -1
}

// header parses the name between brackets; a comment may follow.
func header(line []byte, open, shut string) (string, bool) {
	text := strings.TrimSpace(string(line))
	rest, ok := strings.CutPrefix(text, open)
	if !ok || strings.HasPrefix(rest, "[") {
		return "", false
	}
	name, after, ok := strings.Cut(rest, shut)
	after = strings.TrimSpace(after)
	return strings.TrimSpace(name), ok && (after == "" || strings.HasPrefix(after, "#")) &&
		strings.TrimSpace(name) != ""
}
