package textcall

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// The tokens of the Harmony format. A thought that another header ends lacks its own end.
var (
	harmonyEnds    = []string{"<|end|>", "<|return|>", "<|call|>"}
	harmonyHeaders = []string{"<|start|>", "<|channel|>"}
	harmonyAll     = slices.Concat(harmonyEnds, harmonyHeaders)
)

// recipient finds the tool that a message is sent to.
var recipient = lazyregexp.New(`to=([^\s<]+)`)

// header is what is between <|start|> or <|channel|> and <|message|>.
type header struct {
	role, channel, to string
	size              int // with both marks
}

// readHeader reads a header whose first mark has n bytes.
func readHeader(f *form, text string, n int, final bool) (header, verdict) {
	end := n
	for {
		if end-n > maxHeader {
			return header{}, isText
		}
		at := strings.IndexAny(text[end:], "<\n")
		if at < 0 || text[end+at] == '\n' {
			if at < 0 && !final && len(text)-n <= maxHeader {
				return header{}, needsMore
			}
			return header{}, isText
		}
		end += at
		size, how := matchPrefix(text[end:], "<|message|>")
		if how == fits {
			return parseHeader(f, text[n:end], end+size), isCalls
		}
		undecided := how == begins
		inside := 0
		for _, mark := range []string{"<|channel|>", "<|constrain|>"} {
			size, how := matchPrefix(text[end:], mark)
			if how == fits {
				inside = size
			}
			undecided = undecided || how == begins
		}
		switch {
		case inside > 0:
			end += inside
		case undecided && !final:
			return header{}, needsMore
		default:
			return header{}, isText
		}
	}
}

func parseHeader(f *form, text string, size int) header {
	h := header{size: size}
	text = foldMark(text)
	if found := recipient().FindStringSubmatch(text); found != nil {
		h.to = found[1]
	}
	role, channel, ok := strings.Cut(text, "<|channel|>")
	if !ok && f.Open == "<|channel|>" {
		role, channel = "", text
	}
	if words := strings.FieldsFunc(role, func(c rune) bool { return c == ' ' || c == '<' }); len(words) > 0 {
		h.role = words[0]
	}
	if words := strings.FieldsFunc(channel, func(c rune) bool { return c == ' ' || c == '<' }); len(words) > 0 {
		h.channel = words[0]
	}
	return h
}

// readHarmony reads a message of the Harmony format: its header decides what follows.
func (r *Reader) readHarmony(f *form, text string, n int, final bool) (int, bool) {
	h, v := readHeader(f, text, n, final)
	switch {
	case v == needsMore:
		return 0, false
	case v == isText:
		r.cut = true
		if rest := strings.TrimSpace(text[n:]); final && !strings.Contains(rest, " ") && len(rest) < maxToken {
			return len(text), true // a header that was cut
		}
		return n, true
	}
	r.cut = true
	called := h.to != "" && h.to != "user" && h.to != "all" && h.to != "assistant"
	switch {
	case called:
		// Names keep their case, which the header lost.
		if found := recipient().FindStringSubmatch(text[n:h.size]); found != nil {
			h.to = found[1]
		}
		return r.harmonyCall(&h, text, final)
	case h.role != "" && h.role != "assistant":
		r.state = inForeign
	case h.channel == "analysis":
		r.state, r.begun = inThought, len(r.thoughts)
		r.closers, r.borders = harmonyEnds, harmonyHeaders
	}
	return h.size, true
}

// harmonyCall reads the arguments of a call up to the end of its message.
func (r *Reader) harmonyCall(h *header, text string, final bool) (int, bool) {
	body := text[h.size:]
	start := afterBlanks(body, 0)
	end := -1
	if start < len(body) && body[start] == '{' {
		if n := valueEnd(body[start:]); n >= 0 {
			end = start + n
		}
	} else if at, _, _ := findMark(body, harmonyAll, final); at >= 0 {
		end = at
	}
	if end < 0 {
		if !final {
			return 0, false
		}
		end = len(body)
		if at, _, _ := findMark(body, harmonyAll, true); at >= 0 {
			end = at
		}
	}
	r.takeCalls([]writtenCall{withArguments(h.to, body[:end])}, text[:h.size+end])
	return h.size + end, true
}

// The words of a Harmony header whose tokens a server has removed: "analysis…assistantfinal…".
var (
	strippedWords = []string{
		"analysis", "commentary to=", "assistantanalysis", "assistantcommentary", "assistantfinal",
	}
	strippedNext = lazyregexp.New(`assistant\n?(?:<\|channel\|>)?(?:final|commentary|analysis)`)
	strippedCall = lazyregexp.New(`^(?:assistant)?commentary\s+to=([^\s<{]+)[^{]{0,32}`)
)

// readStripped reads such words at the beginning of an answer.
func (r *Reader) readStripped(text string, final bool) (n int, decided, read bool) {
	word := ""
	for _, w := range strippedWords {
		switch _, how := matchPrefix(text, w); {
		case how == fits:
			word = w
		case how == begins && !final:
			return 0, false, true
		}
	}
	switch word {
	case "assistantfinal":
		r.cut = true
		return len(word), true, true
	case "analysis", "assistantanalysis":
		next := strippedNext().FindStringIndex(text[len(word):])
		if next != nil {
			r.begun, r.cut = len(r.thoughts), true
			r.addThought(text[len(word) : len(word)+next[0]])
			at := len(word) + next[0]
			if strings.HasSuffix(text[:len(word)+next[1]], "final") {
				r.ended = true
				return len(word) + next[1], true, true
			}
			r.text, r.shown, r.line, r.since, r.stray, r.blank = r.text[:0], 0, 0, 0, min(r.stray, 0), true
			return at, true, true
		}
		if !final {
			return 0, false, true
		}
		first := text[len(word):]
		if first == "" || first[0] != '\n' && (first[0] < 'A' || first[0] > 'Z') {
			return 0, false, false
		}
		r.cut = true
		r.addThought(first)
		return len(text), true, true
	case "commentary to=", "assistantcommentary":
		return r.strippedCall(text, final)
	default:
		return 0, false, false
	}
}

// strippedCall reads "commentary to=functions.NAME json{…}".
func (r *Reader) strippedCall(text string, final bool) (n int, decided, read bool) {
	head := strippedCall().FindStringSubmatchIndex(text)
	if head == nil || head[1] == len(text) {
		if !final && len(text) < maxHeader && (head != nil || strings.IndexByte(text, '{') < 0) {
			return 0, false, true
		}
		if rest, ok := strings.CutPrefix(text, "assistantcommentary"); ok {
			r.cut = true
			return len(text) - len(rest), true, true
		}
		return 0, false, false
	}
	if text[head[1]] != '{' {
		return 0, false, false
	}
	size := valueEnd(text[head[1]:])
	if size < 0 {
		if !final {
			return 0, false, true
		}
		size = len(text) - head[1]
	}
	end := head[1] + size
	r.takeCalls([]writtenCall{withArguments(text[head[2]:head[3]], text[head[1]:end])}, text[:end])
	return end, true, true
}

// assistants are the names of the role that answers.
var assistants = []string{"", "assistant", "model", "ai", "bot", "gpt"}

// readRole reads the beginning of a message of a role. What another role says is left out.
func (r *Reader) readRole(f *form, text string, n int, final bool) (int, bool) {
	rest := text[n:]
	at, size, _ := findMark(rest[:min(len(rest), maxToken)], f.Close, final || len(rest) >= maxToken)
	if at < 0 {
		if !final && len(rest) < maxToken {
			return 0, false
		}
		at, size = 0, 0
		if word := strings.TrimSpace(rest); final && nameLength(word) == len(word) {
			at = len(rest)
		}
	}
	name := strings.ToLower(strings.TrimSpace(rest[:at]))
	r.cut = true
	if !slices.Contains(assistants, name) {
		r.state = inForeign
	}
	return n + at + size, true
}
