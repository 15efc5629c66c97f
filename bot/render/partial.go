package render

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// maxPartial is how much of the end of a growing answer is rendered, in bytes: two messages of three-byte characters.
// It keeps a frame cheap however long the answer is.
const maxPartial = 24 << 10

var (
	// halfMarker is a last line that the next characters will turn into something else: the start of a list item, a
	// heading, a fence or a table, or the underline that would turn the line above into a heading.
	halfMarker = lazyregexp.New("(?:^|\n)[ \t>]*(?:[-=+*_#~`|:]+|[0-9]+[.)]?)[ \t]*$")
	// halfLink is a link whose target is still being written.
	halfLink = lazyregexp.New(`!?\[([^\[\]\n]*)\]\([^()\s]*$`)
	// newItem is the start of a line that open formatting does not extend into.
	newItem = lazyregexp.New(`^[ \t]*(?:[-*+]|[0-9]+[.)]|#{1,6}|\|)[ \t]`)
)

// Partial renders an answer that is still being written as one message: open code fences, code and emphasis are closed,
// half-written markers at the end are omitted. If it does not fit, the newest text is kept, with "…" before it. Text is
// empty while there is nothing to show. Safe for concurrent use; takes well below a millisecond for 4 KB.
func Partial(src string) Message {
	src = normalize(src)
	src, cut := lastPart(src)
	if f := scanFences(src); f.open {
		src = trimHalfFence(src, f)
	} else {
		src = closeInline(src)
	}
	return build(src, Folding{}).tail(cut) // collapsed, the newest text could not be read
}

// fence is the state of code fences at the end of a text.
type fence struct {
	open   bool
	marker string // "```" or longer, as opened
	line   string // the opening line
}

// scanFences returns the state of the fences at the end of src.
func scanFences(src string) fence {
	var f fence
	for line := range strings.Lines(src) {
		f.next(line)
	}
	return f
}

// next processes one more line.
func (f *fence) next(line string) {
	body := strings.TrimLeft(line, " \t>")
	n := 0
	if body != "" && (body[0] == '`' || body[0] == '~') {
		n = len(body) - len(strings.TrimLeft(body, body[:1]))
	}
	if n < 3 {
		return
	}
	rest := strings.TrimSpace(body[n:])
	switch {
	case !f.open && (body[0] == '~' || !strings.Contains(rest, "`")):
		*f = fence{open: true, marker: body[:n], line: strings.TrimRight(line, "\n")}
	case f.open && body[0] == f.marker[0] && n >= len(f.marker) && rest == "":
		*f = fence{}
	}
}

// lastPart returns the end of src from the start of a line, with the fence that is open there, and reports whether
// something was omitted.
func lastPart(src string) (part string, cut bool) {
	if len(src) <= maxPartial {
		return src, false
	}
	at := len(src) - maxPartial
	for at < len(src) && !utf8.RuneStart(src[at]) {
		at++
	}
	if i := strings.IndexByte(src[at:], '\n'); i >= 0 && i < maxPartial/2 {
		at += i + 1
	}
	if f := scanFences(src[:at]); f.open {
		return f.line + "\n" + src[at:], true
	}
	return src[at:], true
}

// trimHalfFence removes an incomplete closing fence from the end of open code.
func trimHalfFence(src string, f fence) string {
	i := strings.LastIndexByte(src, '\n')
	if i < 0 {
		return src
	}
	last := strings.Trim(src[i+1:], " \t")
	if last != "" && len(last) < len(f.marker) && strings.Trim(last, f.marker[:1]) == "" {
		return src[:i]
	}
	return src
}

// closeInline closes the emphasis and code that are open at the end of src.
func closeInline(src string) string {
	src = strings.TrimRight(src, " \t\n")
	if loc := halfMarker().FindStringIndex(lastLineOf(src)); loc != nil {
		src = strings.TrimRight(src[:len(src)-len(lastLineOf(src))+loc[0]], " \t\n")
	}
	start := lastBlock(src)
	block := src[start:]
	if strings.Count(block, "`")%2 == 0 {
		block = halfLink().ReplaceAllString(block, "$1")
	}
	return src[:start] + closeDelimiters(block)
}

// lastLineOf returns the last line with the newline before it.
func lastLineOf(s string) string { return s[max(0, strings.LastIndexByte(s, '\n')):] }

// lastBlock returns where the last paragraph, list item or heading of src begins.
func lastBlock(src string) int {
	for at := len(src); at > 0; {
		i := strings.LastIndexByte(src[:at], '\n')
		line := src[i+1 : at]
		if strings.TrimSpace(line) == "" {
			return at
		}
		if newItem().MatchString(line) {
			return i + 1
		}
		at = max(i, 0)
	}
	return 0
}

// closeDelimiters appends what closes the open delimiters of a block of inline text.
// It follows CommonMark only as far as a preview needs.
func closeDelimiters(block string) string {
	var open []string
	for i := 0; i < len(block); {
		if size := formulaAt(block, i); size > 0 { // nothing in it opens anything
			i += size
			continue
		}
		c := block[i]
		n := len(block[i:]) - len(strings.TrimLeft(block[i:], block[i:i+1]))
		switch {
		case c == '\\':
			i += 2
		case c == '`':
			end := closingTicks(block[i+n:], n)
			if end < 0 {
				return closeCode(block, i, n) + closers(open)
			}
			i += n + end
		case c == '*' || c == '_' || (c == '~' || c == '|') && n == 2:
			open = toggle(open, block, i, n)
			i += n
			if i == len(block) && !closesAt(block, i-n, c) {
				block = strings.TrimRight(block[:i-n], " \t\n")
			}
		default:
			i++
		}
	}
	return finish(block, open)
}

// finish appends the closing delimiters; the block may end with half of one: "**bold*".
func finish(block string, open []string) string {
	if len(open) == 0 {
		return block
	}
	last := open[len(open)-1]
	block = strings.TrimRight(block, " \t\n")
	if half := strings.TrimRight(block, last[:1]); len(last) == 2 && len(block)-len(half) == 1 {
		block = strings.TrimRight(half, " \t\n")
	}
	return block + closers(open)
}

func closers(open []string) string {
	out := slices.Clone(open)
	slices.Reverse(out)
	return strings.Join(out, "")
}

// closeCode closes the inline code that opens at i, or removes its backticks if nothing follows them.
func closeCode(block string, i, n int) string {
	rest := strings.TrimRight(block[i+n:], "`\n\t ")
	if rest == "" {
		return strings.TrimRight(block[:i], " \t\n")
	}
	return block[:i+n] + rest + block[i:i+n]
}

// closingTicks returns the end of the first run of exactly n backticks in s, or -1.
func closingTicks(s string, n int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		size := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		i += size
		if size == n {
			return i
		}
	}
	return -1
}

// toggle closes and opens delimiters for the run of n equal characters at i.
func toggle(open []string, block string, i, n int) []string {
	c := block[i]
	if closesAt(block, i, c) {
		for n > 0 && len(open) > 0 {
			top := open[len(open)-1]
			if top[0] != c || len(top) > n {
				break
			}
			open = open[:len(open)-1]
			n -= len(top)
		}
	}
	if !opensAt(block, i) {
		return open
	}
	if n >= 2 {
		open = append(open, block[i:i+1]+block[i:i+1])
		n -= 2
	}
	if n == 1 && c != '~' && c != '|' {
		open = append(open, block[i:i+1])
	}
	return open
}

// closesAt reports whether a run of c at i can close emphasis.
func closesAt(block string, i int, c byte) bool {
	before, _ := utf8.DecodeLastRuneInString(block[:i])
	after, _ := utf8.DecodeRuneInString(strings.TrimLeft(block[i:], string(c)))
	return i > 0 && !unicode.IsSpace(before) && (c != '_' || !isWord(after))
}

// opensAt reports whether the run at i can open emphasis. It requires a word after it, so that "count(*)" and "2 * 3"
// are not changed.
func opensAt(block string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(block[:i])
	after, _ := utf8.DecodeRuneInString(strings.TrimLeft(block[i:], block[i:i+1]))
	return !isWord(before) && (isWord(after) || after > 0x7F || strings.ContainsRune("`[(\"'*_~<$@#/", after)) &&
		after != utf8.RuneError && !unicode.IsSpace(after)
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
