package textcall

import (
	"encoding/json"
	"regexp"
	"strings"
)

// verdict says what a text is that begins with the opening mark of calls.
type verdict int

const (
	needsMore verdict = iota // that depends on what follows
	isText                   // it only looks like calls
	isCalls
)

// written is a call as it was found. Arguments are JSON, or values whose types only the tool's schema knows.
type written struct {
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

// vendor is what may stand before the name of a tag: DSML between bars, or a prefix.
const vendor = `(?:[|｜]{1,2}DSML[|｜]{1,2}|[A-Za-z]+:)?`

var (
	elementTag = regexp.MustCompile(`^<` + vendor +
		`(?:function\s*=\s*|function\(|(?:invoke|function_call|tool)\s+name\s*=\s*)["']?([^"'<>{}()\s]+)["']?\)?[^>{(]*([>{(])`)
	elementEnd     = regexp.MustCompile(`</` + vendor + `(?:function|invoke|(?:function|tool)_calls?)>`)
	elementClose   = regexp.MustCompile(`^</` + vendor + `(?:function|invoke|function_call|tool)>`)
	parameterTag   = regexp.MustCompile(`<` + vendor + `(?:parameter|arg)(?:=|\s+name\s*=\s*)["']?([^"'<>\n]+?)["']?(\s[^<>\n]*)?>`)
	parameterStart = regexp.MustCompile(`^<` + vendor + `(?:parameter|arg)(?:=|\s+name\s*=)`)
	parameterEnd   = regexp.MustCompile(`</` + vendor + `(?:parameter|arg)>`)
	endsInside     = regexp.MustCompile(`</` + vendor + `(?:parameter|arg)>$`)
	// follows matches what may follow an element whose last parameter is not closed.
	follows = regexp.MustCompile(`^</?` + vendor + `(?:tool_calls?|function_calls?|function=|invoke[ >])`)

	glmPair = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|$)`)

	callBegin = regexp.MustCompile(`<[|｜]tool[_▁]call[_▁]begin[|｜]>`)
	callEnd   = regexp.MustCompile(`<[|｜]tool[_▁]call[_▁]end[|｜]>`)
	callSep   = regexp.MustCompile(`<[|｜]tool(?:[_▁]call[_▁]argument[_▁]begin|[_▁]sep)[|｜]>`)
)

// region is a text that begins with the opening mark of calls, as far as it is known.
type region struct {
	form  *form
	text  string
	mark  int // length of the opening mark
	final bool

	calls []written
}

// read returns how much of the text belongs to the calls.
func (r *region) read() (int, verdict) {
	if r.form.Kind == sectionForm {
		if len(r.form.Close) == 0 {
			return r.readMistral()
		}
		return r.readSection()
	}
	return r.readContainer()
}

// closes reports whether a place is a closing mark, and its length.
func (r *region) closes(at int) (int, fit) {
	how := differs
	for _, mark := range r.form.Close {
		switch n, ok := prefixed(r.text[at:], mark); {
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
			return r.ends(end)
		}
		if at > 0 {
			switch n, how := r.closes(at); how {
			case begins:
				return 0, needsMore
			case fits:
				return at + n, isCalls // a container without calls is markup too
			case differs:
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
			return r.ends(end)
		}
		at += n
		end = at
	}
}

// ends returns the verdict about calls that end without a closing mark.
func (r *region) ends(end int) (int, verdict) {
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
		return r.readElement(at)
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
	case next == len(rest): // cut behind the name
		r.calls = append(r.calls, written{name: rest[:n], broken: rest})
		return next, isCalls
	case rest[next] == '{': // Gemma, or a name before its arguments
		return r.readNamed(at, strings.TrimPrefix(rest[:n], "call:"), next)
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
		r.calls = append(r.calls, written{name: namedIn(body), broken: body})
	}
	return n, isCalls
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
func withArguments(name, text string) written {
	text = strings.TrimSpace(text)
	if text == "" {
		return written{name: name, args: json.RawMessage("{}")}
	}
	if json.Valid([]byte(text)) {
		return written{name: name, args: json.RawMessage(text)}
	}
	args, n, err := readValue(text, true)
	if err != nil || strings.TrimSpace(text[n:]) != "" {
		return written{name: name, broken: text}
	}
	return written{name: name, args: args}
}

// readGLM reads a name with pairs of <arg_key> and <arg_value>, or alone before the closing mark.
func (r *region) readGLM(at int, name string, next int) (int, verdict) {
	body := r.text[at+next:]
	switch _, how := r.closes(at + next); how {
	case differs:
	case begins:
		return 0, needsMore
	case fits: // read by the caller
		r.calls = append(r.calls, written{name: name, args: json.RawMessage("{}")})
		return next, isCalls
	}
	switch _, how := prefixed(body, "<arg_key>"); {
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
	c := written{name: name}
	if !whole {
		c.broken = body[:end]
	}
	for _, pair := range glmPair.FindAllStringSubmatch(body[:end], -1) {
		c.values = append(c.values, value{key: strings.TrimSpace(pair[1]), text: pair[2]})
	}
	r.calls = append(r.calls, c)
	return next + end, isCalls
}

// readElement reads <function=NAME>…</function> or <invoke name="NAME">…</invoke>.
func (r *region) readElement(at int) (int, verdict) {
	rest := r.text[at:]
	head := elementTag.FindStringSubmatchIndex(rest[:min(len(rest), maxHeader)])
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
	c := written{name: name, values: parameters(body)}
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
	if closed := elementClose.FindString(tail); closed != "" {
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
	for _, place := range elementEnd.FindAllStringIndex(text, -1) {
		before := strings.TrimRight(text[:place[0]], " \t\r\n")
		own := elementClose.MatchString(text[place[0]:place[1]])
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
		case rest == "" && r.final, follows.MatchString(rest):
			return text[:place[0]], end, isCalls
		case !r.final && (rest == "" || rest[0] == '<' && len(rest) < maxToken && !strings.ContainsAny(rest[1:], "<> \n")):
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
	return endsInside.MatchString(text[max(0, len(text)-maxToken):])
}

// parameters reads the values of an element. A value ends at its closing tag if that is followed by another parameter or
// by nothing, or, if it has none, before the next parameter at the beginning of a line.
func parameters(body string) []value {
	var list []value
	for {
		head := parameterTag.FindStringSubmatchIndex(body)
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
	ends := parameterEnd.FindAllStringIndex(body, -1)
	if other := parameterTag.FindStringIndex(body); other != nil {
		lineStart := strings.HasSuffix(strings.TrimRight(body[:other[0]], " \t"), "\n")
		if lineStart && (len(ends) == 0 || ends[0][0] > other[0]) {
			return other[0], other[0]
		}
	}
	for _, place := range ends {
		rest := body[afterBlanks(body, place[1]):]
		if rest == "" || parameterStart.MatchString(rest) {
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
func pythonCall(name, parentheses string) written {
	c := written{name: strings.TrimSuffix(name, ".call"), broken: parentheses}
	p := &literal{text: parentheses[1 : len(parentheses)-1]}
	var out strings.Builder
	out.WriteByte('{')
	for n := 0; p.next() != 0; n++ {
		if n > 0 {
			if p.next() != ',' {
				return c
			}
			p.at++
			if p.next() == 0 {
				break
			}
			out.WriteByte(',')
		}
		pair, err := p.keyword()
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
func readPythonList(text string) ([]written, bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return nil, false
	}
	var calls []written
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
	places := callBegin.FindAllStringIndex(body, -1)
	for i, place := range places {
		if i == maxCalls {
			break
		}
		item := body[place[1]:]
		if i+1 < len(places) {
			item = body[place[1]:places[i+1][0]]
		}
		if stop := callEnd.FindStringIndex(item); stop != nil {
			item = item[:stop[0]]
		}
		r.calls = append(r.calls, sectionCall(item))
	}
	return end, isCalls
}

// sectionCall reads "functions.NAME:0<|…argument_begin|>{…}", "NAME<|tool_sep|>{…}", or "function<|tool_sep|>NAME" with
// the arguments in a block of code.
func sectionCall(item string) written {
	place := callSep.FindStringIndex(item)
	if place == nil {
		name := strings.TrimSpace(item)
		if open := strings.IndexByte(item, '{'); open > 0 {
			return withArguments(strings.TrimSpace(item[:open]), item[open:])
		}
		return written{name: name, broken: item}
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
			return r.ends(at)
		}
		open, v := mistralArguments(rest, n, r.final)
		switch {
		case v == needsMore:
			return 0, needsMore
		case v == isText:
			return r.ends(at)
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
		switch again, how := prefixed(r.text[next:], r.form.Open); {
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
	if _, how := prefixed(rest[at:], "[call_id]"); how == fits {
		n := strings.Index(rest[at+1:], "[")
		if n < 0 {
			return 0, unlessFinal(final)
		}
		at += 1 + n
	} else if how == begins && !final {
		return 0, needsMore
	}
	if n, how := prefixed(rest[at:], "[args]"); how == fits {
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
