package guard

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/scan"
)

// Limits of schemas.
const (
	maxSchema = 256 << 10 // bytes of one schema; a longer one is not shown
	// bytes of all schemas of a server; further ones are not shown, so that checking them does not take seconds
	maxSchemas = 1 << 20
	maxString  = 512 // bytes of one text in a schema (seed 001)
	maxDepth   = 10  // nesting up to which seed 001 checks; deeper levels are reported, and checked anyway
	maxNested  = 200 // nesting of a schema that is shown at all
)

// what says how the value at a place in a schema is treated.
type what int

const (
	subschema what = iota // keywords; its strings are texts
	named                 // maps names to schemas: properties, $defs
	data                  // values that a call may have to repeat exactly: enum, const, default, examples
	exact                 // names, references, expressions: never changed
)

// keywords whose values are neither schemas nor texts (JSON Schema 2020-12, and older drafts).
var keywords = map[string]what{
	"properties": named, "patternProperties": named, "$defs": named, "definitions": named, "dependentSchemas": named,
	"dependencies": named,
	"enum":         data, "const": data, "default": data, "examples": data, "example": data,
	"required": exact, "dependentRequired": exact, "pattern": exact, "$schema": exact, "$id": exact, "id": exact,
	"$ref": exact, "$anchor": exact,
	"$dynamicRef": exact, "$dynamicAnchor": exact, "$recursiveRef": exact, "$recursiveAnchor": exact,
	"$vocabulary": exact,
}

// mender walks a JSON document and replaces strings in it. All other bytes stay exactly the same.
type mender struct {
	src    []byte
	pos    int
	out    bytes.Buffer
	copied int // src up to here has been copied to out
	path   []string
	deep   bool
	report func(f Finding)
}

// mendSchema sanitises the texts of a schema. It returns raw itself if nothing has to change. ok is false when raw is
// not a JSON object, is longer than limit or is nested too deeply.
func mendSchema(raw json.RawMessage, limit int, report func(f Finding)) (clean json.RawMessage, ok bool) {
	trimmed := bytes.TrimSpace(raw)
	if len(raw) > min(limit, maxSchema) || len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(raw) ||
		nesting(raw) > maxNested {
		return nil, false
	}
	m := &mender{src: raw, report: report}
	m.value(subschema)
	if m.deep {
		report(Finding{Rule: RuleTooDeep, Severity: Info, Kept: true})
	}
	if m.out.Len() == 0 {
		return raw, true
	}
	m.out.Write(m.src[m.copied:])
	return m.out.Bytes(), true
}

// nesting returns the depth of a valid document.
func nesting(raw []byte) int {
	depth, deepest, text := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func (m *mender) space() byte {
	for m.pos < len(m.src) {
		switch c := m.src[m.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':': // the document is valid, so separators can be skipped
			m.pos++
		default:
			return c
		}
	}
	return 0
}

func (m *mender) value(w what) {
	if len(m.path) > maxDepth {
		m.deep = true
	}
	switch m.space() {
	case '{':
		m.object(w)
	case '[':
		m.pos++
		for i := 0; m.space() != ']'; i++ {
			m.enter(strconv.Itoa(i), w)
		}
		m.pos++
	case '"':
		m.text(w)
	default: // a number or a word
		for m.pos < len(m.src) && !strings.ContainsRune(",]} \t\r\n", rune(m.src[m.pos])) {
			m.pos++
		}
	}
}

func (m *mender) object(w what) {
	m.pos++
	for m.space() != '}' {
		start := m.pos
		key, whole := m.token()
		if !whole {
			m.replace(start, m.pos, key)
		}
		m.key(key)
		inner := w
		switch w {
		case named:
			inner = subschema
		case subschema:
			inner = keywords[key] // subschema for any other key
		}
		m.enter(key, inner)
	}
	m.pos++
}

func (m *mender) enter(step string, w what) {
	m.path = append(m.path, step)
	if w == named && m.space() != '{' { // "dependencies" of old drafts may list names
		w = exact
	}
	m.value(w)
	m.path = m.path[:len(m.path)-1]
}

// token reads a string. whole is false when its bytes are not valid Unicode and have to be written again.
func (m *mender) token() (s string, whole bool) {
	start := m.pos
	for m.pos++; m.src[m.pos] != '"'; m.pos++ {
		if m.src[m.pos] == '\\' {
			m.pos++
		}
	}
	m.pos++
	if err := json.Unmarshal(m.src[start:m.pos], &s); err != nil { // cannot happen: the document is valid
		return "", false
	}
	return s, utf8.Valid(m.src[start:m.pos]) && !loneSurrogate(m.src[start:m.pos], s)
}

// loneSurrogate reports whether the token contains half of a surrogate pair, which other JSON parsers reject.
func loneSurrogate(token []byte, s string) bool {
	return strings.ContainsRune(s, utf8.RuneError) && bytes.Contains(bytes.ToLower(token), []byte(`\ud`))
}

func (m *mender) replace(start, end int, by string) {
	m.out.Write(m.src[m.copied:start])
	m.out.Write(quote(by))
	m.copied = end
}

// quote encodes a JSON string without escaping for HTML.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// text handles the string at pos.
func (m *mender) text(w what) {
	start := m.pos
	s, whole := m.token()
	clean := s
	var rules []string
	switch w {
	case exact:
		if m.path[len(m.path)-1] == "$ref" && !strings.HasPrefix(s, "#") {
			m.report(Finding{Field: m.at(), Rule: RuleRemoteRef, Preview: preview(s), Kept: true})
		}
		m.exact(s)
	case data:
		clean, rules = mendData(s)
	default:
		clean, rules = Text(s, maxString)
	}
	if clean == s && whole {
		return
	}
	m.replace(start, m.pos, clean)
	m.found(s, rules)
	if w == subschema && len(rules) == 0 && len(scan.Strip(s)) > maxString {
		m.report(Finding{Field: m.at(), Rule: RuleTooLong, Severity: Info})
	}
}

func (m *mender) found(s string, rules []string) {
	for _, r := range rules {
		m.report(Finding{Field: m.at(), Rule: r, Severity: Warning, Preview: preview(s)})
	}
}

// key handles a name. It is not changed, because a call has to repeat it; instructions in it are reported as kept.
func (m *mender) key(name string) {
	m.path = append(m.path, name)
	m.exact(name)
	m.path = m.path[:len(m.path)-1]
}

func (m *mender) exact(s string) {
	names := instructs(s)
	if hidden(s) {
		names = append(names, RuleHidden)
	}
	for _, n := range names {
		m.report(Finding{Field: m.at(), Rule: n, Severity: High, Preview: preview(s), Kept: true})
	}
}

// instructs returns the rules that a name or a value matches. A single word, or a few of them joined as names are, does
// not count as an instruction (a property called "dan", a tool called "show_system_prompt"). More words count as a
// sentence, whatever separates them.
func instructs(s string) []string {
	text := s
	if identifier(s) {
		words := wordsOf(s)
		if len(words) < minSentence {
			return nil
		}
		text = strings.Join(words, " ")
	}
	var names []string
	for _, match := range scan.Find(text) {
		if !slices.Contains(names, match.Rule) {
			names = append(names, match.Rule)
		}
	}
	return names
}

// minSentence is the number of words from which a name is read as a sentence.
const minSentence = 4

// wordsOf splits a name: read_file, read-file, readFile.
func wordsOf(name string) []string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if r >= 'A' && r <= 'Z' && last >= 'a' && last <= 'z' {
			b.WriteByte(' ')
		}
		last = r
		if strings.ContainsRune("_-.$/", r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(b.String())
}

func identifier(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && r != '$' && r != '/' && (r < '0' || r > '9') &&
			(r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// mendData sanitises a value that a call may have to repeat. It is not cut, and characters are dropped only where they
// hide text.
func mendData(s string) (clean string, rules []string) {
	if rules := instructs(s); len(rules) > 0 {
		if identifier(s) {
			return scan.Sanitized, rules
		}
		return Text(s, max(len(s), len(scan.Sanitized)))
	}
	if identifier(s) {
		return s, nil
	}
	if hidden(s) {
		return scan.Strip(s), []string{RuleHidden}
	}
	return s, nil
}

// hidden reports whether s contains invisible characters that no script or emoji needs. They can encode hidden text.
func hidden(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r < 0x20 || r == 0x7F: // control characters: a model sees them escaped
			return false
		case r == 0x200C || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F: // joiners and variation selectors, as in emoji
			return false
		}
		return scan.Strip(string(r)) == ""
	})
}

// at returns the current place as a JSON pointer (RFC 6901).
func (m *mender) at() string {
	var b strings.Builder
	for _, p := range m.path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return cut(b.String(), maxString)
}
