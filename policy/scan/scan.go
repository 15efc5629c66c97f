// Package scan finds text that tries to instruct a model: in tool definitions, tool results, web pages. It is a set of patterns (seed 001), widened by what
// they miss; it marks and replaces, it never decides alone.
package scan

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Sanitized stands where a match was taken out.
const Sanitized = "[sanitized]"

// MaxText bounds what is looked at, in bytes: longer texts are scanned at their beginning and their end.
const MaxText = 1 << 20

// Match is one finding.
type Match struct {
	Rule     string // "ignore_instructions"
	Category string // override, role, extraction, jailbreak, encoding, delimiter, exfiltration
	Start    int    // byte offsets in the text that was given
	End      int
}

type rule struct {
	name, category string
	words          []string // lower case: a text without any of them has no match
	re             *regexp.Regexp
}

// ws is white space as people see it: Go's \s is ASCII only.
const ws = `[\s\p{Z}\x{85}\x{0B}]`

// compile writes a rule: "_" is one or more white spaces.
func compile(name, category, words, pattern string) rule {
	return rule{name, category, strings.Fields(words), regexp.MustCompile(`(?i)` + strings.ReplaceAll(pattern, "_", ws+"+"))}
}

// rules are the patterns of seed 001 in their order, and what they miss: several qualifiers, "disregard the above", orders to run or to become.
var rules = []rule{
	compile("ignore_instructions", "override", "ignore", `ignore_(?:(?:all|any|every|the|of|your|my|these|those|previous|prior|earlier|above|preceding|foregoing)_){0,6}(?:instructions?|prompts?|rules?|directions?|context)`),
	compile("role_override", "role", "now", `you_are_now`),
	compile("new_directive", "override", "new", `new_(?:instructions?|directives?)`+ws+`*:`),
	compile("developer_mode", "role", "developer", `developer_mode`),
	compile("system_prompt_leak", "extraction", "system", `(?:(?:reveal|show|print|output|display|repeat|expose|dump|leak|copy|give)_(?:me_)?(?:(?:your|the|my)_)?(?:(?:full|entire|exact|complete)_)?|what_(?:is|are|was)_(?:(?:your|the)_)?)system_prompt`),
	compile("reveal_instructions", "extraction", "your", `(?:reveal|show|display|print)_your_(?:instructions?|prompts?|rules?)`),
	compile("jailbreak", "jailbreak", "dan jailbreak", `\b(?:DAN|jailbreak)\b`),
	compile("base64_payload", "encoding", "base64", `(?:decode|eval|execute)[^\n]*base64`),
	compile("xml_tag_injection", "delimiter", "<", `<`+ws+`*/?`+ws+`*(?:system|assistant|user|tool_result|function_call)`+ws+`*>`),
	compile("markdown_image_exfil", "exfiltration", "![", `!\[[^\]\n]*\]\(https?://[^)\s]+\)`),
	compile("forget_everything", "override", "forget", `forget_(?:everything|all)`),
	compile("disregard_instructions", "override", "disregard", `disregard_(?:your|all|previous|the_(?:above|previous)|any|everything)`),
	compile("override_directives", "override", "override", `override_(?:(?:your|all|the|any)_){1,2}(?:directives?|instructions?|rules?)`),
	compile("act_as_if", "role", "act", `act_as_if`),
	compile("html_image_exfil", "exfiltration", "<img", `<img[^>]*\ssrc`+ws+`*=`),
	compile("delimiter_escape_tool_output", "delimiter", "tool-output", `</?tool-output(?:`+ws+`|>)`),
	compile("delimiter_escape_external_data", "delimiter", "external-data", `</?external-data(?:`+ws+`|>)`),
	compile("new_persona", "role", "persona anything pretend", `(?:new_persona|do_anything_now|pretend_(?:to_be|that_you|you_are))`),
	compile("execute_following", "override", "following", `(?:execute|run|perform)_the_following_(?:commands?|instructions?|steps?)`),
	compile("hide_from_user", "override", "user", `(?:do_not|don'?t|never)_(?:tell|inform|mention_(?:this_)?to|show|alert|ask)_(?:this_to_)?the_user`),
}

// Names lists the rules in their order.
func Names() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Find lists what tries to instruct a model, in the order of the text. Look-alike letters, full-width forms and invisible characters are seen through.
func Find(text string) []Match {
	folded, at := fold(text)
	lower := strings.ToLower(folded)
	var found []Match
	for _, r := range rules {
		if !slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(lower, w) }) {
			continue
		}
		for _, loc := range r.re.FindAllStringIndex(folded, 64) {
			found = append(found, Match{Rule: r.name, Category: r.category, Start: at(loc[0]), End: at(loc[1])})
		}
	}
	slices.SortStableFunc(found, func(a, b Match) int { return a.Start - b.Start })
	return found
}

// Clean replaces each match by Sanitized, keeps the rest, and drops invisible characters and controls but tab and newline. It returns the rules that
// matched, each once.
func Clean(text string) (clean string, names []string) {
	found := Find(text)
	var b strings.Builder
	last := 0
	for _, m := range found {
		if !slices.Contains(names, m.Rule) {
			names = append(names, m.Rule)
		}
		if m.Start < last { // overlaps what is gone already
			last = max(last, m.End)
			continue
		}
		b.WriteString(text[last:m.Start])
		b.WriteString(Sanitized)
		last = m.End
	}
	if last < len(text) {
		b.WriteString(text[last:])
	}
	return Strip(b.String()), names
}

// Strip drops characters that nobody sees: format characters, controls but tab and newline, tag characters.
func Strip(text string) string {
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, text)
}

// invisible are the characters of seed 001's list, with U+180E and variation selectors.
func invisible(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n'
	case r < 0xAD:
		return r == 0x7F
	case r < 0x2000:
		return r == 0xAD || r == 0x34F || r == 0x61C || within(r, 0x115F, 0x1160) || within(r, 0x17B4, 0x17B5) || within(r, 0x180B, 0x180F)
	case r < 0x2070:
		return within(r, 0x200B, 0x200F) || within(r, 0x202A, 0x202E) || r >= 0x2060 && r != 0x2065
	}
	return invisibleAbove(r)
}

// invisibleAbove is the part of the list above U+206F.
func invisibleAbove(r rune) bool {
	return within(r, 0xFE00, 0xFE0F) || r == 0xFEFF || within(r, 0xFFF9, 0xFFFB) || within(r, 0x1BCA0, 0x1BCA3) || within(r, 0x1D173, 0x1D17A) || within(r, 0xE0000, 0xE01EF)
}

// within reports whether r is between first and last, both counted in.
func within(r, first, last rune) bool { return first <= r && r <= last }

// looks maps letters of other scripts to the Latin ones they are mistaken for.
var looks = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ո': 'n', 'ɡ': 'g', 'ı': 'i',
	'ο': 'o', 'α': 'a', 'ε': 'e', 'ι': 'i', 'ν': 'v', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ι': 'I', 'Ο': 'O',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X', 'І': 'I', 'Ѕ': 'S', 'Ј': 'J',
	'’': '\'', '‘': '\'', '＜': '<', '＞': '>', '‐': '-', '‑': '-', '–': '-',
}

// fold makes the text that the rules look at, and the way back: at gives the byte offset in the original for one in the folded text.
func fold(text string) (folded string, at func(int) int) {
	skip := 0
	if len(text) > MaxText { // the middle of what is this long is looked at by nobody
		skip = len(text) - MaxText
	}
	var b strings.Builder
	offsets := make([]int, 0, len(text)-skip+1)
	for i, r := range text {
		if skip > 0 && i >= MaxText/2 && i < MaxText/2+skip {
			continue
		}
		if invisible(r) {
			continue
		}
		if l, ok := looks[r]; ok {
			r = l
		}
		start := b.Len()
		if r >= utf8.RuneSelf {
			b.WriteString(letters(r))
		} else {
			b.WriteRune(r)
		}
		for range b.Len() - start {
			offsets = append(offsets, i)
		}
	}
	offsets = append(offsets, len(text))
	return b.String(), func(i int) int { return offsets[i] }
}

// letters decomposes one character (full-width forms, ligatures, mathematical letters, accents) and drops what is not a letter's body.
func letters(r rune) string {
	return strings.Map(func(r rune) rune {
		switch l, ok := looks[r]; {
		case r >= 0x300 && r <= 0x36F: // combining marks
			return -1
		case ok:
			return l
		default:
			return r
		}
	}, norm.NFKD.String(string(r)))
}
