package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/charset"
)

type editArgs struct {
	Path       string `json:"path" jsonschema:"file to change, relative to the working directory or absolute"`
	OldString  string `json:"old_string" jsonschema:"text to replace, exactly as it stands in the file; it must stand there once"`
	NewString  string `json:"new_string" jsonschema:"text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

func (t *toolset) editTool() (tools.Tool, error) {
	return onPath[editArgs]{
		def: tools.Definition{
			Name: "edit", Destructive: true,
			Description: "Replaces text in a file. old_string must occur exactly once, unless replace_all is set. " +
				"Give enough of the lines around it to make it unique.",
		},
		path: func(in editArgs) string { return in.Path }, follow: true,
		show: func(s *scope, p place, in editArgs) string {
			return showName(s.displayPath(p.abs)) + "\n" + prefixLines("- ", in.OldString) +
				prefixLines("+ ", in.NewString)
		},
		note: func(_ *scope, _ place, in editArgs) []reason.Reason {
			if in.ReplaceAll {
				return []reason.Reason{reason.New(reason.EveryOccurrence)}
			}
			return nil
		},
		check: func(s *scope, p place, in editArgs) error {
			if strings.Count(in.NewString, redact.Mask) > strings.Count(in.OldString, redact.Mask) ||
				strings.Contains(in.OldString, redact.Mask) && !s.holdsText(p, in.OldString) {
				return maskedError(p)
			}
			return nil
		},
		may:     mayEdit,
		writes:  true,
		preview: editedText,
		run:     editFile,
	}.newTool(t)
}

// mayEdit refuses what cannot be edited regardless of its content. It does not use the content, because the caller may
// need an approval to read it.
func mayEdit(s *scope, p place, in editArgs) error {
	switch {
	case in.OldString == "":
		return argumentError("To make a file or replace all of it use write.", "old_string is empty")
	case in.OldString == in.NewString:
		return argumentError("", "old_string and new_string are the same: nothing to change")
	}
	if err := s.checkReadable(p); err != nil {
		return err
	}
	return s.checkWritable(p)
}

// prefixLines puts a prefix before every line of text.
func prefixLines(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(mark + strings.TrimRight(line, "\r\n") + "\n")
	}
	return b.String()
}

func editFile(s *scope, p place, in editArgs) (*tools.Result, error) {
	if err := mayEdit(s, p, in); err != nil {
		return nil, err
	}
	content, encoding, st, err := s.readEditable(p)
	if err != nil {
		return nil, err
	}
	if hasCRLF(content) {
		in.OldString, in.NewString = toCRLF(in.OldString), toCRLF(in.NewString)
	}
	found := findOccurrences(content, in.OldString)
	switch {
	case len(found) == 0:
		return nil, absentError(p, content, in.OldString)
	case len(found) > 1 && !in.ReplaceAll:
		return nil, argumentError("Give more of the text around the place that is meant, or set replace_all.",
			"old_string occurs %d times in %s, on lines %s", len(found), quoteName(p.given), lineList(content, found))
	}
	if size := len(content) + len(found)*(len(in.NewString)-len(in.OldString)); size > s.MaxWrite {
		return nil, argumentError("", "the file would have %d bytes; at most %d may be written", size, s.MaxWrite)
	}
	c := change{old: content, found: found, from: in.OldString, to: in.NewString}
	after := c.changedText(0, len(content))
	// this also covers a mask that the edit only completes
	if strings.Count(after, redact.Mask) > strings.Count(content, redact.Mask) {
		return nil, maskedError(p)
	}
	raw, err := encoding.Encode(after)
	if err != nil {
		return nil, argumentError("Use other characters, or write the whole file anew: then it becomes UTF-8.",
			"%s cannot hold the new text: %v", quoteName(p.given), err)
	}
	if err := s.replaceFile(p, raw, &st); err != nil {
		return nil, systemError(err, "edit", p.given)
	}
	text := fmt.Sprintf(
		"Replaced %s in %s\n%s",
		countNoun(len(found), "occurrence", "occurrences"), showName(s.displayPath(p.abs)), c.changedLines(),
	)
	if !encoding.IsUTF8() {
		text += "[written as " + encoding.Name + ", as the file was]\n"
	}
	return &tools.Result{Text: strings.TrimRight(text, "\n")}, nil
}

// readEditable reads the whole text of a file that may be written, and says how it is encoded.
func (s *scope) readEditable(p place) (string, charset.Encoding, unix.Stat_t, error) {
	var plain charset.Encoding
	f, st, err := s.openContent(p)
	if err != nil {
		return "", plain, st, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	if err := s.checkWritable(p); err != nil {
		return "", plain, st, err
	}
	if st.Nlink > 1 {
		return "", plain, st, refusedError("Write to another name instead.", reason.LinkedNotWritten,
			quoteName(p.given))
	}
	if st.Size > int64(s.MaxWrite) {
		return "", plain, st, failedError(
			"", "%s has %d bytes; files up to %d bytes can be edited", quoteName(p.given), st.Size, s.MaxWrite,
		)
	}
	if s.ReadText != nil {
		text, err := s.readBuffered(p)
		return text, plain, st, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, int64(s.MaxWrite)+1))
	if err != nil {
		return "", plain, st, systemError(err, "read", p.given)
	}
	if int64(len(raw)) != st.Size {
		return "", plain, st, failedError("Try again.", "%s changed while it was read", quoteName(p.given))
	}
	encoding, ok := charset.Detect(raw, true)
	if !ok {
		return "", plain, st, failedError("", "%s is not text (%s) and cannot be edited",
			quoteName(p.given), binaryText(raw[:min(len(raw), sniff)], st.Size))
	}
	text := encoding.Decode(raw)
	if again, err := encoding.Encode(text); err != nil || again != string(raw) {
		return "", plain, st, failedError("Convert it to UTF-8 first, for example with iconv.",
			"some bytes of %s are no text and would be lost (%s)", quoteName(p.given), encoding.Note())
	}
	return text, encoding, st, nil
}

// readBuffered reads the whole text of a file from the program that has it.
func (s *scope) readBuffered(p place) (string, error) {
	text, err := s.ReadText(s.ctx, p.abs)
	switch {
	case err != nil:
		return "", systemError(err, "read", p.given)
	case len(text) > s.MaxWrite:
		return "", failedError(
			"", "%s has %d bytes; files up to %d bytes can be edited", quoteName(p.given), len(text), s.MaxWrite,
		)
	}
	return text, nil
}

// hasCRLF reports whether every line of a text ends with CRLF.
func hasCRLF(s string) bool {
	return strings.Contains(s, "\r\n") && strings.Count(s, "\n") == strings.Count(s, "\r\n")
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// findOccurrences returns the positions of s in content, without overlaps.
func findOccurrences(content, s string) []int {
	var at []int
	for i := 0; ; {
		n := strings.Index(content[i:], s)
		if n < 0 {
			return at
		}
		at = append(at, i+n)
		i += n + len(s)
	}
}

// lineAt returns the 1-based line of a position.
func lineAt(content string, at int) int { return 1 + strings.Count(content[:at], "\n") }

// lineList returns the line numbers of positions: "3, 8, 15 …".
func lineList(content string, at []int) string {
	const most = 10
	var b strings.Builder
	line, last := 1, 0
	for i, n := range at {
		if i == most {
			b.WriteString(" …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		line += strings.Count(content[last:n], "\n")
		last = n
		fmt.Fprintf(&b, "%d", line)
	}
	return b.String()
}

// absentError returns the error for text that was not found. It says whether only white space, or the form of characters,
// differs.
func absentError(p place, content, old string) error {
	suggestion := "Read the file again and copy the text exactly."
	for _, loose := range []struct {
		same func(string) string
		only string
	}{
		{func(s string) string { return s }, "white space. Copy the text exactly, with its spaces, tabs and line ends."},
		{plainForm, "the form of characters, such as “ ” ’ – … or letters with a combining mark. Copy them from there."},
	} {
		first, last, ok := looseMatch(loose.same(content), loose.same(old))
		if !ok {
			continue
		}
		where := fmt.Sprintf("line %d differs", first)
		if last > first {
			where = fmt.Sprintf("lines %d to %d differ", first, last)
		}
		suggestion = where + " from it only in " + loose.only
		break
	}
	e := failedError(suggestion, "old_string does not occur in %s", quoteName(p.given))
	e.Err = errors.New("old_string not found")
	return e
}

// typographic maps characters to those that a keyboard has for them.
var typographic = strings.NewReplacer(
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "‛", "'", "′", "'", "″", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-", "…", "...", "\u00a0", " ", "\u202f", " ", "\u00ad", "",
	"\u200b", "", "\ufeff", "",
)

// plainForm returns a text with composed letters (Unicode NFC) and without typographic characters.
func plainForm(s string) string { return typographic.Replace(norm.NFC.String(s)) }

// looseMatch finds the lines that equal old if white space is ignored.
func looseMatch(content, old string) (first, last int, ok bool) {
	want := looseLines(strings.Trim(old, " \t\r\n"))
	if len(want) == 0 || want[0] == "" {
		return 0, 0, false
	}
	have := looseLines(content)
	for i := 0; i+len(want) <= len(have); i++ {
		if looseAt(have[i:], want) {
			return i + 1, i + len(want), true
		}
	}
	return 0, 0, false
}

// looseAt compares lines. The first may have more text before it, the last more text after it.
func looseAt(have, want []string) bool {
	last := len(want) - 1
	if last == 0 {
		return strings.Contains(have[0], want[0])
	}
	return strings.HasSuffix(have[0], want[0]) && strings.HasPrefix(have[last], want[last]) &&
		slices.Equal(have[1:last], want[1:last])
}

func looseLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return lines
}

// change replaces from by to at the given positions.
type change struct {
	old      string
	found    []int
	from, to string
}

// changedText returns the changed text between two positions of the old text, which must not be inside an occurrence.
func (c change) changedText(start, end int) string {
	var b strings.Builder
	at := start
	for _, n := range c.found {
		if n < start || n >= end {
			continue
		}
		b.WriteString(c.old[at:n])
		b.WriteString(c.to)
		at = n + len(c.from)
	}
	b.WriteString(c.old[at:end])
	return b.String()
}

// Limits of the diff in an answer.
const (
	maxHunks    = 10
	maxDiffLine = 200
	around      = 2 // lines of context
)

// changedLines returns the changed lines with their context.
func (c change) changedLines() string {
	var b strings.Builder
	hunks := 0
	for i := 0; i < len(c.found); {
		start, end := c.lineStart(c.found[i]), c.lineEnd(c.found[i]+len(c.from))
		for i++; i < len(c.found) && c.found[i] < end; i++ {
			end = c.lineEnd(c.found[i] + len(c.from))
		}
		if hunks++; hunks > maxHunks {
			b.WriteString("[more changes follow]\n")
			break
		}
		c.writeHunk(&b, start, end)
	}
	return b.String()
}

// writeHunk writes one changed region of whole lines.
func (c change) writeHunk(b *strings.Builder, start, end int) {
	before := start
	for range around {
		if before > 0 {
			before = c.lineStart(before - 1)
		}
	}
	after := end
	for range around {
		if after < len(c.old) {
			after = c.lineEnd(after + 1)
		}
	}
	fmt.Fprintf(b, "@@ line %d @@\n", lineAt(c.old, start))
	diffLines(b, " ", c.old[before:start])
	diffLines(b, "-", c.old[start:end])
	diffLines(b, "+", c.changedText(start, end))
	diffLines(b, " ", c.old[end:after])
}

func (c change) lineStart(at int) int { return strings.LastIndexByte(c.old[:at], '\n') + 1 }

// lineEnd returns the position after the line that contains the byte before at.
func (c change) lineEnd(at int) int {
	if at > 0 && c.old[at-1] == '\n' {
		return at
	}
	if n := strings.IndexByte(c.old[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(c.old)
}

func diffLines(b *strings.Builder, mark, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if cut := []byte(line); len(cut) > maxDiffLine {
			line = string(bytes.ToValidUTF8(cut[:maxDiffLine], nil)) + "…"
		}
		b.WriteString(mark + line + "\n")
	}
}
