package textcall

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

// The kinds of forms.
const (
	thoughtForm = "thought" // up to one of its closers, a thought
	harmonyForm = "harmony" // a header of the Harmony format
	callForm    = "call"    // calls as JSON, elements, or GLM's and Gemma's own notation
	sectionForm = "section" // calls between control tokens
	bareForm    = "bare"    // calls without a mark
	roleForm    = "role"    // the beginning of a message of a role, whose name follows
	tokenForm   = "token"   // means nothing
	lastForm    = "last"    // a token if it is the last thing of an answer

	closeForm   = "close"   // made from the closers of thoughts
	genericForm = "generic" // a token by its shape
)

// form is a row of forms.json.
type form struct {
	Kind  string   `json:"kind"`
	Open  string   `json:"open"` // in lower case, with plain bars and underscores, is how it is compared
	Close []string `json:"close"`
	// Whole: the opening mark is part of the call and not only around it.
	Whole bool `json:"whole"`
}

// forms are the rows by the first byte of their opening mark. Bare forms are apart, because any text may contain them.
type forms struct {
	by     [256][]*form
	bare   []*form
	closed []string // all closers of thoughts
}

//go:embed forms.json
var rows []byte

// table reads the rows once. They are part of the program; a test reads them too, so that a mistake in them is found.
var table = sync.OnceValue(func() *forms {
	var list []*form
	if json.Unmarshal(rows, &list) != nil {
		return &forms{}
	}
	return index(list)
})

// index prepares rows for matching.
func index(list []*form) *forms {
	all := &forms{}
	seen := map[string]bool{}
	for _, f := range list {
		f.Open = folded(f.Open)
		for i := range f.Close {
			f.Close[i] = folded(f.Close[i])
		}
		switch {
		case f.Kind == "" || f.Open == "":
		case f.Kind == bareForm:
			all.bare = append(all.bare, f)
		default:
			all.by[f.Open[0]] = append(all.by[f.Open[0]], f)
		}
		if f.Kind != thoughtForm {
			continue
		}
		for _, mark := range f.Close {
			// <channel|> ends a thought of Gemma's only if one has begun.
			if seen[mark] || mark == "<channel|>" {
				continue
			}
			seen[mark] = true
			all.closed = append(all.closed, mark)
			all.by[mark[0]] = append(all.by[mark[0]], &form{Kind: closeForm, Open: mark, Close: f.Close})
		}
	}
	return all
}

// folded brings a text into the form in which marks are compared: lower case, plain bars and underscores.
func folded(text string) string {
	return strings.ToLower(strings.NewReplacer("｜", "|", "▁", "_").Replace(text))
}

// fit says how a text fits a mark.
type fit int

const (
	differs fit = iota
	fits
	begins // it may fit once there is more of it
)

// prefixed compares the beginning of a text with a folded mark, and returns the length in the text.
func prefixed(text, mark string) (int, fit) {
	at := 0
	for i := range len(mark) {
		if at == len(text) {
			return 0, begins
		}
		c := text[at]
		wide, width := "", 1
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == 0xEF && mark[i] == '|':
			wide, c = "｜", '|'
		case c == 0xE2 && mark[i] == '_':
			wide, c = "▁", '_'
		}
		if wide != "" {
			if len(text)-at < len(wide) {
				if strings.HasPrefix(wide, text[at:]) {
					return 0, begins
				}
				return 0, differs
			}
			if text[at:at+len(wide)] != wide {
				return 0, differs
			}
			width = len(wide)
		}
		if c != mark[i] {
			return 0, differs
		}
		at += width
	}
	return at, fits
}

// maxToken is the longest token that is recognised by its shape, in bytes.
const maxToken = 64

var generic = &form{Kind: genericForm}

// match finds the form whose opening mark a text begins with, and the length of the mark. The longest one counts.
func (t *forms) match(text string, final bool) (f *form, n int, how fit) {
	how = differs
	for _, row := range t.by[text[0]] {
		m, ok := prefixed(text, row.Open)
		switch {
		case ok == begins && !final:
			return nil, 0, begins
		case ok == fits && m > n:
			f, n, how = row, m, fits
		}
	}
	if f != nil || text[0] != '<' {
		return f, n, how
	}
	return matchToken(text, final)
}

// matchToken finds a token by its shape: a name between <| and |>, without blanks.
func matchToken(text string, final bool) (*form, int, fit) {
	at, ok := prefixed(text, "<|")
	if ok == begins && !final {
		return nil, 0, begins
	}
	if ok != fits {
		return nil, 0, differs
	}
	for name := at; ; {
		if at > maxToken {
			return nil, 0, differs
		}
		if at == len(text) {
			if final {
				return nil, 0, differs
			}
			return nil, 0, begins
		}
		c := text[at]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		switch {
		case letter || at > name && (c >= '0' && c <= '9' || strings.IndexByte("_-/.:", c) >= 0):
			at++
			continue
		case at == name && c == '/':
			at++
			continue
		}
		if n, ok := prefixed(text[at:], "_"); ok != differs {
			if ok == begins {
				return undecided(final)
			}
			at += n
			continue
		}
		n, ok := prefixed(text[at:], "|>")
		switch {
		case ok == begins:
			return undecided(final)
		case ok == fits && at > name:
			return generic, at + n, fits
		default:
			return nil, 0, differs
		}
	}
}

func undecided(final bool) (*form, int, fit) {
	if final {
		return nil, 0, differs
	}
	return nil, 0, begins
}

// findMark returns where the first of some marks begins in a text, its length, and how much of the text cannot be the
// beginning of one. at is -1 if there is none.
func findMark(text string, marks []string, final bool) (at, n, safe int) {
	for i := range len(text) {
		if c := text[i]; c != '<' && c != '[' && c != '\n' {
			continue
		}
		for _, mark := range marks {
			m, ok := prefixed(text[i:], mark)
			switch {
			case ok == fits:
				return i, m, i
			case ok == begins && !final:
				return -1, 0, i
			}
		}
	}
	return -1, 0, len(text)
}

// afterBlanks returns the index of the first character that is not white space.
func afterBlanks(text string, from int) int {
	for from < len(text) && strings.IndexByte(" \t\r\n", text[from]) >= 0 {
		from++
	}
	return from
}
