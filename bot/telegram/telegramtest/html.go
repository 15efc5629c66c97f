package telegramtest

import (
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"
)

// parseMode turns marked-up text into text and entities, strictly: what Telegram cannot parse is a 400.
func parseMode(mode, text string) (string, []models.MessageEntity, *apiError) {
	var out string
	var entities []models.MessageEntity
	var fail *apiError
	switch strings.ToLower(mode) {
	case "html":
		out, entities, fail = parseHTML(text)
	case "markdownv2":
		out, entities, fail = parseMarkdown(text)
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
	if fail != nil {
		return "", nil, fail
	}
	out, entities = trim(out, entities)
	return out, entities, nil
}

var attribute = expression(`^\s*([a-zA-Z0-9-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?`)

// htmlReader is the state of one pass over HTML.
type htmlReader struct {
	in   string
	at   int // byte offset in in
	out  strings.Builder
	len  int // of out in UTF-16 units
	open []tag
	done []models.MessageEntity
}

type tag struct {
	name   string
	at     int // UTF-16 offset in the output
	entity models.MessageEntity
}

func parseHTML(text string) (string, []models.MessageEntity, *apiError) {
	h := &htmlReader{in: text}
	for h.at < len(h.in) {
		switch c := h.in[h.at]; {
		case c == '&':
			h.reference()
		case c != '<':
			next := strings.IndexAny(h.in[h.at:], "<&")
			if next < 0 {
				next = len(h.in) - h.at
			}
			h.write(h.in[h.at : h.at+next])
			h.at += next
		case strings.HasPrefix(h.in[h.at:], "</"):
			if fail := h.closeTag(); fail != nil {
				return "", nil, fail
			}
		default:
			if fail := h.openTag(); fail != nil {
				return "", nil, fail
			}
		}
	}
	if n := len(h.open); n > 0 {
		return "", nil, cantParse("can't find end tag corresponding to start tag \"%s\"", h.open[n-1].name)
	}
	return h.out.String(), h.done, nil
}

func cantParse(format string, args ...any) *apiError {
	return badRequestf("can't parse entities: "+format, args...)
}

func (h *htmlReader) write(s string) {
	h.out.WriteString(s)
	h.len += units(s)
}

// reference decodes the four named and the numeric references; anything else stays as it is.
func (h *htmlReader) reference() {
	rest := h.in[h.at:]
	end := strings.IndexByte(rest, ';')
	if end > 0 && end < 12 {
		name := rest[1:end]
		if r, ok := map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": `"`}[name]; ok {
			h.write(r)
			h.at += end + 1
			return
		}
		if digits, ok := strings.CutPrefix(name, "#"); ok {
			base := 10
			if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
				digits, base = hex, 16
			}
			if n, err := strconv.ParseInt(digits, base, 32); err == nil && n > 0 && n < 0x10ffff {
				h.write(string(rune(n)))
				h.at += end + 1
				return
			}
		}
	}
	h.write("&")
	h.at++
}

func (h *htmlReader) openTag() *apiError {
	begin := h.at
	end := strings.IndexByte(h.in[begin:], '>')
	if end < 0 {
		return cantParse("unclosed start tag at byte offset %d", begin)
	}
	inside := h.in[begin+1 : begin+end]
	name, rest, _ := strings.Cut(inside, " ")
	name = strings.ToLower(strings.TrimSpace(name))
	attrs := map[string]string{}
	for {
		m := attribute().FindStringSubmatch(rest)
		if m == nil {
			break
		}
		attrs[strings.ToLower(m[1])] = m[2] + m[3] + m[4]
		rest = rest[len(m[0]):]
	}
	e, ok := htmlEntity(name, attrs, h.open)
	if !ok {
		return cantParse("unsupported start tag \"%s\" at byte offset %d", name, begin)
	}
	h.open = append(h.open, tag{name: name, at: h.len, entity: e})
	h.at = begin + end + 1
	return nil
}

// plainTag is the entity of a tag that needs no attributes, "" for other tags.
func plainTag(name string) models.MessageEntityType {
	switch name {
	case "b", "strong":
		return models.MessageEntityTypeBold
	case "i", "em":
		return models.MessageEntityTypeItalic
	case "u", "ins":
		return models.MessageEntityTypeUnderline
	case "s", "strike", "del":
		return models.MessageEntityTypeStrikethrough
	case "tg-spoiler":
		return models.MessageEntityTypeSpoiler
	case "pre":
		return models.MessageEntityTypePre
	}
	return ""
}

// htmlEntity is what a start tag stands for; false when Telegram does not know it.
func htmlEntity(name string, attrs map[string]string, open []tag) (models.MessageEntity, bool) {
	e := models.MessageEntity{Type: plainTag(name)}
	if e.Type != "" {
		return e, true
	}
	switch name {
	case "span":
		e.Type = models.MessageEntityTypeSpoiler
		return e, attrs["class"] == "tg-spoiler"
	case "a":
		e.Type, e.URL = models.MessageEntityTypeTextLink, unescapeAttr(attrs["href"])
	case "code":
		e.Type = models.MessageEntityTypeCode
		if n := len(open); n > 0 && open[n-1].name == "pre" {
			e.Language, _ = strings.CutPrefix(attrs["class"], "language-")
		}
	case "blockquote":
		e.Type = models.MessageEntityTypeBlockquote
		if _, ok := attrs["expandable"]; ok {
			e.Type = models.MessageEntityTypeExpandableBlockquote
		}
	case "tg-emoji":
		e.Type, e.CustomEmojiID = models.MessageEntityTypeCustomEmoji, attrs["emoji-id"]
	case "tg-time":
		e.Type, e.DateTimeFormat = models.MessageEntityTypeDateTime, attrs["format"]
		n, err := strconv.Atoi(attrs["unix"])
		e.UnixTime = n
		return e, err == nil
	default:
		return e, false
	}
	return e, true
}

func unescapeAttr(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(s)
}

func (h *htmlReader) closeTag() *apiError {
	begin := h.at
	end := strings.IndexByte(h.in[begin:], '>')
	if end < 0 {
		return cantParse("unclosed end tag at byte offset %d", begin)
	}
	name := strings.ToLower(strings.TrimSpace(h.in[begin+2 : begin+end]))
	if len(h.open) == 0 {
		return cantParse("unexpected end tag at byte offset %d", begin)
	}
	top := h.open[len(h.open)-1]
	if name != "" && name != top.name {
		return cantParse(
			"unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, top.name, name,
		)
	}
	h.open = h.open[:len(h.open)-1]
	h.at = begin + end + 1
	h.end(top)
	return nil
}

// end records the entity of a closed tag. A link without href is a link to its own text; code inside pre gives pre its
// language.
func (h *htmlReader) end(t tag) {
	e := t.entity
	e.Offset, e.Length = t.at, h.len-t.at
	if e.Length == 0 {
		return
	}
	if t.name == "code" && len(h.open) > 0 && h.open[len(h.open)-1].name == "pre" {
		h.open[len(h.open)-1].entity.Language = e.Language
		return
	}
	if t.name == "a" && e.URL == "" {
		text := h.out.String()
		e.URL = text[runeStarts(text)[t.at]:]
	}
	h.done = append(h.done, e)
}
