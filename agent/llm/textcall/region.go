package textcall

import (
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// verdict says what a text is that begins with the opening mark of calls.
type verdict int

const (
	needsMore verdict = iota // that depends on what follows
	isText                   // it only looks like calls
	isCalls
)

// writtenCall is a call as it was found. Arguments are JSON, or values whose types only the tool's schema knows.
type writtenCall struct {
	name   string
	args   json.RawMessage
	values []value
	broken string // what stands for the arguments if they cannot be read; "" = they can
}

// value is an argument in an element or in GLM's notation.
type value struct {
	key, text string
	typed     bool // text is JSON
	plain     bool // text is a string, whatever the schema says
}

// maxHeader bounds the opening tag of an element, in bytes.
const maxHeader = 320

// vendor is what may come before the name of a tag: DSML between bars, or a prefix.
const vendor = `(?:[|｜]{1,2}DSML[|｜]{1,2}|[A-Za-z][A-Za-z0-9_-]*:)?`

var (
	elementTag = lazyregexp.New(`^<` + vendor +
		`(?:function\s*=\s*|function\(|(?:invoke|function_call|function|tool_call|tool_use|` +
		`tool)\s+name\s*=\s*)["']?([^"'<>{}()\s]+)["']?\)?[^>{(]*([>{(])`)
	elementEnd   = lazyregexp.New(`</` + vendor + `(?:function|invoke|tool|tool_use|(?:function|tool)_calls?)>`)
	elementClose = lazyregexp.New(`^</` + vendor + `(?:function|invoke|function_call|tool_call|tool_use|tool)>`)
	parameterTag = lazyregexp.New(`<` + vendor +
		`(?:parameter|arg)(?:=|\s+name\s*=\s*)["']?([^"'<>\n]+?)["']?(\s[^<>\n]*)?>`)
	parameterStart = lazyregexp.New(`^<` + vendor + `(?:parameter|arg)(?:=|\s+name\s*=)`)
	parameterEnd   = lazyregexp.New(`</` + vendor + `(?:parameter|arg)>`)
	endsInside     = lazyregexp.New(`</` + vendor + `(?:parameter|arg)>$`)
	// follows matches what may follow an element whose last parameter is not closed.
	follows = lazyregexp.New(`^</?` + vendor + `(?:tool_calls?|function_calls?|function=|invoke[ >])`)

	glmPair = lazyregexp.New(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|$)`)

	callBegin = lazyregexp.New(`<[|｜]tool[_▁]call[_▁]begin[|｜]>`)
	callEnd   = lazyregexp.New(`<[|｜]tool[_▁]call[_▁]end[|｜]>`)
	callSep   = lazyregexp.New(`<[|｜]tool(?:[_▁]call[_▁]argument[_▁]begin|[_▁]sep)[|｜]>`)
)

// region is a text that begins with the opening mark of calls, as far as it is known.
type region struct {
	form  *form
	text  string
	mark  int // length of the opening mark
	final bool
	outer []*form // the containers around the one of form

	offers func(name string) bool

	calls []writtenCall
}

// maxNested bounds containers within containers.
const maxNested = 4

// readCalls returns how much of the text belongs to the calls.
func (r *region) readCalls() (int, verdict) {
	if r.form.Kind == sectionForm {
		if len(r.form.Close) == 0 {
			return r.readMistral()
		}
		return r.readSection()
	}
	return r.readContainer()
}

// closesAt reports whether a place is a closing mark, and its length.
func (r *region) closesAt(at int) (int, fit) {
	how := differs
	for _, mark := range r.form.Close {
		switch n, ok := matchPrefix(r.text[at:], mark); {
		case ok == fits:
			return n, fits
		case ok == begins && !r.final:
			how = begins
		}
	}
	return 0, how
}

// readContainer reads calls one after the other up to the closing mark, which may be missing.
func (r *region) readContainer() (int, verdict) {
	at, end := r.mark, r.mark
	if r.form.Whole {
		at = 0
	}
	for {
		at = afterBlanks(r.text, at)
		if at == len(r.text) {
			if !r.final {
				return 0, needsMore
			}
			return r.endsAt(end)
		}
		if at > 0 {
			switch n, how := r.closesAt(at); how {
			case begins:
				return 0, needsMore
			case fits:
				if at, end = at+n, at+n; len(r.outer) > 0 {
					r.form, r.outer = r.outer[len(r.outer)-1], r.outer[:len(r.outer)-1]
					continue
				}
				return at, isCalls // a container without calls is markup too
			case differs:
			}
			n, how := r.openInner(at)
			switch {
			case how == begins:
				return 0, needsMore
			case how == fits:
				at += n
				continue
			}
		}
		if len(r.calls) > 0 && strings.IndexByte(",;", r.text[at]) >= 0 {
			at++
			continue
		}
		n, v := r.readItem(at)
		switch {
		case v == needsMore:
			return 0, needsMore
		case v == isText:
			return r.endsAt(end)
		}
		at += n
		end = at
	}
}

// openInner enters a container within a container, and returns the length of its opening mark.
func (r *region) openInner(at int) (int, fit) {
	if r.text[at] != '<' || len(r.outer) == maxNested {
		return 0, differs
	}
	f, n, how := table().matchForm(r.text[at:], r.final)
	if how != fits || f.Kind != callForm || f.Whole {
		if how == fits {
			how = differs
		}
		return 0, how
	}
	r.outer, r.form = append(r.outer, r.form), f
	return n, fits
}

// endsAt returns the verdict about calls that end without a closing mark.
func (r *region) endsAt(end int) (int, verdict) {
	if len(r.calls) == 0 {
		return 0, isText
	}
	return end, isCalls
}

// readItem reads one call, or a list of them.
func (r *region) readItem(at int) (int, verdict) {
	rest := r.text[at:]
	switch rest[0] {
	case '{', '[':
		return r.readJSON(at)
	case '<':
		if n, v := r.readNameElement(at); v != isText {
			return n, v
		}
		return r.readElement(at)
	case '`':
		return r.readFenced(at, "")
	}
	n := strings.IndexFunc(rest, func(c rune) bool { return !nameRune(c) })
	if n < 0 {
		n = len(rest)
	}
	next := afterBlanks(rest, n)
	switch {
	case n == 0 || n > maxHeader:
		return 0, isText
	case next == len(rest) && !r.final:
		return 0, needsMore
	case len(r.calls) > 0 && (next == len(rest) || rest[next] != '(' && !strings.HasPrefix(rest, "call:")):
		return 0, isText // what follows the calls
	case next == len(rest) && !r.offers(rest[:n]): // a word of a text about the mark
		return 0, isText
	case next == len(rest): // cut behind the name
		r.calls = append(r.calls, writtenCall{name: rest[:n], broken: rest})
		return next, isCalls
	case rest[next] == '{': // Gemma, or a name before its arguments
		return r.readNamed(at, strings.TrimPrefix(rest[:n], "call:"), next)
	case rest[next] == '`': // Hunyuan
		m, v := r.readFenced(at+next, strings.TrimPrefix(rest[:n], "call:"))
		return next + m, v
	case rest[next] == '(' && next == n:
		return r.readPython(at, n)
	default:
		return r.readGLM(at, rest[:n], next)
	}
}

func nameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-.:/", c)
}

// untilClose returns the rest of the text from a place on, up to the first closing mark.
func (r *region) untilClose(at int) int {
	if found, _, _ := findMark(r.text[at:], r.form.Close, true); found >= 0 {
		return found
	}
	return len(r.text) - at
}

// readJSON reads an object or a list of them.
func (r *region) readJSON(at int) (int, verdict) {
	n := valueEnd(r.text[at:])
	if n < 0 {
		if !r.final {
			return 0, needsMore
		}
		n = r.untilClose(at)
	}
	body := r.text[at : at+n]
	if calls, ok := readObjects(body); ok {
		r.calls = append(r.calls, calls...)
	} else if calls, ok := readPythonList(body); ok {
		r.calls = append(r.calls, calls...)
	} else {
		r.calls = append(r.calls, writtenCall{name: namedIn(body), broken: body})
	}
	return n, isCalls
}

// readFenced reads an object in a block of code: the arguments of a tool, or a call if there is no name.
func (r *region) readFenced(at int, name string) (int, verdict) {
	rest := r.text[at:]
	const ticks = "```"
	if !strings.HasPrefix(rest, ticks) {
		if strings.HasPrefix(ticks, rest) && !r.final {
			return 0, needsMore
		}
		return 0, isText
	}
	open := len(ticks)
	for open < len(rest) && open < maxToken && rest[open] != '\n' && rest[open] != '{' && rest[open] != '[' {
		open++
	}
	open = afterBlanks(rest, open)
	switch {
	case open == len(rest) && !r.final:
		return 0, needsMore
	case open == len(rest), rest[open] != '{' && (rest[open] != '[' || name != ""):
		return 0, isText
	}
	var n int
	var v verdict
	if name == "" {
		n, v = r.readJSON(at + open)
	} else {
		n, v = r.readNamed(at+open, name, 0)
	}
	if v != isCalls {
		return 0, v
	}
	end := open + n
	close := afterBlanks(rest, end)
	switch {
	case strings.HasPrefix(rest[close:], ticks):
		end = close + len(ticks)
	case strings.HasPrefix(ticks, rest[close:]) && !r.final:
		r.calls = r.calls[:0] // read again with what follows
		return 0, needsMore
	}
	return end, isCalls
}

// The elements with the name of a tool and with its arguments, where each has its own.
var (
	nameElements     = []string{"<name>", "<tool_name>", "<function_name>", "<tool>", "<function>"}
	argumentElements = []string{
		"<arguments>", "<parameters>", "<args>", "<input>", "<params>", "<tool_input>", "<tool_args>",
	}
)

// openingOf returns which of some opening tags a text begins with, and its length.
func openingOf(text string, tags []string, final bool) (tag string, n int, how fit) {
	how = differs
	for _, t := range tags {
		switch n, ok := matchPrefix(text, t); {
		case ok == fits:
			return t, n, fits
		case ok == begins && !final:
			how = begins
		}
	}
	return "", 0, how
}

// readNameElement reads <name>NAME</name> and what follows it: <arguments> with an object or with an element for each
// argument, or these without it.
func (r *region) readNameElement(at int) (int, verdict) {
	rest := r.text[at:]
	tag, open, how := openingOf(rest, nameElements, r.final)
	if how != fits {
		if how == begins {
			return 0, needsMore
		}
		return 0, isText
	}
	end, n, _ := findMark(rest[open:min(len(rest), open+maxHeader)], []string{"</" + tag[1:]}, r.final)
	if end < 0 {
		if !r.final && len(rest) < open+maxHeader {
			return 0, needsMore
		}
		return 0, isText
	}
	name := strings.TrimSpace(rest[open : open+end])
	if name == "" || strings.ContainsAny(name, " \n<>{") {
		return 0, isText
	}
	from := open + end + n
	next := afterBlanks(rest, from)
	switch {
	case next == len(rest) && !r.final:
		return 0, needsMore
	case next == len(rest):
		r.calls = append(r.calls, writtenCall{name: name, broken: rest})
		return len(rest), isCalls
	case rest[next] == '{':
		return r.readNamed(at, name, next)
	case rest[next] == '`':
		m, v := r.readFenced(at+next, name)
		return next + m, v
	}
	inner, m, how := openingOf(rest[next:], argumentElements, r.final)
	switch how {
	case begins:
		return 0, needsMore
	case fits:
		return r.readArguments(at, name, next+m, "</"+inner[1:])
	case differs:
	}
	// the arguments are elements of their own, up to the end of the container
	stop, _, _ := findMark(rest[next:], r.form.Close, r.final)
	if stop < 0 && !r.final {
		return 0, needsMore
	}
	body := rest[next:]
	if stop >= 0 {
		body = body[:stop]
	}
	c := writtenCall{name: name, args: json.RawMessage("{}")}
	if values, ok := elementValues(body, nil); ok {
		c = writtenCall{name: name, values: values}
	} else if strings.TrimSpace(body) != "" {
		c.broken = body
	}
	r.calls = append(r.calls, c)
	return next + len(body), isCalls
}

// readArguments reads what is between the tags of arguments.
func (r *region) readArguments(at int, name string, open int, closing string) (int, verdict) {
	rest := r.text[at:]
	start := afterBlanks(rest, open)
	from := start
	if start < len(rest) && rest[start] == '{' {
		if n := valueEnd(rest[start:]); n >= 0 {
			from = start + n
		} else if !r.final {
			return 0, needsMore
		}
	}
	end, n, _ := findMark(rest[min(from, len(rest)):], []string{closing}, r.final)
	if end < 0 {
		if !r.final {
			return 0, needsMore
		}
		body := rest[open:]
		if from > start { // only the closing tag is missing
			r.calls = append(r.calls, withArguments(name, rest[start:from]))
			return from, isCalls
		}
		r.calls = append(r.calls, writtenCall{name: name, broken: name + body})
		return len(rest), isCalls
	}
	body := strings.TrimSpace(rest[open : from+end])
	c := writtenCall{name: name}
	switch values, ok := elementValues(body, nil); {
	case ok:
		c.values = values
	case strings.HasPrefix(body, "<"):
		if c.values = readParameters(body); c.values == nil {
			c.broken = body
		}
	default:
		c = withArguments(name, body)
	}
	r.calls = append(r.calls, c)
	return from + end + n, isCalls
}

// elementValues reads <KEY>VALUE</KEY>, one after the other, up to the end of a text. A value may
// contain tags, also its own closing one unless another element or the end follows that. known reports
// whether a key may occur; nil = all may.
func elementValues(text string, known func(key string) bool) ([]value, bool) {
	var list []value
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		if text == "" {
			return list, len(list) > 0
		}
		key, open := elementKey(text)
		if open == 0 || known != nil && !known(key) || len(list) == maxCalls {
			return nil, false
		}
		closing, body := "</"+key+">", text[open:]
		end := -1
		for from := 0; ; {
			at := strings.Index(body[from:], closing)
			if at < 0 {
				break
			}
			if end < 0 {
				end = from + at
			}
			rest := strings.TrimLeft(body[from+at+len(closing):], " \t\r\n")
			if next, n := elementKey(rest); rest == "" || n > 0 && (known == nil || known(next)) {
				end = from + at
				break
			}
			from += at + len(closing)
		}
		if end < 0 {
			return nil, false
		}
		v := body[:end]
		if strings.HasPrefix(v, "\n") && strings.HasSuffix(v, "\n") && len(v) > 1 { // the tags have lines of their own
			v = v[1 : len(v)-1]
		}
		list = append(list, value{key: key, text: v})
		text = body[end+len(closing):]
	}
}

// elementKey returns the name in the opening tag that a text begins with, and the length of the tag; 0 = there is none.
func elementKey(text string) (string, int) {
	if text == "" || text[0] != '<' {
		return "", 0
	}
	n := nameLength(text[1:])
	if n == 0 || n > maxToken || 1+n == len(text) || text[1+n] != '>' {
		return "", 0
	}
	return text[1 : 1+n], n + 2
}

// readNamed reads a name with its arguments behind it.
func (r *region) readNamed(at int, name string, open int) (int, verdict) {
	n := valueEnd(r.text[at+open:])
	if n < 0 {
		if !r.final {
			return 0, needsMore
		}
		n = r.untilClose(at + open)
	}
	r.calls = append(r.calls, withArguments(name, r.text[at+open:at+open+n]))
	return open + n, isCalls
}

// withArguments returns a call whose arguments are one object.
func withArguments(name, text string) writtenCall {
	text = strings.TrimSpace(text)
	if text == "" {
		return writtenCall{name: name, args: json.RawMessage("{}")}
	}
	if json.Valid([]byte(text)) {
		return writtenCall{name: name, args: json.RawMessage(text)}
	}
	args, n, err := readValue(text, true)
	if err != nil || strings.TrimSpace(text[n:]) != "" {
		return writtenCall{name: name, broken: text}
	}
	return writtenCall{name: name, args: args}
}

// readGLM reads a name with pairs of <arg_key> and <arg_value>, or alone before the closing mark.
func (r *region) readGLM(at int, name string, next int) (int, verdict) {
	body := r.text[at+next:]
	switch _, how := r.closesAt(at + next); how {
	case differs:
	case begins:
		return 0, needsMore
	case fits: // read by the caller
		r.calls = append(r.calls, writtenCall{name: name, args: json.RawMessage("{}")})
		return next, isCalls
	}
	switch _, how := matchPrefix(body, "<arg_key>"); {
	case how == begins && !r.final:
		return 0, needsMore
	case how != fits:
		return 0, isText
	}
	end, first := -1, -1
	for from := 0; end < 0; {
		found, n, _ := findMark(body[from:], r.form.Close, r.final)
		if found < 0 {
			break
		}
		if first < 0 {
			first = from + found
		}
		if strings.HasSuffix(strings.TrimRight(body[:from+found], " \t\r\n"), "</arg_value>") {
			end = from + found
		}
		from += found + n
	}
	whole := end >= 0
	if !whole {
		if !r.final {
			return 0, needsMore
		}
		end = len(body)
		if first >= 0 {
			end = first
		}
		whole = first >= 0 || strings.HasSuffix(strings.TrimSpace(body), "</arg_value>")
	}
	c := writtenCall{name: name}
	if !whole {
		c.broken = body[:end]
	}
	for _, pair := range glmPair().FindAllStringSubmatch(body[:end], -1) {
		c.values = append(c.values, value{key: strings.TrimSpace(pair[1]), text: pair[2]})
	}
	r.calls = append(r.calls, c)
	return next + end, isCalls
}

// readElement reads <function=NAME>…</function> or <invoke name="NAME">…</invoke>.
func (r *region) readElement(at int) (int, verdict) {
	rest := r.text[at:]
	head := elementTag().FindStringSubmatchIndex(rest[:min(len(rest), maxHeader)])
	if head == nil {
		if len(rest) < maxHeader && !strings.ContainsAny(rest, ">{") && !r.final {
			return 0, needsMore
		}
		return 0, isText
	}
	name, open := rest[head[2]:head[3]], head[1]
	if c := rest[open-1]; c == '{' || c == '(' {
		open--
	}
	start := afterBlanks(rest, open)
	switch {
	case start == len(rest) && !r.final:
		return 0, needsMore
	case start < len(rest) && (rest[start] == '{' || rest[start] == '('):
		return r.readElementJSON(at, name, start)
	}
	body, n, v := r.elementBody(rest[open:])
	if v != isCalls {
		return 0, v
	}
	c := writtenCall{name: name, values: readParameters(body)}
	if n < 0 { // it does not end
		n = len(body)
		if !endsInParameter(strings.TrimSpace(body)) {
			c.broken = rest[:open+n]
		}
	}
	r.calls = append(r.calls, c)
	return open + n, isCalls
}

// readElementJSON reads an element whose content is an object.
func (r *region) readElementJSON(at int, name string, start int) (int, verdict) {
	rest := r.text[at:]
	n := valueEnd(rest[start:])
	if n < 0 {
		if !r.final {
			return 0, needsMore
		}
		n = len(rest) - start
	}
	text := rest[start : start+n]
	if strings.HasPrefix(text, "(") {
		text = strings.TrimSuffix(text[1:], ")")
	}
	end := start + n
	next := afterBlanks(rest, end)
	if next < len(rest) && (rest[next] == '>' || rest[next] == ')') {
		next = afterBlanks(rest, next+1)
	}
	if next == len(rest) && !r.final {
		return 0, needsMore
	}
	tail := rest[next:]
	if closed := elementClose().FindString(tail); closed != "" {
		end = next + len(closed)
	} else if strings.HasPrefix(tail, "</") && len(tail) < maxToken && strings.IndexByte(tail, '>') < 0 && !r.final {
		return 0, needsMore
	} else if tail == "<" && !r.final {
		return 0, needsMore
	}
	r.calls = append(r.calls, withArguments(name, text))
	return end, isCalls
}

// elementBody finds the end of an element in the text after its opening tag. The closing tag may occur in a value, so
// one behind a closed parameter is preferred. n counts the closing tag; -1 = the element does not end.
func (r *region) elementBody(text string) (body string, n int, v verdict) {
	first := -1
	var firstEnd int
	for _, place := range elementEnd().FindAllStringIndex(text, -1) {
		before := strings.TrimRight(text[:place[0]], " \t\r\n")
		own := elementClose().MatchString(text[place[0]:place[1]])
		end := place[1]
		if !own { // the container's, left to it
			end = place[0]
		}
		if before == "" || endsInParameter(before) {
			return text[:place[0]], end, isCalls
		}
		if first < 0 {
			first, firstEnd = place[0], end
		}
		if !own {
			continue
		}
		rest := text[afterBlanks(text, place[1]):]
		switch {
		case rest == "" && r.final, follows().MatchString(rest):
			return text[:place[0]], end, isCalls
		case !r.final &&
			(rest == "" || rest[0] == '<' && len(rest) < maxToken && !strings.ContainsAny(rest[1:], "<> \n")):
			return "", 0, needsMore
		}
	}
	switch {
	case !r.final:
		return "", 0, needsMore
	case first >= 0:
		return text[:first], firstEnd, isCalls
	default:
		return text, -1, isCalls
	}
}

// endsInParameter reports whether a text ends with the closing tag of a parameter.
func endsInParameter(text string) bool {
	return endsInside().MatchString(text[max(0, len(text)-maxToken):])
}

// readParameters reads the values of an element. A value ends at its closing tag if that is followed by another
// parameter or by nothing, or, if it has none, before the next parameter at the beginning of a line.
func readParameters(body string) []value {
	var list []value
	for {
		head := parameterTag().FindStringSubmatchIndex(body)
		if head == nil {
			return list
		}
		v := value{key: strings.TrimSpace(body[head[2]:head[3]])}
		if head[4] >= 0 {
			attributes := body[head[4]:head[5]]
			v.plain = strings.Contains(attributes, `string="true"`)
			v.typed = strings.Contains(attributes, `string="false"`)
		}
		body = body[head[1]:]
		end, next := parameterBounds(body)
		v.text = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(
			strings.TrimPrefix(body[:end], "\r"), "\n"), "\n"), "\r")
		list = append(list, v)
		body = body[next:]
	}
}

// parameterBounds returns where a value ends, and where the next parameter may begin.
func parameterBounds(body string) (end, next int) {
	ends := parameterEnd().FindAllStringIndex(body, -1)
	if other := parameterTag().FindStringIndex(body); other != nil {
		lineStart := strings.HasSuffix(strings.TrimRight(body[:other[0]], " \t"), "\n")
		if lineStart && (len(ends) == 0 || ends[0][0] > other[0]) {
			return other[0], other[0]
		}
	}
	for _, place := range ends {
		rest := body[afterBlanks(body, place[1]):]
		if rest == "" || parameterStart().MatchString(rest) {
			return place[0], place[1]
		}
	}
	if len(ends) > 0 {
		return ends[0][0], ends[0][1]
	}
	return len(body), len(body)
}

// readPython reads NAME(key=value, …).
func (r *region) readPython(at, open int) (int, verdict) {
	rest := r.text[at:]
	n := valueEnd(rest[open:])
	if n < 0 {
		if !r.final {
			return 0, needsMore
		}
		return 0, isText
	}
	r.calls = append(r.calls, pythonCall(rest[:open], rest[open:open+n]))
	return open + n, isCalls
}

// pythonCall returns a call with keyword arguments in parentheses.
func pythonCall(name, parentheses string) writtenCall {
	c := writtenCall{name: strings.TrimSuffix(name, ".call"), broken: parentheses}
	p := &literal{text: parentheses[1 : len(parentheses)-1]}
	var out strings.Builder
	out.WriteByte('{')
	for n := 0; p.nextByte() != 0; n++ {
		if n > 0 {
			if p.nextByte() != ',' {
				return c
			}
			p.at++
			if p.nextByte() == 0 {
				break
			}
			out.WriteByte(',')
		}
		pair, err := p.readKeyword()
		if err != nil {
			return c
		}
		out.Write(pair)
	}
	out.WriteByte('}')
	c.args, c.broken = json.RawMessage(out.String()), ""
	return c
}

// readPythonList reads [NAME(…), NAME(…)].
func readPythonList(text string) ([]writtenCall, bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return nil, false
	}
	var calls []writtenCall
	for {
		inner = strings.TrimLeft(inner, " \t\r\n,")
		if inner == "" {
			return calls, len(calls) > 0
		}
		open := nameLength(inner)
		if open == 0 || open == len(inner) || inner[open] != '(' {
			return nil, false
		}
		n := valueEnd(inner[open:])
		if n < 0 || len(calls) == maxCalls {
			return nil, false
		}
		calls = append(calls, pythonCall(inner[:open], inner[open:open+n]))
		inner = inner[open+n:]
	}
}

// readSection reads the calls between control tokens of DeepSeek and Kimi.
func (r *region) readSection() (int, verdict) {
	found, n, _ := findMark(r.text[r.mark:], r.form.Close, r.final)
	end, body := len(r.text), r.text
	switch {
	case found >= 0:
		end, body = r.mark+found+n, r.text[:r.mark+found]
	case !r.final:
		return 0, needsMore
	}
	places := callBegin().FindAllStringIndex(body, -1)
	for i, place := range places {
		if i == maxCalls {
			break
		}
		item := body[place[1]:]
		if i+1 < len(places) {
			item = body[place[1]:places[i+1][0]]
		}
		if stop := callEnd().FindStringIndex(item); stop != nil {
			item = item[:stop[0]]
		}
		r.calls = append(r.calls, sectionCall(item))
	}
	return end, isCalls
}

// sectionCall reads "functions.NAME:0<|…argument_begin|>{…}", "NAME<|tool_sep|>{…}", or "function<|tool_sep|>NAME" with
// the arguments in a block of code.
func sectionCall(item string) writtenCall {
	place := callSep().FindStringIndex(item)
	if place == nil {
		name := strings.TrimSpace(item)
		if open := strings.IndexByte(item, '{'); open > 0 {
			return withArguments(strings.TrimSpace(item[:open]), item[open:])
		}
		return writtenCall{name: name, broken: item}
	}
	name, args := strings.TrimSpace(item[:place[0]]), strings.TrimSpace(item[place[1]:])
	if line, block, ok := strings.Cut(args, "\n"); ok && name == "function" {
		name, args = strings.TrimSpace(line), strings.TrimSpace(block)
	}
	if strings.HasPrefix(args, "```") {
		_, args, _ = strings.Cut(args, "\n")
		args = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(args), "```"))
	}
	return withArguments(name, args)
}

// readMistral reads the calls after [TOOL_CALLS], which nothing closes.
func (r *region) readMistral() (int, verdict) {
	at := r.mark
	for {
		start := afterBlanks(r.text, at)
		rest := r.text[start:]
		if rest == "" && !r.final {
			return 0, needsMore
		}
		if strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "{") {
			n, v := r.readJSON(start)
			return start + n, v
		}
		n := strings.IndexFunc(rest, func(c rune) bool { return !nameRune(c) })
		if n < 0 && !r.final && len(rest) < maxHeader {
			return 0, needsMore
		}
		if n <= 0 {
			return r.endsAt(at)
		}
		open, v := mistralArguments(rest, n, r.final)
		switch {
		case v == needsMore:
			return 0, needsMore
		case v == isText:
			return r.endsAt(at)
		}
		m, v := r.readNamed(start, rest[:n], open)
		if v == needsMore {
			return 0, needsMore
		}
		at = start + m
		next := afterBlanks(r.text, at)
		if next == len(r.text) && !r.final {
			return 0, needsMore
		}
		switch again, how := matchPrefix(r.text[next:], r.form.Open); {
		case how == begins && !r.final:
			return 0, needsMore
		case how == fits && len(r.calls) < maxCalls:
			at = next + again
		default:
			return at, isCalls
		}
	}
}

// mistralArguments finds the arguments behind a name: at once, or behind [ARGS], which [CALL_ID] may precede.
func mistralArguments(rest string, at int, final bool) (int, verdict) {
	at = afterBlanks(rest, at)
	if _, how := matchPrefix(rest[at:], "[call_id]"); how == fits {
		n := strings.Index(rest[at+1:], "[")
		if n < 0 {
			return 0, unlessFinal(final)
		}
		at += 1 + n
	} else if how == begins && !final {
		return 0, needsMore
	}
	if n, how := matchPrefix(rest[at:], "[args]"); how == fits {
		at += n
	} else if how == begins && !final {
		return 0, needsMore
	}
	at = afterBlanks(rest, at)
	switch {
	case at == len(rest):
		return 0, unlessFinal(final)
	case rest[at] == '{':
		return at, isCalls
	default:
		return 0, isText
	}
}

func unlessFinal(final bool) verdict {
	if final {
		return isText
	}
	return needsMore
}
