package telegramtest

import (
	"strings"

	"github.com/go-telegram/bot/models"
)

// markdownReserved must be escaped outside entities (Bot API, MarkdownV2 style).
const markdownReserved = "_*[]()~`>#+-=|{}.!"

// markdownReader is the state of one pass over MarkdownV2.
type markdownReader struct {
	in      string
	at      int
	out     strings.Builder
	len     int // of out in UTF-16 units
	open    []mark
	done    []models.MessageEntity
	quote   int // UTF-16 offset of the running block quote, -1 without one
	expand  bool
	newLine bool
}

type mark struct {
	token string // what opened it
	from  int    // byte offset in the input, for the error
	at    int    // UTF-16 offset in the output
}

// parseMarkdown is MarkdownV2.
func parseMarkdown(text string) (string, []models.MessageEntity, *apiError) {
	p := &markdownReader{in: text, quote: -1, newLine: true}
	for p.at < len(p.in) {
		if fail := p.step(); fail != nil {
			return "", nil, fail
		}
	}
	p.endQuote()
	if n := len(p.open); n > 0 {
		return "", nil, cantParse(
			"can't find end of %s entity at byte offset %d", markName(p.open[n-1].token), p.open[n-1].from,
		)
	}
	return p.out.String(), p.done, nil
}

func (p *markdownReader) write(s string) {
	p.out.WriteString(s)
	p.len += units(s)
}

// step reads one escape, mark, or run of plain text.
func (p *markdownReader) step() *apiError {
	if p.newLine {
		p.newLine = false
		if p.startQuote() {
			return nil
		}
	}
	rest := p.in[p.at:]
	switch c := rest[0]; {
	case c == '\\' && len(rest) > 1 && rest[1] > 0 && rest[1] < 127:
		p.write(rest[1:2])
		p.at += 2
		p.newLine = rest[1] == '\n'
	case c == '\n':
		p.write("\n")
		p.at++
		p.newLine = true
	case c == '`':
		return p.code(rest)
	case p.expandMark(rest):
		p.expand = true
		p.at += 2
	case markAt(rest) != "":
		return p.toggle(markAt(rest))
	case c == '[', c == ']', strings.HasPrefix(rest, "!["):
		return p.link(rest)
	case strings.IndexByte(markdownReserved, c) >= 0:
		return cantParse("character '%c' is reserved and must be escaped with the preceding '\\'", c)
	default:
		next := strings.IndexAny(rest[1:], markdownReserved+"\\\n")
		if next < 0 {
			next = len(rest) - 1
		}
		p.write(rest[:next+1])
		p.at += next + 1
	}
	return nil
}

// expandMark says whether rest is the "||" that ends an expandable quote.
func (p *markdownReader) expandMark(rest string) bool {
	if p.quote < 0 || p.isOpen("||") {
		return false
	}
	after, ok := strings.CutPrefix(rest, "||")
	return ok && (after == "" || after[0] == '\n')
}

// markAt is the mark rest begins with; "__" and "||" are read greedily.
func markAt(rest string) string {
	for _, token := range []string{"||", "__", "*", "_", "~"} {
		if strings.HasPrefix(rest, token) {
			return token
		}
	}
	return ""
}

// startQuote handles the beginning of a line: ">" opens or continues a quote, "**>" begins an expandable one.
func (p *markdownReader) startQuote() bool {
	rest := p.in[p.at:]
	if skip, ok := strings.CutPrefix(rest, "**>"); ok {
		p.endQuote()
		p.quote = p.len
		p.at = len(p.in) - len(skip)
		return true
	}
	if strings.HasPrefix(rest, ">") {
		if p.quote < 0 {
			p.quote = p.len
		}
		p.at++
		return true
	}
	p.endQuote()
	return false
}

func (p *markdownReader) endQuote() {
	if p.quote < 0 {
		return
	}
	kind := models.MessageEntityTypeBlockquote
	if p.expand {
		kind = models.MessageEntityTypeExpandableBlockquote
	}
	p.add(models.MessageEntity{Type: kind, Offset: p.quote, Length: p.len - p.quote})
	p.quote, p.expand = -1, false
}

func (p *markdownReader) add(e models.MessageEntity) {
	if e.Length > 0 {
		p.done = append(p.done, e)
	}
}

func (p *markdownReader) isOpen(token string) bool {
	return len(p.open) > 0 && p.open[len(p.open)-1].token == token
}

func markName(token string) string {
	return map[string]string{
		"*":  "Bold",
		"_":  "Italic",
		"__": "Underline",
		"~":  "Strikethrough",
		"||": "Spoiler",
		"[":  "TextUrl",
		"![": "CustomEmoji",
	}[token]
}

func markKind(token string) models.MessageEntityType {
	return map[string]models.MessageEntityType{
		"*": models.MessageEntityTypeBold, "_": models.MessageEntityTypeItalic, "__": models.MessageEntityTypeUnderline,
		"~": models.MessageEntityTypeStrikethrough, "||": models.MessageEntityTypeSpoiler,
	}[token]
}

// toggle opens an entity, or closes it when it is the innermost one.
func (p *markdownReader) toggle(token string) *apiError {
	from := p.at
	p.at += len(token)
	if !p.isOpen(token) {
		p.open = append(p.open, mark{token: token, from: from, at: p.len})
		return nil
	}
	m := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.add(models.MessageEntity{Type: markKind(token), Offset: m.at, Length: p.len - m.at})
	return nil
}

// code reads inline code or a fenced block; only backquote and backslash are escaped inside.
func (p *markdownReader) code(rest string) *apiError {
	from := p.at
	fence := "`"
	e := models.MessageEntity{Type: models.MessageEntityTypeCode, Offset: p.len}
	if strings.HasPrefix(rest, "```") {
		fence = "```"
		e.Type = models.MessageEntityTypePre
	}
	p.at += len(fence)
	if fence == "```" {
		first, _, found := strings.Cut(p.in[p.at:], "\n")
		if found && first != "" && !strings.ContainsAny(first, " `\\") {
			e.Language = first
			p.at += len(first)
		}
		if strings.HasPrefix(p.in[p.at:], "\n") {
			p.at++
		}
	}
	for p.at < len(p.in) {
		rest = p.in[p.at:]
		switch {
		case strings.HasPrefix(rest, fence):
			p.at += len(fence)
			e.Length = p.len - e.Offset
			p.add(e)
			return nil
		case rest[0] == '\\' && len(rest) > 1 && (rest[1] == '`' || rest[1] == '\\'):
			p.write(rest[1:2])
			p.at += 2
		default:
			next := strings.IndexAny(rest[1:], "`\\")
			if next < 0 {
				next = len(rest) - 1
			}
			p.write(rest[:next+1])
			p.at += next + 1
		}
	}
	name := "Code"
	if fence == "```" {
		name = "Pre"
	}
	return cantParse("can't find end of %s entity at byte offset %d", name, from)
}

// link opens "[" or "![", or closes it with "](target)".
func (p *markdownReader) link(rest string) *apiError {
	from := p.at
	if rest[0] != ']' {
		token := "["
		if rest[0] == '!' {
			token = "!["
		}
		p.open = append(p.open, mark{token: token, from: from, at: p.len})
		p.at += len(token)
		return nil
	}
	if !p.isOpen("[") && !p.isOpen("![") {
		return cantParse("character ']' is reserved and must be escaped with the preceding '\\'")
	}
	m := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.at++
	e := models.MessageEntity{Type: models.MessageEntityTypeTextLink, Offset: m.at, Length: p.len - m.at}
	if !strings.HasPrefix(p.in[p.at:], "(") {
		if m.token == "![" {
			return cantParse("custom emoji entity must contain a tg://emoji URL")
		}
		text := p.out.String()
		e.URL = text[runeStarts(text)[m.at]:]
		p.add(e)
		return nil
	}
	target, fail := p.target(from)
	if fail != nil {
		return fail
	}
	e.URL = target
	if id, ok := strings.CutPrefix(target, "tg://emoji?id="); ok && m.token == "![" {
		e.Type, e.CustomEmojiID, e.URL = models.MessageEntityTypeCustomEmoji, id, ""
	} else if m.token == "![" {
		return cantParse("custom emoji entity must contain a tg://emoji URL")
	}
	p.add(e)
	return nil
}

// target reads "(url)", in which ")" and "\" are escaped.
func (p *markdownReader) target(from int) (string, *apiError) {
	p.at++
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		p.at++
		switch {
		case c == ')':
			return b.String(), nil
		case c == '\\' && p.at < len(p.in):
			b.WriteByte(p.in[p.at])
			p.at++
		default:
			b.WriteByte(c)
		}
	}
	return "", cantParse("can't find end of a URL at byte offset %d", from)
}
