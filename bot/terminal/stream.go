package terminal

import (
	"strings"
)

// stream is an answer while it grows. Blocks that are complete are shown above the live part, the last one in it.
type stream struct {
	source string
	done   int  // bytes of source that are shown for good
	hidden bool // the turn is being stopped: nothing more is shown
}

// shownPart returns the part of the answer that is shown for good.
func (s *stream) shownPart() string { return s.source[:s.done] }

// growAnswer adds a piece; the caller holds the lock.
func (r *Rich) growAnswer(text string) {
	if r.stream.hidden {
		return
	}
	if r.stream.source == "" {
		text = strings.TrimLeft(text, " \n")
	}
	r.stream.source += text
	if n := completeBlocks(r.stream.source[r.stream.done:]); n > 0 {
		r.commitAnswer(r.stream.done + n)
	}
}

// commitAnswer shows the answer up to an offset for good.
func (r *Rich) commitAnswer(end int) {
	part := r.stream.source[r.stream.done:end]
	r.stream.done = end
	if strings.TrimSpace(part) != "" {
		r.printLines("")
		r.showMarkdown(part)
	}
}

// settleStream shows for good what was said before a call.
func (r *Rich) settleStream() {
	r.commitAnswer(len(r.stream.source))
	r.stream = stream{}
}

// growingLines draws the end of what is not complete, as much as fits.
func (r *Rich) growingLines() []string {
	rest := r.stream.source[r.stream.done:]
	if r.stream.hidden || strings.TrimSpace(rest) == "" {
		return nil
	}
	lines := r.rich.Painter.Markdown(rest, r.screen.Size().Cols-1)
	if most := max(2, r.screen.Size().Rows/2); len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return append([]string{""}, lines...)
}

// completeBlocks returns how many bytes of Markdown are blocks that nothing that follows can change: up to the last
// blank line outside of code after which a paragraph or a heading has begun, or the end of code.
func completeBlocks(source string) int {
	end, at, fence, blank := 0, 0, "", false
	for line := range strings.SplitAfterSeq(source, "\n") {
		whole := strings.HasSuffix(line, "\n")
		text := strings.TrimRight(line, "\r\n")
		switch mark := fenceOf(text); {
		case fence != "":
			if whole && strings.HasPrefix(mark, fence) && strings.Trim(text, " `~") == "" {
				fence = ""
				if !strings.HasPrefix(text, " ") {
					end = at + len(line)
				}
			}
		case mark != "":
			if blank && !strings.HasPrefix(text, " ") {
				end = at
			}
			fence = mark
		case strings.TrimSpace(text) == "":
			blank = blank || whole
			at += len(line)
			continue
		case blank && beginsBlock(text):
			end = at
		}
		blank = false
		at += len(line)
	}
	return end
}

// fenceOf returns the marker of a line that begins or ends code; "" = it does not.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, c))
		if n >= 3 {
			return text[:n]
		}
	}
	return ""
}

// beginsBlock reports whether a line begins a block of its own, whatever is before it.
func beginsBlock(line string) bool {
	switch c := line[0]; {
	case c == ' ', c == '\t', c == '-', c == '+', c == '*', c == '>', c == '|', c == '`', c == '~':
		return false
	case c >= '0' && c <= '9':
		return false
	}
	return true
}
