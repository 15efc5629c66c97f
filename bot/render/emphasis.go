package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// emphasis is CommonMark's emphasis in prose, but not in names and calculations: "__init__" and "2*3*4" keep their
// characters. It also accepts "**x:**y", which CommonMark does not because no space follows the colon.
type emphasis struct{}

// Trigger implements parser.InlineParser.
func (emphasis) Trigger() []byte { return []byte{'*', '_'} }

// Parse implements parser.InlineParser.
func (emphasis) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	if size := dunder(line, before); size > 0 {
		block.Advance(size)
		return ast.NewRawTextSegment(segment.WithStop(segment.Start + size))
	}
	d := parser.ScanDelimiter(line, before, 1, emphasisKind{})
	if d == nil {
		return nil
	}
	if d.Char == '*' {
		after, _ := utf8.DecodeRune(line[d.OriginalLength:])
		amend(d, before, after)
	}
	return push(d, segment, block, pc)
}

// push puts a delimiter on the stack from which pairs are made when the block ends.
func push(d *parser.Delimiter, segment text.Segment, block text.Reader, pc parser.Context) ast.Node {
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

// amend changes what a run of asterisks between before and after can do.
func amend(d *parser.Delimiter, before, after rune) {
	switch {
	case strings.ContainsRune(")]}", before) && d.OriginalLength == 1 &&
		(isWord(after) && ascii(after) || after == '('):
		d.CanOpen, d.CanClose = false, false // (a+b)*c*d and (a)*(b)*(c)
	case isWord(before) && isWord(after):
		amendInWord(d, before, after)
	case isWord(after) && endsBefore(before, d.OriginalLength):
		d.CanClose = true // "**x:**y"; if there is no pair to close, it still opens one
	case isWord(before) && !ascii(before) && unicode.IsPunct(after):
		d.CanOpen = true // scripts without spaces: 这是**“x”**
	}
}

// amendInWord is amend between two letters or digits. Next to a digit it is a calculation. Between letters, a single
// asterisk can end emphasis ("*cat*s") but not begin it ("a*b*c"). Scripts without spaces have no other place for it.
func amendInWord(d *parser.Delimiter, before, after rune) {
	if !ascii(before) || !ascii(after) {
		return
	}
	sum := unicode.IsDigit(before) || unicode.IsDigit(after)
	d.CanOpen = d.CanOpen && !sum && d.OriginalLength > 1
	d.CanClose = d.CanClose && !sum
}

// endsBefore reports whether size asterisks can end emphasis after the punctuation r although a word follows. A bracket
// does not count: x**(1/2)**y.
func endsBefore(r rune, size int) bool {
	return strings.ContainsRune(":.,;!?", r) || size > 1 && r != ')' && unicode.IsPunct(r)
}

func ascii(r rune) bool { return r < utf8.RuneSelf }

// dunder returns the length of a name with two underscores at both ends, such as "__init__", at the beginning of line,
// or 0. A name consists of letters of one case, digits and underscores, and is longer than one letter; "__Note__" and
// "__two words__" are bold. So is a word in lower case that is no name that programs use, and that nothing of a program
// follows or precedes: "__important__", but "__init__", "__my_name__", "x.__slots__" and "__call__()".
func dunder(line []byte, before rune) int {
	if isWord(before) || before == '_' {
		return 0
	}
	end := 0
	for end < len(line) && nameByte(line[end]) {
		end++
	}
	after, _ := utf8.DecodeRune(line[end:])
	name, closed := strings.CutSuffix(string(line[:end]), "__")
	name, opened := strings.CutPrefix(name, "__")
	if !opened || !closed || isWord(after) || len(name) < 2 || strings.Trim(name, "_") != name {
		return 0
	}
	lower, upper := strings.ToLower(name) == name, strings.ToUpper(name) == name
	if lower == upper {
		return 0
	}
	if lower && !strings.ContainsAny(name, "_0123456789") && !specialNames[name] &&
		!strings.ContainsRune(`./\@$-`, before) && !strings.ContainsRune(`(/\[`, after) && !continuesName(line[end:]) {
		return 0
	}
	return end
}

// continuesName reports whether a name goes on behind a dot: "__main__.py".
func continuesName(rest []byte) bool { return len(rest) > 1 && rest[0] == '.' && nameByte(rest[1]) }

// specialNames are the words in lower case that Python and others put between two underscores at each end.
var specialNames = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`abs add aenter aexit aiter all and anext annotations await bases bool builtins bytes
		cached call ceil class code complex contains copy debug deepcopy del delattr delete delitem dict dir dirname divmod
		doc dso enter eq exit file filename floor float floordiv format fspath func function future ge get getattr getattribute
		getitem getnewargs getstate globals gt hash iadd iand idiv ifloordiv ilshift imatmul imod import imul index init int
		inv invert ior ipow irshift isub iter itruediv ixor le len line loader lshift lt main match matmul missing mocks mod
		module mro mul name ne neg new next nonzero or package path pos post pow prepare private proto prototype pycache qualname
		radd rand rdiv rdivmod reduce repr reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub
		rtruediv rxor self set setattr setitem setstate signature sizeof slots snapshots spec src static str sub subclasshook
		subclasses tests test text truediv trunc typename unicode version warningregistry weakref wrapped xor`) {
		m[name] = true
	}
	return m
}()

func nameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// emphasisKind pairs the delimiters of emphasis.
type emphasisKind struct{}

// IsDelimiter implements parser.DelimiterProcessor.
func (emphasisKind) IsDelimiter(c byte) bool { return c == '*' || c == '_' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (emphasisKind) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (emphasisKind) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// spoilers are texts between two bars at each end, hidden until they are tapped. In conditions ("a || b", "x||y") the
// bars are no spoilers: an opening pair has no word before it, a closing one none after it.
type spoilers struct{}

// Trigger implements parser.InlineParser.
func (spoilers) Trigger() []byte { return []byte{'|'} }

// Parse implements parser.InlineParser.
func (spoilers) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, spoilers{})
	if d == nil || d.OriginalLength != 2 {
		return nil
	}
	after, _ := utf8.DecodeRune(line[2:])
	d.CanOpen = !isWord(before) && !unicode.IsSpace(after) && after != utf8.RuneError
	d.CanClose = !isWord(after) && !unicode.IsSpace(before)
	return push(d, segment, block, pc)
}

// IsDelimiter implements parser.DelimiterProcessor.
func (spoilers) IsDelimiter(c byte) bool { return c == '|' }

// CanOpenCloser implements parser.DelimiterProcessor: a pair is used as a whole.
func (spoilers) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.Length == 2 && closer.Length == 2
}

// OnMatch implements parser.DelimiterProcessor.
func (spoilers) OnMatch(int) ast.Node { return &spoiler{} }

var kindOfSpoiler = ast.NewNodeKind("Spoiler")

// spoiler is hidden text.
type spoiler struct{ ast.BaseInline }

// Kind implements ast.Node.
func (*spoiler) Kind() ast.NodeKind { return kindOfSpoiler }

// Dump implements ast.Node.
func (s *spoiler) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }
