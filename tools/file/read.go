package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/charset"
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"file to read, relative to the working directory or absolute"`
	Offset int    `json:"offset,omitempty" jsonschema:"how many lines to skip; 0 starts at the first line"`
	Limit  *int   `json:"limit,omitempty" jsonschema:"how many lines to give; without it as many as fit"`
}

func atLeast(s *jsonschema.Schema, field string, least float64) {
	s.Properties[field].Minimum = new(least)
}

func (t *toolset) readTool() (tools.Tool, error) {
	return onPath[readArgs]{
		def: tools.Definition{
			Name: "read", ReadOnly: true,
			Description: "Reads a text file. Every line comes with its number. Use offset and limit for parts of " +
				"a long file.",
		},
		adjust: func(s *jsonschema.Schema) {
			atLeast(s, "offset", 0)
			atLeast(s, "limit", 1)
		},
		path: func(in readArgs) string { return in.Path }, follow: true,
		may: func(s *scope, p place, _ readArgs) error { return s.checkReadable(p) },
		run: readFile,
	}.newTool(t)
}

func readFile(s *scope, p place, in readArgs) (*tools.Result, error) {
	if in.Offset < 0 || (in.Limit != nil && *in.Limit < 1) {
		return nil, argumentError("", "offset must be 0 or more, limit 1 or more")
	}
	f, st, err := s.openContent(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	var content io.Reader = f
	if s.ReadText != nil {
		text, err := s.ReadText(s.ctx, p.abs)
		if err != nil {
			return nil, systemError(err, "read", p.given)
		}
		content, st.Size = strings.NewReader(text), int64(len(text))
	}
	r := bufio.NewReaderSize(content, sniff)
	head, err := r.Peek(sniff)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, systemError(err, "read", p.given)
	}
	if len(head) == 0 {
		return &tools.Result{Text: "(empty file)"}, nil
	}
	encoding, ok := charset.Detect(head, err != nil)
	if !ok {
		return &tools.Result{Text: binaryText(head, st.Size)}, nil
	}
	pager := &pager{s: s, r: bufio.NewReaderSize(encoding.Reader(r), sniff), max: s.MaxRead, in: in}
	text, more, err := pager.readPage()
	if err != nil {
		return nil, systemError(err, "read", p.given)
	}
	if note := encoding.Note(); note != "" {
		text = "[" + note + "]\n" + text
	}
	return &tools.Result{Text: text, Truncated: more}, nil
}

// maxLine is how many bytes of a line are shown.
const maxLine = 2000

// pager numbers the lines of a file.
type pager struct {
	s   *scope
	r   *bufio.Reader
	max int
	in  readArgs
	out strings.Builder
}

// readPage returns the requested lines. more reports that lines were left out because of the size limit.
func (p *pager) readPage() (text string, more bool, err error) {
	given := 0
	for n := 0; ; n++ {
		line, size, err := p.readLine()
		if errors.Is(err, io.EOF) {
			return p.answerAtEnd(n, given), false, nil
		}
		if err != nil {
			return "", false, err
		}
		if n < p.in.Offset {
			continue
		}
		full := given > 0 && p.out.Len()+len(line)+8 > p.max
		if full || (p.in.Limit != nil && given == *p.in.Limit) {
			fmt.Fprintf(&p.out, "\n[more lines follow: go on with offset %d]", n)
			return p.out.String(), full, nil
		}
		if given > 0 {
			p.out.WriteByte('\n')
		}
		fmt.Fprintf(&p.out, "%4d\t%s", n+1, shownLine(line, size))
		given++
	}
}

// answerAtEnd returns the answer for a file that ended after n lines.
func (p *pager) answerAtEnd(n, given int) string {
	if given == 0 {
		return fmt.Sprintf("[the file has %s: nothing at offset %d]", countNoun(n, "line", "lines"), p.in.Offset)
	}
	return p.out.String()
}

// readLine reads one line without its end. Only the beginning of a long line is kept; size is its full length.
func (p *pager) readLine() (line []byte, size int, err error) {
	var kept []byte
	for {
		part, err := p.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if len(part) == 0 && size == 0 {
			return nil, 0, io.EOF
		}
		size += len(part)
		if room := maxLine + 2 - len(kept); room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if err == nil || errors.Is(err, io.EOF) {
			break
		}
		if err := p.s.ctx.Err(); err != nil {
			return nil, 0, err
		}
	}
	if size <= maxLine+2 {
		kept = bytes.TrimSuffix(kept, []byte("\n"))
		kept = bytes.TrimSuffix(kept, []byte("\r"))
		size = len(kept)
	}
	if p.s.ctx.Err() != nil {
		return nil, 0, p.s.ctx.Err()
	}
	return kept, size, nil
}

// shownLine returns a line as the model reads it: cut if it is long, described if it is not text.
func shownLine(line []byte, size int) string {
	cut := size > maxLine
	if cut {
		line = line[:min(maxLine, len(line))]
		for i := 0; i < utf8.UTFMax && len(line) > 0 && !utf8.FullRune(line[lastRune(line):]); i++ {
			line = line[:lastRune(line)]
		}
	}
	if !utf8.Valid(line) {
		return fmt.Sprintf("[not UTF-8: %s]", countNoun(size, "byte", "bytes"))
	}
	if cut {
		return fmt.Sprintf("%s … [line cut: %d bytes in all]", line, size)
	}
	return string(line)
}

// lastRune returns the start of the last character of b.
func lastRune(b []byte) int {
	i := len(b) - 1
	for i > 0 && len(b)-i < utf8.UTFMax && !utf8.RuneStart(b[i]) {
		i--
	}
	return i
}
