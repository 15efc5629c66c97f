package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// found reports whether a text names the person.
func (p Person) found(text string) bool {
	return slices.ContainsFunc(p.IDs, func(id string) bool { return replaceWord(text, id, "") != text })
}

// text returns a text without the person.
func (p Person) text(s string) string {
	for _, id := range p.IDs {
		s = replaceWord(s, id, p.Pseudonym)
	}
	return s
}

// maybe reports whether a line may name the person. It costs much less than to decode the line.
func (p Person) maybe(line []byte) bool {
	for _, id := range p.IDs {
		if escaped := quote(id); bytes.Contains(line, escaped[1:len(escaped)-1]) || bytes.Contains(line, []byte(id)) {
			return true
		}
	}
	if p.Session == nil {
		return false
	}
	_, rest, ok := bytes.Cut(line, []byte(`"session":"`))
	key, _, ended := bytes.Cut(rest, []byte(`"`))
	return ok && ended && (bytes.ContainsRune(key, '\\') || p.Session(string(key)) != string(key))
}

// erase removes the person from a record and reports whether it changed.
func (p Person) erase(r *record) bool {
	was, err := json.Marshal(r)
	if err != nil {
		return false
	}
	own := p.found(r.Caller)
	content := func(s string) string {
		if own && p.Content && s != "" {
			return erasedContent
		}
		return p.text(s)
	}
	if p.Session != nil {
		r.Session = p.Session(r.Session)
	}
	r.Session = p.text(r.Session)
	for _, field := range []*string{&r.Caller, &r.ApprovedBy, &r.Turn, &r.Call, &r.Parent, &r.Correlation, &r.Rule, &r.Judge} {
		*field = p.text(*field)
	}
	r.URL, r.Host = content(r.URL), content(r.Host)
	if r.Kind == "" || r.Kind == kindStarted || r.Kind == kindEgress { // those of markers are the log's own words
		r.Reason = content(r.Reason)
	}
	if r.Result != nil {
		r.Result = &outcome{Type: r.Result.Type, Reason: content(r.Result.Reason)}
	}
	if len(r.Args) > 0 {
		r.Args = p.args(r.Args, own)
	}
	is, err := json.Marshal(r)
	return err == nil && !bytes.Equal(was, is)
}

func (p Person) args(raw json.RawMessage, own bool) json.RawMessage {
	if own && p.Content {
		return quote(erasedContent)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return quote(erasedContent)
	}
	if !p.within(v) {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p.value(v)); err != nil {
		return quote(erasedContent)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// within reports whether a value names the person.
func (p Person) within(v any) bool {
	switch v := v.(type) {
	case string:
		return p.found(v)
	case json.Number:
		return p.found(v.String())
	case []any:
		return slices.ContainsFunc(v, p.within)
	case map[string]any:
		for key, x := range v {
			if p.found(key) || p.within(x) {
				return true
			}
		}
	}
	return false
}

func (p Person) value(v any) any {
	switch v := v.(type) {
	case string:
		return p.text(v)
	case json.Number:
		if s := p.text(v.String()); s != v.String() {
			return s
		}
	case []any:
		for i := range v {
			v[i] = p.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, x := range v {
			out[p.text(key)] = p.value(x)
		}
		return out
	}
	return v
}

// replaceWord replaces a text where it is not part of a longer word.
func replaceWord(s, word, by string) string {
	if !strings.Contains(s, word) {
		return s
	}
	var b strings.Builder
	for from := 0; ; {
		at := strings.Index(s[from:], word)
		if at < 0 {
			b.WriteString(s[from:])
			return b.String()
		}
		at += from
		end := at + len(word)
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		after, _ := utf8.DecodeRuneInString(s[end:])
		b.WriteString(s[from:at])
		if at > 0 && wordy(before) || end < len(s) && wordy(after) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		from = end
	}
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
