package redact

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// view is a text as a person reads it: without colour codes and invisible characters, with continuation lines joined
// and percent-encoding and JSON's \u00XX decoded. Each of these can split a credential.
type view struct {
	s     string
	marks []mark // in order
}

// mark says where a byte of the view comes from, and how many bytes of the text it represents. The bytes after it come
// from the bytes after those.
type mark struct{ at, original, size int }

// place returns the bytes of the text that a byte of the view represents.
func (v *view) place(i int) (start, end int) {
	n, exact := slices.BinarySearchFunc(v.marks, i, func(m mark, i int) int { return cmp.Compare(m.at, i) })
	if exact {
		return v.marks[n].original, v.marks[n].original + v.marks[n].size
	}
	m := v.marks[n-1]
	start = m.original + m.size + i - m.at - 1
	return start, start + 1
}

// torn reports whether the view of a text may differ from the text. It is cheap.
func torn(s string) bool {
	return strings.IndexByte(s, 0x1B) >= 0 || strings.Contains(s, "\\\n") || strings.Contains(s, "\\\r\n") ||
		strings.Contains(s, "%") || strings.Contains(s, `\u00`) ||
		strings.Contains(s, "\u00ad") || strings.Contains(s, "\ufeff") ||
		strings.Contains(s, "\xe2\x80") || strings.Contains(s, "\xe2\x81")
}

// look returns the view of a text.
func look(s string) view {
	v := view{marks: []mark{{0, 0, 1}}}
	note := func(m mark) {
		if last := len(v.marks) - 1; v.marks[last].at == m.at {
			v.marks = v.marks[:last]
		}
		v.marks = append(v.marks, m)
	}
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	drop := func(i, size int, instead string) {
		b.WriteString(s[from:i])
		if instead != "" {
			note(mark{b.Len(), i, size})
			b.WriteString(instead)
		}
		from = i + size
		note(mark{b.Len(), from, 1})
	}
	for i := 0; i < len(s); {
		size, instead := 0, ""
		switch c := s[i]; {
		case c == 0x1B:
			size = escape(s[i:])
		case c == '\\':
			if size = continuation(s[i:]); size == 0 {
				size, instead = encoded(s[i:], `\u00`)
			}
		case c == '%':
			size, instead = encoded(s[i:], "%")
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if !unseen(r) {
				i += n
				continue
			}
			size = n
		}
		if size == 0 {
			i++
			continue
		}
		drop(i, size, instead)
		i += size
	}
	b.WriteString(s[from:])
	v.s = b.String()
	return v
}

// maxEscape is the maximum length of a terminal code in bytes; what does not end is not a code.
const maxEscape = 256

// escape returns the length of the terminal code at the start of s.
func escape(s string) int {
	s = s[:min(len(s), maxEscape)]
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7E {
				return i + 1
			}
		}
	case ']', 'P', '_', '^':
		if i := strings.IndexByte(s, 0x07); i >= 0 {
			return i + 1
		}
		if i := strings.Index(s[1:], "\x1b\\"); i >= 0 {
			return i + 3
		}
	case '(', ')':
		return min(3, len(s))
	}
	return 1
}

// continuation returns the length of a backslash and the line end after it.
func continuation(s string) int {
	switch {
	case strings.HasPrefix(s, "\\\n"):
		return 2
	case strings.HasPrefix(s, "\\\r\n"):
		return 3
	}
	return 0
}

// encoded decodes a visible character that is written as two hexadecimal digits after a sign; a blank replaces what
// separates words and lines.
func encoded(s, sign string) (size int, instead string) {
	n := len(sign)
	if len(s) < n+2 || s[:n] != sign || hexDigit(s[n]) < 0 || hexDigit(s[n+1]) < 0 {
		return 0, ""
	}
	c := byte(hexDigit(s[n])<<4 | hexDigit(s[n+1]))
	switch {
	case c >= 0x7F || c == 0x1B:
		return 0, ""
	case c <= ' ':
		c = ' '
	}
	return n + 2, string(rune(c))
}

func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", lower(c)) }

// unseen reports whether a character is invisible.
func unseen(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x180E, r == 0xFEFF:
		return true
	}
	return r >= 0x200B && r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2060 && r <= 0x206F ||
		r >= 0xFE00 && r <= 0xFE0F
}

// maxLayers limits how many encodings on top of each other are decoded, as in the address within an address within one.
const maxLayers = 3

// seen returns the credentials in the view of a text, with their positions in the text.
func (x *index) seen(s string, layers int) []Finding {
	v := look(s)
	if v.s == s {
		return nil
	}
	found := x.scan(v.s)
	if layers > 1 && torn(v.s) {
		found = append(found, x.seen(v.s, layers-1)...)
	}
	for i, f := range found {
		found[i].Start, _ = v.place(f.Start)
		_, found[i].End = v.place(f.End - 1)
	}
	return found
}

var (
	secretObject = lazily(`(?m)^[ \t-]*["']?kind["']?[ \t]*:[ \t]*["']?Secret\b`)
	secretData   = lazily(`(?m)^([ \t]*)["']?(?:data|stringData)["']?[ \t]*:[ \t]*\{?[ \t]*\r?$`)
	dataLine     = lazily(
		`(?m)^([ \t]*)["']?[A-Za-z0-9_.-]+["']?[ \t]*:[ \t]*["']?([^\s"',{}|>][^\s"',{}]{3,})["']?,?[ \t]*\r?$`,
	)
)

// maxObjects limits how many Kubernetes Secrets are searched in one text.
const maxObjects = 64

// objects returns the values in Kubernetes Secrets: base64 whose names do not suggest a secret.
func objects(s string) []Finding {
	if !strings.Contains(s, "Secret") {
		return nil
	}
	var found []Finding
	done := 0
	for _, at := range secretObject.get().FindAllStringIndex(s, maxObjects) {
		from := max(done, strings.LastIndex(s[:at[0]], "\n---")+1)
		to := at[1] + upToText(s[at[1]:], "\n---")
		done = to
		for _, data := range secretData.get().FindAllStringSubmatchIndex(s[from:to], maxObjects) {
			found = append(found, entries(s, from+data[1], to, data[3]-data[2])...)
		}
	}
	return found
}

// entries returns the values of the lines from from to to that are indented by more than indent.
func entries(s string, from, to, indent int) (found []Finding) {
	for from < to && s[from] == '\n' {
		end := min(to, from+1+upTo(s[from+1:], "\n"))
		line := s[from+1 : end]
		at := dataLine.get().FindStringSubmatchIndex(line)
		if strings.TrimSpace(line) != "" && len(line)-len(strings.TrimLeft(line, " \t")) <= indent {
			break
		}
		if at != nil && line[at[4]:at[5]] != Mask && !variable.matches(line[at[4]:at[5]]) {
			found = append(found, Finding{Rule: "kubernetes_secret", Start: from + 1 + at[4], End: from + 1 + at[5]})
		}
		from = end
	}
	return found
}

// upToText returns the length of s before a text.
func upToText(s, text string) int {
	if i := strings.Index(s, text); i >= 0 {
		return i
	}
	return len(s)
}
