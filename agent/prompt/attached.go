package prompt

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Said is what a person said, with what came along and is no content: texts of their own, such as that of a document,
// follow below, then a line names what is told in words and what nobody can read. Parts with a content reach the model
// by themselves. What came with a quoted message is named by Brought; its texts are here.
func Said(text string, parts []llm.Part) string {
	var said, told, closed []string
	if text != "" {
		said = append(said, text)
	}
	for i := range parts {
		switch p := &parts[i]; {
		case p.Hash != "" || p.Quoted && p.Label != "":
		case p.Kind != llm.TextPart:
			closed = append(closed, describePart(p))
		case p.Label == "":
			said = append(said, p.Text)
		default:
			told = append(told, describePart(p))
		}
	}
	if len(told) > 0 {
		said = append(said, "[attached: "+strings.Join(told, "; ")+"]")
	}
	switch len(closed) {
	case 0:
	case 1:
		said = append(said, "[attached: "+closed[0]+"; I cannot open it]")
	default:
		said = append(said, "[attached: "+strings.Join(closed, "; ")+"; I cannot open them]")
	}
	return strings.Join(said, "\n")
}

// Brought is the line that names what came with the message that a person replied to; "" = nothing.
func Brought(parts []llm.Part) string {
	attached := "attached here"
	if slices.ContainsFunc(parts, func(p llm.Part) bool { return p.Hash != "" && !p.Quoted && !p.Outgoing }) {
		attached += " before the person's own"
	}
	var named []string
	for i := range parts {
		switch p := &parts[i]; {
		case !p.Quoted || p.Label == "":
		case p.Hash != "":
			named = append(named, describePart(p)+" ("+attached+")")
		case p.Kind != llm.TextPart:
			named = append(named, describePart(p)+" (I cannot open it)")
		default:
			named = append(named, describePart(p))
		}
	}
	if len(named) == 0 {
		return ""
	}
	return "[that message has " + strings.Join(named, "; ") + "]"
}

// describePart is a part in words, on one line: what a person chose cannot imitate our own words below it.
func describePart(p *llm.Part) string {
	t := A(p.Label)
	if p.Name != "" {
		t += " named " + strconv.Quote(p.Name)
	}
	if p.Size > 0 {
		t += ", " + Bytes(p.Size)
	}
	if note := strings.Join(strings.Fields(p.Text), " "); note != "" {
		t += ": " + note
	}
	return t
}

// A puts the article before what people call a thing.
func A(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// Bytes formats a size for people.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 999_950: // above, it would round to 1000.0 kB
		return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + " kB"
	default:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
	}
}
