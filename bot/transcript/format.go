package transcript

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/syntax"
	"github.com/zephbot/zephbot/bot/visible"
)

// said writes a text with its formatting.
func (w *writer) said(m render.Message) {
	if m.Text == "" {
		return
	}
	w.raw("<div class=\"said\" dir=\"auto\">")
	w.formatted(m)
	w.raw("</div>")
}

// formatted writes a text with its formatting: entities that overlap are closed and opened again, so that the markup
// is always well formed.
func (w *writer) formatted(m render.Message) {
	units := utf16.Encode([]rune(m.Text))
	entities := slices.DeleteFunc(slices.Clone(m.Entities), func(e render.Entity) bool {
		return e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(units)
	})
	bounds := []int{0, len(units)}
	for _, e := range entities {
		bounds = append(bounds, e.Offset, e.Offset+e.Length)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var open []render.Entity
	after := false // a block has ended here: the line break behind it is not one more
	for i, at := range bounds {
		keep := 0
		for keep < len(open) && open[keep].Offset+open[keep].Length > at {
			keep++
		}
		again := slices.DeleteFunc(slices.Clone(open[keep:]), func(e render.Entity) bool { return e.Offset+e.Length <= at })
		for _, e := range slices.Backward(open[keep:]) {
			_, end := tagsOf(e)
			w.raw(end)
			after = after || isBlock(e)
		}
		open = open[:keep]
		for _, e := range entities {
			if e.Offset == at {
				again = append(again, e)
			}
		}
		for _, e := range again {
			begin, _ := tagsOf(e)
			w.raw(begin)
			open = append(open, e)
		}
		if i+1 == len(bounds) {
			break
		}
		text := string(utf16.Decode(units[at:bounds[i+1]]))
		if after {
			text = strings.TrimLeft(text, "\n")
		}
		if slices.ContainsFunc(entities, func(e render.Entity) bool { return e.Offset == bounds[i+1] && isBlock(e) }) {
			text = strings.TrimRight(text, "\n")
		}
		after = after && text == ""
		w.piece(text, open)
	}
}

// isBlock reports whether a formatting has lines of its own.
func isBlock(e render.Entity) bool {
	begin, _ := tagsOf(e)
	return begin == "<pre>" || begin == "<blockquote>"
}

// piece writes a piece of a text that has the same formatting everywhere: code in colours.
func (w *writer) piece(text string, open []render.Entity) {
	at := slices.IndexFunc(open, func(e render.Entity) bool { return e.Type == "pre" })
	if at < 0 {
		w.text(text)
		return
	}
	for _, p := range syntax.Divide(visible.Controls(text), open[at].Language) {
		if p.Kind == syntax.Plain {
			w.text(p.Text)
			continue
		}
		w.raw(`<span class="` + string(p.Kind) + `">`)
		w.text(p.Text)
		w.raw("</span>")
	}
}

// tagsOf returns the tags of a formatting. One that is not known has none.
func tagsOf(e render.Entity) (begin, end string) {
	switch e.Type {
	case "bold", "heading":
		return "<strong>", "</strong>"
	case "italic":
		return "<em>", "</em>"
	case "underline":
		return "<u>", "</u>"
	case "strikethrough":
		return "<s>", "</s>"
	case "code", "mathematical_expression":
		return "<code>", "</code>"
	case "pre":
		return "<pre>", "</pre>"
	case "blockquote", "expandable_blockquote":
		return "<blockquote>", "</blockquote>"
	case "text_link":
		if href, ok := safeHref(e.URL); ok {
			return `<a rel="noopener noreferrer nofollow" href="` + href + `">`, "</a>"
		}
	}
	return "", ""
}

// safeHref returns an address as an attribute, if following it only opens a page or writes a letter.
func safeHref(address string) (href string, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		ok = u.Host != ""
	case "mailto":
		ok = true
	}
	return escape(u.String()), ok
}
