package redact

import (
	"encoding/base64"
	"math"
	"strings"
)

const (
	// window is how many bytes an expression is applied to. A token that fills it is masked up to its end.
	window = 512
	// maxKey is how many bytes of a private key are searched for its last line.
	maxKey = 64 << 10
)

// text is a text during a scan.
type text struct {
	s    string
	done int // end of the last finding or mask, which counts as an edge
}

// match applies the rule at one of its keywords.
func (r *rule) match(t *text, i int) (start, end int, ok bool) {
	from, ok := r.begin(t, i)
	if !ok {
		return 0, 0, false
	}
	if r.kind != none {
		return r.value(t, i)
	}
	if r.assigned && !assigns(t.s, i+r.keywordAt(t.s[i:])) {
		return 0, 0, false
	}
	limit := min(len(t.s), i+window)
	at := r.re.get().FindStringSubmatchIndex(t.s[i:limit])
	if at == nil {
		return 0, 0, false
	}
	start, end = i+at[2], i+at[3]
	if from < i {
		start = from
	}
	end, ok = r.ending(t, end, limit)
	if !ok {
		return 0, 0, false
	}
	if value := t.s[start:end]; value == Mask || !r.likely(value) {
		return 0, 0, false
	}
	return start, end, true
}

// ending returns the end of a credential, and whether what follows allows it to be one. The expression was applied up
// to limit and matched up to end.
func (r *rule) ending(t *text, end, limit int) (last int, ok bool) {
	switch {
	case r.pem:
		if !body(t.s[end:min(len(t.s), end+near)]) {
			return 0, false
		}
		end = t.keyEnd(end)
	case r.host && end < len(t.s) && t.s[end] == '@':
		return 0, false // the name of a type of SSH key
	case end == limit:
		end = goesOn(t.s, end)
	}
	return end, !r.exact || end >= len(t.s) || !wordByte(t.s[end])
}

// value applies the rule to a name that contains its keyword and to which something is assigned.
func (r *rule) value(t *text, i int) (start, end int, ok bool) {
	size := r.keywordAt(t.s[i:])
	if !assigns(t.s, i+size) {
		return 0, 0, false
	}
	v, ok := assigned(t.s, i, size)
	if !ok || v.start < t.done || !credential(r.kind, t.s, v) {
		return 0, 0, false
	}
	return v.start, v.end, true
}

// keywordAt returns the length of the longest keyword with which s begins.
func (r *rule) keywordAt(s string) (size int) {
	for keyword := range strings.FieldsSeq(r.keywords) {
		if len(keyword) > size && foldPrefix(s, keyword) {
			size = len(keyword)
		}
	}
	return size
}

// assigns reports whether an assignment operator may follow the name that continues at n. This saves further work where
// the word is only mentioned.
func assigns(s string, n int) bool {
	for n < len(s) && (wordByte(s[n]) || s[n] == '.') {
		n++
	}
	for skipped := 0; skipped < 3 && n < len(s) && strings.IndexByte("\\\"'`] \t", s[n]) >= 0; n++ {
		if s[n] != ' ' && s[n] != '\t' {
			skipped++
		}
	}
	return n < len(s) && (s[n] == '=' || s[n] == ':' || s[n] == '>' || s[n] == 'v')
}

// holds reports whether the bytes before the keyword can be the body of the credential.
func (r *rule) holds(s string) bool {
	for i := range len(s) {
		if r.body != "" && strings.IndexByte(r.body, s[i]) < 0 || r.body == "" && !wordByte(s[i]) {
			return false
		}
	}
	return true
}

// begin returns the start of a credential with its keyword at i, and whether it may start there.
func (r *rule) begin(t *text, i int) (from int, ok bool) {
	switch {
	case r.digits:
		from = i
		for from > t.done && t.s[from-1] >= '0' && t.s[from-1] <= '9' && i-from < 13 {
			from--
		}
		return from, i-from >= 5 && i-from <= 12 &&
			(from == t.done || !wordByte(t.s[from-1]) || botToken(t.s[t.done:from], t.s[i+1:]))
	case r.back > 0:
		return i - r.back, i-r.back >= t.done && r.holds(t.s[i-r.back:i]) &&
			(i-r.back == 0 || !wordByte(t.s[i-r.back-1]))
	case r.edge:
		return i, i == t.done || !wordByte(t.s[i-1])
	}
	return i, true
}

// botToken reports whether digits that follow a letter, digit, _ or - are nevertheless the first part of a bot's token:
// after "bot", as in the addresses of the Bot API, or if the second part has the form that all tokens have today.
func botToken(before, secret string) bool {
	if n := len(before) - len("bot"); n >= 0 && foldPrefix(before[n:], "bot") {
		return true
	}
	const length = 35
	for i := range min(len(secret), length) {
		if !wordByte(secret[i]) {
			return false
		}
	}
	return strings.HasPrefix(secret, "AA") && len(secret) >= length &&
		(len(secret) == length || !wordByte(secret[length]))
}

// near is how many bytes after the first line of a private key are looked at to find out whether the key follows.
const near = 128

// body reports whether the text after the first line of a private key may be the key: it is on a line of its own and
// not only dots or Xs, or it looks like base64 behind the signs of a diff, a comment or a string in source code.
func body(s string) bool {
	plain := strings.TrimLeft(s, "\r\n\t \\nr[]s>")
	if plain == "" || wordByte(plain[0]) && plain[0] != '-' {
		return !strings.HasPrefix(plain, "XXXX")
	}
	const signs = "\r\n\t \\\"'`nr[]s>,;:#*|.-("
	key := strings.TrimLeft(s, signs)
	return base64Body(key) || base64Body(strings.TrimLeft(key, signs+"+/"))
}

// base64Body reports whether s begins with base64: long and of mixed characters, or up to the last line of the key.
func base64Body(s string) bool {
	end := 0
	for end < len(s) && (wordByte(s[end]) && s[end] != '_' && s[end] != '-' || strings.IndexByte("+/=", s[end]) >= 0) {
		end++
	}
	if rest := strings.TrimLeft(s[end:], "\r\n\t \\nr"); end >= 8 && strings.HasPrefix(rest, "-----END") {
		return true
	}
	const upper, small, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
	return end >= 20 && strings.ContainsAny(s[:end], upper) && strings.ContainsAny(s[:end], small) &&
		strings.ContainsAny(s[:end], digits)
}

// keyEnd returns the end of the private key whose first line ends at from: after its last line or, if that is missing,
// after what looks like the key.
func (t *text) keyEnd(from int) int {
	rest := t.s[from:min(len(t.s), from+maxKey)]
	if at := strings.Index(rest, "-----END"); at >= 0 {
		at += len("-----END")
		if last := strings.Index(rest[at:min(len(rest), at+64)], "-----"); last >= 0 {
			at += last + len("-----")
		}
		return from + at
	}
	end := from
	for end < len(t.s) && (wordByte(t.s[end]) || strings.IndexByte("+/=:,. \t\r\n\\\"'`#*|", t.s[end]) >= 0) {
		end++
	}
	return end
}

// goesOn returns the end of a credential that is longer than the window.
func goesOn(s string, end int) int {
	for end < len(s) && (wordByte(s[end]) || strings.IndexByte("+/=.~%", s[end]) >= 0) {
		end++
	}
	return end
}

// wordByte reports whether c may be part of a longer name.
func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// likely checks what an expression cannot express.
func (r *rule) likely(s string) bool {
	switch strings.ToLower(s[:min(len(s), 10)]) {
	case "bearer", "basic", "digest", "negotiate", "apikey":
		return false // the name of a scheme whose value is already masked
	}
	if r.mixed && !strings.ContainsAny(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	if r.encoded && !pairInside(s) || r.written && (placeholder(s) || repeated(s) || variable.matches(s)) {
		return false
	}
	if r.digit && !strings.ContainsAny(s, "0123456789") {
		return false
	}
	return r.entropy == 0 || entropy(s) >= r.entropy
}

// entropy returns the Shannon entropy of s in bits a byte.
func entropy(s string) (bits float64) {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// pairInside reports whether base64 contains a name and a password, as in HTTP basic authentication.
func pairInside(s string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.Contains(string(plain), ":")
}
