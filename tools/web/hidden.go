package web

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// hidden reports whether the element itself says that a person does not see it. What style sheets and scripts hide is
// not known here.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			if hiddenStyle(a.Val) {
				return true
			}
		}
	}
	switch n.Data {
	case "script", "style", "noscript", "template", "head", "noembed", "noframes":
		return true
	case "dialog":
		return attr(n, "open") == nil
	}
	return false
}

// attr returns an attribute; nil if the element does not have it.
func attr(n *html.Node, key string) *string {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return &n.Attr[i].Val
		}
	}
	return nil
}

var (
	cssComment = regexp.MustCompile(`(?s)/\*.*?(\*/|$)`)
	nothing    = regexp.MustCompile(`^rect\((0|1px)|^inset\((50|100)%|^circle\(0|scale\(0\)`) // shapes without area
	cssEscape  = regexp.MustCompile(`\\([0-9a-fA-F]{1,6})[ \t\r\n\f]?|\\([^0-9a-fA-F\r\n\f])`)
)

// hiddenStyle reports whether an inline style hides the element. One hiding declaration is enough, whatever follows it:
// a style that says both is suspicious.
func hiddenStyle(style string) bool {
	style = cssEscape.ReplaceAllStringFunc(cssComment.ReplaceAllString(style, ""), func(s string) string {
		if code, err := strconv.ParseUint(strings.TrimSpace(s[1:]), 16, 32); err == nil {
			return string(rune(code))
		}
		return s[1:]
	})
	props := map[string]string{}
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		key, value, ok := strings.Cut(declaration, ":")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, "!")
		key, value = strings.TrimSpace(key), strings.Join(strings.Fields(value), " ")
		if hides(key, value) {
			return true
		}
		props[key] = value
	}
	if props["overflow"] == "hidden" || props["overflow"] == "clip" {
		for _, key := range []string{"width", "height", "max-width", "max-height"} {
			if n, unit, ok := length(props[key]); ok && tiny(n, unit) {
				return true
			}
		}
	}
	return false
}

// hides reports whether one declaration hides.
func hides(key, value string) bool {
	switch key {
	case "display", "visibility", "content-visibility", "color":
		return value == "none" || value == "hidden" || value == "collapse" || value == "transparent"
	case "opacity":
		n, _, ok := length(value)
		return ok && n <= 0
	case "font-size":
		n, unit, ok := length(value)
		return ok && tiny(n, unit)
	case "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top":
		n, _, ok := length(value)
		return ok && n <= -999 // off the page; a smaller offset is normal layout
	case "clip", "clip-path", "transform":
		return nothing.MatchString(value)
	}
	return false
}

// length parses "12px" and similar values.
func length(value string) (n float64, unit string, ok bool) {
	end := strings.IndexFunc(value, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+'
	})
	if end < 0 {
		end = len(value)
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	return n, strings.TrimSpace(value[end:]), err == nil
}

// tiny reports whether text of this size is unreadable.
func tiny(n float64, unit string) bool {
	switch unit {
	case "px", "pt":
		return n <= 1
	case "%":
		return n <= 5
	default:
		return n <= 0.05
	}
}

// invisible drops characters without width and meaning for a reader: soft hyphens, zero-width spaces, direction
// overrides, tags. Joiners are kept, because scripts and emoji need them.
func invisible(r rune) rune {
	switch {
	case r == 0xAD, r == 0x200B, r == 0x200E, r == 0x200F, r == 0xFEFF,
		r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r >= 0xE0000 && r <= 0xE0FFF,
		r < ' ' && r != '\n' && r != '\t', r >= 0x7F && r <= 0x9F:
		return -1
	}
	return r
}
