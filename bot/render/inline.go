package render

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

const (
	// maxURL is the maximum length, in bytes, of a URL that becomes a link.
	maxURL = 2048
	// maxTarget is how much of a target that cannot be a link is shown, in UTF-16
	// units; an embedded image would fill the chat.
	maxTarget = 256
)

var lineBreak = lazyregexp.New(`(?i)^<br\s*/?>$`)

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.textNode(n)
	case *formulaSpan:
		w.write(readableFormulas(string(n.Segment.Value(w.src))))
	case *ast.String:
		w.write(string(n.Value))
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		if n.Level == 1 {
			w.within(kindItalic, Entity{Type: "italic"}, func() { w.inlines(n) })
			return
		}
		w.within(kindBold, Entity{Type: "bold"}, func() { w.inlines(n) })
	case *extast.Strikethrough:
		w.within(kindStrike, Entity{Type: "strikethrough"}, func() { w.inlines(n) })
	case *spoiler:
		w.within(kindSpoiler, Entity{Type: "spoiler"}, func() { w.inlines(n) })
	case *ast.Link:
		w.link(n, unescape(string(n.Destination)))
	case *ast.Image:
		w.link(n, unescape(string(n.Destination)))
	case *ast.AutoLink:
		w.autoLink(n)
	case *ast.RawHTML:
		w.rawHTML(n)
	case *extast.TaskCheckBox: // the list wrote it as the marker
	default:
		w.inlines(n)
	}
}

func (w *writer) textNode(n *ast.Text) {
	s := string(n.Value(w.src))
	if !n.IsRaw() {
		s = unescape(s)
	}
	w.write(s)
	// After <br> the line has ended already.
	if (n.SoftLineBreak() || n.HardLineBreak()) && (!w.bol || w.pending > 0 || w.text == "") {
		w.write("\n")
	}
}

// codeSpan writes inline code; inside a link it is written as plain link text, because Telegram keeps only one of both.
func (w *writer) codeSpan(n *ast.CodeSpan) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(w.src))
		case *ast.String:
			b.Write(c.Value)
		}
	}
	s := strings.ReplaceAll(b.String(), "\n", " ")
	if blank(s) || w.style[kindLink] != 0 {
		w.write(s)
		return
	}
	w.within(kindCode, Entity{Type: "code"}, func() { w.write(s) })
}

func (w *writer) rawHTML(n *ast.RawHTML) {
	s := string(n.Segments.Value(w.src))
	if lineBreak().MatchString(s) {
		s = "\n"
	}
	w.write(s)
}

// link writes the text of a link or an image. A target that cannot be a link in Telegram is shown after the text.
func (w *writer) link(n ast.Node, target string) {
	label := w.textOf(n)
	href, ok := linkURL(target)
	body := func() { w.inlines(n) }
	if _, image := n.(*ast.Image); image || w.cell {
		// Only the text counts; walking it again would multiply the work at each level.
		body = func() { w.write(label) }
	}
	switch {
	case w.style[kindLink] != 0: // an image in a link: the outer target counts
		body()
	case ok && w.cell:
		w.links = append(w.links, linkedText{label: labelOr(label, target), url: href})
		w.write(labelOr(label, target))
	case ok:
		w.within(kindLink, Entity{Type: "text_link", URL: href}, func() {
			if blank(label) {
				w.write(target)
				return
			}
			body()
		})
	case blank(label):
		w.write(shown(target))
	default:
		body()
		if t := shown(target); t != "" && t != label {
			w.write(" (" + t + ")")
		}
	}
}

func labelOr(label, target string) string {
	if blank(label) {
		return target
	}
	return label
}

// shown returns a target as text: in full if a person could use it, else its beginning.
func shown(target string) string {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return target
	}
	return Cut(target, maxTarget)
}

// target writes a URL as a link to itself, or as text.
func (w *writer) target(raw string) {
	href, ok := linkURL(raw)
	if !ok {
		w.write(shown(raw))
		return
	}
	w.within(kindLink, Entity{Type: "text_link", URL: href}, func() { w.write(raw) })
}

func (w *writer) autoLink(n *ast.AutoLink) {
	label, target := string(n.Label(w.src)), string(n.URL(w.src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	href, ok := linkURL(target)
	if ok && w.cell {
		w.links = append(w.links, linkedText{label: label, url: href})
	}
	if !ok {
		w.write(label)
		return
	}
	w.within(kindLink, Entity{Type: "text_link", URL: href}, func() { w.write(label) })
}

// textOf returns the text of inline nodes without formatting.
func (w *writer) textOf(n ast.Node) string {
	sub := &writer{src: w.src, root: w.root, cell: true}
	sub.inlines(n)
	return sub.text
}

// linkURL reports whether Telegram would open raw from a link, and returns the URL to use.
func linkURL(raw string) (string, bool) {
	raw = strings.ReplaceAll(strings.TrimSpace(raw), " ", "%20")
	if raw == "" || len(raw) > maxURL || clean(raw) != raw {
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https":
		return raw, u.Host != ""
	case "tg":
		return raw, u.Host != "" || u.Opaque != ""
	case "mailto":
		return raw, strings.Contains(u.Opaque, "@")
	}
	return "", false
}

// maxReference is the length of the longest character reference, "&…;", with some reserve.
const maxReference = 40

// unescape resolves backslash escapes and character references (CommonMark 2.4, 2.5).
// goldmark leaves both in the tree.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			text, size := reference(s[i:])
			b.WriteString(text)
			i += size - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// reference resolves the character reference at the start of s and returns how many bytes it takes; an ampersand that
// starts none is returned as it is.
func reference(s string) (text string, size int) {
	end := strings.IndexByte(s[:min(len(s), maxReference)], ';')
	if end < 2 {
		return "&", 1
	}
	name := s[1:end]
	if name[0] != '#' {
		if e, ok := util.LookUpHTML5EntityByName(name); ok {
			return string(e.Characters), end + 1
		}
		return "&", 1
	}
	digits, base := name[1:], 10
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 24)
	if err != nil {
		return "&", 1
	}
	r := rune(v)
	if r == 0 || !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return string(r), end + 1
}
