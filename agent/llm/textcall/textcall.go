// Package textcall reads what a model says besides its answer: thoughts between tags, calls of tools written as text,
// and control tokens of its template. Servers should take these out of the text and often do not, because the template,
// the parser of the server or the model is another than was expected.
//
// A Reader takes the text of one answer in pieces of any size and separates it into text for people, thoughts and
// calls. How the answer was cut into pieces changes nothing about the result. What may become markup is held back until
// that is decided, so that a person never sees a part of it.
//
// # Forms
//
// The marks are rows of forms.json. Their letters may be of either case, bars may be full-width and underscores blocks.
//
//   - Thoughts: tags such as <think>, and the analysis channel of the Harmony format. A closing tag without an opening one
//     makes everything before it a thought: many templates write the opening tag into the prompt. An opening tag within a
//     line counts only if it is closed, because text may speak about it.
//   - Calls: JSON, elements with parameters, and the notations of GLM, DeepSeek, Kimi, Gemma, Mistral, Llama and Harmony.
//     Without any mark, JSON or Python's notation is a call only if it begins a line, nothing follows it, and it names
//     nothing but offered tools. Calls within thoughts count only if the answer has neither text nor other calls.
//   - Calls by the names of what was offered, at the beginning of a line: an element called as a tool, whose children are
//     its parameters, and the lines of ReAct. What a model makes up as a result behind them is left out.
//   - Control tokens: names between <| and |>, and what the table lists.
//
// In blocks of code and inline code, all of this is ordinary text. Code follows CommonMark, except that a fence may be
// indented as one likes.
//
// # Calls that are not made
//
// A call of a tool that was not offered, and markup in which no call can be read, stay in the text; Result.Unmade says
// so, and nothing of the answer is shown from there on, so that the caller can ask the model again. A call of an
// offered tool whose arguments cannot be read is returned with what stands for them, which is no JSON: the chain
// rejects it with its usual message. A call that was cut off is such a call; it never runs.
package textcall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// Options configure a Reader. All functions may be nil, and are called from Write, Think and Finish.
type Options struct {
	Tools []llm.Tool // the tools that may be called
	// Decode translates a name of the wire to that of a tool. It may be set as long as nothing is written.
	Decode func(name string) string
	// Opened says that the template may have opened a thought in the prompt. The text is held back until the thought is
	// closed, or, if it is not, until the end: then it is text, or a thought if the answer was cut off.
	Opened  bool
	Text    func(text string) // gets text for people as it becomes certain
	Thought func(text string) // gets thoughts
	// Void is called before Text gets the text from its beginning again, because what it got was a thought.
	Void func()
}

// Result is a whole answer.
type Result struct {
	Text     string
	Thoughts string // at most 1 MiB
	Calls    []Call
	// Unmade says that the text contains calls that cannot be made. Text was not called with it, nor with what follows.
	Unmade bool
	// Unopened says that a thought ended that had not begun: the model's template opens it in the prompt.
	Unopened bool
}

// Call is a call of an offered tool.
type Call struct {
	Name string // as in llm.Tool
	Args json.RawMessage
}

// maxDoubts bounds how many places of an answer are examined that look like calls and are none, because each may cost a
// look at the whole rest.
const maxDoubts = 64

// maxThoughts bounds the thoughts that are kept of an answer, in bytes. The rest is only handed on: an answer may
// follow however long a model thinks.
const maxThoughts = 1 << 20

type state int

const (
	inText    state = iota
	inThought       // up to one of closers or borders
	inHeld          // text, unless one of closers follows
	inForeign       // what another role says
)

// Reader reads one answer. It is for one goroutine. The zero value is not ready for use: see New.
type Reader struct {
	o     *Options
	forms *forms

	pending []byte // not yet decided
	retry   int    // length of pending at which it is looked at again

	state   state
	closers []string // of the thought
	borders []string // marks that end the thought and are read again

	text   []byte
	shown  int  // bytes of text that Text got
	told   bool // it got something
	spoken bool // text has more than blanks
	cut    bool // something was removed from the text
	hushed bool // Unmade
	acted  bool // a call was written between labels, so that a result may be made up

	line  int // where the current line begins in text
	blank bool
	fence fence

	thoughts []byte
	begun    int  // where the current thought begins in thoughts
	ended    bool // a thought has ended in the text
	since    int  // length of text when the last thought ended
	stray    int  // length of text at a closing tag without an opening one; -1 = none
	unopened bool

	calls   []Call
	doubts  int     // how many places looked like calls and were none
	endless []*form // thoughts that the rest of the text does not end
	inner   bool    // the text is that of thoughts: only marked calls count
	offered map[string]*llm.Tool
}

// New returns a Reader. It keeps the options.
func New(o *Options) *Reader {
	r := &Reader{o: o, forms: table(), blank: true, stray: -1}
	if o.Opened {
		r.state, r.closers = inHeld, r.forms.closed
	}
	return r
}

// Write takes the next piece of the answer's text.
func (r *Reader) Write(piece string) {
	if len(r.pending) == 0 && r.state == inText {
		if piece = r.passPlain(piece); piece == "" {
			return
		}
	}
	r.pending = append(r.pending, piece...)
	if len(r.pending) >= r.retry {
		r.readPending(false)
	}
}

// passPlain passes the beginning of a piece that is certainly text, without a copy, and returns the rest.
func (r *Reader) passPlain(piece string) string {
	for piece != "" {
		n := 0
		switch c := piece[0]; {
		case r.fence.length > 0:
			if n = strings.IndexByte(piece, '\n') + 1; n == 0 {
				n = len(piece)
			}
		case r.blank && (c == '{' || c == 'f' || r.forms.capital[c] || (c == 'a' || c == 'c') && !r.spoken):
			return piece
		default:
			n = r.forms.textLength(piece)
		}
		if n == 0 {
			return piece
		}
		r.passText(piece[:n])
		piece = piece[n:]
	}
	return piece
}

// textLength returns how much of a text is certainly text, up to the end of its line, or of the blanks that begin it.
func (t *forms) textLength(text string) int {
	n := 0
	for n < len(text) && (text[n] == ' ' || text[n] == '\t') {
		n++
	}
	if n > 0 {
		return n
	}
	for n < len(text) && !t.mayBegin(text, n) {
		n++
	}
	if n < len(text) && text[n] == '\n' {
		n++
	}
	return n
}

// Think takes the next piece of thoughts that the server itself has kept apart from the text. Such a server leaves none
// in the text, so that there is no reason to expect one.
func (r *Reader) Think(piece string) {
	if piece != "" && r.state == inHeld && !r.ended {
		r.state, r.closers = inText, nil
		r.readPending(false)
	}
	r.addThought(piece)
}

// Shown reports whether Text got something that was not voided.
func (r *Reader) Shown() bool { return r.told }

// Finish ends the answer. cut says that it ended before the model wanted.
func (r *Reader) Finish(cut bool) *Result {
	r.readPending(false)                      // the rest may have been left for later
	if cut && r.state == inHeld && !r.ended { // the thought was cut off
		r.cut = true
		r.addThought(string(r.pending))
		r.pending = r.pending[:0]
	}
	r.readPending(true)
	if !r.spoken && r.cut {
		r.text = r.text[:0]
	}
	r.showHeld(true)
	if r.onlyThoughts() && !cut {
		r.callsInThoughts()
	}
	return &Result{
		Text: string(r.text), Thoughts: string(r.thoughts), Calls: r.calls, Unmade: r.hushed, Unopened: r.unopened,
	}
}

// onlyThoughts reports whether the answer is nothing but thoughts.
func (r *Reader) onlyThoughts() bool {
	return !r.spoken && len(r.calls) == 0 && len(r.thoughts) > 0 && len(r.o.Tools) > 0
}

// callsInThoughts takes the calls of an answer that consists of thoughts alone (Kimi K2 calls from within them,
// and others forget to close them).
func (r *Reader) callsInThoughts() {
	inner := New(&Options{Tools: r.o.Tools, Decode: r.o.Decode})
	inner.inner = true
	inner.Write(string(r.thoughts))
	inner.readPending(false)
	inner.readPending(true)
	r.calls = inner.calls
}

// readPending decides what can be decided about the pending text.
func (r *Reader) readPending(final bool) {
	rest := string(r.pending)
	whole := len(rest)
	for rest != "" {
		n, decided := r.readStep(rest, final)
		if !decided && !final {
			break
		}
		rest = rest[n:]
		if !decided { // the end came before a decision: what it begins with is text
			n = r.passLiteral(rest)
			rest = rest[n:]
		}
	}
	r.pending = append(r.pending[:0], rest...)
	r.retry = 0
	if whole > 0 && len(rest) > 0 {
		r.retry = len(rest) + 1 + len(rest)/16 // a long text is not looked at again for every piece
	}
}

// readStep reads the beginning of a text and returns how much of it. decided is false if that depends on what follows.
func (r *Reader) readStep(text string, final bool) (n int, decided bool) {
	switch r.state {
	case inThought:
		return r.stepThought(text, final)
	case inHeld:
		return r.stepHeld(text, final)
	case inForeign:
		return r.stepForeign(text, final)
	default:
		return r.stepText(text, final)
	}
}

// passLiteral passes the first character of a text.
func (r *Reader) passLiteral(text string) int {
	r.passText(text[:1])
	return 1
}

func (r *Reader) stepThought(text string, final bool) (int, bool) {
	at, n, safe := findMark(text, r.closers, final)
	if len(r.borders) > 0 {
		border, _, limit := findMark(text, r.borders, final)
		safe = min(safe, limit)
		if border >= 0 && (at < 0 || border < at) {
			at, n = border, 0
		}
	}
	if at < 0 || at > safe {
		r.addThought(text[:safe])
		return safe, safe > 0
	}
	r.addThought(text[:at])
	r.endThought()
	return at + n, true
}

// endThought returns to the text. If thoughts were opened within the thought, what follows may still be one.
func (r *Reader) endThought() {
	thought := string(r.thoughts[r.begun:])
	nested := false
	if len(r.borders) == 0 {
		at, _, _ := findMark(thought, r.forms.opened, true)
		nested = at >= 0
	}
	r.state, r.cut, r.ended, r.since = inText, true, true, len(r.text)
	r.borders = nil
	if nested {
		r.state = inHeld
		return
	}
	r.closers = nil
}

// stepHeld waits for the end of a thought that may have begun.
func (r *Reader) stepHeld(text string, final bool) (int, bool) {
	if start := afterBlanks(text, 0); !r.ended && start < len(text) { // nothing to guess if the text begins with a mark
		switch f, _, how := r.forms.matchForm(text[start:], final); {
		case how == begins:
			return 0, false
		case how == fits && f.Kind != closeForm && f.Kind != genericForm && f.Kind != tokenForm:
			r.state, r.closers = inText, nil
			return 0, true
		}
	}
	at, n, _ := findMark(text, r.closers, final)
	switch {
	case at >= 0:
		r.unopened = r.unopened || !r.ended
		r.begun = len(r.thoughts)
		r.addThought(text[:at])
		r.endThought()
		return at + n, true
	case final:
		r.state, r.closers = inText, nil
		return 0, true
	default:
		return 0, false
	}
}

func (r *Reader) stepForeign(text string, final bool) (int, bool) {
	for i := range len(text) {
		if text[i] != '<' {
			continue
		}
		f, _, how := r.forms.matchForm(text[i:], final)
		switch {
		case how == begins:
			return i, i > 0
		case how == fits && (f.Kind == roleForm || f.Kind == harmonyForm):
			r.state = inText
			return i, true
		}
	}
	return len(text), true
}

// stepText passes text up to the next place that may be more than text, and decides about that.
func (r *Reader) stepText(text string, final bool) (int, bool) {
	if r.fence.length > 0 {
		n := strings.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		r.passText(text[:n])
		return n, true
	}
	if r.blank && text[0] != ' ' && text[0] != '\t' {
		if n, decided, read := r.lineStart(text, final); read {
			return n, decided
		}
	}
	if n := r.forms.textLength(text); n > 0 {
		r.passText(text[:n])
		return n, true
	}
	return r.readMark(text, final)
}

// lineStart reads forms that need to be at the beginning of a line. read is false if there is none.
func (r *Reader) lineStart(text string, final bool) (n int, decided, read bool) {
	if r.forms.capital[text[0]] {
		return r.readLabelled(text, final)
	}
	switch text[0] {
	case 'a', 'c':
		if !r.spoken && len(r.calls) == 0 && !r.inner {
			return r.readStripped(text, final)
		}
	case '{', '[', 'f':
		if len(r.o.Tools) == 0 || r.inner || r.doubts >= maxDoubts || text[0] == 'f' && !likeFunctools(text, final) {
			return 0, false, false
		}
		v := mayBeBare(text, r.offersTool)
		if v == isText || v == needsMore && final {
			return 0, false, false
		}
		if v == needsMore {
			return 0, false, true
		}
		if n, decided, read = r.readBare(text, final); !read {
			r.doubts++
		}
		return n, decided, read
	}
	return 0, false, false
}

func likeFunctools(text string, final bool) bool {
	_, how := matchPrefix(text, "functools[")
	return how == fits || how == begins && !final
}

// readBare reads calls without a mark. They are calls only if nothing follows them but control tokens.
func (r *Reader) readBare(text string, final bool) (n int, decided, read bool) {
	end := 0
	for end < len(text) {
		at := end
		if at > 0 {
			at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n,;"))
		}
		if at == len(text) || end > 0 && text[at] == '<' {
			break
		}
		if text[at] != '{' && text[at] != '[' && end > 0 {
			return 0, false, false
		}
		size := valueEnd(text[at:])
		if size < 0 {
			return 0, false, !final
		}
		end = at + size
	}
	switch r.onlyTokens(strings.TrimLeft(text[end:], " \t\r\n,;"), final) {
	case isText:
		return 0, false, false
	case needsMore:
		return 0, false, true
	case isCalls:
	}
	calls, ok := bareCalls(text[:end], r.offersTool)
	if !ok {
		return 0, false, false
	}
	r.takeCalls(calls, "")
	return len(text), true, true
}

// onlyTokens reports whether nothing but blanks and control tokens is left of the answer;
// isText means that there is more.
func (r *Reader) onlyTokens(rest string, final bool) verdict {
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "" {
			if final {
				return isCalls
			}
			return needsMore
		}
		f, size, how := r.forms.matchForm(rest, final)
		switch {
		case how == begins:
			return needsMore
		case how == differs, f.Kind != genericForm && f.Kind != tokenForm && f.Kind != lastForm:
			return isText
		}
		rest = rest[size:]
	}
}

// readMark decides about a text that begins with a byte with which marks begin.
func (r *Reader) readMark(text string, final bool) (int, bool) {
	f, n, how := r.forms.matchForm(text, final)
	switch how {
	case begins:
		return 0, false
	case differs:
		if text[0] != '<' || !r.blank || len(r.o.Tools) == 0 {
			return r.passLiteral(text), true
		}
	case fits:
	}
	code, decided := inlineCode(r.text, text, final)
	switch {
	case !decided:
		return 0, false
	case how == differs && !code:
		if n, decided, read := r.readNamed(text, final); read {
			return n, decided
		}
		return r.passLiteral(text), true
	case how == differs:
		return r.passLiteral(text), true
	case code:
		r.passText(text[:n])
		return n, true
	}
	switch f.Kind {
	case thoughtForm:
		return r.openThought(f, text, n, final)
	case closeForm:
		r.closeUnopened()
		return n, true
	case callForm, sectionForm:
		return r.readRegion(f, text, n, final)
	case harmonyForm:
		return r.readHarmony(f, text, n, final)
	case roleForm:
		return r.readRole(f, text, n, final)
	case lastForm:
		return r.lastToken(text, n, final)
	default:
		r.cut = true
		return n, true
	}
}

// openThought begins a thought. Within a line it counts only if it ends.
func (r *Reader) openThought(f *form, text string, n int, final bool) (int, bool) {
	if !r.blank {
		if slices.Contains(r.endless, f) {
			r.passText(text[:n])
			return n, true
		}
		if at, _, _ := findMark(text[n:], f.Close, final); at < 0 {
			if final {
				r.endless = append(r.endless, f)
				r.passText(text[:n])
				return n, true
			}
			return 0, false
		}
	}
	r.state, r.closers, r.begun, r.cut = inThought, f.Close, len(r.thoughts), true
	return n, true
}

// closeUnopened handles the end of a thought that has not begun. If no thought has ended before, all text so far was
// one. Else that depends on whether text follows.
func (r *Reader) closeUnopened() {
	r.cut = true
	if r.ended {
		r.stray = len(r.text)
		return
	}
	r.unopened, r.ended = true, true
	r.voidText(len(r.text))
}

// voidText turns the text since the last thought, up to a place, into a thought. The calls in it count
// no more than others in thoughts.
func (r *Reader) voidText(upTo int) {
	upTo = min(upTo, len(r.text))
	began := min(r.since, upTo)
	r.begun = len(r.thoughts)
	thought := string(r.text[began:upTo])
	r.text = append(r.text[:began], r.text[upTo:]...)
	again := r.shown > began
	switch {
	case again && r.o.Void != nil:
		r.o.Void()
		r.shown, r.told = 0, false
	case again: // it cannot be taken back
		r.shown = len(r.text)
	}
	r.addThought(thought)
	r.calls, r.hushed, r.stray = nil, false, -1
	r.spoken = len(bytes.TrimSpace(r.text)) > 0
	if !r.spoken {
		r.text = bytes.TrimLeft(r.text, " \t\r\n")
	}
	r.since = min(r.since, len(r.text))
	r.line = bytes.LastIndexByte(r.text, '\n') + 1
	r.blank = len(bytes.TrimLeft(r.text[r.line:], " \t")) == 0
	r.fence = fence{}
	r.showHeld(false)
}

// readRegion reads calls with marks.
func (r *Reader) readRegion(f *form, text string, mark int, final bool) (int, bool) {
	g := &region{form: f, text: text, mark: mark, final: final, offers: r.offersTool}
	n, v := 0, isText
	if r.doubts < maxDoubts && (!f.Strict || r.blank) {
		n, v = g.readCalls()
	}
	if f.Strict && v == isCalls &&
		(len(g.calls) == 0 || slices.ContainsFunc(g.calls, func(c writtenCall) bool { return !r.offersTool(c.name) })) {
		v = isText
	}
	if v == isText || v == needsMore && final {
		r.doubts++
	}
	switch {
	case v == needsMore && !final:
		return 0, false
	case v == isCalls:
		r.takeCalls(g.calls, text[:n])
		return n, true
	case strings.HasPrefix(f.Open, "<|") || f.Open[0] == '[': // no text looks like this by chance
		r.cut = true
		return mark, true
	default:
		r.passText(text[:mark])
		return mark, true
	}
}

// takeCalls resolves calls. If one of them cannot be made, their markup stays in the text.
func (r *Reader) takeCalls(calls []writtenCall, markup string) {
	r.cut = true
	unmade := len(calls) == 0 && strings.TrimSpace(markup) != ""
	for _, c := range calls {
		tool := r.findTool(c.name)
		switch {
		case tool == nil:
			unmade = true
			continue
		case r.inner && c.broken != "":
			continue
		}
		if len(r.calls) < maxCalls {
			r.calls = append(r.calls, Call{Name: tool.Name, Args: c.argumentsFor(tool)})
		}
	}
	if unmade && !r.inner {
		r.hushed = true
		r.passText(markup)
	}
}

func (r *Reader) offersTool(name string) bool { return r.findTool(name) != nil }

// suffix is the number that Kimi writes behind names.
var suffix = lazyregexp.New(`:\d+$`)

// findTool returns the offered tool that a name means; nil = none.
func (r *Reader) findTool(name string) *llm.Tool {
	if r.offered == nil {
		r.offered = make(map[string]*llm.Tool, len(r.o.Tools))
		for i := range r.o.Tools {
			r.offered[r.o.Tools[i].Name] = &r.o.Tools[i]
		}
	}
	for _, spelling := range spellingsOf(name) {
		if tool := r.offered[spelling]; tool != nil {
			return tool
		}
		if r.o.Decode == nil {
			continue
		}
		if tool := r.offered[r.o.Decode(spelling)]; tool != nil {
			return tool
		}
	}
	return nil
}

// spellingsOf returns a name as it is, and without what templates add to it.
func spellingsOf(name string) []string {
	plain := CleanName(name)
	list := []string{strings.TrimSpace(name), plain, suffix().ReplaceAllString(plain, "")}
	for _, prefix := range []string{"functions.", "function.", "functions:", "tools.", "tool.", "default_api."} {
		if rest, ok := strings.CutPrefix(list[2], prefix); ok {
			list = append(list, rest)
		}
	}
	return list
}

// CleanName removes what templates leave at the end of a tool's name: Harmony's next token (list<|channel|>commentary).
func CleanName(name string) string {
	if at := strings.Index(name, "<|"); at > 0 {
		name = name[:at]
	}
	return strings.TrimSpace(name)
}

// lastToken removes </s> from the end of an answer, and passes it as HTML elsewhere.
func (r *Reader) lastToken(text string, n int, final bool) (int, bool) {
	if bytes.Contains(r.text, []byte("<s>")) || r.doubts >= maxDoubts {
		r.passText(text[:n])
		return n, true
	}
	switch r.onlyTokens(text[n:], final) {
	case isText:
		r.doubts++
		r.passText(text[:n])
	case needsMore:
		return 0, false
	case isCalls:
		r.cut = true
	}
	return n, true
}

// passText adds text for people.
func (r *Reader) passText(text string) {
	if r.stray >= 0 && strings.TrimSpace(text) != "" {
		r.voidText(r.stray)
	}
	if !r.spoken && r.cut { // blanks around what was removed
		r.text, r.shown, r.line, r.since, r.stray = r.text[:0], 0, 0, 0, min(r.stray, 0)
		text = strings.TrimLeft(text, " \t\r\n")
	}
	whole := len(r.text) == r.shown && r.spoken && !r.hushed
	r.text = append(r.text, text...)
	for rest := text; ; {
		at := strings.IndexByte(rest, '\n')
		if at < 0 {
			r.blank = r.blank && strings.Trim(rest, " \t") == ""
			break
		}
		end := len(r.text) - len(rest) + at
		r.fence = r.fence.afterLine(r.text[r.line:end])
		r.line, r.blank = end+1, true
		rest = rest[at+1:]
	}
	if whole { // the usual case: nothing is held back, and the piece itself is passed on
		r.shown = len(r.text)
		r.sayText(text)
		return
	}
	r.spoken = r.spoken || strings.TrimSpace(text) != ""
	r.showHeld(false)
}

// showHeld hands on text that was held back. Blanks before the first word wait for it, unless it is the end.
func (r *Reader) showHeld(end bool) {
	if r.hushed || r.shown >= len(r.text) || !r.spoken && !end {
		return
	}
	text := string(r.text[r.shown:])
	r.shown = len(r.text)
	r.sayText(text)
}

func (r *Reader) sayText(text string) {
	if r.o.Text != nil && text != "" {
		r.told = true
		r.o.Text(text)
	}
}

// addThought adds a piece of a thought.
func (r *Reader) addThought(text string) {
	if text == "" {
		return
	}
	r.thoughts = append(r.thoughts, text[:min(len(text), maxThoughts-len(r.thoughts))]...)
	if r.o.Thought != nil {
		r.o.Thought(text)
	}
}
