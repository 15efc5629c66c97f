package netrule

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
)

// Plain returns the form in which addresses are compared; false if the text is no address that a tool could open. A
// user name, which would be sent, makes it none.
//
// Two addresses are the same if they make the same request: they are compared in the form in which they are requested
// (Normal). Host names are in lower case and ASCII, without a trailing dot; default ports, dot segments, needless
// escapes of the path and fragments are gone, since none of them reaches a server. http counts as https, which is what
// the tools use. Everything else has to match byte by byte: the path and its case, the query and its escapes.
func Plain(text string) (string, bool) {
	u, err := CheckURL(text, Options{AllowPrivate: true, AllowHTTP: true})
	if err != nil {
		return "", false
	}
	if u.Scheme == "http" {
		u.Scheme, u.Host = "https", strings.TrimSuffix(u.Host, ":80")
	}
	if u, err = Normal(u); err != nil {
		return "", false
	}
	return u.String(), true
}

// HostOf returns the host of an address in plain form, without its port.
func HostOf(plain string) string {
	u, err := url.Parse(plain)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Site returns the domain that somebody has registered and that the host belongs to: evil.example for
// a.b.evil.example. For a host on a service that gives names to everybody (github.io), it is that of the service,
// because one person may have many of those.
func Site(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	for !icann && strings.Contains(suffix, ".") {
		suffix, icann = publicsuffix.PublicSuffix(suffix[strings.IndexByte(suffix, '.')+1:])
	}
	rest, ok := strings.CutSuffix(host, "."+suffix)
	if !ok {
		return host
	}
	return rest[strings.LastIndexByte(rest, '.')+1:] + "." + suffix
}

// maxText bounds how much of a text is searched, in bytes.
const maxText = 1 << 20

// Find returns the addresses in a text in plain form, each once, in order, and at most so many. What belongs to an
// address and what to the sentence around it is not always certain: then both readings count, as both are there. With
// bare, names without a scheme count too, such as go.dev/blog.
func Find(text string, most int, bare bool) []string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	f := finder{most: most, tried: map[string]bool{}, known: map[string]bool{}}
	f.search(text)
	if escaped := unescape.Replace(text); escaped != text {
		f.search(escaped)
	}
	if bare {
		f.bare(text)
	}
	return f.found
}

// unescape undoes how JSON and HTML write characters of an address.
var unescape = strings.NewReplacer(
	`\/`, "/", `\u0026`, "&", `\u003d`, "=", `\u003D`, "=", "&amp;", "&", "&#38;", "&", "&#x26;", "&",
)

type finder struct {
	found []string
	tried map[string]bool // as they are there
	known map[string]bool // in plain form
	most  int
}

func (f *finder) full() bool { return len(f.found) >= f.most }

func (f *finder) add(text string) {
	if f.full() || f.tried[text] {
		return
	}
	f.tried[text] = true
	if plain, ok := Plain(text); ok && !f.known[plain] {
		f.known[plain] = true
		f.found = append(f.found, plain)
	}
}

// search adds the addresses with a scheme.
func (f *finder) search(text string) {
	for from := 0; !f.full(); {
		at := strings.Index(text[from:], "://")
		if at < 0 {
			return
		}
		at += from
		from = at + 3
		for _, scheme := range []string{"https", "http"} {
			if start := at - len(scheme); start >= 0 && strings.EqualFold(text[start:at], scheme) {
				f.readings(text[start:ends(text, from)])
				break
			}
		}
	}
}

// ends returns where the characters end that an address may have.
func ends(text string, from int) int {
	for i, r := range text[from:] {
		switch {
		case r <= ' ', strings.ContainsRune("\"<>`|\\^{}", r),
			r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			return from + i
		}
	}
	return len(text)
}

// trailing are the signs that may belong to the sentence around an address, and mostTrailing
// how many of them may follow it.
const (
	trailing     = ".,;:!?'*_~)]"
	mostTrailing = 6
)

// readings adds what the address may be: all of it, without the punctuation at its end, up to a bracket that was opened
// before it, and up to another address.
func (f *finder) readings(text string) {
	f.add(text)
	for range mostTrailing { // "(see https://example.com/a_(b))."
		if text == "" || !strings.ContainsRune(trailing, rune(text[len(text)-1])) {
			break
		}
		text = text[:len(text)-1]
		f.add(text)
	}
	if cut := unbalanced(text); cut < len(text) {
		f.readings(text[:cut])
	}
	if next := max(strings.LastIndex(text, "https://"), strings.LastIndex(text, "http://")); next > len("https://") {
		f.readings(text[:next])
	}
}

// unbalanced returns the index of the first bracket that closes none.
func unbalanced(text string) int {
	round, square := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			round++
		case '[':
			square++
		case ')':
			if round--; round < 0 {
				return i
			}
		case ']':
			if square--; square < 0 {
				return i
			}
		}
	}
	return len(text)
}

// bare adds what begins with the name of a host.
func (f *finder) bare(text string) {
	for from := 0; from < len(text) && !f.full(); {
		dot := strings.IndexByte(text[from:], '.')
		if dot < 0 {
			return
		}
		dot += from
		start := dot
		for start > from && !apart(text[start-1]) {
			start--
		}
		end := ends(text, dot)
		from = max(end, dot+1)
		word := strings.TrimLeft(text[start:end], "('[*_~")
		host, _, _ := strings.Cut(word, "/")
		host, _, _ = strings.Cut(strings.TrimRight(host, trailing), ":")
		if strings.Contains(word, "://") || strings.Contains(host, "@") {
			continue
		}
		if _, icann := publicsuffix.PublicSuffix(strings.ToLower(strings.TrimSuffix(host, "."))); icann {
			f.readings("https://" + word)
		}
	}
}

// apart reports whether a byte is between words.
func apart(b byte) bool { return b <= ' ' || strings.IndexByte("\"<>`|\\^{},;", b) >= 0 }

// Repeats reports whether an address in plain form is repeated from the inputs of the call that returned it: a service
// that returns what it is given would otherwise make any address one that was found.
func Repeats(plain string, inputs []string) bool {
	bare := strings.ToLower(strings.TrimPrefix(plain, "https://"))
	forms := []string{bare, strings.TrimSuffix(bare, "/"), decoded(bare)}
	return slices.ContainsFunc(inputs, func(input string) bool {
		input = strings.ToLower(input)
		for range 4 {
			if slices.ContainsFunc(forms, func(form string) bool {
				return form != "" && strings.Contains(input, form)
			}) {
				return true
			}
			next := decoded(input)
			if next == input {
				return false
			}
			input = next
		}
		return false
	})
}

// decoded undoes one layer of percent encoding.
func decoded(text string) string {
	if out, err := url.QueryUnescape(text); err == nil {
		return out
	}
	return text
}

// Origin says who has brought an address into a conversation.
type Origin uint8

// Origins. The zero value is the least that can be said.
const (
	Built Origin = iota // nobody has: the model has put it together
	Found               // it is in a page, the result of a search, a quotation or a document
	Given               // a person has written it
)

// MostOpened is how many addresses of one site a turn opens without a question because they were found. More of them
// would spell something: which of sixty links are opened, and in which order, is up to the model.
const MostOpened = 5
