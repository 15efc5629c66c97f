// Package window estimates what a request needs of a model's context, and chooses how much of a long conversation
// still fits.
package window

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// perMessage is the cost of a message besides its text: role and separators.
const perMessage = 4

// Tokens estimates the tokens of a text without a vocabulary: about 3.5 bytes of ASCII per token, otherwise one rune
// per token. It overestimates prose (by a quarter) and is close for JSON and code, so that a limit checked with it
// holds.
func Tokens(text string) int {
	n := countASCII(text)
	if n == len(text) {
		return estimateTokens(n, n)
	}
	return estimateTokens(n, utf8.RuneCountInString(text))
}

// inJSON is Tokens for JSON, without copying it: every request needs it for all its schemas.
func inJSON(data []byte) int {
	n := countASCII(data)
	if n == len(data) {
		return estimateTokens(n, n)
	}
	return estimateTokens(n, utf8.RuneCount(data))
}

// estimateTokens is for a text with this many runes, of which ascii are ASCII.
func estimateTokens(ascii, runes int) int { return (ascii*2+6)/7 + runes - ascii }

// countASCII counts the ASCII characters of a text.
func countASCII[T string | []byte](text T) (n int) {
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// Ends returns how much of the beginning and of the end of a text has a number of tokens, half of them
// each: text[:head] and text[tail:]. A cut goes to the end of a line where that is near, and never
// between a character and its marks.
func Ends(text string, tokens int) (head, tail int) {
	half := max(tokens, 0) / 2 * sevenths
	for cost := 0; head < len(text); {
		r, size := utf8.DecodeRuneInString(text[head:])
		if cost += runeWeight(r); cost > half {
			break
		}
		head += size
	}
	for head > 0 && head < len(text) && joinsAt(text, head) {
		_, size := utf8.DecodeLastRuneInString(text[:head])
		head -= size
	}
	if line := strings.LastIndexByte(text[:head], '\n') + 1; head < len(text) && line > head-head/4 {
		head = line
	}
	tail = len(text)
	for cost := 0; tail > head; {
		r, size := utf8.DecodeLastRuneInString(text[:tail])
		if cost += runeWeight(r); cost > half {
			break
		}
		tail -= size
	}
	for tail > head && tail < len(text) && joinsAt(text, tail) {
		_, size := utf8.DecodeRuneInString(text[tail:])
		tail += size
	}
	if line := strings.IndexByte(text[tail:], '\n') + 1; tail > head && line > 0 && line < (len(text)-tail)/4 {
		tail += line
	}
	return head, tail
}

// sevenths of a token are the unit of weight: an ASCII character has two.
const sevenths = 7

// runeWeight is what a character adds to an estimate.
func runeWeight(r rune) int {
	if r < utf8.RuneSelf {
		return 2
	}
	return sevenths
}

// joinsAt reports whether the characters before and after a place belong together: a mark, a modifier or a joiner.
func joinsAt(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	const joiner = '\u200D'
	return before == joiner || after == joiner || before == '\r' && after == '\n' ||
		after >= utf8.RuneSelf &&
			(unicode.In(after, unicode.M, unicode.Variation_Selector) || after >= 0x1F3FB && after <= 0x1F3FF)
}

// Message estimates one message.
func Message(m llm.Message) int {
	n := perMessage + Tokens(m.Text) + inJSON(m.Extra)
	for _, u := range m.Uses {
		n += perMessage + Tokens(u.Name) + inJSON(u.Args)
	}
	if m.Result != nil {
		n += Tokens(m.Result.Text)
	}
	return n
}

// Messages estimates a list of messages.
func Messages(list []llm.Message) int {
	n := 0
	for i := range list {
		n += Message(list[i])
	}
	return n
}

// Fixed estimates what every request of a turn contains: system prompt and tool definitions.
func Fixed(req *llm.Request) int {
	n := Tokens(req.System)
	for _, t := range req.Tools {
		n += Tool(t)
	}
	return n
}

// Tool estimates one tool definition.
func Tool(t llm.Tool) int {
	return perMessage + Tokens(t.Name) + Tokens(t.Description) + inJSON(t.Schema)
}

// Shares of the budget. A request may use at most Limit of it (seed 003: stop at 80 %). A conversation is summed up, or
// without a summary loses its oldest turns, once everything together exceeds High.
const (
	Limit = 0.80
	High  = 0.60
)

// Bounds of the history that is read for a turn, in bytes: at most if the window is huge or unknown, at least because
// in a small window most of the size is not text.
const (
	maxRoom = 4 << 20
	minRoom = 256 << 10
)

// Room returns how many bytes of history are read for a budget of tokens: four per token, which is more than High of
// the budget holds, including the overhead of entries, and at least 256 KiB. Without a limit (0 or
// less) and at most, it is 4 MiB.
func Room(budget int) int {
	if budget <= 0 || budget > maxRoom/4 {
		return maxRoom
	}
	return max(budget*4, minRoom)
}

// Over reports whether an estimate exceeds the limit at which a turn stops.
func Over(tokens, budget int) bool {
	return budget > 0 && float64(tokens) > float64(budget)*Limit
}

// The cost of parts in tokens, estimated high: a picture at the largest size that vendors scale it to, a file by its
// bytes (a PDF has about 60 bytes per token).
const (
	partLine      = 60
	partContent   = 1600
	bytesPerToken = 60
)

// Parts estimates what is sent with the texts of messages: a line for each part, and its content if the model takes it.
func Parts(list []llm.Message, accepts llm.Accepts) int {
	n := 0
	for i := range list {
		for _, parts := range [...][]llm.Part{list[i].Parts, list[i].Result.Attached()} {
			for k := range parts {
				n += partLine
				if accepts.Takes(parts[k].Kind) {
					n += partContent
				}
				if parts[k].Kind == llm.FilePart && accepts.File {
					n += int(parts[k].Size / bytesPerToken)
				}
			}
		}
	}
	return n
}
