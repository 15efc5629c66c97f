package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// kind says what a value must look like to be a credential.
type kind int

const (
	none     kind = iota // judged only by an expression
	password             // chosen by people, in almost any form
	secret               // generated: long, mixed, random
	service              // like secret, and the name must say that it is a key
)

// maxValue limits a value in bytes. A longer one is masked up to its end.
const maxValue = 4 << 10

// value is what is assigned to a name.
type value struct {
	name       string // the part of the name after the keyword, in lower case
	start, end int
	quote      byte // 0 = none
	next       byte // after the value and its quote; 0 = the end of the text
	tag        bool // it is between XML tags
}

// assigned returns what is assigned to a name that contains a keyword of length size at i: name = value, "name":
// "value", name := `value`, <name>value</name>.
func assigned(s string, i, size int) (v value, ok bool) {
	n := nameEnd(s, i, size)
	v.name = strings.ToLower(s[i+size : n])
	n = skip(s, n, `\`, 1)
	n = skip(s, n, "\"'`", 1)
	n = skip(s, n, "]", 1)
	if n < len(s) && s[n] == '>' && i > 0 && (wordByte(s[i-1]) || strings.IndexByte("<.:", s[i-1]) >= 0) {
		return element(s, n+1, v)
	}
	n, ok = sign(s, skip(s, n, " \t", 64))
	if !ok || i > 0 && s[i-1] == ':' && s[n-1] == ':' { // a name between colons is a column
		return v, false
	}
	return read(s, skip(s, n, " \t", 64), v)
}

// nameEnd returns the end of the name that contains a keyword of length size at i. It reads at most 64 bytes.
func nameEnd(s string, i, size int) int {
	n := i + size
	for n < len(s) && (wordByte(s[n]) || s[n] == '.') && n-i < 64 {
		n++
	}
	return n
}

// element reads the value that begins at start, after an XML tag: up to the closing tag, on the same line.
func element(s string, start int, v value) (value, bool) {
	v.start, v.tag = start, true
	v.end = start + upTo(s[start:], "<\n")
	return v, strings.HasPrefix(s[v.end:], "</")
}

// sign skips the assignment operator at n: up to three of : and =, with a > as the second in =>; or the attribute
// value= of a tag.
func sign(s string, n int) (after int, ok bool) {
	from := n
	for n < len(s) && (n-from < 3 && (s[n] == ':' || s[n] == '=') || n-from == 1 && s[n] == '>') {
		n++
	}
	if n > from {
		return n, true
	}
	near := s[n:min(len(s), n+16)]
	attribute := strings.TrimLeft(near, " \t")
	return n + len(near) - len(attribute) + len("value="), strings.HasPrefix(attribute, "value=")
}

// skip skips at most most of the given bytes.
func skip(s string, n int, bytes string, most int) int {
	for ; most > 0 && n < len(s) && strings.IndexByte(bytes, s[n]) >= 0; most-- {
		n++
	}
	return n
}

// upTo returns the length of s before the first of the given bytes.
func upTo(s, bytes string) int {
	if i := strings.IndexAny(s, bytes); i >= 0 {
		return i
	}
	return len(s)
}

// read reads the value at n: up to the closing quote, or to the end of the word.
func read(s string, n int, v value) (value, bool) {
	escaped := n < len(s) && s[n] == '\\'
	if escaped {
		n++
	}
	switch first := following(s, n); {
	case strings.IndexByte("\"'`", first) >= 0:
		return quoted(s, n, escaped, v)
	case escaped:
		return v, false
	case first == '|' || first == '>':
		return block(s, n, v)
	case first == '<' && following(s, n+1) == '<':
		return readHeredoc(s, n, v)
	}
	return bare(s, n, v)
}

// quoted reads the value whose quote is at n, single or tripled. escaped means that the quote follows a backslash, and
// so does the closing one.
func quoted(s string, n int, escaped bool, v value) (value, bool) {
	v.quote = s[n]
	for n < len(s) && s[n] == v.quote { // three of them too
		n++
	}
	v.start, v.end = n, quoteEnd(s, n, v.quote, escaped)
	v.next = following(s, v.end+1)
	return v, v.end > v.start
}

// quoteEnd returns the end of a value that begins at n, after its opening quote. Only a value in backquotes may span
// lines.
func quoteEnd(s string, n int, quote byte, escaped bool) int {
	end := n
	for end < len(s) && end-n < maxValue && s[end] != quote && (s[end] != '\n' || quote == '`') {
		if s[end] == '\\' && end+1 < len(s) && s[end+1] != '\n' {
			if escaped && s[end+1] == quote {
				break
			}
			end++
		}
		end++
	}
	return end
}

// bare reads a value without quotes at n: up to a blank, or to a character that ends a word.
func bare(s string, n int, v value) (value, bool) {
	v.start, v.end = n, n
	for v.end < len(s) && v.end-n < maxValue && strings.IndexByte(" \t\r\n\"'`,;&<>(){}[]\\|", s[v.end]) < 0 {
		v.end++
	}
	v.next = following(s, v.end)
	return v, v.end > v.start
}

// following returns the byte at i, 0 at the end of the text.
func following(s string, i int) byte {
	if i >= len(s) {
		return 0
	}
	return s[i]
}

// readHeredoc reads the line below <<WORD, as in a shell or HCL.
func readHeredoc(s string, n int, v value) (value, bool) {
	line := n + upTo(s[n:], "\n")
	word := strings.Trim(s[n:line], "<-~ \"'\r")
	if line == len(s) || word == "" || strings.ContainsFunc(word, func(r rune) bool { return !isLetter(r) && r != '_' }) {
		return v, false
	}
	v.quote = '"'
	v.start = line + 1 + len(s[line+1:]) - len(strings.TrimLeft(s[line+1:], " \t"))
	v.end = v.start + upTo(s[v.start:min(len(s), v.start+maxValue)], " \t\r\n")
	return v, v.end > v.start && s[v.start:v.end] != word
}

// block reads a YAML block: the following lines that are indented more than the name.
func block(s string, n int, v value) (value, bool) {
	line := n + upTo(s[n:], "\n")
	if strings.Trim(s[n:line], "|>+- \r") != "" || line == len(s) {
		return v, false
	}
	from := strings.LastIndexByte(s[:n], '\n') + 1
	indent := len(s[from:n]) - len(strings.TrimLeft(s[from:n], " -"))
	v.start = line + 1
	v.start += len(s[v.start:]) - len(strings.TrimLeft(s[v.start:], " "))
	v.end = v.start
	for at := line + 1; at < len(s) && at-line < maxValue; {
		end := at + upTo(s[at:], "\n")
		text := s[at:end]
		if deep := len(text) - len(strings.TrimLeft(text, " ")); strings.TrimSpace(text) != "" && deep <= indent {
			break
		}
		if strings.TrimSpace(text) != "" {
			v.end = end
		}
		at = end + 1
	}
	v.quote = '"'
	return v, v.end > v.start
}

// tails match ends of names that mean that the value is about a credential but is none itself.
var tails = lazily(`(?:^|[_.-])(?:length|len|count|counts|limit|min|max|min_\w+|max_\w+|type|types|name|names|url|` +
	`uri|endpoint|file|path|dir|ttl|expir\w*|expires\w*|age|policy|field|label|hint|prompt|reset\w*|` +
	`confirm\w*|header|headers|param\w*|regex|pattern|format|id|ids|ref|refs|index|size|usage|used|bucket|source|` +
	`provider|store|manager|version|status|state|enabled|required|valid\w*|error|message|msg|help|desc\w*|title|` +
	`text_?box|placeholder|input|form|column|table|position|pos|kind|class|style|rotation|strength|issuer|scope|` +
	`scopes|audience|location|attribute|attr|algorithm|alg|encryption|mechanism|method|request|response|tests?|list|` +
	`map|set|func|fn|fmt)s?$`)

// compounds match longer words that begin with a keyword.
var compounds = lazily(`^(?:ttl|ize|izer|ized|izing|izes|ization|ary|ing|ed|ly|less|s_per|ish|ion|type|name|path|` +
	`file|url|uri|kind|class|id|len|length|count|source|store|manager|field|ref|list|map|pos|index|size|error|err|` +
	`request|response|param|header|provider|handler|service|string\(|endpoint|value\(|usage|callback|info|policy|` +
	`expires|expiry|func|set|get|parse|reader|writer|buffer|stream|scanner|stack|test|tests)(?:[a-z]*)$`)

// stopWords match words of examples, placeholders and messages; a value that consists of them is not a credential.
var stopWords = lazily(`(?i)^(?:null|nil|none|undefined|true|false|yes|no|on|off|empty|unset|default|string|str|int|` +
	`integer|bool|boolean|bytes?|any|object|text|varchar|char|optional|required|` +
	`example|sample|placeholder|dummy|test|testing|tests|fake|mock|demo|changeme|change|replace|insert|enter|todo|` +
	`tbd|xxx+|foo|bar|baz|foobar|abc|abcd|abcdef|qwerty|redacted|hidden|masked|removed|secret|secrets|token|tokens|` +
	`password|passwords|passwd|passphrase|pass|pwd|key|keys|apikey|api|access|private|public|credential|credentials|` +
	`auth|authorization|bearer|basic|value|values|name|user|users|username|my|your|the|a|an|is|are|was|be|` +
	`must|should|` +
	`please|invalid|incorrect|wrong|missing|expired|expected|unexpected|failed|not|no|for|to|of|in|or|and|with|` +
	`cannot|can|at|least|characters|new|old|current|forgot|reset|confirm|here|some|this|that|it|file|env|` +
	`var|variable|` +
	`input|output|type|id|client|server|app|login|signup|field|label|hint|too|short|long|weak|strong|match|matches|` +
	`mismatch|database|db|root|admin|hash|hashed|hello|world|supersecret|topsecret|mysecret|mypassword|yourpassword|` +
	`letmein|compat|files|ldap|sss|systemd|uintptr|\d{1,4})$`)

var (
	wordParts  = lazily(`[A-Z]+(?:[a-z]+|\b)|[a-z]+|\d+`)
	identifier = lazily(`^[*&!@]?[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*[.:]?$`)
	variable   = lazily(`^[$%#@{<:?~^]|\$\{|\$\(|\{\{|%[svdq(]|<[a-z _-]+>|^\.\.\.|…|[xX]{3,}$|\*{3,}|` +
		`^[A-Z][a-z0-9]+(?:-[A-Z][a-z0-9]+){2,}$`)
	pathLike = lazily(`^(?:\.{0,2}|~|[A-Za-z]:|[a-z_]+)?[/\\][\w.@/\\{}*~-]*$|^https?://|^(?:urn|arn|file|vault|ref|` +
		`op|s3|gs|ssm|secretsmanager|env|keychain):`)
	typeLike  = lazily(`^(?:\*|\[\]|map\[|Option<|List<|Optional|Array|Promise|Vec)`)
	constant  = lazily(`^[+-]?0[xX][0-9a-fA-F]{1,16}$`)
	hexDigits = lazily(`^(?:0x)?[0-9a-fA-F]+$`)
	allDigits = lazily(`^[\d.,_:+-]+$`)
)

// credential judges a value that is assigned to a name like that of a credential.
func credential(k kind, s string, v value) bool {
	text := s[v.start:v.end]
	if short(k, text) || !namesCredential(k, v.name) || reference(text) ||
		code(text, v) || repeated(text) || placeholder(text) {
		return false
	}
	if k == password {
		return chosen(text, v)
	}
	return !constant.matches(text) && strings.ContainsFunc(text, isLetter) &&
		!strings.ContainsAny(text, " \t") && made(text)
}

// short reports whether a value is too short for its kind or, if it should be generated, has no digit.
func short(k kind, text string) bool {
	return len(text) < 4 || k != password && (len(text) < 8 || !strings.ContainsAny(text, "0123456789"))
}

// namesCredential reports whether a name is that of a credential, and not of something about one. name
// is its rest after the keyword.
func namesCredential(k kind, name string) bool {
	says := func(word string) bool { return strings.Contains(name, word) }
	if k == service && !slices.ContainsFunc([]string{"key", "token", "secret", "pass", "pat", "auth"}, says) {
		return false
	}
	return !tails.matches(name) && !compounds.matches(name)
}

// reference reports whether a value is already masked, or only says where the credential is: a variable, a template, a
// path.
func reference(text string) bool {
	return strings.Contains(text, Mask) || variable.matches(text) || pathLike.matches(text)
}

// code reports whether a value is source code: an expression, or a string that the program continues to process.
func code(text string, v value) bool {
	if v.quote != 0 {
		return strings.IndexByte("+[.(%", v.next) >= 0
	}
	return !v.tag && expression(text, v.next)
}

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// made reports whether a value looks generated: it is not words followed by a number, a version or a date.
func made(text string) bool {
	least := 3.0
	if len(text) < 12 {
		least = 2.7
	}
	if hexDigits.matches(text) {
		least = 2.6
	}
	if entropy(text) < least {
		return false
	}
	digits, turns := 0, 0
	for i := range len(text) {
		d := text[i] >= '0' && text[i] <= '9'
		if d {
			digits++
		}
		if i > 0 && d != (text[i-1] >= '0' && text[i-1] <= '9') {
			turns++
		}
	}
	return turns >= 3 || digits*4 >= len(text) || len(text) >= 32 && turns >= 2 && entropy(text) >= 4
}

// expression reports whether a value without quotes is source code: a name, a field, a call, an index, a type.
func expression(text string, next byte) bool {
	if strings.IndexByte(`([{<\`, next) >= 0 || typeLike.matches(text) || len(text) < 6 && allDigits.matches(text) {
		return true
	}
	if !identifier.matches(text) {
		return false
	}
	digits := strings.ContainsAny(text, "0123456789")
	if member(text, digits) {
		return true
	}
	parts := len(wordParts.get().FindAllString(text, -1))
	if strings.IndexByte(";,)}]|", next) >= 0 || next == '&' && parts > 0 && !digits {
		return !dense(text)
	}
	// Identifiers: userPassword, api_key, FOO_BAR. A text with digits in several places is not one.
	return !digits && (parts > 1 || strings.IndexByte(" \t:=", next) >= 0)
}

// member reports whether an identifier names a member: a.b without digits, a->b, a::b.
func member(text string, digits bool) bool {
	return !digits && strings.Contains(strings.TrimRight(text, ".:"), ".") ||
		strings.Contains(text, "->") || strings.Contains(text, "::")
}

// dense reports whether a name contains digits in several places.
func dense(text string) bool {
	turns := 0
	for i := 1; i < len(text); i++ {
		if digit := text[i] >= '0' && text[i] <= '9'; digit != (text[i-1] >= '0' && text[i-1] <= '9') {
			turns++
		}
	}
	return turns >= 3
}

// repeated reports whether a value is a mask, or has very few different characters.
func repeated(text string) bool {
	seen := map[rune]bool{}
	n := 0
	for _, r := range text {
		seen[r] = true
		if n++; len(seen) > 3 {
			return false
		}
	}
	return n >= 4 || len(seen) == 1
}

// placeholder reports whether a value consists of words that are a placeholder for a value.
func placeholder(text string) bool {
	parts := wordParts.get().FindAllString(text, -1)
	if len(parts) == 0 {
		return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	}
	stops, letters := 0, 0
	for _, p := range parts {
		if p[0] >= '0' && p[0] <= '9' && len(p) <= 4 {
			continue // no evidence either way
		}
		letters += len(p)
		if stopWords.matches(p) {
			stops += len(p)
		}
	}
	return stops*10 >= letters*6
}

// prose matches words that occur in every sentence, but not in passwords of several words.
var prose = lazily(`(?i)\b(?:the|is|are|be|must|should|please|your|not|for|to|of|with|cannot|can't|enter|invalid|` +
	`required|and|or|in|on|this|a|an|you|if|will|was|has|have|from|by|at|%[a-z])\b`)

// chosen reports whether a value may be a password chosen by a person.
func chosen(text string, v value) bool {
	if strings.ContainsAny(text, " \t") {
		return len(text) < 200 && (!prose.matches(text) || slices.ContainsFunc(strings.Fields(text), dense)) &&
			!strings.ContainsAny(text, "(){}=;:,<>") && strings.Count(text, " ") >= 2 || strings.Contains(text, "\n")
	}
	if strings.ContainsFunc(text, isLetter) && !strings.ContainsAny(text, "0123456789!@#$%^&*?~+=") {
		return letters(text, v)
	}
	if allDigits.matches(text) {
		return len(text) >= 6 && text[0] != '-' && (v.quote != 0 || len(text) < 10)
	}
	return !strings.ContainsAny(text, "(){}<>") || entropy(text) > 3.3
}

// letters reports whether a value of letters is a password: one word that ends its line, or a quoted value of a
// configuration.
func letters(text string, v value) bool {
	if len(wordParts.get().FindAllString(text, -1)) > 3 ||
		len(text) < 5 || v.quote == 0 && strings.Contains(text, "_") {
		return false
	}
	return v.tag || v.quote == 0 && (v.next == 0 || v.next == '\n' || v.next == '\r' ||
		v.next == '&' || v.next == ';') || v.quote != 0 && len(text) >= 8 && strings.ToLower(text) == text
}
