package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// namedIn reports whether a text names the person.
func (p Person) namedIn(text string) bool {
	return slices.ContainsFunc(p.IDs, func(id string) bool { return replaceWord(text, id, "") != text })
}

// eraseText returns a text without the person.
func (p Person) eraseText(s string) string {
	for _, id := range p.IDs {
		s = replaceWord(s, id, p.Pseudonym)
	}
	return s
}

// mayBeIn reports whether a line may name the person. It costs much less than to decode the line.
func (p Person) mayBeIn(line []byte) bool {
	for _, id := range p.IDs {
		if escaped := quoteJSON(id); bytes.Contains(line, escaped[1:len(escaped)-1]) ||
			bytes.Contains(line, []byte(id)) {
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

// eraseRecord removes the person from a record and reports whether it changed.
func (p Person) eraseRecord(r *record) bool {
	was, err := json.Marshal(r)
	if err != nil {
		return false
	}
	own := p.namedIn(r.Caller)
	content := func(s string) string {
		if own && p.Content && s != "" {
			return erasedContent
		}
		return p.eraseText(s)
	}
	if p.Session != nil {
		r.Session = p.Session(r.Session)
	}
	r.Session = p.eraseText(r.Session)
	for _, field := range []*string{
		&r.Caller, &r.ApprovedBy, &r.Turn, &r.Call, &r.Parent, &r.Correlation, &r.Rule, &r.Judge,
	} {
		*field = p.eraseText(*field)
	}
	r.URL, r.Host = content(r.URL), content(r.Host)
	if r.Kind == "" || r.Kind == kindStarted || r.Kind == kindEgress { // those of markers are the log's own words
		r.Reason = content(r.Reason)
	}
	if r.Result != nil {
		r.Result = &outcome{Type: r.Result.Type, Reason: content(r.Result.Reason)}
	}
	if len(r.Args) > 0 {
		r.Args = p.eraseArgs(r.Args, own)
	}
	is, err := json.Marshal(r)
	return err == nil && !bytes.Equal(was, is)
}

func (p Person) eraseArgs(raw json.RawMessage, own bool) json.RawMessage {
	if own && p.Content {
		return quoteJSON(erasedContent)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return quoteJSON(erasedContent)
	}
	if !p.namedWithin(v) {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p.eraseValue(v)); err != nil {
		return quoteJSON(erasedContent)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// namedWithin reports whether a value names the person.
func (p Person) namedWithin(v any) bool {
	switch v := v.(type) {
	case string:
		return p.namedIn(v)
	case json.Number:
		return p.namedIn(v.String())
	case []any:
		return slices.ContainsFunc(v, p.namedWithin)
	case map[string]any:
		for key, x := range v {
			if p.namedIn(key) || p.namedWithin(x) {
				return true
			}
		}
	}
	return false
}

func (p Person) eraseValue(v any) any {
	switch v := v.(type) {
	case string:
		return p.eraseText(v)
	case json.Number:
		if s := p.eraseText(v.String()); s != v.String() {
			return s
		}
	case []any:
		for i := range v {
			v[i] = p.eraseValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, x := range v {
			out[p.eraseText(key)] = p.eraseValue(x)
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
		if at > 0 && isWordRune(before) || end < len(s) && isWordRune(after) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		from = end
	}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
