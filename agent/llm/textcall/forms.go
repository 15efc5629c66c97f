package textcall

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"
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

	thoughtLabel = "thought_label"
	callLabel    = "call_label"
	inputLabel   = "input_label"
	resultLabel  = "result_label"
	answerLabel  = "answer_label"

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
	// Strict: it means calls only at the beginning of a line, and if all tools in it were offered; else it is text.
	Strict bool `json:"strict"`

	stem string // Open without its last character, if it is a tag that may have attributes
}

// forms are the rows by the first byte of their opening mark. Bare forms are apart, because any text may contain them.
type forms struct {
	by      [256][]*form
	bare    []*form
	labels  []*form
	opened  []string  // all opening marks of thoughts
	closed  []string  // all closers of thoughts
	special [256]bool // the bytes at which text may be more than text
	capital [256]bool // the bytes with which labels begin
	second  [256]bool // the bytes that may follow one of them that is no ASCII
}

//go:embed forms.json
var rows []byte

// table reads the rows once. They are part of the program; a test reads them too, so that a mistake in them is found.
var table = sync.OnceValue(func() *forms {
	var list []*form
	if json.Unmarshal(rows, &list) != nil {
		return &forms{}
	}
	return indexForms(list)
})

// indexForms prepares rows for matching.
func indexForms(list []*form) *forms {
	all := &forms{}
	all.special['\n'] = true
	seen := map[string]bool{}
	for _, f := range list {
		f.Open = foldMark(f.Open)
		for i := range f.Close {
			f.Close[i] = foldMark(f.Close[i])
		}
		if (f.Kind == thoughtForm || f.Kind == callForm) && isTag(f.Open) {
			f.stem = f.Open[:len(f.Open)-1]
		}
		switch {
		case f.Kind == "" || f.Open == "":
		case strings.HasSuffix(f.Kind, "_label"):
			all.labels = append(all.labels, f)
			all.capital[f.Open[0]-'a'+'A'], all.capital['*'] = true, true
		case f.Kind == bareForm:
			all.bare = append(all.bare, f)
		default:
			all.addForm(f)
		}
		if f.Kind != thoughtForm {
			continue
		}
		all.opened = append(all.opened, f.Open)
		if f.stem != "" {
			all.addForm(&form{Kind: tokenForm, Open: f.stem + "/>"})
		}
		for _, mark := range f.Close {
			// <channel|> ends a thought of Gemma's only if one has begun.
			if seen[mark] || mark == "<channel|>" {
				continue
			}
			seen[mark] = true
			all.closed = append(all.closed, mark)
			all.addForm(&form{Kind: closeForm, Open: mark, Close: f.Close})
		}
	}
	return all
}

// addForm makes a form known by its opening mark.
func (t *forms) addForm(f *form) {
	first := f.Open[0]
	t.by[first] = append(t.by[first], f)
	t.special[first] = true
	if first >= utf8.RuneSelf && len(f.Open) > 1 {
		t.second[f.Open[1]] = true
	}
}

// mayBegin reports whether a mark may begin at a place of a text.
func (t *forms) mayBegin(text string, at int) bool {
	c := text[at]
	return t.special[c] && (c < utf8.RuneSelf || at+1 == len(text) || t.second[text[at+1]])
}

// isTag reports whether a mark is the opening tag of an element.
func isTag(mark string) bool {
	return len(mark) > 2 && mark[0] == '<' && mark[len(mark)-1] == '>' &&
		(mark[1] == '*' || mark[1] >= 'a' && mark[1] <= 'z')
}

// foldMark brings a text into the form in which marks are compared: lower case, plain bars and underscores.
func foldMark(text string) string {
	return strings.ToLower(strings.NewReplacer("｜", "|", "▁", "_").Replace(text))
}

// fit says how a text fits a mark.
type fit int

const (
	differs fit = iota
	fits
	begins // it may fit once there is more of it
)

// maxSpace is how many blanks there may be in a tag where none belong.
const maxSpace = 4

// matchPrefix compares the beginning of a text with a folded mark, and returns the length in the text. A star in the
// mark stands for the name of a namespace. Models write a blank behind the bracket that opens a tag, or before the one
// that closes it; that changes nothing.
func matchPrefix(text, mark string) (int, fit) {
	at := 0
	for i := range len(mark) {
		if at == len(text) {
			return 0, begins
		}
		if mark[i] == '*' {
			n := namespaceLength(text[at:])
			switch {
			case n == 0 || n > maxNamespace:
				return 0, differs
			case at+n == len(text):
				return 0, begins
			}
			at += n
			continue
		}
		c := text[at]
		if (c == ' ' || c == '\t') && blankMayStand(mark, i) {
			for n := 0; at < len(text) && (text[at] == ' ' || text[at] == '\t'); n++ {
				if n == maxSpace {
					return 0, differs
				}
				at++
			}
			if at == len(text) {
				return 0, begins
			}
			c = text[at]
		}
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

// blankMayStand reports whether a blank before a byte of a mark means nothing: in tags, next to a bracket or a slash.
func blankMayStand(mark string, i int) bool {
	if mark[0] != '<' || i == 0 {
		return false
	}
	letter := mark[i] >= 'a' && mark[i] <= 'z' || mark[i] == '*'
	switch before := mark[i-1]; {
	case before == '<':
		return letter || mark[i] == '/'
	case before == '/':
		return letter
	default:
		return i == len(mark)-1 && mark[i] == '>' && before != '|' || mark[i] == '/' && i == len(mark)-2
	}
}

// maxNamespace is the longest name of a namespace, in bytes.
const maxNamespace = 24

// namespaceLength returns how much of a text is the name of a namespace.
func namespaceLength(text string) int {
	n := 0
	for n < len(text) && n <= maxNamespace {
		c := text[n]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if n == 0 || (c < '0' || c > '9') && c != '_' && c != '-' {
				break
			}
		}
		n++
	}
	return n
}

// tagWithAttributes compares the beginning of a text with a tag that has attributes, such as <thinking type="x">.
func tagWithAttributes(text, stem string) (int, fit) {
	at, how := matchPrefix(text, stem)
	if how != fits {
		return 0, how
	}
	named := false
	for start := at; ; {
		next := at
		for next < len(text) && (text[next] == ' ' || text[next] == '\t' || text[next] == '\n') {
			next++
		}
		switch {
		case next-start > maxHeader:
			return 0, differs
		case next == len(text):
			return 0, begins
		case text[next] == '>':
			if named {
				return next + 1, fits
			}
			return 0, differs
		case next == at:
			return 0, differs
		}
		n, ok := attributeLength(text[next:])
		if ok != fits {
			return 0, ok
		}
		at, named = next+n, true
	}
}

// attributeLength measures NAME=VALUE, with quotes or without.
func attributeLength(text string) (int, fit) {
	n := namespaceLength(text)
	switch {
	case n == 0 || n > maxNamespace:
		return 0, differs
	case n == len(text):
		return 0, begins
	case text[n] != '=' || text[:n] == "name": // that is a call, whose tag is a mark of its own
		return 0, differs
	}
	if n++; n == len(text) {
		return 0, begins
	}
	if quote := text[n]; quote == '"' || quote == '\'' {
		for end := n + 1; end < len(text) && end-n <= maxHeader; end++ {
			switch text[end] {
			case quote:
				return end + 1, fits
			case '<', '>', '\n':
				return 0, differs
			}
		}
		if len(text)-n > maxHeader {
			return 0, differs
		}
		return 0, begins
	}
	start := n
	for n < len(text) && n-start <= maxHeader && strings.IndexByte(" \t\n<>\"'=`", text[n]) < 0 {
		n++
	}
	switch {
	case n == len(text):
		return 0, begins
	case n == start || n-start > maxHeader:
		return 0, differs
	}
	return n, fits
}

// maxToken is the longest token that is recognised by its shape, in bytes.
const maxToken = 64

var generic = &form{Kind: genericForm}

// matchForm finds the form whose opening mark a text begins with, and the length of the mark. The longest one counts.
func (t *forms) matchForm(text string, final bool) (f *form, n int, how fit) {
	how = differs
	second := secondLetter(text)
	for _, row := range t.by[text[0]] {
		if second != 0 && len(row.Open) > 1 && row.Open[1] >= 'a' && row.Open[1] <= 'z' && row.Open[1] != second {
			continue // most rows end here
		}
		m, ok := matchPrefix(text, row.Open)
		if ok == differs && row.stem != "" {
			m, ok = tagWithAttributes(text, row.stem)
		}
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

// secondLetter returns the byte of a text that is compared with the second one of a mark, in
// lower case; 0 = not known yet.
func secondLetter(text string) byte {
	at := 1
	for at < len(text) && at <= maxSpace && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	if at == len(text) {
		return 0
	}
	if c := text[at]; c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return text[at]
}

// matchToken finds a token by its shape: a name between <| and |>, without blanks.
func matchToken(text string, final bool) (*form, int, fit) {
	at, ok := matchPrefix(text, "<|")
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
		if n, ok := matchPrefix(text[at:], "_"); ok != differs {
			if ok == begins {
				return undecidedMatch(final)
			}
			at += n
			continue
		}
		n, ok := matchPrefix(text[at:], "|>")
		switch {
		case ok == begins:
			return undecidedMatch(final)
		case ok == fits && at > name:
			return generic, at + n, fits
		default:
			return nil, 0, differs
		}
	}
}

func undecidedMatch(final bool) (*form, int, fit) {
	if final {
		return nil, 0, differs
	}
	return nil, 0, begins
}

// findMark returns where the first of some marks begins in a text, its length, and how much of the text cannot be the
// beginning of one. at is -1 if there is none.
func findMark(text string, marks []string, final bool) (at, n, safe int) {
	t := table()
	for i := range len(text) {
		if !t.mayBegin(text, i) {
			continue
		}
		for _, mark := range marks {
			m, ok := matchPrefix(text[i:], mark)
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
